"""GPUs and NVLinks in the names of components and the cells of the inventory's matrix. Pure."""

from __future__ import annotations

import re

_GPU = r"gpu\d{1,3}"
_PAIR = re.compile(rf"({_GPU})->({_GPU})")
_NVLINK = re.compile(r"NV(\d{1,3})")


def is_gpu(name: str) -> bool:
    """Whether it is a GPU's name: `gpu0`."""
    return re.fullmatch(_GPU, name) is not None


def pair(component: str) -> tuple[str, str] | None:
    """The GPUs of an ordered pair, `gpu0->gpu1`; None if it is not one."""
    match = _PAIR.fullmatch(component)
    return (match[1], match[2]) if match else None


def nvlinks(cell: str) -> int | None:
    """The number of NVLinks in a cell of the matrix, `NV18`; None for any other path."""
    match = _NVLINK.fullmatch(cell)
    return int(match[1]) if match else None
