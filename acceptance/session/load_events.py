"""Events and notes from running loads, journalled at once: wrong results, progress, power steps.

A run may be stopped, killed or cut off by a reboot in the middle of a burn of days. Each finding is
in the journal, on the disk, from the moment it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from acceptance.core import plain_text
from acceptance.core.evidence import AnyBody
from acceptance.core.message import Listed, Message, Quantity, Value, english, known
from acceptance.core.parts import Component, Gpu, renamed
from acceptance.core.record import Event, Note
from acceptance.diagnosis.wrong_result import in_words
from acceptance.journal import clock
from acceptance.loads.miscompare import (
    FailedFile,
    WrongCopy,
    WrongFile,
    WrongMemory,
    WrongProduct,
    WrongResult,
    WrongTransfer,
    component_of,
    details,
)
from acceptance.loads.power_step import Step
from acceptance.loads.protocol import (
    Hello,
    Lap,
    LapFormat,
    ProtocolError,
    StepBegins,
    StepEnded,
    decode,
)
from acceptance.wording import words

Listener = Callable[[int, str], None]

KIND = "miscompare"
SOURCE = "load"
# Minimum time between two notes of laps. In a long run it grows with the elapsed time: a week
# leaves some hundred notes.
NOTE_S = 60.0
NOTE_SHARE = 1 / 60
QUOTED = 400
# maximum number of events of a GPU: more than there are formats and paths; limits a malfunctioning
# load
MAX_EVENTS = 32
# maximum number of steps of a power load; the longest profile has 12 for one program
MAX_STEPS = 64
_ACTION = "Run it again, cool and alone; if it comes back, replace the card."
_OF_COPIES = (
    "Reseat the card and its riser; try another slot or cable; if it comes back, replace the card."
)

_OF_DISKS = (
    "Save what is on this disk; reseat it, or change its cable or slot; if it comes back, replace "
    "the disk."
)


def listener(
    names: Sequence[Component],
    write: Callable[[AnyBody], None],
    now_s: Callable[[], float] = clock.boot_s,
    shown: Mapping[Component, Sequence[Component]] | None = None,
) -> Listener:
    """A callback for `Programs.run_stage(on_line=...)` that journals lines of loads by `write`.

    `names` are the GPUs of the stage's first parts, one by one; later parts are no GPU loads, and
    their lines are ignored. `shown` are the GPUs that each load sees, its own first, where that is
    not all of them. The first wrong result of each GPU and kind becomes an event. Progress becomes
    a note, at most once a minute, and each step of a power load one when it begins and when it has
    ended. Other lines are ignored here: the whole output is parsed strictly
    when the load has ended.
    """
    return _Listening(tuple(names), write, now_s, shown or {})


class _Listening:
    def __init__(
        self,
        names: tuple[Component, ...],
        write: Callable[[AnyBody], None],
        now_s: Callable[[], float],
        shown: Mapping[Component, Sequence[Component]],
    ) -> None:
        self._names = names
        self._shown = shown
        self._write = write
        self._now_s = now_s
        self._began_s = now_s()
        self._noted_s = float("-inf")
        self._told: set[tuple[Component, str, tuple[str, ...]]] = set()
        self._injected: dict[int, str] = {}
        self._laps: dict[int, Lap] = {}
        self._steps = 0

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
        elif isinstance(said, Lap):
            self._lap(index, said)
        elif isinstance(said, StepBegins):
            self._steps += 1
            if self._steps <= MAX_STEPS:
                self._step_begins(said, self._step(index, said.step))
        elif isinstance(said, StepEnded) and self._steps <= MAX_STEPS:
            self._step_ended(said, self._step(index, said.step))

    def _step(self, index: int, step: Step) -> Message:
        return step_message(step, [self._component(index, gpu) for gpu in step.gpus])

    def _step_begins(self, said: StepBegins, step: Message) -> None:
        """Journal the step before it begins, and say so where the disk was too slow for that."""
        self._write(
            Note(
                Message(english("power_step_begins", "power step begun: {step}"), {"step": step}),
                progress=True,
            )
        )
        late_s = self._now_s() - said.begins_s
        if late_s > 0.0:
            late = Quantity(late_s, "s")
            self._write(
                Note(
                    Message(
                        english(
                            "power_step_late",
                            "the record of a power step ({step}) reached the disk {late} after "
                            "the step began: had the machine gone down before, nothing would name "
                            "it",
                        ),
                        {"step": step, "late": late},
                    )
                )
            )

    def _step_ended(self, said: StepEnded, step: Message) -> None:
        about = {"edges": said.edges, "right": said.right, "wrong": said.wrong}
        self._write(
            Note(
                Message(
                    english(
                        "power_step_ended",
                        "power step ended: {step}: {edges} edges commanded, {right} results "
                        "right, {wrong} wrong",
                    ),
                    {"step": step, **about},
                ),
                progress=True,
            )
        )

    def _wrong(self, index: int, wrong: WrongResult) -> None:
        component = self._component(index, component_of(wrong))
        what = component, wrong.code, wrong.counts
        if what in self._told or len(self._told) >= MAX_EVENTS * len(self._names):
            return
        self._told.add(what)
        # An impossible time must not attribute the event to another check.
        told_s = (
            wrong.found_s if isinstance(wrong, WrongProduct | WrongCopy | WrongMemory) else None
        )
        fits = told_s is not None and self._began_s <= told_s <= self._now_s() + 1.0
        event = event_of(wrong, component, self._injected.get(index))
        self._write(msgspec.structs.replace(event, boot_s=told_s if fits else None))

    def _component(self, index: int, told: Component | None) -> Component:
        """A component with the load's own GPU numbers, its own GPU first, in the run's names.

        The load's own GPU for any other text.
        """
        own = self._names[index]
        order = self._shown.get(own) or [own, *(name for name in self._names if name != own)]
        known: dict[Component, Component] = {Gpu(number): name for number, name in enumerate(order)}
        if told is None or not all(end in known for end in told.ends):
            return own
        return renamed(told, known.__getitem__)

    def _lap(self, index: int, lap: Lap) -> None:
        self._laps[index] = lap
        now_s = self._now_s()
        if now_s - self._noted_s >= max(NOTE_S, NOTE_SHARE * (now_s - self._began_s)):
            self._noted_s = now_s
            proved = tuple(
                lap_message(str(self._names[one]), said) for one, said in sorted(self._laps.items())
            )
            self._write(Note(Message("note", {"text": proved}), progress=True))


def lap_message(gpu: str, lap: Lap) -> Message:
    """What the burn of a GPU has proved until the end of a lap."""
    return Message(
        english("burn_lap", "{gpu}: lap {lap} of {laps}: {done} of burn done; {formats}"),
        {
            "gpu": gpu,
            "lap": lap.lap,
            "laps": lap.laps,
            "done": Quantity(lap.done_s, "s"),
            "formats": Listed(tuple(_of_format(one) for one in lap.formats)),
        },
    )


def _of_format(proved: LapFormat) -> Message:
    return Message(
        english("burn_lap_format", "{format} at {rate} {right} right {wrong} wrong"),
        {
            "format": proved.format,
            "rate": Quantity(proved.rate, "TFLOP/s"),
            "right": proved.right,
            "wrong": proved.wrong,
        },
    )


def step_message(step: Step, gpus: Sequence[Component]) -> Message:
    """A step of a power load on these GPUs, by the names of the run."""
    about: dict[str, Value] = {
        "gpus": Message("number_of_gpus", {"n": len(gpus)}),
        "names": Listed(tuple(map(str, gpus))),
    }
    if step.hertz is not None:
        about["hertz"] = Quantity(step.hertz, "Hz")
    match step.kind:
        case "cold":
            return Message(
                english(
                    "power_step_cold", "a cold step from idle to full load on {gpus} ({names})"
                ),
                about,
            )
        case "ramp":
            return Message(
                english("power_step_ramp", "a ramp from idle to full load on {gpus} ({names})"),
                about,
            )
        case "square":
            return Message(english("power_step_square", "{hertz} on {gpus} ({names})"), about)
        case "anti_phase":
            return Message(
                english("power_step_anti_phase", "{hertz} in anti-phase on {gpus} ({names})"), about
            )


def event_of(wrong: WrongResult, component: Component, injected: str | None = None) -> Event:
    """The event for a wrong result, without its time. Pure."""
    match wrong:
        case WrongCopy() | WrongTransfer():
            code = (
                english(
                    "copy_lost",
                    "data never arrived ({check}) while {component} was under load[: {where}][ (a "
                    "fault was injected on purpose: {injected})]",
                )
                if wrong.words == wrong.unwritten
                else english(
                    "copy_changed",
                    "data was changed on its way ({check}) while {component} was under load[: "
                    "{where}][ (a fault was injected on purpose: {injected})]",
                )
            )
            about: dict[str, Value] = known(check=wrong.check, where=_where(wrong, "words"))
            action = _OF_COPIES
        case WrongFile():
            code = english(
                "file_changed",
                "{component} gave back other data than was written: {file} at byte {offset}[; "
                "what is there belongs to byte {of}][ of the writing number {turn}][ (a fault was "
                "injected on purpose: {injected})]",
            )
            about = known(
                file=wrong.file, offset=wrong.offset, of=wrong.of_offset, turn=wrong.of_turn
            )
            action = _OF_DISKS
        case FailedFile():
            code = english(
                "disk_operation_failed",
                "{component} failed: {operation} of {file} ended with {error}[ at byte {offset}][ "
                "(a fault was injected on purpose: {injected})]",
            )
            about = known(
                operation=wrong.operation, file=wrong.file, error=wrong.error, offset=wrong.offset
            )
            action = _OF_DISKS
        case WrongMemory():
            code = english(
                "memory_does_not_hold",
                "the memory of {component} does not hold what is written to it[: {where}][ (a "
                "fault was injected on purpose: {injected})]",
            )
            about = known(where=_where(wrong, "pattern", "pass", "words"))
            action = _ACTION
        case _:
            code = english(
                "wrong_result",
                "{component} gave a wrong result under load[: {where}][ (a fault was injected on "
                "purpose: {injected})]",
            )
            about = known(where=_where(wrong, *_PLACES))
            action = _ACTION
    meaning = Message(code, known(component=str(component), injected=injected, **about))
    return Event(
        KIND,
        "fatal",
        plain_text.shortened(words.message(in_words(wrong)), QUOTED),
        meaning,
        action,
        wrong.code,
        component,
        source=SOURCE,
        counts=wrong.counts,
    )


# The keys of a wrong result that say where it was, in the order in which they are shown.
_PLACES = (
    *("check", "shape", "iteration", "lap", "elements", "of", "words"),
    *("layer", "model", "option", "way", "arm", "accumulation", "format", "size", "turn"),
    *("run", "after", "product", "repeat", "step", "part", "tensor", "bit", "operand"),
    *("difference", "error", "bound"),
)

_OF_ELEMENT = ("index", "word", "address", "expected", "got")


def _where(wrong: WrongResult, *keys: str) -> Listed | None:
    """These keys of a wrong result with their values, and those of its first wrong element.

    None where it has none of them.
    """
    printed = details(wrong)
    first = printed.get("first")
    element = first[0] if isinstance(first, list) and first else None
    element = element if isinstance(element, dict) else {}
    told = {key: printed[key] for key in keys if key in printed}
    told |= {key: element[key] for key in _OF_ELEMENT if key in element}
    parts = tuple(f"{key} {value}"[:60] for key, value in told.items())
    return Listed(parts) if parts else None
