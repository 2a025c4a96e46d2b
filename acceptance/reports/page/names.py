"""GPUs and NVLinks in the names of components and the cells of the inventory's matrix. Pure."""

from __future__ import annotations

import re

from acceptance.core.parts import Component, Gpu, Pair, parse

_NVLINK = re.compile(r"NV(\d{1,3})")


def is_gpu(name: str) -> bool:
    """Whether it is a GPU's name: `gpu0`."""
    return isinstance(parse(name), Gpu)


def pair(component: Component) -> tuple[Component, Component] | None:
    """The GPUs of an ordered pair, `gpu0->gpu1`; None if it is not one."""
    of_gpus = isinstance(component, Pair) and all(isinstance(end, Gpu) for end in component.ends)
    return component.ends if isinstance(component, Pair) and of_gpus else None


def nvlinks(cell: str) -> int | None:
    """The number of NVLinks in a cell of the matrix, `NV18`; None for any other path."""
    match = _NVLINK.fullmatch(cell)
    return int(match[1]) if match else None
