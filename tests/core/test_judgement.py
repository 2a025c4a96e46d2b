from __future__ import annotations

import math
from typing import Any

import msgspec
from cases import each
from journals import FLOOR, NONE_ALLOWED, check, due

from acceptance.core.finding import Plausible, Waiver
from acceptance.core.limit import Limit, Worse
from acceptance.core.message import Unmeasured
from acceptance.core.parts import Gpu, Part
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import Due
from acceptance.core.record import Measured, Skipped
from acceptance.core.verdict import Judgement, covers, judge_due
from acceptance.core.verdict import judge as judge_check
from acceptance.wording import words

EIGHT = Limit("count", "there are eight", low=8.0, high=8.0)


def judge(
    one: Due,
    *values: float | None,
    waivers: tuple[Waiver, ...] = (),
    skips: tuple[Skipped, ...] = (),
    **more: Any,
) -> Judgement:
    measured = [
        Measured("link.copy", one.measurement, one.component, one.unit, value, **more)
        for value in values
    ]
    return judge_due(one, "link.copy", measured, skips, waivers)


def kinds(judged: Judgement) -> list[str]:
    return [finding.kind for finding in judged.findings]


def waiver(worst: float, component: str = "gpu0", measurement: str = "copy") -> Waiver:
    return Waiver("the riser is old", measurement=measurement, component=component, worst=worst)


def test_a_value_within_its_limit_has_no_finding() -> None:
    judged = judge(due(), 110.0, serial="S1", note="fine")
    assert (judged.value, judged.serial, judged.note, judged.findings) == (110.0, "S1", "fine", ())
    assert not judged.skipped
    assert not judged.waived


@each("note", ["PCI bus: none\nNVML: none", "x" * 101])
@each("value", [99.5, 105.0, 90.0])
def test_a_long_note_stands_beside_the_text(note: str, value: float) -> None:
    finding = judge(
        due(), value, note=note, waivers=(waiver(90.0),) if value == 90.0 else ()
    ).findings[0]
    assert finding.note == note
    assert words.of(finding).startswith(
        f"copy on gpu0: measured {value:g} GB/s, limit >= 100 GB/s; basis: a basis"
    )


@each("note", ["x" * 100, "", None])
def test_a_short_note_stands_in_the_text(note: str | None) -> None:
    finding = judge(due(), 99.5, note=note).findings[0]
    assert words.note_beside(finding) is None
    assert f"99.5 GB/s{f' ({note})' if note else ''}, limit" in words.of(finding)


@each(
    "limit, value, shown",
    [
        (FLOOR, math.nextafter(100.0, 0), "measured 99.99999999999999 GB/s"),
        (Limit("ratio", "b", low=0.9), 0.899999, "measured 0.899999, limit >= 0.9"),
        (Limit("GB/s", "b", high=1234.5), 1234.51, "measured 1234.51 GB/s, limit <= 1234.5 GB/s"),
        (FLOOR, 109.99999, "measured 109.99999 GB/s"),
    ],
)
def test_a_value_just_outside_does_not_read_as_if_it_were_inside(
    limit: Limit, value: float, shown: str
) -> None:
    assert shown in words.of(judge(due(unit=limit.unit, limit=limit), value).findings[0])


@each(
    "limit, values, worst, found",
    [
        (FLOOR, (120.0, 90.0, 130.0), 90.0, ["fail"]),
        (FLOOR, (120.0, 105.0), 105.0, ["warn"]),
        (FLOOR, (90.0, 80.0), 80.0, ["fail", "fail"]),
        (Limit("GB/s", "b", high=5.0), (1.0, 7.0, 2.0), 7.0, ["fail"]),
        (EIGHT, (8.0, 9.0), 9.0, ["fail"]),
        (EIGHT, (8.0, 7.0), 7.0, ["fail"]),
        (Limit("GB/s", "b", low=0.0, high=10.0), (5.0, 9.0, 2.0), 9.0, []),
        (None, (3.0, 1.0, 2.0), 1.0, []),
    ],
)
def test_of_several_values_the_worst_is_shown_and_each_failure_told(
    limit: Limit | None, values: tuple[float, ...], worst: float, found: list[str]
) -> None:
    judged = judge(due(limit=limit), *values)
    assert judged.value == worst
    assert kinds(judged) == [*found, "error"] if len(values) > 1 else found


@each(
    "limit, side, worst",
    [
        (None, "higher", 3.0),
        (None, "lower", 1.0),
        (None, None, 1.0),
        (Limit("us", "b", low=0.0), "higher", 1.0),
    ],
)
def test_of_several_values_without_a_limit_the_worse_one_counts(
    limit: Limit | None, side: Worse | None, worst: float
) -> None:
    one = msgspec.structs.replace(due(unit="us", limit=limit), worse=side)
    assert judge(one, 2.0, 3.0, 1.0).value == worst


@each("value", [None, math.nan, math.inf, -math.inf])
@each("limit", [FLOOR, Limit("GB/s", "b", high=1e9), None])
def test_no_finite_number_proves_nothing(value: float | None, limit: Limit | None) -> None:
    judged = judge(due(limit=limit), value, note="the value was odd", waivers=(waiver(-1e9),))
    assert kinds(judged) == ["error"]
    assert words.of(judged.findings[0]) == "copy on gpu0 is no finite number: the value was odd"
    assert not judged.findings[0].unmeasured
    assert judged.value is None
    assert words.of(judge(due(), None).findings[0]) == "copy on gpu0 is no finite number"


def test_another_unit_proves_nothing_whatever_the_number() -> None:
    measured = [
        Measured("link.copy", "copy", Gpu(0), "GiB", 200.0),
        Measured("link.copy", "copy", Gpu(0), "GB/s", 200.0),
    ]
    judged = judge_due(due(), "link.copy", measured, (), ())
    assert [words.of(finding) for finding in judged.findings] == [
        "copy came in GiB, not in GB/s",
        "copy on gpu0 was measured 2 times in one run: one value of each is due",
    ]
    assert judged.value == 200.0


def test_values_of_others_are_not_ours() -> None:
    others = [
        Measured("link.copy", "copy", Gpu(1), "GB/s", 200.0),
        Measured("link.copy", "triad", Gpu(0), "GB/s", 200.0),
    ]
    (judged,) = judge_check(check("link.copy", due()), others, (), ())
    assert kinds(judged) == ["error"]
    assert judged.findings[0].unmeasured
    assert words.of(judged.findings[0]) == "copy on gpu0 was not measured"


@each(
    "limit, worst, value, kind",
    [
        (FLOOR, 90.0, 90.0, "waived"),
        (FLOOR, 90.0, math.nextafter(90.0, 0), "fail"),
        (FLOOR, 120.0, 95.0, "fail"),
        (NONE_ALLOWED, 2.0, 2.0, "waived"),
        (NONE_ALLOWED, 2.0, 3.0, "fail"),
        (NONE_ALLOWED, -1.0, 1.0, "fail"),
        (EIGHT, 7.0, 7.0, "waived"),
        (EIGHT, 7.0, 6.0, "fail"),
        (EIGHT, 7.0, 9.0, "fail"),
        (EIGHT, 9.0, 9.0, "waived"),
        (EIGHT, 9.0, 7.0, "fail"),
        (FLOOR, math.nan, 95.0, "fail"),
    ],
)
def test_a_waiver_is_bounded_on_the_side_that_fails(
    limit: Limit, worst: float, value: float, kind: str
) -> None:
    judged = judge(due(unit=limit.unit, limit=limit), value, waivers=(waiver(worst),))
    assert kinds(judged) == [kind]
    assert judged.waived == (kind == "waived")
    told = (
        "waived: the riser is old (worst accepted"
        if kind == "waived"
        else "worse than the waiver accepts ("
    )
    assert told in words.of(judged.findings[0])


BRACKETS = due("size", Part("dimm", "[A1]"))
OF_SKIP = Waiver("known", skip="link.copy")
SKIP = Skipped("link.copy", "no tool")


@each(
    "one, values, waivers, skips, found",
    [
        (due(), (105.0,), (waiver(90.0),), (), ["warn"]),
        *(
            (due(), (95.0,), (waiver(90.0, component),), (), ["waived"])
            for component in ("gpu0", "gpu*", "gpu[0-3]")
        ),
        *(
            (due(), (95.0,), (waiver(90.0, component),), (), ["fail"])
            for component in ("gpu", "gpu1", "GPU0")
        ),
        (BRACKETS, (95.0,), (waiver(90.0, "dimm:[A1]", "size"),), (), ["waived"]),
        (due(), (95.0,), (waiver(99.0), waiver(90.0)), (), ["waived"]),
        (due(), (85.0,), (waiver(99.0), waiver(90.0)), (), ["fail"]),
        (due(), (95.0,), (OF_SKIP,), (), ["fail"]),
        # No machine file says this, but a journal is read as it is.
        (due(), (95.0,), (Waiver("known", skip="link.copy", worst=90.0),), (), ["fail"]),
        (due(), (), (waiver(90.0),), (SKIP,), ["skip"]),
        (due(), (), (OF_SKIP,), (), ["error"]),
        (due(), (50.0,), (), (SKIP,), ["fail"]),
    ],
    told=[
        "a warning needs no waiver",
        "a waiver speaks of its component",
        "of all of a kind",
        "of a range",
        "of no component whose name it begins",
        "nor of another",
        "nor of one in other letters",
        "a component with brackets in its name is itself",
        "of several waivers one that accepts is enough",
        "and none that does not",
        "a waiver for a skip waives no value",
        "even with a worst value",
        "and one for a value no skip",
        "a waiver for a skip excuses no measurement that is simply missing",
        "a value goes before a skip",
    ],
)
def test_what_is_said_of_a_value_a_waiver_and_a_skip(
    one: Due,
    values: tuple[float, ...],
    waivers: tuple[Waiver, ...],
    skips: tuple[Skipped, ...],
    found: list[str],
) -> None:
    assert kinds(judge(one, *values, waivers=waivers, skips=skips)) == found


@each(
    "one, value, waivers, kind, text",
    [
        (
            due(),
            99.5,
            (),
            "fail",
            "copy on gpu0: measured 99.5 GB/s (slot 3), limit >= 100 GB/s; basis: a basis",
        ),
        (
            due(),
            105.0,
            (),
            "warn",
            "copy on gpu0: measured 105 GB/s (slot 3), limit >= 100 GB/s; basis: a basis (within "
            "the limit, outside what is usual)",
        ),
        (
            due(waivable=False),
            95.0,
            (waiver(90.0),),
            "fail",
            "copy on gpu0: measured 95 GB/s (slot 3), limit >= 100 GB/s; basis: a basis",
        ),
    ],
    told=["a failure", "a warning", "what cannot be waived"],
)
def test_a_finding_says_measured_unit_component_limit_and_basis(
    one: Due, value: float, waivers: tuple[Waiver, ...], kind: str, text: str
) -> None:
    (finding,) = judge(one, value, note="slot 3", waivers=waivers).findings
    assert (finding.check, finding.measurement, finding.component) == ("link.copy", "copy", Gpu(0))
    assert (finding.kind, words.of(finding)) == (kind, text)


def test_a_waived_value_does_not_cover_a_worse_one() -> None:
    judged = judge(due(), 95.0, 85.0, waivers=(waiver(90.0),))
    assert kinds(judged) == ["waived", "fail", "error"]
    assert judged.value == 85.0


@each(
    "measurement, component, applies",
    [
        (None, None, True),
        ("copy", None, True),
        (None, Gpu(0), True),
        ("copy", Gpu(0), True),
        ("triad", None, False),
        (None, Gpu(1), False),
    ],
)
def test_a_skip_is_told_with_its_reason(
    measurement: str | None, component: str | None, applies: bool
) -> None:
    judged = judge(due(), skips=(Skipped("link.copy", "run as root", measurement, component),))
    assert kinds(judged) == (["skip"] if applies else ["error"])
    told = (
        "copy on gpu0 was not measured: run as root" if applies else "copy on gpu0 was not measured"
    )
    assert words.of(judged.findings[0]) == told
    assert not judged.skipped


@each(
    "name, component, applies",
    [
        ("link.copy", None, True),
        ("link", "gpu*", True),
        ("l*.copy", "gpu0", True),
        ("link.cop", None, False),
        ("link", "gpu1", False),
    ],
)
def test_a_waived_skip_is_no_skip_but_stays_visible(
    name: str, component: str | None, applies: bool
) -> None:
    known = Waiver("a VM has none", skip=name, component=component)
    judged = judge(
        due(), skips=(Skipped("link.copy", "run as root"),), waivers=(waiver(1.0), known)
    )
    assert kinds(judged) == (["waived"] if applies else ["skip"])
    assert (judged.skipped, judged.waived) == (applies, applies)
    assert words.of(judged.findings[0]).endswith("waived: a VM has none") == applies


@each(
    "follows, waived, covered",
    [
        ("link.first", "link.first", True),
        ("link.first", "link.copy", True),
        (None, "link.first", False),
        ("link.first", "link.other", False),
    ],
)
def test_a_waiver_of_a_skip_covers_the_checks_that_build_on_it(
    follows: str | None, waived: str, covered: bool
) -> None:
    skip = Skipped("link.copy", "no riser", "copy", Gpu(0), follows)
    judged = judge(due(), waivers=(Waiver("old", skip=waived, component="gpu0"),), skips=(skip,))
    assert judged.waived == covered
    elsewhere = (Waiver("old", skip=waived, component="gpu1"),)
    assert not judge(due(), waivers=elsewhere, skips=(skip,)).waived


@each(
    "one, check_id, covered",
    [
        (Waiver("r", skip="link"), "link.copy", True),
        (Waiver("r", skip="cpu"), "link.copy", False),
        (waiver(1.0), "any.check", True),
        (waiver(1.0, measurement="triad"), "link.copy", False),
    ],
)
def test_what_a_waiver_covers(one: Waiver, check_id: str, covered: bool) -> None:
    assert covers(one, check_id, due()) == covered


def test_a_value_in_another_unit_is_an_error_and_never_held_against_the_limit() -> None:
    judged = judge_due(
        due(), "link.copy", [Measured("link.copy", "copy", Gpu(0), "GiB", 500.0)], [], []
    )
    assert [(finding.kind, words.of(finding)) for finding in judged.findings] == [
        ("error", "copy came in GiB, not in GB/s")
    ]
    assert judged.value is None


def left_out(why: Unmeasured | None) -> Skipped:
    return Skipped("link.copy", "a reason", "copy", Gpu(0), why=why)


COVER = Waiver("known", skip="link.copy")


@each(
    "why, kind, code",
    [
        (Unmeasured.NOT_OFFERED, "skip", "not_offered"),
        (Unmeasured.NOT_PERMITTED, "skip", "not_permitted"),
        (Unmeasured.NO_ANSWER, "error", "no_answer"),
        (Unmeasured.AFTER_FAULT, "skip", "after_fault"),
        (None, "skip", "skipped"),  # of an older rigproof
    ],
)
def test_why_nothing_was_measured_is_the_code(why: Unmeasured | None, kind: str, code: str) -> None:
    judged = judge(due(), skips=(left_out(why),))
    assert [(one.kind, one.code) for one in judged.findings] == [(kind, code)]
    assert judged.unmeasured is why
    covered = judge(due(), skips=(left_out(why),), waivers=(COVER,))
    waived = why is not Unmeasured.NO_ANSWER
    assert (covered.waived, covered.skipped) == (waived, waived)
    assert [one.code for one in covered.findings] == ["skip_waived" if waived else code]
    assert covered.unmeasured is why


def test_of_several_skips_the_one_that_no_waiver_covers_counts() -> None:
    skips = (left_out(Unmeasured.NOT_OFFERED), left_out(Unmeasured.NO_ANSWER))
    for order in (skips, skips[::-1]):
        judged = judge(due(), skips=order, waivers=(COVER,))
        assert [(one.kind, one.code) for one in judged.findings] == [("error", "no_answer")]


@each("second, unsteady", [(150.0, True), (1e6, False)])
def test_a_repeat_that_cannot_be_takes_no_drift_back(second: float, unsteady: bool) -> None:
    past = Past(True, 3, 7, level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)))
    most = Plausible(Limit("GB/s", "b", high=1000.0))
    one = due().against(past)
    one = msgspec.structs.replace(one, criteria=(most, *one.criteria))
    told = [
        Measured("link.copy", one.measurement, one.component, one.unit, value)
        for value in (120.0, second)
    ]
    found = judge_due(one, "link.copy", told[:1], (), (), told[1:])
    assert found.drift is not None
    assert (found.drift.unsteady, found.drift.outside) == (unsteady, not unsteady)
    assert ("error" in kinds(found)) is not unsteady
