"""The GPU as the loads use it: its clock, its free memory, and its identity.

Our own CUDA C kernels (`kernels/`), compiled by NVRTC for the GPU at hand.

They run on torch's stream. NVRTC and the driver are reached through `cuda.bindings`, on which torch
itself depends. The output is machine code (a cubin) for the real architecture, never PTX: code that
a driver translates at start is not the code that was tested, and differs between drivers. Compiling
needs no GPU.
"""

from __future__ import annotations

import ctypes
import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from acceptance.core import plain_text
from acceptance.loads.program import LoadError

# Share of the free memory. The library's work space and the rounding of allocations need the rest.
MEMORY_SHARE = 0.95


class Card(Protocol):
    """A device that executes queued work in order, asynchronously to the host."""

    def mark(self) -> Any:
        """A marker behind all work queued so far."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the device's clock; waits for the later mark."""

    def free_bytes(self) -> int:
        """Memory that can be allocated."""


@dataclass(frozen=True, slots=True)
class CudaCard:
    """CUDA device 0 of those visible to the process."""

    def mark(self) -> Any:
        """An event recorded in the stream of the products."""
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two CUDA events, which have a resolution of about half a microsecond."""
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def free_bytes(self) -> int:
        """Free memory as the driver reports it, after torch has released its unused cache."""
        import torch

        torch.cuda.empty_cache()
        return int(MEMORY_SHARE * torch.cuda.mem_get_info()[0])

    def whole_bytes(self) -> int:
        """Total memory of the GPU."""
        import torch

        return int(torch.cuda.mem_get_info()[1])


HANG_S = 60.0  # many times what the slowest product, or pass over the memory, takes
_LONGEST_PAUSE_S = 0.002


def boot_s() -> float:
    """Seconds since boot, the clock that telemetry uses too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait(
    done: Callable[[], bool], within_s: float = HANG_S, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when `done` is true. It never waits in the driver, which may never return.

    Raises LoadError after `within_s` seconds: the GPU hangs.
    """
    end, pause = time.monotonic() + within_s, 1e-4
    while not done():
        if time.monotonic() > end:
            raise LoadError(
                f"the GPU has not finished what it was given within {within_s:g} s: it hangs"
            )
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


class PatientCard(CudaCard):
    """CUDA device 0, with a limit on the wait for a mark."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the GPU's clock. Raises LoadError where it hangs."""
        wait(end.query)
        return float(begin.elapsed_time(end)) / 1e3


PROCESSOR_BYTES = 64 << 30


@dataclass(frozen=True, slots=True)
class ProcessorCard:
    """The processor in the place of a GPU, for tests: its work is done when it is given."""

    def mark(self) -> float:
        """The time."""
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        """Seconds between two marks."""
        return end - begin

    def free_bytes(self) -> int:
        """More than small models need."""
        return PROCESSOR_BYTES

    def whole_bytes(self) -> int:
        """More than small models need."""
        return PROCESSOR_BYTES


def uuid(index: int) -> str:
    """The UUID of a visible CUDA device, in NVML's spelling."""
    import torch

    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


def gpu_identity() -> dict[str, Any]:
    """The GPU's name, UUID and compute capability, and the library versions, for the record.

    Raises LoadError where torch or a GPU is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise LoadError(
            f"torch cannot be imported ({error}): run it in rigproof's image, or install "
            "rigproof[gpu] in place of rigproof"
        ) from None
    if not torch.cuda.is_available():
        raise LoadError(
            "torch sees no GPU: see that `nvidia-smi` lists one here and that "
            "CUDA_VISIBLE_DEVICES names it"
        )
    traits = torch.cuda.get_device_properties(0)
    return {
        "gpu": str(traits.name),
        "uuid": uuid(0),
        "capability": f"{traits.major}.{traits.minor}",
        "library": f"torch {torch.__version__}, CUDA {torch.version.cuda}",
    }


def take(card: Card, work: Callable[[], None], times: int) -> float:
    """Seconds that the card needs for `times` pieces of work, queued at once."""
    begin = card.mark()
    for _ in range(times):
        work()
    return card.seconds(begin, card.mark())


def counted_work(work: Callable[[], None], inject: str | None) -> Callable[[], None]:
    """A piece of work as it counts; made twice where slowness is injected."""
    if inject != "slow":
        return work

    def twice() -> None:
        work()
        work()

    return twice


def times_for(seconds: float, one_s: float) -> int:
    """How many pieces of work of `one_s` fill `seconds`.

    At least one, and no more than the host can queue without waiting.
    """
    return max(1, min(math.ceil(seconds / max(one_s, 1e-9)), 10000))


FOLDER = Path(__file__).with_name("kernels")
# An image's NVRTC must compile for these: every architecture that rigproof tests, from V100 to
# Blackwell.
ARCHITECTURES = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))
# Boards with the GPU in the processor, whose machine code runs nowhere else.
_TEGRA = frozenset({53, 62, 72, 87, 101, 110})


def source(name: str) -> str:
    """The text of a kernel file."""
    return (FOLDER / f"{name}.cu").read_text(encoding="utf-8")


def _require_success(code: Any, what: str) -> None:
    """Raise LoadError unless the return code of NVRTC or the driver is 0."""
    if int(code) != 0:
        raise LoadError(
            f"{what} said {getattr(code, 'name', code)}: is this driver new enough for "
            "torch's CUDA?"
        )


def target(capability: tuple[int, int], known: Sequence[int]) -> int:
    """The architecture to compile for, of those that NVRTC knows, as a whole number (90).

    The GPU's own architecture, or else the newest earlier one of the same family. Machine code for
    an architecture also runs on later ones of the same major number (CUDA programming guide, binary
    compatibility), so an NVRTC older than the GPU still works where it knows the family. Raises
    LoadError where it does not.
    """
    major, minor = capability
    own = 10 * major + minor
    fit = [
        one
        for one in known
        if one == own or (one // 10 == major and one < own and one not in _TEGRA)
    ]
    if not fit:
        newest = max(known, default=0)
        text = (
            f"NVRTC knows architectures up to sm_{newest} and none for compute capability "
            f"{major}.{minor}"
        )
        raise LoadError(f"{text}: use an image with a newer CUDA")
    return max(fit)


@functools.cache
def compile_cubin(name: str, capability: tuple[int, int]) -> bytes:
    """Machine code of a kernel file for one architecture, compiled once for all GPUs that have it.

    Raises LoadError, with the beginning of NVRTC's log, where it cannot be compiled.
    """
    from cuda.bindings import nvrtc

    code, known = nvrtc.nvrtcGetSupportedArchs()
    _require_success(code, "NVRTC")
    architecture = target(capability, known)
    cubin: bytes
    code, program = nvrtc.nvrtcCreateProgram(
        source(name).encode(), f"{name}.cu".encode(), 0, [], []
    )
    _require_success(code, "NVRTC")
    try:
        options = [f"--gpu-architecture=sm_{architecture}".encode(), b"--std=c++17"]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(code) != 0:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log)
            said = " ".join(log.decode("utf-8", "replace").replace("\0", " ").split())
            said = plain_text.shortened(said, 300)
            text = (
                f"NVRTC cannot compile {name}.cu for compute capability "
                f"{capability[0]}.{capability[1]}"
            )
            raise LoadError(f"{text}: {said or getattr(code, 'name', code)}")
        code, size = nvrtc.nvrtcGetCUBINSize(program)
        _require_success(code, "NVRTC")
        cubin = b" " * size
        (code,) = nvrtc.nvrtcGetCUBIN(program, cubin)
        _require_success(code, "NVRTC")
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class Kernels:
    """The kernels of one file, loaded into the context of one CUDA device: 0, or a peer."""

    def __init__(self, name: str, device: int = 0) -> None:
        import torch
        from cuda.bindings import driver

        torch.cuda.init()
        torch.zeros(1, device=f"cuda:{device}")  # the first use creates the context
        self._driver = driver
        self.multiprocessors = int(torch.cuda.get_device_properties(device).multi_processor_count)
        with torch.cuda.device(device):
            code, self._module = driver.cuModuleLoadData(
                compile_cubin(name, torch.cuda.get_device_capability(device))
            )
        _require_success(code, "the driver")
        self._functions: dict[str, Any] = {}

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Queue one kernel on the current stream.

        Arguments are ctypes values, as the kernel declares them. The current stream must belong to
        the device that the kernels were loaded for. Raises LoadError where the driver refuses the
        launch. An error inside the kernel surfaces at the next wait for the stream.
        """
        import torch

        if name not in self._functions:
            code, self._functions[name] = self._driver.cuModuleGetFunction(
                self._module, name.encode()
            )
            _require_success(code, "the driver")
        places = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        stream = torch.cuda.current_stream().cuda_stream
        (code,) = self._driver.cuLaunchKernel(
            self._functions[name],
            blocks,
            1,
            1,
            threads,
            1,
            1,
            0,
            stream,
            ctypes.addressof(places),
            0,
        )
        _require_success(code, "the driver")
