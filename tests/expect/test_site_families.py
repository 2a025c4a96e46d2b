"""Families of a site's own checks are read strictly, and change nothing of rigproof's own."""

from __future__ import annotations

import pytest
from cases import each
from known import known
from site_box import MEASUREMENT, family

from acceptance.core.site import FamilyFile
from acceptance.expect import site_families
from acceptance.expect.site_families import SiteFileError

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
        ("title =", "title", "mount.toml: is not valid TOML"),
        ("title =", "a = " + "[" * 5000 + "\ntitle =", "mount.toml: is n"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in SOUND
    with pytest.raises(SiteFileError) as caught:
        parse(SOUND.replace(old, new, 1))
    assert str(caught.value).startswith("mount.toml")
    assert told in str(caught.value)


def test_a_floor_that_nothing_can_fail_is_refused() -> None:
    floor = SOUND.replace("high = 1.0", "low = 0")
    assert parse(floor)  # seconds may be below 0: how far a clock is off
    with pytest.raises(SiteFileError, match=r"line 11: low is 0, and nothing measured in count"):
        parse(floor.replace('unit = "s"', 'unit = "count"'))
    like = '[[measurement]]\nnames = ["site_other"]\nlike = "site_mount"\nunit = "GB/s"\n'
    with pytest.raises(SiteFileError, match=r"low is 0, and nothing measured in GB/s"):
        parse(floor + like)
    free = like.replace('unit = "GB/s"', 'unit = "W"\nno_limit = "any is right"')
    assert parse(SOUND + free)
    for bound in ("high = 1e6", "low = 0\nhigh = 1e9"):
        with pytest.raises(SiteFileError, match=r"high is 10\d+, and no site_mount is ever above"):
            parse(SOUND.replace("high = 1.0", bound))


@each("unit", ["s", "us", "ns"])
def test_how_far_a_clock_is_off_may_be_nothing_and_less(unit: str) -> None:
    off = SOUND.replace('unit = "s"', f'unit = "{unit}"').replace(
        "high = 1.0", "low = -5\nhigh = 5"
    )
    own = parse(off).measurements.by_name["site_mount"]
    assert own.plausible is None
    assert {known(own.limit).grade(one) for one in (-1.0, 0.0, 0.01)} == {"pass"}


def test_advice_has_two_causes_at_least() -> None:
    start, end = SOUND.index("causes = ["), SOUND.index("next =")
    with pytest.raises(SiteFileError, match=r"advice\.causes must have at least 2 entries"):
        parse(SOUND[:start] + "causes = []\n" + SOUND[end:])


def test_what_another_entry_gives_is_told_of_the_entry() -> None:
    like = '[[measurement]]\nnames = ["site_other"]\nlike = "site_mount"\nlimit = {high = 1.0}\n'
    with pytest.raises(SiteFileError, match="basis"):
        parse(SOUND + like)
    broken = SOUND.replace("high = 1.0", 'high = "1"')
    with pytest.raises(SiteFileError, match="must be a number"):
        parse(broken + like.replace("\nlimit = {high = 1.0}", ""))


def test_what_is_wrong_in_an_entry_further_down_is_told_of_the_one_that_takes_it() -> None:
    like = '[[measurement]]\nnames = ["site_other"]\nlike = "site_mount"\n\n'
    broken = SOUND.replace("[[measurement]]", f"{like}[[measurement]]")
    broken = broken.replace('what = "seconds of something"', "what = 1.5")
    with pytest.raises(SiteFileError, match=r"mount.toml, line 4: Expected `str`, got `float`"):
        parse(broken)


def test_a_name_stands_once_in_all_files() -> None:
    files = [FamilyFile(f"{name}.toml", SOUND) for name in ("a", "b")]
    with pytest.raises(SiteFileError, match=r"b.toml, line 4: stands twice, first in a.toml"):
        site_families.parse(files)
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
    with pytest.raises(SiteFileError, match=told):
        parse(with_condition(when))


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
    start, end = SOUND.index("causes = ["), SOUND.index("next =")
    return f"{SOUND[:start]}causes = {causes}\n{SOUND[end:]}"
