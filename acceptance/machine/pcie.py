"""A PCI Express link: the lower maximum of card and slot, and the data rate from it."""

from __future__ import annotations

from dataclasses import dataclass

# Source: PCI Express base specification. Gigatransfers a second of one lane, and the data bits
# among all bits: 8 of 10 at first, 128 of 130 from generation 3, 236 of the 256 bytes of a flit
# from generation 6.
_LANES: dict[int, tuple[float, int, int]] = {
    1: (2.5, 8, 10),
    2: (5.0, 8, 10),
    3: (8.0, 128, 130),
    4: (16.0, 128, 130),
    5: (32.0, 128, 130),
    6: (64.0, 236, 256),
    7: (128.0, 236, 256),
}


def generation(transfers_gts: float | None) -> int | None:
    """The generation with this transfer rate of one lane; None for an unknown or missing rate."""
    return next(
        (number for number, (speed, _, _) in _LANES.items() if speed == transfers_gts), None
    )


@dataclass(frozen=True, slots=True)
class LinkMaximum:
    """The maximum of card and slot together, with words that say which of them limits."""

    value: int
    told: str


def lower_maximum(card: int | None, slot: int | None) -> int | None:
    """The lower maximum of card and slot; one side alone is enough, None where none is known."""
    return min((one for one in (card, slot) if one is not None), default=None)


def link_maximum(what: str, card: int | None, slot: int | None) -> LinkMaximum | None:
    """The lower maximum of card and slot; `what` goes before a number ("x", "generation ").

    One side alone is enough; None where neither is known.
    """
    if card is not None and slot is not None:
        if card == slot:
            return LinkMaximum(card, f"card and slot both offer {what}{card}")
        if slot < card:
            return LinkMaximum(
                slot, f"the slot offers {what}{slot}, the card {what}{card}: the slot limits"
            )
        return LinkMaximum(
            card, f"the slot offers {what}{slot}, the card {what}{card}: the card limits"
        )
    if card is not None:
        return LinkMaximum(
            card,
            (
                f"the card offers {what}{card}, and the slot's maximum is not shown (a VM "
                "withholds it)"
            ),
        )
    if slot is not None:
        return LinkMaximum(
            slot, f"the slot offers {what}{slot}, and the card's own maximum is not shown"
        )
    return None


def data_rate(generation: int, width: int) -> tuple[float, str] | None:
    """The data rate in GB/s in one direction, and its derivation.

    None for an unknown generation.
    """
    if generation not in _LANES:
        return None
    transfers, data, bits = _LANES[generation]
    rate = transfers * width * data / bits / 8
    return rate, f"{transfers:g} GT/s x {width} lanes x {data}/{bits} / 8"
