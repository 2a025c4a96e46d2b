"""Limits of parallel training: floors of its efficiency by what joins the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Values
from acceptance.core.parts import GPUS
from acceptance.expect.collective import FROM_LINKS, host_way, nvlink_way
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.gpu_pair import PairFacts
from acceptance.expect.limit_book import Override, at_least, unless_limited
from acceptance.expect.sheet import Sheet, find
from acceptance.loads.train.parallel_contract import ARMS, EFFICIENCIES, efficiency

# DDP over NVLink: two H200s 0.916 and two H100s 0.92 (1.3 G parameters, batch 8 a card), two
# 3090 Ti 0.90 (GPT-2 medium). In a ring of eight each card sends 1.75 times as much as of two.
NVLINK_TWO, NVLINK_MORE = 0.85, 0.80
# Of four accumulated batches a quarter as much is exchanged for each: two H100s 0.98, two 3090 Ti
# 0.97 by calculation. The floor is so much higher.
NVLINK_ACCUMULATED = 0.05
# FSDP2 of two H200s 0.829; an efficiency 15 % below that, over links of this rate in GB/s and more.
SHARDED, SHARDED_GBS = 0.70, 200.0
# Over PCI Express: two 3090 Ti with peer access off 0.63, and 0.93 with four accumulated batches
# (GPT-2 medium). A card of twice that rate, such as a 4090, sends as much in half the computing:
# 1 / (1 + 2 x 0.37 / 0.63) = 0.46, and 0.87. The floors are two thirds of these. Cards that compute
# faster still, and narrower slots, are out of what was measured.
PCIE, PCIE_ACCUMULATED = 0.30, 0.60
PCIE_TFLOPS, PCIE_GBS = 250.0, 12.0
# Several cards cannot do more than as many alone, but those alone may have met a slow moment.
MOST = 1.15


def parallel_limits(
    gpus: Sequence[GpuFacts], pairs: Sequence[PairFacts], sheets: Sequence[Sheet]
) -> Iterator[Override]:
    """The limits of parallel training on these GPUs."""
    if len(gpus) < 2:
        return
    if len({gpu.model for gpu in gpus}) > 1:
        # The sum of what all do alone is out of reach where the slowest sets the pace.
        for name in EFFICIENCIES:
            why = Message("parallel_mixed")
            yield Override(name, FROM_LINKS, component=GPUS, unlimited=unless_limited(why))
        return
    own = {gpu.name: find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in gpus}
    known = {(pair.a, pair.b): pair for pair in pairs}
    links = [
        nvlink_way(known.get((a.name, b.name)), own[a.name], own[b.name])
        for a, b in permutations(gpus, 2)
    ]
    rates = [link[0] for link in links if link is not None]
    if len(rates) == len(links):
        yield from _over_nvlink(len(gpus), min(rates))
    elif not any(pair.nvlinks for pair in pairs):
        yield from _over_pcie(gpus, list(own.values()))


def parallel_ceilings(gpus: Sequence[GpuFacts]) -> Iterator[Override]:
    """The most that an efficiency can be."""
    if len(gpus) > 1:
        basis = Message("parallel_most", {"most": f"{MOST:g}"})
        for name in EFFICIENCIES:
            yield Override(name, Message("ceiling"), Limit("ratio", basis, high=MOST), GPUS)


def _over_nvlink(count: int, rate: float) -> Iterator[Override]:
    low, basis = NVLINK_TWO, Message("parallel_nvlink")
    if count > 2:
        low, basis = NVLINK_MORE, Message("parallel_nvlink_more", {"count": count})
    yield _floor(efficiency("ddp", "default", accumulated=False), low, basis)
    basis = Message("parallel_nvlink_accumulated")
    name = efficiency("ddp", "default", accumulated=True)
    yield _floor(name, low + NVLINK_ACCUMULATED, basis)
    for way in ("zero2", "zero3"):
        for accumulated in (False, True):
            name = efficiency(way, "default", accumulated=accumulated)
            if rate >= SHARDED_GBS:
                yield _floor(name, SHARDED, Message("parallel_sharded"))
            else:
                why = Message("parallel_sharded_slower", {"rate": f"{SHARDED_GBS:g}"})
                yield Override(name, FROM_LINKS, component=GPUS, unlimited=unless_limited(why))


def _over_pcie(gpus: Sequence[GpuFacts], sheets: Sequence[Sheet | None]) -> Iterator[Override]:
    peaks = [one.peak.by_dtype().get("f16") if one is not None else None for one in sheets]
    slots = host_way(*gpus) if len(gpus) == 2 else None
    within = (
        slots is not None
        and slots[0] >= PCIE_GBS
        and all(peak is not None and peak <= PCIE_TFLOPS for peak in peaks)
    )
    for accumulated, low, basis in (
        (False, PCIE, Message("parallel_pcie")),
        (True, PCIE_ACCUMULATED, Message("parallel_pcie_accumulated")),
    ):
        for arm in ARMS:
            name = efficiency("ddp", arm, accumulated=accumulated)
            if within:
                yield _floor(name, low, basis)
            else:
                values: Values = {"peak": f"{PCIE_TFLOPS:g}", "rate": f"{PCIE_GBS:g}"}
                why = Message("parallel_pcie_others", values)
                yield Override(name, FROM_LINKS, component=GPUS, unlimited=unless_limited(why))


def _floor(name: str, low: float, basis: Message) -> Override:
    return Override(name, FROM_LINKS, at_least(low, "ratio", basis), GPUS)
