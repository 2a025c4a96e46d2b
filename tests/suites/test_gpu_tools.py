"""What stands between the checks and the GPU tools: names, sizes, and what is tried twice.

The checks over them: `suites/test_gpu_suites.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gpu_texts
import msgspec
import pytest
from gpu_machine import TRAITS, device, gpu, look, machine, tree_of, uuid

from acceptance.core.limit import GIB
from acceptance.core.message import not_permitted
from acceptance.core.parts import CPU, GPUS, MACHINE, Gpu, Pair
from acceptance.expect import gpu_limits
from acceptance.expect.sheet import find
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.machine.topology import host_link_groups
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import gpu_identity, tools
from acceptance.session.check import CheckSkipped, ErrorInLines
from acceptance.session.loads import Part, Place, alone
from acceptance.session.tools import Argv, Outputs, Tools
from acceptance.suites.fixtures import gpu_tools
from acceptance.tools import bandwidth_test, device_query, gpu_burn, nvbandwidth, p2p_bandwidth
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.proof import ToolError
from acceptance.tools.reading import Reading, ToolOutput

DUE = tuple(
    gpu(index, name=model) for index, model in ((1, "L4"), (3, "L40"), (4, "L4"), (5, None))
)


class Programs:
    """Stands for the check's programs: every one is installed, and says what it is told to say,
    one text after the other.
    """

    def __init__(
        self,
        *texts: str | Callable[[Sequence[str]], str],
        left_s: float = 1000.0,
        seconds: float = 1e9,
        **more: Any,
    ) -> None:
        self.deadline = Deadline.after(left_s)
        self.ran: list[tuple[str, ...]] = []
        self.environments: list[dict[str, str]] = []
        self._texts = list(texts)
        self._seconds, self._more = seconds, more

    def find(self, program: str, _package: str | None = None) -> str:
        return program

    def run_stage(self, parts: Sequence[Part]) -> tuple[ProgramResult, ...]:
        return tuple(map(self._ended, parts))

    def _ended(self, part: Part) -> ProgramResult:
        self.ran.append(part.argv)
        self.environments.append(dict(part.env))
        given = {"returncode": 0, "stderr": "", **self._more}
        text = self._texts.pop(0)
        stdout = text if isinstance(text, str) else text(part.argv)
        return ProgramResult(part.argv, stdout=stdout, seconds=self._seconds, **given)


def together(programs: Programs, tool: str, argv: Argv, seen: Inventory) -> Outputs:
    """A tool that sees all GPUs of a machine."""
    return Tools(programs, seen).run(tool, argv, on=[Place(GPUS, gpus(seen))])


# --- names ---


def test_the_tools_own_count_becomes_the_names_of_the_gpus_that_are_due() -> None:
    output = ToolOutput(
        "tool",
        "fail",
        "so it is",
        (
            Reading("count", "count", {MACHINE: 2.0}),
            Reading("rate", "W", {Gpu(0): 1.0, Gpu(1): 2.0}),
            Reading("copy", "GB/s", {Pair(Gpu(1), Gpu(0)): 3.0}),
        ),
    )
    assert tools.with_gpu_names(output, DUE) == ToolOutput(
        "tool",
        "fail",
        "so it is",
        (
            Reading("rate", "W", {Gpu(1): 1.0, Gpu(3): 2.0}),
            Reading("copy", "GB/s", {Pair(Gpu(3), Gpu(1)): 3.0}),
        ),
    )


@pytest.mark.parametrize("component", [Gpu(4), Pair(Gpu(0), Gpu(4)), Pair(Gpu(4), Gpu(0)), CPU])
def test_a_device_that_is_not_due_is_trouble(component: str) -> None:
    output = ToolOutput("tool", "pass", "", (Reading("rate", "W", {Gpu(0): 1.0, component: 2.0}),))
    with pytest.raises(ToolError, match=f"^tool tells of {component}, and was given 4 GPUs$"):
        tools.with_gpu_names(output, DUE)


def test_siblings_are_of_one_model() -> None:
    siblings: Any = gpu_tools.siblings
    assert siblings.__wrapped__(DUE) == {"L4": (Gpu(1), Gpu(4)), "L40": (Gpu(3),)}


def test_programs_see_the_gpus_that_are_due() -> None:
    programs = Programs(gpu_texts.device_query([2, 3]))
    seen = machine(*(device(index) for index in range(3)))
    due = Place(GPUS, gpus(seen)[1:])
    runs = Tools(programs, seen).run("deviceQuery", device_query.argv, on=[due])
    assert set(runs.values("device_query_sm")) == {Gpu(1), Gpu(2)}
    assert programs.environments == [
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": f"{uuid(1)},{uuid(2)}"},
    ]


def sample(programs: Programs, due: tuple[Any, ...]) -> Outputs:
    """bandwidthTest on each of these GPUs."""
    seen = machine(*(device(index) for index in range(3)))
    argv = partial(bandwidth_test.argv, device=0)
    return Tools(programs, seen).run("bandwidthTest", argv, on=alone(due), turns=(due,))


def test_bandwidth_test_runs_once_for_each_gpu_and_sees_no_other() -> None:
    due = gpus(machine(*(device(index) for index in range(3))))[1:]
    programs = Programs(gpu_texts.bandwidth_test(0), gpu_texts.bandwidth_test(0, h2d=12.5))
    found = sample(programs, due)
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in programs.environments] == [
        uuid(1),
        uuid(2),
    ]
    assert programs.ran == [("bandwidthTest", *programs.ran[0][1:])] * 2
    assert "--device=0" in programs.ran[0]
    assert found.values("bandwidth_test_h2d") == {Gpu(1): 26.2, Gpu(2): 12.5}
    found.raise_failed()


def test_a_run_that_proves_nothing_leaves_the_others_what_they_are() -> None:
    due = gpus(machine(*(device(index) for index in range(3))))
    texts = [gpu_texts.bandwidth_test(device) for device in (0, 1, 2)]
    found = sample(Programs(*texts), due)
    assert set(found.outputs) == {Gpu(0)}
    told = "which its program sees as gpu0: bandwidthTest tells of"
    with pytest.raises(ErrorInLines) as error:
        found.raise_failed()
    assert str(error.value).splitlines() == [
        f"gpu1, {told} gpu1, and was given 1 GPUs",
        f"gpu2, {told} gpu2, and was given 1 GPUs",
    ]


def test_a_run_without_a_reading_fails_alone_and_one_with_a_fault_needs_none() -> None:
    runs = Outputs(
        {
            Gpu(0): ToolOutput("tool", "pass", "measured 1", (Reading("a", "W", {Gpu(0): 1.0}),)),
            Gpu(1): ToolOutput("tool", "pass", "waived: a"),
            Gpu(2): ToolOutput("tool", "fail", "wrong data"),
        }
    )
    found = runs.requiring(["a"])
    assert set(found.outputs) == {Gpu(0), Gpu(2)}
    assert {gpu: str(error) for gpu, error in found.failed.items()} == {
        Gpu(1): "tool did not give a: waived: a"
    }


# --- which run waits for which ---


@pytest.mark.parametrize(
    ("groups", "after"),
    [
        ([[0, 1], [2, 3]], [None, 0, None, 2]),
        ([[0, 2], [1, 3]], [None, None, 0, 1]),
        ([[0, 2, 3], [1]], [None, None, 0, 2]),
        ([[0], [1], [2], [3]], [None, None, None, None]),
        ([[0, 1, 2, 3]], [None, 0, 1, 2]),
    ],
)
def test_gpus_of_a_group_take_turns_and_groups_run_at_once(
    groups: list[list[int]], after: list[int | None]
) -> None:
    """The parts are in the order of the GPUs, by which logs are read again."""
    due = gpus(machine(*(device(index) for index in range(4))))
    found = tools.stage(("a", "b"), alone(due), [[due[at].name for at in one] for one in groups])
    assert [part.after for part in found] == after
    assert [part.component for part in found] == [gpu.name for gpu in due]
    assert [part.env["CUDA_VISIBLE_DEVICES"] for part in found] == [gpu.uuid for gpu in due]
    assert {part.argv for part in found} == {("a", "b")}


def test_a_program_that_had_no_turn_names_the_one_that_took_all_the_time() -> None:
    """Two nodes: gpu1 hangs, gpu3 waits behind it; gpu0 and gpu2 are read."""
    nodes = [device(index, traits=replace(TRAITS, numa_node=index % 2)) for index in range(4)]
    seen = machine(*nodes)
    text = gpu_texts.bandwidth_test(0)
    good, late = (ProgramResult(("bandwidthTest",), 0, text, "", 1.0) for _ in range(2))
    late = replace(late, returncode=-15, timed_out=True)
    groups = [[gpu.name for gpu in group] for group in host_link_groups(seen, gpus(seen))]
    found = tools.read_all(alone(gpus(seen)), [good, late, good, late], seen, groups)
    assert set(found.outputs) == {Gpu(0), Gpu(2)}
    with pytest.raises(ErrorInLines) as error:
        found.raise_failed()
    first, second = str(error.value).splitlines()
    assert first.startswith("gpu1, which its program sees as gpu0: ")
    assert "turn" not in first
    assert second.startswith("gpu3, which its program sees as gpu0: it had no turn")
    assert second.endswith("look at gpu1 first")


def test_device_query_goes_by_the_slot_and_not_by_the_tools_count() -> None:
    seen = machine(*(device(index) for index in range(3)))
    sizes = ("24216 MBytes (25392316416", "24000 MBytes (25165824000")
    text = gpu_texts.device_query([3, 1]).replace(*sizes, 1)
    shown = together(Programs(text), "deviceQuery", device_query.argv, seen)
    gib = {Gpu(0): 25392316416 / GIB, Gpu(2): 25165824000 / GIB}
    assert shown.values("device_query_memory") == gib
    assert gpu_identity.in_slots(shown.only(), gpus(seen)) == (gpus(seen)[2], gpus(seen)[0])
    shown.raise_failed()


# --- the GPUs that a text names ---

ONE_DUE = machine(device(0), device(1))


def query(change: Callable[[str], str]) -> Outputs:
    text = change(gpu_texts.device_query([1, 2]))
    return together(Programs(text), "deviceQuery", device_query.argv, ONE_DUE)


def test_a_device_that_is_not_due_is_no_matter_of_the_card() -> None:
    with pytest.raises(
        ToolError, match=r"shows NVIDIA GeForce RTX 4090 at 0000:09:00\.0, which is not due"
    ):
        query(lambda text: text.replace("0 / 2 / 0", "0 / 9 / 0")).only()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            '1: "NVIDIA GeForce RTX 4090"',
            '1: "Tesla T4"',
            "lists GPU 1 named Tesla T4, and gpu1 is NVIDIA GeForce RTX",
        ),
        ("384-bit", "192-bit", "says a memory bus of 192 bits of gpu0, and NVML 384 bits"),
        (
            "ECC support:                        Disabled",
            "ECC support: Enabled",
            "says ECC enabled of gpu0, and NVML dis",
        ),
        ("number:    8.9", "number:    8.6", "says compute capability 8.6 of gpu0, and NVML 8.9"),
        (
            "2520 MHz (2.52",
            "3600 MHz (3.60",
            "says that the SM clock of gpu0 goes to 3600 MHz, and NVML to 3105",
        ),
        ("10501 Mhz", "14001 Mhz", "says that the memory clock of gpu0 goes to 14001 MHz"),
        (
            "24216 MBytes (25392316416",
            "12288 MBytes (12884901888",
            "has 12288 MB of memory, and gpu0 has 24564 MB",
        ),
        (
            "24216 MBytes (25392316416",
            "32768 MBytes (34359738368",
            "has 32768 MB of memory, and gpu0 has 24564 MB",
        ),
    ],
)
def test_device_query_that_gainsays_nvml(old: str, new: str, why: str) -> None:
    query(lambda text: text).raise_failed()
    shown = query(lambda text: text.replace(old, new))
    assert len(shown.values("device_query_memory")) == 2, "the figures are the card's all the same"
    with pytest.raises(
        ToolError, match=r"^deviceQuery .*: the text is of other GPUs or of another run"
    ) as error:
        shown.raise_failed()
    assert why in str(error.value)


RUNTIME = ("Runtime Version = 12.8", "Runtime Version = 12.9")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            [("12.8 / 12.8", "12.2 / 12.4"), RUNTIME, ("= 12.8", "= 12.2"), ("= 12.9", "= 12.4")],
            r"says that the driver is for CUDA 12.2, and NVML that it is for CUDA 12.8",
        ),
        # A runtime works on every driver of its own major version.
        ([("/ 12.8", "/ 12.9"), RUNTIME], None),
        (
            [("12.8 / 12.8", "12.8 / 13.0")],
            r"a program of CUDA 13.0 does not start on a driver for CUDA 12.8",
        ),
        (
            [("12.8 / 12.8", "12.8 / 12.9")],
            r"says runtime 12.9 of device 0 and 12.8 in its last line",
        ),
    ],
)
def test_versions_of_cuda(changes: list[tuple[str, str]], why: str | None) -> None:
    shown = query(lambda text: functools.reduce(lambda now, one: now.replace(*one), changes, text))
    if why is None:
        shown.raise_failed()
    else:
        with pytest.raises(ToolError, match=why):
            shown.raise_failed()


NVBANDWIDTH = (
    nvbandwidth.TOOL,
    partial(nvbandwidth.argv, testcases=["host_to_device_memcpy_ce"]),
    gpu_texts.nvbandwidth(2, {"host_to_device_memcpy_ce": [25.0, 25.0]}),
)
P2P = (p2p_bandwidth.TOOL, p2p_bandwidth.argv, gpu_texts.p2p(2))


@pytest.mark.parametrize(
    ("tool", "old", "new", "why"),
    [
        (NVBANDWIDTH, "1: NVIDIA GeForce RTX 4090 (", "1: Tesla T4 (", "lists GPU 1 named Tesla"),
        (NVBANDWIDTH, "(00000000:02:00)", "(00000000:03:00)", "lists GPU 1 at 0000:03:00.0"),
        (
            NVBANDWIDTH,
            '"git_version"',
            '"Driver Version": "535.1", "git_version"',
            "ran with driver 535.1, and this machine's is 570.86.15",
        ),
        (NVBANDWIDTH, "(00000000:02:00)", "(00000000:01:00)", "names 0000:01:00.0 twice"),
        (P2P, "1, NVIDIA GeForce RTX 4090,", "1, Tesla T4,", "lists GPU 1 named Tesla T4"),
        (P2P, "pciBusID: 2", "pciBusID: 9", "lists GPU 1 at 0000:09:00.0"),
        (P2P, "pciBusID: 2", "pciBusID: 1", "its list of devices names 0000:01:00.0 twice"),
        (P2P, "Device: 0,", "Devices: 0,", "lists 1 devices and a matrix of 2"),
    ],
)
def test_a_text_of_other_gpus(tool: tuple[str, Argv, str], old: str, new: str, why: str) -> None:
    name, argv, healthy = tool
    told = Programs(healthy, healthy.replace(old, new))
    assert together(told, name, argv, ONE_DUE).only().outcome == "pass"
    with pytest.raises(ToolError, match=why):
        together(told, name, argv, ONE_DUE).only()


def test_bandwidth_test_of_another_card() -> None:
    text = gpu_texts.bandwidth_test(0)
    found = sample(Programs(text.replace("RTX 4090", "RTX 3090"), text), gpus(ONE_DUE))
    assert set(found.outputs) == {Gpu(1)}
    with pytest.raises(
        ErrorInLines,
        match="lists GPU 0 named NVIDIA GeForce RTX 3090, and gpu0 is NVIDIA GeForce RTX 4090",
    ):
        found.raise_failed()


def test_nvbandwidth_on_each_gpu_is_held_to_that_gpu() -> None:
    """The second program says that it saw the first GPU."""
    figures = {"device_local_copy": [450.0, 451.0]}
    first, second = (gpu_texts.nvbandwidth_alone(index, figures) for index in (0, 1))
    due = gpus(ONE_DUE)
    for texts, failed in (((first, second), {}), ((first, first), {Gpu(1)})):
        argv = partial(nvbandwidth.argv, testcases=["device_local_copy"])
        found = Tools(Programs(*texts), ONE_DUE).run("nvbandwidth", argv, on=alone(due))
        assert found.failed.keys() == set(failed)
        rates = {Gpu(0): 450.0, Gpu(1): 451.0}
        assert found.values("device_local_copy") == {
            gpu: rate for gpu, rate in rates.items() if gpu not in failed
        }
    assert "lists GPU 0 at 0000:01:00.0, and gpu1 is 0000:02:00.0" in str(found.failed[Gpu(1)])


# --- gpu-burn ---

SHEETS = {one.name: one for one in gpu_limits.sheets()}


@pytest.mark.parametrize(
    ("mode", "sheet", "rate"),
    [
        ("float", "GeForce RTX 4090", 82.6),
        ("tensor", "GeForce RTX 4090", 82.6),
        ("double", "GeForce RTX 4090", 1.29),
        ("double", "H100 SXM5 80GB", 66.9),
        ("float", None, 2e-6 * 16384 * 3105),
        ("tensor", None, 2e-6 * 16384 * 3105),
        ("double", None, 2e-6 * 16384 * 3105 / 64),
    ],
)
def test_the_rate_that_is_expected(mode: Mode, sheet: str | None, rate: float) -> None:
    known = next((one for name, one in SHEETS.items() if name == sheet), None)
    assert (known is None) == (sheet is None)
    assert gpu_tools.expected_rate(mode, known, TRAITS) == pytest.approx(rate, rel=0.01)


def test_every_sheet_gives_a_rate() -> None:
    modes: tuple[Mode, ...] = ("float", "tensor", "double")
    found = {
        (name, mode): gpu_tools.expected_rate(mode, sheet, TRAITS)
        for name, sheet in SHEETS.items()
        for mode in modes
    }
    wrong = [f"{name}, {mode}: {rate}" for (name, mode), rate in found.items() if not rate > 0]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 90


def test_sheets_without_some_figures() -> None:
    peak = find(tuple(SHEETS.values()), pci_id="10de:2684", nvml_name=None)
    assert peak is not None
    bare = msgspec.structs.replace(
        peak, peak=msgspec.structs.replace(peak.peak, tf32=None, fp64=None)
    )
    assert gpu_tools.expected_rate("tensor", bare, TRAITS) == 165.2
    assert gpu_tools.expected_rate("double", bare, TRAITS) == pytest.approx(82.6 / 64)


@pytest.mark.parametrize("untold", ["cuda_cores", "max_sm_clock_mhz"])
def test_a_gpu_of_which_nothing_is_known_gives_no_rate(untold: str) -> None:
    with pytest.raises(
        ToolError,
        match="the driver tells neither cores nor clock of a GPU without a sheet: update it",
    ):
        gpu_tools.expected_rate("float", None, replace(TRAITS, **{untold: None}))


def burn(
    seen: Inventory,
    programs: Programs,
    seconds: float = 15.0,
    mode: Mode = "float",
    due: tuple[Any, ...] | None = None,
) -> ToolOutput:
    fixture: Any = gpu_tools.gpu_burn
    given = Tools(programs, seen), due or gpus(seen), gpu_limits.sheets()
    found: ToolOutput = fixture.__wrapped__(programs, *given, {f"gpu_burn_{mode}": seconds})(mode)
    return found


def test_a_burn_without_nvidia_smi_is_not_begun(
    two: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_self: Programs, program: str) -> str:
        if program == "nvidia-smi":
            raise CheckSkipped(not_permitted("install it"))
        return program

    monkeypatch.setattr(Programs, "find", missing)
    programs = Programs()
    with pytest.raises(
        ToolError, match="crashes where there is none: install the driver's nvidia-smi"
    ):
        burn(two, programs)


@pytest.fixture
def two(tmp_path: Path) -> Inventory:
    return machine(device(0), device(1))


def memory_of(argv: tuple[str, ...]) -> int:
    return int(argv[argv.index("-m") + 1])


def fine(argv: Sequence[str]) -> str:
    """A healthy text of two GPUs, as it was asked for."""
    return gpu_texts.burn_as_asked(argv, [52.0, 51.0])


def test_the_memory_is_what_fits_the_slowest_and_the_smallest(two: Inventory) -> None:
    programs = Programs(fine)
    burn(two, programs, seconds=30.0)
    ring = 82.6e12 * 3.0 / (2 * 8192**3)
    assert memory_of(programs.ran[0]) == min((int(ring) + 2) * 256, int(0.9 * 24564))
    slow = device(
        1, name="a card of which there is no sheet", traits=replace(TRAITS, cuda_cores=1024)
    )
    programs = Programs(
        lambda argv: gpu_texts.burn_as_asked(
            argv, [3.0, 3.0], names=["NVIDIA GeForce RTX 4090", slow.name]
        )
    )
    burn(machine(device(0), slow), programs, seconds=30.0)
    assert (
        memory_of(programs.ran[0])
        == (int(2e-6 * 1024 * 3105 * 1e12 * 3.0 / (2 * 8192**3)) + 2) * 256
    )
    programs = Programs(
        lambda argv: gpu_texts.burn_as_asked(argv, [52.0, 51.0], totals=[24217, 7900])
    )
    burn(machine(device(0), device(1, memory_bytes=8192 << 20)), programs, seconds=30.0)
    assert memory_of(programs.ran[0]) == int(0.9 * 8192)
    programs = Programs(fine)
    burn(two, programs, seconds=10.0)
    assert memory_of(programs.ran[0]) == (int(82.6e12 * 1.0 / (2 * 8192**3)) + 2) * 256, (
        "a short run compares more often"
    )


def test_a_healthy_burn_runs_once(two: Inventory) -> None:
    programs = Programs(fine)
    assert burn(two, programs).outcome == "pass"
    assert [argv[-1] for argv in programs.ran] == ["15"]


FEW = gpu_texts.gpu_burn([52.0, 51.0], compares=2)


@pytest.mark.parametrize(("left_s", "second"), [(1000.0, "45"), (120.0, "29")])
def test_a_burn_that_was_too_short_is_made_longer_as_far_as_the_time_goes(
    two: Inventory, left_s: float, second: str
) -> None:
    programs = Programs(FEW, fine, left_s=left_s)
    assert burn(two, programs).outcome == "pass"
    assert [argv[-1] for argv in programs.ran] == ["15", second]
    assert memory_of(programs.ran[0]) == memory_of(programs.ran[1])


SECOND = "GPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-00000001-0000-4000-8000-000000000000)"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "UUID: GPU-00000001",
            "UUID: GPU-00000000",
            "its list of GPUs names GPU-00000000-0000-.* twice",
        ),
        (
            "UUID: GPU-00000001",
            "UUID: GPU-00000009",
            "lists GPU 1 with the UUID GPU-00000009.*, which the driver does not",
        ),
        (f"{SECOND}\n", "", r"lists gpu1 \(GPU-00000001-.*\) 0 times, and it is due once"),
        (
            SECOND,
            SECOND.replace("NVIDIA GeForce RTX 4090", "Tesla T4"),
            "lists GPU 1 named Tesla T4, and the driver",
        ),
        (
            "device 1 with 24217 MB of memory (23801",
            "device 1 with 32288 MB of memory (23801",
            "32288 MB of memory, and gpu1",
        ),
        (
            "device 1 with 24217 MB of memory (23801",
            "device 1 with 22288 MB of memory (22287",
            "22288 MB of memory, and gpu1",
        ),
        (
            "Burning for 15",
            "Burning for 14",
            "says that it burned for 14 s, and was to burn for 15 s",
        ),
        (
            "using FLOATS",
            "using FLOATS, using Tensor Cores",
            "works in mode tensor, and was to work in mode float",
        ),
        (
            "using FLOATS",
            "using DOUBLES",
            "it uses DOUBLES and a result has the 268435456 bytes of FLOATS",
        ),
        (
            "device 1 with",
            "device 2 with",
            "does not say of each of its devices, once, how it was initialised",
        ),
        (
            "52000 Gflop",
            "91000 Gflop",
            "the rates of GPU 0 do not agree with its products and time",
        ),
        (
            "51000 Gflop",
            "12000 Gflop",
            "the rates of GPU 1 do not agree with its products and time",
        ),
        (
            "done\n",
            "done\nCUDA error: an illegal memory access was encountered\n",
            "CUDA reported an error: 'CUDA error: an il",
        ),
    ],
)
def test_a_burn_of_other_gpus_or_of_another_run(
    two: Inventory, old: str, new: str, why: str
) -> None:
    def changed(argv: Sequence[str]) -> str:
        assert old in fine(argv)
        return fine(argv).replace(old, new)

    with pytest.raises(ToolError, match=why):
        burn(two, Programs(changed))


def test_a_burn_with_other_memory_than_was_asked_for(two: Inventory) -> None:
    with pytest.raises(
        ToolError, match="gpu-burn says that device 0 uses 2816 MB, and was to use 22107 MB"
    ):
        burn(two, Programs(gpu_texts.gpu_burn([52.0, 51.0], seconds=15, compares=80)))


def test_nvidia_smi_lists_gpus_that_are_not_tested() -> None:
    three = machine(*(device(index) for index in range(3)))
    due = gpus(three)[:2]

    def text(argv: Sequence[str]) -> str:
        listed = SECOND + "\n"
        return fine(argv).replace(
            listed, listed + SECOND.replace("GPU 1", "GPU 2").replace("00000001", "00000002") + "\n"
        )

    assert burn(three, Programs(text), due=due).outcome == "pass"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (FEW, {"left_s": 100.0}),  # without time left
        (FEW, {"returncode": 1}),
        (FEW, {"timed_out": True}),
        (FEW, {"truncated": True}),
        ("what is this\n", {}),
        (FEW.partition("Tested")[0], {}),
        (FEW.replace("\tGPU 1: OK\n", "").replace("Tested 2", "Tested 1"), {}),
        ("Couldn't init CUDA: no CUDA-capable device is detected\n", {}),
        (gpu_texts.gpu_burn([52.0, 0.0]), {}),
        (gpu_texts.gpu_burn([52.0, 51.0], compares=2, faulty=[0]), None),  # a fault
    ],
)
def test_what_is_no_matter_of_time_is_not_tried_again(
    two: Inventory, text: str, more: dict[str, Any] | None
) -> None:
    programs = Programs(text, **more or {})
    if more is None:
        assert burn(two, programs).outcome == "fail"
    else:
        with pytest.raises(ToolError):
            burn(two, programs)
    assert len(programs.ran) == 1


DIED = gpu_texts.gpu_burn([52.0, 51.0]).partition("Killing")[0].replace("\r", "\n") + (
    "100.0%  proc'd: -1 (0 Gflop/s) - 72 (51000 Gflop/s)   errors: -1  (DIED!)- 0   temps: "
    "60 C - 60 C \n"
)


NO_MEMORY = "sh: 1: timeout: killed\nfork: Cannot allocate memory\n"
NO_LIBRARY = "terminate called: libcublas.so.13: cannot open shared object file: No such file\n"


@pytest.mark.parametrize(
    ("text", "stderr", "reason"),
    [
        (DIED, NO_MEMORY, "^gpu-burn died on GPU 0: see the .*: .*fork: Cannot allocate memory$"),
        ("No clients are alive!  Aborting\n", NO_MEMORY, "^gpu-burn died on every GPU .*memory$"),
        (DIED, NO_LIBRARY, "a library is missing: install the CUDA version"),
    ],
)
def test_a_burn_that_died_and_says_nothing_of_hardware_is_trouble(
    two: Inventory, text: str, stderr: str, reason: str
) -> None:
    assert gpu_burn.parse(text).outcome == "fail", "a text alone cannot tell"
    with pytest.raises(ToolError, match=f"(?s){reason}"):
        burn(two, Programs(text, returncode=123, stderr=stderr))


@pytest.mark.parametrize(
    "text",
    [
        f"{DIED}Failure during compute: Error: uncorrectable ECC error encountered\n",
        DIED.replace("(DIED!)- 0", "(DIED!)- 5  (WARNING!)"),
        f"{DIED}\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n",
        f"No clients are alive!  Aborting\n{gpu_texts.gpu_burn([52.0, 51.0], faulty=[1])}",
    ],
)
def test_a_burn_that_died_beside_a_fault_is_a_fault(two: Inventory, text: str) -> None:
    assert burn(two, Programs(text, returncode=123)).outcome == "fail"


def test_a_gpu_that_showed_no_compare_at_all_is_tried_again(two: Inventory) -> None:
    none = gpu_texts.gpu_burn([52.0, 51.0], compares=1).splitlines(keepends=True)
    programs = Programs("".join(line for line in none if "proc'd" not in line), fine)
    assert burn(two, programs).outcome == "pass"
    assert len(programs.ran) == 2


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (
            device(1, traits=None, error="NVML says: GPU is lost"),
            "what gpu1 is: NVML says: GPU is lost",
        ),
        (device(1, memory_bytes=None), "the driver did not tell what gpu1 is$"),
        (None, "the driver did not tell what gpu1 is: NVML does not know it"),
    ],
)
def test_a_gpu_that_the_driver_does_not_tell_of(tmp_path: Path, second: Any, told: str) -> None:
    seen = look(tree_of(tmp_path, 2), [device(0), *([second] if second else [])])
    with pytest.raises(ToolError, match=told):
        burn(seen, Programs())
