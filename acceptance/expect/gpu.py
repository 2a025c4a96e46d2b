"""Limits of GPUs from their own facts and the model sheets: links, copies, NVLink, memory.

Pairs of GPUs: `gpu_pair`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from acceptance.core.grammar import with_article
from acceptance.core.limit import Limit
from acceptance.expect.gpu_pair import PairFacts, Side, pair_limits
from acceptance.expect.limit_book import NO_SHEET, Override, at_least, exactly
from acceptance.expect.sheet import Sheet, find
from acceptance.machine import pcie

# Healthy cards: V100 12.4 of 15.8 GB/s (0.79), T4 at x8 6.3 of 7.9 (0.80), A100 25.9 of 31.5
# (0.82), H100 in a VM 51 of 63 (0.81), H200 55.5 (0.88). A card one generation lower, or with half
# the lanes, reaches 0.51 at most.
COPY_SHARE = 0.75
# Relative to the published rate of a link; NVML itself reports up to 7 % more (26.562 of 25, 53.125
# of 50). A slower link is slower by far more.
LINK_SHARE = 0.98
# ECC in GDDR memory takes 6.25 % (T4: 15360 MiB of 16 GiB, A40: 46068 MiB of 48), and the driver
# keeps a little.
MEMORY_SHARE = 0.93
COPIES = (
    "copy_h2d",
    "copy_d2h",
    "copy_own_h2d",
    "copy_own_d2h",
    "bandwidth_test_h2d",
    "bandwidth_test_d2h",
)
DECLARE = "a [[limit]] in the machine file judges it all the same"


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Facts of a GPU from which limits are derived. None: not reported.

    `model` is NVML's name, `device_id` "10de:2684". `card_*` is the maximum of the card, `slot_*`
    that of the slot (a VM withholds it): PCI Express generation and lanes. `nvlink_*` count links.
    """

    name: str
    model: str | None
    device_id: str
    compute_capability: str | None
    memory_mib: int | None
    card_link_gen: int | None
    card_link_width: int | None
    slot_link_gen: int | None
    slot_link_width: int | None
    nvlink_active: int | None
    nvlink_total: int | None

    def __str__(self) -> str:
        return self.model or self.device_id

    @property
    def link_generation(self) -> pcie.LinkMaximum | None:
        """The highest generation of card and slot together; None where neither is known."""
        return pcie.link_maximum("generation ", self.card_link_gen, self.slot_link_gen)

    @property
    def link_width(self) -> pcie.LinkMaximum | None:
        """The most lanes of card and slot together; None where neither is known."""
        return pcie.link_maximum("x", self.card_link_width, self.slot_link_width)


def gpu_limits(
    gpus: Sequence[GpuFacts], pairs: Sequence[PairFacts], sheets: Sequence[Sheet]
) -> Iterator[Override]:
    """The limits of each GPU and of each ordered pair of GPUs.

    Each has its basis, or a reason why there is none.
    """
    sides = [
        Side(gpu.name, str(gpu), find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model))
        for gpu in gpus
    ]
    for gpu, side in zip(gpus, sides, strict=True):
        yield from _link(gpu)
        yield from _nvlink(gpu, side.sheet, alone=len(gpus) == 1)
        yield from _facts(gpu, side.sheet)
    seen = {(pair.a, pair.b): pair for pair in pairs}
    for first, second in permutations(sides, 2):
        yield from pair_limits(first, second, seen.get((first.name, second.name)))


def _link(gpu: GpuFacts) -> Iterator[Override]:
    """Limits of the link under load, and of copies over it."""
    origin = "derived from card and slot"
    generation, width = gpu.link_generation, gpu.link_width
    for name, found in (("gpu_link_gen", generation), ("gpu_link_width", width)):
        if found is None:
            reason = f"neither card nor slot shows what it can do (a VM may withhold it): {DECLARE}"
            yield Override(name, origin, component=gpu.name, unlimited=reason)
        else:
            yield Override(
                name, origin, at_least(found.value, "count", f"under load: {found.told}"), gpu.name
            )
    limit = _copy(generation, width)
    for name in COPIES:
        why = None if limit else f"the link's generation and width are not both known: {DECLARE}"
        yield Override(name, origin, limit, gpu.name, why)


def _copy(generation: pcie.LinkMaximum | None, width: pcie.LinkMaximum | None) -> Limit | None:
    if generation is None or width is None:
        return None
    rate = pcie.data_rate(generation.value, width.value)
    if rate is None:
        return None
    formula = f"{COPY_SHARE:g} x {rate[0]:.1f} GB/s = {COPY_SHARE:g} x {rate[1]}"
    text = (
        f"{formula}; {generation.told}; {width.told}; healthy cards reach 0.79 to 0.88 of the "
        "data rate"
    )
    return at_least(COPY_SHARE * rate[0], "GB/s", text)


def _nvlink(gpu: GpuFacts, sheet: Sheet | None, *, alone: bool) -> Iterator[Override]:
    """Limits of the number of active NVLinks and of their speed.

    Without any link in the driver's list there is nothing to compare with a limit, but a board that
    must have links is named all the same.
    """
    limit, reason = _links(gpu, sheet, alone=alone)
    origin = f"sheet of {sheet.name}" if sheet else NO_SHEET
    if limit is not None or gpu.nvlink_total:
        yield Override("nvlink_active", origin, limit, gpu.name, reason)
    if not gpu.nvlink_active:
        return
    if sheet is None or sheet.nvlink is None:
        yield Override("nvlink_speed", origin, component=gpu.name, unlimited=reason)
        return
    speed, generation = sheet.nvlink.link_gbs, sheet.nvlink.generation
    text = (
        f"{LINK_SHARE:g} x {speed:g} GB/s, one link of NVLink {generation} in one direction "
        f"(sheet of {sheet.name})"
    )
    yield Override("nvlink_speed", origin, at_least(LINK_SHARE * speed, "GB/s", text), gpu.name)


def _links(gpu: GpuFacts, sheet: Sheet | None, *, alone: bool) -> tuple[Limit | None, str | None]:
    """The limit of active NVLinks, or the reason why there is none."""
    cure = "declare nvlink_links in the machine file"
    if sheet is None:
        return None, _no_sheet(gpu)
    if sheet.nvlink is None:
        return None, f"the sheet of {sheet.name} knows of no NVLink: {cure}"
    full, of = sheet.nvlink.full(), sheet.nvlink.links
    if doubt := sheet.doubt("nvlink.active"):
        return None, f"the sheet's own number is doubtful ({doubt}): {cure}"
    bridged = 0 in sheet.nvlink.active
    if not gpu.nvlink_active and bridged:
        return (
            None,
            (
                f"no NVLink is active: no bridge is seen, and {with_article(sheet.name)} runs "
                f"without one: {cure}"
            ),
        )
    if not gpu.nvlink_active and alone:
        return (
            None,
            f"no NVLink is active: one GPU alone is often given to a VM without its links: {cure}",
        )
    where = "once it is bridged" if bridged else "on its board"
    text = (
        f"{with_article(sheet.name)} has {full} of its {of} NVLinks active {where}; "
        "nvlink_links "
        "in the machine file goes before this"
    )
    return exactly(full, "count", text), None


def _facts(gpu: GpuFacts, sheet: Sheet | None) -> Iterator[Override]:
    """Limits of the number of multiprocessors and of the memory size."""
    for name, key in (("gpu_sm_count", "sm"), ("gpu_memory_total", "memory.gib")):
        doubt = sheet.doubt(key) if sheet else None
        if sheet is None or doubt:
            reason = (
                f"the sheet's own figure is doubtful ({doubt}): {DECLARE}"
                if doubt
                else _no_sheet(gpu)
            )
            origin = f"sheet of {sheet.name}" if sheet else NO_SHEET
            yield Override(name, origin, component=gpu.name, unlimited=reason)
            continue
        if key == "sm":
            limit = exactly(
                sheet.sm, "count", f"{with_article(sheet.name)} has {sheet.sm} multiprocessors"
            )
        else:
            text = (
                f"{MEMORY_SHARE:g} x {sheet.memory.gib:g} GiB of {with_article(sheet.name)}; "
                "ECC "
                "and the driver keep up to 6.5 %"
            )
            limit = at_least(MEMORY_SHARE * sheet.memory.gib, "GiB", text)
        yield Override(name, f"sheet of {sheet.name}", limit, gpu.name)


def _no_sheet(gpu: GpuFacts) -> str:
    return f"no model sheet is that of {gpu} with PCI id {gpu.device_id}: {DECLARE}"
