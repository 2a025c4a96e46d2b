"""The spreads that two runs of sound hardware may show, and what is refused of their file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cases import each
from real_checks import collected
from refusal import refusal
from site_box import family

from acceptance import resources
from acceptance.core.limit import UNITS
from acceptance.core.message import SetupError
from acceptance.core.site import FamilyFile, SiteChecks
from acceptance.history import noise
from acceptance.history.noise import Spread

SHIPPED = resources.locate("noise.toml")
TEXT = SHIPPED.read_text(encoding="utf-8")
BOOK = noise.read(SHIPPED)


def of(measurement: str, unit: str, *, same_part: bool = True, virtual: bool = False) -> Spread:
    return BOOK.spread(measurement, unit, same_part=same_part, virtual=virtual)


def test_every_measurement_has_a_spread_with_its_basis() -> None:
    for check in collected():
        for measures in check.measures:
            for virtual in (False, True):
                own, other = (
                    of(measures.name, measures.unit, same_part=same, virtual=virtual)
                    for same in (True, False)
                )
                assert own.basis
                assert own.size <= other.size


def test_a_measurement_has_its_own_spread_or_that_of_its_unit() -> None:
    assert (
        of("gemm_f16_short", "TFLOP/s").size
        > of("gemm_i8_short", "TFLOP/s").size
        > of("gemm_bf16", "TFLOP/s").size
    )
    assert of("something_new", "GB/s") == of("another", "GB/s")
    assert of("something_new", "count").size == 0.0


def test_a_vm_has_spreads_of_its_own_where_it_needs_them() -> None:
    assert of("memory_copy", "GB/s", virtual=True).size > of("memory_copy", "GB/s").size
    assert of("gemm_bf16", "TFLOP/s", virtual=True) == of("gemm_bf16", "TFLOP/s")


def test_another_part_may_lie_further_off() -> None:
    assert of("gemm_bf16", "TFLOP/s", same_part=False).size > of("gemm_bf16", "TFLOP/s").size


def test_a_share_is_of_the_larger_value_whichever_comes_first() -> None:
    share = Spread(0.1, False, "basis")
    assert share.between(50.0, -100.0) == share.between(-100.0, 50.0) == 10.0
    assert Spread(3.0, True, "basis").between(50.0, 100.0) == 3.0


def test_what_cannot_be_compared_says_why() -> None:
    assert "how much" in str(BOOK.incomparable("burn_copied"))
    assert BOOK.incomparable("copy_h2d") is None


def test_what_is_worse_without_a_limit_is_told_by_the_unit() -> None:
    assert (BOOK.worse("GB/s"), BOOK.worse("ns"), BOOK.worse("W")) == ("lower", "higher", None)
    assert {unit for unit in UNITS if BOOK.worse(unit) is None} == {
        "count",
        "ratio",
        "degC",
        "W",
        "MHz",
        "s",
    }


def test_few_values_do_not_tell_their_own_spread() -> None:
    general = of("copy_h2d", "GB/s")
    assert BOOK.repeated(general, [50.0] * (BOOK.sheet.repeated.runs - 1)) is general


def test_enough_values_tell_their_own_spread_and_no_less_than_a_part_of_the_general_one() -> None:
    general, rule = of("copy_h2d", "GB/s"), BOOK.sheet.repeated
    still = BOOK.repeated(general, [50.0] * rule.runs)
    assert (still.absolute, still.size) == (
        True,
        pytest.approx(rule.at_least * general.size * 50.0),
    )
    assert still.basis == rule.basis
    moving = BOOK.repeated(general, [40.0, 60.0] * rule.runs)
    assert moving.size == rule.deviations * 10.0
    one_off = BOOK.repeated(general, [*[50.0] * rule.runs, 30.0])
    assert one_off.size == still.size, "one value that is off does not widen what is usual"


def test_the_general_spread_of_small_values_is_a_share_of_them() -> None:
    general, rule = of("copy_h2d", "GB/s"), BOOK.sheet.repeated
    still = BOOK.repeated(general, [0.5] * rule.runs)
    assert still.size == pytest.approx(rule.at_least * general.size * 0.5)


@each(
    "text, told",
    [
        (TEXT.replace("share = 0.5", "share = 0.5\nabsolute = 1"), "either share or absolute"),
        (TEXT.replace("share = 0.5\n", ""), "either share or absolute"),
        (TEXT.replace("other = 0.5", "other = 0.1"), "two parts cannot be nearer"),
        (TEXT.replace('unit = "GT/s"', 'unit = "GT"'), "every unit must stand there once"),
        (TEXT.replace('unit = "GT/s"', 'unit = "MT/s"'), "every unit must stand there once"),
        (TEXT.replace("share = 0.5", "share = -0.5"), ">= 0"),
        (TEXT.replace("share = 0.5", "shares = 0.5"), "unknown field `shares`"),
        (TEXT.replace("deviations = 15", "deviations = -1"), ">= 0"),
        (
            TEXT.replace("[repeated]", "[often]"),
            "missing required field `repeated`|unknown field `often`",
        ),
        ("[[", "Invalid"),
        ("\ud800", "codec|utf-8|Invalid"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(text: str, told: str, tmp_path: Path) -> None:
    said = refusal(noise.read, tmp_path / "noise.toml", text, SetupError)
    assert re.match(rf"noise\.toml: .*({told})", said)


def test_a_file_that_is_not_there_names_the_cure(tmp_path: Path) -> None:
    with pytest.raises(
        SetupError,
        match=r"cannot be read \(No such file or directory\): install rigproof again",
    ):
        noise.read(tmp_path / "noise.toml")


@each(
    "share, value, low, high",
    [
        (0.25, 1.7e308, pytest.approx(1.275e308), sys.float_info.max),
        (0.25, -1.7e308, -sys.float_info.max, pytest.approx(-1.275e308)),
        (0.5, 0.5, 0.25, 1.0),
        (0.5, -0.5, -1.0, -0.25),
        (0.5, 0.0, 0.0, 0.0),
    ],
)
def test_bounds_of_a_share_widen_on_both_sides_and_are_finite(
    share: float, value: float, low: object, high: object
) -> None:
    bounds = Spread(share, False, "b").bounds(value, None)
    assert (bounds.low, bounds.high) == (low, high)
    assert not bounds.beyond(value)


def test_a_sites_own_measurement_has_the_spread_of_its_family() -> None:
    own = '\n[measurement.noise]\nabsolute = 0.25\nother = 0.5\nbasis = "a busy server"\n'
    text = family("site_mount") + own
    plan = SiteChecks("/etc/checks", "abc", (FamilyFile("mount.toml", text),))
    other = SiteChecks("/etc/checks", "def", (FamilyFile("mount.toml", family("site_mount")),))
    unread = SiteChecks("/etc/checks", "ghi", (FamilyFile("mount.toml", "title = 7"),))
    book = BOOK.with_site(None, unread, plan, other)
    found = book.spread("site_mount", "s", same_part=True, virtual=False)
    assert (found.size, found.absolute, found.basis) == (0.25, True, "a busy server")
    assert BOOK.with_site(other).spread("site_mount", "s", same_part=True, virtual=False) == of(
        "something_new", "s"
    )
    assert book.spread("gemm_bf16", "TFLOP/s", same_part=True, virtual=False) == of(
        "gemm_bf16", "TFLOP/s"
    )
