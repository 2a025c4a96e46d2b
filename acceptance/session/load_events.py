"""Events and notes from running loads, journalled at once: wrong results and progress.

A run may be stopped, killed or cut off by a reboot in the middle of a burn of days. Each finding is
in the journal, on the disk, from the moment it is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from acceptance.core.record import Body, Event, Note
from acceptance.journal import clock

Listener = Callable[[int, str], None]

KIND = "miscompare"
SOURCE = "load"
LAP = "lap "
# Minimum time between two notes of laps. In a long run it grows with the elapsed time: a week
# leaves some hundred notes.
NOTE_S = 60.0
NOTE_SHARE = 1 / 60
QUOTED = 400
# maximum number of events of a GPU: more than there are formats and paths; limits a malfunctioning
# load
MAX_EVENTS = 32
_ACTION = "Run it again, cool and alone; if it comes back, replace the card."
_OF_COPIES = (
    "Reseat the card and its riser; try another slot or cable; if it comes back, replace the card."
)


def listener(
    names: Sequence[str],
    write: Callable[[Body], None],
    now_s: Callable[[], float] = clock.boot_s,
    shown: Mapping[str, Sequence[str]] | None = None,
) -> Listener:
    """A callback for `Programs.run_together(on_line=...)` that journals lines of loads by `write`.

    `names` are the GPUs of the loads, program by program; later programs are no GPU loads, and
    their lines are ignored. `shown` are the GPUs that each load sees, its own first, where that is
    not all of them. The first wrong result of each GPU and kind becomes an event. Progress becomes
    a note, at most once a minute. Other lines are ignored here: the whole output is parsed strictly
    when the load has ended.
    """
    return _Listening(tuple(names), write, now_s, shown or {})


class _Listening:
    def __init__(
        self,
        names: tuple[str, ...],
        write: Callable[[Body], None],
        now_s: Callable[[], float],
        shown: Mapping[str, Sequence[str]],
    ) -> None:
        self._names = names
        self._shown = shown
        self._write = write
        self._now_s = now_s
        self._began_s = now_s()
        self._noted_s = float("-inf")
        self._told: set[tuple[str, str]] = set()
        self._injected: dict[int, str] = {}
        self._laps: dict[int, str] = {}

    def __call__(self, index: int, line: str) -> None:
        record = _record(line) if index < len(self._names) else None
        if record is None:
            return
        parameters = record.get("parameters")
        if (
            "rigproof_load" in record
            and isinstance(parameters, dict)
            and parameters.get("inject") is not None
        ):
            self._injected[index] = str(parameters["inject"])
        elif isinstance(record.get("miscompare"), dict):
            self._wrong(index, record["miscompare"])
        elif isinstance(record.get("note"), str) and record["note"].startswith(LAP):
            self._lap(index, record["note"])

    def _wrong(self, index: int, miscompare: Mapping[str, Any]) -> None:
        component, code = self._component(index, miscompare.get("component")), code_of(miscompare)
        if (component, code) in self._told or len(self._told) >= MAX_EVENTS * len(self._names):
            return
        self._told.add((component, code))
        # An impossible time must not attribute the event to another check.
        told_s = _number(miscompare.get("found_s"))
        fits = told_s is not None and self._began_s <= told_s <= self._now_s() + 1.0
        event = event_of(miscompare, component, self._injected.get(index))
        self._write(msgspec.structs.replace(event, boot_s=told_s if fits else None))

    def _component(self, index: int, told: object) -> str:
        """A component with the load's own GPU numbers, its own GPU first, in the run's names.

        The load's own GPU for any other text.
        """
        own = self._names[index]
        order = self._shown.get(own) or [own, *(name for name in self._names if name != own)]
        known = {f"gpu{number}": name for number, name in enumerate(order)}
        parts = told.split("->") if isinstance(told, str) else []
        return (
            "->".join(known[part] for part in parts)
            if parts and all(part in known for part in parts)
            else own
        )

    def _lap(self, index: int, text: str) -> None:
        self._laps[index] = text
        now_s = self._now_s()
        if now_s - self._noted_s >= max(NOTE_S, NOTE_SHARE * (now_s - self._began_s)):
            self._noted_s = now_s
            words = "; ".join(
                f"{self._names[one]}: {said[:QUOTED]}" for one, said in sorted(self._laps.items())
            )
            self._write(Note(words, progress=True))


def code_of(miscompare: Mapping[str, Any]) -> str:
    """The event code of a wrong result, as in the name of its count.

    A number format, "copy", "peer" or "vram".
    """
    check, dtype = miscompare.get("check"), miscompare.get("dtype")
    if isinstance(dtype, str) and dtype:
        return dtype
    if isinstance(check, str) and check.startswith("copy_"):
        return "peer" if check == "copy_p2p" else "copy"
    return check if isinstance(check, str) and check else "result"


def event_of(miscompare: Mapping[str, Any], component: str, injected: str | None = None) -> Event:
    """The event for a wrong result, without its time. Pure."""
    code, check = code_of(miscompare), miscompare.get("check")
    if code in ("copy", "peer"):
        meaning, action = (
            f"data was changed on its way ({check}) while {component} was under load",
            _OF_COPIES,
        )
        if miscompare.get("words") == miscompare.get("unwritten") is not None:
            meaning = f"data never arrived ({check}) while {component} was under load"
    elif code == "vram":
        meaning, action = f"the memory of {component} does not hold what is written to it", _ACTION
    else:
        meaning, action = f"{component} gave a wrong result under load{_where(miscompare)}", _ACTION
    if injected is not None:
        meaning += f" (a fault was injected on purpose: {injected})"
    return Event(
        KIND,
        "fatal",
        json.dumps(miscompare)[:QUOTED],
        meaning,
        action,
        code,
        component,
        source=SOURCE,
    )


def _where(miscompare: Mapping[str, Any]) -> str:
    parts = [
        f"{key} {miscompare[key]}"
        for key in ("check", "shape", "iteration", "lap", "elements")
        if key in miscompare
    ]
    return f": {', '.join(str(part)[:60] for part in parts)}" if parts else ""


def _record(line: str) -> dict[str, Any] | None:
    """The JSON object of a line; None for any other text, such as output of other programs."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(value: object) -> float | None:
    """A finite number; None for anything else."""
    given = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if given and -1e18 < value < 1e18 else None  # type: ignore[operator, arg-type]
