"""Ratios of equal GPUs: the fold makes them again from the values that the check measured."""

from __future__ import annotations

import math

import msgspec
import pytest
from cases import each
from journals import bodies, check, due, entries, plan
from runs import RECORDED, recorded

from acceptance.core import parts
from acceptance.core.finding import About, Criterion, Plausible, Siblings, Within
from acceptance.core.fold import fold
from acceptance.core.limit import Limit, number
from acceptance.core.message import Quantity
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due
from acceptance.core.record import Body, CheckEnded, Measured
from acceptance.core.verdict import Verdict, judge_due
from acceptance.wording import words

GPUS = (Gpu(0), Gpu(1), Gpu(2))
FLOOR = Limit("ratio", "its siblings", low=0.9)
RATES = {Gpu(0): 200.0, Gpu(1): 190.0, Gpu(2): 210.0}
RATIOS = {Gpu(0): 1.0, Gpu(1): 190.0 / 205.0, Gpu(2): 210.0 / 195.0}
MOST = Plausible(Limit("GB/s", "the link", high=1000.0))


def ratio_due(component: str) -> Due:
    return due("copy_ratio", component, "ratio", FLOOR).against(Siblings("copy", GPUS))


def judged(rates: dict[str, float], ratios: dict[str, float], *more: Body) -> Verdict:
    made = plan(
        check(
            "link.copy",
            *(due("copy", name).against(MOST) for name in GPUS),
            *map(ratio_due, ratios),
        )
    )
    values = {("copy", name): value for name, value in rates.items()}
    values |= {("copy_ratio", name): value for name, value in ratios.items()}
    found = bodies(made, values)
    place = next(index for index, body in enumerate(found) if isinstance(body, CheckEnded))
    return fold(entries([*found[:place], *more, *found[place:]]))


def texts(verdict: Verdict) -> list[str]:
    return [words.of(finding) for finding in verdict.of_kind("error", "fail")]


def made(values: dict[str, float], among: tuple[str, ...] = GPUS) -> dict[str, float | None]:
    return {name: Siblings("copy", among).ratio(name, values) for name in among}


def test_each_is_held_against_the_others_of_its_group() -> None:
    rates = {Gpu(0): 90.0, Gpu(1): 100.0, Gpu(2): 110.0, Gpu(3): 7.0}
    assert made(rates) == pytest.approx({Gpu(0): 90 / 105, Gpu(1): 1.0, Gpu(2): 110 / 95})
    assert made(rates, (Gpu(2), Gpu(3))) == pytest.approx({Gpu(2): 110 / 7, Gpu(3): 7 / 110})


def test_without_a_sibling_that_has_a_value_there_is_no_ratio() -> None:
    assert made({Gpu(0): 1.0, Gpu(1): 2.0}, (Gpu(0),)) == {Gpu(0): None}
    assert made({Gpu(0): 1.0}) == dict.fromkeys(GPUS)
    assert made({}) == dict.fromkeys(GPUS)


@each("other", [0.0, -1.0, math.nan])
def test_nothing_is_held_against_no_rate(other: float) -> None:
    found = made({Gpu(0): 1.0, Gpu(1): other})
    assert (found[Gpu(0)], found[Gpu(1)] is None) == (None, False)


@each(
    "rates, ratios, verdict, told",
    [
        (RATES, RATIOS, "PASS", []),
        # a slow GPU is no error of its ratio
        (
            {**RATES, Gpu(0): 150.0},
            {**RATIOS, Gpu(0): 0.75, Gpu(1): 190 / 180, Gpu(2): 210 / 170},
            "FAIL",
            ["copy_ratio on gpu0"],
        ),
        # a value above what is possible makes no ratio
        (
            {**RATES, Gpu(2): 5000.0},
            {Gpu(0): 200.0 / 190.0, Gpu(1): 190.0 / 200.0},
            "UNJUDGED",
            ["copy on gpu2"],
        ),
    ],
)
def test_ratios_that_follow_from_the_values(
    rates: dict[str, float], ratios: dict[str, float], verdict: str, told: list[str]
) -> None:
    found = judged(rates, ratios)
    assert found.verdict == verdict
    assert [text.partition(":")[0] for text in texts(found)] == told


@each("value", [1.05, 0.999999, 1.0000001])
def test_a_ratio_that_does_not_follow_proves_nothing(value: float) -> None:
    found = judged(RATES, {**RATIOS, Gpu(0): value})
    assert found.verdict == "UNJUDGED"
    assert texts(found) == [
        f"copy_ratio on gpu0: {value!r} was recorded, and the values of copy give 1.0: it proves "
        "nothing, run the test again"
    ]


def test_of_two_values_none_makes_a_ratio() -> None:
    found = judged(RATES, RATIOS, Measured("link.copy", "copy", Gpu(0), "GB/s", 200.0))
    assert any("the values of copy give no ratio" in text for text in texts(found))
    assert "copy on gpu0 was measured 2 times in one run: one value of each is due" in texts(found)


def test_every_criterion_comes_back_from_the_plan() -> None:
    every: tuple[Criterion, ...] = (MOST, Within(FLOOR), Siblings("copy", GPUS))
    text = msgspec.json.encode(every, enc_hook=parts.encode)
    assert msgspec.json.decode(text, type=tuple[Criterion, ...], dec_hook=parts.decode) == every
    held = due().against(*every)
    assert (held.limit, held.ceiling, held.past) == (FLOOR, MOST.limit, None)
    assert held.without(Within).limit is None
    assert len(held.against(Within(FLOOR)).criteria) == 3


def test_ratios_of_recorded_runs_follow_from_their_values() -> None:
    seen = set()
    for run in (one for one in RECORDED if one.startswith("2x")):
        found: dict[tuple[str, str], dict[str, float]] = {}
        for entry in recorded(run).entries:
            body = entry.body
            if isinstance(body, Measured) and body.value is not None:
                found.setdefault((body.check, body.measurement), {})[body.component] = body.value
        for (check_id, name), ratios in found.items():
            made_of = found.get((check_id, name.replace("_ratio", "")), {})
            if name.startswith("cpu_") or "_ratio" not in name:
                continue
            for where, value in ratios.items():
                about = About(check_id, name, where, "ratio")
                judge = Siblings(name, tuple(made_of)).judge
                assert judge(about, value, made_of) is None, (run, name)
                seen.add(name)
    assert {"gemm_bf16_ratio", "gemm_f64_short_ratio", "copy_own_d2d_ratio"} <= seen, seen


@each("value, name", [(0.05, "least"), (2000.0, "possible")])
def test_what_cannot_be_is_an_error_on_either_side(value: float, name: str) -> None:
    one = due("copy", GPUS[0], limit=Limit("GB/s", "a floor", low=0.01, warn_low=1000.0))
    one = one.against(Plausible(Limit("GB/s", "the link", low=0.1, high=1000.0)))
    bound = 0.1 if name == "least" else 1000.0
    told = Measured("link.copy", "copy", GPUS[0], "GB/s", value)
    found = judge_due(one, "link.copy", [told], (), ())
    assert [(one.kind, one.code) for one in found.findings] == [("error", "implausible")]
    assert found.findings[0].values[name] == Quantity(bound, "GB/s")
    assert f"{number(bound)} GB/s is possible" in words.of(found.findings[0])


def test_the_impossibly_fast_one_of_two_does_not_make_the_other_slow() -> None:
    two = GPUS[:2]
    copies = [due("copy", name).against(MOST) for name in two]
    ratios = [
        due("copy_ratio", name, "ratio", FLOOR).against(Siblings("copy", two)) for name in two
    ]
    made = plan(check("link.copy", *copies, *ratios))
    values = {("copy", Gpu(0)): 178_481.0, ("copy", Gpu(1)): 200.0}
    values |= {("copy_ratio", Gpu(0)): 178_481 / 200, ("copy_ratio", Gpu(1)): 200 / 178_481}
    verdict = fold(entries(bodies(made, values)))
    assert verdict.verdict == "UNJUDGED"
    assert [
        (one.code, one.measurement, one.component) for one in verdict.of_kind("error", "fail")
    ] == [
        ("implausible", "copy", Gpu(0)),
        ("ratio_of_impossible", "copy_ratio", Gpu(0)),
        ("ratio_of_impossible", "copy_ratio", Gpu(1)),
    ]


def test_a_slow_one_of_three_fails_beside_an_impossible_one() -> None:
    rates = {Gpu(0): 178_481.0, Gpu(1): 200.0, Gpu(2): 100.0}
    verdict = judged(rates, {Gpu(1): 200 / 89_290.5, Gpu(2): 100 / 89_340.5})
    assert [(one.code, one.component) for one in verdict.of_kind("fail")] == [
        ("outside_limit", Gpu(2))
    ]


def test_what_is_possible_says_nothing() -> None:
    assert (
        Plausible(Limit("GB/s", "b", high=32.0)).judge(About("c", "copy", Gpu(0), "GB/s"), 31.0)
        is None
    )
