"""Waivers and events: what excuses a shortfall, and what the machine reports by itself."""

from __future__ import annotations

import pytest
from cases import each
from journals import bodies, check, due, entries, plan
from msgspec.structs import replace
from test_fold import TWO, added, changed, told, without
from worded import worded

from acceptance.core.finding import Waiver
from acceptance.core.fold import fold
from acceptance.core.parts import Gpu
from acceptance.core.record import Body, CheckEnded, CheckStarted, Event, Measured, Skipped
from acceptance.reports.summary import stale_waivers, waived_whole
from acceptance.wording import words


def event(severity: str = "fatal", **more: object) -> Event:
    return Event(
        "Xid",
        severity,
        "NVRM: Xid 79",
        "fell off the bus",
        "reseat it",
        code=79,
        component=Gpu(0),
        **more,
    )  # type: ignore[arg-type]


def test_a_waived_skip_passes_the_run_and_stays_a_skip() -> None:
    made = plan(check("a.one"), check("b.two"), waivers=[Waiver("a VM has none", skip="b")])
    skip: list[Body] = [
        Skipped("b.two", "no sensor"),
        CheckEnded("b.two", "skip", "no sensor", 0.1),
    ]

    def skipping(body: Body) -> list[Body]:
        if isinstance(body, CheckEnded) and body.check == "b.two":
            return list(skip)
        return [] if isinstance(body, Measured) and body.check == "b.two" else [body]

    verdict = changed(skipping, made)
    assert (verdict.verdict, verdict.checks[1].outcome) == ("PASS", "skip")
    assert waived_whole(verdict) == ("b",)
    assert told(verdict, "waived") == [
        "b.two: copy on gpu0 was not measured: no sensor; waived: a VM has none"
    ]
    unwaived = changed(skipping, replace(made, waivers=()))
    assert told(unwaived) == ["b.two: copy on gpu0 was not measured: no sensor"]
    assert unwaived.checks[1].outcome == "skip"


def test_a_skip_of_one_component_leaves_the_check_a_pass() -> None:
    made = plan(
        check("a.one", due(), due(component=Gpu(1))),
        waivers=[Waiver("known", skip="a.one", component="gpu1")],
    )

    def skipping(body: Body) -> list[Body]:
        return [
            Skipped("a.one", "no sensor", "copy", Gpu(1))
            if isinstance(body, Measured) and body.component == Gpu(1)
            else body
        ]

    verdict = changed(skipping, made)
    assert (verdict.verdict, verdict.checks[0].outcome) == ("PASS", "pass")
    assert waived_whole(verdict) == ()  # a part of the subject was measured and judged
    assert (
        changed(
            skipping, replace(made, waivers=(Waiver("known", skip="a.one", component="gpu0"),))
        ).verdict
        == "UNJUDGED"
    )


def test_a_check_that_skips_after_it_has_measured_a_part_needs_its_waiver_for_the_rest() -> None:
    known = Waiver("known", skip="a.one", component="gpu1")
    made = plan(check("a.one", due(), due(component=Gpu(1))), waivers=[known])

    def skipping(body: Body) -> list[Body]:
        if isinstance(body, CheckEnded):
            return [Skipped("a.one", "no sensor"), CheckEnded("a.one", "skip", "no sensor", 0.1)]
        return [] if isinstance(body, Measured) and body.component == Gpu(1) else [body]

    assert changed(skipping, made).verdict == "PASS"
    assert changed(skipping, replace(made, waivers=())).verdict == "UNJUDGED"
    assert (
        changed(skipping, replace(made, checks=(check("a.one", due()),))).verdict == "UNJUDGED"
    )  # a skip of nothing


def waiving(component: str = "gpu0") -> Waiver:
    return Waiver("old riser", measurement="copy", component=component, worst=90.0)


@each(
    "waiver, values, stale",
    [
        (waiving(), {}, True),
        (waiving(), {("copy", Gpu(0)): 105.0}, True),  # a warning needs no waiver
        (waiving(), {("copy", Gpu(0)): 95.0}, False),
        (waiving(), {("copy", Gpu(0)): 5.0}, False),
        (waiving("gpu*"), {("copy", Gpu(1)): 95.0}, False),
        (waiving("gpu0"), {("copy", Gpu(1)): 95.0}, True),
        (waiving("gpu7"), {}, False),  # not in this plan, so nothing shows that it passes
        (Waiver("old riser", skip="a.one"), {}, True),
        (Waiver("old riser", skip="z.none"), {}, False),
    ],
)
def test_a_waiver_whose_check_passes_is_stale(
    waiver: Waiver, values: dict[tuple[str, str], float], stale: bool
) -> None:
    made = plan(check("a.one", due(), due(component=Gpu(1))), waivers=[waiver])
    found = stale_waivers(fold(entries(bodies(made, values))))
    assert worded(found) == ((f"{waiver}: old riser",) if stale else ())


@pytest.mark.parametrize("waiver", [waiving(), Waiver("old riser", skip="a.one")])
def test_a_waiver_of_what_was_not_measured_is_not_stale(waiver: Waiver) -> None:
    assert stale_waivers(without(Measured, plan(check("a.one"), waivers=[waiver]))) == ()


def test_an_event_quotes_its_text_and_says_what_to_do() -> None:
    (bare,) = added(Event("OOM", "error", "text", "no memory", "add some", hardware=False)).of_kind(
        "error"
    )
    assert (words.of(bare), bare.quote, bare.action) == ("OOM: no memory", "text", ("add some",))


# In the journal of TWO, one record a second from 100 s: a.one runs from 102 to 105, b.two from 108
# to 110.
@each(
    "boot_s, home",
    [
        (101.9, "run"),
        (102.0, "a.one"),
        (104.5, "a.one"),
        (105.0, "a.one"),
        (105.5, "run"),
        (109.0, "b.two"),
        (111.0, "run"),
        (float("nan"), "run"),
    ],
)
def test_an_event_belongs_to_the_check_that_was_running(boot_s: float, home: str) -> None:
    verdict = added(event(boot_s=boot_s))
    assert [finding.check for finding in verdict.of_kind("fail")] == [home]
    assert [one.id for one in verdict.checks if one.events] == ([] if home == "run" else [home])
    assert [one.id for one in verdict.checks if one.outcome == "fail"] == (
        [] if home == "run" else [home]
    )


def test_an_event_without_a_time_of_its_own_has_that_of_its_record() -> None:
    records = bodies(TWO)
    verdict = fold(entries([*records[:4], event(), *records[4:]]))
    assert [finding.check for finding in verdict.of_kind("fail")] == ["a.one"]


def test_an_event_after_a_restart_is_not_the_checks_that_died_in_it() -> None:
    records = entries(body for body in bodies(TWO) if not isinstance(body, CheckEnded))
    late = replace(entries([event(boot_s=109.0)])[0], boot=1)
    assert [finding.check for finding in fold([*records, late]).of_kind("fail")] == ["run"]
    same_boot = replace(late, boot=0)
    # a.one died with its session, before the other began
    assert [finding.check for finding in fold([*records, same_boot]).of_kind("fail")] == ["b.two"]


def test_an_event_during_a_check_outside_the_plan_still_counts() -> None:
    records: list[Body] = [CheckStarted("c.three"), event(), CheckEnded("c.three", "pass", "", 1.0)]
    assert told(added(*records), "fail") == ["run: Xid 79 on gpu0: fell off the bus"]
