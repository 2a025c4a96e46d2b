"""Limits for pairs of GPUs: peer-to-peer access, its gain, and its write bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.grammar import with_article
from acceptance.expect.limit_book import NO_SHEET, Override, at_least, exactly
from acceptance.expect.sheet import Sheet

# Over NVLink, relative to copies through the host: 3090 Ti 8.5 times, H100 9.7, A100 12. The lowest
# possible gain, one V100 link beside a whole Gen3 x16, is still above 2.
NVLINK_GAIN = 2.0
# Without NVLink both go over PCI Express: equal within the noise (4090: 1.00 to 1.02), or faster
# without the host between.
PCIE_GAIN = 0.9
# Healthy pairs: 3090 Ti 52.8 of 56.3 GB/s (0.94), A100 270 of 300 (0.90), H100 365 of 450 (0.81).
WRITE_SHARE = 0.65


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Facts of the path from GPU `a` to GPU `b` ("gpu0", "gpu1").

    `nvlinks` is how many links lead from one to the other, directly or through a switch; `p2p` is
    NVML's status of peer-to-peer access ("ok", "chipset-not-supported", ...), None where it has
    none.
    """

    a: str
    b: str
    nvlinks: int
    p2p: str | None


@dataclass(frozen=True, slots=True)
class Side:
    """One GPU of a pair: its component name, its model's name, and that model's sheet."""

    name: str
    model: str
    sheet: Sheet | None


def pair_limits(first: Side, second: Side, pair: PairFacts | None) -> Iterator[Override]:
    """The limits of the path from one GPU to another.

    `pair` is None where NVML says nothing of the pair.
    """
    yield _supported(first, second, pair)
    yield _gain(f"{first.name}->{second.name}", pair)
    yield from (_write(name, first, second, pair) for name in WRITES)


def _supported(first: Side, second: Side, pair: PairFacts | None) -> Override:
    component, origin = f"{first.name}->{second.name}", NO_SHEET
    sheets = [side.sheet for side in (first, second) if side.sheet is not None]

    def unlimited(reason: str, by: str = origin) -> Override:
        text = f"{reason}: declare p2p in a [[gpu_pair]] of the machine file"
        return Override("p2p_supported", by, component=component, unlimited=text)

    def held(value: int, basis: str) -> Override:
        return Override("p2p_supported", origin, exactly(value, "count", basis), component)

    for sheet in sheets:
        if doubt := sheet.doubt("p2p"):
            return unlimited(
                f"whether {with_article(sheet.name)} has peer-to-peer access is doubtful ({doubt})",
                f"sheet of {sheet.name}",
            )
    for sheet in sheets:
        if sheet.p2p == "no":
            text = (
                f"{with_article(sheet.name)} has no peer-to-peer access: early drivers "
                "advertised it there and delivered wrong data"
            )
            return held(0, f"{text}; `p2p = true` in a [[gpu_pair]] of the machine file allows it")
    for side in (first, second):
        if side.sheet is None:
            return unlimited(f"no model sheet is that of {side.name} ({side.model})")
    model = sheets[0]
    if model is not sheets[1]:
        return unlimited(
            f"two models, {model.name} and {sheets[1].name}, are not known to reach each other"
        )
    if model.p2p == "yes":
        text = f"two {model.name} have peer-to-peer access"
        return held(
            1,
            (
                f"{text}; `p2p = false` in a [[gpu_pair]] of the machine file says that a VM or "
                "its host withholds it"
            ),
        )
    if pair is None:
        return unlimited(
            f"{with_article(model.name)} has peer-to-peer access over an NVLink bridge only, "
            "and NVLinks are not known"
        )
    text = f"{with_article(model.name)} has peer-to-peer access over an NVLink bridge only"
    return (
        held(1, f"{text}, and there is one")
        if pair.nvlinks
        else held(0, f"{text}, and none is seen")
    )


def _gain(component: str, pair: PairFacts | None) -> Override:
    if pair is not None and pair.nvlinks:
        text = (
            f"{NVLINK_GAIN:g} x: over {pair.nvlinks} NVLinks a copy is far faster than through "
            "the host"
        )
        floor = NVLINK_GAIN
    elif pair is not None and pair.p2p == "ok":
        text = (
            f"{PCIE_GAIN:g} x: peer-to-peer copies over PCI Express are no slower than copies "
            "through the host"
        )
        floor = PCIE_GAIN
    else:
        text = (
            f"{PCIE_GAIN:g} x: without peer-to-peer access both go through the host, so on "
            "equals off"
        )
        floor = PCIE_GAIN
    return Override("p2p_gain", "derived from the path", at_least(floor, "ratio", text), component)


# Write bandwidths from one GPU to another, each measured by a program of its own:
# p2pBandwidthLatencyTest, nvbandwidth twice, our copy load.
WRITES = ("p2p_write", "copy_d2d_read", "copy_d2d_write", "copy_own_p2p")


def _write(name: str, first: Side, second: Side, pair: PairFacts | None) -> Override:
    component, origin = f"{first.name}->{second.name}", "derived from the path"
    if pair is None or not pair.nvlinks:
        reason = "without NVLink it depends on switches, sockets and the board: p2p_gain judges it"
        return Override(name, origin, component=component, unlimited=reason)
    links = [
        side.sheet.nvlink
        for side in (first, second)
        if side.sheet is not None and side.sheet.nvlink is not None
    ]
    if not links:
        reason = (
            "no model sheet says how fast one of these NVLinks is: a [[limit]] in the "
            "machine "
            "file judges it all the same"
        )
        return Override(name, origin, component=component, unlimited=reason)
    speed = min(link.link_gbs for link in links)
    text = (
        f"{WRITE_SHARE:g} x {pair.nvlinks} NVLinks x {speed:g} GB/s; healthy pairs reach 0.81 "
        "to "
        "0.94 of the rate"
    )
    return Override(
        name, origin, at_least(WRITE_SHARE * pair.nvlinks * speed, "GB/s", text), component
    )
