"""Limits of GPUs from their own facts and the model sheets: links, copies, NVLink, memory.

Pairs of GPUs: `gpu_pair`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Values
from acceptance.core.parts import Component
from acceptance.expect.gpu_pair import PairFacts, Side, pair_limits
from acceptance.expect.limit_book import NO_SHEET, Override, at_least, exactly, unless_limited
from acceptance.expect.sheet import Sheet, SheetNvLink, find
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


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Facts of a GPU from which limits are derived. None: not reported.

    `model` is NVML's name, `device_id` "10de:2684". `card_*` is the maximum of the card, `slot_*`
    that of the slot (a VM withholds it): PCI Express generation and lanes. `nvlink_*` count links.
    """

    name: Component
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
        return pcie.link_maximum(pcie.told_generation, self.card_link_gen, self.slot_link_gen)

    @property
    def link_width(self) -> pcie.LinkMaximum | None:
        """The most lanes of card and slot together; None where neither is known."""
        return pcie.link_maximum(pcie.told_width, self.card_link_width, self.slot_link_width)


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
    active = [(side.sheet, gpu.nvlink_active or 0) for gpu, side in zip(gpus, sides, strict=True)]
    for gpu, side in zip(gpus, sides, strict=True):
        most = max(count for sheet, count in active if sheet is side.sheet)
        yield from _link(gpu)
        yield from _nvlink(gpu, side.sheet, most, alone=len(gpus) == 1)
        yield from _facts(gpu, side.sheet)
    seen = {(pair.a, pair.b): pair for pair in pairs}
    for first, second in permutations(sides, 2):
        yield from pair_limits(first, second, seen.get((first.name, second.name)))


def _link(gpu: GpuFacts) -> Iterator[Override]:
    """Limits of the link under load, and of copies over it."""
    origin = Message("from_card_and_slot")
    generation, width = gpu.link_generation, gpu.link_width
    for name, found in (("gpu_link_gen", generation), ("gpu_link_width", width)):
        if found is None:
            reason = unless_limited(Message("link_withheld"))
            yield Override(name, origin, component=gpu.name, unlimited=reason)
        else:
            basis = Message("under_load", {"most": found.told})
            yield Override(name, origin, at_least(found.value, "count", basis), gpu.name)
    limit = _copy(generation, width)
    for name in COPIES:
        why = None if limit else unless_limited(Message("link_not_known"))
        yield Override(name, origin, limit, gpu.name, why)


def _copy(generation: pcie.LinkMaximum | None, width: pcie.LinkMaximum | None) -> Limit | None:
    if generation is None or width is None:
        return None
    rate = pcie.data_rate(generation.value, width.value)
    if rate is None:
        return None
    values: Values = {
        "share": f"{COPY_SHARE:g}",
        "rate": f"{rate[0]:.1f}",
        "formula": rate[1],
        "generation": generation.told,
        "width": width.told,
    }
    return at_least(COPY_SHARE * rate[0], "GB/s", Message("share_of_link", values))


def _nvlink(gpu: GpuFacts, sheet: Sheet | None, most: int, *, alone: bool) -> Iterator[Override]:
    """Limits of the number of active NVLinks and of their speed.

    Without any link in the driver's list there is nothing to compare with a limit, but a board that
    must have links is named all the same. `most` is how many links any of its equals has active.
    """
    limit, reason = _links(gpu, sheet, most, alone=alone)
    origin = sheet.origin if sheet else NO_SHEET
    if limit is not None or gpu.nvlink_total:
        yield Override("nvlink_active", origin, limit, gpu.name, reason)
    if not gpu.nvlink_active:
        return
    if sheet is None or sheet.nvlink is None:
        yield Override("nvlink_speed", origin, component=gpu.name, unlimited=reason)
        return
    speed = sheet.nvlink.link_gbs
    one = one_nvlink(sheet, sheet.nvlink)
    basis = Message(
        "share_of_nvlink", {"share": f"{LINK_SHARE:g}", "speed": f"{speed:g}", "link": one}
    )
    yield Override("nvlink_speed", origin, at_least(LINK_SHARE * speed, "GB/s", basis), gpu.name)


def one_nvlink(sheet: Sheet, nvlink: SheetNvLink) -> Message:
    """One NVLink of a model."""
    return Message("one_nvlink", {"generation": nvlink.generation, "sheet": sheet.origin})


def _links(
    gpu: GpuFacts, sheet: Sheet | None, most: int, *, alone: bool
) -> tuple[Limit | None, Text | None]:
    """The limit of active NVLinks, or the reason why there is none."""

    def undeclared(why: Message) -> tuple[None, Message]:
        return None, Message("unless_links_declared", {"why": why})

    if sheet is None:
        return None, _no_sheet(gpu)
    if sheet.nvlink is None:
        return undeclared(Message("sheet_without_nvlink", {"model": sheet.name}))
    full, of = sheet.nvlink.full(), sheet.nvlink.links
    if doubt := sheet.doubt("nvlink.active"):
        return undeclared(Message("sheet_number_doubtful", {"doubt": doubt}))
    bridged = 0 in sheet.nvlink.active
    if not gpu.nvlink_active and bridged:
        return undeclared(Message("no_bridge_seen", {"card": sheet.card}))
    if not gpu.nvlink_active and alone:
        return undeclared(Message("links_withheld"))
    if sheet.p2p == "nvlink" and 0 < most < full:
        of_board: Values = {"model": sheet.name, "most": most, "of": of}
        return undeclared(Message("links_of_board", of_board))
    code = "nvlinks_bridged" if bridged else "nvlinks_on_board"
    basis = Message(code, {"card": sheet.card, "full": full, "of": of})
    return exactly(full, "count", basis), None


def _facts(gpu: GpuFacts, sheet: Sheet | None) -> Iterator[Override]:
    """Limits of the number of multiprocessors and of the memory size."""
    for name, key in (("gpu_sm_count", "sm"), ("gpu_memory_total", "memory.gib")):
        doubt = sheet.doubt(key) if sheet else None
        if sheet is None or doubt:
            reason = (
                unless_limited(Message("sheet_figure_doubtful", {"doubt": doubt}))
                if doubt
                else _no_sheet(gpu)
            )
            origin = sheet.origin if sheet else NO_SHEET
            yield Override(name, origin, component=gpu.name, unlimited=reason)
            continue
        if key == "sm":
            basis = Message("multiprocessors_of", {"card": sheet.card, "number": sheet.sm})
            limit = exactly(sheet.sm, "count", basis)
        else:
            values: Values = {
                "share": f"{MEMORY_SHARE:g}",
                "size": f"{sheet.memory.gib:g}",
                "card": sheet.card,
            }
            basis = Message("memory_of", values)
            limit = at_least(MEMORY_SHARE * sheet.memory.gib, "GiB", basis)
        yield Override(name, sheet.origin, limit, gpu.name)


def _no_sheet(gpu: GpuFacts) -> Message:
    return unless_limited(Message("no_sheet_of_gpu", {"gpu": str(gpu), "id": gpu.device_id}))
