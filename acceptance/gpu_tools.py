"""The fixtures that run the upstream GPU tools. They see GPUs that are due and no others, their device 0 the first of those."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pytest

from acceptance import command, gpu_identity, gpu_limits, selection
from acceptance.command import Completed
from acceptance.judge.measurement import MIB
from acceptance.judge.sheet import Sheet, find
from acceptance.observe.gpu_traits import GpuTraits
from acceptance.observe.inventory import Gpu, Inventory
from acceptance.program import Programs
from acceptance.tools import bandwidth_test as bandwidth_test_tool
from acceptance.tools import device_query as device_query_tool
from acceptance.tools import gpu_burn as gpu_burn_tool
from acceptance.tools import nvbandwidth as nvbandwidth_tool
from acceptance.tools import p2p_bandwidth as p2p_bandwidth_tool
from acceptance.tools.cuda_device import Device
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.proof import ToolTrouble, proven
from acceptance.tools.reading import Reading, ToolOutput, UnreadableOutput

# gpu-burn compares when its ring of results is full: a ring of so many seconds, of which the shortest of our runs still holds five.
COMPARE_S = 3.0
RINGS = 10  # what a run should hold at the sheet's rate, so that a GPU at a third of it still makes three compares
TOO_FEW = 3


def renamed(output: ToolOutput, due: Sequence[Gpu]) -> ToolOutput:
    """A tool's readings with its own count of devices (0 is the first it sees) turned into the names of the GPUs that are due.

    Raises ToolTrouble for a device that is not due: the tool then saw other GPUs than it was given.
    """
    names = {f"gpu{index}": gpu.name for index, gpu in enumerate(due)}

    def name(component: str) -> str:
        parts = component.split("->")
        if not all(part in names for part in parts):
            raise ToolTrouble(f"{output.tool} tells of {component}, and was given {len(due)} GPUs")
        return "->".join(names[part] for part in parts)

    readings = tuple(
        Reading(reading.name, reading.unit, {name(key): value for key, value in reading.values.items()})
        for reading in output.readings
        if set(reading.values) != {"machine"}
    )
    return replace(output, readings=readings)


@pytest.fixture
def run_on_gpus(programs: Programs, due_gpus: tuple[Gpu, ...]) -> Callable[[Sequence[str]], Completed]:
    """Runs a program that sees the GPUs that are due."""
    return lambda argv: programs.run(argv, env=selection.environment(due_gpus))


@dataclass(frozen=True, slots=True)
class Shown:
    """What CUDA tells of each GPU, by its name; a GPU that CUDA does not show is absent. `fault` is what CUDA itself says is broken.

    `mismatch` says where the text gainsays NVML.
    """

    devices: Mapping[str, Device]
    fault: str | None = None
    mismatch: str | None = None

    def require_match(self) -> None:
        """Raise ToolTrouble where the text gainsays NVML; after what it shows was journalled."""
        if self.mismatch is not None:
            gpu_identity.require(device_query_tool.TOOL, iter([self.mismatch]))


@pytest.fixture
def device_query(
    programs: Programs,
    run_on_gpus: Callable[[Sequence[str]], Completed],
    due_gpus: tuple[Gpu, ...],
    inventory: Inventory,
) -> Shown:
    """deviceQuery, of the GPUs that are due. Raises ToolTrouble where it shows one that is not."""
    done = run_on_gpus(device_query_tool.argv(programs.find("deviceQuery")))
    output = proven(device_query_tool.TOOL, done, device_query_tool.parse, 0.0)
    if output.outcome == "fail":
        return Shown({}, output.reason)
    text = f"{done.stdout}\n{done.stderr}"
    shown = {device.pci_address: device for device in device_query_tool.devices(text)}
    due = {gpu.pci_address: gpu for gpu in due_gpus}
    strange = (f"shows {one.name} at {place}, which is not due" for place, one in shown.items() if place not in due)
    gpu_identity.require(device_query_tool.TOOL, strange)
    if (versions := device_query_tool.version_mismatch(text)) is not None:
        raise ToolTrouble(versions)
    mismatches = (
        found for place, device in shown.items() for found in gpu_identity.of_cuda(device, due[place], inventory)
    )
    return Shown(
        {gpu.name: shown[place] for place, gpu in due.items() if place in shown}, mismatch=next(mismatches, None)
    )


@pytest.fixture
def nvbandwidth(
    programs: Programs,
    run_on_gpus: Callable[[Sequence[str]], Completed],
    due_gpus: tuple[Gpu, ...],
    inventory: Inventory,
) -> Callable[..., ToolOutput]:
    """Runs testcases of nvbandwidth. Its version 0.9 leaves the list of devices out of the JSON: then its count and driver remain."""

    def run(*testcases: str) -> ToolOutput:
        argv = nvbandwidth_tool.argv(programs.find("nvbandwidth"), testcases=testcases)
        output = proven(nvbandwidth_tool.TOOL, run_on_gpus(argv), nvbandwidth_tool.parse, 0.0)
        if output.outcome == "pass":
            listed = gpu_identity.in_order(output, due_gpus) if output.gpus else iter(())
            gpu_identity.require(nvbandwidth_tool.TOOL, chain(listed, gpu_identity.driver(output, inventory)))
        return renamed(output, due_gpus)

    return run


@pytest.fixture
def bandwidth_test(programs: Programs, due_gpus: tuple[Gpu, ...]) -> Mapping[str, ToolOutput]:
    """bandwidthTest on each GPU, one after the other, by the GPU's name. Each run sees its own GPU only, and brings up no other."""
    argv = bandwidth_test_tool.argv(programs.find("bandwidthTest"), device=0)
    found = {}
    for gpu in due_gpus:
        done = programs.run(argv, env=selection.environment([gpu]))
        output = proven(bandwidth_test_tool.TOOL, done, bandwidth_test_tool.parse, 0.0)
        found[gpu.name] = renamed(output, [gpu])
        if output.outcome == "pass":
            gpu_identity.require(bandwidth_test_tool.TOOL, gpu_identity.in_order(output, [gpu]))
    return found


@pytest.fixture
def p2p_run(
    programs: Programs, run_on_gpus: Callable[[Sequence[str]], Completed], due_gpus: tuple[Gpu, ...]
) -> ToolOutput:
    """p2pBandwidthLatencyTest over all pairs."""
    done = run_on_gpus(p2p_bandwidth_tool.argv(programs.find("p2pBandwidthLatencyTest")))
    output = proven(p2p_bandwidth_tool.TOOL, done, p2p_bandwidth_tool.parse, 0.0)
    found = renamed(output, due_gpus)
    if output.outcome == "pass":
        gpu_identity.require(p2p_bandwidth_tool.TOOL, gpu_identity.in_order(output, due_gpus))
    return found


def expected_rate(mode: Mode, sheet: Sheet | None, traits: GpuTraits) -> float:
    """About how many TFLOP/s gpu-burn reaches on a GPU, rather too few than too many: the more, the longer its ring of results.

    The sheet's peak; without a sheet two operations a clock of each CUDA core, and of float64 the 64th part, as on GeForce. Raises
    ToolTrouble where the driver tells neither cores nor clock.
    """
    if sheet is not None:
        peak = sheet.peak
        double = peak.fp64_tensor or peak.fp64 or peak.fp32 / 64
        return {"float": peak.fp32, "tensor": peak.tf32 or peak.fp16, "double": double}[mode]
    if traits.cuda_cores is None or traits.max_sm_clock_mhz is None:
        raise ToolTrouble("the driver tells neither cores nor clock of a GPU without a sheet: update it")
    single = 2e-6 * traits.cuda_cores * traits.max_sm_clock_mhz
    return {"float": single, "tensor": single, "double": single / 64}[mode]


@pytest.fixture
def siblings(due_gpus: tuple[Gpu, ...]) -> Mapping[str, tuple[str, ...]]:
    """The GPUs of each model, by its name."""
    models = dict.fromkeys(gpu.model for gpu in due_gpus if gpu.model is not None)
    return {model: tuple(gpu.name for gpu in due_gpus if gpu.model == model) for model in models}


@pytest.fixture
def gpu_burn(
    programs: Programs,
    run_on_gpus: Callable[[Sequence[str]], Completed],
    due_gpus: tuple[Gpu, ...],
    inventory: Inventory,
    load_s: Mapping[str, float],
) -> Callable[[Mode], ToolOutput]:
    """Runs gpu-burn on all GPUs until each has made three compares: one more time, and longer, where the first time was too short."""
    binary = programs.find("gpu-burn")
    try:
        command.find("nvidia-smi")
    except command.ProgramMissing as missing:
        raise ToolTrouble(
            "gpu-burn asks nvidia-smi for temperatures and crashes where there is none: install the driver's nvidia-smi on the host "
            "(package nvidia-smi or nvidia-utils), or have the engine's CDI specification made again: `sudo nvidia-ctk cdi generate`"
        ) from missing

    def memory_mb(mode: Mode, seconds: int) -> int:
        sheets = gpu_limits.sheets()
        rates, sizes = [], []
        for gpu in due_gpus:
            device = gpu_limits.device_of(inventory, gpu)
            if device is None or device.traits is None or device.memory_bytes is None:
                raise ToolTrouble(
                    f"the driver did not tell what {gpu.name} is: {device.error if device else 'NVML does not know it'}"
                )
            sheet = find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model)
            rates.append(expected_rate(mode, sheet, device.traits))
            sizes.append(device.memory_bytes // MIB)
        compare_s = min(COMPARE_S, seconds / RINGS)
        return gpu_burn_tool.memory_mb(mode, rate_tflops=min(rates), compare_s=compare_s, free_mb=min(sizes))

    def run(mode: Mode) -> ToolOutput:
        seconds = round(load_s[f"gpu_burn_{mode}"])
        memory = memory_mb(mode, seconds)

        def burn() -> Completed:
            return run_on_gpus(gpu_burn_tool.argv(binary, mode=mode, seconds=seconds, memory_mb=memory))

        done = burn()
        longer = min(3 * seconds, math.floor(programs.deadline.remaining() - gpu_burn_tool.deadline_s(0)))
        if longer > seconds and _too_few_compares(done, len(due_gpus)):
            seconds = longer  # with the same memory, so that it compares as often
            done = burn()
        output = proven(gpu_burn_tool.TOOL, done, gpu_burn_tool.parse, seconds)
        if died_of_itself(output):
            raise ToolTrouble(f"{output.reason}; it last said: {done.last_lines(3)}")
        found = renamed(output, due_gpus)
        if output.outcome == "pass":
            text = f"{done.stdout}\n{done.stderr}"
            listed = gpu_identity.known_to_driver(output, due_gpus, inventory)
            sizes = gpu_identity.memory(gpu_burn_tool.memory(text), due_gpus, inventory)
            gpu_identity.require(gpu_burn_tool.TOOL, chain(listed, sizes))
            mismatch = gpu_burn_tool.mismatch(text, mode=mode, seconds=seconds, memory_mb=memory)
            if mismatch is not None:
                raise ToolTrouble(mismatch)
        return found

    return run


def died_of_itself(output: ToolOutput) -> bool:
    """Whether gpu-burn's processes died and nothing it said speaks against the hardware: an Xid of that moment is in the kernel log."""
    found = {reading.name: reading.values.values() for reading in output.readings}
    wrong = any(found.get("gpu_burn_faulty", ())) or any(found.get("gpu_burn_errors", ()))
    return output.outcome == "fail" and bool(found.get("gpu_burn_died")) and not wrong


def _too_few_compares(done: Completed, due: int) -> bool:
    """Whether a run that ended well, with every GPU in its table and nothing found wrong, proves nothing only because it was too short."""
    if done.timed_out or done.truncated or done.returncode != 0:
        return False
    try:
        output = gpu_burn_tool.parse(f"{done.stdout}\n{done.stderr}")
    except UnreadableOutput:
        return False
    found = {reading.name: reading.values for reading in output.readings}
    compares = found.get("gpu_burn_compares", {})
    few = len(compares) < due or min(compares.values()) < TOO_FEW
    return output.outcome == "error" and len(found.get("gpu_burn_faulty", {})) == due and few
