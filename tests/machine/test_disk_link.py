from __future__ import annotations

from typing import Any

import pytest
from cases import each
from known import known

from acceptance.machine import disk_link, pcie
from acceptance.machine.disk_link import PcieLink, SataLink
from acceptance.wording import words

FULL: dict[str, Any] = {
    "address": "0000:04:00.0",
    "speed_gts": 16.0,
    "width": 4,
    "max_speed_gts": 16.0,
    "max_width": 4,
    "slot_max_speed_gts": 16.0,
    "slot_max_width": 4,
}


@each(
    "changes, share",
    [
        ({}, 1.0),
        ({"width": 2}, 0.5),
        ({"speed_gts": 8.0}, 0.5),
        ({"speed_gts": 8.0, "width": 2}, 0.25),
        # the slot offers less, and the link is as fast as that
        ({"speed_gts": 8.0, "slot_max_speed_gts": 8.0}, 1.0),
        ({"width": 2, "slot_max_width": 2}, 1.0),
        ({"slot_max_speed_gts": 32.0, "slot_max_width": 16}, 1.0),
        ({"slot_max_speed_gts": None, "slot_max_width": None}, 1.0),
        ({"max_speed_gts": None, "max_width": None, "width": 1}, 0.25),
    ],
)
def test_pcie(changes: dict[str, Any], share: float) -> None:
    assert known(disk_link.share(PcieLink(**{**FULL, **changes}))).share == share


def test_pcie_in_words() -> None:
    found = known(disk_link.share(PcieLink(**{**FULL, "width": 2, "slot_max_speed_gts": 8.0})))
    assert (round(found.rate_gbs, 3), round(found.most_gbs, 3)) == (3.938, 3.938)
    assert words.message(found.told) == (
        "the link of 0000:04:00.0 runs at generation 4 x2; "
        "the slot offers generation 3, the card generation 4: the slot limits; "
        "card and slot both offer x4"
    )


@each(
    "name",
    [
        ("speed_gts",),
        ("width",),
        ("max_speed_gts", "slot_max_speed_gts"),
        ("max_width", "slot_max_width"),
    ],
)
def test_a_link_that_is_not_shown(name: tuple[str, ...]) -> None:
    assert disk_link.share(PcieLink(**{**FULL, **dict.fromkeys(name)})) is None


# --- the most that disk and slot can have ---


@each(
    "link, most, told",
    [
        (PcieLink(**FULL), 7.87692, "16 GT/s x 4 lanes x 128/130 / 8"),
        (PcieLink(**{**FULL, "speed_gts": None, "width": None}), 7.87692, None),
        (PcieLink(**{**FULL, "slot_max_speed_gts": 8.0}), 3.93846, None),
        (PcieLink(**{**FULL, "max_width": None, "slot_max_width": 2}), 3.93846, None),
        (SataLink(1.5, 6.0, 3.0), 0.3, "3 Gbit/s x 8/10 / 8"),
        (SataLink(None, None, 6.0), 0.6, "6 Gbit/s x 8/10 / 8"),
        (SataLink(None, 1.5, None), 0.15, "1.5 Gbit/s x 8/10 / 8"),
    ],
)
def test_most(link: PcieLink | SataLink, most: float, told: str | None) -> None:
    found = known(disk_link.most(link))
    assert found[0] == pytest.approx(most, rel=1e-5)
    if told is not None:
        assert words.message(found[1]) == told


@each(
    "link",
    [
        PcieLink(**{**FULL, "max_speed_gts": None, "slot_max_speed_gts": None}),
        PcieLink(**{**FULL, "max_width": None, "slot_max_width": None}),
        PcieLink(**{**FULL, "max_speed_gts": 3.0, "slot_max_speed_gts": None}),
        SataLink(6.0, None, None),
    ],
)
def test_a_most_that_neither_side_shows(link: PcieLink | SataLink) -> None:
    assert disk_link.most(link) is None


def test_an_unknown_speed() -> None:
    assert disk_link.share(PcieLink(**{**FULL, "speed_gts": 3.0})) is None


@each(
    "speed, disk, port, share",
    [
        (6.0, 6.0, 6.0, 1.0),
        (3.0, 6.0, 6.0, 0.5),
        (3.0, 6.0, 3.0, 1.0),
        (1.5, None, 6.0, 0.25),
        (3.0, 3.0, None, 1.0),
        (None, 6.0, 6.0, None),
        (6.0, None, None, None),
    ],
)
def test_sata(
    speed: float | None, disk: float | None, port: float | None, share: float | None
) -> None:
    found = disk_link.share(SataLink(speed, disk, port))
    assert (found and found.share) == share


def test_sata_in_words() -> None:
    found = known(disk_link.share(SataLink(3.0, 6.0, None)))
    assert (found.rate_gbs, found.most_gbs) == pytest.approx((0.3, 0.6))
    assert words.message(found.told) == (
        "the SATA link runs at 3 Gbit/s; disk and port can both do 6 Gbit/s"
    )


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
