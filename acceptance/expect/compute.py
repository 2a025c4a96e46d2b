"""Floors of matrix products and of copies inside a GPU's memory.

They come from the model's sheet, else from the architecture; else nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.dtype import DTYPES, burn_name, gemm_names, native_dtypes
from acceptance.core.limit import Limit, number
from acceptance.expect import architecture, sheet
from acceptance.expect.architecture import Architecture
from acceptance.expect.limit_book import NO_ARCHITECTURE, Override, at_least
from acceptance.expect.sheet import LOCAL_COPY, Sheet

# The share of the rate that remains when every element of every product is compared; the burn's
# `--plain` measures it.
VERIFIED_SHARE = 0.98
ALL_THE_SAME = (
    "it is measured and not judged; a [[limit]] in the machine file judges it all the same"
)


@dataclass(frozen=True, slots=True)
class ComputeFacts:
    """Facts that decide how fast a GPU can be. None: not reported.

    `model` is NVML's name, `device_id` "10de:2684", `compute_capability` "8.9". The clocks are the
    highest that NVML reports.
    """

    name: str
    model: str | None
    device_id: str
    compute_capability: str | None
    cuda_cores: int | None
    max_sm_clock_mhz: float | None
    max_memory_clock_mhz: float | None
    memory_bus_bits: int | None

    def __str__(self) -> str:
        return self.model or self.device_id


def compute_limits(
    cards: Sequence[ComputeFacts], sheets: Sequence[Sheet], architectures: Sequence[Architecture]
) -> Iterator[Override]:
    """The floors of each card's matrix products, burn and local copy.

    Each has its basis, or a reason why there is none. A format that the card does not support
    itself (`native_dtypes`) is not due, and has no entry.
    """
    for card in cards:
        own = sheet.find(sheets, pci_id=card.device_id, nvml_name=card.model)
        capability = card.compute_capability or (
            own.compute_capability if own is not None else None
        )
        known = architecture.find(architectures, capability, card.model)
        for dtype in native_dtypes(capability) if capability is not None else DTYPES:
            for name in gemm_names(dtype):
                found = _of_sheet(card, own, name) or _product(card, name, dtype, known, capability)
                yield found
                yield from burn_overrides(found)
        yield _of_sheet(card, own, LOCAL_COPY) or _copy(card, known, capability)


def burn_overrides(override: Override) -> Iterator[Override]:
    """The burn's floor from the floor of the sustained products, which are the same.

    Nothing for any other limit.
    """
    names = {gemm_names(dtype)[1]: burn_name(dtype) for dtype in DTYPES}
    if override.measurement not in names:
        return
    name, limit = names[override.measurement], override.limit
    if limit is None:
        yield Override(
            name, override.origin, component=override.component, unlimited=override.unlimited
        )
    elif limit.low is not None:
        warn = VERIFIED_SHARE * limit.warn_low if limit.warn_low is not None else None
        text = (
            f"as {override.measurement}, where every result verified costs at most "
            f"{100 * (1 - VERIFIED_SHARE):.0f} %"
        )
        basis = f"{text}: {VERIFIED_SHARE:g} x {number(limit.low)} {limit.unit}; {limit.basis}"
        floor = Limit(limit.unit, basis, low=VERIFIED_SHARE * limit.low, warn_low=warn)
        yield Override(name, override.origin, floor, override.component)


def _of_sheet(card: ComputeFacts, own: Sheet | None, measurement: str) -> Override | None:
    if own is None:
        return None
    row = next((row for row in own.limit if row.measurement == measurement), None)
    return (
        None
        if row is None
        else Override(measurement, f"sheet of {own.name}", row.limit(), card.name)
    )


def _unlimited(
    card: ComputeFacts, measurement: str, reason: str, origin: str = NO_ARCHITECTURE
) -> Override:
    return Override(measurement, origin, component=card.name, unlimited=f"{reason}: {ALL_THE_SAME}")


def _unknown(card: ComputeFacts, capability: str | None) -> str:
    if capability is None:
        return (
            f"neither driver nor model sheets tell the compute capability of {card} with PCI "
            "id "
            f"{card.device_id}"
        )
    return (
        f"no model sheet limits it for {card}, and no architecture of compute capability "
        f"{capability} is known"
    )


def _product(
    card: ComputeFacts,
    measurement: str,
    dtype: str,
    known: Architecture | None,
    capability: str | None,
) -> Override:
    if known is None:
        return _unlimited(card, measurement, _unknown(card, capability))
    share = (known.short if measurement == gemm_names(dtype)[0] else known.sustained).get(dtype)
    if share is None:
        return _unlimited(card, measurement, known.unlimited[dtype], f"architecture: {known}")
    if card.cuda_cores is None or card.max_sm_clock_mhz is None:
        return _unlimited(
            card,
            measurement,
            f"the driver does not tell how many cores {card} has, or its highest clock",
        )
    multiprocessors, operations = card.cuda_cores / known.cores, known.operations[dtype]
    peak = multiprocessors * card.max_sm_clock_mhz * operations / 1e6
    formula = (
        f"{multiprocessors:g} multiprocessors x {card.max_sm_clock_mhz:g} MHz x "
        f"{operations:g} "
        "operations a clock"
    )
    text = (
        f"{share:g} x {peak:.4g} TFLOP/s = {share:g} x {formula} ({known}; no limit in a "
        "sheet); "
        f"{known.basis}"
    )
    return Override(
        measurement, f"architecture: {known}", at_least(share * peak, "TFLOP/s", text), card.name
    )


def _copy(card: ComputeFacts, known: Architecture | None, capability: str | None) -> Override:
    if known is None:
        return _unlimited(card, LOCAL_COPY, _unknown(card, capability))
    if card.max_memory_clock_mhz is None or card.memory_bus_bits is None:
        return _unlimited(
            card, LOCAL_COPY, f"the driver does not tell the clock or the width of {card}'s memory"
        )
    rate = 2 * card.max_memory_clock_mhz * card.memory_bus_bits / 8 / 1000
    formula = f"2 x {card.max_memory_clock_mhz:g} MHz x {card.memory_bus_bits} bit / 8"
    text = (
        f"{known.copy:g} x {rate:.0f} GB/s = {known.copy:g} x {formula} ({known}; no limit in "
        "a "
        f"sheet); {known.basis}"
    )
    return Override(
        LOCAL_COPY, f"architecture: {known}", at_least(known.copy * rate, "GB/s", text), card.name
    )
