"""Foreign processes: who else used the tested GPUs, and which checks that invalidates.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from acceptance.core.finding import Finding
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Entry, ForeignProcess
from acceptance.core.spans import CheckSpans

_ALL = "gpus"  # every GPU of the test, as one component
# Units of rates and times, which another program on the same GPU changes.
RATES = frozenset({"GB/s", "GFLOP/s", "TFLOP/s", "MT/s", "Mbit/s", "us", "ns", "s"})


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One use of a GPU by others, in seconds since boot number `boot`.

    `until_s` is infinite where no end was seen.
    """

    who: str
    gpu: str
    boot: int
    since_s: float
    until_s: float


def uses(entries: Sequence[Entry]) -> tuple[GpuUse, ...]:
    """Every use of a GPU by others, in journal order.

    The record of its end replaces that of its beginning.
    """
    found: dict[tuple[int, str, int | None, str | None, float], GpuUse] = {}
    for entry in entries:
        if isinstance(one := entry.body, ForeignProcess):
            name = (entry.boot, one.component, one.pid, one.command, one.since_s)
            until_s = inf if one.until_s is None else one.until_s
            found[name] = GpuUse(one.who, one.component, entry.boot, one.since_s, until_s)
    return tuple(found.values())


def is_disturbed(check: PlannedCheck, gpu: str) -> bool:
    """Whether foreign use of a GPU invalidates a check of it.

    It does where the check keeps the GPU busy, or measures a rate or a time of it.
    """
    if check.session != "load":
        return False
    return check.gpu_load_s > 0.0 or any(
        due.unit in RATES and (due.component == _ALL or gpu in due.component.split("->"))
        for due in check.due
    )


def findings(check: PlannedCheck, uses: Sequence[GpuUse], spans: CheckSpans) -> list[Finding]:
    """An error for each foreign use of a GPU that overlaps a check that it invalidates."""
    by_text: dict[str, Finding] = {}
    for name, boot, begin_s, end_s in spans.spans:
        for use in uses if name == check.id else ():
            meets = use.boot == boot and use.since_s <= end_s and use.until_s >= begin_s
            if meets and is_disturbed(check, use.gpu):
                text = (
                    f"{use.gpu} was also used by {use.who} {_when(use, begin_s, end_s)}: end "
                    "it, "
                    "and run again"
                )
                by_text[text] = Finding("error", check.id, text, component=use.gpu)
    return list(by_text.values())


def _when(use: GpuUse, begin_s: float, end_s: float) -> str:
    since = (
        f"from second {use.since_s - begin_s:.0f}"
        if use.since_s > begin_s
        else "from its beginning"
    )
    whole = use.until_s >= end_s
    if whole and use.since_s <= begin_s:
        return "for the whole of this check"
    return (
        f"{since} to the end of this check"
        if whole
        else f"{since} to second {use.until_s - begin_s:.0f} of this check"
    )


def use_notes(entries: Sequence[Entry], uses: Sequence[GpuUse]) -> tuple[str, ...]:
    """Every foreign use of a GPU with its seconds in the run, whichever check it disturbed."""
    began = {entry.boot: entry.boot_s for entry in reversed(entries)}
    return tuple(dict.fromkeys(_note(use, began[use.boot]) for use in uses))


def _note(use: GpuUse, began_s: float) -> str:
    until = "its end" if use.until_s == inf else f"second {use.until_s - began_s:.0f}"
    return (
        f"{use.gpu} was also used by {use.who} from second "
        f"{max(0.0, use.since_s - began_s):.0f} "
        f"of the run to {until}"
    )
