"""The checks' own functions over the kept outputs of their programs: the values that logs tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

from acceptance.core.component import Component
from acceptance.core.dtype import DTYPES, DtypeName, TrainedDtype
from acceptance.core.evidence import AnyBody, Scratch
from acceptance.core.limit import GIB
from acceptance.core.message import Message, Text
from acceptance.core.parts import GPUS
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Measured, Skipped
from acceptance.core.unmeasured import Unmeasured
from acceptance.expect import components
from acceptance.expect.sheet import Sheet
from acceptance.loads import asks
from acceptance.loads.cpu.contract import Groups
from acceptance.loads.protocol import salvage
from acceptance.loads.storage.contract import OnDisk
from acceptance.machine import inventory, scratch_place
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Disk, Inventory
from acceptance.observe.smart import SmartUnreadable
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.session.check import Check, ErrorInLines
from acceptance.session.loads import Loads, Place, Results, read_all
from acceptance.session.stage import Part
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
from acceptance.suites.fixtures import (
    gpu_tools,
    host_tools,
)
from acceptance.suites.fixtures.burn import BurnResults, HostRun
from acceptance.suites.fixtures.disk_watch import DiskWatch
from acceptance.suites.fixtures.full_cache import Chunk
from acceptance.suites.fixtures.gpu_tools import ToolRuns
from acceptance.suites.fixtures.no_proof import NoProof
from acceptance.suites.fixtures.power import ended_with, of_power, ran_whole
from acceptance.suites.fixtures.storage import Filled, FioRun, of_fio
from acceptance.suites.storage import AskDisk
from acceptance.tools import TOOLS, Tool, fio
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.proof import ToolError
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

    def nvbandwidth(self, *_testcases: str) -> ToolOutput:
        """The fixture of this name."""
        return gpu_tools.of_nvbandwidth(self.last, self.due, self.inventory)

    def nvbandwidth_alone(self, *_testcases: str, **_options: int) -> ToolRuns:
        """The fixture of this name.

        In older runs one program saw all GPUs, and the check owed its faults of them together.
        """
        if any(due.component == GPUS for due in self.planned.due):
            return gpu_tools.collect_runs(
                {GPUS: self.last},
                lambda _all, done: gpu_tools.of_nvbandwidth(done, self.due, self.inventory),
            )
        return gpu_tools.of_nvbandwidth_alone(self.second, self.due, self.inventory)

    def bandwidth_test(self) -> ToolRuns:
        """The fixture of this name."""
        return gpu_tools.of_bandwidth_test(self.second, self.due)

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

    def stress_ng(self, done: ProgramResult) -> ToolOutput:
        """The result of a run of stress-ng."""
        threads = inventory.known(self.inventory.cpu.threads)
        return host_tools.of_stress_ng(done, seconds=0.0, threads=threads)

    def by_gpu(self) -> dict[Component, ProgramResult]:
        """The programs by their GPU, of a check that runs one for each."""
        return dict(zip((gpu.name for gpu in self.due), self.done, strict=False))

    @property
    def second(self) -> dict[Component, ProgramResult]:
        """The same, where all may have been measured a second time: then those programs count."""
        last = self.done[len(self.due) :] or self.done
        return replace(self, done=last).by_gpu()

    def tested(self, measurement: str) -> tuple[Scratch, ...]:
        """The fixture of this name."""
        due = {one.component for one in self.planned.due if one.measurement == measurement}
        return tuple(one for one in self.scratches if one.component in due)

    def run_fio(self, scratch: Scratch, kind: fio.Kind) -> FioRun:
        """The fixture of this name: the last job of this kind on a filesystem.

        A fault before it counts in its place: a file that could not be written was not read.
        """
        ran = self._fio(scratch)
        own = [at for at, one in enumerate(ran) if fio.name_argument(kind) in one.argv]
        proved = [of_fio(one) for one in (ran[: own[-1] + 1] if own else ran)]
        return next((one for one in proved if one.fault is not None), proved[-1])

    def fill_cache(self, scratch: Scratch) -> Filled:
        """The fixture of this name."""
        chunks: list[Chunk] = []
        written = 0.0
        for done in self._fio(scratch):
            run = of_fio(done)
            if run.fault is not None:
                return Filled(tuple(chunks), run.fault)
            written += run.value("fio_write_moved")
            chunks.append(Chunk(round(written * GIB), run.value("fio_write"), None))
        return Filled(tuple(chunks), None)

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


def _table(*_told: object) -> None:
    """Tables decide nothing."""


def _heat(_gpu: Component, _moment: float) -> None:
    """Heat is for notes."""


def _gpu_burn(kept: Kept, check: Check) -> None:
    output = gpu_tools.of_gpu_burn(kept.last, kept.due, kept.inventory, seconds=0.0)
    burn.test_gpu_burn(cast(Mode, kept.parameter()), lambda _mode: output, kept.due, check)


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


def _device_query(kept: Kept, check: Check) -> None:
    found = gpu_tools.of_device_query(kept.last, kept.due, kept.inventory)
    gpu.test_device_query(found, kept.due, check)


def _cpu_gemm(kept: Kept, check: Check) -> None:
    cpu.test_gemm(cast(DtypeName, kept.parameter()), _loads(kept), _CORES, _SECONDS, check)


def _exists(_path: str) -> bool:
    """What the run asked of its disks it has journalled; those that it did not ask have no log."""
    return True


def _stressapptest(done: ProgramResult) -> ToolOutput:
    return host_tools.of_stressapptest(done, seconds=0.0, gib=0.0)


def _host(done: Sequence[ProgramResult], read: Callable[[ProgramResult], ToolOutput]) -> HostRun:
    """The result of a program beside the burns; empty where it was not installed."""
    try:
        return HostRun(read(done[-1])) if done else HostRun()
    except ToolError as error:
        return HostRun(trouble=said(error))


def _together(kept: Kept, check: Check) -> None:
    burns = [one for one in kept.done if asks.of_argv(one.argv) is not None]
    on = burn_fixtures.places(kept.planned, kept.due)[: len(burns)]
    found = BurnResults(
        read_all(on, burns[: len(on)]),
        _host(kept.of_program("stress-ng").done, kept.stress_ng),
        _host(kept.of_program("stressapptest").done, _stressapptest),
    )
    siblings = components.of_one_model(kept.due)
    together.test_burn(lambda: found, kept.due, siblings, _heat, _table, check)


def _power(names: tuple[str, str, str, str, str, str]) -> Callable[[Kept, Check], None]:
    def values_of(kept: Kept, check: Check) -> None:
        load, watch, *_ = kept.done
        hosts: tuple[HostRun, ...] = (
            _host(kept.of_program("stress-ng").done, kept.stress_ng),
            _host(kept.of_program("stressapptest").done, _stressapptest),
        )
        if not ran_whole(load):
            hosts = tuple(map(ended_with, hosts))
        power.judge_power(names, of_power(load, watch, kept.due, hosts), kept.due, _table, check)

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
    "cpu.stress_ng": lambda kept, check: cpu.test_stress_ng(kept.stress_ng(kept.last), check),
    "gpu.device_query": _device_query,
    "link.bandwidth_test": lambda kept, check: link.test_bandwidth_test(
        kept.bandwidth_test, kept.inventory, check
    ),
    "link.collectives": lambda kept, check: link.test_collectives(
        _loads(kept), kept.due, _SECONDS, kept.inventory, kept.models, check
    ),
    "link.device_alone": lambda kept, check: link.test_device_alone(kept.nvbandwidth_alone, check),
    "link.host_copies": lambda kept, check: link.test_host_copies(
        kept.nvbandwidth_alone, kept.inventory, check
    ),
    "link.p2p": lambda kept, check: link.test_p2p(gpu_tools.of_p2p(kept.last, kept.due), check),
    "link.peer_copies": lambda kept, check: link.test_peer_copies(kept.nvbandwidth, check),
    "memory.bandwidth": lambda kept, check: memory.test_bandwidth(
        _loads(kept), _CORES, _SECONDS, 0, check
    ),
    "memory.random": lambda kept, check: memory.test_random(
        _loads(kept), _CORES, _SECONDS, 0, 0.0, check
    ),
    "memory.stressapptest": lambda kept, check: memory.test_stressapptest(
        _stressapptest(kept.last), _table, check
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
    return _is_load(done) or _tool(done) is not None


def fault(done: ProgramResult) -> Text | None:
    """The fault that a program's output proves by itself; None where it proves none."""
    if _is_load(done):
        return host_tools.wrong_note(salvage(done.stdout))
    if (tool := _tool(done)) is None:
        return None
    try:
        output = tool.parse(f"{done.stdout}\n{done.stderr}")
    except UnreadableOutput:
        return None
    return output.reason if output.outcome == "fail" else None


def _is_load(done: ProgramResult) -> bool:
    return any(one == asks.PROGRAM[1] or one.startswith("acceptance.loads.") for one in done.argv)


def _tool(done: ProgramResult) -> Tool | None:
    """The tool of a command, which may stand behind `nice`."""
    names = {Path(one).name for one in done.argv}
    return next((tool for tool in TOOLS if tool.name in names), None)
