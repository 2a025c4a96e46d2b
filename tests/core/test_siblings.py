from __future__ import annotations

import math

import pytest
from cases import each

from acceptance.core.siblings import ratios


def test_each_is_held_against_the_others_of_its_model() -> None:
    three = {"gpu0": 90.0, "gpu1": 100.0, "gpu2": 110.0}
    assert ratios(three, {"A": tuple(three)}) == pytest.approx(
        {"gpu0": 90 / 105, "gpu1": 1.0, "gpu2": 110 / 95}
    )
    four = {**three, "gpu3": 7.0}
    assert ratios(four, {"A": ("gpu0", "gpu1"), "B": ("gpu2", "gpu3")}) == pytest.approx(
        {"gpu0": 0.9, "gpu1": 100 / 90, "gpu2": 110 / 7, "gpu3": 7 / 110}
    )


def test_a_gpu_without_a_sibling_that_has_a_value_has_no_ratio() -> None:
    assert ratios({"gpu0": 1.0, "gpu1": 2.0}, {"A": ("gpu0",), "B": ("gpu1",)}) == {}
    assert ratios({"gpu0": 1.0}, {"A": ("gpu0", "gpu1")}) == {}
    assert ratios({}, {"A": ("gpu0", "gpu1")}) == {}


@each("other", [0.0, -1.0, math.nan])
def test_nothing_is_held_against_no_rate(other: float) -> None:
    found = ratios({"gpu0": 1.0, "gpu1": other}, {"A": ("gpu0", "gpu1")})
    assert set(found) == {"gpu1"}
