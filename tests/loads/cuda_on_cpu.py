"""Builds a CUDA kernel file for the processor, through `cuda_on_cpu.h`, and starts its kernels."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SHIM = Path(__file__).with_name("cuda_on_cpu.h")
# A shift too far, a misaligned access or a division by zero stops the test.
FLAGS = (
    *(
        "-std=gnu11",
        "-O2",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-pragmas",
    ),
    *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
)
_KERNEL = re.compile(r"CUDA_KERNEL\s+void\s+(\w+)\s*\(([^)]*)\)")
_LAUNCHER = """
void launch_{name}(unsigned blocks, unsigned threads, {parameters})
{{
    gridDim = (uint3){{blocks, 1, 1}};
    blockDim = (uint3){{threads, 1, 1}};
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned thread = 0; thread < threads; thread++) {{
            blockIdx = (uint3){{block, 0, 0}};
            threadIdx = (uint3){{thread, 0, 0}};
            {name}({names});
        }}
}}
"""


class Built:
    """The kernels of one file."""

    def __init__(self, library: Path, names: Sequence[str]) -> None:
        self._library = ctypes.CDLL(str(library))
        self.names = tuple(names)

    def launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        """One kernel; its arguments are ctypes values, as it declares them."""
        function = getattr(self._library, f"launch_{name}")
        function.restype = None
        function(ctypes.c_uint(blocks), ctypes.c_uint(threads), *arguments)


def shared(source: Path, factory: pytest.TempPathFactory) -> Built:
    """A kernel file of the product, compiled once for all workers of a test session."""
    base = factory.getbasetemp()
    home = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = home / "kernels"
    with (home / "kernels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        library, names = folder / f"{source.stem}.so", folder / f"{source.stem}.names"
        if not names.exists():  # the last thing that is written
            names.write_text("\n".join(build(source, folder).names), encoding="utf-8")
        return Built(library, names.read_text(encoding="utf-8").split())


def build(source: Path, folder: Path) -> Built:
    """Compile a kernel file with `cc`; AssertionError with what it says where it cannot."""
    text = source.read_text(encoding="utf-8").replace('extern "C"', "")
    plain, whole, library = (folder / f"{source.stem}{suffix}" for suffix in (".in.c", ".c", ".so"))
    plain.write_text(f'#include "{SHIM}"\n{text}', encoding="utf-8")
    expanded = _cc("-std=gnu11", "-E", str(plain))
    kernels = _KERNEL.findall(expanded)
    launchers = [
        _LAUNCHER.format(
            name=name,
            parameters=parameters,
            names=", ".join(re.findall(r"\w+", one)[-1] for one in parameters.split(",")),
        )
        for name, parameters in kernels
    ]
    whole.write_text("\n".join([expanded.replace("CUDA_KERNEL", ""), *launchers]), encoding="utf-8")
    _cc(*FLAGS, str(whole), "-o", str(library))
    return Built(library, [name for name, _ in kernels])


def _cc(*arguments: str) -> str:
    done = subprocess.run(["cc", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return done.stdout
