"""Limits of GPUs from their own facts and the model sheets: links, copies, NVLink, memory.

Pairs of GPUs: `gpu_pair`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Values
from acceptance.core.parts import Component
from acceptance.expect import derived
from acceptance.expect.derived import Amount
from acceptance.expect.gpu_pair import PairFacts, Side, pair_limits
from acceptance.expect.limit_book import NO_SHEET, Override, at_least, exactly, unless_limited
from acceptance.expect.sheet import Sheet, SheetNvLink, find
from acceptance.machine import pcie


class Link(NamedTuple):
    """The PCI Express link that card and slot have together: GB/s in one direction, and why."""

    rate: float
    formula: Message
    generation: Message
    width: Message


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

    @property
    def link(self) -> Link | None:
        """The link; None where generation and width are not both known."""
        generation, width = self.link_generation, self.link_width
        rate = pcie.data_rate(generation.value, width.value) if generation and width else None
        if generation is None or width is None or rate is None:
            return None
        return Link(*rate, generation.told, width.told)


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
    link = gpu.link
    copies: Amount | Message = unless_limited(Message("link_not_known"))
    if link is not None:
        copies = Amount(link.rate, {**link._asdict(), "rate": f"{link.rate:.1f}"})
    yield from derived.floors("link", gpu.name, origin, copies)


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
    speed, one = sheet.nvlink.link_gbs, one_nvlink(sheet, sheet.nvlink)
    rate = Amount(speed, {"speed": f"{speed:g}", "link": one})
    yield from derived.floors("nvlink", gpu.name, origin, rate)


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
    origin = sheet.origin if sheet else NO_SHEET
    number = _figure(gpu, sheet, "sm")
    if isinstance(number, Message):
        yield Override("gpu_sm_count", origin, component=gpu.name, unlimited=number)
    else:
        basis = Message("multiprocessors_of", {"card": number.card, "number": number.sm})
        yield Override("gpu_sm_count", origin, exactly(number.sm, "count", basis), gpu.name)
    found: Sheet | Amount | Message = _figure(gpu, sheet, "memory.gib")
    if isinstance(found, Sheet):
        gib = found.memory.gib
        found = Amount(gib, {"size": f"{gib:g}", "card": found.card})
    yield from derived.floors("memory_size", gpu.name, origin, found)


def _figure(gpu: GpuFacts, sheet: Sheet | None, key: str) -> Sheet | Message:
    """The sheet that has a figure, or why the card is held against none."""
    if sheet is None:
        return _no_sheet(gpu)
    if doubt := sheet.doubt(key):
        return unless_limited(Message("sheet_figure_doubtful", {"doubt": doubt}))
    return sheet


def _no_sheet(gpu: GpuFacts) -> Message:
    return unless_limited(Message("no_sheet_of_gpu", {"gpu": str(gpu), "id": gpu.device_id}))
