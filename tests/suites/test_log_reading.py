"""Kept outputs read again: journals and logs as the checks' own functions make them, with tools and
loads that print what they are given; then one of the two is changed.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gpu_texts
import load_texts
import msgspec
import pytest
import suite_box
from gpu_machine import device, machine, uuid
from msgspec.structs import replace as replaced
from power_printed import watch_printed
from runs import machine_root, write_segment
from storage_printed import fio_printed
from test_burn_fixtures import host_printed
from wrong_results import RUN, one_bit

from acceptance.core import parts
from acceptance.core.dtype import DTYPES, TrainedDtype
from acceptance.core.evidence import AnyBody, Observed, Scratch, ToolRan
from acceptance.core.limit import GIB, MIB
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due, Plan, PlannedCheck
from acceptance.core.record import CheckEnded, CheckStarted, Measured, RunEnded, RunStarted
from acceptance.core.repeat import SEGMENT
from acceptance.expect import gpu_limits
from acceptance.journal import reader
from acceptance.journal import run as journal_run
from acceptance.loads import asks
from acceptance.loads.collective import contract as collective
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import step_contract as step
from acceptance.machine import gpu_selection, scratch_place
from acceptance.machine.disk_link import LinkShare
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Disk
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.run import kept_outputs, log_reading
from acceptance.session.check import Check
from acceptance.session.loads import Loads
from acceptance.session.stage import Part
from acceptance.suites import (
    burn,
    compute,
    conftest,
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
)
from acceptance.suites.fixtures import power as power_fixtures
from acceptance.suites.fixtures import storage as storage_fixtures
from acceptance.suites.fixtures.disk_watch import DiskWatch
from acceptance.suites.fixtures.full_cache import Chunk
from acceptance.tools import fio
from acceptance.wording import words

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings"
DISK = Disk("nvme0n1", "N", "S1", 1, "nvme", "nvme", None)
SEEN = dataclasses.replace(machine(device(0), device(1)), disks=(DISK,))
DUE = gpus(SEEN)
# Two filesystems of the run, on disks that need not be in its inventory.
SCRATCHES = tuple(
    Scratch(
        path=path,
        component=parts.part("disk", name),
        mount=path,
        kind="ext4",
        source=f"/dev/{name}",
        disks=(),
        layers=(),
        free_bytes=900 * GIB,
        write_bytes=13 * GIB,
        kept_bytes=GIB,
        keep=True,
        sealed_bytes=GIB,
    )
    for path, name in (("/data", "nvme0n1"), ("/more: than one", "sdb"))
)
FORMATS = {one.name: DTYPES for one in DUE}
TRAINED: Mapping[Any, TrainedDtype] = dict.fromkeys(FORMATS, "bf16")
PEAKS: Mapping[Any, Mapping[str, float]] = {one.name: {} for one in DUE}
LOADS_S = {name: 1.0 for name in ("stress_ng", "cpu_gemm", "memory_bandwidth")}
LOADS_S |= {name: 1.0 for name in ("stressapptest", "memory_random", "gpu_burn_tensor")}
LOADS_S |= {"disk_self_test": 1.0, "gpu_burn_double": 1.0, **suite_box.LOADS_S}
LOADS_S |= {one: 2.0 for one in ("storage_kept", "storage_keep", *storage_fixtures.LOADS.values())}
LOADS_S |= {f"storage_{one}": 2.0 for one in ("memmap", "feed", "checkpoint", "full_cache")}
LOADS_S |= {"train_step": 1.0, "train_step_table": 1.0}
LOADS_S |= {f"power_{name}": 30.0 for name in ("step", "pulses", "ladder")}
FIGURES = {
    "host_to_device_memcpy_ce": [25.1, 25.2],
    "device_to_host_memcpy_ce": [26.1, 26.2],
    "host_to_device_bidirectional_memcpy_ce": [20.1, 20.2],
    "device_to_host_bidirectional_memcpy_ce": [21.1, 21.2],
    "device_local_copy": [450.0, 451.0],
    "host_device_latency_sm": [600.0, 610.0],
    "device_to_device_memcpy_read_ce": [24.1, 24.2],
    "device_to_device_memcpy_write_ce": [24.3, 24.4],
}


def nvbandwidth_printed(argv: Sequence[str], visible: Sequence[str]) -> str:
    """Its testcases on both GPUs, or on the one that it sees."""
    figures = {one: rates for one, rates in FIGURES.items() if one in argv}
    if len(visible) == len(DUE):
        return gpu_texts.nvbandwidth(len(DUE), figures)
    return gpu_texts.nvbandwidth_alone(DUE_UUIDS.index(*visible), figures)


def ask_printed(ask: asks.AnyAsk, visible: Sequence[str]) -> str:
    """What a load says to its ask on the GPUs that it sees."""
    about = {"uuid": visible[0], "uuids": visible, "capability": "9.0"}
    own: dict[str, Any] = {}
    match ask:
        case collective.Ask():
            own["addresses"] = [gpu.pci_address for gpu in DUE]
        case layers.Ask():
            own["share"] = 1.0 if visible[0] == uuid(0) or ask.table else 0.97
        case step.Ask():
            own |= {"share": 1.0 if visible[0] == uuid(0) else 0.9, "matmul": 100.0}
        case digest.Ask():
            about["gpu"] = next(one.model for one in DUE if one.uuid == visible[0])
    return load_texts.printed(ask, about, **own)


def smart_printed(check: str) -> str:
    """A disk's report; after the run it has the result of a self-test."""
    log: dict[str, Any] = {"current_self_test_operation": {"value": 0}, "table": []}
    if check == "storage.self_test":
        result = {"value": 0, "string": "Completed"}
        short = {"value": 1, "string": "Short"}
        row = {"self_test_code": short, "self_test_result": result, "power_on_hours": 9}
        log["table"] = [row]
    health = {"critical_warning": 0, "media_errors": 0, "percentage_used": 7}
    return json.dumps(
        {
            "smartctl": {"exit_status": 0},
            "smart_status": {"passed": True},
            "nvme_smart_health_information_log": health,
            "nvme_self_test_log": log,
        }
    )


class Programs:
    """Stands for the programs of a check: each prints what it is given, which is kept as the
    session keeps it.
    """

    def __init__(self, planned: PlannedCheck, run_dir: Path, write: Callable[[AnyBody], None]):
        self.planned, self.folder, self.write = planned, run_dir / "logs", write
        self.deadline = Deadline.after(1000.0)
        self._count = 0

    def find(self, program: str, _package: str | None = None) -> str:
        return f"/opt/{program}"

    def shown(self, argv: Sequence[str]) -> ProgramResult:
        """Run with all GPUs that are due."""
        return self.run(argv, env=gpu_selection.environment(DUE))

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> ProgramResult:
        self._count += 1
        done = ProgramResult(tuple(argv), 0, self._text(argv, env or {}), "", 1e5)
        name = f"logs/{self.planned.id}-{self._count}.log"
        (self.folder.parent / name).write_text(done.stdout)
        (self.folder.parent / f"{name}.err").touch()
        self.write(ToolRan(self.planned.id, done.argv, 0, 1e5, name))
        return done

    def run_stage(
        self, stage: Sequence[Part], *, on_line: object = None, whole: object = None
    ) -> tuple[ProgramResult, ...]:
        return tuple(self.run(part.argv, env=part.env) for part in stage)

    def _text(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        visible = env.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if "acceptance.watch.power_watch" in argv:
            return watch_printed(argv)
        if (ask := asks.of_argv(argv)) is not None:
            text = ask_printed(ask, visible)
            # the second GPU is slower
            return (
                text
                if visible[0] in ("", uuid(0))
                else text.replace('"value": 1.0', '"value": 0.9')
            )
        return self._tool(Path(argv[0]).name, argv, visible)

    def _tool(self, name: str, argv: Sequence[str], visible: Sequence[str]) -> str:
        makers: dict[str, Callable[[], str]] = {
            "deviceQuery": lambda: gpu_texts.device_query([1, 2]),
            "nvbandwidth": lambda: nvbandwidth_printed(argv, visible),
            "bandwidthTest": lambda: gpu_texts.bandwidth_test(0, 26.0 + DUE_UUIDS.index(*visible)),
            "p2pBandwidthLatencyTest": lambda: gpu_texts.p2p(2, pairs={(0, 1): 30.0}),
            "gpu-burn": lambda: gpu_texts.burn_as_asked(argv, [52.0, 51.0]),
            "nice": lambda: host_printed(argv),
            "fio": lambda: fio_printed(argv),
            "smartctl": lambda: smart_printed(self.planned.id),
        }
        return makers.get(name, lambda: host_printed(("nice", "-n", "10", *argv)))()


DUE_UUIDS = [one.uuid for one in DUE]


def of(fixture: Any, *arguments: object) -> Any:
    """What a fixture gives."""
    return fixture.__wrapped__(*arguments)


def table(*_words: object) -> None:
    pass


def heat(*_words: object) -> None:
    pass


def listener(_shown: object) -> None:
    pass


def there(_path: str) -> bool:
    return True


def ask_disk(programs: Programs) -> Any:
    return of(storage.smart_report, programs)


def start_self_test(programs: Programs) -> Any:
    return of(storage.start_self_test, programs)


def earlier(programs: Programs) -> Any:
    """What the check of a session before this one ran."""

    def ran(check: str) -> list[ProgramResult]:
        (planned,) = [one for one in plan().checks if one.id == check]
        before = Programs(planned, programs.folder.parent, programs.write)
        asked = [ask_disk(before)(DISK)]
        return [*asked, start_self_test(before)(DISK)] if check.endswith("begun") else asked

    return ran


def power_run(programs: Programs) -> Any:
    return of(power_fixtures.power_run, programs, DUE, LOADS_S, 1.0, SEEN, listener)


def places(check: Check) -> Any:
    return of(storage_fixtures.tested, SCRATCHES, check)


def run_job(programs: Programs) -> Any:
    return of(storage_fixtures.run_job, programs, Path("/"), disk_watch())


def run_fio(programs: Programs, *, written: bool = True) -> Any:
    """Jobs of fio, on files that were `written` by an earlier check or are written before."""
    files = storage_fixtures.DiskFiles(seed=7, made={one.component for one in SCRATCHES})
    found = of(storage_fixtures.run_fio, run_job(programs), LOADS_S, SCRATCHES, "run-1", files)
    if written:
        before = Programs(programs.planned, programs.folder.parent, lambda _body: None)
        write = of(storage_fixtures.run_fio, run_job(before), LOADS_S, SCRATCHES, "run-1", files)
        for one in SCRATCHES:
            write(one, "write")
    return found


def fill_cache(programs: Programs) -> Any:
    """The jobs that fill a cache, without the files that they are to write."""
    run = run_job(programs)

    def fill(scratch: Scratch) -> storage_fixtures.Filled:
        chunks: list[Chunk] = []
        folder = scratch_place.run_folder(scratch.path, "run-1")
        for number in range(1, 5):
            done = run(scratch, fio.Job("write", f"{folder}/full-{number}", 64 * MIB, number))
            if done.fault is not None:
                return storage_fixtures.Filled(tuple(chunks), done.fault)
            chunks.append(Chunk(number * 64 * MIB, done.value("fio_write"), None))
        return storage_fixtures.Filled(tuple(chunks), None)

    return fill


def on_disks(programs: Programs, check: Check) -> Any:
    files = storage_fixtures.DiskFiles(seed=7)
    scratches = [
        replaced(one, path=f"{programs.folder}/{number}") for number, one in enumerate(SCRATCHES)
    ]
    for one in scratches:
        Path(scratch_place.home(one.path)).mkdir(parents=True, exist_ok=True)
    return of(
        storage_fixtures.run_on_disks,
        programs,
        LOADS_S,
        scratches,
        of(storage_fixtures.tested, scratches, check),
        "run-1",
        "machine-1",
        files,
        disk_watch(),
        listener,
    )


def disk_watch() -> DiskWatch:
    """One that has seen a link."""
    found = DiskWatch((), (), Path("/"))
    found.least[DISK.component] = LinkShare(7.0, 7.0, Message("disk_link_unread"))
    return found


def nvbandwidth(programs: Programs) -> Any:
    return of(gpu_tools.nvbandwidth, programs, programs.shown, DUE, SEEN)


def in_turns(programs: Programs) -> Any:
    return of(gpu_tools.run_in_turns, programs, DUE, SEEN)


def nvbandwidth_alone(programs: Programs) -> Any:
    return of(gpu_tools.nvbandwidth_alone, programs, in_turns(programs), DUE, SEEN)


# Every check of known programs as a session runs it.
CHECKS: dict[str, Callable[[Any, Check], None]] = {
    "gpu.device_query": lambda p, c: gpu.test_device_query(
        of(gpu_tools.device_query, p, p.shown, DUE, SEEN), DUE, c
    ),
    "link.host_copies": lambda p, c: link.test_host_copies(nvbandwidth_alone(p), SEEN, c),
    "link.collectives": lambda p, c: link.test_collectives(
        Loads(p, listener), DUE, LOADS_S, SEEN, gpu_limits.sheets(), c
    ),
    "train.digest": lambda p, c: train.test_digest(
        Loads(p, listener), DUE, of(gpu_tools.siblings, DUE), LOADS_S, SEEN, table, c
    ),
    "train.parallel": lambda p, c: train.test_parallel(Loads(p, listener), DUE, LOADS_S, c),
    "train.parallel_table": lambda p, c: train.test_parallel_table(
        Loads(p, listener), DUE, LOADS_S, c
    ),
    "link.device_alone": lambda p, c: link.test_device_alone(nvbandwidth_alone(p), c),
    "link.peer_copies": lambda p, c: link.test_peer_copies(nvbandwidth(p), c),
    "link.bandwidth_test": lambda p, c: link.test_bandwidth_test(
        of(gpu_tools.bandwidth_test, p, in_turns(p), DUE), SEEN, c
    ),
    "link.p2p": lambda p, c: link.test_p2p(of(gpu_tools.p2p_run, p, p.shown, DUE), c),
    "burn.gpu_burn[float]": lambda p, c: burn.test_gpu_burn(
        "float", of(gpu_tools.gpu_burn, p, p.shown, DUE, gpu_limits.sheets(), SEEN, LOADS_S), DUE, c
    ),
    "compute.gemm_together": lambda p, c: compute.test_gemm_together(
        Loads(p, listener), DUE, FORMATS, LOADS_S, PEAKS, c
    ),
    "compute.copies": lambda p, c: compute.test_copies(
        Loads(p, listener), DUE, SEEN, "/logs/turns", LOADS_S, c
    ),
    "train.step": lambda p, c: train.test_step(Loads(p, listener), DUE, LOADS_S, {}, c),
    "train.step_table": lambda p, c: train.test_step_table(Loads(p, listener), DUE, LOADS_S, {}, c),
    "vram.patterns": lambda p, c: vram.test_patterns(Loads(p, listener), DUE, LOADS_S, heat, c),
    "together.burn": lambda p, c: together.test_burn(
        of(burn_fixtures.together, p, p.planned, DUE, LOADS_S, 1.0, SEEN, FORMATS, listener),
        DUE,
        of(gpu_tools.siblings, DUE),
        heat,
        table,
        c,
    ),
    "power.ladder": lambda p, c: power.test_ladder(power_run(p), DUE, table, c),
    "power.step": lambda p, c: power.test_step(power_run(p), DUE, table, c),
    "power.pulses": lambda p, c: power.test_pulses(power_run(p), DUE, table, c),
    "storage.health": lambda p, c: storage.test_health(SEEN, ask_disk(p), earlier(p), there, c),
    "storage.checkpoint": lambda p, c: storage.test_checkpoint(on_disks(p, c), c),
    "storage.feed": lambda p, c: storage.test_feed(on_disks(p, c), DUE, c),
    "storage.full_cache": lambda p, c: storage.test_full_cache(places(c), fill_cache(p), table, c),
    "storage.keep": lambda p, c: storage.test_keep(on_disks(p, c), c),
    "storage.kept": lambda p, c: storage.test_kept(on_disks(p, c), c),
    "storage.memmap": lambda p, c: storage.test_memmap(on_disks(p, c), c),
    "storage.read": lambda p, c: storage.test_read(places(c), run_fio(p), disk_watch(), table, c),
    "storage.verify": lambda p, c: storage.test_verify(places(c), run_fio(p, written=False), c),
    "storage.write": lambda p, c: storage.test_write(
        places(c), run_fio(p, written=False), table, c
    ),
    "storage.write_random": lambda p, c: storage.test_write_random(places(c), run_fio(p), table, c),
    "storage.self_test": lambda p, c: storage.test_self_test(
        SEEN, ask_disk(p), earlier(p), p.deadline, there, c
    ),
    "storage.self_test_begun": lambda p, c: storage.test_self_test_begun(
        SEEN, ask_disk(p), start_self_test(p), there, c
    ),
    "storage.smart_health": lambda p, c: storage.test_smart_health(SEEN, ask_disk(p), there, c),
    "train.layer_table": lambda p, c: train.test_layer_table(
        Loads(p, listener), DUE, TRAINED, LOADS_S, {}, c
    ),
    "train.layers": lambda p, c: train.test_layers(
        Loads(p, listener), DUE, TRAINED, LOADS_S, {}, c
    ),
    "cpu.stress_ng": lambda p, c: cpu.test_stress_ng(
        of(conftest.stress_ng_run, p, LOADS_S, SEEN), c
    ),
    "cpu.gemm[f64]": lambda p, c: cpu.test_gemm(
        "f64", Loads(p, listener), of(conftest.groups, SEEN), LOADS_S, c
    ),
    "memory.bandwidth": lambda p, c: memory.test_bandwidth(
        Loads(p, listener), of(conftest.groups, SEEN), LOADS_S, 1 << 20, c
    ),
    "memory.stressapptest": lambda p, c: memory.test_stressapptest(
        of(conftest.stressapptest_run, p, LOADS_S, 1.0, SEEN), lambda _output: None, c
    ),
    "memory.random": lambda p, c: memory.test_random(
        Loads(p, listener), of(conftest.sockets, SEEN), LOADS_S, 1 << 20, 1.0, c
    ),
}


@functools.cache
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", LOADS_S)
        only = tuple(dict.fromkeys(name.partition("[")[0] for name in CHECKS))
        names = [one.name for one in DUE]
        return suite_box.planned(SEEN, names, only, "d", scratches=SCRATCHES)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda program, package=None: f"/opt/{program}")


def bodies_of(name: str, run_dir: Path) -> list[AnyBody]:
    """The records of a check that ran and passed; its logs are in the run's folder."""
    (planned,) = [one for one in plan().checks if one.id == name]
    found: list[AnyBody] = [CheckStarted(name)]
    CHECKS[name](Programs(planned, run_dir, found.append), Check(planned, (), found.append))
    return [*found, CheckEnded(name, "pass", "", 1.0)]


def keep(
    run_dir: Path,
    bodies: Sequence[AnyBody],
    again: Sequence[AnyBody] = (),
    made: Plan | None = None,
) -> Path:
    """Write a run of these checks; `again` are the records of a repeat. `made` is its plan."""
    root = machine_root(run_dir.parent / "root")
    seen = msgspec.to_builtins(SEEN, enc_hook=parts.encode, str_keys=True)
    head = [RunStarted("run-1", made or plan(), {}, "machine-1"), Observed(seen), *SCRATCHES]
    if again:
        write_segment(run_dir / SEGMENT, again, root)
    write_segment(run_dir / reader.SUPERVISOR, [*head, *bodies, RunEnded(True, "")], root)
    return run_dir


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    return folder


def again(run_dir: Path) -> tuple[int, int, list[str]]:
    found = log_reading.read_again(journal_run.read(run_dir))
    return found.compared, found.measured, [words.message(one) for one in found.differences]


TELLS = "the journal has {} = {} on {}, but its log has {}"
BAD_SUM = "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n"
WRONG_BLOCK = (
    "crc32c: verify failed at file /data/.rigproof/run-run-1/fio offset 3145728, length 1048576 "
    "(requested block: offset=3145728, length=1048576, flags=8)\n"
)
ONE_WRONG = ('"gpu0", "value": 0}', '"gpu0", "value": 1}')
ONE_COUNTED = ('"gpu0", "value": 0.0}', '"gpu0", "value": 1.0}')
# Of each check how many values it measures, all of which its logs tell; and what its first log
# has, what is put in its place, and what is said then.
# A figure that fits no other of its load.
UNPROVED = "its logs prove nothing: gpu0: the load train_{} {}"
KNOWN: dict[str, tuple[int, str, str, str]] = {
    "gpu.device_query": (
        6,
        "24216 MBytes (25392316416",
        "24217 MBytes (25393364992",
        TELLS.format("gpu_memory_total", "23.6484375", "gpu0", "23.6494141"),
    ),
    "link.host_copies": (
        14,
        "25.1",
        "25.2",
        TELLS.format("copy_h2d", "25.1", "gpu0", "25.2"),
    ),
    "link.collectives": (
        34,
        '"us", "component": "gpus", "value": 20.0}',
        '"us", "component": "gpus", "value": 21.0}',
        TELLS.format("collective_latency", "20", "gpus", "21"),
    ),
    "train.digest": (
        4,
        '"gpu0", "value": 0.0}',
        f'"gpu0", "value": 1.0}}\n{json.dumps({"miscompare": RUN})}',
        TELLS.format("digest_repeats_differ", "0", "gpu0", "1"),
    ),
    **{
        name: (
            count,
            '"count", "component": "gpus", "value": 0.0',
            '"count", "component": "gpus", "value": 1.0',
            TELLS.format("parallel_disagreements", "0", "gpus", "1"),
        )
        for name, count in (("train.parallel", 5), ("train.parallel_table", 16))
    },
    "link.device_alone": (
        6,
        "450",
        "451",
        TELLS.format("copy_local", "450", "gpu0", "451"),
    ),
    "link.peer_copies": (
        5,
        '"24.1"], ["24.2"',
        '"24.2"], ["24.1"',
        TELLS.format("copy_d2d_read", "24.1", "gpu0->gpu1", "24.2"),
    ),
    "link.bandwidth_test": (
        8,
        "26.4",
        "26.5",
        TELLS.format("bandwidth_test_d2h", "26.4", "gpu0", "26.5"),
    ),
    "link.p2p": (9, "30.0", "31.0", TELLS.format("p2p_write", "30", "gpu0->gpu1", "31")),
    "burn.gpu_burn[float]": (8, "52", "53", TELLS.format("gpu_burn_float", "52", "gpu0", "53")),
    "compute.gemm_together": (70, "1.0}", "1.1}", TELLS.format("gemm_f64", "1", "gpu0", "1.1")),
    "compute.copies": (24, "1.0}", "1.1}", TELLS.format("copy_own_h2d", "1", "gpu0", "1.1")),
    "vram.patterns": (
        10,
        'GB/s", "component": "gpu0", "value": 1.0}',
        'GB/s", "component": "gpu0", "value": 1.5}',
        TELLS.format("vram_copy", "1", "gpu0", "1.5"),
    ),
    "together.burn": (71, "1.0}", "1.1}", TELLS.format("burn_f64", "1", "gpu0", "1.1")),
    "train.step": (
        10,
        "100.0}",
        "101.0}",
        UNPROVED.format("step", "step_gpt2_share is 0.57, which is not 57 / 101"),
    ),
    "train.step_table": (
        8,
        '"component": "gpu0", "value": 38.7}',
        '"component": "gpu0", "value": 38.8}',
        UNPROVED.format("step", "step_bert of gpu0 is not in its table train_steps"),
    ),
    "power.ladder": (10, *ONE_COUNTED, TELLS.format("power_ladder_miscompares", "0", "gpu0", "1")),
    "power.step": (10, *ONE_COUNTED, TELLS.format("power_step_miscompares", "0", "gpu0", "1")),
    "power.pulses": (10, *ONE_COUNTED, TELLS.format("power_pulses_miscompares", "0", "gpu0", "1")),
    "storage.health": (
        1,
        '"media_errors": 0',
        '"media_errors": 1',
        TELLS.format("disk_growth", "0", "disk:nvme0n1", "1"),
    ),
    "storage.checkpoint": (
        8,
        "1.0}",
        "0.8}",
        TELLS.format("storage_checkpoint_write", "1", "disk:nvme0n1", "0.8"),
    ),
    "storage.feed": (
        6,
        "1.0}",
        "1.1}",
        TELLS.format("storage_feed_gpu", "1", "disk:nvme0n1", "1.1"),
    ),
    "storage.keep": (
        4,
        "0.0}",
        "1.0}",
        TELLS.format("storage_kept_errors", "0", "disk:nvme0n1", "1"),
    ),
    "storage.kept": (
        4,
        "0.0}",
        "1.0}",
        TELLS.format("storage_kept_errors", "0", "disk:nvme0n1", "1"),
    ),
    "storage.memmap": (
        12,
        "1.0}",
        "0.8}",
        TELLS.format("storage_memmap_cold_random", "1", "disk:nvme0n1", "0.8"),
    ),
    "storage.read": (
        8,
        '"error": 0',
        '"error": 5',
        TELLS.format("storage_failed", "0", "disk:nvme0n1", "1"),
    ),
    "storage.verify": (
        4,
        '{\n "fio version"',
        WRONG_BLOCK + '{\n "fio version"',
        TELLS.format("storage_wrong_blocks", "0", "disk:nvme0n1", "1"),
    ),
    "storage.full_cache": (
        6,
        '"error": 0',
        '"error": 5',
        TELLS.format("storage_failed", "0", "disk:nvme0n1", "1"),
    ),
    "storage.write": (
        4,
        '"error": 0',
        '"error": 5',
        TELLS.format("storage_failed", "0", "disk:nvme0n1", "1"),
    ),
    "storage.write_random": (
        6,
        "80000",
        "90000",
        TELLS.format("storage_write_random_p99", "80", "disk:nvme0n1", "90"),
    ),
    "storage.self_test": (
        1,
        '"self_test_result": {"value": 0',
        '"self_test_result": {"value": 7',
        TELLS.format("disk_self_test_faults", "0", "disk:nvme0n1", "1"),
    ),
    "storage.self_test_begun": (
        1,
        '"current_self_test_operation": {"value": 0}',
        '"current_self_test_operation": {"value": 1}, "current_self_test_completion_percent": 5',
        TELLS.format("disk_self_test_begun", "1", "disk:nvme0n1", "0"),
    ),
    "storage.smart_health": (
        3,
        '"media_errors": 0',
        '"media_errors": 1',
        TELLS.format("disk_faults", "0", "disk:nvme0n1", "1"),
    ),
    "train.layer_table": (
        10,
        '"TFLOP/s", "component": "gpu0", "value": 521.7}',
        '"TFLOP/s", "component": "gpu0", "value": 522.7}',
        TELLS.format("layer_dense", "521.7", "gpu0", "522.7"),
    ),
    "train.layers": (
        34,
        '"TFLOP/s", "component": "gpu0", "value": 658.0}',
        '"TFLOP/s", "component": "gpu0", "value": 659.0}',
        UNPROVED.format("layers", "layer_bert_share is 0.662614, which is not 436 / 659"),
    ),
    "cpu.stress_ng": (
        1,
        "stress-ng: info:  [1] succ",
        f"{BAD_SUM}stress-ng: info:  [1] succ",
        TELLS.format("stress_ng_failures", "0", "cpu", "1"),
    ),
    "cpu.gemm[f64]": (10, "1.0}", "8.5}", TELLS.format("cpu_gemm_f64", "1", "cpu", "8.5")),
    "memory.bandwidth": (4, "1.0}", "7.5}", TELLS.format("memory_copy", "1", "memory", "7.5")),
    "memory.stressapptest": (
        3,
        "12345.00MB/s\n",
        "12346.00MB/s\n",
        TELLS.format("stressapptest_copy", "12.9446707", "memory", "12.9457193"),
    ),
    "memory.random": (2, "1.0}", "7.5}", TELLS.format("memory_random", "1", "socket0", "7.5")),
}


def first_log(run_dir: Path, name: str) -> Path:
    return run_dir / f"logs/{name}-1.log"


# Values that are the kernel's, in no log.
OF_KERNEL = {"storage.read": 1}


def test_every_check_that_is_known_is_here() -> None:
    assert {name.partition("[")[0] for name in CHECKS} == set(kept_outputs._CHECKS) - {
        PRODUCTS_ONCE
    }


@pytest.mark.parametrize("name", CHECKS)
def test_every_value_of_a_check_is_told_by_its_logs(run_dir: Path, name: str) -> None:
    keep(run_dir, bodies_of(name, run_dir))
    count = KNOWN[name][0]
    assert again(run_dir) == (count, count + OF_KERNEL.get(name, 0), [])


@pytest.mark.parametrize("name", CHECKS)
def test_a_value_that_was_changed_is_named(run_dir: Path, name: str) -> None:
    bodies = bodies_of(name, run_dir)
    measured = (one for one in bodies if isinstance(one, Measured))
    *_, last = (one for one in measured if kept_outputs.of_logs(name, one.measurement))
    assert last.value is not None
    keep(run_dir, [replaced(one, value=last.value + 1.0) if one is last else one for one in bodies])
    (told,) = again(run_dir)[2]
    about = f"{last.measurement} = {last.value + 1.0:.9g} on {last.component}"
    assert told == f"{name}: the journal has {about}, but its log has {last.value:.9g}"


@pytest.mark.parametrize("name", CHECKS)
def test_a_log_that_was_changed_is_named(run_dir: Path, name: str) -> None:
    keep(run_dir, bodies_of(name, run_dir))
    _, old, new, said = KNOWN[name]
    log = first_log(run_dir, name)
    text = log.read_text()
    assert old in text
    log.write_text(text.replace(old, new))
    told = again(run_dir)[2]
    assert f"{name}: {said}" in told


FAILED_READ = (
    "fio: io_u error on file /data/.rigproof/run-run-1/fio: Input/output error: read offset=4096, "
    "buflen=1048576\n"
)


@pytest.mark.parametrize(
    ("name", "kind", "text", "values"),
    [
        ("storage.write", "write", FAILED_READ, 3),
        ("storage.verify", "write", FAILED_READ, 3),  # what could not be written is not read
        ("storage.verify", "verify", FAILED_READ, 3),
        ("storage.verify", "verify", WRONG_BLOCK, 4),
        ("storage.read", "read", FAILED_READ, 5),
        ("storage.read", "randread", FAILED_READ, 6),
        ("storage.write_random", "randwrite", FAILED_READ, 4),
    ],
)
def test_the_faults_of_one_of_two_disks_are_told_by_the_logs(
    run_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    text: str,
    values: int,
) -> None:
    (planned,) = [one for one in plan().checks if one.id == name]
    found: list[AnyBody] = [CheckStarted(name)]

    def said(argv: Sequence[str]) -> str:
        first = any(word.startswith("--filename=/data/") for word in argv)
        return text if first and f"--name={kind}" in argv else fio_printed(argv)

    programs = Programs(planned, run_dir, found.append)
    monkeypatch.setattr(Programs, "_tool", lambda _self, _name, argv, _visible: said(argv))
    CHECKS[name](programs, Check(planned, (), found.append))
    keep(run_dir, [*found, CheckEnded(name, "fail", "", 1.0)])
    faults = [one for one in found if isinstance(one, Measured) and one.unit == "count"]
    assert [one.value for one in faults if one.value] == [1.0]
    assert again(run_dir) == (values, values + OF_KERNEL.get(name, 0), [])


def test_a_job_that_was_not_kept_proves_nothing(run_dir: Path) -> None:
    """Of the second filesystem the journal has values, and no log."""
    bodies = bodies_of("storage.write", run_dir)
    keep(
        run_dir,
        [
            one
            for one in bodies
            if not (isinstance(one, ToolRan) and any("more" in word for word in one.argv))
        ],
    )
    compared, measured, told = again(run_dir)
    assert (compared, measured) == (0, 4)
    assert told == [
        "storage.write: its logs prove nothing: storage.write: no output of its programs was kept"
    ]


def test_a_load_that_was_not_kept_proves_nothing(run_dir: Path) -> None:
    bodies = bodies_of("storage.feed", run_dir)
    keep(
        run_dir,
        [one for one in bodies if not (isinstance(one, ToolRan) and "disk:sdb" in str(one.argv))],
    )
    compared, measured, told = again(run_dir)
    assert (compared, measured) == (0, 6)
    assert told == [
        "storage.feed: its logs prove nothing: storage.feed: no output of its programs was kept"
    ]


PRODUCTS_ONCE = "compute.gemm_alone"
NVBANDWIDTH, GEMM, BURN = "link.host_copies", "compute.gemm_together", "burn.gpu_burn[float]"


def test_each_gpu_has_its_own_log(run_dir: Path) -> None:
    """Two values that are in the logs, each with the other's GPU."""
    bodies = bodies_of(GEMM, run_dir)
    rates = {Gpu(0): 0.9, Gpu(1): 1.0}
    keep(
        run_dir,
        [
            replaced(one, value=rates[one.component])
            if isinstance(one, Measured) and one.measurement == "gemm_bf16_short"
            else one
            for one in bodies
        ],
    )
    assert again(run_dir)[2] == [
        f"{GEMM}: the journal has gemm_bf16_short = 0.9 on gpu0, but its log has 1",
        f"{GEMM}: the journal has gemm_bf16_short = 1 on gpu1, but its log has 0.9",
    ]


def test_a_log_of_another_gpu_proves_nothing(run_dir: Path) -> None:
    keep(run_dir, bodies_of(GEMM, run_dir))
    first_log(run_dir, GEMM).write_text((run_dir / f"logs/{GEMM}-2.log").read_text())
    compared, measured, (told,) = again(run_dir)
    assert (compared, measured) == (21, 70)
    assert told.startswith(f"{GEMM}: its logs prove nothing: gpu0: ")


def test_a_value_that_no_log_tells_and_one_that_the_journal_left_out(run_dir: Path) -> None:
    bodies = bodies_of(NVBANDWIDTH, run_dir)
    (kept,) = [
        one
        for one in bodies
        if isinstance(one, Measured) and (one.measurement, one.component) == ("copy_h2d", Gpu(1))
    ]
    keep(run_dir, [replaced(kept, component=Gpu(2)) if one is kept else one for one in bodies])
    assert again(run_dir)[2] == [
        f"{NVBANDWIDTH}: the journal has copy_h2d = 25.2 on gpu2, and its log does not tell it",
        f"{NVBANDWIDTH}: the log has copy_h2d = 25.2 on gpu1, which is not in the journal",
    ]


def test_a_value_that_is_there_twice_is_told_once(run_dir: Path) -> None:
    bodies = bodies_of(NVBANDWIDTH, run_dir)
    first = next(one for one in bodies if isinstance(one, Measured))
    keep(run_dir, [*bodies[:-1], first, bodies[-1]])
    assert again(run_dir)[2] == [
        f"{NVBANDWIDTH}: the journal has copy_faults = 0 on gpu0, and its log does not tell it"
    ]


@pytest.mark.parametrize("recorded", ["died_gpu0_mid_run", "faulty_gpu1_errors_reset"])
def test_a_program_that_failed_under_a_check_that_passed_is_named(
    run_dir: Path, recorded: str
) -> None:
    """Also where nothing that its log tells is due."""
    bodies = bodies_of(BURN, run_dir)
    first_log(run_dir, BURN).write_text((RECORDED / f"gpu-burn/{recorded}.txt").read_text())
    keep(run_dir, [one for one in bodies if not isinstance(one, Measured)])
    assert any(
        one.startswith(f"{BURN} passed, but its log shows a fault:") for one in again(run_dir)[2]
    )


def test_a_load_that_found_wrong_results_under_a_check_that_passed_is_named(run_dir: Path) -> None:
    keep(run_dir, bodies_of("vram.patterns", run_dir))
    log = first_log(run_dir, "vram.patterns")
    first, rest = log.read_text().split("\n", 1)
    log.write_text("\n".join([first, json.dumps({"miscompare": one_bit(3)}), rest]))
    told = again(run_dir)[2]
    assert any(one.startswith("vram.patterns passed, but its log shows a fault:") for one in told)


def remove(log: Path) -> None:
    log.unlink()


def loop(log: Path) -> None:
    log.unlink()
    log.symlink_to(log.name)


def outside(log: Path) -> None:
    log.rename(log.parents[2] / log.name)
    log.symlink_to(log.parents[2] / log.name)


def folder(log: Path) -> None:
    log.unlink()
    log.mkdir()


@pytest.mark.parametrize("error", ["", ".err"])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (remove, "cannot be read: No such file or directory"),
        (loop, "cannot be read: "),
        (outside, "is not in the folder of the run and was not read"),
        (folder, "cannot be read: it is a folder, not a file"),
    ],
)
def test_a_log_that_cannot_be_read_is_named(
    run_dir: Path, spoil: Callable[[Path], None], error: str, why: str
) -> None:
    keep(run_dir, bodies_of("cpu.stress_ng", run_dir))
    spoil(run_dir / f"logs/cpu.stress_ng-1.log{error}")
    compared, measured, (told,) = again(run_dir)
    assert (compared, measured) == (0, 1)
    assert told.startswith(f"cpu.stress_ng: logs/cpu.stress_ng-1.log{error} {why}")


@pytest.mark.parametrize("log", ["logs/\0.log", "/etc/passwd", "../elsewhere.log", ""])
def test_a_name_that_is_no_log_of_the_run_is_named(run_dir: Path, log: str) -> None:
    bodies = bodies_of("cpu.stress_ng", run_dir)
    keep(run_dir, [replaced(one, log=log) if isinstance(one, ToolRan) else one for one in bodies])
    compared, measured, (told,) = again(run_dir)
    assert (compared, measured) == (0, 1)
    assert told.startswith(f"cpu.stress_ng: {log} ")


def test_products_from_cool_of_a_run_that_has_them_by_themselves_are_read(run_dir: Path) -> None:
    """As runs were before one check made both; the later one has only the sustained figures."""

    def of_cool(due: Due) -> bool:
        return "_short" in due.measurement or due.measurement.endswith("miscompares")

    made = plan()
    (both,) = [one for one in made.checks if one.id == GEMM]
    cool = replaced(both, id=PRODUCTS_ONCE, due=tuple(one for one in both.due if of_cool(one)))
    found: list[AnyBody] = [CheckStarted(PRODUCTS_ONCE)]
    programs = Programs(cool, run_dir, found.append)
    check = Check(cool, (), found.append)
    compute.test_gemm_together(Loads(programs, listener), DUE, FORMATS, LOADS_S, PEAKS, check)
    found.append(CheckEnded(PRODUCTS_ONCE, "pass", "", 1.0))
    keep(run_dir, found, made=replaced(made, checks=(cool,)))
    values = len([one for one in found if isinstance(one, Measured)])
    assert values == len(cool.due) < len(both.due)
    assert again(run_dir) == (values, values, [])


OLDER: dict[str, tuple[Callable[[Any, Check], None], str]] = {
    "link.host_copies": (
        lambda runs, check: link.test_host_copies(runs, SEEN, check),
        '"25.1", "25.2"',
    ),
    "link.device_alone": (link.test_device_alone, '"450", "451"'),
}


@pytest.mark.parametrize("name", OLDER)
def test_a_run_in_which_one_program_saw_all_gpus_is_read_as_one(run_dir: Path, name: str) -> None:
    """As runs were before each GPU had a program of its own; the faults were of all together."""
    function, pair = OLDER[name]

    def older(check: PlannedCheck) -> PlannedCheck:
        faults, *_ = (due for due in check.due if due.measurement == "copy_faults")
        others = (due for due in check.due if due.measurement != "copy_faults")
        return replaced(check, due=(replaced(faults, component=parts.GPUS), *others))

    made = plan()
    checks = tuple(older(one) if one.id == name else one for one in made.checks)
    (planned,) = [one for one in checks if one.id == name]
    found: list[AnyBody] = [CheckStarted(name)]
    programs = Programs(planned, run_dir, found.append)

    def together(*testcases: str, **_options: int) -> gpu_tools.ToolRuns:
        return gpu_tools.ToolRuns({parts.GPUS: nvbandwidth(programs)(*testcases)})

    function(together, Check(planned, (), found.append))
    found.append(CheckEnded(name, "pass", "", 1.0))
    assert len([one for one in found if isinstance(one, ToolRan)]) == 1
    keep(run_dir, found, made=replaced(made, checks=checks))
    values = len([one for one in found if isinstance(one, Measured)])
    assert again(run_dir) == (values, values, [])
    log = first_log(run_dir, name)
    first, second = pair.split(", ")
    log.write_text(log.read_text().replace(pair, f"{second}, {first}"))
    assert len(again(run_dir)[2]) >= 2, "both GPUs have the other's figure"


@pytest.mark.parametrize("text", ["", "no output of it", "\0"])
@pytest.mark.parametrize("name", CHECKS)
def test_a_log_that_is_not_understood_proves_nothing(run_dir: Path, name: str, text: str) -> None:
    keep(run_dir, bodies_of(name, run_dir))
    first_log(run_dir, name).write_text(text)
    told = again(run_dir)[2]
    assert f"{name}: its logs prove nothing: " in told[0]


def test_values_without_a_log_are_named(run_dir: Path) -> None:
    bodies = bodies_of("memory.bandwidth", run_dir)
    keep(run_dir, [one for one in bodies if not isinstance(one, ToolRan)])
    assert again(run_dir) == (0, 4, ["memory.bandwidth: no output of its programs was kept"])


def test_a_check_that_this_version_does_not_know_is_named(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(run_dir, bodies_of("memory.bandwidth", run_dir))
    monkeypatch.delitem(kept_outputs._CHECKS, "memory.bandwidth")  # type: ignore[arg-type]
    told = "how its values are made of its logs is not known to this version"
    assert again(run_dir) == (0, 4, [f"memory.bandwidth: {told}"])


def test_a_repeat_is_held_against_its_own_logs(run_dir: Path, tmp_path: Path) -> None:
    first = bodies_of("memory.bandwidth", run_dir)
    other = tmp_path / "other"
    (other / "logs").mkdir(parents=True)
    again_ = bodies_of("memory.bandwidth", other)
    (tmp_path / "other/logs/memory.bandwidth-1.log").rename(run_dir / "logs/repeat.log")
    (run_dir / "logs/repeat.log.err").touch()
    log = run_dir / "logs/repeat.log"
    log.write_text(log.read_text().replace("1.0}", "6.5}", 1))
    second = [
        replaced(one, log="logs/repeat.log") if isinstance(one, ToolRan) else one for one in again_
    ]
    keep(run_dir, first, second)
    assert again(run_dir) == (
        8,
        8,
        [f"memory.bandwidth: {TELLS.format('memory_copy', '1', 'memory', '6.5')}"],
    )


def test_copies_that_were_measured_a_second_time_are_held_against_those_logs(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual = dataclasses.replace(SEEN.cpu, virtualised=True)
    monkeypatch.setitem(globals(), "SEEN", dataclasses.replace(SEEN, cpu=virtual))
    printed = iter([[25.1, 23.0]] * 2 + [[25.1, 25.2]] * 2)

    def told(argv: Sequence[str], visible: Sequence[str]) -> str:
        with monkeypatch.context() as patch:
            patch.setitem(FIGURES, "host_to_device_memcpy_ce", next(printed))
            return nvbandwidth_figures(argv, visible)

    nvbandwidth_figures = nvbandwidth_printed
    monkeypatch.setitem(globals(), "nvbandwidth_printed", told)
    keep(run_dir, bodies_of("link.host_copies", run_dir))
    assert again(run_dir) == (14, 14, [])
    log = run_dir / "logs/link.host_copies-4.log"
    log.write_text(log.read_text().replace("25.2", "25.3"))
    compared, measured, differences = again(run_dir)
    assert (compared, measured) == (14, 14)
    assert f"link.host_copies: {TELLS.format('copy_h2d', '25.2', 'gpu1', '25.3')}" in differences


@pytest.mark.parametrize("ended", ["", "error"])
def test_a_check_that_proved_nothing_left_nothing_out(run_dir: Path, ended: Any) -> None:
    name = "memory.bandwidth"
    *bodies, _, _, _ = bodies_of(name, run_dir)
    keep(run_dir, [*bodies, *([CheckEnded(name, ended, "died", 1.0)] if ended else [])])
    assert again(run_dir) == (2, 2, [])
