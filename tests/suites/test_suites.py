"""The checks as functions: what they journal of a machine that is made of
files, without pytest around them.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpu_machine
import journals
import msgspec
import pytest
from cases import each
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.limit import GIB
from acceptance.core.message import Gap, Message, after_fault, not_offered
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Component, Gpu, Part
from acceptance.core.record import Measured, Skipped
from acceptance.diagnosis.series import Series
from acceptance.expect import gpu_limits
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Dimm, Disk, EmptySlot, Inventory, NvmlAnswer, NvmlDevice
from acceptance.machine.machine_file import Machine
from acceptance.observe import draft, kernel_counters
from acceptance.observe import storage as observe_storage
from acceptance.observe.inventory import observe
from acceptance.observe.nvml_call import GPU_IS_LOST
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check
from acceptance.session.tools import Outputs
from acceptance.suites import cpu, gpu, inventory, kernel_log, memory, storage
from acceptance.suites.fixtures.host_tools import Coverage, coverage
from acceptance.tools import stress_ng
from acceptance.tools.proof import ToolError, prove
from acceptance.tools.reading import Reading, ToolOutput
from acceptance.wording import words
from acceptance.wording.errors import WordedError

HEALTHY = """\
stress-ng: info:  [1] setting to a 10 second run per stressor
stress-ng: info:  [1] dispatching hogs: 2 cpu
stress-ng: metrc: [1] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [1] cpu               10611     10.00     19.98      0.00      3535.83        1773.96
stress-ng: info:  [1] successful run completed in 10.00s
"""  # noqa: E501
FAULTY = (
    "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n" + HEALTHY
)
SHEETS = gpu_limits.sheets()


class Recorder(Check):
    """Stands for `check`: remembers every call."""

    def __init__(self) -> None:
        self.readings: dict[str, dict[str, float]] = {}
        self.skipped: dict[str, dict[str, Gap]] = {}
        self.notes: dict[str, dict[str, str | None]] = {}

    def components(self, _measurement: str) -> frozenset[Component]:
        """No disk is declared as new."""
        return frozenset()

    def __call__(
        self,
        measurement: str,
        readings: Mapping[str, float],
        *,
        skipped: Mapping[str, Gap] | None = None,
        serials: Mapping[str, str | None] | None = None,
        notes: Mapping[str, str | None] | None = None,
        follows: str | None = None,
    ) -> None:
        self.readings.setdefault(measurement, {}).update(readings)
        missing = {
            component: why
            for component, why in (skipped or {}).items()
            if component not in readings
        }
        self.skipped.setdefault(measurement, {}).update(missing)
        self.notes.setdefault(measurement, {}).update(notes or {})


@pytest.fixture
def check() -> Any:
    return Recorder()


def machine(**tables: Any) -> Machine:
    return msgspec.convert({"schema": 1, "name": "m", **tables}, Machine)


def known(index: int, address: str) -> NvmlDevice:
    return NvmlDevice(
        index, f"GPU-{index}", "NVIDIA GeForce RTX 4090", address, None, None, 1, None, None
    )


def look(tree: Tree, *devices: NvmlDevice, dmi: tuple[str, str, int] = NO_DMI) -> Inventory:
    answer = NvmlAnswer("570.86.15", "12.8", devices, None, None)
    programs = Programs(
        nvml=completed(msgspec.json.encode(answer).decode()), dmidecode=completed(*dmi)
    )
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.cpus([(0, 2), (1, 3)])
    tree.memory(64)
    return tree


# --- what a tool's run proves ---


def ran(
    stdout: str = HEALTHY, returncode: int = 0, seconds: float = 10.0, **more: Any
) -> command.ProgramResult:
    return command.ProgramResult(("stress-ng",), returncode, stdout, "", seconds, **more)


@pytest.mark.parametrize(
    ("done", "outcome"),
    [
        (ran(), "pass"),
        (ran(FAULTY), "fail"),
        (ran(FAULTY, 7, 0.1), "fail"),
        (ran(FAULTY, truncated=True), "fail"),
    ],
)
def test_proven(done: command.ProgramResult, outcome: str) -> None:
    assert prove("stress-ng", done, stress_ng.parse, 10).outcome == outcome


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (ran(returncode=7), "stress-ng ended with exit code 7 after 10.0 s; it last said: "),
        (ran(returncode=-11), "ended by signal 11"),
        (ran(timed_out=True, returncode=143), "did not end within its time"),
        (ran(truncated=True), "printed more than is kept"),
        (ran(seconds=9.4), "stress-ng ended after 9.4 s and was to load the machine for 10 s"),
        (
            ran("", returncode=1),
            "exit code 1 after 10.0 s; stress-ng: the text holds no line of stress-ng",
        ),
        (ran(HEALTHY.replace("10611", "    0")), "did no work"),
    ],
)
def test_not_proven(done: command.ProgramResult, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        prove("stress-ng", done, stress_ng.parse, 10)


# --- inventory ---


def test_what_the_kernel_does_not_show_is_no_difference(tree: Tree, check: Any) -> None:
    seen = look(tree)
    seen = dataclasses.replace(seen, cpu=dataclasses.replace(seen.cpu, model=None, governor=None))
    inventory.test_cpu(seen, machine(cpu={"model": "EPYC", "governor": "performance"}), check)
    assert check.readings["cpu_model_differs"] == check.readings["cpu_governor_differs"] == {}
    assert (
        set(check.skipped["cpu_model_differs"])
        == set(check.skipped["cpu_governor_differs"])
        == {CPU}
    )


def test_the_processor_is_counted_and_named(tree: Tree, check: Any) -> None:
    seen = look(tree)
    inventory.test_cpu(seen, machine(cpu={"model": "another", "governor": " PERFORMANCE "}), check)
    assert check.readings["cpu_cores"] == {CPU: 2.0}
    assert check.readings["cpu_threads"] == {CPU: 4.0}
    assert check.readings["cpu_model_differs"] == {CPU: 1.0}
    assert check.readings["cpu_governor_differs"] == {CPU: 0.0}
    assert words.text(check.notes["cpu_model_differs"][CPU]) == f"found {seen.cpu.model}"


def test_unread_modules_are_skips_with_the_reason(tree: Tree, check: Any) -> None:
    seen = look(tree)
    inventory.test_memory(seen, check)
    inventory.test_dimms(
        seen, machine(memory={"dimm": [{"slot": "A1", "size_gib": 32, "part_number": "P"}]}), check
    )
    assert check.readings["memory_total"] == {MEMORY: 64.0}
    for name, component in (
        ("dimm_count", MEMORY),
        ("dimm_present", Part("dimm", "A1")),
        ("dimm_part_number_differs", Part("dimm", "A1")),
    ):
        assert check.readings[name] == {}
        assert check.skipped[name] == {component: not_offered(seen.memory.dimms_unread or "")}


def test_channels_that_are_empty_or_unequal(tree: Tree, check: Any) -> None:
    seen = look(tree)
    modules = tuple(
        Dimm(slot, size << 30, "DDR5", 5600, 5200, None, None, None, 64, 64, None)
        for slot, size in (("DIMM_A1", 32), ("DIMM_B1", 16))
    )
    empty = (EmptySlot("DIMM_C1", None),)
    memory = dataclasses.replace(seen.memory, dimms=modules, empty_slots=empty)
    inventory.test_memory(dataclasses.replace(seen, memory=memory), check)
    assert check.readings["memory_channels"] == {MEMORY: 2.0}
    assert "DIMM_C" in words.text(check.notes["memory_channels"][MEMORY])
    assert check.readings["memory_channels_unequal"] == {MEMORY: 1.0}
    assert "DIMM_B (16 GiB)" in words.text(check.notes["memory_channels_unequal"][MEMORY])
    unsized = (modules[0], dataclasses.replace(modules[1], size_bytes=None))
    fresh = type(check)()
    inventory.test_memory(
        dataclasses.replace(seen, memory=dataclasses.replace(memory, dimms=unsized)), fresh
    )
    assert fresh.readings["memory_channels_unequal"] == {}
    assert fresh.skipped["memory_channels_unequal"] == {
        MEMORY: not_offered(Message("module_size_untold"))
    }


def test_disks_and_links(tree: Tree, check: Any) -> None:
    tree.disk("sda", "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0")
    tree.nic("enp5s0")
    declared = machine(
        disk=[{"model": "nobody's"}],
        network=[{"name": "enp5s0", "speed_mbps": 2500}, {"name": "enp9s0", "speed_mbps": 1}],
    )
    inventory.test_disks(look(tree), declared, check)
    inventory.test_network(look(tree), declared, check)
    assert check.readings["disk_count"] == {Part("declared-disk", "1"): 0.0}
    assert "sda" in words.text(check.notes["disk_count"][Part("declared-disk", "1")])
    assert "None" not in words.text(check.notes["disk_count"][Part("declared-disk", "1")])
    assert check.readings["link_up"] == {Part("net", "enp5s0"): 1.0, Part("net", "enp9s0"): 0.0}
    assert check.readings["link_speed"] == {Part("net", "enp5s0"): 2500.0}
    assert check.skipped["link_speed"] == {Part("net", "enp9s0"): after_fault(Message("link_down"))}


def disk(
    name: str,
    size_gb: int,
    serial: str | None = None,
    model: str = "SSD 990",
    firmware: str | None = None,
) -> Disk:
    return Disk(name, model, serial, size_gb * 10**9, "nvme", "nvme", firmware)


@pytest.mark.parametrize(
    ("declared", "disks", "counts"),
    [
        ([{}, {}], [disk("a", 1000)], [1, 0]),
        ([{}, {}], [disk("a", 1000), disk("b", 1000)], [1, 1]),
        ([{"size_gb": 1000}, {"size_gb": 2000}], [disk("a", 2000)], [0, 1]),
        ([{"size_gb": 1000}, {"size_gb": 2000}], [disk("a", 1000), disk("b", 2000)], [1, 1]),
        ([{"size_gb": 1000}, {"size_gb": 2000}], [disk("a", 2000), disk("b", 1000)], [1, 1]),
        ([{"size_gb": 1000}, {"size_gb": 2000}], [disk("a", 1000), disk("b", 1000)], [1, 0]),
        ([{}, {"size_gb": 1000}], [disk("a", 1000), disk("b", 500)], [1, 1]),
        (
            [{"size_gb": 1000}, {"serial": "S1"}],
            [disk("a", 1000, "S1"), disk("b", 1000, "S2")],
            [1, 1],
        ),
        ([{"size_gb": 1000}, {"serial": "S1"}], [disk("a", 1000, "S1")], [0, 1]),
        ([{"count": 2}, {"count": 2}], [disk("a", 1000), disk("b", 1000), disk("c", 1000)], [2, 1]),
        ([{"count": 2}], [disk("a", 1000), disk("b", 1000, model="other")], [1]),
        ([{"firmware": "F2"}], [disk("a", 1000, firmware="F1")], [0]),
        ([{"firmware": "F2"}], [disk("a", 1000)], [0]),
        ([{"firmware": "F1", "count": 2}, {}], [disk("a", 1000, firmware="F1")], [1, 0]),
        (
            [{}, {"firmware": "F1"}],
            [disk("a", 1000, firmware="F1"), disk("b", 1000, firmware="F2")],
            [1, 1],
        ),
        (  # the larger one is needed by the second
            [{"firmware": "F1"}, {"size_gb": 2000}],
            [disk("a", 2000, firmware="F1"), disk("b", 1000, firmware="F1")],
            [1, 1],
        ),
        ([{"count": 10**9}], [disk("a", 1000), disk("b", 1000)], [2]),
    ],
)
def test_no_disk_stands_for_two_declarations(
    tree: Tree, check: Any, declared: list[dict[str, Any]], disks: list[Disk], counts: list[int]
) -> None:
    seen = dataclasses.replace(look(tree), disks=tuple(disks))
    inventory.test_disks(
        seen, machine(disk=[{"model": "SSD 990", **one} for one in declared]), check
    )
    assert check.readings["disk_count"] == {
        Part("declared-disk", str(n)): count for n, count in enumerate(counts, start=1)
    }


def test_a_draft_of_two_sizes_of_one_model_passes_and_notices_a_dead_disk(
    tree: Tree, check: Any
) -> None:
    both = (disk("a", 2000), disk("b", 1000))
    seen = dataclasses.replace(look(tree), disks=both)
    drafted = msgspec.convert(tomllib.loads(draft.render(seen)), Machine)
    inventory.test_disks(seen, drafted, check)
    assert check.readings["disk_count"] == {
        Part("declared-disk", "1"): 1.0,
        Part("declared-disk", "2"): 1.0,
    }
    inventory.test_disks(dataclasses.replace(seen, disks=both[:1]), drafted, check)
    assert check.readings["disk_count"] == {
        Part("declared-disk", "1"): 1.0,
        Part("declared-disk", "2"): 0.0,
    }


def test_a_system_is_compared_as_text(tree: Tree, check: Any) -> None:
    inventory.test_system(look(tree), None, check)
    assert check.readings == {}
    inventory.test_system(look(tree), machine(system={"board": "X13", "driver": "1"}), check)
    assert set(check.skipped["board_differs"]) == set(check.skipped["driver_differs"]) == {SYSTEM}
    assert "kernel_differs" not in check.readings


# --- GPUs ---


def test_gpus_that_are_there(tree: Tree, check: Any) -> None:
    tree.gpu(0x01)
    tree.gpu(0x41)
    tree.driver(nodes=("nvidia0", "nvidia1", "nvidiactl"))
    seen = look(tree, known(0, "0000:01:00.0"), known(1, "0000:41:00.0"))
    gpu.test_present(seen, gpus(seen), check)
    both = {Gpu(0): 1.0, Gpu(1): 1.0}
    assert check.readings == {
        "gpu_count": {MACHINE: 2.0},
        "gpu_answers": both,
        "gpu_driver_bound": both,
        "gpu_in_nvml": both,
    }
    declared = machine(
        gpu=[
            {
                "model": "NVIDIA GeForce RTX 4090",
                "count": 2,
                "pci_id": "10de:2684",
                "link_width": 16,
                "link_gen": 4,
            }
        ]
    )
    gpu.test_identity(seen, gpus(seen), declared, SHEETS, check)
    assert (
        check.readings["gpu_model_differs"]
        == check.readings["gpu_pci_id_differs"]
        == {Gpu(0): 0.0, Gpu(1): 0.0}
    )
    assert check.readings["gpu_link_width_max"] == {Gpu(0): 16.0, Gpu(1): 16.0}
    assert check.readings["gpu_link_gen_max"] == {Gpu(0): 4.0, Gpu(1): 4.0}


def test_the_port_that_a_vm_shows_does_not_make_a_card_lesser(check: Any) -> None:
    seen = gpu_machine.machine(
        gpu_machine.device(0),
        gpu_machine.device(1, traits=dataclasses.replace(gpu_machine.TRAITS, virtualised=True)),
    )
    narrow = [
        dataclasses.replace(one, slot_max_link_speed_gts=2.5, slot_max_link_width=1)
        for one in seen.pci
    ]
    seen = dataclasses.replace(seen, pci=tuple(narrow))
    gpu.test_identity(seen, gpus(seen), machine(gpu=[{"count": 2}]), SHEETS, check)
    assert check.readings["gpu_link_width_max"] == {Gpu(0): 1.0, Gpu(1): 16.0}
    assert check.readings["gpu_link_gen_max"] == {Gpu(0): 1.0, Gpu(1): 4.0}


def test_a_model_is_the_one_that_its_declared_name_means(tree: Tree) -> None:
    tree.gpu(0x01)
    tree.gpu(0x41)
    seen = look(tree, known(0, "0000:01:00.0"), known(1, "0000:41:00.0"))
    for name, differs in (
        ("4090", 0.0),
        ("RTX4090", 0.0),
        ("GeForce RTX 4090", 0.0),
        ("3090", 1.0),
        ("4090 Laptop", 1.0),
        ("H100", 1.0),
    ):
        check = Recorder()
        declared = machine(gpu=[{"model": name, "count": 2}])
        gpu.test_identity(seen, gpus(seen), declared, SHEETS, check)  # type: ignore[arg-type]
        assert check.readings["gpu_model_differs"] == {Gpu(0): differs, Gpu(1): differs}, name


def test_gpus_that_are_sick(tree: Tree, check: Any) -> None:
    tree.gpu(0x01, dead=True)
    tree.gpu(0x41, driver="nouveau")
    seen = look(tree)
    with pytest.raises(
        WordedError, match="gpu1: not to be tested as the machine is set up now\nPCI bus: "
    ):
        gpu.test_present(seen, gpus(seen), check)
    assert check.readings["gpu_answers"] == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert check.readings["gpu_driver_bound"] == {Gpu(0): 1.0}, (
        "what is not set up is no fault of the card"
    )
    assert check.readings["gpu_in_nvml"] == {Gpu(0): 0.0}
    told = words.text(check.notes["gpu_count"][MACHINE]).split("\n")
    assert [line.split(":")[0] for line in told] == [
        "PCI bus",
        "kernel driver",
        "device nodes",
        "NVML",
    ]
    assert " -> " in told[0]
    gpu.test_identity(seen, gpus(seen), None, SHEETS, check)
    gpu.test_identity(seen, gpus(seen), machine(gpu=[{"model": "RTX", "count": 2}]), SHEETS, check)
    assert check.readings["gpu_model_differs"] == {}, (
        "a model that nobody told is not another model"
    )
    assert set(check.skipped["gpu_model_differs"]) == {Gpu(0), Gpu(1)}


def test_a_gpu_that_nvml_has_lost_is_not_present(tree: Tree, check: Any) -> None:
    tree.gpu(0x01)
    tree.gpu(0x41)
    tree.driver(nodes=("nvidia0", "nvidia1", "nvidiactl"))
    lost = dataclasses.replace(
        known(0, "0000:01:00.0"), error="NVML says: GPU is lost", error_code=GPU_IS_LOST
    )
    seen = look(tree, lost, known(1, "0000:41:00.0"))
    gpu.test_present(seen, gpus(seen), check)
    assert check.readings["gpu_in_nvml"] == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert "GPU is lost" in words.text(check.notes["gpu_in_nvml"][Gpu(0)])
    assert "gpu1" not in check.notes["gpu_in_nvml"]


def test_gpus_that_a_layer_shares_out_are_not_missing(tree: Tree, check: Any) -> None:
    seen = look(tree, known(0, "0000:01:00.0"))
    with pytest.raises(WordedError, match="run on the machine itself"):
        gpu.test_present(seen, (), check)
    assert check.readings == {}


def test_only_the_gpus_that_are_tested_are_looked_at(tree: Tree, check: Any) -> None:
    tree.gpu(0x01, dead=True)
    tree.gpu(0x41)
    seen = look(tree, known(1, "0000:41:00.0"))
    gpu.test_present(seen, gpus(seen)[1:], check)
    assert check.readings["gpu_count"] == {MACHINE: 2.0}
    assert check.readings["gpu_answers"] == check.readings["gpu_in_nvml"] == {Gpu(1): 1.0}
    declared = machine(
        gpu=[{"model": "RTX", "count": 1}, {"model": "NVIDIA GeForce RTX 4090", "count": 1}]
    )
    gpu.test_identity(seen, gpus(seen)[1:], declared, SHEETS, check)
    assert check.readings["gpu_model_differs"] == {Gpu(1): 0.0}


# --- loads ---


def tool(outcome: Any, *readings: tuple[str, float]) -> ToolOutput:
    return ToolOutput(
        "stressapptest",
        outcome,
        "said so",
        tuple(Reading(name, "count", {MEMORY: value}) for name, value in readings),
    )


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        (
            tool(
                "pass",
                ("stressapptest_incidents", 0),
                ("stressapptest_errors", 0),
                ("stressapptest_copy", 40),
                ("stressapptest_tested", 4),
                ("stressapptest_time", 10),
            ),
            0.0,
        ),
        (tool("fail"), 1.0),
        (tool("fail", ("stressapptest_incidents", 5)), 5.0),
    ],
)
def test_stressapptest(output: ToolOutput, errors: float) -> None:
    said: list[Any] = []
    seen = gpu_machine.machine()
    free = dataclasses.replace(seen.memory, available_bytes=16 << 30)
    seen = dataclasses.replace(seen, memory=free)
    runs = SimpleNamespace(run=lambda *_, **__: Outputs({MEMORY: output}))
    names = {"stressapptest_errors": "count", "stressapptest_copy": "GB/s", "memory_tested": "GiB"}
    planned = journals.check("memory", *(journals.due(n, MEMORY, u) for n, u in names.items()))
    written: list[Any] = []
    given: Any = runs, {"stressapptest": 10.0}, 4.0, seen, said.append
    memory.test_stressapptest(*given, Check(planned, (), written.append))
    values = {one.measurement: one.value for one in written if isinstance(one, Measured)}
    figures = {"stressapptest_copy": 40.0, "memory_tested": 4.0}
    assert values == {"stressapptest_errors": errors, **({} if errors else figures)}
    skips = [one.measurement for one in written if isinstance(one, Skipped)]
    assert skips == (list(figures) if errors else [])
    # 4 of 16 GiB; 20 GB/s are copied for 10 s, 46.6 times as much as was filled
    told = (
        "RAM: 4 GiB filled, 25% of the 16 GiB that were free; each block was moved and compared 47 "
        "times in 10 s at 40 GB/s; to move and compare all free RAM once at that rate takes "
        "0.859 s, after it is filled"
    )
    assert [words.text(one) for one in said] == ([] if errors else [told])


@pytest.mark.parametrize(
    ("codes", "failures"),
    [((0, 0), 0.0), ((0, 254), 1.0), ((0, 3), None), ((3, -11), 1.0)],
)
def test_the_worst_copy_of_a_burn_program_counts(
    codes: tuple[int, int], failures: float | None
) -> None:
    """Those that end with 0 were stopped at the end of their time."""
    done = [command.ProgramResult(("burnP6",), code, "", "", 9.0, not code) for code in codes]
    runs = cpu.cpuburn_output("burnP6", done)
    assert (None if runs.failed else float(CPU in runs.faulty)) == failures
    if failures is None:
        with pytest.raises(ToolError, match="cpuburn"):
            runs.raise_failed()


def test_how_much_of_the_ram_a_test_covers() -> None:
    # 10 GiB/s are read and 10 written
    found = coverage(filled_gib=100.0, free_gib=400.0, rate_gbs=20 * GIB / 1e9, seconds=60.0)
    assert found == Coverage(share=0.25, times=pytest.approx(6.0), whole_s=pytest.approx(40.0))


@pytest.mark.parametrize("name", ["filled_gib", "free_gib", "rate_gbs", "seconds"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_coverage_of_nothing_is_refused(name: str, value: float) -> None:
    figures = {"filled_gib": 1.0, "free_gib": 2.0, "rate_gbs": 3.0, "seconds": 4.0}
    with pytest.raises(ValueError, match="no memory test fills, moves or lasts"):
        coverage(**{**figures, name: value})


def test_cooling_reads_the_telemetry(check: Any) -> None:
    cpu.test_cooling({}, (), check)
    assert check.readings == {}
    warm = Series("cpu_temperature_c", CPU, "degC", ((0.0, 40.0), (1.0, 71.0), (2.0, 60.0)))
    counter = Series("cpu_throttle_count", CPU, "count", ((0.0, 7.0), (2.0, 9.0)))
    cpu.test_cooling({"cpu_temperature_c": warm, "cpu_throttle_count": counter}, (), check)
    assert check.readings == {"cpu_temperature": {CPU: 71.0}, "cpu_throttle_events": {CPU: 2.0}}


def series(name: str, moments: Iterable[float]) -> Series:
    return Series(name, CPU, "degC", tuple((moment, 50.0) for moment in moments))


@pytest.mark.parametrize(
    ("moments", "ended", "told"),
    [
        (range(101), 100, None),
        (range(0, 101, 2), 100, None),
        (range(96), 100, None),
        (range(95), 100, "was last read 6 s before the end"),
        (range(0, 101, 3), 100, "has 34 samples of a run of 100 s"),
        ([0, 100] * 60, 100, "has 2 samples"),  # low, mean and high of one moment are one sample
        (range(60, 101), 100, "has 41 samples"),  # silent at first is as bad
        ([*range(3600), *range(3610, 7200, 11)], 7200, None),  # thinned
        (range(1, 1000), 7200, "has 999 samples of a run of 7200 s"),
        ([0], 0, None),
    ],
)
def test_a_sensor_covers_the_run_or_not(
    moments: Iterable[float], ended: float, told: str | None
) -> None:
    watched = {
        "cpu_temperature_c": series("cpu_temperature_c", moments),
        "load_1m": series("load_1m", (0, ended)),
    }
    said = cpu.coverage_gap("cpu_temperature_c", watched)
    assert (said is None) if told is None else (told in words.message(said))
    assert cpu.coverage_gap("cpu_throttle_count", watched) is None


def warmth(*values: float) -> dict[str, Series]:
    """A processor's temperatures, a second apart, beside a reading that is always there."""
    return {
        "cpu_temperature_c": Series("cpu_temperature_c", CPU, "degC", tuple(enumerate(values))),
        "load_1m": series("load_1m", range(len(values))),
    }


@pytest.mark.parametrize(
    ("watched", "code", "left"),
    [
        (warmth(-50.0, 0.0), "sensor_cold", {"cpu_temperature": {CPU: 0.0}}),
        (warmth(-50.0, -40.0), "sensor_cold", {"cpu_temperature": {CPU: -40.0}}),
        (warmth(255.0, 127.0), "sensor_hot", {}),
        # One that fell silent: what it showed stays.
        (
            {**warmth(*[50.0] * 10), "load_1m": series("load_1m", range(17))},
            *("last_read_before_end", {"cpu_temperature": {CPU: 50.0}}),
        ),
    ],
)
def test_a_sensor_that_is_dead(
    check: Any, watched: dict[str, Series], code: str, left: dict[str, Any]
) -> None:
    with pytest.raises(WordedError) as caught:
        cpu.test_cooling(watched, (), check)
    assert (codes_of(caught.value), check.readings) == ({code}, left)


@pytest.mark.parametrize("impossible", [0.0, -128.0, 255.0])
def test_a_processors_sensor_that_fails_in_too_many_samples_of_a_check(
    check: Any, impossible: float
) -> None:
    """One in ten is left out; of more the check was not measured, and what was seen stays."""
    spans = (("cpu.one", 0.0, 19.0), ("cpu.two", 20.0, 39.0))
    few = [60.0] * 40
    few[25] = few[30] = impossible
    cpu.test_cooling(warmth(*few), spans, check)
    assert check.readings == {"cpu_temperature": {CPU: 60.0}}
    few[35] = impossible
    with pytest.raises(WordedError) as caught:
        cpu.test_cooling(warmth(*few), spans, check)
    assert check.readings == {"cpu_temperature": {CPU: 60.0}}
    assert codes_of(caught.value) == {"sensor_patches"}
    (gap,) = caught.value.message.values["gaps"]
    assert gap.values["check"] == "cpu.two"


def test_a_short_check_may_miss_a_sample(check: Any) -> None:
    cpu.test_cooling(warmth(60.0, 0.0, 60.0, 60.0), (("cpu.one", 0.0, 2.0),), check)
    assert cpu.patches("cpu_throttle_count", warmth(60.0), ()) is None
    assert check.readings == {"cpu_temperature": {CPU: 60.0}}


def codes_of(error: Any) -> set[str]:
    """The codes of what an error names."""
    return {one.code for one in error.message.values["gaps"]}


# --- disks and the kernel's log ---


def disks(answer: command.ProgramResult) -> storage.AskDisk:
    """smartctl says the same of every disk."""

    def run(_argv: Any, **_options: Any) -> command.ProgramResult:
        return answer

    return lambda disk: observe_storage.report(disk, deadline=Deadline.after(60.0), run=run)


SMART = '{"smartctl": {"exit_status": 0}, "smart_status": {"passed": true}}'
NVME = """{"smartctl": {"exit_status": 0}, "smart_status": {"passed": true},
"nvme_smart_health_information_log":
    {"critical_warning": 0, "media_errors": 0, "percentage_used": 7}}"""
FAILED = SMART.replace("true", "false").replace('"exit_status": 0', '"exit_status": 8')
DENIED = '{"smartctl": {"exit_status": 2, "messages": [{"string": "Permission denied"}]}}'
TOO_LATE = completed("", "", -15, timed_out=True)


@pytest.mark.parametrize(
    ("answer", "faults", "why", "worn"),
    [
        (completed(SMART, "", 0), 0.0, None, None),
        (completed(FAILED, "", 8), 1.0, None, None),
        (completed(SMART.replace('status": 0', 'status": 4'), "", 4), None, "NO_ANSWER", None),
        (completed(SMART.replace('{"passed": true}', "{}"), "", 0), None, "NO_ANSWER", None),
        (completed(DENIED, "", 2), None, "NOT_PERMITTED", None),
        # A report that cannot be read is no missing report.
        (completed("Segmentation fault", "", 0), None, "NO_ANSWER", None),
        (completed("", "", -11), None, "NO_ANSWER", None),
        (TOO_LATE, None, "NO_ANSWER", None),
        (completed(NVME, "", 0), 0.0, None, 0.07),
        (completed(NVME.replace(', "percentage_used": 7', ""), "", 0), 0.0, None, None),
    ],
)
def test_smart_health(
    tree: Tree,
    check: Any,
    monkeypatch: pytest.MonkeyPatch,
    answer: command.ProgramResult,
    faults: float | None,
    why: str | None,
    worn: float | None,
) -> None:
    """Wear is read of NVMe disks only."""
    monkeypatch.setattr(command, "find", lambda program, _package=None: program)
    tree.disk("sda", "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0")
    tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    storage.test_smart_health(look(tree), disks(answer), lambda _path: True, check)
    nvme, sda = Part("disk", "nvme0n1"), Part("disk", "sda")
    assert check.readings["disk_faults"].get(sda) == faults
    gap = check.skipped["disk_faults"].get(sda)
    assert (gap and gap.why.name) == why
    assert check.readings["disk_wear"] == ({} if worn is None else {nvme: worn})
    assert set(check.skipped["disk_wear"]) == ({nvme} if worn is None else set())


def test_the_kernel_log_is_skipped_with_the_cure_where_it_is_closed(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception):
        kernel_log.records(tmp_path)


def test_a_kernel_log_that_was_read_at_the_start_and_is_closed_now_is_an_error(
    tmp_path: Path, check: Any
) -> None:
    with pytest.raises(WordedError, match="no longer readable after the run"):
        kernel_log.test_during_run(tmp_path, 7, {}, check)
    with pytest.raises(pytest.skip.Exception):
        kernel_log.test_during_run(tmp_path, None, {}, check)


@each(
    "after, readings, lost",
    [
        ({"ce_count": 3, "ue_count": 0}, {"uncorrected": 0.0, "corrected": 0.0}, None),
        ({"ce_count": 5, "ue_count": 1}, {"uncorrected": 1.0, "corrected": 2.0}, None),
        ({"ce_count": 1, "ue_count": 1}, {"uncorrected": 1.0}, "mc0/ce_count"),
        ({"ce_count": 3}, {"corrected": 0.0}, "mc0/ue_count"),
    ],
)
def test_memory_errors_that_the_kernel_counted(
    tmp_path: Path, after: dict[str, int], readings: dict[str, float], lost: str | None
) -> None:
    tree, check = Tree(tmp_path), Recorder()
    place = "sys/devices/system/edac/mc/mc0"
    tree.files(place, **after)
    counted = {"memory": {"mc0/ce_count": 3, "mc0/ue_count": 0}}
    machine = dataclasses.replace(gpu_machine.machine(), counters={kernel_counters.EDAC: counted})
    given: Any = machine, tmp_path, check
    if lost is None:
        memory.test_errors(*given)
    else:
        with pytest.raises(WordedError, match=lost):
            memory.test_errors(*given)
    assert {name: found[MEMORY] for name, found in check.readings.items()} == {
        f"memory_errors_{name}": value for name, value in readings.items()
    }
