"""The checks' own functions over the kept outputs of their programs: the values that logs tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from acceptance import tools
from acceptance.core.component import Component
from acceptance.core.dtype import DTYPES, DtypeName, TrainedDtype
from acceptance.core.evidence import AnyBody, Scratch
from acceptance.core.limit import GIB
from acceptance.core.message import Message, Text
from acceptance.core.parts import CPU, GPUS, MEMORY
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Measured, Skipped
from acceptance.core.unmeasured import Unmeasured
from acceptance.expect import components
from acceptance.expect.sheet import Sheet
from acceptance.loads import asks
from acceptance.loads.cpu.contract import Groups
from acceptance.loads.protocol import LoadOutput, salvage
from acceptance.loads.storage.contract import OnDisk
from acceptance.machine import scratch_place
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Disk, Inventory
from acceptance.observe.smart import SmartUnreadable
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.session import gpu_identity
from acceptance.session.check import Check, ErrorInLines
from acceptance.session.loads import Loads, Place, Results, read_all
from acceptance.session.stage import Part
from acceptance.session.tools import Outputs, Tools
from acceptance.session.tools import read_all as read_outputs
from acceptance.suites import (
    burn,
    compute,
    cpu,
    gpu,
    link,
    memory,
    power,
    storage,
    together,
    train,
    vram,
)
from acceptance.suites.fixtures import burn as burn_fixtures
from acceptance.suites.fixtures import host_tools
from acceptance.suites.fixtures.disk_watch import DiskWatch
from acceptance.suites.fixtures.full_cache import Chunk
from acceptance.suites.fixtures.gpu_loads import GpuLoads, collect_loads
from acceptance.suites.fixtures.no_proof import NoProof
from acceptance.suites.fixtures.power import ended_with, of_power, ran_whole
from acceptance.suites.fixtures.storage import Filled
from acceptance.suites.storage import AskDisk
from acceptance.tools import fio, gpu_burn, load_output, stress_ng, stressapptest
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.reading import ToolOutput
from acceptance.wording.errors import said


@dataclass(frozen=True, slots=True)
class Kept:
    """A check, its programs as their logs show them, in their order, and the machine of the run.

    `earlier` gives the programs of another check, by its id. `scratches` are the filesystems that
    the run tested, `models` its GPU sheets. How long and on what a program was to work is not asked
    again: the session did.
    """

    planned: PlannedCheck
    done: Sequence[ProgramResult]
    due: tuple[Gpu, ...]
    inventory: Inventory
    earlier: Callable[[str], Sequence[ProgramResult]]
    scratches: Sequence[Scratch] = ()
    models: tuple[Sheet, ...] = ()

    def of_program(self, program: str) -> Kept:
        """The same with the runs of one program alone, which may stand behind `nice`."""
        own = [one for one in self.done if any(Path(word).name == program for word in one.argv)]
        return replace(self, done=own)

    @property
    def last(self) -> ProgramResult:
        """The program that counts where it was run again."""
        return self.done[-1]

    def smartctl(self, option: str) -> AskDisk:
        """The fixtures that ask a disk: the last answer counts, of a disk that was asked again."""

        def ask(disk: Disk) -> ProgramResult:
            device = f"/dev/{disk.name}"
            for one in reversed(self.done):
                if one.argv[-1] == device and option in one.argv:
                    return one
            raise SmartUnreadable(
                "health_no_answer", Unmeasured.NO_ANSWER, why=(Message("no_smart_data"),)
            )

        return ask

    def gpu_loads(self, load: str) -> GpuLoads:
        """The outputs of a load of every GPU, which were started in the order of the GPUs."""
        return self._of_each(
            lambda done, _gpu, also: load_output.read(done, load, also, least_s=0.0)
        )

    def by_gpu(self) -> dict[Component, ProgramResult]:
        """The programs by their GPU, of a check that runs one for each."""
        return dict(zip((gpu.name for gpu in self.due), self.done, strict=False))

    def _of_each(
        self,
        read: Callable[[ProgramResult, Component, Mapping[str, Any]], LoadOutput],
    ) -> GpuLoads:
        by_name = {gpu.name: gpu for gpu in self.due}
        return collect_loads(
            self.due,
            self.by_gpu(),
            lambda name, done: read(done, name, gpu_identity.of_load(by_name[name])),
        )

    def tested(self, measurement: str) -> tuple[Scratch, ...]:
        """The fixture of this name."""
        due = {one.component for one in self.planned.due if one.measurement == measurement}
        return tuple(one for one in self.scratches if one.component in due)

    def run_fio(self, scratch: Scratch, kind: fio.Kind) -> Outputs:
        """The fixture of this name: the last job of this kind on a filesystem.

        A fault before it counts in its place: a file that could not be written was not read.
        """
        ran = self._fio(scratch)
        own = [at for at, one in enumerate(ran) if fio.name_argument(kind) in one.argv]
        proved = [self._proved(one, scratch) for one in (ran[: own[-1] + 1] if own else ran)]
        return next((one for one in proved if one.fault is not None), proved[-1])

    def fill_cache(self, scratch: Scratch) -> Filled:
        """The fixture of this name."""
        chunks: list[Chunk] = []
        written = 0.0
        for done in self._fio(scratch):
            run = self._proved(done, scratch)
            if run.fault is not None:
                return Filled(tuple(chunks), run.fault)
            written += run.value("fio_write_moved")
            chunks.append(Chunk(round(written * GIB), run.value("fio_write"), None))
        return Filled(tuple(chunks), None)

    def _proved(self, done: ProgramResult, scratch: Scratch) -> Outputs:
        found = read_outputs([Place(scratch.component)], [done], self.inventory)
        found.raise_failed()
        return found

    def _fio(self, scratch: Scratch) -> list[ProgramResult]:
        """The jobs of fio on a filesystem. Raises NoProof where there is none."""
        place = fio.file_argument(scratch_place.home(scratch.path) + "/")
        ran = [one for one in self.done if any(word.startswith(place) for word in one.argv)]
        if not ran:
            raise NoProof("log_none", check=self.planned.id)
        return ran

    def run_on_disks(self, ask: object, measurement: str, gpus: tuple[Gpu, ...] = ()) -> Results:
        """The fixture of this name."""
        done: dict[Component, ProgramResult] = {}
        for one in self.done:
            if isinstance(asked := asks.of_argv(one.argv), OnDisk):
                done.setdefault(asked.disk, one)
        places = [Place(one.component, gpus) for one in self.tested(measurement)]
        if any(place.component not in done for place in places):
            raise NoProof("log_none", check=self.planned.id)
        return read_all(places, [done[place.component] for place in places])

    def parameter(self) -> str:
        """What stands in brackets in the id of the check."""
        return self.planned.id.partition("[")[2].rstrip("]")


@dataclass(frozen=True, slots=True)
class KeptTools:
    """Stands for the tools of a session: what their programs left."""

    kept: Kept
    inventory: Inventory
    folder: Path = Path()

    def run(
        self, tool: str, argv: object, on: Sequence[Place], *, turns: Iterable[Sequence[Gpu]] = ()
    ) -> Outputs:
        """What a tool said; where all places were measured a second time, what it said then.

        In older runs one program saw all GPUs, and the check owed its faults of them together.
        """
        done = self.kept.of_program(tool).done
        if any(due.component == GPUS for due in self.kept.planned.due):
            on, done = [Place(GPUS, self.kept.due)], done[-1:]
        last = (done[len(on) :] or done)[: len(on)]
        groups = [[gpu.name for gpu in group] for group in turns]
        return read_outputs(on[: len(last)], last, self.inventory, groups)


def _tools(kept: Kept) -> Tools:
    return cast(Tools, KeptTools(kept, kept.inventory))


def _table(*_told: object) -> None:
    """Tables decide nothing."""


def _heat(_gpu: Component, _moment: float) -> None:
    """Heat is for notes."""


def _gpu_burn(kept: Kept, check: Check) -> None:
    def again(_mode: Mode) -> ToolOutput:
        runs = KeptTools(kept, kept.inventory).run(gpu_burn.TOOL, None, [Place(GPUS, kept.due)])
        return runs.only()

    burn.test_gpu_burn(cast(Mode, kept.parameter()), again, kept.due, check)


@dataclass(frozen=True, slots=True)
class _Logs:
    """What a check's programs left, in place of those that it starts."""

    left: Iterator[ProgramResult]

    def run_stage(
        self, parts: Sequence[Part], *, on_line: Callable[[int, str], None] | None
    ) -> tuple[ProgramResult, ...]:
        """The results of the next programs, in the order in which they were started."""
        return tuple(islice(self.left, len(parts)))


def _loads(kept: Kept) -> Loads:
    """What reads the logs as a session reads what it has started."""
    return Loads(_Logs(iter(kept.done)), lambda _shown: lambda _index, _line: None)


# What was asked stands in the argv of the programs.
_SECONDS = defaultdict[str, float](lambda: 1.0)
_CORES: Groups = {"socket0": ((0,),)}
_TRAINED = defaultdict[Component, TrainedDtype](lambda: "bf16")


def _gemm_together(kept: Kept, check: Check) -> None:
    peaks: dict[Component, Mapping[str, float]] = {gpu.name: {} for gpu in kept.due}
    formats: dict[Component, tuple[DtypeName, ...]] = {gpu.name: DTYPES for gpu in kept.due}
    compute.test_gemm_together(_loads(kept), kept.due, formats, _SECONDS, peaks, check)


def _cpu_gemm(kept: Kept, check: Check) -> None:
    cpu.test_gemm(cast(DtypeName, kept.parameter()), _loads(kept), _CORES, _SECONDS, check)


def _exists(_path: str) -> bool:
    """What the run asked of its disks it has journalled; those that it did not ask have no log."""
    return True


def _host(kept: Kept) -> Outputs:
    """What the programs beside the burns said; empty where they were not installed."""
    beside = {CPU: stress_ng.TOOL, MEMORY: stressapptest.TOOL}
    done = {place: kept.of_program(tool).done for place, tool in beside.items()}
    last = {place: found[-1] for place, found in done.items() if found}
    return read_outputs([*map(Place, last)], [*last.values()], kept.inventory)


def _together(kept: Kept, check: Check) -> None:
    burns = [one for one in kept.done if asks.of_argv(one.argv) is not None]
    on = burn_fixtures.places(kept.planned, kept.due)[: len(burns)]
    found = read_all(on, burns[: len(on)]), _host(kept)
    siblings = components.of_one_model(kept.due)
    together.test_burn(lambda: found, kept.due, siblings, _heat, _table, check)


def _power(names: tuple[str, str, str, str, str, str]) -> Callable[[Kept, Check], None]:
    def values_of(kept: Kept, check: Check) -> None:
        load, watch, *_ = kept.done
        host = _host(kept)
        if not ran_whole(load):
            host = ended_with(host, host.failed)
        power.judge_power(names, of_power(load, watch, kept.due, host), kept.due, _table, check)

    return values_of


# By the id of a check without its parameter.
_CHECKS: Mapping[str, Callable[[Kept, Check], None]] = {
    "burn.gpu_burn": _gpu_burn,
    "compute.copies": lambda kept, check: compute.test_copies(
        _loads(kept), kept.due, kept.inventory, "kept", _SECONDS, check
    ),
    # Until 2026-11-26 products from cool were a check of their own.
    "compute.gemm_alone": _gemm_together,
    "compute.gemm_together": _gemm_together,
    "cpu.gemm": _cpu_gemm,
    "cpu.stress_ng": lambda kept, check: cpu.test_stress_ng(
        _tools(kept), _SECONDS, kept.inventory, check
    ),
    "gpu.device_query": lambda kept, check: gpu.test_device_query(_tools(kept), kept.due, check),
    "link.bandwidth_test": lambda kept, check: link.test_bandwidth_test(
        _tools(kept), kept.due, kept.inventory, check
    ),
    "link.collectives": lambda kept, check: link.test_collectives(
        _loads(kept), kept.due, _SECONDS, kept.inventory, kept.models, check
    ),
    "link.device_alone": lambda kept, check: link.test_device_alone(_tools(kept), kept.due, check),
    "link.host_copies": lambda kept, check: link.test_host_copies(
        _tools(kept), kept.due, kept.inventory, check
    ),
    "link.p2p": lambda kept, check: link.test_p2p(_tools(kept), kept.due, check),
    "link.peer_copies": lambda kept, check: link.test_peer_copies(_tools(kept), kept.due, check),
    "memory.bandwidth": lambda kept, check: memory.test_bandwidth(
        _loads(kept), _CORES, _SECONDS, 0, check
    ),
    "memory.random": lambda kept, check: memory.test_random(
        _loads(kept), _CORES, _SECONDS, 0, 0.0, check
    ),
    "memory.stressapptest": lambda kept, check: memory.test_stressapptest(
        _tools(kept), _SECONDS, 0.0, kept.inventory, _table, check
    ),
    "power.ladder": _power(power.LADDER),
    "power.pulses": _power(power.PULSES),
    "power.step": _power(power.STEP),
    "together.burn": _together,
    "storage.health": lambda kept, check: storage.test_health(
        kept.inventory, kept.smartctl("-a"), kept.earlier, _exists, check
    ),
    "storage.checkpoint": lambda kept, check: storage.test_checkpoint(kept.run_on_disks, check),
    "storage.feed": lambda kept, check: storage.test_feed(kept.run_on_disks, kept.due, check),
    "storage.full_cache": lambda kept, check: storage.test_full_cache(
        kept.tested, kept.fill_cache, _table, check
    ),
    "storage.keep": lambda kept, check: storage.test_keep(kept.run_on_disks, check),
    "storage.kept": lambda kept, check: storage.test_kept(kept.run_on_disks, check),
    "storage.memmap": lambda kept, check: storage.test_memmap(kept.run_on_disks, check),
    "storage.read": lambda kept, check: storage.test_read(
        kept.tested, kept.run_fio, DiskWatch((), (), Path("/")), _table, check
    ),
    "storage.self_test": lambda kept, check: storage.test_self_test(
        kept.inventory, kept.smartctl("-a"), kept.earlier, Deadline.after(0.0), _exists, check
    ),
    "storage.self_test_begun": lambda kept, check: storage.test_self_test_begun(
        kept.inventory, kept.smartctl("-a"), kept.smartctl("-t"), _exists, check
    ),
    "storage.smart_health": lambda kept, check: storage.test_smart_health(
        kept.inventory, kept.smartctl("-a"), _exists, check
    ),
    "storage.verify": lambda kept, check: storage.test_verify(kept.tested, kept.run_fio, check),
    "storage.write": lambda kept, check: storage.test_write(
        kept.tested, kept.run_fio, _table, check
    ),
    "storage.write_random": lambda kept, check: storage.test_write_random(
        kept.tested, kept.run_fio, _table, check
    ),
    "train.layer_table": lambda kept, check: train.test_layer_table(
        _loads(kept), kept.due, _TRAINED, _SECONDS, {}, check
    ),
    "train.layers": lambda kept, check: train.test_layers(
        _loads(kept), kept.due, _TRAINED, _SECONDS, {}, check
    ),
    "train.digest": lambda kept, check: train.test_digest(
        _loads(kept),
        kept.due,
        components.of_one_model(kept.due),
        _SECONDS,
        kept.inventory,
        _table,
        check,
    ),
    "train.parallel": lambda kept, check: train.test_parallel(
        _loads(kept), kept.due, _SECONDS, check
    ),
    "train.parallel_table": lambda kept, check: train.test_parallel_table(
        _loads(kept), kept.due, _SECONDS, check
    ),
    "train.step": lambda kept, check: train.test_step(_loads(kept), kept.due, _SECONDS, {}, check),
    "train.step_table": lambda kept, check: train.test_step_table(
        _loads(kept), kept.due, _SECONDS, {}, check
    ),
    "vram.patterns": lambda kept, check: vram.test_patterns(
        _loads(kept), kept.due, _SECONDS, _heat, check
    ),
}


# What a check measures besides, of the kernel and not of its programs.
_OF_KERNEL: Mapping[str, frozenset[str]] = {"storage.read": frozenset({"disk_link_share"})}


def of_logs(check: str, measurement: str) -> bool:
    """Whether a measurement of a check is made of what its programs print."""
    return measurement not in _OF_KERNEL.get(check, ())


def known(check: str) -> bool:
    """Whether the values of a check are made of what its programs print."""
    return check.partition("[")[0] in _CHECKS


def values(kept: Kept) -> tuple[list[Measured], Text | None]:
    """The values that the check makes of these outputs, and why they prove nothing, if so.

    Raises KeyError for a check that is not `known`.
    """
    written: list[AnyBody] = []
    trouble: Text | None = None
    try:
        _CHECKS[kept.planned.id.partition("[")[0]](kept, Check(kept.planned, (), written.append))
    except ErrorInLines as error:
        trouble = Message("clauses", {"why": error.message})
    except Exception as error:  # noqa: BLE001 - an error, as in a session
        trouble = said(error) or type(error).__name__
    lost = [
        one.reason
        for one in written
        if isinstance(one, Skipped)
        and one.why is Unmeasured.NO_ANSWER
        and of_logs(kept.planned.id, one.measurement or "")
    ]
    if trouble is None and lost:
        trouble = Message("clauses", {"why": lost[0]})
    return [one for one in written if isinstance(one, Measured)], trouble


def reads(done: ProgramResult) -> bool:
    """Whether the program is one of our loads or a tool with a parser here."""
    return _is_load(done) or tools.of_argv(done.argv) is not None


def fault(done: ProgramResult) -> Text | None:
    """The fault that a program's output proves by itself; None where it proves none."""
    if _is_load(done):
        return host_tools.wrong_note(salvage(done.stdout))
    if (tool := tools.of_argv(done.argv)) is None:
        return None
    try:
        output = tool.parse(done.text)
    except UnreadableOutput:
        return None
    return output.reason if output.outcome == "fail" else None


def _is_load(done: ProgramResult) -> bool:
    return any(one == asks.PROGRAM[1] or one.startswith("acceptance.loads.") for one in done.argv)
