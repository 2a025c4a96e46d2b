"""A description of fixtures/nvml as Python sees it, with what it says of every
GPU put into each.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Gpu:
    """`readings` are the keys of the description that hold one value each; `links` are by
    number, None where the GPU has none.
    """

    index: int
    readings: dict[str, Any]
    links: dict[int, dict[str, Any]] | None
    cpu_affinity: tuple[int, ...] | None
    memory_affinity: tuple[int, ...] | None
    compute_processes: list[dict[str, Any]] | None
    graphics_processes: list[dict[str, Any]] | None

    @property
    def address(self) -> str:
        """As sysfs spells it."""
        return str(self.readings["pci_bus_id"])[4:].lower()


@dataclass(frozen=True)
class Machine:
    """The machine before anything of its timeline has happened."""

    driver_version: str
    cuda_driver_version: int
    gpus: tuple[Gpu, ...]
    pairs: dict[tuple[int, int], dict[str, str]]

    def pair(self, a: int, b: int) -> dict[str, str]:
        """What is said of two GPUs, in either order."""
        return self.pairs.get((min(a, b), max(a, b)), {})


def read(path: Path) -> Machine:
    """Read a description that is known to be right."""
    document = json.loads(path.read_text(encoding="utf-8"))
    gpus = [
        _gpu(index, document.get("every_gpu", {}), own)
        for index, own in enumerate(document["gpus"])
    ]
    pairs: dict[tuple[int, int], dict[str, str]] = {}
    for which, said in document.get("pairs", {}).items():
        every = itertools.combinations(range(len(gpus)), 2)
        for a, b in every if which == "every" else [tuple(map(int, which.split(",")))]:
            pairs.setdefault((a, b), {}).update(said)
    return Machine(document["driver_version"], document["cuda_driver_version"], tuple(gpus), pairs)


def _gpu(index: int, every: dict[str, Any], own: dict[str, Any]) -> Gpu:
    merged = {**every, **own}
    entries = [*every.get("links", ()), *own.get("links", ())]
    for key in ("links", "refuse"):
        merged.pop(key, None)
    return Gpu(
        index,
        links=_links(entries) if "links" in every or "links" in own else None,
        cpu_affinity=_numbers(merged.pop("cpu_affinity", None)),
        memory_affinity=_numbers(merged.pop("memory_affinity", None)),
        compute_processes=merged.pop("compute_processes", None),
        graphics_processes=merged.pop("graphics_processes", None),
        readings={key: value for key, value in merged.items() if value is not None},
    )


def _links(entries: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    links: dict[int, dict[str, Any]] = {}
    for entry in entries:
        for number in _numbers([entry["link"]]) or ():
            links.setdefault(number, {}).update(
                {key: value for key, value in entry.items() if key != "link"}
            )
    return {
        number: {key: value for key, value in links[number].items() if value is not None}
        for number in sorted(links)
    }


def _numbers(entries: list[int | list[int]] | None) -> tuple[int, ...] | None:
    """Numbers and [first, last] spans, each number by itself."""
    if entries is None:
        return None
    spans = [
        range(entry, entry + 1) if isinstance(entry, int) else range(entry[0], entry[1] + 1)
        for entry in entries
    ]
    return tuple(number for span in spans for number in span)
