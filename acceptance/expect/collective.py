"""Limits of collective operations between GPUs: floors from the links that join them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Values
from acceptance.core.parts import GPUS, Component, Pair
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.gpu_pair import PairFacts
from acceptance.expect.limit_book import Override, at_least, unless_limited
from acceptance.expect.sheet import COLLECTIVES, Sheet, find
from acceptance.machine import pcie

# Healthy operations at the sizes of the readings: two H200s 0.60 (reduce-scatter) to 0.81
# (broadcast) of 450 GB/s, two A100 0.69 of 300, 3090 Ti 0.94 for a copy. Half of the links gives
# half of that.
NVLINK_SHARE = 0.5
# Over PCI Express, through host memory or not: two H200s through host memory 0.37 (send-receive)
# and 0.43 (all-reduce) of 63 GB/s; 4090s with peer access 0.78, eight 5090s 0.44. Two cards below
# one switch share its way to host memory: of eight A100 in a VM such pairs copy with P2P off at
# 0.25 of their links, and NCCL reaches 0.6 of such a copy (two H200s: 23 of 37.7 GB/s), which makes
# 0.15. Processors and RAM take a part that is not known.
HOST_SHARE = 0.1
FROM_LINKS = Message("from_links")
OFF = "_p2p_off"  # of the arm that goes through host memory

_Way = tuple[float, Text, bool]  # GB/s in one direction, what it is, and whether it is NVLink


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
        pair = Pair(a.name, b.name)
        hosts[pair] = host_way(a, b)
        over = nvlink_way(known.get((a.name, b.name)), own[a.name], own[b.name])
        ways[pair] = over or hosts[pair]
    for found, off in ((ways, ""), (hosts, OFF)):
        for component, way in found.items():
            yield _floor(f"collective_send_receive{off}", component, way)
        slowest = None if None in found.values() else min(filter(None, found.values()), key=_rate)
        for name in COLLECTIVES:
            published = None if off else _published(name, gpus, known, own)
            yield published or _floor(f"{name}{off}", GPUS, slowest)


def _rate(way: _Way) -> float:
    return way[0]


def host_way(a: GpuFacts, b: GpuFacts) -> _Way | None:
    """The slower PCI Express link of two GPUs; None where one is not known."""
    found = []
    for gpu in (a, b):
        generation, width = gpu.link_generation, gpu.link_width
        rate = pcie.data_rate(generation.value, width.value) if generation and width else None
        if generation is None or width is None or rate is None:
            return None
        values: Values = {
            "gpu": str(gpu.name),
            "generation": generation.told,
            "width": width.told,
            "rate": f"{rate[0]:.1f}",
        }
        found.append((rate[0], Message("pcie_of", values), False))
    return min(found, key=_rate)


def nvlink_way(pair: PairFacts | None, first: Sheet | None, second: Sheet | None) -> _Way | None:
    """The NVLinks that join two GPUs; None without any, or where their rate is not known."""
    links = [one.nvlink for one in (first, second) if one is not None and one.nvlink is not None]
    if pair is None or not pair.nvlinks or not links:
        return None
    speed = min(link.link_gbs for link in links)
    values: Values = {"links": pair.nvlinks, "speed": f"{speed:g}"}
    return pair.nvlinks * speed, Message("nvlinks_rate", values), True


def _floor(name: str, component: Component, way: _Way | None) -> Override:
    if way is None:
        why = unless_limited(Message("link_not_known"))
        return Override(name, FROM_LINKS, component=component, unlimited=why)
    rate, told, over_nvlink = way
    share = NVLINK_SHARE if over_nvlink else HOST_SHARE
    values: Values = {"share": f"{share:g}", "link": told}
    basis = Message("share_of_slowest_link", values)
    return Override(name, FROM_LINKS, _at_least(share * rate, basis), component)


def _at_least(value: float, basis: Text) -> Limit:
    return at_least(value, "GB/s", basis)


def _published(
    name: str,
    gpus: Sequence[GpuFacts],
    pairs: Mapping[tuple[Component, Component], PairFacts],
    own: Mapping[Component, Sheet | None],
) -> Override | None:
    """The floor that the model's sheet has for so many cards with all their NVLinks, if any."""
    model, *others = own.values()
    if model is None or any(sheet is not model for sheet in others):
        return None
    full = model.nvlink.full() if model.nvlink is not None else 0
    whole = all(
        (pair := pairs.get((a.name, b.name))) is not None and pair.nvlinks >= full
        for a, b in permutations(gpus, 2)
    )
    row = next(
        (one for one in model.collective if (one.measurement, one.gpus) == (name, len(gpus))), None
    )
    if row is None or not whole:
        return None
    return Override(name, model.origin, _at_least(row.low, row.basis), GPUS)
