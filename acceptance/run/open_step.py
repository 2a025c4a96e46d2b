"""The step of a power load at which a journal stops: what the machine did not survive.

Each step is on the disk before it begins (`session.load_events`), and so are the parts of the stage
that load the machine beside it (`part-began`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from acceptance.core.evidence import PartBegan, ToolRan
from acceptance.core.message import Message, Value, known
from acceptance.core.notes import steps_by_check
from acceptance.core.parts import CPU, MEMORY, Component
from acceptance.core.record import CheckStarted, Entry


@dataclass(frozen=True, slots=True)
class OpenStep:
    """The step that had begun and not ended, and what else was under load.

    `survived` is the last step of the same check that had ended.
    """

    step: Value
    beside: frozenset[Component]
    survived: Value | None


def read(entries: Sequence[Entry]) -> OpenStep | None:
    """The step that was open when the journal stops; None where none was."""
    steps = list(steps_by_check(entries))
    if not steps or steps[-1][-1].ended_s < inf:
        return None
    *before, last = steps[-1]
    loaded: dict[str, Component] = {}
    for body in (entry.body for entry in entries if entry.segment == last.segment):
        if isinstance(body, CheckStarted):
            loaded = {}
        elif isinstance(body, PartBegan):
            loaded[body.log] = body.component
        elif isinstance(body, ToolRan):
            loaded.pop(body.log or "", None)
    survived = next((span.step for span in reversed(before) if span.ended), None)
    return OpenStep(last.step, frozenset(loaded.values()), survived)


def told(step: OpenStep | None, *, rebooted: bool) -> Iterator[Message]:
    """At which step the machine went down, or the harness was killed, and which one it survived."""
    if step is None:
        return
    about = known(step=step.step, beside=_beside(step.beside))
    yield Message("power_step_went_down" if rebooted else "power_step_was_open", about)
    if step.survived is not None:
        yield Message("power_step_survived", {"step": step.survived})


def _beside(loaded: frozenset[Component]) -> Message | None:
    both = loaded & {CPU, MEMORY}
    if len(both) > 1:
        return Message("power_beside_both")
    if both:
        return Message("power_beside_processors" if CPU in both else "power_beside_ram")
    return None


def causes() -> Message:
    """Why a machine goes down at a step, the most likely cause first, each with what to try."""
    found = (
        Message("power_cause_supply"),
        Message("power_cause_cables"),
        Message("power_cause_shared_cable"),
        Message("power_cause_connector"),
        Message("power_cause_riser"),
        Message("power_cause_socket"),
    )
    listed = tuple(
        Message("power_cause", {"place": place, "cause": cause})
        for place, cause in enumerate(found, start=1)
    )
    return Message("power_causes", {"causes": listed})
