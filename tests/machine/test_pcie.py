from __future__ import annotations

from cases import each

from acceptance.machine import pcie
from acceptance.wording import words


@each(
    "card, slot, found",
    [
        (16, 16, (16, "card and slot both offer x16")),
        (16, 8, (8, "the slot offers x8, the card x16: the slot limits")),
        (8, 16, (8, "the slot offers x16, the card x8: the card limits")),
        (
            16,
            None,
            (16, "the card offers x16, and the slot's maximum is not shown (a VM withholds it)"),
        ),
        (None, 8, (8, "the slot offers x8, and the card's own maximum is not shown")),
        (None, None, None),
    ],
)
def test_the_lesser_side_limits_and_is_named(
    card: int | None, slot: int | None, found: tuple[int, str] | None
) -> None:
    most = pcie.link_maximum(pcie.told_width, card, slot)
    assert (most and (most.value, words.message(most.told))) == found
    assert pcie.lower_maximum(card, slot) == (found and found[0])


@each(
    "generation, width, rate, told",
    [
        (1, 16, 4.0, "2.5 GT/s x 16 lanes x 8/10 / 8"),
        (2, 16, 8.0, "5 GT/s x 16 lanes x 8/10 / 8"),
        (3, 16, 15.754, "8 GT/s x 16 lanes x 128/130 / 8"),
        (4, 8, 15.754, "16 GT/s x 8 lanes x 128/130 / 8"),
        (5, 16, 63.015, "32 GT/s x 16 lanes x 128/130 / 8"),
        (6, 16, 118.0, "64 GT/s x 16 lanes x 236/256 / 8"),
        (7, 1, 14.75, "128 GT/s x 1 lanes x 236/256 / 8"),
    ],
)
def test_the_data_rate_of_each_generation(
    generation: int, width: int, rate: float, told: str
) -> None:
    found = pcie.data_rate(generation, width)
    assert (round(found[0], 3), words.message(found[1])) == (rate, told)


def test_a_generation_to_come_has_no_rate() -> None:
    assert pcie.data_rate(8, 16) is None
    assert pcie.data_rate(0, 16) is None


@each(
    "transfers_gts, generation",
    [(2.5, 1), (16.0, 4), (32.0, 5), (128.0, 7), (15.9, None), (0.0, None), (None, None)],
)
def test_a_speed_names_its_generation(transfers_gts: float | None, generation: int | None) -> None:
    assert pcie.generation(transfers_gts) == generation
