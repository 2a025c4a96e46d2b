"""Kernels of our own: CUDA C of `kernels/`, compiled by NVRTC to machine code for the GPU at hand,
and started on torch's stream.

NVRTC and the driver are reached through `cuda.bindings`, on which torch depends itself. Machine
code (a cubin) for the real architecture, never PTX: what a driver translates at start is neither
what was tested nor the same everywhere. Compiling needs no GPU.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acceptance.loads.card import CardError

FOLDER = Path(__file__).with_name("kernels")
# What an image's NVRTC must compile for: every architecture that rigproof tests, from V100 to
# Blackwell.
ARCHITECTURES = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))
# Of boards with the GPU in the processor: their machine code runs nowhere else.
_TEGRA = frozenset({53, 62, 72, 87, 101, 110})


def source(name: str) -> str:
    """The text of a kernel file."""
    return (FOLDER / f"{name}.cu").read_text(encoding="utf-8")


def _require_success(code: Any, what: str) -> None:
    """Raise CardError unless NVRTC or the driver says that it went well (0)."""
    if int(code) != 0:
        raise CardError(
            f"{what} said {getattr(code, 'name', code)}: is this driver new enough for "
            "torch's CUDA?"
        )


def target(capability: tuple[int, int], known: Sequence[int]) -> int:
    """The architecture to compile for, as a whole number (90), of those that NVRTC knows: the GPU's
    own, else its newest forerunner.

    Machine code for an architecture also runs on later ones of the same major number (CUDA
    programming guide, binary compatibility), so an NVRTC that is older than the GPU still serves
    where it knows the family. Raises CardError where it does not.
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
        raise CardError(f"{text}: use an image with a newer CUDA")
    return max(fit)


@functools.cache
def compile_cubin(name: str, capability: tuple[int, int]) -> bytes:
    """Machine code of a kernel file for one architecture, compiled once for all GPUs that have it.

    Raises CardError, with NVRTC's first words, where it cannot be made.
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
            said = " ".join(log.decode("utf-8", "replace").replace("\0", " ").split())[:300]
            text = (
                f"NVRTC cannot compile {name}.cu for compute capability "
                f"{capability[0]}.{capability[1]}"
            )
            raise CardError(f"{text}: {said or getattr(code, 'name', code)}")
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
        torch.zeros(1, device=f"cuda:{device}")  # the context is made by the first use
        self._driver = driver
        self.multiprocessors = int(torch.cuda.get_device_properties(device).multi_processor_count)
        with torch.cuda.device(device):
            code, self._module = driver.cuModuleLoadData(
                compile_cubin(name, torch.cuda.get_device_capability(device))
            )
        _require_success(code, "the driver")
        self._functions: dict[str, Any] = {}

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Give the GPU one kernel, after all that the current stream was given; arguments are
        ctypes values, as the kernel declares them.

        The current stream must be one of the device that the kernels were loaded for. Raises
        CardError where the driver refuses. An error of the kernel itself shows where the stream is
        next waited for.
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
