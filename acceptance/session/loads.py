"""Runs our own loads for a check, and reads what they say against their contracts.

A load is asked once for each place that it works on; all of a check's programs of one `run` work at
once. What was asked stands in the argv of each program, so the logs of a run that has ended are
read in the same way.

A stage: programs that load the machine together, each in its time on one clock.

The clock begins with the stage. Each program is a part of its own, which fails without the others:
the burn of the whole machine is a part for each GPU, one for the processors and one for the RAM.
Processes that are all needed for one result are the ranks of one program (`loads.ranks`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from acceptance.core.message import Message, Text, Value, english
from acceptance.core.parts import CPU, GPUS, MEMORY, Component, renamed
from acceptance.core.parts import Gpu as GpuNumber
from acceptance.diagnosis.wrong_result import in_words
from acceptance.loads import asks, contract, protocol
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import Unproved
from acceptance.loads.miscompare import WrongResult, component_of
from acceptance.loads.protocol import (
    LoadOutput,
    LoadTable,
    ProtocolError,
    Waits,
    parse,
    salvage,
)
from acceptance.machine import gpu_selection
from acceptance.machine.gpu import Gpu
from acceptance.process.command import ProgramResult
from acceptance.tools import proof
from acceptance.wording.errors import WordedError, said


@dataclass(frozen=True, slots=True)
class Part:
    """One program of a stage, and its time on the stage's clock.

    `component` is what it loads: `gpu0`, `cpu`, `memory`; None for a program that loads none. `env`
    is added to the session's own environment. It begins at `begin_s`, and is ended `seconds` later
    where it has not ended by then; None leaves it the time of its check. With `after`, the position
    of another part, it begins no sooner than that part has said a line, or ended.

    Raises ValueError for a time that is negative or no number.
    """

    component: Component | None
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    begin_s: float = 0.0
    seconds: float | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        for time_s in (self.begin_s, self.seconds):
            if time_s is not None and not 0.0 <= time_s < math.inf:
                raise ValueError(f"{time_s!r} is no time on the clock of a stage")

    @property
    def end_s(self) -> float:
        """When it is ended; infinite where it ends by itself."""
        return math.inf if self.seconds is None else self.begin_s + self.seconds


def pulses(part: Part, *, pause_s: float, count: int) -> tuple[Part, ...]:
    """The part so many times, each as long as the first, with this pause in between.

    Raises ValueError for a part without `seconds`, and for a time that is negative or no number.
    """
    if part.seconds is None:
        raise ValueError("a part that pulses has a time to end")
    every_s = part.seconds + pause_s
    return tuple(replace(part, begin_s=part.begin_s + turn * every_s) for turn in range(count))


class LoadFailed(WordedError):
    """A load did not run completely, so no measurement of it counts.

    The message is one sentence, followed by the load's last lines. `miscompares` holds the wrong
    results reported until then: they remain evidence against the machine.
    """

    def __init__(
        self, code: str, miscompares: tuple[WrongResult, ...], /, **values: Value | None
    ) -> None:
        super().__init__(code, **values)
        self.miscompares = miscompares


@dataclass(frozen=True, slots=True)
class Place:
    """What one program works on: its name in the run, and the GPUs that it sees, its own first."""

    component: Component
    gpus: tuple[Gpu, ...] = ()

    def environment(self) -> dict[str, str]:
        """The variables that show the program its GPUs, and no others."""
        return gpu_selection.environment(self.gpus)

    def about(self) -> dict[str, object]:
        """What the program must say of the GPUs that it worked on."""
        if self.component == GPUS:
            return {"uuids": [gpu.uuid for gpu in self.gpus]}
        if not self.gpus:
            return {}
        own = self.gpus[0]
        return {"uuid": own.uuid, **({"gpu": own.model} if own.model is not None else {})}

    def named(self, component: Component) -> Component:
        """A component with the program's own numbers of its GPUs, in the names of the run.

        Raises LoadFailed for a GPU that it does not see.
        """
        names: dict[Component, Component] = {
            GpuNumber(index): gpu.name for index, gpu in enumerate(self.gpus)
        }
        if not all(part in names for part in component.ends if isinstance(part, GpuNumber)):
            about = {"gpu": str(self.component), "component": str(component)}
            raise LoadFailed(
                english(
                    "load_tells_of",
                    "the load on {gpu} tells of {component}, and was given {count} GPUs",
                ),
                (),
                **about,
                count=len(self.gpus),
            )
        return renamed(component, lambda part: names.get(part, part))


def alone(gpus: Sequence[Gpu]) -> tuple[Place, ...]:
    """Each GPU, which its program alone sees."""
    return tuple(Place(gpu.name, (gpu,)) for gpu in gpus)


def with_peers(gpus: Sequence[Gpu]) -> tuple[Place, ...]:
    """Each GPU, which its program sees before all others."""
    return tuple(Place(gpu.name, (gpu, *(other for other in gpus if other != gpu))) for gpu in gpus)


Noting = Callable[[Component, Sequence[WrongResult]], Text | None]


def first_wrong(_component: Component, wrong: Sequence[WrongResult]) -> Text:
    """The first wrong result, as the note of a count."""
    return in_words(wrong[0])


@dataclass(frozen=True, slots=True)
class Results:
    """What a load said of every place; `failed` has those where it did not run whole."""

    places: tuple[Place, ...]
    outputs: Mapping[Component, LoadOutput] = field(default_factory=dict)
    failed: Mapping[Component, LoadFailed] = field(default_factory=dict)

    def values(self, reading: str) -> dict[Component, float]:
        """One reading of every component that has it, by its name in the run."""
        return {
            place.named(one.component): one.value
            for place in self.places
            if place.component in self.outputs
            for one in self.outputs[place.component].readings
            if one.name == reading
        }

    def counts(
        self, reading: str, due: Collection[Component], note: Noting
    ) -> tuple[dict[Component, float], dict[Component, Text | None]]:
        """A count of wrong results by component, with what `note` says of those of each.

        For a load that died, the count is the number of reported wrong results that belong to it.
        `due` are the components that are to be counted. What may belong to one of several counts is
        noted where there are wrong results.
        """
        counts, wrong = self.values(reading), self.wrong(reading, due)
        died = replace(self, outputs={}).wrong(reading, due)
        counts |= {name: float(len(results)) for name, results in died.items()}
        return counts, {name: note(name, one) for name, one in wrong.items() if counts.get(name)}

    def wrong(self, reading: str, due: Collection[Component]) -> dict[Component, list[WrongResult]]:
        """The wrong results of one count as the loads reported them, by component.

        One of a part that is not counted by itself, as a core, speaks against its place. One that
        does not name its count speaks against its place in each count that is due there.
        """
        belonging: dict[Component, list[WrongResult]] = {}
        for place in self.places:
            ended = self.outputs.get(place.component) or self.failed.get(place.component)
            for one in ended.miscompares if ended is not None else ():
                if one.counts and reading not in one.counts:
                    continue
                component = component_of(one) if one.counts else None
                name = None if component is None else place.named(component)
                if name not in due and place.component in due:
                    name = place.component
                if name is not None:
                    belonging.setdefault(name, []).append(one)
        return belonging

    def tables(self) -> Iterator[tuple[Component, LoadTable]]:
        """Each table, with its place."""
        for component, output in self.outputs.items():
            for one in output.tables:
                yield component, one

    def troubles(self) -> Iterator[Message]:
        """Why loads did not run whole, each with its place."""
        for component, failure in self.failed.items():
            about = {"component": str(component), "why": said(failure)}
            yield Message("component_says", about)

    def raise_failed(self, known: Collection[Component] = ()) -> None:
        """Raise LoadFailed, naming the place of several, where a load did not run whole.

        Places in `known` are left out. Processors, RAM and all GPUs together are named by their
        loads. Call it after the results of the others were journalled.
        """
        for component, failure in self.failed.items():
            if component in known:
                continue
            if component in (CPU, GPUS, MEMORY):
                raise failure
            raise LoadFailed(
                "component_says", failure.miscompares, component=str(component), why=said(failure)
            )


class RunsStage(Protocol):
    """What starts programs side by side: `session.programs.Programs`, or what has kept logs."""

    def run_stage(
        self, parts: Sequence[Part], *, on_line: Callable[[int, str], None] | None
    ) -> tuple[ProgramResult, ...]:
        """The results of the parts, in their order; `on_line` hears each line of each part."""


Listening = Callable[[Mapping[Component, Sequence[Component]]], Callable[[int, str], None]]


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of one check; `listening` makes what journals at once the wrong results of each."""

    programs: RunsStage
    listening: Listening

    def run(self, ask: Callable[[Place], AnyAsk], on: Sequence[Place]) -> Results:
        """Ask a load at each place, all at once, and read what it says.

        What loads of GPUs report is journalled at once.
        """
        shown = {one.component: [gpu.name for gpu in one.gpus] for one in on if one.gpus}
        done = self.programs.run_stage(
            [part(ask(place), place) for place in on],
            on_line=self.listening(shown) if shown else None,
        )
        return read_all(on, done)


def part(ask: AnyAsk, place: Place) -> Part:
    """The program that is asked at a place, as a part of a stage."""
    return Part(place.component, asks.argv(sys.executable, ask), place.environment())


def read_all(on: Sequence[Place], done: Sequence[ProgramResult]) -> Results:
    """What the ended programs say, which worked on these places in this order.

    Loads that ended while they waited for their turn come last: of those that failed, the first is
    then the one that held the others up.
    """
    outputs, failed = {}, {}
    ended = zip(on, done, strict=True)
    for place, one in sorted(ended, key=lambda pair: protocol.waits(pair[1].stdout)):
        try:
            outputs[place.component] = read(one, place)
        except LoadFailed as failure:
            failed[place.component] = failure
    return Results(tuple(on), outputs, failed)


def read(done: ProgramResult, place: Place) -> LoadOutput:
    """The output of a load, if it ran whole, here, and as its argv asked.

    Raises LoadFailed when it ran out of time, printed too much, ended with another exit code than 0
    or too early, had an injected fault, or when its output is not the whole answer to its ask.
    """
    try:
        ask, why_not = asks.of_argv(done.argv), ""
    except msgspec.MsgspecError as error:  # as its program says, which did nothing
        ask, why_not = None, str(error)
    if ask is None:
        wrong = salvage(done.stdout)
        raise LoadFailed(
            english("load_failed", "the load {load} {why}[; its last lines:\n{last}]"),
            wrong,
            load=str(place.component),
            why=why_not,
        )
    why = _broken_off(done)
    if why is None:
        try:
            output = parse(done.stdout)
            contract.prove(ask, output, place.about(), done.seconds)
        except ProtocolError as error:
            why = Message(
                english("load_output_unread", "ended, but {text}"), {"text": error.message}
            )
        except Unproved as error:
            why = error.message
        else:
            return output
    wrong = salvage(done.stdout)
    if not done.stdout.strip() and not done.stderr.strip():
        raise LoadFailed(
            english("load_failed_silently", "the load {load} {why}; it printed nothing"),
            wrong,
            load=ask.load,
            why=why,
        )
    raise LoadFailed("load_failed", wrong, load=ask.load, why=why, last=_last_words(done))


def _broken_off(done: ProgramResult) -> Message | None:
    """Why a program did not end as it should, or None."""
    if done.timed_out or done.returncode != 0:
        trouble = None if done.timed_out else protocol.trouble(done.stdout)
        return (
            done.describe()
            if trouble is None
            else Message(english("load_trouble", "could not go on: {why:lower}"), {"why": trouble})
        )
    if done.truncated:
        return Message(
            english(
                "load_output_lost",
                "printed more than is kept, or its output was not read to the end",
            )
        )
    error = proof.find(done.stderr.splitlines())  # beside a complete output
    return (
        None
        if error is None
        else Message(
            english("load_cuda_error", "ended with exit code 0, but {why}"), {"why": error.reason}
        )
    )


def _last_words(done: ProgramResult) -> Text | None:
    """The last lines it printed in words: the records of the loads' own format are in its log.

    Without any, the turn that it waited for, where a record says so last.
    """
    lines = done.stdout.splitlines()
    words = "\n".join(line for line in lines if not line.startswith("{"))
    if last := replace(done, stdout=words).last_lines():
        return last
    try:
        record = protocol.decode(lines[-1]) if lines else None
    except ProtocolError:
        return None
    return (
        Message(english("load_waited", "it waited for {turn}"), {"turn": record.turn})
        if isinstance(record, Waits)
        else None
    )
