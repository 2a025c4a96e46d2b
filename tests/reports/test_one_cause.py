"""Failures of one cause that the run confirms are shown together, and stay failures each."""

from __future__ import annotations

from types import MappingProxyType

from cases import each

from acceptance.core.advice import Advice, Condition, LikelyCause
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.language import ENGLISH
from acceptance.core.parts import GPUS, Component, Function, Gpu, Pair
from acceptance.core.plan import Due
from acceptance.core.verdict import Judgement
from acceptance.diagnosis.causes import Evidence
from acceptance.expect import measurements
from acceptance.reports import closing
from acceptance.reports.explanation import group_findings, of_one_cause
from acceptance.reports.locations import Locations
from acceptance.reports.page import cards

NONE = Condition("without_peers", is_="zero", of="any")
LOST = LikelyCause("writes go nowhere", "elsewhere", NONE)
OTHER = LikelyCause("another one", "try")
OF_PEERS = LikelyCause("peers lose it", "elsewhere", NONE, fault="peers")
IN_A_VM = LikelyCause("a VM's peers lose it", "elsewhere", NONE, fault="peers")
PATH = Pair(Gpu(0), Gpu(1))
FUNCTION = Function("0000:01:00.0")


def advice(symptom: str, *causes: LikelyCause) -> Advice:
    return Advice(symptom, causes, "dmesg", "a line", "the lines")


ADVICE = MappingProxyType(
    {
        "copied": advice("Copies are wrong.", OTHER, LOST),
        "burned": advice("The burn is wrong.", LOST, OTHER),
        "summed": advice("Sums are wrong.", LOST, OTHER),
        "sent": advice("What is sent is wrong.", OTHER, OF_PEERS),
        "written": advice("What is written is wrong.", IN_A_VM, OTHER),
        "slow": advice("It is slow.", OTHER, OTHER),
    }
)


def places(without_peers: float | None) -> Locations:
    """Where one value was measured, and a GPU has this PCI function."""
    due = Due("without_peers", GPUS, "count", (), "a file", None)
    one = Judgement(due, without_peers, None, None, ())
    return Locations(
        advice=ADVICE, measured=Evidence({"without_peers": [one]}, (), {FUNCTION: Gpu(1)})
    )


def finding(
    measurement: str, component: Component | None, check: str = "", kind: FindingKind = "fail"
) -> Finding:
    name = check or f"check.{measurement}"
    return Finding(kind, name, "outside_limit", {}, measurement, component, note=measurement * 40)


@each(
    "first, other, without, together",
    [
        (finding("copied", PATH), finding("burned", PATH), 0.0, True),
        (finding("copied", PATH), finding("summed", Gpu(1)), 0.0, True),
        (finding("copied", PATH), finding("summed", GPUS), 0.0, True),
        (finding("copied", PATH), finding("summed", FUNCTION), 0.0, True),
        (finding("copied", PATH, kind="warn"), finding("summed", GPUS, kind="warn"), 0.0, True),
        (finding("sent", PATH), finding("written", GPUS), 0.0, True),
        (finding("sent", PATH), finding("written", GPUS), 1.0, False),
        (finding("sent", PATH), finding("copied", PATH), 0.0, False),
        (finding("copied", Gpu(0)), finding("summed", Gpu(1)), 0.0, False),
        (finding("copied", PATH), finding("summed", None), 0.0, False),
        (finding("copied", PATH), finding("summed", GPUS, kind="error"), 0.0, False),
        (finding("copied", PATH), finding("burned", PATH), 5.0, False),
        (finding("copied", PATH), finding("burned", PATH), None, False),
        (finding("copied", PATH), finding("slow", PATH), 0.0, False),
        (finding("slow", PATH), finding("slow", GPUS), 0.0, False),
        (finding("copied", PATH), finding("nobody knows it", PATH), 0.0, False),
    ],
)
def test_what_has_one_cause(
    first: Finding, other: Finding, without: float | None, together: bool
) -> None:
    found = of_one_cause([[first], [other]], places(without))
    assert found == ([(0, 1)] if together else [(0,), (1,)])


def test_two_paths_have_one_cause_where_a_third_finding_joins_them() -> None:
    apart = [[finding("copied", Pair(Gpu(0), Gpu(1)))], [finding("copied", Pair(Gpu(2), Gpu(3)))]]
    between = [finding("slow", GPUS)]
    assert of_one_cause([*apart, between], places(0.0)) == [(0,), (1,), (2,)]
    joined = [between, *apart, [finding("summed", GPUS)]]
    assert of_one_cause(joined, places(0.0)) == [(0,), (1, 2, 3)]


def test_the_failures_of_one_cause_stand_above_it_once() -> None:
    findings = [finding("copied", PATH), finding("slow", PATH), finding("summed", GPUS)]
    groups = list(group_findings(findings, places(0.0)))
    assert [[one.measurement for one in found] for found, _ in groups] == [
        ["copied", "summed"],
        ["slow"],
    ]
    told = "\n".join(groups[0][1])
    assert groups[0][1][0].endswith("writes go nowhere")
    assert told.count("Measured: elsewhere") == told.count("dmesg") == 1
    assert "copied" * 40 in told
    assert "summed" * 40 in told
    assert "writes go nowhere" not in "\n".join(groups[1][1])
    entry, _ = closing.entries(findings, places(0.0), ENGLISH)
    assert [checks for checks, _ in entry.lines] == [("check.copied",), ("check.summed",)]


def test_a_card_names_the_others_of_its_cause() -> None:
    findings = [finding("copied", PATH), finding("slow", PATH), finding("summed", GPUS)]
    found = list(cards.cards(findings, {}, places(0.0), ENGLISH))
    assert [(card.title(ENGLISH), card.same_cause) for card in found] == [
        (f"{PATH} · check.copied", ("gpus · check.summed",)),
        (f"{PATH} · check.slow", ()),
        ("gpus · check.summed", (f"{PATH} · check.copied",)),
    ]
    assert [card.same_cause for card in cards.cards(findings, {}, places(5.0), ENGLISH)] == [()] * 3


def test_a_fault_with_a_name_is_one_that_several_families_word() -> None:
    """So that its failures stand together: of copies, of the burn, of collectives, of training."""
    families = measurements.shipped().by_name
    named = {
        name: {cause.fault for cause in one.advice.causes if cause.fault is not None}
        for name, one in families.items()
    }
    for fault in {fault for found in named.values() for fault in found}:
        assert len({id(families[name].advice) for name in named if fault in named[name]}) > 1
    for name in ("copy_own_p2p", "burn_peer", "collective", "parallel"):
        assert "peer access" in named[f"{name}_miscompares"]
