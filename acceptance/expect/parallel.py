"""Limits of parallel training: floors of its efficiency by what joins the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from acceptance.core.message import Message, Values
from acceptance.core.parts import GPUS
from acceptance.expect import derived
from acceptance.expect.collective import FROM_LINKS, host_way
from acceptance.expect.derived import Amount
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.gpu_pair import PairFacts, nvlinks
from acceptance.expect.limit_book import Override, unless_limited
from acceptance.expect.sheet import Sheet, find
from acceptance.loads.train.parallel_contract import EFFICIENCIES


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
        nvlinks(known.get((a.name, b.name)), own[a.name], own[b.name])
        for a, b in permutations(gpus, 2)
    ]
    rates = [link.value for link in links if link is not None]
    if len(rates) == len(links):
        of = "alone_nvlink_two" if len(gpus) == 2 else "alone_nvlink_more"
        yield from derived.floors(of, GPUS, FROM_LINKS, Amount(values={"count": len(gpus)}))
        yield from derived.floors("alone_sharded", GPUS, FROM_LINKS, _sharded(min(rates)))
    elif not any(pair.nvlinks for pair in pairs):
        found = _over_pcie(gpus, list(own.values()))
        yield from derived.floors("alone_pcie", GPUS, FROM_LINKS, found)


def parallel_ceilings(gpus: Sequence[GpuFacts]) -> Iterator[Override]:
    """The most that an efficiency can be."""
    if len(gpus) > 1:
        yield from derived.ceilings("alone", GPUS, Amount(), names=EFFICIENCIES)


def _sharded(rate: float) -> Amount | Message:
    least = derived.figures().sharded_least_gbs.value
    if rate >= least:
        return Amount()
    return unless_limited(Message("parallel_sharded_slower", {"rate": f"{least:g}"}))


def _over_pcie(gpus: Sequence[GpuFacts], sheets: Sequence[Sheet | None]) -> Amount | Message:
    least, most = derived.figures().pcie_least_gbs.value, derived.figures().pcie_most_tflops.value
    peaks = [one.peak.by_dtype().get("f16") if one is not None else None for one in sheets]
    slots = host_way(*gpus) if len(gpus) == 2 else None
    if (
        slots is not None
        and slots.value >= least
        and all(peak is not None and peak <= most for peak in peaks)
    ):
        return Amount()
    values: Values = {"peak": f"{most:g}", "rate": f"{least:g}"}
    return unless_limited(Message("parallel_pcie_others", values))
