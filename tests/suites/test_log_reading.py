"""Kept outputs read again: journals and logs as the checks make them in a session, with tools and
loads that print what they are given; then one of the two is changed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
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
from acceptance.core.evidence import AnyBody, Observed, Scratch, ToolRan
from acceptance.core.limit import GIB
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Declared,
    Measured,
    RunEnded,
    RunStarted,
    Stopped,
)
from acceptance.core.repeat import SEGMENT
from acceptance.journal import reader
from acceptance.journal import run as journal_run
from acceptance.loads import asks
from acceptance.loads.collective import contract as collective
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import step_contract as step
from acceptance.machine.disk_link import LinkShare
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Disk, Inventory
from acceptance.machine.machine_file import DeclaredCpu, Machine
from acceptance.process.command import ProgramResult
from acceptance.run import log_reading, replay_session
from acceptance.run.replay_session import RecordedPrograms, ReplayFixtures
from acceptance.session.check import Check
from acceptance.session.context import SessionContext
from acceptance.session.loads import Part
from acceptance.suites.fixtures.disk_watch import DiskWatch
from acceptance.suites.fixtures.storage import LOADS
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
LOADS_S = {name: 1.0 for name in ("stress_ng", "cpu_gemm", "memory_bandwidth")}
LOADS_S |= {name: 1.0 for name in ("stressapptest", "memory_random", "gpu_burn_tensor")}
LOADS_S |= {"disk_self_test": 1.0, "gpu_burn_double": 1.0, **suite_box.LOADS_S}
LOADS_S |= {one: 2.0 for one in ("storage_kept", "storage_keep", *LOADS.values())}
LOADS_S |= {f"storage_{one}": 2.0 for one in ("memmap", "feed", "checkpoint", "full_cache")}
LOADS_S |= {"train_step": 1.0, "train_step_table": 1.0}
LOADS_S |= {f"power_{name}": 30.0 for name in ("step", "pulses", "ladder")}
# Checks that others are judged from.
BEFORE = {"storage.health": ("storage.smart_health",)}
BEFORE |= {"storage.self_test": ("storage.self_test_begun",)}
CHUNKS = 4  # of a cache that is filled
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


DUE_UUIDS = [one.uuid for one in DUE]


class Printing(RecordedPrograms):
    """Prints what each program of a check is given, and keeps it as a session does."""

    run_dir = Path()
    ran: list[ToolRan]

    def find(self, program: str, _package: str | None = None) -> str:
        return f"/opt/{program}"

    def is_next(self, folder: Path) -> bool:
        place = fio.file_argument(f"{folder}/")
        own = [one for one in self.ran if one.check == self._planned.id]
        return sum(place in " ".join(one.argv) for one in own) < CHUNKS

    def require_all(self) -> None:
        pass

    def run_stage(self, stage: Sequence[Part], **_how: object) -> tuple[ProgramResult, ...]:
        return tuple(self._started(part) for part in stage)

    def _started(self, part: Part) -> ProgramResult:
        visible = part.env.get("CUDA_VISIBLE_DEVICES", "").split(",")
        check = self._planned.id
        text = printed(check, part.argv, visible)
        name = f"logs/{check}-{1 + sum(one.check == check for one in self.ran)}.log"
        (self.run_dir / name).write_text(text)
        (self.run_dir / f"{name}.err").touch()
        self.ran.append(ToolRan(check, part.argv, 0, 1e5, name))
        return ProgramResult(part.argv, 0, text, "", 1e5)


def printed(check: str, argv: Sequence[str], visible: Sequence[str]) -> str:
    """What a program prints; the second GPU is slower."""
    if "acceptance.watch.power_watch" in argv:
        return watch_printed(argv)
    if (ask := asks.of_argv(argv)) is not None:
        text = ask_printed(ask, visible)
        first = visible[0] in ("", uuid(0))
        return text if first else text.replace('"value": 1.0', '"value": 0.9')
    makers: dict[str, Callable[[], str]] = {
        "deviceQuery": lambda: gpu_texts.device_query([1, 2]),
        "nvbandwidth": lambda: nvbandwidth_printed(argv, visible),
        "bandwidthTest": lambda: gpu_texts.bandwidth_test(0, 26.0 + DUE_UUIDS.index(*visible)),
        "p2pBandwidthLatencyTest": lambda: gpu_texts.p2p(2, pairs={(0, 1): 30.0}),
        "gpu-burn": lambda: gpu_texts.burn_as_asked(argv, [52.0, 51.0]),
        "nice": lambda: host_printed(argv),
        "fio": lambda: fio_printed(argv),
        "smartctl": lambda: smart_printed(check),
    }
    return makers.get(Path(argv[0]).name, lambda: host_printed(("nice", "-n", "10", *argv)))()


@functools.cache
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", LOADS_S)
        only = tuple(dict.fromkeys(name.partition("[")[0] for name in KNOWN))
        names = [one.name for one in DUE]
        return suite_box.planned(SEEN, names, only, "d", scratches=SCRATCHES)


def play(names: Sequence[str], run_dir: Path, made: Plan) -> tuple[list[ToolRan], list[Measured]]:
    """Run checks of a plan in a session whose programs print what they are given."""
    ran: list[ToolRan] = []
    context = SessionContext(
        mode="run",
        root="/",
        run_id="run-1",
        machine_id="machine-1",
        plan=replaced(made, checks=tuple(one for one in made.checks if one.id in names)),
        inventory=SEEN,
        scratches=SCRATCHES,
    )

    class Fixtures(ReplayFixtures):
        @pytest.fixture
        def programs(self, planned: Any) -> Printing:
            programs = Printing(planned, ())
            programs.run_dir, programs.ran = run_dir, ran
            self.running = programs
            return programs

        @pytest.fixture
        def earlier_programs(self) -> Callable[[str], list[ProgramResult]]:
            return lambda check: [
                ProgramResult(one.argv, 0, (run_dir / str(one.log)).read_text(), "", 1.0)
                for one in ran
                if one.check == check
            ]

        @pytest.fixture
        def disk_watch(self, check: Check) -> DiskWatch:
            """One that has seen a link."""
            found = DiskWatch((), (), Path("/"))
            found.least[DISK.component] = LinkShare(7.0, 7.0, Message("disk_link_unread"))
            return found

    found = replay_session.read(context, dict.fromkeys(names, ()), Fixtures)
    assert [found[name].trouble for name in names] == [None] * len(names)
    return ran, [one for name in names for one in found[name].measured]


@functools.cache
def played() -> tuple[list[ToolRan], list[Measured], dict[str, str]]:
    """All checks in one session: their programs, their values, and the logs by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        names = dict.fromkeys((*itertools.chain(*BEFORE.values()), *KNOWN))
        ran, measured = play([*names], folder, plan())
        return ran, measured, {str(one.log): (folder / str(one.log)).read_text() for one in ran}


def bodies_of(name: str, run_dir: Path, *, fresh: bool = False) -> list[AnyBody]:
    """The records of a check that ran and passed; its logs are in the run's folder.

    Of those that it is judged from there are the programs alone. A `fresh` one runs for this.
    """
    names = [*BEFORE.get(name, ()), name]
    if fresh:
        ran, measured = play(names, run_dir, plan())
    else:
        ran, measured, logs = played()
        ran = [one for one in ran if one.check in names]
        for one in ran:
            (run_dir / str(one.log)).write_text(logs[str(one.log)])
            (run_dir / f"{one.log}.err").touch()
    own = [one for one in measured if one.check == name]
    return [CheckStarted(name), *ran, *own, CheckEnded(name, "pass", "", 1.0)]


def keep(
    run_dir: Path,
    bodies: Sequence[AnyBody],
    again: Sequence[AnyBody] = (),
    made: Plan | None = None,
    seen: Inventory | None = None,
    declared: Declared | None = None,
) -> None:
    """Write a run of these checks; `again` are the records of a repeat. `made` is its plan."""
    root = machine_root(run_dir.parent / "root")
    names = {getattr(one, "check", "") for one in bodies}
    own = replaced(plan(), checks=tuple(one for one in plan().checks if one.id in names))
    start = RunStarted("run-1", made or own, {}, "machine-1", declared=declared)
    observed = msgspec.to_builtins(seen or SEEN, enc_hook=parts.encode, str_keys=True)
    head = [start, Observed(observed), *SCRATCHES]
    if again:
        write_segment(run_dir / SEGMENT, again, root)
    write_segment(run_dir / reader.SUPERVISOR, [*head, *bodies, RunEnded(True, "")], root)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    return folder


def again(run_dir: Path) -> tuple[int, int, list[str]]:
    """How many values are told by the logs, of how many, and the codes of what differs."""
    found = log_reading.read_again(journal_run.read(run_dir))
    return found.compared, found.measured, [one.code for one in found.differences]


def differences(run_dir: Path) -> list[str]:
    """What differs, in words."""
    found = log_reading.read_again(journal_run.read(run_dir))
    return [words.message(one) for one in found.differences]


TELLS = "the journal has {} = {} on {}, but its log has {}"
BAD_SUM = "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n"
WRONG_BLOCK = (
    "crc32c: verify failed at file /data/.rigproof/run-run-1/fio offset 3145728, length 1048576 "
    "(requested block: offset=3145728, length=1048576, flags=8)\n"
)
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
        "stress-ng: info:  [4543] succ",
        f"{BAD_SUM}stress-ng: info:  [4543] succ",
        TELLS.format("stress_ng_failures", "0", "cpu", "1"),
    ),
    "cpu.gemm[f64]": (10, "1.0}", "8.5}", TELLS.format("cpu_gemm_f64", "1", "cpu", "8.5")),
    "memory.bandwidth": (4, "1.0}", "7.5}", TELLS.format("memory_copy", "1", "memory", "7.5")),
    "memory.stressapptest": (
        3,
        "at 51126.00MB/s\n",
        "at 51127.00MB/s\n",
        TELLS.format("stressapptest_copy", "53.6094966", "memory", "53.6105452"),
    ),
    "memory.random": (2, "1.0}", "7.5}", TELLS.format("memory_random", "1", "socket0", "7.5")),
}


def first_log(run_dir: Path, name: str) -> Path:
    return run_dir / f"logs/{name}-1.log"


# The log that is changed of a check whose first one says how fast its disk is.
CHANGED = {"storage.write": 2, "storage.read": 7}
# Values that are the kernel's, in no log.
OF_KERNEL = {"storage.read": 1}


def test_every_check_that_can_be_replayed_is_here() -> None:
    """Without a machine file no program is named for cpu.cpuburn."""
    context = SessionContext(mode="run", root="/", plan=plan())
    starting = replay_session.read(context, {})
    gpu_burn = {f"burn.gpu_burn[{mode}]" for mode in ("tensor", "double")}
    assert {*starting} == {*KNOWN, "cpu.gemm[f32]", *gpu_burn}


# What one is judged from is changed in a run of its own.
GROUPS = [tuple(name for name in KNOWN if name not in BEFORE), tuple(BEFORE)]


def bodies_of_all(names: Sequence[str], run_dir: Path) -> list[AnyBody]:
    """The records of these checks, and their logs; of those that they are judged from as well."""
    return [body for name in names for body in bodies_of(name, run_dir)]


@pytest.mark.parametrize("names", GROUPS)
def test_every_value_of_a_check_is_told_by_its_logs(run_dir: Path, names: Sequence[str]) -> None:
    bodies = bodies_of_all(names, run_dir)
    keep(run_dir, bodies)
    values = Counter(one.check for one in bodies if isinstance(one, Measured))
    assert values == {name: KNOWN[name][0] + OF_KERNEL.get(name, 0) for name in names}
    told = sum(KNOWN[name][0] for name in names)
    assert again(run_dir) == (told, values.total(), [])


@pytest.mark.parametrize("names", GROUPS)
def test_a_value_that_was_changed_is_named(run_dir: Path, names: Sequence[str]) -> None:
    bodies = bodies_of_all(names, run_dir)
    last = {
        one.check: one
        for one in bodies
        if isinstance(one, Measured) and one.measurement != "disk_link_share"
    }
    changed = {id(one): replaced(one, value=(one.value or 0.0) + 1.0) for one in last.values()}
    keep(run_dir, [changed.get(id(one), one) for one in bodies])
    assert sorted(differences(run_dir)) == sorted(
        f"{name}: "
        + TELLS.format(one.measurement, f"{one.value + 1.0:.9g}", one.component, f"{one.value:.9g}")
        for name, one in last.items()
        if one.value is not None
    )


@pytest.mark.parametrize("names", GROUPS)
def test_a_log_that_was_changed_is_named(run_dir: Path, names: Sequence[str]) -> None:
    keep(run_dir, bodies_of_all(names, run_dir))
    for name in names:
        _, old, new, _ = KNOWN[name]
        log = run_dir / f"logs/{name}-{CHANGED.get(name, 1)}.log"
        text = log.read_text()
        assert old in text
        log.write_text(text.replace(old, new))
    assert {f"{name}: {KNOWN[name][3]}" for name in names} <= {*differences(run_dir)}


@pytest.mark.parametrize("text", ["", "no output of it", "\0"])
@pytest.mark.parametrize("names", GROUPS)
def test_a_log_that_is_not_understood_proves_nothing(
    run_dir: Path, names: Sequence[str], text: str
) -> None:
    keep(run_dir, bodies_of_all(names, run_dir))
    for name in names:
        first_log(run_dir, name).write_text(text)
    found = log_reading.read_again(journal_run.read(run_dir)).differences
    unproved = {one.values["check"] for one in found if one.code == "log_proves_nothing"}
    assert unproved == {*names}


STOPPED = (143, True)  # by us, at the end of its time


@pytest.mark.parametrize(
    ("value", "ended", "program", "codes"),
    [
        (0.0, STOPPED, "burnP6", []),
        (0.0, STOPPED, "/opt/burnP6", []),
        (1.0, (254, False), "burnP6", []),
        (1.0, STOPPED, "burnP6", ["log_differs"]),
        (0.0, (254, False), "burnP6", ["log_differs"]),
        (0.0, (0, False), "burnP6", ["log_proves_nothing"]),
        (0.0, (143, False), "burnP6", ["log_proves_nothing"]),
        (0.0, STOPPED, "burnK7", ["log_proves_nothing"]),
        (0.0, STOPPED, None, ["log_proves_nothing"]),
    ],
)
def test_a_burn_program_of_the_sites_is_judged_again_by_how_it_ended(
    run_dir: Path,
    value: float,
    ended: tuple[int, bool],
    program: str | None,
    codes: list[str],
) -> None:
    """The journal has the program that the machine file names, and how each copy of it ended."""
    seen = dataclasses.replace(SEEN, cpu=dataclasses.replace(SEEN.cpu, threads=2))
    file = Machine(1, "m", cpu=DeclaredCpu(cpuburn="burnP6"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", {"cpuburn": 8.0})
        made = suite_box.planned(seen, [], ("cpu.cpuburn",), "d", file)
    returncode, stopped = ended
    ran: list[AnyBody] = []
    for number in (1, 2):
        log = f"logs/cpu.cpuburn-{number}.log"
        for name in (log, f"{log}.err"):
            (run_dir / name).touch()
        ran += [Stopped("cpu.cpuburn")] * stopped
        ran.append(ToolRan("cpu.cpuburn", ("/opt/burnP6",), returncode, 8.0, log))
    journal = [
        CheckStarted("cpu.cpuburn"),
        *ran,
        Measured("cpu.cpuburn", "cpuburn_failures", parts.CPU, "count", value),
        CheckEnded("cpu.cpuburn", "fail" if value else "pass", "", 8.0),
    ]
    cpu = {} if program is None else {"cpu.cpuburn": program}
    keep(run_dir, journal, made=made, seen=seen, declared=Declared(cpu))
    compared, _, found = again(run_dir)
    assert (found[:1], compared) == (codes, codes != ["log_proves_nothing"])


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
    def said(_check: str, argv: Sequence[str], _visible: object) -> str:
        first = any(word.startswith("--filename=/data/") for word in argv)
        return text if first and f"--name={kind}" in argv else fio_printed(argv)

    monkeypatch.setitem(globals(), "printed", said)
    *found, _ = bodies_of(name, run_dir, fresh=True)
    keep(run_dir, [*found, CheckEnded(name, "fail", "", 1.0)])
    faults = [one for one in found if isinstance(one, Measured) and one.unit == "count"]
    assert [one.value for one in faults if one.value] == [1.0]
    assert again(run_dir) == (values, values + OF_KERNEL.get(name, 0), [])


NVBANDWIDTH, GEMM, BURN = "link.host_copies", "compute.gemm_together", "burn.gpu_burn[float]"
BANDWIDTH, STRESS = "memory.bandwidth", "cpu.stress_ng"
Bodies = list[Any]


def ran_as(change: Callable[[ToolRan], ToolRan | None]) -> Callable[[Bodies], Bodies]:
    """The records with each program's changed, or left out."""

    def changed(bodies: Bodies) -> Bodies:
        made = (change(one) if isinstance(one, ToolRan) else one for one in bodies)
        return [one for one in made if one is not None]

    return changed


def without(word: str) -> Callable[[Bodies], Bodies]:
    """The records without the programs whose command line has this."""
    return ran_as(lambda one: None if word in str(one.argv) else one)


def values_as(change: Callable[[Measured], Measured]) -> Callable[[Bodies], Bodies]:
    """The records with each value's changed."""
    return lambda bodies: [change(one) if isinstance(one, Measured) else one for one in bodies]


def first_again(bodies: Bodies) -> Bodies:
    """The records with the first value a second time."""
    return [*bodies[:-1], next(one for one in bodies if isinstance(one, Measured)), bodies[-1]]


def asked(text: str, other: str) -> Callable[[Bodies], Bodies]:
    """The records with the first program that was asked for this asked for something else."""
    left = [text]

    def changed(one: ToolRan) -> ToolRan:
        if not (left and text in " ".join(one.argv)):
            return one
        left.clear()
        return replaced(one, argv=tuple(word.replace(text, other) for word in one.argv))

    return ran_as(changed)


def elsewhere(one: Measured) -> Measured:
    """A value of gpu1, as one of a GPU that is not there."""
    moved = (one.measurement, one.component) == ("copy_h2d", Gpu(1))
    return replaced(one, component=Gpu(2)) if moved else one


def exchanged(one: Measured) -> Measured:
    """Two values that are in the logs, each with the other's GPU."""
    rates = {Gpu(0): 0.9, Gpu(1): 1.0}
    own = one.measurement == "gemm_bf16_short"
    return replaced(one, value=rates[one.component]) if own else one


UNPROVED_CODE = ["log_proves_nothing"]


@pytest.mark.parametrize(
    ("name", "change", "compared", "measured", "codes"),
    [
        ("storage.write", without("more"), 0, 4, UNPROVED_CODE),
        ("storage.feed", without("disk:sdb"), 0, 6, UNPROVED_CODE),
        (BANDWIDTH, without(""), 0, 4, ["log_none"]),
        (GEMM, values_as(exchanged), 70, 70, ["log_differs"] * 2),
        (NVBANDWIDTH, values_as(elsewhere), 13, 14, ["log_lacks", "log_tells_more"]),
        (NVBANDWIDTH, first_again, 15, 15, ["log_lacks"]),
        (BANDWIDTH, lambda bodies: [*bodies[:2], *bodies[1:]], 4, 4, UNPROVED_CODE),
        # A check that proved nothing left nothing out.
        (BANDWIDTH, lambda bodies: bodies[:-3], 2, 2, []),
        (
            BANDWIDTH,
            lambda bodies: [*bodies[:-3], CheckEnded(BANDWIDTH, "error", "died", 1.0)],
            *(2, 2, []),
        ),
        *(
            (STRESS, ran_as(lambda one, log=log: replaced(one, log=log)), 0, 1, [code])
            for log, code in (
                ("logs/\0.log", "log_unread"),
                ("/etc/passwd", "log_elsewhere"),
                ("../elsewhere.log", "log_elsewhere"),
                ("", "log_unread"),
            )
        ),
        *(
            (BANDWIDTH, ran_as(lambda one, argv=argv: replaced(one, argv=argv)), 0, 4, [code])
            for argv, code in (
                ((), "log_proves_nothing"),
                (("",), "log_proves_nothing"),
                (("python", "-m", "acceptance.loads", "{"), "log_proves_nothing"),
                (("\0",), "log_proves_nothing"),
            )
        ),
        (BANDWIDTH, asked('"seconds":1.0', '"seconds":1.5'), 0, 4, UNPROVED_CODE),
        (BANDWIDTH, asked('"load":"memory_bandwidth"', '"load":"no_load"'), 0, 4, UNPROVED_CODE),
        ("link.peer_copies", asked("memcpy_read_ce", "memcpy_read_sm"), 0, 5, UNPROVED_CODE),
        ("link.p2p", asked("p2pBandwidthLatencyTest", "nvbandwidth"), 0, 9, UNPROVED_CODE),
        ("storage.smart_health", asked("/dev/nvme0n1", "/dev/nvme1n1"), 0, 3, UNPROVED_CODE),
        ("storage.write", asked("/data/", "/more: than one/"), 0, 4, UNPROVED_CODE),
        (STRESS, asked("--verify", "--no-verify"), 0, 1, UNPROVED_CODE),
    ],
)
def test_a_journal_that_is_not_of_its_logs(
    run_dir: Path,
    name: str,
    change: Callable[[Bodies], Bodies],
    compared: int,
    measured: int,
    codes: list[str],
) -> None:
    bodies = bodies_of(name, run_dir)
    changed = change([*bodies])
    assert changed != bodies
    keep(run_dir, changed)
    assert again(run_dir) == (compared, measured, codes)


def test_a_log_of_another_gpu_proves_nothing(run_dir: Path) -> None:
    keep(run_dir, bodies_of(GEMM, run_dir))
    first_log(run_dir, GEMM).write_text((run_dir / f"logs/{GEMM}-2.log").read_text())
    assert again(run_dir) == (21, 70, UNPROVED_CODE)


@pytest.mark.parametrize("recorded", ["died_gpu0_mid_run", "faulty_gpu1_errors_reset"])
def test_a_program_that_failed_under_a_check_that_passed_is_named(
    run_dir: Path, recorded: str
) -> None:
    """Also where nothing that its log tells is due."""
    bodies = bodies_of(BURN, run_dir)
    first_log(run_dir, BURN).write_text((RECORDED / f"gpu-burn/{recorded}.txt").read_text())
    keep(run_dir, [one for one in bodies if not isinstance(one, Measured)])
    assert "log_tells_fault" in again(run_dir)[2]


def test_a_load_that_found_wrong_results_under_a_check_that_passed_is_named(run_dir: Path) -> None:
    keep(run_dir, bodies_of("vram.patterns", run_dir))
    log = first_log(run_dir, "vram.patterns")
    first, rest = log.read_text().split("\n", 1)
    log.write_text("\n".join([first, json.dumps({"miscompare": one_bit(3)}), rest]))
    assert "log_tells_fault" in again(run_dir)[2]


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
    ("spoil", "code"),
    [
        (remove, "log_unread"),
        (loop, "log_unread"),
        (outside, "log_elsewhere"),
        (folder, "log_unread"),
    ],
)
def test_a_log_that_cannot_be_read_is_named(
    run_dir: Path, spoil: Callable[[Path], None], error: str, code: str
) -> None:
    keep(run_dir, bodies_of("cpu.stress_ng", run_dir))
    spoil(run_dir / f"logs/cpu.stress_ng-1.log{error}")
    assert again(run_dir) == (0, 1, [code])


@pytest.mark.parametrize(
    ("before", "how"),
    [
        ([], "did not end within"),
        ([Stopped("cpu.stress_ng", ended=True)], "ended by signal 15"),
        ([Stopped("cpu.stress_ng")], "did not end within"),
    ],
)
def test_a_program_that_was_ended_is_told_from_one_that_somebody_else_ended(
    run_dir: Path, before: list[AnyBody], how: str
) -> None:
    first, ran, *others = bodies_of("cpu.stress_ng", run_dir)
    assert isinstance(ran, ToolRan)
    keep(run_dir, [first, *before, replaced(ran, returncode=-15), *others])
    assert how in differences(run_dir)[0]


def test_a_check_that_this_version_does_not_know_is_named(run_dir: Path) -> None:
    name = "memory.bandwidth_once"
    bodies: Any = bodies_of(BANDWIDTH, run_dir)
    (own,) = (one for one in plan().checks if one.id == BANDWIDTH)
    made = replaced(plan(), checks=(replaced(own, id=name),))
    keep(run_dir, [replaced(one, check=name) for one in bodies], made=made)
    assert again(run_dir) == (0, 4, ["log_of_unknown"])


def test_a_plan_and_an_inventory_that_mean_nothing_prove_nothing(run_dir: Path) -> None:
    """A stranger's journal: its plan has no time for a load, and checks that there are not."""
    (own,) = (one for one in plan().checks if one.id == STRESS)
    strange = [replaced(own, id=one) for one in ("", "..", "conftest.x", "cpu.stress_ng[", "\0.x")]
    made = replaced(plan(), loads_s={}, checks=(own, *strange))
    keep(run_dir, bodies_of(STRESS, run_dir), made=made)
    assert again(run_dir) == (0, 1, UNPROVED_CODE)


def test_the_variables_of_pytest_change_nothing(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --no-such-option")
    keep(run_dir, bodies_of(BANDWIDTH, run_dir))
    assert again(run_dir) == (4, 4, [])


def test_a_repeat_is_held_against_its_own_logs(run_dir: Path) -> None:
    bodies = bodies_of(BANDWIDTH, run_dir)
    log = run_dir / "logs/repeat.log"
    log.write_text(first_log(run_dir, BANDWIDTH).read_text().replace("1.0}", "6.5}", 1))
    (run_dir / "logs/repeat.log.err").touch()
    keep(run_dir, bodies, ran_as(lambda one: replaced(one, log="logs/repeat.log"))(bodies))
    assert again(run_dir) == (8, 8, ["log_differs"])


@pytest.mark.parametrize("name", ["memory.bandwidth", "storage.keep", "storage.full_cache"])
def test_nothing_is_started_and_nothing_is_written(
    run_dir: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = run_dir.parent / "data"
    (home / ".rigproof/run-run-1").mkdir(parents=True)
    (home / ".rigproof/run-run-1/full-0").write_text("the person's own")
    here = tuple(replaced(one, path=str(home), disks=("sda",)) for one in SCRATCHES[:1])
    monkeypatch.setitem(globals(), "SCRATCHES", (*here, *SCRATCHES[1:]))
    keep(run_dir, bodies_of(name, run_dir, fresh=True))

    def files() -> dict[str, tuple[float, int]]:
        found = [(path, path.stat()) for path in run_dir.parent.rglob("*")]
        return {str(path): (about.st_mtime, about.st_size) for path, about in found}

    def refuse(*_given: object, **_named: object) -> None:
        raise AssertionError("nothing is started")

    before = files()
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    compared, measured, told = again(run_dir)
    assert (compared, told) == (measured, [])
    assert files() == before


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
    keep(run_dir, bodies_of("link.host_copies", run_dir, fresh=True))
    assert again(run_dir) == (14, 14, [])
    log = run_dir / "logs/link.host_copies-4.log"
    log.write_text(log.read_text().replace("25.2", "25.3"))
    told = f"link.host_copies: {TELLS.format('copy_h2d', '25.2', 'gpu1', '25.3')}"
    assert told in differences(run_dir)
