"""Floors of matrix products, of copies inside a GPU's memory, and of training.

They come from the model's sheet, else from the architecture; else nothing is judged. Those of
training are the least share of a card's own matrix product, from its model's sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acceptance.core.dtype import DTYPES, burn_name, gemm_names, native_dtypes
from acceptance.core.message import Message, Quantity, Term, Text, Values, english
from acceptance.core.parts import Component
from acceptance.expect import architecture, limit_book, sheet
from acceptance.expect.architecture import Architecture
from acceptance.expect.limit_book import LIMIT_TABLE, NO_ARCHITECTURE, Amount, Override, at_least
from acceptance.expect.sheet import LOCAL_COPY, PATTERN_COPY, Sheet


@dataclass(frozen=True, slots=True)
class ComputeFacts:
    """Facts that decide how fast a GPU can be. None: not reported.

    `model` is NVML's name, `device_id` "10de:2684", `compute_capability` "8.9". The clocks are the
    highest that NVML reports.
    """

    name: Component
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
        copy = _of_sheet(card, own, LOCAL_COPY) or _copy(card, known, capability)
        yield copy
        yield from pattern_overrides(copy)


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
        values: Values = {
            "measurement": override.measurement,
            "cost": f"{100 * (1 - limit_book.book().rows('gemm_floor')[0].share):.0f}",
            "low": Quantity(limit.low, limit.unit),
            "basis": limit.basis,
        }
        found = Amount(limit.low, values, warn=limit.warn_low)
        yield from limit_book.floors(
            "gemm_floor", override.component, override.origin, found, (name,)
        )


def pattern_overrides(override: Override) -> Iterator[Override]:
    """The floor of the copy beside the memory's patterns, from that of copies within the GPU.

    It is the same copy. Nothing for any other limit.
    """
    if override.measurement == LOCAL_COPY:
        yield replace(override, measurement=PATTERN_COPY, own=False)


def _of_sheet(card: ComputeFacts, own: Sheet | None, measurement: str) -> Override | None:
    if own is None:
        return None
    row = next((row for row in own.limit if row.measurement == measurement), None)
    return None if row is None else Override(measurement, own.origin, row.limit(), card.name)


def _unlimited(
    card: ComputeFacts, measurement: str, why: Message | Term, origin: Text = NO_ARCHITECTURE
) -> Override:
    reason = Message(
        english(
            "not_judged",
            "{why}: it is measured and not judged; a {table} in the machine file judges it all "
            "the same",
        ),
        {"why": why, "table": LIMIT_TABLE},
    )
    return Override(measurement, origin, component=card.name, unlimited=reason)


def _unknown(card: ComputeFacts, capability: str | None) -> Message:
    if capability is None:
        return Message(
            english(
                "capability_not_known",
                "neither driver nor model sheets tell the compute capability of {card} with PCI "
                "id {id}",
            ),
            {"card": str(card), "id": card.device_id},
        )
    return Message(
        english(
            "architecture_not_known",
            "no model sheet limits it for {card}, and no architecture of compute capability "
            "{capability} is known",
        ),
        {"card": str(card), "capability": capability},
    )


def memory_formula(clock_mhz: float, bus_bits: int) -> Message:
    """The data rate of a memory, from its clock and the width of its bus."""
    return Message(
        english("memory_formula", "2 x {clock} MHz x {bits} bit / 8"),
        {"clock": f"{clock_mhz:g}", "bits": bus_bits},
    )


def peak_formula(multiprocessors: float, clock_mhz: float, operations: float) -> Message:
    """The peak of a format, from what a multiprocessor does in one clock."""
    values = {
        "multiprocessors": f"{multiprocessors:g}",
        "clock": f"{clock_mhz:g}",
        "operations": f"{operations:g}",
    }
    return Message(
        english(
            "peak_formula",
            "{multiprocessors} multiprocessors x {clock} MHz x {operations} operations a clock",
        ),
        values,
    )


def _share(share: float, rate: str, formula: Message, known: Architecture) -> Message:
    """The basis of a floor that is a share of what the architecture allows."""
    values: Values = {
        "share": f"{share:g}",
        "rate": rate,
        "formula": formula,
        "architecture": known.told,
        "basis": Term(known.basis),
    }
    return Message(
        english(
            "share_of_architecture",
            "{share} x {rate} = {share} x {formula} ({architecture}; no limit in a sheet); {basis}",
        ),
        values,
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
        return _unlimited(card, measurement, Term(known.unlimited[dtype]), known.origin)
    if card.cuda_cores is None or card.max_sm_clock_mhz is None:
        return _unlimited(
            card,
            measurement,
            Message(
                english(
                    "card_cores_untold",
                    "the driver does not tell how many cores {card} has, or its highest clock",
                ),
                {"card": str(card)},
            ),
        )
    multiprocessors, operations = card.cuda_cores / known.cores, known.operations[dtype]
    peak = multiprocessors * card.max_sm_clock_mhz * operations / 1e6
    formula = peak_formula(multiprocessors, card.max_sm_clock_mhz, operations)
    basis = _share(share, f"{peak:.4g} TFLOP/s", formula, known)
    return Override(measurement, known.origin, at_least(share * peak, "TFLOP/s", basis), card.name)


def _copy(card: ComputeFacts, known: Architecture | None, capability: str | None) -> Override:
    if known is None:
        return _unlimited(card, LOCAL_COPY, _unknown(card, capability))
    if card.max_memory_clock_mhz is None or card.memory_bus_bits is None:
        return _unlimited(
            card,
            LOCAL_COPY,
            Message(
                english(
                    "memory_clock_not_told",
                    "the driver does not tell the clock or the width of {card}'s memory",
                ),
                {"card": str(card)},
            ),
        )
    rate = 2 * card.max_memory_clock_mhz * card.memory_bus_bits / 8 / 1000
    formula = memory_formula(card.max_memory_clock_mhz, card.memory_bus_bits)
    basis = _share(known.copy, f"{rate:.0f} GB/s", formula, known)
    return Override(LOCAL_COPY, known.origin, at_least(known.copy * rate, "GB/s", basis), card.name)


def training_limits(cards: Sequence[ComputeFacts], sheets: Sequence[Sheet]) -> Iterator[Override]:
    """The floors of each card's layers and steps; nothing for a card whose sheet has none."""
    for card in cards:
        own = sheet.find(sheets, pci_id=card.device_id, nvml_name=card.model)
        if own is None:
            continue
        for row in own.share:
            yield Override(row.measurement, own.origin, row.limit(), card.name)
