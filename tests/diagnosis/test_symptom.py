from __future__ import annotations

from typing import Any

from cases import each

from acceptance.core.finding import About, Criterion, Finding, Plausible, Siblings, Waiver, Within
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Quantity, Range, Unmeasured
from acceptance.core.parts import Gpu
from acceptance.core.past import (
    Bounds,
    CounterReference,
    DriftFinding,
    FirstNights,
    Level,
    NoiseGrowth,
    Past,
    Slope,
)
from acceptance.core.plan import Due
from acceptance.core.record import Measured, Skipped
from acceptance.core.verdict import judge_due
from acceptance.diagnosis.symptom import symptom, unproven_value

BOTH = Limit("GB/s", "b", low=10.0, warn_low=20.0, warn_high=80.0, high=90.0)
MOST = Limit("GB/s", "b", low=1.0, high=1000.0)


def judged(
    *values: float | None, unit: str = "GB/s", criteria: tuple[Criterion, ...] = (), **more: Any
) -> list[tuple[str, str | None]]:
    """The codes of the findings from these values, each with its kind of symptom."""
    due = Due("copy", Gpu(0), "GB/s", criteria or (Plausible(MOST), Within(BOTH)), "o", "recorded")
    told = [Measured("link.copy", "copy", Gpu(0), unit, value) for value in values]
    found = judge_due(due, "link.copy", told, more.get("skips", ()), more.get("waivers", ()))
    return [(one.code, symptom(one)) for one in found.findings]


@each(
    "value, code, kind",
    [
        (5.0, "outside_limit", "low"),
        (15.0, "outside_usual", "low"),
        (85.0, "outside_usual", "high"),
        (95.0, "outside_limit", "high"),
        (178_481.0, "implausible", "impossible"),
        (0.5, "implausible", "impossible"),
        (float("nan"), "not_finite", "not finite"),
        (None, "not_finite", "not finite"),
    ],
)
def test_a_value_has_the_symptom_of_its_side(value: float | None, code: str, kind: str) -> None:
    assert judged(value) == [(code, kind)]


def test_what_is_missing_or_contradicts_itself_has_a_symptom_of_its_own() -> None:
    assert judged() == [("not_measured", "vanished")]
    lost = Skipped("link.copy", "why", why=Unmeasured.NO_ANSWER)
    assert judged(skips=(lost,)) == [("no_answer", "vanished")]
    assert ("wrong_unit", "contradiction") in judged(50.0, unit="MHz")
    assert ("measured_again", "contradiction") in judged(50.0, 50.0)
    ratio = (Siblings("other", (Gpu(0), Gpu(1))),)
    assert judged(50.0, criteria=ratio) == [("not_the_ratio", "contradiction")]


@each("why", [None, Unmeasured.NOT_OFFERED, Unmeasured.NOT_PERMITTED, Unmeasured.AFTER_FAULT])
def test_what_was_left_out_with_its_cure_is_no_symptom(why: Unmeasured | None) -> None:
    ((_, kind),) = judged(skips=(Skipped("link.copy", "why", why=why),))
    assert kind is None


def test_a_waiver_that_does_not_reach_leaves_the_side_as_it_is() -> None:
    known = Waiver("known", measurement="copy", component="*", worst=7.0)
    assert judged(5.0, waivers=(known,)) == [("worse_than_waived", "low")]
    assert judged(8.0, waivers=(known,)) == [("outside_limit_waived", None)]


@each(
    "limit, kind",
    [
        (Range("GB/s", low=10.0), "low"),
        (Range("GB/s", high=90.0), "high"),
        (Range("GB/s", low=10.0, high=90.0), None),
        (None, None),
    ],
)
def test_an_older_warning_is_on_the_side_of_the_only_bound(
    limit: Range | None, kind: str | None
) -> None:
    values = {"measured": Quantity(50.0, "GB/s")} | ({} if limit is None else {"limit": limit})
    assert (
        symptom(About("c", "copy", Gpu(0), "GB/s").finding("warn", "outside_usual", values)) == kind
    )


LOW, HIGH = Bounds(low=10.0), Bounds(high=10.0)


@each(
    "past, value, beyond, kind",
    [
        ({"level": Level(20.0, 9, 1.0, 3.0, LOW)}, 5.0, ("level",), "low"),
        ({"level": Level(5.0, 9, 1.0, 3.0, HIGH)}, 15.0, ("level",), "high"),
        ({"slope": Slope(20.0, 5.0, 9.0, 9, LOW)}, 5.0, ("slope",), "low"),
        ({"first": FirstNights(5.0, 3, 1.0, HIGH)}, 15.0, ("first",), "high"),
        ({"few": FirstNights(5.0, 3, 1.0, Bounds(1.0, 9.0))}, 15.0, ("few",), "high"),
        ({"few": FirstNights(5.0, 3, 1.0, Bounds(1.0, 9.0))}, 0.5, ("few",), "low"),
        # Of a repeat that is within again the first value decides, where it is still known.
        ({"level": Level(20.0, 9, 1.0, 3.0, LOW)}, 15.0, ("level",), None),
        ({"grown": NoiseGrowth(1.0, 9.0, 5)}, 5.0, (), None),
    ],
)
def test_drift_is_up_or_down(
    past: dict[str, Any], value: float, beyond: tuple[Any, ...], kind: str | None
) -> None:
    made = Past(True, 3, 7, **past)
    drift = DriftFinding("warn", "step", "drifted", made, "GB/s", value, beyond=beyond)
    assert symptom(Finding("warn", "c", "drifted", drift=drift, event="drift.step")) == kind


def test_a_counter_only_grows() -> None:
    past = Past(True, 3, 7, counter=CounterReference(1.0, 1.0, 1.0, "b"))
    drift = DriftFinding("warn", "counter", "counter_grew", past, "count", 9.0, grown=8.0)
    assert symptom(Finding("warn", "c", "counter_grew", drift=drift)) == "high"


@each(
    "text, kind",
    [
        (Message("reading_lost", {"what": "ce_count"}), "vanished"),
        (Message("line_below", {"line": "a", "next": Message("reading_lost")}), "vanished"),
        (Message("line_below", {"line": "a", "next": "b"}), None),
        (Message("clauses", {"why": (Message("reading_lost"), Message("other"))}), "vanished"),
        ("reading_lost", None),
    ],
)
def test_what_a_check_says_is_gone_after_the_run_has_vanished(text: Any, kind: str | None) -> None:
    assert symptom(Finding("error", "c", "ended", {"text": text})) == kind


def test_a_value_outside_its_limit_proves_something() -> None:
    values = {"measured": Quantity(5.0, "GB/s"), "limit": Range("GB/s", low=9.0)}
    finding = Finding("fail", "c", "outside_limit", values)
    assert (symptom(finding), unproven_value(finding)) == ("low", None)
