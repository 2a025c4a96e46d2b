"""Limits of GPUs from their own facts and the model sheets: links, copies, NVLink, memory.

Pairs of GPUs have limits of peer-to-peer access, its gain, and its write bandwidth. Collective
operations and parallel training have floors from what joins the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Values, english
from acceptance.core.parts import GPUS, Component, Pair
from acceptance.expect import limit_book
from acceptance.expect.limit_book import (
    NO_SHEET,
    PAIR_TABLE,
    Amount,
    Override,
    at_least,
    exactly,
    unless_limited,
)
from acceptance.expect.sheet import Sheet, SheetNvLink, find
from acceptance.loads.train.parallel_contract import EFFICIENCIES
from acceptance.machine import pcie

FROM_PATH = Message(english("from_path", "derived from the path"))


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Facts of the path from GPU `a` to GPU `b` ("gpu0", "gpu1").

    `nvlinks` is how many links lead from one to the other, directly or through a switch; `p2p` is
    NVML's status of peer-to-peer access ("ok", "chipset-not-supported", ...), None where it has
    none. `virtual` is whether a virtual machine has the GPUs.
    """

    a: Component
    b: Component
    nvlinks: int
    p2p: str | None
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One GPU of a pair: its component name, its model's name, and that model's sheet."""

    name: Component
    model: str
    sheet: Sheet | None


def pair_limits(first: Side, second: Side, pair: PairFacts | None) -> Iterator[Override]:
    """The limits of the path from one GPU to another.

    `pair` is None where NVML says nothing of the pair.
    """
    yield _supported(first, second, pair)
    component = Pair(first.name, second.name)
    joined = pair.nvlinks if pair is not None else 0
    without = "peers" if pair is not None and pair.p2p == "ok" else "host"
    yield from limit_book.floors(
        f"copy_off_{'nvlink' if joined else without}",
        component,
        FROM_PATH,
        Amount(values={"links": joined} if joined else {}),
    )
    links: Amount | Message = Message(
        english(
            "path_decides",
            "without NVLink it depends on switches, sockets and the board: p2p_gain judges it",
        )
    )
    if joined:
        unknown = unless_limited(
            Message(
                english(
                    "nvlink_rate_not_known", "no model sheet says how fast one of these NVLinks is"
                )
            )
        )
        links = nvlinks(pair, first.sheet, second.sheet) or unknown
    yield from limit_book.floors("nvlinks", component, FROM_PATH, links)


def _supported(first: Side, second: Side, pair: PairFacts | None) -> Override:
    component = Pair(first.name, second.name)
    sheets = [side.sheet for side in (first, second) if side.sheet is not None]

    def unlimited(why: Message, by: Message = NO_SHEET) -> Override:
        reason = Message(
            english("unless_peers_declared", "{why}: declare p2p in a {table} of the machine file"),
            {"why": why, "table": PAIR_TABLE},
        )
        return Override("p2p_supported", by, component=component, unlimited=reason)

    def held(value: int, basis: Message) -> Override:
        return Override("p2p_supported", NO_SHEET, exactly(value, "count", basis), component)

    for sheet in sheets:
        if doubt := sheet.doubt("p2p"):
            why = Message(
                english(
                    "peers_doubtful", "whether {card} has peer-to-peer access is doubtful ({doubt})"
                ),
                {"card": sheet.card, "doubt": doubt},
            )
            return unlimited(why, sheet.origin)
    for sheet in sheets:
        if sheet.p2p == "no":
            return held(
                0,
                Message(
                    english(
                        "peers_never",
                        "{card} has no peer-to-peer access: early drivers advertised it there and "
                        "delivered wrong data; `p2p = true` in a {table} of the machine file "
                        "allows it",
                    ),
                    {"card": sheet.card, "table": PAIR_TABLE},
                ),
            )
    for side in (first, second):
        if side.sheet is None:
            return unlimited(
                Message(
                    english("no_sheet_of", "no model sheet is that of {gpu} ({model})"),
                    {"gpu": str(side.name), "model": side.model},
                )
            )
    model = sheets[0]
    if model is not sheets[1]:
        models = {"model": model.name, "other": sheets[1].name}
        return unlimited(
            Message(
                english(
                    "two_models",
                    "two models, {model} and {other}, are not known to reach each other",
                ),
                models,
            )
        )
    joined = pair is not None and pair.nvlinks > 0
    if model.p2p == "yes" and not joined and pair is not None and pair.virtual:
        return unlimited(
            Message(
                english(
                    "peers_of_hypervisor",
                    "without NVLinks between them the host of this virtual machine decides "
                    "whether two GPUs have peer-to-peer access",
                )
            )
        )
    if model.p2p == "yes" or (model.p2p == "nvlink" and joined):
        return held(
            1,
            Message(
                english(
                    "peers_always",
                    "two {model} have peer-to-peer access; `p2p = false` in a {table} of the "
                    "machine file says that a VM or its host withholds it",
                ),
                {"model": model.name, "table": PAIR_TABLE},
            ),
        )
    if model.p2p == "nvlink":
        return unlimited(
            Message(
                english(
                    "peers_of_board",
                    "without NVLinks between them the board and its processors decide whether two "
                    "{model} have peer-to-peer access",
                ),
                {"model": model.name},
            )
        )
    if pair is None:
        return unlimited(
            Message(
                english(
                    "peers_over_bridge",
                    "{card} has peer-to-peer access over an NVLink bridge only, and NVLinks are "
                    "not known",
                ),
                {"card": model.card},
            )
        )
    code = (
        english(
            "peers_bridged",
            "{card} has peer-to-peer access over an NVLink bridge only, and there is one",
        )
        if pair.nvlinks
        else english(
            "peers_not_bridged",
            "{card} has peer-to-peer access over an NVLink bridge only, and none is seen",
        )
    )
    return held(1 if pair.nvlinks else 0, Message(code, {"card": model.card}))


def nvlinks(pair: PairFacts | None, first: Sheet | None, second: Sheet | None) -> Amount | None:
    """The NVLinks that join two GPUs; None without any, or where their rate is not known."""
    links = [one.nvlink for one in (first, second) if one is not None and one.nvlink is not None]
    if pair is None or not pair.nvlinks or not links:
        return None
    speed = min(link.link_gbs for link in links)
    values: Values = {"links": pair.nvlinks, "speed": f"{speed:g}"}
    return Amount(pair.nvlinks * speed, values)


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
        return (
            None
            if generation is None or width is None or rate is None
            else Link(*rate, generation.told, width.told)
        )


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
    origin = Message(english("from_card_and_slot", "derived from card and slot"))
    generation, width = gpu.link_generation, gpu.link_width
    for name, found in (("gpu_link_gen", generation), ("gpu_link_width", width)):
        if found is None:
            reason = unless_limited(
                Message(
                    english(
                        "link_withheld",
                        "neither card nor slot shows what it can do (a VM may withhold it)",
                    )
                )
            )
            yield Override(name, origin, component=gpu.name, unlimited=reason)
        else:
            basis = Message(english("under_load", "under load: {most}"), {"most": found.told})
            yield Override(name, origin, at_least(found.value, "count", basis), gpu.name)
    link = gpu.link
    copies: Amount | Message = unless_limited(
        Message(english("link_not_known", "the link's generation and width are not both known"))
    )
    if link is not None:
        copies = Amount(link.rate, {**link._asdict(), "rate": f"{link.rate:.1f}"})
    yield from limit_book.floors("link", gpu.name, origin, copies)


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
    yield from limit_book.floors("nvlink", gpu.name, origin, rate)


def one_nvlink(sheet: Sheet, nvlink: SheetNvLink) -> Message:
    """One NVLink of a model."""
    return Message(
        english("one_nvlink", "one link of NVLink {generation} in one direction ({sheet})"),
        {"generation": nvlink.generation, "sheet": sheet.origin},
    )


def _links(
    gpu: GpuFacts, sheet: Sheet | None, most: int, *, alone: bool
) -> tuple[Limit | None, Text | None]:
    """The limit of active NVLinks, or the reason why there is none."""

    def undeclared(why: Message) -> tuple[None, Message]:
        return None, Message(
            english("unless_links_declared", "{why}: declare nvlink_links in the machine file"),
            {"why": why},
        )

    if sheet is None:
        return None, _no_sheet(gpu)
    if sheet.nvlink is None:
        return undeclared(
            Message(
                english("sheet_without_nvlink", "the sheet of {model} knows of no NVLink"),
                {"model": sheet.name},
            )
        )
    full, of = sheet.nvlink.full(), sheet.nvlink.links
    if doubt := sheet.doubt("nvlink.active"):
        return undeclared(
            Message(
                english("sheet_number_doubtful", "the sheet's own number is doubtful ({doubt})"),
                {"doubt": doubt},
            )
        )
    bridged = 0 in sheet.nvlink.active
    if not gpu.nvlink_active and bridged:
        return undeclared(
            Message(
                english(
                    "no_bridge_seen",
                    "no NVLink is active: no bridge is seen, and {card} runs without one",
                ),
                {"card": sheet.card},
            )
        )
    if not gpu.nvlink_active and alone:
        return undeclared(
            Message(
                english(
                    "links_withheld",
                    "no NVLink is active: one GPU alone is often given to a VM without its links",
                )
            )
        )
    if sheet.p2p == "nvlink" and 0 < most < full:
        of_board: Values = {"model": sheet.name, "most": most, "of": of}
        return undeclared(
            Message(
                english(
                    "links_of_board",
                    "no {model} here has more than {most} of its {of} NVLinks active: boards "
                    "without a switch differ in how many there are",
                ),
                of_board,
            )
        )
    code = (
        english(
            "nvlinks_bridged",
            "{card} has {full} of its {of} NVLinks active once it is bridged; nvlink_links in the "
            "machine file goes before this",
        )
        if bridged
        else english(
            "nvlinks_on_board",
            "{card} has {full} of its {of} NVLinks active on its board; nvlink_links in the "
            "machine file goes before this",
        )
    )
    basis = Message(code, {"card": sheet.card, "full": full, "of": of})
    return exactly(full, "count", basis), None


def _facts(gpu: GpuFacts, sheet: Sheet | None) -> Iterator[Override]:
    """Limits of the number of multiprocessors and of the memory size."""
    origin = sheet.origin if sheet else NO_SHEET
    number = _figure(gpu, sheet, "sm")
    if isinstance(number, Message):
        yield Override("gpu_sm_count", origin, component=gpu.name, unlimited=number)
    else:
        basis = Message(
            english("multiprocessors_of", "{card} has {number} multiprocessors"),
            {"card": number.card, "number": number.sm},
        )
        yield Override("gpu_sm_count", origin, exactly(number.sm, "count", basis), gpu.name)
    found: Sheet | Amount | Message = _figure(gpu, sheet, "memory.gib")
    if isinstance(found, Sheet):
        gib = found.memory.gib
        found = Amount(gib, {"size": f"{gib:g}", "card": found.card})
    yield from limit_book.floors("memory_size", gpu.name, origin, found)


def _figure(gpu: GpuFacts, sheet: Sheet | None, key: str) -> Sheet | Message:
    """The sheet that has a figure, or why the card is held against none."""
    if sheet is None:
        return _no_sheet(gpu)
    if doubt := sheet.doubt(key):
        return unless_limited(
            Message(
                english("sheet_figure_doubtful", "the sheet's own figure is doubtful ({doubt})"),
                {"doubt": doubt},
            )
        )
    return sheet


def _no_sheet(gpu: GpuFacts) -> Message:
    return unless_limited(
        Message(
            english("no_sheet_of_gpu", "no model sheet is that of {gpu} with PCI id {id}"),
            {"gpu": str(gpu), "id": gpu.device_id},
        )
    )


FROM_LINKS = Message(english("from_links", "derived from the links"))
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
        found.append(
            Amount(
                link.rate,
                {
                    "link": Message(
                        english(
                            "pcie_of",
                            "the PCI Express link of {gpu}, {rate} GB/s ({generation}; {width})",
                        ),
                        values,
                    )
                },
            )
        )
    return min(found, key=lambda one: one.value)


def _floors(which: str, component: Component, way: _Way | None, off: str) -> Iterator[Override]:
    of, found = way or ("pcie", unless_limited(Message("link_not_known")))
    return limit_book.floors(f"{which}_{of}{off}", component, FROM_LINKS, found)


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


def parallel_limits(
    gpus: Sequence[GpuFacts], pairs: Sequence[PairFacts], sheets: Sequence[Sheet]
) -> Iterator[Override]:
    """The limits of parallel training on these GPUs."""
    if len(gpus) < 2:
        return
    if len({gpu.model for gpu in gpus}) > 1:
        # The sum of what all do alone is out of reach where the slowest sets the pace.
        for name in EFFICIENCIES:
            why = Message(
                english(
                    "parallel_mixed",
                    "the GPUs are of several models, and the slowest of them sets the pace of all",
                )
            )
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
        yield from limit_book.floors(of, GPUS, FROM_LINKS, Amount(values={"count": len(gpus)}))
        yield from limit_book.floors("alone_sharded", GPUS, FROM_LINKS, _sharded(min(rates)))
    elif not any(pair.nvlinks for pair in pairs):
        found = _over_pcie(gpus, list(own.values()))
        yield from limit_book.floors("alone_pcie", GPUS, FROM_LINKS, found)


def parallel_ceilings(gpus: Sequence[GpuFacts]) -> Iterator[Override]:
    """The most that an efficiency can be."""
    if len(gpus) > 1:
        yield from limit_book.ceilings("alone", GPUS, Amount(), names=EFFICIENCIES)


def _sharded(rate: float) -> Amount | Message:
    least = limit_book.figures().sharded_least_gbs.value
    if rate >= least:
        return Amount()
    return unless_limited(
        Message(
            english(
                "parallel_sharded_slower",
                "figures of FSDP2 are known only over NVLinks of at least {rate} GB/s",
            ),
            {"rate": f"{least:g}"},
        )
    )


def _over_pcie(gpus: Sequence[GpuFacts], sheets: Sequence[Sheet | None]) -> Amount | Message:
    least, most = (
        limit_book.figures().pcie_least_gbs.value,
        limit_book.figures().pcie_most_tflops.value,
    )
    peaks = [one.peak.by_dtype().get("f16") if one is not None else None for one in sheets]
    slots = host_way(*gpus) if len(gpus) == 2 else None
    if (
        slots is not None
        and slots.value >= least
        and all(peak is not None and peak <= most for peak in peaks)
    ):
        return Amount()
    values: Values = {"peak": f"{most:g}", "rate": f"{least:g}"}
    return unless_limited(
        Message(
            english(
                "parallel_pcie_others",
                "figures over PCI Express are known only of two cards of at most {peak} TFLOP/s "
                "in float16, in slots of at least {rate} GB/s",
            ),
            values,
        )
    )
