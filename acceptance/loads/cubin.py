"""Our own CUDA C kernels (`kernels/`), compiled by NVRTC for the GPU at hand.

They run on torch's stream. NVRTC and the driver are reached through `cuda.bindings`, on which torch
itself depends. The output is machine code (a cubin) for the real architecture, never PTX: code that
a driver translates at start is not the code that was tested, and differs between drivers. Compiling
needs no GPU.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acceptance.core import plain_text
from acceptance.loads.program import LoadError

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
