"""A disk's link: the current one against the lesser of disk and slot, as data rates."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.core.message import Message, english
from acceptance.machine import pcie


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The PCI Express link of a disk. None: the kernel does not show it.

    Speeds are gigatransfers a second of one lane, widths lanes; `slot_*` is the maximum of the port
    above the disk.
    """

    address: str
    speed_gts: float | None
    width: int | None
    max_speed_gts: float | None
    max_width: int | None
    slot_max_speed_gts: float | None
    slot_max_width: int | None


@dataclass(frozen=True, slots=True)
class SataLink:
    """The SATA link of a disk, in gigabits a second with the coding. None: not shown.

    `max_gbps` is the maximum of the disk, `port_max_gbps` that of the port.
    """

    speed_gbps: float | None
    max_gbps: float | None
    port_max_gbps: float | None


@dataclass(frozen=True, slots=True)
class LinkShare:
    """The data rate of a link as a share of the most that disk and slot can have together.

    `rate_gbs` and `most_gbs` are in GB/s in one direction, before the protocol of the disk; `told`
    names both links.
    """

    rate_gbs: float
    most_gbs: float
    told: Message

    @property
    def share(self) -> float:
        """1 for a link that is as fast as disk and slot allow."""
        return self.rate_gbs / self.most_gbs


# Serial ATA specification: 8 data bits among 10.
SATA_GBS_PER_GBPS = 0.8 / 8


def most(link: PcieLink | SataLink) -> tuple[float, Message] | None:
    """The data rate in GB/s that disk and slot can have together, and its derivation.

    None where neither shows its maximum.
    """
    if isinstance(link, SataLink):
        gbps = _sata_most(link)
        if gbps is None:
            return None
        return gbps * SATA_GBS_PER_GBPS, Message(
            english("disk_sata_rate", "{speed} Gbit/s x 8/10 / 8"), {"speed": f"{gbps:g}"}
        )
    generation, lanes = _pcie_most(link)
    return (
        None
        if generation is None or lanes is None
        else pcie.data_rate(generation.value, lanes.value)
    )


def share(link: PcieLink | SataLink) -> LinkShare | None:
    """The share of a link; None where the link, or the maximum of both sides, is not known.

    A maximum that one side alone shows is that of both.
    """
    return _pcie(link) if isinstance(link, PcieLink) else _sata(link)


def _pcie(link: PcieLink) -> LinkShare | None:
    now = pcie.generation(link.speed_gts)
    generation, lanes = _pcie_most(link)
    if now is None or link.width is None or generation is None or lanes is None:
        return None
    rate, best = pcie.data_rate(now, link.width), pcie.data_rate(generation.value, lanes.value)
    assert rate is not None  # `generation` knows no other
    assert best is not None
    return LinkShare(
        rate[0],
        best[0],
        Message(
            english(
                "disk_link_pcie",
                "the link of {address} runs at {speed} {width}; {most_speed}; {most_width}",
            ),
            {
                "address": link.address,
                "speed": pcie.told_generation(now),
                "width": pcie.told_width(link.width),
                "most_speed": generation.told,
                "most_width": lanes.told,
            },
        ),
    )


def _pcie_most(link: PcieLink) -> tuple[pcie.LinkMaximum | None, pcie.LinkMaximum | None]:
    """The lesser generation and the fewer lanes of disk and slot, each where it is known."""
    generation = pcie.link_maximum(
        pcie.told_generation,
        pcie.generation(link.max_speed_gts),
        pcie.generation(link.slot_max_speed_gts),
    )
    return generation, pcie.link_maximum(pcie.told_width, link.max_width, link.slot_max_width)


def _sata_most(link: SataLink) -> float | None:
    given = [one for one in (link.max_gbps, link.port_max_gbps) if one is not None]
    return min(given, default=None)


def _sata(link: SataLink) -> LinkShare | None:
    best = _sata_most(link)
    if link.speed_gbps is None or best is None:
        return None
    told = Message(
        english(
            "disk_link_sata",
            "the SATA link runs at {speed} Gbit/s; disk and port can both do {most} Gbit/s",
        ),
        {"speed": f"{link.speed_gbps:g}", "most": f"{best:g}"},
    )
    return LinkShare(link.speed_gbps * SATA_GBS_PER_GBPS, best * SATA_GBS_PER_GBPS, told)
