from __future__ import annotations

import math

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.limit import GIB, MIB, UNITS, Limit, number
from acceptance.diagnosis.series import Series
from acceptance.wording.errors import WordedError

NAN, INF = math.nan, math.inf
finite = st.floats(allow_nan=False, allow_infinity=False)


@each(
    "limit, value, grade",
    [
        (Limit("W", "b", low=1.0), 1.0, "pass"),
        (Limit("W", "b", low=1.0), math.nextafter(1.0, 0), "fail"),
        (Limit("W", "b", high=1.0), 1.0, "pass"),
        (Limit("W", "b", high=1.0), math.nextafter(1.0, 2), "fail"),
        (Limit("W", "b", low=1.0, warn_low=2.0), 1.5, "warn"),
        (Limit("W", "b", low=1.0, warn_low=2.0), 2.0, "pass"),
        (Limit("W", "b", high=2.0, warn_high=1.0), 1.5, "warn"),
        (Limit("W", "b", high=2.0, warn_high=1.0), 1.0, "pass"),
        (Limit("W", "b", high=0.0), 0.0, "pass"),
        (Limit("W", "b", high=0.0), -0.0, "pass"),
        (Limit("W", "b", high=0.0), 5e-324, "fail"),
        (Limit("W", "b", low=8.0, high=8.0), 8.0, "pass"),
        (Limit("W", "b", low=0.3), 0.1 + 0.2, "pass"),
        (Limit("W", "b", high=0.3), 0.1 + 0.2, "fail"),  # exact comparison, no epsilon
        (Limit("W", "b", low=-1e308), NAN, "fail"),
        (Limit("W", "b", high=1e308), NAN, "fail"),
        (Limit("W", "b", -1e308, 1e308, -1e307, 1e307), NAN, "fail"),
        (Limit("W", "b", low=1.0), -INF, "fail"),
        (Limit("W", "b", high=1.0), INF, "fail"),
    ],
)
def test_a_limit_compares_exactly_and_its_bounds_are_allowed_values(
    limit: Limit, value: float, grade: str
) -> None:
    assert limit.grade(value) == grade


@each(
    "arguments, told",
    [
        ({"unit": "GBps", "low": 1.0}, "did you mean GB/s"),
        ({"unit": "", "low": 1.0}, "one of GB/s"),
        ({"basis": "", "low": 1.0}, "basis is empty"),
        ({"basis": " \t\n", "low": 1.0}, "basis is empty"),
        ({}, "needs low, high, or both"),
        ({"warn_low": 1.0, "warn_high": 2.0}, "needs low, high, or both"),
        *[
            ({"low": -1e9, name: bad}, f"{name} is {bad}")
            for name in ("high", "warn_low", "warn_high")
            for bad in (NAN, INF, -INF)
        ],
        *[({"low": bad}, f"low is {bad}") for bad in (NAN, INF, -INF)],
        ({"low": 2.0, "high": 1.0}, "out of order"),
        ({"low": 2.0, "warn_low": 1.0}, "out of order"),
        ({"high": 2.0, "warn_high": 3.0}, "out of order"),
        ({"low": 1.0, "high": 4.0, "warn_low": 3.0, "warn_high": 2.0}, "out of order"),
        ({"low": 1.0, "warn_high": 0.5}, "out of order"),
    ],
)
def test_a_limit_that_could_not_judge_is_refused(arguments: dict[str, float], told: str) -> None:
    given_: dict[str, object] = {"unit": "W", "basis": "b", **arguments}
    with pytest.raises(ValueError, match=told):
        Limit(**given_)  # type: ignore[arg-type]


def test_these_units_make_a_limit_and_no_others() -> None:
    known = {
        "GB/s",
        "GFLOP/s",
        "TFLOP/s",
        "degC",
        "W",
        "MHz",
        "us",
        "ns",
        "s",
        "count",
        "ratio",
        "GiB",
        "MT/s",
        "Mbit/s",
    }
    assert {*known, "GT/s", "IOPS", "Mtokens/s"} == UNITS
    assert all(Limit(unit, "b", low=0.0).unit == unit for unit in UNITS)


@given(finite, finite, finite, finite, finite)
def test_a_value_that_does_not_fail_is_between_the_bounds(
    a: float, b: float, c: float, d: float, value: float
) -> None:
    low, warn_low, warn_high, high = sorted((a, b, c, d))
    grade = Limit("W", "b", low, high, warn_low, warn_high).grade(value)
    assert (grade != "fail") == (low <= value <= high)
    assert (grade == "pass") == (warn_low <= value <= warn_high)


@each(
    "value, text",
    [
        (8.0, "8"),
        (-0.0, "0"),
        (0.12345, "0.1235"),
        (12.5, "12.5"),
        (999.96, "1000"),
        (1000.04, "1000"),
        (1234.56, "1234.6"),
        (1000.5, "1000.5"),
        (1e11, "100000000000"),
        (1e12, "1e+12"),
        (1.5e300, "1.5e+300"),
        (1.25e-5, "1.25e-05"),
        (NAN, "nan"),
        (INF, "inf"),
        (-1234.56, "-1234.6"),
    ],
)
def test_a_number_as_people_read_it(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-1e300, 1e300) | st.sampled_from([NAN, INF, -INF]))
def test_any_number_has_a_short_text_close_to_it(value: float) -> None:
    text = number(value)
    assert len(text) <= 16
    assert math.isnan(value) or float(text) == pytest.approx(value, rel=1e-3)


def series(*values: float) -> Series:
    return Series(
        "cpu_temperature",
        "cpu",
        "degC",
        tuple((float(index), value) for index, value in enumerate(values)),
    )


def test_reductions_of_a_series() -> None:
    assert (series(2, 1, 3).maximum(), series(2, 1, 3).minimum(), series(1, 5, 2, 3).median()) == (
        3,
        1,
        2.5,
    )
    assert (series(4, 4, 9).growth(), series(4, 4).growth()) == (5, 0)


REDUCTIONS = ("maximum", "minimum", "median", "growth")


@each(
    "reduction, values, told",
    [
        *((reduction, (), "no samples") for reduction in REDUCTIONS),
        *((reduction, (NAN, 1.0), "no finite number") for reduction in REDUCTIONS),
        *((reduction, (1.0, NAN), "no finite number") for reduction in REDUCTIONS),
        *((reduction, (1.0, INF), "no finite") for reduction in REDUCTIONS),
        ("growth", (7.0,), "one sample"),
        ("growth", (7.0, 8.0, 0.0, 9.0), "fell"),
    ],
)
def test_no_reduction_of_nothing_of_what_is_no_number_or_was_reset(
    reduction: str, values: tuple[float, ...], told: str
) -> None:
    with pytest.raises(WordedError, match=f"cpu_temperature on cpu.*{told}"):
        getattr(series(*values), reduction)()


def test_growth_is_counted_from_the_first_sample() -> None:
    assert series(5, 7, 7, 9).growth() == 4


def test_mebibytes_and_gibibytes_are_powers_of_two() -> None:
    assert (MIB, GIB) == (1_048_576, 1_073_741_824)
