"""Families of a site's own checks are read strictly, and change nothing of rigproof's own."""

from __future__ import annotations

import pytest
from cases import each
from known import known
from refusal import assert_raises, raised
from site_box import MEASUREMENT, family

from acceptance.core.message import UserError
from acceptance.core.plan import FamilyFile
from acceptance.expect import site_families

SOUND = family("site_mount")


def parse(text: str) -> site_families.SiteFamilies:
    return site_families.parse([FamilyFile("mount.toml", text)])


def test_a_family_with_settings() -> None:
    text = SOUND.replace("\n[[", '\n[settings]\nmount = "/data"\nmib = 16\n\n[[', 1)
    found = parse(text)
    assert found.settings == {"mount": {"mount": "/data", "mib": 16}}
    own = found.measurements.by_name["site_mount"]
    assert (own.family, own.unit, own.per) == ("mount", "s", "machine")
    assert known(own.limit).high == 1.0
    assert own.advice.symptom == "It is slow at this site."


def test_one_entry_may_be_like_another() -> None:
    like = '[[measurement]]\nnames = ["site_other"]\nlike = "site_mount"\n'
    found = parse(SOUND + like).measurements.by_name
    assert found["site_other"].limit == found["site_mount"].limit


@each(
    "old, new, told",
    [
        ('"site_mount"', '"gemm_bf16"', "line 5: gemm_bf16 is a measurement of rigproof's own"),
        ('"site_mount"', '"mount"', "line 5: 'mount' is no name for a measurement of a site"),
        ('"site_mount"', "7", "line 5: 7 is no name for a measurement of a site"),
        ('["site_mount"]', "7", "line 5: names must be a list of names"),
        (
            'unit = "s"',
            'unit = "min"',
            "line 7: unit 'min' is none that rigproof knows: correct it (one of GB/s",
        ),
        ('[measurement.limit]\nhigh = 1.0\nbasis = "a second is enough"', "", "line 4: site_mount"),
        ('names = ["site_mount"]', "", "line 4: names must be a list of names"),
        ("high = 1.0", "high = inf", "line 11: measurement (number 1).limit.high: high is inf: a"),
        ("high = 1.0", 'high = "1"', "line 11: measurement (number 1).limit.high must be a number"),
        ("high = 1.0", "warn_high = 1.0", "line 10: measurement (number 1).limit: a limit needs"),
        (
            "high = 1.0",
            "high = 1.0\nhigh = 2.0",
            "line 12: measurement (number 1).limit.high is gi",
        ),
        ("high = 1.0", "hihg = 1.0", "line 11: measurement (number 1).limit.hihg is no key"),
        ("shows =", "show =", "did you mean shows?"),
        ('unit = "s"', 'unit = "s"\nfact = true', "line 8: fact has no place in a check of a site"),
        ('unit = "s"', 'unit = "s"\nratio_of = ["x"]', "line 8: ratio_of has no place"),
        ('unit = "s"', 'unit = "s"\nper_in = {a = "gpu"}', "line 8: per_in has no place"),
        ("vendor =", 'events = ["xid"]\nvendor =', "advice.events is for rigproof's own advice"),
        ("title =", "titel =", "titel is no key"),
        ("title =", "qqqq = 1\ntitle =", "qqqq is no key"),  # advice holds other advice
        ("title =", "title", "mount.toml, line 1: is not valid TOML"),
        ("title =", "a = " + "[" * 5000 + "\ntitle =", "mount.toml: is n"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in SOUND
    with pytest.raises(UserError) as caught:
        parse(SOUND.replace(old, new, 1))
    assert str(caught.value).startswith("mount.toml")
    assert told in str(caught.value)


FLOOR = SOUND.replace("high = 1.0", "low = 0")
OTHER = '[[measurement]]\nnames = ["site_other"]\nlike = "site_mount"\n'
FREE = OTHER + 'unit = "W"\nno_limit = "any is right"\n'
CAUSES = SOUND[SOUND.index("causes = [") : SOUND.index("next =")]
LATER = SOUND.replace("[[measurement]]", f"{OTHER}\n[[measurement]]").replace(
    'what = "seconds of something"', "what = 1.5"
)


# Seconds may be below 0: how far a clock is off.
@each("text", [FLOOR, SOUND + FREE])
def test_a_bound_that_something_can_fail(text: str) -> None:
    assert parse(text)


@each(
    "text, told",
    [
        (
            FLOOR.replace('unit = "s"', 'unit = "count"'),
            r"line 11: low is 0, and nothing measured in count",
        ),
        (FLOOR + OTHER + 'unit = "GB/s"\n', r"low is 0, and nothing measured in GB/s"),
        *(
            (
                SOUND.replace("high = 1.0", bound),
                r"high is 10\d+, and no site_mount is ever above",
            )
            for bound in ("high = 1e6", "low = 0\nhigh = 1e9")
        ),
        (SOUND.replace(CAUSES, "causes = []\n"), r"advice\.causes must have at least 2 entries"),
        (SOUND + OTHER + "limit = {high = 1.0}\n", "basis"),
        (SOUND.replace("high = 1.0", 'high = "1"') + OTHER, "must be a number"),
        (LATER, r"mount.toml, line 4: Expected `str`, got `float`"),
    ],
    told=[
        *("a floor that nothing can fail", "one of another unit in an entry like it"),
        *("a ceiling beyond all that occurs", "a range of all that occurs"),
        *("advice has two causes at least", "an entry's own limit without a basis"),
        *("what another entry gives", "told of the entry that takes it from further down"),
    ],
)
def test_what_is_wrong_in_a_bound_or_in_another_entry(text: str, told: str) -> None:
    assert_raises(UserError, parse, text, match=told)


@each("unit", ["s", "us", "ns"])
def test_how_far_a_clock_is_off_may_be_nothing_and_less(unit: str) -> None:
    off = SOUND.replace('unit = "s"', f'unit = "{unit}"').replace(
        "high = 1.0", "low = -5\nhigh = 5"
    )
    own = parse(off).measurements.by_name["site_mount"]
    assert own.plausible is None
    assert {known(own.limit).grade(one) for one in (-1.0, 0.0, 0.01)} == {"pass"}


def test_a_name_stands_once_in_all_files() -> None:
    files = [FamilyFile(f"{name}.toml", SOUND) for name in ("a", "b")]
    assert "b.toml, line 4: stands twice, first in a.toml" in raised(
        UserError, site_families.parse, files
    )
    assert "site_x" in parse(SOUND + MEASUREMENT.format(name="site_x")).measurements.by_name


@each(
    "when, told",
    [
        ('{ measurement = "site_mont", is = "failed" }', "names site_mont, which no family has"),
        ('{ measurement = "site_mount" }', "needs is, the side of its value"),
        ('{ measurement = "site_mount", is = "there" }', "is not for this condition"),
        ('{ rule = "memory_is_bad", is = "failed" }', "is not for this condition"),
        ('{ measurement = "site_mount", is = "below" }', "value goes with"),
        ('{ measurement = "site_mount", event = "xid" }', "one of measurement, event and rule"),
        ("{ }", "one of measurement, event and rule"),
        ('{ measurement = [], is = "failed" }', "measurement"),
        ("{ event = [] }", "event"),
    ],
)
def test_a_condition_that_cannot_be_is_told(when: str, told: str) -> None:
    assert_raises(UserError, parse, with_condition(when), match=told)


@each(
    "when",
    [
        '{ measurement = ["site_mount"], is = "above", value = 0.5 }',
        '{ event = ["xid"], is = "before" }',
        '{ rule = "memory_is_bad" }',
    ],
)
def test_a_condition_may_be_on_one_name_in_a_list(when: str) -> None:
    parse(with_condition(when))


def with_condition(when: str) -> str:
    """A sound file whose first cause has this condition."""
    other = '{ what = "two", tell = "listen" }'
    causes = f'[{{ what = "one", tell = "look", when = {when} }}, {other}]'
    return SOUND.replace(CAUSES, f"causes = {causes}\n")
