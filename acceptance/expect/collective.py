"""Limits of collective operations between GPUs: floors from the links that join them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from acceptance.core.message import Message, Values
from acceptance.core.parts import GPUS, Component, Pair
from acceptance.expect import derived
from acceptance.expect.derived import Amount
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.gpu_pair import PairFacts, nvlinks
from acceptance.expect.limit_book import Override, at_least, unless_limited
from acceptance.expect.sheet import Sheet, find

FROM_LINKS = Message("from_links")
OFF = "_p2p_off"  # of the arm that goes through host memory

_Way = tuple[str, Amount]  # the quantity ("nvlinks", "pcie"), and how much of it


def collective_limits(
    gpus: Sequence[GpuFacts], pairs: Sequence[PairFacts], sheets: Sequence[Sheet]
) -> Iterator[Override]:
    """The limits of all collective operations between these GPUs."""
    if len(gpus) < 2:
        return
    own = {gpu.name: find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in gpus}
    known = {(pair.a, pair.b): pair for pair in pairs}
    ways: dict[Component, _Way | None] = {}
    hosts: dict[Component, _Way | None] = {}
    for a, b in permutations(gpus, 2):
        pair, host = Pair(a.name, b.name), host_way(a, b)
        hosts[pair] = ("pcie", host) if host is not None else None
        over = nvlinks(known.get((a.name, b.name)), own[a.name], own[b.name])
        way = over and over._replace(values={"link": Message("nvlinks_rate", over.values)})
        ways[pair] = ("nvlinks", way) if way is not None else hosts[pair]
    published = {one.measurement: one for one in _published(gpus, known, own)}
    for found, off in ((ways, ""), (hosts, OFF)):
        for component, each in found.items():
            yield from _floors("way", component, each, off)
        slowest = None if None in found.values() else min(filter(None, found.values()), key=_rate)
        for floor in _floors("slowest", GPUS, slowest, off):
            yield published.get(floor.measurement, floor)


def _rate(way: _Way) -> float:
    return way[1].value


def host_way(a: GpuFacts, b: GpuFacts) -> Amount | None:
    """The slower PCI Express link of two GPUs; None where one is not known."""
    found = []
    for gpu in (a, b):
        if (link := gpu.link) is None:
            return None
        values: Values = {
            "gpu": str(gpu.name),
            "generation": link.generation,
            "width": link.width,
            "rate": f"{link.rate:.1f}",
        }
        found.append(Amount(link.rate, {"link": Message("pcie_of", values)}))
    return min(found, key=lambda one: one.value)


def _floors(which: str, component: Component, way: _Way | None, off: str) -> Iterator[Override]:
    of, found = way or ("pcie", unless_limited(Message("link_not_known")))
    return derived.floors(f"{which}_{of}{off}", component, FROM_LINKS, found)


def _published(
    gpus: Sequence[GpuFacts],
    pairs: Mapping[tuple[Component, Component], PairFacts],
    own: Mapping[Component, Sheet | None],
) -> Iterator[Override]:
    """The floors that the model's sheet has for so many cards with all their NVLinks."""
    model, *others = own.values()
    if model is None or any(sheet is not model for sheet in others):
        return
    full = model.nvlink.full() if model.nvlink is not None else 0
    whole = all(
        (pair := pairs.get((a.name, b.name))) is not None and pair.nvlinks >= full
        for a, b in permutations(gpus, 2)
    )
    for row in model.collective if whole else ():
        if row.gpus == len(gpus):
            limit = at_least(row.low, "GB/s", row.basis)
            yield Override(row.measurement, model.origin, limit, GPUS)
