"""Events and notes from running loads, journalled at once: wrong results and progress.

A run may be stopped, killed or cut off by a reboot in the middle of a burn of days. Each finding is
in the journal, on the disk, from the moment it is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import msgspec

from acceptance.core.record import Body, Event, Note
from acceptance.journal import clock
from acceptance.loads.miscompare import (
    UnreadMiscompare,
    WrongCopy,
    WrongMemory,
    WrongProduct,
    WrongResult,
    WrongTransfer,
    component_of,
    details,
    dtype_of,
)
from acceptance.loads.protocol import Hello, ProtocolError, decode
from acceptance.loads.protocol import Note as LoadNote

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
        if index >= len(self._names):
            return
        try:
            said = decode(line)
        except ProtocolError:
            return  # such as output of other programs
        if isinstance(said, Hello) and said.injected is not None:
            self._injected[index] = said.injected
        elif isinstance(said, WrongResult):
            self._wrong(index, said)
        elif isinstance(said, LoadNote) and said.text.startswith(LAP):
            self._lap(index, said.text)

    def _wrong(self, index: int, wrong: WrongResult) -> None:
        component, code = self._component(index, component_of(wrong)), code_of(wrong)
        if (component, code) in self._told or len(self._told) >= MAX_EVENTS * len(self._names):
            return
        self._told.add((component, code))
        # An impossible time must not attribute the event to another check.
        told_s = (
            wrong.found_s if isinstance(wrong, WrongProduct | WrongCopy | WrongMemory) else None
        )
        fits = told_s is not None and self._began_s <= told_s <= self._now_s() + 1.0
        event = event_of(wrong, component, self._injected.get(index))
        self._write(msgspec.structs.replace(event, boot_s=told_s if fits else None))

    def _component(self, index: int, told: str | None) -> str:
        """A component with the load's own GPU numbers, its own GPU first, in the run's names.

        The load's own GPU for any other text.
        """
        own = self._names[index]
        order = self._shown.get(own) or [own, *(name for name in self._names if name != own)]
        known = {f"gpu{number}": name for number, name in enumerate(order)}
        parts = told.split("->") if told is not None else []
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


def code_of(wrong: WrongResult) -> str:
    """The event code of a wrong result, as in the name of its count.

    A number format, "copy", "peer" or "vram"; "result" for one that could not be read.
    """
    match wrong:
        case UnreadMiscompare():
            return "result"
        case WrongCopy() | WrongTransfer():
            return "peer" if wrong.check == "copy_p2p" else "copy"
        case _:
            return dtype_of(wrong) or wrong.check


def event_of(wrong: WrongResult, component: str, injected: str | None = None) -> Event:
    """The event for a wrong result, without its time. Pure."""
    match wrong:
        case WrongCopy() | WrongTransfer():
            how = (
                "data never arrived"
                if wrong.words == wrong.unwritten
                else "data was changed on its way"
            )
            meaning = f"{how} ({wrong.check}) while {component} was under load"
            action = _OF_COPIES
        case WrongMemory():
            meaning = f"the memory of {component} does not hold what is written to it"
            action = _ACTION
        case _:
            meaning = f"{component} gave a wrong result under load{_where(wrong)}"
            action = _ACTION
    if injected is not None:
        meaning += f" (a fault was injected on purpose: {injected})"
    return Event(
        KIND,
        "fatal",
        json.dumps(details(wrong))[:QUOTED],
        meaning,
        action,
        code_of(wrong),
        component,
        source=SOURCE,
    )


def _where(wrong: WrongResult) -> str:
    """The keys of a wrong result that say where it was found."""
    printed = details(wrong)
    parts = [
        f"{key} {printed[key]}"
        for key in ("check", "shape", "iteration", "lap", "elements")
        if key in printed
    ]
    return f": {', '.join(str(part)[:60] for part in parts)}" if parts else ""
