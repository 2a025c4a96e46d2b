"""The families of measurements: what is refused of their files, what the shipped ones hold, and
that the documentation holds the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import measurement_page
import pytest
from cases import each
from real_checks import collected

from acceptance.core.advice import Advice, LikelyCause
from acceptance.core.limit import Limit
from acceptance.core.message import SetupError
from acceptance.expect import loosest, measurements
from acceptance.expect.collected import Measures
from acceptance.expect.loosest import Bounds
from acceptance.expect.measurements import (
    Measurement,
    Measurements,
    Noise,
    Rate,
    Season,
    Sense,
)

SHIPPED = measurements.shipped()

HEAD = 'title = "Rates"\nis_not = "a proof"\n'
ADVICE = """
[measurement.advice]
symptom = "It is slow."
causes = [{ what = "one", tell = "look" }, { what = "two", tell = "listen" }]
next = "lspci"
shows = "a line"
vendor = "the serial number"
"""
FIRST = (
    """
[[measurement]]
names = ["rate_a", "rate_b"]
per = ["gpu-a", "gpu-b"]
unit = "GB/s"
what = "bytes / seconds"
no_limit = "no sheet"

[measurement.noise]
share = 0.1
other = 0.2
basis = "n"
"""
    + ADVICE
)
SECOND = """
[[measurement]]
names = ["errors"]
like = "rate_b"
per = "gpu"
per_in = { "link.alone" = "gpus" }
unit = "count"
waivable = false
noise = "rate_a"

[measurement.limit]
high = 0
warn_high = -1
basis = "none"

[measurement.sense]
worse = "higher"
basis = "s"

[measurement.season]
change = 7
basis = "t"

[measurement.counter]
per_day = 1
most_per_day = 1
basis = "c"

[measurement.noise_in_vm]
absolute = 1
other = 1
basis = "v"
"""
FACT = """
[[measurement]]
names = ["cores"]
per = "cpu"
unit = "count"
fact = true
what = "cores"
incomparable = "i"
exempt = "e"
advice = "rate_a"
"""


def families(folder: Path, **texts: str) -> Measurements:
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(HEAD + text, encoding="utf-8")
    return measurements.read(folder)


@each(
    "unit, more, bound",
    [
        ("GB/s", "", ("high", 1e5)),
        ("GB/s", "possible = [1, 9]", ("high", 9.0)),
        # How far a clock is off may be nothing, and below it.
        ("us", "", None),
        ("ns", "", None),
        ("ns", "possible = [20, 1e7]", ("low", 20.0)),
        # A whole machine of GPUs, as HPL-MxP counts it.
        ("GFLOP/s", "", ("high", 1e8)),
        ("us", "possible = [2, 9]\npossible_basis = 'why'", ("low", 2.0)),
        ("degC", "", None),
    ],
)
def test_the_better_side_of_what_can_occur_is_a_ceiling(
    unit: str, more: str, bound: tuple[str, float] | None, tmp_path: Path
) -> None:
    text = FIRST.replace("\nwhat", f"\n{more}\nwhat").replace('unit = "GB/s"', f'unit = "{unit}"')
    (tmp_path / "a.toml").write_text(HEAD + text, encoding="utf-8")
    found = next(iter(measurements.read(tmp_path).by_name.values())).plausible
    if bound is None:
        assert found is None
    else:
        assert found is not None
        assert {"low": found.low, "high": found.high}[bound[0]] == bound[1]
        assert (found.basis == "why") == ("why" in more)


def test_a_measurement_has_all_that_its_entry_says(tmp_path: Path) -> None:
    found = families(tmp_path, rates=FIRST)
    assert [one.title for one in found.families] == ["Rates"]
    assert found.by_name["rate_b"] == Measurement(
        name="rate_b",
        family="rates",
        unit="GB/s",
        per="gpu-b",
        per_in={},
        ratio_of=None,
        fact=False,
        waivable=True,
        what="bytes / seconds",
        limit=None,
        no_limit="no sheet",
        noise=Noise(share=0.1, other=0.2, basis="n"),
        noise_in_vm=None,
        incomparable=None,
        exempt=None,
        sense=None,
        season=None,
        counter=None,
        advice=Advice(
            "It is slow.",
            (LikelyCause("one", "look"), LikelyCause("two", "listen")),
            "lspci",
            "a line",
            "the serial number",
        ),
        advice_of="rate_a",
        own=Bounds(possible=(0.01, 1e5)),
        plausible=loosest.plausible("GB/s", (0.01, 1e5)),
    )
    assert found.get("rate_c") is None


def test_an_entry_takes_what_it_does_not_say_from_another(tmp_path: Path) -> None:
    found = families(tmp_path, a=SECOND, b=FIRST, c=FACT)
    one, like = found.by_name["errors"], found.by_name["rate_b"]
    assert (one.family, one.what, one.advice) == ("a", like.what, like.advice)
    assert (one.advice_of, one.noise) == ("rate_a", like.noise)
    assert (one.limit, one.no_limit) == (Limit("count", "none", high=0, warn_high=-1), None)
    assert (one.sense, one.season) == (Sense("higher", "s"), Season(7.0, "t"))
    assert one.counter == Rate(per_day=1.0, most_per_day=1.0, basis="c", over_days=0.0, step=0.0)
    assert one.noise_in_vm == Noise(absolute=1.0, other=1.0, basis="v")
    assert one.noise_in_vm.own == 1.0
    fact = found.by_name["cores"]
    assert (fact.fact, fact.limit, fact.no_limit) == (True, None, None)
    assert (fact.incomparable, fact.exempt, fact.noise) == ("i", "e", None)
    assert (fact.advice, fact.advice_of) == (like.advice, "rate_a")


def test_the_advice_is_of_the_measurement_at_which_it_stands(tmp_path: Path) -> None:
    found = families(tmp_path, a=FIRST, b=SECOND + ADVICE)
    assert found.by_name["errors"].advice_of == "errors"
    assert found.by_name["rate_b"].advice_of == "rate_a"


def test_components_of_single_checks_are_nothing_that_others_take(tmp_path: Path) -> None:
    first = FIRST.replace("\nwhat =", '\nper_in = { "link.all" = "gpus" }\nwhat =')
    like = '[[measurement]]\nnames = ["rate_c"]\nlike = "rate_a"\nper = "gpu"\n'
    found = families(tmp_path, a=first + like)
    assert found.by_name["rate_a"].per_in == {"link.all": "gpus"}
    assert found.by_name["rate_c"].per_in == {}


def test_what_a_ratio_is_of_is_nothing_that_others_take(tmp_path: Path) -> None:
    ratio = FIRST.replace('["rate_a", "rate_b"]', '["a_ratio", "b_ratio"]').replace(
        'unit = "GB/s"', 'unit = "ratio"\nratio_of = ["rate_a", "rate_b"]'
    )
    like = '[[measurement]]\nnames = ["share"]\nlike = "a_ratio"\nper = "gpu"\n'
    found = families(tmp_path, a=FIRST + ratio + like)
    assert found.by_name["a_ratio"].ratio_of == "rate_a"
    assert found.by_name["share"].ratio_of is None


def test_an_entry_without_a_limit_takes_nothing_that_a_limit_needs(tmp_path: Path) -> None:
    counted = FIRST.replace(
        'no_limit = "no sheet"',
        'faults = 3\n[measurement.limit]\nhigh = 3\nbasis = "b"\n',
    )
    like = '[[measurement]]\nnames = ["rate_c"]\nlike = "rate_a"\nper = "gpu"\nno_limit = "n"\n'
    found = families(tmp_path, a=counted + like)
    assert found.by_name["rate_a"].own.faults == 3
    one = found.by_name["rate_c"]
    assert (one.limit, one.no_limit, one.own.faults) == (None, "n", None)


def test_a_check_may_measure_it_of_other_components(tmp_path: Path) -> None:
    one = families(tmp_path, a=FIRST + SECOND).by_name["errors"]
    own = Bounds(possible=(0, 1e6))
    for check, per in (("link.all", "gpu"), ("link.alone", "gpus")):
        assert one.measured_by(check) == Measures("errors", "count", per, False, False, own=own)


@each(
    "text, told",
    [
        (FIRST + FIRST, "a.toml: rate_a: stands twice, first in a.toml"),
        (FIRST.replace('"rate_b"', '"rate_a"'), "a.toml: rate_a: stands twice"),
        (FIRST.replace('["rate_a", "rate_b"]', "[]"), "a.toml: names of entry 1: .*length >= 1"),
        (FIRST.replace('["rate_a", "rate_b"]', "7"), "a.toml: names of entry 1: Expected `array`"),
        (FIRST.replace("names", "name"), "a.toml: names of entry 1: "),
        (FIRST.replace('"gpu-b"]', '"gpu-b", "x"]'), "rate_a: per is one class of components, or"),
        (FIRST.replace('"GB/s"', '"GB"'), "a.toml: rate_a: unit 'GB' is no unit of ours"),
        (FIRST.replace("what", "that"), "rate_a: .*(unknown field `that`|required field `what`)"),
        (FIRST.replace("no_limit", "fact = true\nno_limit"), "needs either limit or no_limit"),
        (FIRST.replace('no_limit = "no sheet"\n', ""), "needs either limit or no_limit"),
        (FIRST + "[measurement.limit]\nlow = 1\nbasis = 'b'\n", "needs either limit or no_limit"),
        (FIRST.replace("share = 0.1", ""), r"either share or absolute.*noise"),
        (FIRST.replace("share = 0.1", "share = 0.1\nabsolute = 1"), "either share or absolute"),
        (FIRST.replace("other = 0.2", "other = 0.05"), "two parts cannot be nearer"),
        (FIRST.replace("other = 0.2", "other = 1.0"), "a share of 1 or more allows every value"),
        (FIRST.replace("share = 0.1", "share = -0.1"), ">= 0"),
        (FIRST.replace("shows", "looks"), "rate_a: .*advice"),
        (FIRST.replace('"lspci"', '"lspci -s {address}"'), "such a command needs it.*advice"),
        (FIRST + SECOND.replace("= 0\n", "= nan\n"), "errors: high is nan"),
        (FIRST + SECOND.replace("high = 0\nwarn_high = -1\n", ""), "errors: .*low, high, or both"),
        (FIRST + SECOND.replace('"higher"', '"more"'), "errors: Invalid enum value.*sense"),
        (FIRST + SECOND.replace("change = 7", "change = 0"), "errors: .*> 0.*season"),
        (FIRST + SECOND.replace("most_per_day = 1", "most_per_day = 0.5"), "is less than per_day"),
        (FIRST + SECOND.replace("per_day = 1\nmost", "per_day = -1\nmost"), ">= 0"),
        (FIRST + SECOND.replace("waivable", "exempt = 'x'\nwaivable"), "it cannot be exempt"),
        (
            FIRST.replace("no_limit", 'ratio_of = ["x", "y"]\nno_limit'),
            "ratio_of needs the unit ratio, and one name for each",
        ),
        (
            FIRST + FACT.replace('"count"', '"ratio"\nratio_of = ["x"]'),
            "cores: ratio_of names x, which no family has",
        ),
        (FIRST + SECOND.replace('"rate_b"', '"rate_c"'), "like is 'rate_c', which has no whole"),
        (FIRST + SECOND.replace('"rate_b"', '["rate_b"]'), r"like is \['rate_b'\], which has no"),
        (FIRST + SECOND.replace('"rate_b"', '"errors"'), "like is 'errors', which has no whole"),
        (FIRST + SECOND.replace('"rate_a"', '"rate_c"'), "noise is that of 'rate_c', which has no"),
        (FIRST + SECOND.replace('"rate_a"', '"errors"'), "noise is that of 'errors', which has no"),
        (FIRST.replace("[[measurement]]", "[[measurements]]"), "a.toml: .*measurement"),
        (
            FIRST.replace("\nwhat", "\npossible = [2, 2]\nwhat"),
            "possible is the least that can occur",
        ),
        (FIRST.replace("\nwhat", "\npossible_basis = 'b'\nwhat"), "possible_basis is of possible"),
        (FIRST + "[measurement.loosest]\nbasis = 'b'\n", "needs low, high, or both.*loosest"),
        (FIRST + SECOND.replace("waivable", "faults = 1\nwaivable"), "faults needs neither"),
        (
            FIRST.replace("\nwhat", "\nfaults = 1\nwhat")
            + "[measurement.loosest]\nlow = 1\nbasis = 'b'\n",
            "faults needs neither",
        ),
        (FIRST.replace("\nwhat", "\nfaults = -1\nwhat"), ">= 0"),
        ("more = 1\n" + FIRST, "a.toml: .*unknown field `more`"),
        ("", "a.toml: .*required field `measurement`"),
        ("[[", "a.toml: "),
    ],
)
def test_what_is_wrong_in_a_family_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SetupError, match=told) as caught:
        families(tmp_path, a=text)
    assert str(caught.value).startswith("a.toml: ")


def test_a_name_of_two_families_and_a_folder_without_any_are_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"holds no family: install rigproof again"):
        measurements.read(tmp_path)
    with pytest.raises(SetupError, match=r"b.toml: rate_a: stands twice, first in a"):
        families(tmp_path, a=FIRST, b=FIRST)


# --- what is shipped ---


def test_every_measurement_is_of_a_check_and_every_check_measures_what_a_family_has() -> None:
    checks = {check.id.partition("[")[0] for check in collected()}
    measured = {measures.name for check in collected() for measures in check.measures}
    assert SHIPPED.by_name.keys() == measured
    for one in SHIPPED.by_name.values():
        assert one.per_in.keys() <= checks, one.name


PAGE = measurement_page.PAGE.read_text(encoding="utf-8")


def test_the_documentation_has_the_tables_of_the_families() -> None:
    assert measurement_page.current(PAGE, SHIPPED) == PAGE, "run `make measurements`"


def test_a_family_without_a_section_gets_one_and_a_table_is_brought_up_to_date() -> None:
    title = SHIPPED.families[0].title
    less = PAGE.replace(measurement_page.sections(PAGE)[title], "").replace("GB/s | `memory`", "")
    made = measurement_page.current(less, SHIPPED)
    assert measurement_page.sections(made).keys() == measurement_page.sections(PAGE).keys()
    assert made.count("GB/s | `memory`") == PAGE.count("GB/s | `memory`")
    assert f"## {title}\n\n| name | unit | component |" in made


@pytest.mark.parametrize("family", SHIPPED.families, ids=lambda family: family.name)
def test_the_documentation_says_what_the_numbers_of_a_family_are_not(
    family: measurements.Family,
) -> None:
    plain = " ".join(measurement_page.sections(PAGE)[family.title].split())
    assert re.search(rf"(is|are) not: {re.escape(family.is_not)}[.;:]", plain), family.is_not


def test_the_documentation_has_a_section_for_each_family_and_no_other() -> None:
    titles = sorted(measurement_page.sections(PAGE))
    assert titles == sorted(family.title for family in SHIPPED.families)
