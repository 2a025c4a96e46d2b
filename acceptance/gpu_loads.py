"""The fixtures that run our own GPU loads: one process a GPU, which sees that GPU first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from acceptance import gpu_identity, gpu_limits, selection
from acceptance.command import Completed
from acceptance.judge.dtype import DTYPES, PEAKS, native_dtypes
from acceptance.judge.sheet import Sheet, find
from acceptance.loads.gpu_gemm_table import SIZES
from acceptance.observe.inventory import Gpu, Inventory
from acceptance.program import Programs
from acceptance.tools import gpu_load_output, load_output
from acceptance.tools.load_output import LoadFailed, LoadOutput
from acceptance.tools.proof import ToolTrouble

Wrong = Mapping[str, Any]  # a wrong result, as a load tells of it
# The counts of copies between two GPUs: what does not say what it is of speaks against its GPU, and not against a pair.
OF_PEERS = ("copy_own_p2p_miscompares", "burn_peer_miscompares")
# Which count the checks of copies and of the memory belong to.
OF_CHECK = {
    "copy_own_p2p": "copy_own_p2p_miscompares",
    "elementwise": "elementwise_miscompares",
    "copy_h2d": "burn_copy_miscompares",
    "copy_d2h": "burn_copy_miscompares",
    "copy_p2p": "burn_peer_miscompares",
    "vram": "vram_miscompares",
}
ALONE_S = 0.2  # the sustained figure of a GPU alone is not asked for


def _counted_in(found: Wrong) -> tuple[str, ...]:
    """The counts that a wrong result may belong to, by its load; none where it does not say: then it belongs to every count of its GPU."""
    dtype, check = found.get("dtype"), found.get("check")
    if not isinstance(found.get("component"), str):
        return ()
    if isinstance(check, str) and check in OF_CHECK:
        return (OF_CHECK[check],)
    if isinstance(dtype, str) and dtype in DTYPES:
        return f"gemm_{dtype}_miscompares", f"burn_{dtype}_miscompares"
    return ("copy_own_miscompares",) if isinstance(check, str) and check.startswith("copy_own_") else ()


@dataclass(frozen=True, slots=True)
class GpuLoads:
    """What one load measured on every GPU that is due, by the GPU's name; `failed` holds those on which it did not run whole.

    `shown` are the GPUs that each load saw, its own first; where nothing is said, all that are due.
    """

    due: tuple[Gpu, ...]
    outputs: Mapping[str, LoadOutput] = field(default_factory=dict)
    failed: Mapping[str, LoadFailed] = field(default_factory=dict)
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def values(self, reading: str) -> dict[str, float]:
        """One reading of every GPU that gave it, or of every pair, by their names in the run."""
        return {
            self._named(gpu, one.component): one.value
            for gpu, output in self.outputs.items()
            for one in output.readings
            if one.name == reading
        }

    def miscompares(self, reading: str) -> tuple[dict[str, float], dict[str, str | None]]:
        """That count, where a load died with wrong results the number of those that belong to it; and the first of each as a note."""
        counts = self.values(reading)
        notes: dict[str, str | None] = dict.fromkeys(counts)
        for gpu in self.failed:
            counts |= {name: float(len(found)) for name, found in self._belonging(gpu, reading).items()}
        return counts, notes | {name: str(found[0])[:300] for name, found in self.wrong(reading).items()}

    def wrong(self, reading: str) -> dict[str, list[Wrong]]:
        """The wrong results that one count is about, as the loads told of them, by the GPU or the pair that the count is of."""
        return {name: found for gpu in self._told() for name, found in self._belonging(gpu, reading).items()}

    def _told(self) -> dict[str, Sequence[Wrong]]:
        """Every wrong result that the load of each GPU told of, whether it ran whole or not."""
        whole = {gpu: output.miscompares for gpu, output in self.outputs.items()}
        return {**whole, **{gpu: failure.miscompares for gpu, failure in self.failed.items()}}

    def _belonging(self, gpu: str, reading: str) -> dict[str, list[Wrong]]:
        """The same, of the load of one GPU."""
        belonging: dict[str, list[Wrong]] = {}
        for one in self._told()[gpu]:
            counts = _counted_in(one)
            if reading in counts:
                named = self._named(gpu, one["component"])
            elif not counts and reading not in OF_PEERS:
                named = gpu
            else:
                continue
            belonging.setdefault(named, []).append(one)
        return belonging

    def raise_failed(self) -> None:
        """Raise LoadFailed where a GPU's load did not run whole, naming the GPU; after what the others measured was journalled."""
        for gpu, failure in self.failed.items():
            raise LoadFailed(f"{gpu}: {failure}", failure.miscompares)

    def _named(self, gpu: str, component: str) -> str:
        """A load's count of the GPUs that it sees, its own first, turned into their names."""
        order = self.shown.get(gpu) or [gpu, *(one.name for one in self.due if one.name != gpu)]
        names = {f"gpu{index}": name for index, name in enumerate(order)}
        parts = component.split("->")
        if not all(part in names for part in parts):
            raise ToolTrouble(f"the load on {gpu} tells of {component}, and was given {len(order)} GPUs")
        return "->".join(names[part] for part in parts)


def collected(
    due: tuple[Gpu, ...],
    ended: Mapping[str, Completed],
    read: Callable[[str, Completed], LoadOutput],
    shown: Mapping[str, Sequence[str]] | None = None,
) -> GpuLoads:
    """What the ended loads are worth, by the GPU's name; `shown` as in GpuLoads."""
    outputs, failed = {}, {}
    for gpu, done in ended.items():
        try:
            outputs[gpu] = read(gpu, done)
        except LoadFailed as failure:
            failed[gpu] = failure
    return GpuLoads(due, outputs, failed, shown or {})


@pytest.fixture
def formats(inventory: Inventory, due_gpus: tuple[Gpu, ...]) -> Mapping[str, tuple[str, ...]]:
    """The number formats that each GPU has itself, by its name."""
    found = {}
    for gpu in due_gpus:
        device = gpu_limits.device_of(inventory, gpu)
        capability = device.traits.compute_capability if device is not None and device.traits is not None else None
        if capability is None:
            raise ToolTrouble(f"the driver does not tell the compute capability of {gpu.name}: update it")
        found[gpu.name] = native_dtypes(capability)
    return found


@pytest.fixture
def peaks(due_gpus: tuple[Gpu, ...]) -> Mapping[str, Mapping[str, float]]:
    """The sheet's peak of each format in TFLOP/s, by GPU; empty for a GPU without a sheet."""
    sheets = gpu_limits.sheets()
    found = {gpu.name: find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in due_gpus}
    return {name: _peaks(own) if own is not None else {} for name, own in found.items()}


def _peaks(own: Sheet) -> dict[str, float]:
    found = {}
    for dtype, keys in PEAKS.items():
        values = [value for key in keys if (value := getattr(own.peak, key)) is not None]
        if values:
            found[dtype] = values[0]
    return found


@pytest.fixture
def gemm_alone(
    programs: Programs, due_gpus: tuple[Gpu, ...], formats: Mapping[str, tuple[str, ...]]
) -> Callable[[], GpuLoads]:
    """Runs the matrix load on each GPU by itself, one after the other: briefly from cool, and the table of sizes."""

    def run() -> GpuLoads:
        ended = {
            gpu.name: programs.run(
                gpu_load_output.gpu_gemm_argv(sys.executable, dtypes=formats[gpu.name], seconds=ALONE_S, table=SIZES),
                env=selection.environment([gpu]),
            )
            for gpu in due_gpus
        }
        return collected(due_gpus, ended, _reader(due_gpus, formats, ALONE_S, SIZES))

    return run


@pytest.fixture
def gemm_together(
    programs: Programs, due_gpus: tuple[Gpu, ...], formats: Mapping[str, tuple[str, ...]], load_s: Mapping[str, float]
) -> Callable[[], GpuLoads]:
    """Runs the matrix load on all GPUs at once, sustained; the profile's time is that of all formats together."""

    def run() -> GpuLoads:
        seconds = load_s["gpu_gemm"] / max(len(names) for names in formats.values())
        argvs = [
            gpu_load_output.gpu_gemm_argv(sys.executable, dtypes=formats[gpu.name], seconds=seconds) for gpu in due_gpus
        ]
        done = programs.run_together(argvs, envs=[selection.environment([gpu]) for gpu in due_gpus])
        ended = {gpu.name: one for gpu, one in zip(due_gpus, done, strict=True)}
        return collected(due_gpus, ended, _reader(due_gpus, formats, seconds, ()))

    return run


def _reader(
    due: tuple[Gpu, ...], formats: Mapping[str, tuple[str, ...]], seconds: float, table: Sequence[int]
) -> Callable[[str, Completed], LoadOutput]:
    identities = {gpu.name: gpu_identity.of_load(gpu) for gpu in due}
    return lambda gpu, done: gpu_load_output.read_gpu_gemm(
        done, dtypes=formats[gpu], seconds=seconds, table=table, also=identities[gpu]
    )


@pytest.fixture
def gpu_copies(programs: Programs, due_gpus: tuple[Gpu, ...], load_s: Mapping[str, float]) -> Callable[[], GpuLoads]:
    """Runs the copy load on each GPU, one after the other, with the others as its peers."""

    def run() -> GpuLoads:
        seconds = load_s["gpu_copy"]
        ended, identities = {}, {gpu.name: gpu_identity.of_load(gpu) for gpu in due_gpus}
        for gpu in due_gpus:
            own_first = [gpu, *(one for one in due_gpus if one != gpu)]
            argv = load_output.gpu_copy_argv(sys.executable, seconds=seconds)
            ended[gpu.name] = programs.run(argv, env=selection.environment(own_first))
        return collected(
            due_gpus,
            ended,
            lambda gpu, done: load_output.read(done, "gpu_copy", {"seconds": seconds, **identities[gpu]}),
        )

    return run
