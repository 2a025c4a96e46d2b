"""Runs upstream programs for a check, and reads what they print.

A tool is started once for each place that it works on. What it was asked stands in the argv of each
program, so the logs of a run that has ended are read in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from acceptance import tools
from acceptance.core import parts
from acceptance.core.message import Gap, Listed, Message, Text, Value, Values, english
from acceptance.core.parts import MACHINE, Component
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Inventory
from acceptance.machine.thresholds import thresholds
from acceptance.process.command import ProgramResult
from acceptance.session import gpu_identity
from acceptance.session.check import ErrorInLines
from acceptance.session.loads import Part, Place
from acceptance.tools import device_query, fio, gpu_burn, stress_ng, stressapptest
from acceptance.tools.proof import ToolError, Unnamed, option, prove
from acceptance.tools.reading import Reading, ToolOutput
from acceptance.wording.errors import said

Argv = Callable[[str], tuple[str, ...]]  # the command line, from the path of the program


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a tool said of every place, by the place's component.

    `failed` has the runs that prove nothing; where the text contradicts NVML, `outputs` may have
    the figures too. `skipped` says why the tool was not run. `ended` are the programs.
    """

    outputs: Mapping[Component, ToolOutput] = field(default_factory=dict)
    failed: Mapping[Component, Exception] = field(default_factory=dict)
    skipped: Mapping[Component, Gap] = field(default_factory=dict)
    ended: Mapping[Component, ProgramResult] = field(default_factory=dict)

    @property
    def faulty(self) -> frozenset[Component]:
        """The places of which a text itself proves a fault."""
        return frozenset(place for place, one in self.outputs.items() if one.outcome == "fail")

    def values(self, reading: str) -> dict[Component, float]:
        """One reading of every component that has it; a text that proves a fault has none."""
        return {
            component: value
            for place, output in self.outputs.items()
            if place not in self.faulty
            for one in output.readings
            if one.name == reading
            for component, value in one.values.items()
        }

    @property
    def fault(self) -> Text | None:
        """What the text of the only program proves to be wrong; None where nothing."""
        return self.only().reason if self.faulty else None

    def value(self, reading: str) -> float:
        """A reading of the only component."""
        (value,) = self.values(reading).values()
        return value

    def only(self) -> ToolOutput:
        """The output of the only program. Raises ToolError where it proves nothing."""
        if not self.outputs:
            self.raise_failed()
        (output,) = self.outputs.values()
        return output

    def requiring(self, readings: Iterable[str]) -> Outputs:
        """The same, where a run that lacks one of these readings proves nothing.

        A testcase that the tool waived has none.
        """
        whole, failed = dict(self.outputs), dict(self.failed)
        for place, output in self.outputs.items():
            given = {one.name for one in output.readings}
            lacking = tuple(name for name in readings if name not in given)
            if lacking and place not in self.faulty:
                about: dict[str, Value] = {"tool": output.tool, "why": output.reason}
                del whole[place]
                failed[place] = ToolError(
                    english("figures_missing", "{tool} did not give {figures}: {why}"),
                    figures=Listed(lacking),
                    **about,
                )
        return replace(self, outputs=whole, failed=failed)

    def troubles(self) -> Iterator[Text]:
        """Why runs prove nothing, each naming its program."""
        for place, error in self.failed.items():
            why = said(error)
            tool = tools.of_argv(self.ended[place].argv) if isinstance(error, Unnamed) else None
            named = Message("component_says", {"component": tool.name, "why": why}) if tool else why
            yield named

    def raise_failed(self) -> None:
        """Raise, with a line for each GPU, where a run proves nothing.

        Call it after the results of the others were journalled.
        """
        for place, error in self.failed.items():
            if not isinstance(place, parts.Gpu):
                raise error
        if self.failed:
            raise ErrorInLines([_alone(gpu, error) for gpu, error in self.failed.items()])


def _alone(gpu: Component, error: Exception) -> Message:
    """Why the run of a program that saw this GPU alone, which it knows as gpu0, proves nothing."""
    code = (
        "component_says"
        if gpu == parts.Gpu(0)
        else english("alone_says", "{component}, which its program sees as gpu0: {why}")
    )
    return Message(code, {"component": str(gpu), "why": said(error)})


class RunsTools(Protocol):
    """What finds and starts programs: `session.programs.Programs`, or what has kept logs."""

    @property
    def folder(self) -> Path:
        """A folder that the programs can write to."""

    def find(self, program: str, package: str | None = None) -> str:
        """The program's path."""

    def run_stage(self, parts: Sequence[Part]) -> tuple[ProgramResult, ...]:
        """The results of the parts, in their order."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The upstream programs of one check, on the machine of the run."""

    programs: RunsTools
    inventory: Inventory

    @property
    def folder(self) -> Path:
        """A folder that the programs can write to."""
        return self.programs.folder

    def run(
        self, tool: str, argv: Argv, on: Sequence[Place], *, turns: Iterable[Sequence[Gpu]] = ()
    ) -> Outputs:
        """Run a tool at each place, and read what it says.

        The GPUs of a group of `turns` take turns; everything else runs at once.
        """
        groups = [[gpu.name for gpu in group] for group in turns]
        line = argv(self.programs.find(tool, _PACKAGES.get(tool)))
        done = self.programs.run_stage(stage(line, on, groups))
        return read_all(on, done, self.inventory, groups)


_PACKAGES = {tool: tool for tool in (stress_ng.TOOL, stressapptest.TOOL, fio.TOOL)}


def stage(
    argv: tuple[str, ...], on: Sequence[Place], groups: Iterable[Sequence[Component]] = ()
) -> tuple[Part, ...]:
    """A program once at each place, in the order of the places; those of a group take turns."""
    position = {place.component: at for at, place in enumerate(on)}
    before = {later: position[earlier] for group in groups for earlier, later in pairwise(group)}
    return tuple(
        Part(
            place.component if isinstance(place.component, parts.Gpu) else None,
            argv,
            place.environment() if place.gpus else {},
            after=before.get(place.component),
        )
        for place in on
    )


def read_all(
    on: Sequence[Place],
    done: Sequence[ProgramResult],
    inventory: Inventory,
    groups: Iterable[Sequence[Component]] = (),
) -> Outputs:
    """What the ended programs say, which worked on these places in this order."""
    ended = {place.component: one for place, one in zip(on, done, strict=True)}
    outputs: dict[Component, ToolOutput] = {}
    failed: dict[Component, Exception] = {}
    late = without_turn(ended, groups)
    for place in on:
        name = place.component
        try:
            if name in late:
                raise ToolError(
                    english(
                        "no_turn",
                        "it had no turn, because the program of {gpu} before it did not end "
                        "within the check's time: look at {gpu} first",
                    ),
                    gpu=str(late[name]),
                )
            output = read(ended[name], place)
            if output.tool == device_query.TOOL:  # its figures are the card's all the same
                outputs[name] = output
            require_agreement(ended[name], output, place, inventory)
            outputs[name] = output
        except ToolError as error:
            failed[name] = error
    return Outputs(outputs, failed, ended=ended)


def without_turn(
    ended: Mapping[Component, ProgramResult], groups: Iterable[Sequence[Component]]
) -> dict[Component, Component]:
    """The places whose program had no turn, and the one before it that took all the time."""
    found: dict[Component, Component] = {}
    for group in groups:
        late = [at for at, name in enumerate(group) if name in ended and ended[name].timed_out]
        found |= {name: group[late[0]] for name in group[late[0] + 1 :]} if late else {}
    return found


def read(done: ProgramResult, place: Place) -> ToolOutput:
    """The output of a tool, which its text, its exit and its duration prove.

    Raises ToolError, also for a text that tells of a GPU that the program was not given.
    """
    tool = tools.of_argv(done.argv)
    assert tool is not None
    least_s = _LEAST_S[tool.name](done.argv) if tool.name in _LEAST_S else 0
    output = prove(tool.name, done, tool.parse, least_s)
    if tool.name == gpu_burn.TOOL and gpu_burn.died_of_itself(output):
        raise ToolError(
            english("it_last_said", "{why}; it last said: {last}"),
            why=output.reason,
            last=done.last_lines(3),
        )
    if tool.name == fio.TOOL:
        return _of_disk(output, place)
    if not place.gpus:
        return output
    seen = place.gpus
    if tool.name == device_query.TOOL and output.outcome == "pass":
        seen = gpu_identity.in_slots(output, place.gpus)
        _refuse(device_query.version_mismatch(done.text))
    return with_gpu_names(output, seen)


# How long a tool is to work at least, by its command line.
_LEAST_S: Mapping[str, Callable[[Sequence[str]], int]] = {
    gpu_burn.TOOL: gpu_burn.least_s,
    stress_ng.TOOL: lambda argv: option(argv, "--timeout"),
    stressapptest.TOOL: lambda argv: option(argv, "-s"),
}


def _of_disk(output: ToolOutput, place: Place) -> ToolOutput:
    """The readings of the only job of a disk, which fio gives by the job's name."""
    if any(len(one.values) > 1 for one in output.readings):
        return output
    readings = tuple(
        Reading(one.name, one.unit, dict.fromkeys([place.component], *one.values.values()))
        for one in output.readings
    )
    return replace(output, readings=readings)


def with_gpu_names(output: ToolOutput, seen: Sequence[Gpu]) -> ToolOutput:
    """A tool's readings with its device numbers (0 is the first it sees) replaced by GPU names.

    Raises ToolError for a device that is not due: the tool then saw other GPUs than it was given.
    """
    names: dict[Component, Component] = {
        parts.Gpu(index): gpu.name for index, gpu in enumerate(seen)
    }

    def name(told: Component) -> Component:
        if not all(end in names for end in told.ends):
            raise ToolError(
                english("tool_tells_of", "{tool} tells of {component}, and was given {count} GPUs"),
                tool=output.tool,
                component=str(told),
                count=len(seen),
            )
        return parts.renamed(told, names.__getitem__)

    readings = tuple(
        Reading(one.name, one.unit, {name(key): value for key, value in one.values.items()})
        for one in output.readings
        if set(one.values) != {MACHINE}
    )
    return replace(output, readings=readings)


def require_agreement(
    done: ProgramResult, output: ToolOutput, place: Place, inventory: Inventory
) -> None:
    """Raise ToolError where a pass is of another machine, or of other work than was asked for."""
    if output.outcome == "pass":
        others = gpu_identity.mismatches(output, done.text, place.gpus, inventory)
        gpu_identity.require(output.tool, others)
        _refuse(_shortfall(done, output))


def _refuse(why: Message | None) -> None:
    if why is not None:
        raise ToolError(why.code, **why.values)


def _shortfall(done: ProgramResult, output: ToolOutput) -> Message | None:
    """How a pass differs from what the command line asked, or None."""
    match output.tool:
        case gpu_burn.TOOL:
            return gpu_burn.shortfall(done.argv, done.text)
        case stress_ng.TOOL:
            return stress_ng.shortfall(done.argv, output) or _time(done, output, "stress_ng_time")
        case stressapptest.TOOL:
            why = stressapptest.shortfall(done.argv, output)
            return why or _time(done, output, "stressapptest_time")
        case fio.TOOL if why := fio.shortfall(done.argv, output):
            return Message(english("tool_says", "{tool}: {why}"), {"tool": fio.TOOL, "why": why})
    return None


def _time(done: ProgramResult, output: ToolOutput, reading: str) -> Message | None:
    """Where the tool's own time is too short, or longer than its process ran."""
    (worked_s,), due_s = output.reading(reading).values(), _LEAST_S[output.tool](done.argv)
    about: Values = {"tool": output.tool, "worked": f"{worked_s:.4g}"}
    if worked_s < thresholds().program.ran * due_s:
        return Message(
            english(
                "worked_less",
                "{tool} says that it worked for {worked} s, and was to work for {due} s",
            ),
            {**about, "due": f"{due_s:.4g}"},
        )
    if worked_s * thresholds().program.ran > done.seconds:
        return Message(
            english(
                "worked_longer",
                "{tool} says that it worked for {worked} s, and ended after {ended} s",
            ),
            {**about, "ended": f"{done.seconds:.1f}"},
        )
    return None
