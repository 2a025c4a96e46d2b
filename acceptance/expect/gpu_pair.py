"""Limits for pairs of GPUs: peer-to-peer access, its gain, and its write bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.message import Message, Values
from acceptance.core.parts import Component, Pair
from acceptance.expect.limit_book import (
    NO_SHEET,
    PAIR_TABLE,
    Override,
    at_least,
    exactly,
    unless_limited,
)
from acceptance.expect.sheet import Sheet

# Over NVLink, relative to copies through the host: 3090 Ti 8.5 times, H100 9.7, A100 12. The lowest
# possible gain, one V100 link beside a whole Gen3 x16, is still above 2.
NVLINK_GAIN = 2.0
# Without NVLink both go over PCI Express: equal within the noise (4090: 1.00 to 1.02), or faster
# without the host between.
PCIE_GAIN = 0.9
# Healthy pairs: 3090 Ti 52.8 of 56.3 GB/s (0.94), A100 270 of 300 (0.90), H100 365 of 450 (0.81).
WRITE_SHARE = 0.65
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
    yield _gain(Pair(first.name, second.name), pair)
    yield from (_write(name, first, second, pair) for name in WRITES)


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


def _gain(component: Component, pair: PairFacts | None) -> Override:
    floor = PCIE_GAIN
    if pair is not None and pair.nvlinks:
        floor = NVLINK_GAIN
        basis = Message("gain_of_nvlink", {"factor": f"{floor:g}", "links": pair.nvlinks})
    elif pair is not None and pair.p2p == "ok":
        basis = Message("gain_of_peers", {"factor": f"{floor:g}"})
    else:
        basis = Message("gain_of_none", {"factor": f"{floor:g}"})
    return Override("p2p_gain", FROM_PATH, at_least(floor, "ratio", basis), component)


# Write bandwidths from one GPU to another, each measured by a program of its own:
# p2pBandwidthLatencyTest, nvbandwidth twice, our copy load.
WRITES = ("p2p_write", "copy_d2d_read", "copy_d2d_write", "copy_own_p2p")


def _write(name: str, first: Side, second: Side, pair: PairFacts | None) -> Override:
    component = Pair(first.name, second.name)
    if pair is None or not pair.nvlinks:
        reason = Message("path_decides")
        return Override(name, FROM_PATH, component=component, unlimited=reason)
    links = [
        side.sheet.nvlink
        for side in (first, second)
        if side.sheet is not None and side.sheet.nvlink is not None
    ]
    if not links:
        reason = unless_limited(Message("nvlink_rate_not_known"))
        return Override(name, FROM_PATH, component=component, unlimited=reason)
    speed = min(link.link_gbs for link in links)
    values: Values = {"share": f"{WRITE_SHARE:g}", "links": pair.nvlinks, "speed": f"{speed:g}"}
    limit = at_least(
        WRITE_SHARE * pair.nvlinks * speed, "GB/s", Message("share_of_nvlinks", values)
    )
    return Override(name, FROM_PATH, limit, component)
