"""A PCI Express link: the lower maximum of card and slot, and the data rate from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acceptance.core.message import Message, english

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


def transfer_rate(generation: int) -> float | None:
    """The gigatransfers a second of one lane of a generation; None for an unknown one."""
    return _LANES[generation][0] if generation in _LANES else None


@dataclass(frozen=True, slots=True)
class LinkMaximum:
    """The maximum of card and slot together, and which of them limits."""

    value: int
    told: Message


def lower_maximum(card: int | None, slot: int | None) -> int | None:
    """The lower maximum of card and slot; one side alone is enough, None where none is known."""
    return min((one for one in (card, slot) if one is not None), default=None)


def told_generation(number: int) -> Message:
    """A generation, for its reader."""
    return Message(english("link_generation", "generation {number}"), {"number": number})


def told_width(lanes: int) -> Message:
    """A number of lanes, for its reader."""
    return Message(english("link_lanes", "x{lanes}"), {"lanes": lanes})


def link_maximum(
    told: Callable[[int], Message], card: int | None, slot: int | None
) -> LinkMaximum | None:
    """The lower maximum of card and slot; `told` is `told_generation` or `told_width`.

    One side alone is enough; None where neither is known.
    """
    if card is not None and slot is not None:
        if card == slot:
            return LinkMaximum(
                card,
                Message(
                    english("card_and_slot_offer", "card and slot both offer {most}"),
                    {"most": told(card)},
                ),
            )
        code = (
            english("slot_limits", "the slot offers {slot}, the card {card}: the slot limits")
            if slot < card
            else english("card_limits", "the slot offers {slot}, the card {card}: the card limits")
        )
        offered = Message(code, {"slot": told(slot), "card": told(card)})
        return LinkMaximum(min(card, slot), offered)
    if card is not None:
        return LinkMaximum(
            card,
            Message(
                english(
                    "card_offers",
                    "the card offers {card}, and the slot's maximum is not shown (a VM withholds "
                    "it)",
                ),
                {"card": told(card)},
            ),
        )
    if slot is not None:
        return LinkMaximum(
            slot,
            Message(
                english(
                    "slot_offers", "the slot offers {slot}, and the card's own maximum is not shown"
                ),
                {"slot": told(slot)},
            ),
        )
    return None


def data_rate(generation: int, width: int) -> tuple[float, Message] | None:
    """The data rate in GB/s in one direction, and its derivation.

    None for an unknown generation.
    """
    if generation not in _LANES:
        return None
    transfers, data, bits = _LANES[generation]
    rate = transfers * width * data / bits / 8
    values = {"transfers": transfers, "width": width, "data": data, "bits": bits}
    return rate, Message(
        english("link_rate", "{transfers} GT/s x {width} lanes x {data}/{bits} / 8"), values
    )
