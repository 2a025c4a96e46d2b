"""The version of cuBLAS that this process has loaded, which torch does not tell."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acceptance.loads.program import LoadError

_LIBRARY = re.compile(r"/\S*/libcublas\.so[.0-9]*$")
_PARTS = 3  # of libraryPropertyType: major, minor, patch level


def cublas_version(
    maps: Path = Path("/proc/self/maps"), load: Callable[[str], Any] = ctypes.CDLL
) -> str:
    """The version as cublasGetProperty gives it, such as "13.1.0".

    Raises LoadError where no library or more than one is loaded, or it does not answer.
    """
    text = maps.read_text(encoding="utf-8", errors="replace")
    found = sorted({one[0] for line in text.splitlines() if (one := _LIBRARY.search(line))})
    if len(found) != 1:
        raise LoadError(f"the version of cuBLAS is unknown: {len(found)} libraries are loaded")
    library, numbers = load(found[0]), []
    for part in range(_PARTS):
        number = ctypes.c_int(-1)
        if library.cublasGetProperty(part, ctypes.byref(number)) or number.value < 0:
            raise LoadError("the version of cuBLAS is unknown: cublasGetProperty failed")
        numbers.append(str(number.value))
    return ".".join(numbers)
