"""Limits for pairs of GPUs: peer-to-peer access, its gain, and its write bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.message import Message, Values
from acceptance.core.parts import Component, Pair
from acceptance.expect import derived
from acceptance.expect.derived import Amount
from acceptance.expect.limit_book import NO_SHEET, PAIR_TABLE, Override, exactly, unless_limited
from acceptance.expect.sheet import Sheet

FROM_PATH = Message("from_path")


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
    yield from derived.floors(
        f"copy_off_{'nvlink' if joined else without}",
        component,
        FROM_PATH,
        Amount(values={"links": joined} if joined else {}),
    )
    links: Amount | Message = Message("path_decides")
    if joined:
        unknown = unless_limited(Message("nvlink_rate_not_known"))
        links = nvlinks(pair, first.sheet, second.sheet) or unknown
    yield from derived.floors("nvlinks", component, FROM_PATH, links)


def _supported(first: Side, second: Side, pair: PairFacts | None) -> Override:
    component = Pair(first.name, second.name)
    sheets = [side.sheet for side in (first, second) if side.sheet is not None]

    def unlimited(why: Message, by: Message = NO_SHEET) -> Override:
        reason = Message("unless_peers_declared", {"why": why, "table": PAIR_TABLE})
        return Override("p2p_supported", by, component=component, unlimited=reason)

    def held(value: int, basis: Message) -> Override:
        return Override("p2p_supported", NO_SHEET, exactly(value, "count", basis), component)

    for sheet in sheets:
        if doubt := sheet.doubt("p2p"):
            why = Message("peers_doubtful", {"card": sheet.card, "doubt": doubt})
            return unlimited(why, sheet.origin)
    for sheet in sheets:
        if sheet.p2p == "no":
            return held(0, Message("peers_never", {"card": sheet.card, "table": PAIR_TABLE}))
    for side in (first, second):
        if side.sheet is None:
            return unlimited(Message("no_sheet_of", {"gpu": str(side.name), "model": side.model}))
    model = sheets[0]
    if model is not sheets[1]:
        models = {"model": model.name, "other": sheets[1].name}
        return unlimited(Message("two_models", models))
    joined = pair is not None and pair.nvlinks > 0
    if model.p2p == "yes" and not joined and pair is not None and pair.virtual:
        return unlimited(Message("peers_of_hypervisor"))
    if model.p2p == "yes" or (model.p2p == "nvlink" and joined):
        return held(1, Message("peers_always", {"model": model.name, "table": PAIR_TABLE}))
    if model.p2p == "nvlink":
        return unlimited(Message("peers_of_board", {"model": model.name}))
    if pair is None:
        return unlimited(Message("peers_over_bridge", {"card": model.card}))
    code = "peers_bridged" if pair.nvlinks else "peers_not_bridged"
    return held(1 if pair.nvlinks else 0, Message(code, {"card": model.card}))


def nvlinks(pair: PairFacts | None, first: Sheet | None, second: Sheet | None) -> Amount | None:
    """The NVLinks that join two GPUs; None without any, or where their rate is not known."""
    links = [one.nvlink for one in (first, second) if one is not None and one.nvlink is not None]
    if pair is None or not pair.nvlinks or not links:
        return None
    speed = min(link.link_gbs for link in links)
    values: Values = {"links": pair.nvlinks, "speed": f"{speed:g}"}
    return Amount(pair.nvlinks * speed, values)
