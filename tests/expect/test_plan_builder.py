from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import journals
import pytest
from cases import each
from msgspec.structs import replace
from refusal import assert_raises, raised
from worded import worded

from acceptance.core import plan
from acceptance.core.finding import Siblings, Waiver, Within
from acceptance.core.limit import Limit
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.message import Listed, Message
from acceptance.core.parts import CPU, GPUS, MEMORY, Core, Gpu
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import SESSIONS, Due, Plan, Reduction, Session, matches_patterns
from acceptance.expect import plan_builder
from acceptance.expect.collected import CollectedCheck, Measures, PlanError, lint_follows
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.plan_builder import MachineUnderTest, Request, lint
from acceptance.reports.progress import eta_s
from acceptance.wording import words

WATT = Limit("W", "a basis", high=100.0)
COUNT = Limit("count", "a basis", high=0.0)
BOOK = LimitBook(
    (Override("power", "class default", WATT), Override("faults", "class default", COUNT))
)
CLASSES: Mapping[str, Sequence[str]] = {"cpu": (CPU,), "core": (), "gpu": (), "none": ()}
POWER, FAULTS = Measures("power", "W", "cpu"), Measures("faults", "count", "cpu", waivable=False)


def collected(
    name: str, *measures: Measures, session: Session = "load", seconds: float = 1.0, **more: Any
) -> CollectedCheck:
    return CollectedCheck(name, f"title of {name}", session, measures or (POWER,), seconds, **more)


REQUEST = {field.name for field in fields(Request)}
WELCOME = (
    Waiver("r", measurement="power", component="cpu", worst=110.0),
    Waiver("r", skip="a.one"),
    Waiver("r", skip="b"),
)

BOTH = (collected("a.one"), collected("b.two", FAULTS))


def build(checks: Sequence[CollectedCheck] = BOTH, **more: Any) -> Plan:
    asked = {"profile": "smoke", "loads_s": {}, "memory_gib": 2.0, "cannot_detect": ("heat",)}
    shown = {"components": CLASSES, "not_offered": ("no thermometer",), "book": BOOK}
    shown |= {"file": "box.toml", "siblings": {}}
    asked |= {key: value for key, value in more.items() if key in REQUEST}
    shown |= {key: value for key, value in more.items() if key not in REQUEST}
    return plan_builder.build(checks, "d", MachineUnderTest(**shown), Request(**asked))


def names(made: Plan) -> list[str]:
    return [check.id for check in made.checks]


def test_a_plan_holds_what_is_due_and_what_it_was_made_of() -> None:
    waiver = Waiver("known", measurement="power", component="cpu", worst=110.0)
    made = build(waivers=[waiver], loads_s={"burn": 8.0})
    assert made.checks[0].due == (Due("power", CPU, "W", (Within(WATT),), "class default"),)
    assert made.checks[1].due[0].waivable is False
    assert (made.scope, made.profile, made.digest, made.waivers) == (
        "full",
        "smoke",
        "d",
        (waiver,),
    )
    told = (made.cannot_detect[0], made.not_tested, made.gaps)
    assert told == ("heat", ("no thermometer",), ())
    assert (made.loads_s, made.memory_gib, made.inventory_declared) == ({"burn": 8.0}, 2.0, True)
    assert build(file=None).inventory_declared is False


def test_sessions_in_order_and_gates_first_in_theirs() -> None:
    """And what heats runs last in its session."""
    checks = [
        collected("z.after", session="host-after"),
        collected("a.burn", load="burn"),
        collected("a.load", slack=120.0),
        collected("m.before", session="host-before"),
        collected("b.load", gate=True, load="burn"),
        collected("y.before", session="host-before", gate=True),
        collected("c.load", gate=True),
        collected("x.before", session="host-before", gate=True),
    ]
    made = build(checks, book=LimitBook(BOOK.entries[:1]), loads_s={"burn": 1.0})
    shares = {name: [check.id for check in made.share(name)] for name in SESSIONS}
    assert {name: ids for name, ids in shares.items() if ids} == {
        "host-before": ["y.before", "x.before", "m.before"],
        "load": ["c.load", "b.load", "a.load", "a.burn"],
        "host-after": ["z.after"],
    }
    assert names(made) == [one for ids in shares.values() for one in ids]
    assert {check.id for check in made.checks if check.gate} == {
        *("b.load", "c.load", "x.before", "y.before")
    }
    assert {check.id: check.slack_s for check in made.checks if check.slack_s} == {"a.load": 120.0}


def test_a_profile_runs_the_loads_it_names_and_their_time_is_in_the_plan() -> None:
    checks = [
        collected("a.burn", load="burn", seconds=2.0),
        collected("a.fill", load="stressapptest", seconds=3.0, seconds_per_gib=1.5),
        collected("a.look"),
    ]
    made = build(checks, loads_s={"stressapptest": 10.0}, book=LimitBook(BOOK.entries[:1]))
    assert [(check.id, check.seconds) for check in made.checks] == [
        ("a.fill", 16.0),
        ("a.look", 1.0),
    ]
    assert eta_s(made) == 17.0 + plan_builder.OVERHEAD_S


def test_facts_are_due_only_where_something_limits_them() -> None:
    model = collected("a.model", Measures("model_differs", "count", "card", fact=True))
    classes = {**CLASSES, "card": ("card0", "card1")}
    declared = Override("model_differs", "declared in box.toml", COUNT, "card1")
    unlimited = Override("model_differs", "class default", unlimited="nothing to compare")
    for book in (BOOK, LimitBook((unlimited, *BOOK.entries))):
        made = build([*BOTH, model, collected("c.none", Measures("power", "W", "none"))],
                     components=classes, book=book)  # fmt: skip
        assert names(made) == ["a.one", "b.two"]
    made = build([*BOTH, model], components=classes, book=BOOK.after([declared]))
    assert [due.component for due in made.checks[2].due] == ["card1"]


def test_a_ratio_names_what_it_is_made_of() -> None:
    two = (Gpu(0), Gpu(1))
    ratio = Measures("rate_ratio", "ratio", "gpu-with-peers", ratio_of="rate")
    check = collected("a.one", Measures("rate", "W", "gpu"), ratio)
    settings: dict[str, Any] = {
        "book": LimitBook(
            tuple(Override(name, "none", unlimited="no sheet") for name in ("rate", "rate_ratio"))
        ),
        "components": {**CLASSES, "gpu": two, "gpu-with-peers": two},
        "siblings": {"gpu-with-peers": [two]},
    }
    made = build([check], **settings)
    held = {(due.measurement, due.component): due.criteria for due in made.checks[0].due}
    assert held["rate", Gpu(0)] == ()
    assert held["rate_ratio", Gpu(1)] == (Siblings("rate", two),)
    assert "a ratio of rate, which a.two does not measure" in raised(
        PlanError, build, [check, collected("a.two", ratio)], **settings
    )
    assert "nothing says which components are equal" in raised(
        PlanError, build, [check], **{**settings, "siblings": {}}
    )


def test_a_measurement_that_cannot_have_a_limit_is_due_and_says_why() -> None:
    book = LimitBook((Override("power", "class default", unlimited="no sheet"), *BOOK.entries[1:]))
    assert build(book=book).checks[0].due == (
        Due("power", CPU, "W", (), "class default", "no sheet"),
    )


@each(
    "patterns, found",
    [
        (["a.one"], ["a.one"]),
        (["a"], ["a.one", "a.two[x]", "a.two[y]"]),
        (["a.two"], ["a.two[x]", "a.two[y]"]),
        (["a.two[x]"], ["a.two[x]"]),
        (["*.one"], ["a.one", "b.one"]),
        (["a.t*"], ["a.two[x]", "a.two[y]"]),
        (["b", "a.one"], ["a.one", "b.one"]),
    ],
)
def test_only_selects_by_id_subject_name_and_pattern(patterns: list[str], found: list[str]) -> None:
    checks = [collected(name) for name in ("a.one", "a.two[x]", "a.two[y]", "b.one")]
    made = build([*checks, collected("c.faults", FAULTS)], only=patterns)
    assert (names(made), made.scope) == (found, "partial")


def test_only_knows_no_prefixes_of_words() -> None:
    assert not matches_patterns("cpu.gemm[f64]", ["cp", "cpu.gem", "", "CPU"])
    assert not matches_patterns("cpu.gemm[f64]", [])


@each(
    "only, told",
    [
        (["c"], "--only c matches no check: the subjects are a, b, and `rigproof plan` lists"),
        (["b.tow"], "matches no check: did you mean b.two[?] The subjects are a, b, and"),
        (["burn"], "matches no check: did you mean b.burn[?]"),
        (["bb.*"], "matches no check: did you mean b[?]"),
        (["a", "c"], "--only c matches no check"),
        (["b.burn"], "nothing is due"),
        (
            ["a", "b.burn"],
            "--only b.burn: nothing of it is due on this machine in the profile smoke",
        ),
    ],
)
def test_only_that_selects_nothing_is_refused(only: list[str], told: str) -> None:
    assert_raises(
        PlanError, build, [*BOTH, collected("b.burn", load="burn")], only=only, match=told
    )


def test_a_gpu_that_no_check_loads_is_a_gap() -> None:
    classes = {**CLASSES, "gpu": (Gpu(0), Gpu(1)), "first": (Gpu(0),)}
    looked = collected("g.look", Measures("power", "W", "gpu"), session="host-before")
    seen = collected("g.seen", Measures("power", "W", "gpu"))  # where the loads run, but it is none
    heated = collected("g.burn", Measures("power", "W", "first"), load="burn")
    checks, burn = [*BOTH, looked, seen, heated], {"burn": 1.0}
    gaps = build(checks, components=classes, loads_s=burn).gaps
    assert worded(gaps) == ("gpu1: no check of this plan loads it",)
    assert build(checks, components=classes, loads_s=burn, only=["g"]).gaps == ()
    other = {**classes, "gpu": (Gpu(1),)}
    narrowed = build(checks, components=other, loads_s=burn, narrowed=True)
    assert (narrowed.gaps, narrowed.scope, narrowed.gpus) == ((), "partial", (Gpu(1),))
    # Copies do not keep GPUs at work for all of their time; products do, whether they run last or
    # not.
    for load, missed in (("nvbandwidth", 2), ("gpu_gemm", 0)):
        loading = collected("g.seen", Measures("power", "W", "gpu"), load=load)
        made = build([*BOTH, loading], components=classes, loads_s={load: 7.0})
        assert len(made.gaps) == missed


BURNS: Mapping[str, Any] = {
    "loads_s": {"burn": 8.0},
    "components": {**CLASSES, "gpu": (Gpu(0),)},
    "book": LimitBook(BOOK.entries[:1]),
}
_BURN = collected("g.burn", Measures("power", "W", "gpu"), load="burn")


def after(name: str, **more: Any) -> CollectedCheck:
    return collected(name, session="host-after", **more)


@each(
    "more, due_without, code",
    [
        ({"follows": ("g.burn",)}, False, "g.burn"),
        ({"follows": ("g.other", "g.burn")}, False, "g.other, g.burn"),
        ({"follows_load": "gpus"}, False, Message("a_load_of_gpus")),
        ({"follows_load": "any"}, True, None),
        ({}, True, None),
    ],
)
def test_a_check_is_due_only_where_what_it_is_judged_from_is_planned(
    more: dict[str, Any], due_without: bool, code: object
) -> None:
    checks = [_BURN, collected("a.host", load="stress_ng"), after("z.steady", **more)]
    both = {**BURNS, "loads_s": {"burn": 8.0, "stress_ng": 2.0}}
    made = build(checks, **both)
    assert names(made) == ["a.host", "g.burn", "z.steady"]
    assert made.not_tested == ("no thermometer",)
    # Another profile does not run it, a selection leaves it out, or the machine does not have it.
    without = {**both, "loads_s": {"stress_ng": 2.0}, "file": None}
    for settings in (without, {**both, "components": CLASSES}):
        less = build(checks, **settings)
        assert ("z.steady" in names(less)) is due_without
        told = [one for one in less.not_tested if isinstance(one, Message)]
        assert [one.code for one in told] == ["evidence_not_planned"] * (not due_without)
        for one in told:
            evidence = one.values["evidence"]
            told_of = ", ".join(evidence.items) if isinstance(evidence, Listed) else evidence
            assert (one.values["check"], told_of) == ("z.steady", code)
    if due_without:
        assert names(build(checks, **both, only=["a.host", "z"])) == ["a.host", "z.steady"]


@each(
    "more, told",
    [
        ({"follows": ("g.burn", "g.other")}, "z.steady is judged from g.burn or g.other, and"),
        ({"follows_load": "gpus"}, "z.steady is judged from a load of GPUs, and"),
        ({"follows_load": "any"}, "z.steady is judged from a load, and"),
    ],
)
def test_what_was_asked_for_without_its_evidence_is_refused(
    more: dict[str, Any], told: str
) -> None:
    checks = [_BURN, after("z.other"), after("z.steady", **more)]
    before = [after("z.before", follows=("g.other", "g.burn")), *checks]
    for of, only in (
        (checks, ["z.steady"]),
        (checks, ["z.st*"]),
        (before, ["z.steady", "z.before"]),
    ):
        said = raised(PlanError, build, of, **BURNS, only=only)
        assert said.startswith(f"--only {only[0]}: {told}")
    assert names(build(checks, **BURNS, only=["z.steady", "g"])) == ["g.burn", "z.steady"]
    less = build(checks, **BURNS, only=["z"])
    assert (names(less), len(less.not_tested)) == (["z.other"], 2)  # and what is not due is said


def test_what_a_check_follows_exists_and_has_ended_before() -> None:
    steady = after("z.steady", follows=("g.*",), follows_load="any")
    assert lint_follows([_BURN, steady]) is None
    wrong = {
        "z.steady follows g.burnt, which is no check: did you mean g.burn?": {
            "follows": ("g.burnt",)
        },
        "z.steady follows z.late, which does not run in a session before it": {
            "follows": ("z.late",)
        },
        "z.steady follows loads, and does not run after all of them": {
            "session": "load",
            "follows_load": "gpus",
        },
    }
    for told, more in wrong.items():
        check = collected("z.steady", **{"session": "host-after", **more})
        assert lint_follows([_BURN, after("z.late"), check]) == told


def test_waivers_that_match_nothing_are_named() -> None:
    checks = [*BOTH, collected("g.seen", Measures("heat", "degC", "gpu"))]
    waivers = [
        Waiver("r", measurement="power", component="cpu", worst=1.0),
        Waiver("r", measurement="power", component="gpu*", worst=1.0),
        Waiver("r", skip="b.two"),
        Waiver("r", skip="g.seen"),
    ]
    told = plan_builder.waivers_of_nothing(checks, CLASSES, waivers, "box.toml")
    assert [one.values.get("component") for one in told] == ["gpu*", None]
    classes = {**CLASSES, "gpu": (Gpu(0),)}
    (left,) = plan_builder.waivers_of_nothing(checks, classes, waivers, "box.toml")
    assert left.values["component"] == "gpu*", "of power: it is not measured on a GPU"


def test_a_limit_for_a_component_that_is_not_there_is_a_gap() -> None:
    """And none for a GPU while one is missing: those that are left have other numbers, and that
    one is missing fails.
    """
    burn = collected("g.burn", Measures("faults", "count", "gpu"), load="burn")
    for component, missing, missed in (
        ("cpu9", (), 1),
        (Gpu(0), (), 1),  # it is there, but power is not measured on it
        (Gpu(1), (Gpu(1),), 0),
    ):
        book = BOOK.after([Override("power", "override in box.toml", WATT, component)])
        classes = {**CLASSES, "gpu": (Gpu(0),)}
        settings: dict[str, Any] = {"book": book, "loads_s": {"burn": 1.0}, "missing": missing}
        gaps = worded(build([*BOTH, burn], components=classes, **settings).gaps)
        assert [f"a limit for power on {component}, " in gap for gap in gaps] == [True] * missed


def cores(count: int) -> Mapping[str, object]:
    return {"components": {**CLASSES, "core": tuple(map(Core, range(count)))}}


GIB = {"seconds": 3.0, "core_seconds_per_gib": 8.0}
PARTS = {"seconds": 2.0, "load": "burn", "extra_load": "more"}
TURNS = {"seconds": 2.0, "seconds_per_turn": 0.5}


@each(
    "takes, more, seconds, slack_s",
    [
        ({"seconds": 2.0}, {}, 2.0, 0.0),
        ({"seconds": 2.0, "seconds_per_gpu": 1.5}, {}, 6.5, 0.0),
        ({"seconds": 2.0, "seconds_per_pair": 0.5}, {}, 5.0, 0.0),
        (TURNS, {"turns": None}, 3.5, 0.0),
        (TURNS, {"turns": 2}, 3.0, 0.0),
        (TURNS, {"turns": 1}, 2.5, 0.0),
        (PARTS, {"loads_s": {"burn": 3.0}}, 5.0, 0.0),
        (PARTS, {"loads_s": {"burn": 3.0, "more": 4.0}}, 9.0, 0.0),
        (GIB, cores(0), 19.0, 0.0),
        (GIB, cores(1), 19.0, 0.0),
        (GIB, cores(16), 4.0, 0.0),
        (
            {"seconds": 2.0, "slack": 10.0, "slack_per_gib": 1.5},
            {"memory_gib": 4.0},
            2.0,
            16.0,
        ),
    ],
    told=[
        *("the same for any number of GPUs", "for each GPU", "for each pair"),
        *("where nothing says how many share the way to the host, all do", "two take turns"),
        *("no turns", "one part", "a part that the profile names costs its seconds"),
        *("no core is known", "one core", "all cores together take a share of one core's time"),
        "the slack for each GiB counts for the time limit alone",
    ],
)
def test_what_a_check_costs(
    takes: Mapping[str, Any], more: Mapping[str, Any], seconds: float, slack_s: float
) -> None:
    classes = {**CLASSES, "gpu": (Gpu(0), Gpu(1), Gpu(2))}
    settings = {"components": classes, "book": LimitBook(BOOK.entries[:1]), **more}
    (check,) = build([collected("a.one", **takes)], **settings).checks
    assert (check.seconds, check.slack_s) == (seconds, slack_s)


def test_a_planned_check_that_tells_no_slack_has_none() -> None:
    """As in the journals of runs before there was any."""
    made = plan.PlannedCheck("a.one", "title", "load", 1.0, ())
    assert (made.slack_s, made.usual_s, made.expected_s) == (0.0, None, 1.0)


def test_how_often_a_rare_fault_is_missed_follows_from_the_load_of_its_part() -> None:
    ram, heat = Measures("faults", "count", "ram"), Measures("power", "W", "gpu")
    checks = (
        collected("gpu.burn", heat, FAULTS, ram, load="burn"),
        collected("gpu.copy", heat, load="gpu_copy"),
        collected("gpu.products", heat, load="gpu_gemm"),
        collected("gpu.bits", heat, load="train_digest"),
        # wrong elements of all GPUs are counted, and between two sizes nothing is compared
        collected("gpu.links", Measures("faults", "count", "gpus"), load="collective"),
        collected("cpu.products", FAULTS, load="cpu_gemm"),
        collected("cpu.speed", load="memory_bandwidth"),
        collected("ram.patterns", ram, load="stressapptest"),
        collected("cpu.counted", FAULTS),
    )
    classes = {**CLASSES, "gpu": (Gpu(0),), "gpus": (GPUS,), "ram": (MEMORY,)}
    loads = {
        "burn": 60.0,
        "train_digest": 40.0,
        "collective": 120.0,
        "gpu_copy": 90.0,
        "cpu_gemm": 240.0,
        "memory_bandwidth": 30.0,
        "stressapptest": 3120.0,
        "gpu_gemm": 30.0,
    }
    made = build(checks, loads_s=loads, components=classes)
    told = [words.text(text) for text in made.cannot_detect]
    assert told == [
        "heat",
        "a fault on gpus that shows once in ten minutes of load is missed in 85 of 100 such runs "
        "(100 s of verified load)",
        "a fault on cpu that shows once in ten minutes of load is missed in 61 of 100 such runs "
        "(300 s of verified load)",
    ]  # of RAM, with 3180 s, fewer than one in 200
    hidden = build(checks, loads_s=loads, components={**classes, "cpu": (), "memory": ()})
    rare = [one for one in hidden.cannot_detect if isinstance(one, Message)]
    assert [one.values["component"] for one in rare] == ["gpus"]
    verified = {check.id: check.verifies for check in made.checks if check.verifies}
    assert verified == {
        "gpu.burn": (GPUS, CPU, MEMORY),
        "gpu.bits": (GPUS,),
        "cpu.products": (CPU,),
        "ram.patterns": (MEMORY,),
    }
    own = {"burn": 90.0, "stressapptest": 20.0}
    timed = build(checks, loads_s=loads, components=classes, own_s=own).checks
    assert {check.id: (check.load_s, check.own_s) for check in timed if check.verifies} == {
        "gpu.burn": (60.0, 90.0),
        "gpu.bits": (40.0, 40.0),
        "cpu.products": (240.0, 240.0),
        "ram.patterns": (3120.0, 20.0),
    }
    shorter = build(checks, loads_s={**loads, "stressapptest": 3000.0}, components=classes)
    last = words.text(shorter.cannot_detect[-1])
    assert last.startswith("a fault on memory that shows once")
    assert last.endswith("(3060 s of verified load)")
    less = build((*checks[1:3], checks[4]), loads_s=loads, components=classes)
    none = words.text(less.cannot_detect[1])
    assert none == (
        "a fault on gpus that shows only now and then is missed: "
        "no load of this run verifies its results there"
    )
    host = build(checks, loads_s=loads, components={**classes, "gpu": ()})
    assert [words.text(text)[:14] for text in host.cannot_detect] == ["heat", "a fault on cpu"]
    assert {check.id: check.verifies for check in host.checks}["gpu.burn"] == (CPU, MEMORY)


def test_what_is_wrong_with_a_plan_says_where_if_it_is_known() -> None:
    found = str(PlanError("it cannot be")), str(PlanError("it cannot be", "box.toml"))
    assert found == ("it cannot be", "box.toml: it cannot be")


def test_a_session_is_told_nothing_of_what_was_before() -> None:
    past = Past(True, 3, 14, level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)))
    birth = MachineFacts("run-0", "2026-01-01T00:00:00.000Z", (), {}, (), ())
    owed = journals.due()
    made = replace(journals.plan(journals.check("a.one", owed.against(past))), baseline=birth)
    assert made.without_past() == journals.plan(journals.check("a.one", owed))


SITE = LimitBook((*BOOK.entries, Override("site_b", "box.toml", BOOK.entries[0].limit)))
OWN = collected("site.a.fast", Measures("site_a", "s", "cpu"))


@each(
    "checks, more, told",
    [
        (
            [collected("a.one", load="burn"), collected("b.two", FAULTS, load="burn")],
            {},
            "nothing is due",
        ),
        (
            [collected("a.one", Measures("power", "W", "rack")), BOTH[1]],
            {},
            "measures per rack, which is no class of components",
        ),
        (
            BOTH,
            {
                "components": {**CLASSES, "cpu": ("cpu0", "cpu1")},
                "book": LimitBook(
                    (Override("power", "override in box.toml", WATT, "cpu0"), *BOOK.entries[1:])
                ),
            },
            "power on cpu1 has no limit, and nothing says why none can be",
        ),
        (BOTH, {"book": SITE}, "give the folder of its checks with --checks"),
        ([*BOTH, OWN], {"book": SITE}, "did you mean site_a"),
        (
            BOTH,
            {"waivers": (Waiver("known", skip="site.a"),)},
            "give the folder of its checks with --checks",
        ),
    ],
    told=[
        *("an empty plan", "an unknown class of components"),
        *("a limit for one component leaves no other unjudged", "a limit of a site's own check"),
        *("a misspelt one", "a waiver of a site's own check"),
    ],
)
def test_a_plan_that_is_refused(
    checks: Sequence[CollectedCheck], more: Mapping[str, Any], told: str
) -> None:
    assert_raises(PlanError, build, checks, **more, match=told)


BURN = collected("g.burn", load="burn")


def test_a_whole_run_of_less_than_its_profile_is_partial_and_keeps_its_gaps() -> None:
    """A part of a run is not shortened besides."""
    units = {"burn": "s", "cpuburn": "s", "memory": "GiB"}
    less = [Reduction(load, 1.0, 12.0, unit) for load, unit in units.items()]
    settings: dict[str, Any] = {"loads_s": {"burn": 1.0}, "reductions": less, "gaps": ["a gap"]}
    short = build([*BOTH, BURN], **settings)
    assert (short.scope, short.is_whole, short.gaps) == ("partial", True, ("a gap",))
    assert [one.load for one in short.shortened] == ["burn", "memory"], "no check runs cpuburn"
    part = build([*BOTH, BURN], **settings, only=["g.burn"])
    assert (part.scope, part.is_whole, part.gaps, part.shortened) == ("partial", False, (), ())


@each(
    "book, told",
    [
        (
            BOOK.after([Override("heat", "class default", WATT)]),
            r"class default: a limit for heat, which no check measures: correct it \(docs/",
        ),
        (
            BOOK.after([Override("powr", "class default", unlimited="x")]),
            r"a limit for powr, which no check measures: did you mean power\?$",
        ),
        (
            BOOK.after([Override("power", "override in box.toml", COUNT)]),
            "the limit for power is in count, but power is measured in W",
        ),
        (
            BOOK.after([Override("power", "override in box.toml", COUNT, "cpu7")]),
            "the limit for power is in count",
        ),
        (
            BOOK.after([Override("faults", "override in box.toml", COUNT, own=True)]),
            "box.toml: faults takes no limit of the machine's",
        ),
    ],
)
def test_a_limit_must_be_of_what_is_measured_and_in_its_unit(book: LimitBook, told: str) -> None:
    """Also of checks that this run does not select."""
    for only in ((), ("a",), ("b",)):
        assert_raises(PlanError, build, book=book, only=only, match=told)


HEAT = Limit("W", "class default", high=300)


@each(
    "own, told",
    [
        (Limit("W", "b", high=900), None),
        (Limit("W", "b", low=1, high=900), None),
        (Limit("W", "b", low=1), "box.toml: the limit for power has low alone, and the one that"),
    ],
)
def test_a_limit_of_the_machines_own_keeps_a_bound_that_the_replaced_one_has(
    own: Limit, told: str | None
) -> None:
    shipped = BOOK.after([Override("power", "class default", HEAT)])
    book = shipped.after([Override("power", "override in box.toml", own, own=True)])
    if told is None:
        (due, *_) = build(book=book, waivers=WELCOME).checks[0].due
        assert due.origin == "override in box.toml"
        return
    with pytest.raises(PlanError, match=told) as refused:
        build(book=book)
    assert refused.value.place == ("limit", 0)


def test_a_limit_of_one_component_replaces_none_of_another() -> None:
    checks = [collected("a")]
    shipped = LimitBook((Override("power", "class default", HEAT, Gpu(0)),))
    floor = Limit("W", "b", low=1)
    lint(checks, shipped.after([Override("power", "override", floor, Gpu(1), own=True)]))
    assert "has low alone" in raised(
        PlanError,
        lint,
        checks,
        shipped.after([Override("power", "override", floor, Gpu(0), own=True)]),
    )


def test_a_waiver_of_a_floor_has_a_bound_that_something_can_fail() -> None:
    floor = BOOK.after([Override("power", "class default", Limit("W", "b", low=100))])
    waiver = Waiver("r", measurement="power", component="cpu", worst=0.0)
    with pytest.raises(PlanError, match="worst is 0, and no power is ever below 0") as refused:
        build(book=floor, waivers=(waiver,))
    assert refused.value.place == ("waiver", 0, "worst")
    ceiling = BOOK.after([Override("power", "class default", HEAT)])
    assert build(book=ceiling, waivers=(waiver,))


@each(
    "waiver, key, told",
    [
        (
            Waiver("r", measurement="heat", component="cpu", worst=1.0),
            "measurement",
            "box.toml: a waiver names heat, which no check measures: correct it",
        ),
        (
            Waiver("r", measurement="Power", component="cpu", worst=1.0),
            "measurement",
            "which no check measures: did you mean power?",
        ),
        (
            Waiver("r", measurement="faults", component="cpu", worst=1.0),
            "measurement",
            "box.toml: faults cannot be waived, because it proves a fault",
        ),
        (
            Waiver("r", skip="c"),
            "skip",
            "box.toml: a waiver names the check c, which does not exist",
        ),
        (
            Waiver("r", skip="a.o"),
            "skip",
            r"the check a.o, which does not exist: did you mean a.one\?",
        ),
    ],
)
def test_a_waiver_must_name_what_exists_and_may_be_waived(
    waiver: Waiver, key: str, told: str
) -> None:
    with pytest.raises(PlanError, match=told) as caught:
        build(waivers=[WELCOME[0], waiver])
    assert caught.value.place == ("waiver", 1, key)


def test_a_measurement_that_one_check_calls_unwaivable_is_unwaivable() -> None:
    lax = collected("c.three", Measures("faults", "count", "cpu"))
    for checks in ([*BOTH, lax], [lax, *BOTH]):
        assert FAULTS in BOTH[1].measures
        assert "faults cannot be waived" in raised(
            PlanError,
            build,
            checks,
            waivers=[Waiver("r", measurement="faults", component="cpu", worst=1.0)],
        )


KEPT = Override("power", "override in box.toml", WATT, own=True)


@each(
    "wrong, place",
    [
        (Override("heat", "override in box.toml", WATT, own=True), ("limit", 1, "measurement")),
        (Override("power", "override in box.toml", COUNT, own=True), ("limit", 1, "unit")),
        (Override("faults", "override in box.toml", COUNT, own=True), ("limit", 1, "measurement")),
        (Override("heat", "class default", WATT), ()),
        (Override("power", "class default", COUNT), ()),
    ],
)
def test_a_limit_of_the_machine_file_is_told_by_its_row_and_no_other_has_one(
    wrong: Override, place: tuple[str | int, ...]
) -> None:
    derived = Override("power", "declared in box.toml", WATT)
    with pytest.raises(PlanError) as caught:
        build(book=BOOK.after([derived, KEPT, wrong]))
    assert caught.value.place == place
