"""Which PASS ends a FAIL: one that measures what failed, under as much of a declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from acceptance.fleet import ending
from acceptance.fleet.ending import Failure
from acceptance.reports import verdict_json
from acceptance.reports.verdict_json import (
    Before,
    Bounds,
    Check,
    Declaration,
    DeclaredLimit,
    DeclaredWaiver,
    Figure,
    File,
    Limits,
    Looser,
    Row,
)

BASELINE = "2026-11-01T01-00-00Z-0001"
GEMM = "compute.gemm[bf16]"


def figure(name: str, part: str, low: float | None = 600.0, **more: Any) -> Figure:
    limit = UNSET if low is None else Bounds("TFLOP/s", "a sheet", low=low)
    made: dict[str, Any] = {"value": 700.0, "limit": limit, **more}
    return Figure(name, part, "TFLOP/s", "a sheet", made.pop("waived", False), **made)


def checks() -> tuple[Check, ...]:
    """What accept plans: GPUs that are counted, a load on each, a disk, the kernel log."""
    gpus = ("gpu0", "gpu1")
    count = Bounds("count", "declared", low=2, high=2)
    before = Before(outside=False, unsteady=False, nights=5, baseline=700.0)
    return (
        Check(
            "gpu.present",
            "present",
            "host-before",
            "pass",
            0.1,
            (figure("gpu_count", "machine", value=2.0, limit=count),),
        ),
        Check(
            GEMM,
            "products",
            "gpu-load",
            "pass",
            30.0,
            tuple(figure("gemm_bf16", gpu, before=before) for gpu in gpus),
            load_s=28.0,
        ),
        Check(
            "storage.read",
            "disks",
            "load",
            "pass",
            4.0,
            (figure("disk_read", "disk:nvme0n1", 3.0), figure("disk_wear", "disk:nvme0n1", None)),
        ),
        Check(
            "kernel_log.during_run",
            "log",
            "host-after",
            "pass",
            0.2,
            (figure("kernel_faults_during", "system", None, value=0.0),),
        ),
    )


DECLARED = Declaration({"gpus": 2, "gpu0.model": "NVIDIA H200", "power.pulses": True}, (), ())


def file(*violations: Row, **more: Any) -> File:
    made = File(
        verdict_json.SCHEMA,
        "FAIL" if violations else "PASS",
        1 if violations else 0,
        "2026-11-26T01-00-00Z-0001",
        violations,
        (),
        (),
        (),
        (),
        (),
        checks(),
        {},
        scope="full",
        profile="accept",
        inventory_declared=True,
        declared=DECLARED,
        baseline=BASELINE,
        caveats=(),
    )
    return replace(made, **more)


def row(check: str, **more: Any) -> Row:
    return Row(check, "it failed", "outside_limit", {}, **more)


def why(failed: File, passed: File) -> list[str]:
    """The codes of what keeps a PASS from ending a FAIL."""
    lacking = ending.obstacles(
        ending.failure(failed, ending.proof(failed)),
        ending.proof(passed),
        None if passed.baseline is UNSET else passed.baseline,
    )
    return list(dict.fromkeys(one.code for one in lacking))


def changed(change: Callable[[Check], Check | None]) -> tuple[Check, ...]:
    return tuple(made for one in checks() if (made := change(one)) is not None)


def without(*names: str) -> tuple[Check, ...]:
    return changed(lambda one: None if one.id in names else one)


def of(name: str, change: Callable[[Figure], Figure | None]) -> tuple[Check, ...]:
    """The checks with changed figures of one measurement; None drops them."""

    def one_check(one: Check) -> Check:
        figures = (change(each) if each.measurement == name else each for each in one.measurements)
        return replace(one, measurements=tuple(each for each in figures if each is not None))

    return changed(one_check)


FAILS = {
    "a rate": row(GEMM, measurement="gemm_bf16", component="gpu1"),
    "a missing GPU": row("gpu.present", measurement="gpu_count", component="machine"),
    "a disk": row("storage.read", measurement="disk_read", component="disk:nvme0n1"),
    "an Xid in a check": row(GEMM, component="gpu1", event="xid.79"),
    "an Xid between checks": row("run", component="gpu1", event="xid.79"),
    "drift": row(GEMM, measurement="gemm_bf16", component="gpu1", event="drift.step"),
    "another part": row("run", component="gpu1", event="inventory.gpu_gone"),
    "nights that were skipped": row("run", event="postponed"),
    "a check as a whole": row("storage.read"),
    "the whole run": row("run"),
}


@pytest.mark.parametrize("name", FAILS)
def test_the_same_test_again_ends_it(name: str) -> None:
    assert why(file(FAILS[name]), file()) == []


@pytest.mark.parametrize("name", FAILS)
def test_what_a_version_before_says_ends_nothing(name: str) -> None:
    failed = file(FAILS[name])
    assert why(failed, file(declared=UNSET)) == ["end_pass_unknown"]
    assert why(replace(failed, declared=UNSET), file()) == ["end_failure_unknown"]
    assert ending.obstacle(Failure(), ending.proof(file()), None) is not None


def test_what_another_check_saw_of_the_fault_must_pass_too() -> None:
    log = row("kernel_log.during_run", measurement="kernel_faults_during", component="system")
    failed = file(FAILS["an Xid in a check"], duplicates=(log,))
    assert why(failed, file()) == []
    assert why(failed, file(checks=without("kernel_log.during_run"))) == ["end_not_measured"]


SHORT = changed(lambda one: replace(one, load_s=5.0) if one.id == GEMM else one)


@pytest.mark.parametrize(
    ("name", "weaker", "expected"),
    [
        ("a rate", without(GEMM), ["end_not_measured"]),
        ("a rate", SHORT, ["end_shorter"]),
        ("a rate", of("gemm_bf16", lambda one: one if one.component == "gpu0" else None), None),
        (
            "a rate",
            of("gemm_bf16", lambda one: one if one.component == "gpu1" else None),
            ["end_not_measured"],
        ),
        ("a rate", of("gemm_bf16", lambda one: replace(one, value=UNSET)), ["end_not_measured"]),
        ("a rate", of("gemm_bf16", lambda one: replace(one, waived=True)), ["end_waived"]),
        ("a rate", of("gemm_bf16", lambda one: replace(one, limit=UNSET)), ["end_looser"]),
        (
            "a rate",
            of("gemm_bf16", lambda one: figure(one.measurement, one.component, 500.0)),
            ["end_looser"],
        ),
        ("a rate", of("gemm_bf16", lambda one: figure(one.measurement, one.component, 650.0)), []),
        ("a rate", without("storage.read", "gpu.present"), []),
        (
            "a missing GPU",
            of("gpu_count", lambda one: replace(one, limit=Bounds("count", "x", low=0, high=0))),
            ["end_looser"],
        ),
        (
            "a missing GPU",
            of("gpu_count", lambda one: replace(one, limit=Bounds("count", "x", low=2))),
            ["end_looser"],
        ),
        ("a disk", without("storage.read"), ["end_not_measured"]),
        ("an Xid in a check", without(GEMM), ["end_not_measured"]),
        ("an Xid in a check", SHORT, ["end_shorter"]),
        ("an Xid in a check", without("kernel_log.during_run"), ["end_not_measured"]),
        (
            "an Xid in a check",
            changed(lambda one: replace(one, outcome="skip") if one.id == GEMM else one),
            ["end_not_measured"],
        ),
        (
            "an Xid in a check",
            of("gemm_bf16", lambda one: one if one.component == "gpu0" else None),
            ["end_not_measured"],
        ),
        ("an Xid between checks", without("kernel_log.during_run"), ["end_not_measured"]),
        ("an Xid between checks", without(GEMM), ["end_not_measured"]),
        ("an Xid between checks", without("storage.read"), []),
        ("drift", of("gemm_bf16", lambda one: replace(one, before=UNSET)), ["end_no_past"]),
        (
            "drift",
            of(
                "gemm_bf16",
                lambda one: replace(one, before=Before(outside=False, unsteady=False, nights=9)),
            ),
            ["end_no_past"],
        ),
        ("drift", without("kernel_log.during_run"), []),
        ("another part", (), []),
        ("nights that were skipped", without(GEMM), []),
        ("a check as a whole", without("storage.read"), ["end_not_measured"]),
        ("a check as a whole", without(GEMM), []),
        ("the whole run", without("storage.read"), ["end_not_measured"]),
        ("the whole run", SHORT, ["end_shorter"]),
    ],
)
def test_what_failed_must_be_measured(
    name: str, weaker: tuple[Check, ...], expected: list[str] | None
) -> None:
    found = why(file(FAILS[name]), file(checks=weaker))
    assert found == (["end_not_measured"] if expected is None else expected)


def test_the_baseline_is_the_same() -> None:
    for name, expected in (
        ("drift", ["end_other_baseline"]),
        ("another part", None),
        ("a rate", []),
    ):
        found = why(file(FAILS[name]), file(baseline="2026-11-20T01-00-00Z-0001"))
        assert found == (["end_other_baseline"] if expected is None else expected)
        gone = why(file(FAILS[name]), file(baseline=UNSET))
        assert gone == (["end_other_baseline"] if expected is None else expected)
    assert why(file(FAILS["drift"], baseline=UNSET), file()) == []


def test_what_was_waived_may_be_waived_again() -> None:
    failed = file(FAILS["an Xid in a check"])
    log = changed(
        lambda one: (
            replace(
                one, measurements=tuple(replace(each, waived=True) for each in one.measurements)
            )
            if one.id.startswith("kernel_log.")
            else one
        )
    )
    assert why(replace(failed, checks=log), file(checks=without("kernel_log.during_run"))) == []
    one = of("gemm_bf16", lambda one: replace(one, waived=True) if one.component == "gpu0" else one)
    assert why(replace(file(FAILS["a rate"]), checks=one), file(checks=one)) == []


# --- what is declared ---


WAIVER = DeclaredWaiver("known", measurement="disk_read", component="disk:*", worst=1.0)
OWN = DeclaredLimit("gemm_bf16", "TFLOP/s", low=600.0)


def declared(**facts: Any) -> Declaration:
    return Declaration({**DECLARED.facts, **facts}, (), ())


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (declared(), declared(gpus=0), ["end_declares_less"]),
        (declared(), declared(gpus=3), []),
        (declared(), Declaration({}, (), ()), ["end_not_declared"]),
        (Declaration({}, (), ()), declared(), []),
        (declared(), declared(**{"gpu0.model": "NVIDIA H100"}), ["end_declares_less"]),
        (declared(), declared(**{"gpu0.model": 1}), ["end_declares_less"]),
        (declared(), declared(**{"power.pulses": False}), ["end_declares_less"]),
        (declared(**{"memory.total_gib": 512}), declared(), ["end_not_declared"]),
        (DECLARED, replace(DECLARED, waivers=(WAIVER,)), ["end_more_waivers"]),
        (replace(DECLARED, waivers=(WAIVER,)), DECLARED, []),
        (
            replace(DECLARED, waivers=(WAIVER,)),
            replace(DECLARED, waivers=(replace(WAIVER, reason="otherwise"),)),
            [],
        ),
        (
            replace(DECLARED, waivers=(WAIVER,)),
            replace(DECLARED, waivers=(replace(WAIVER, worst=0.5),)),
            ["end_more_waivers"],
        ),
        (
            DECLARED,
            replace(DECLARED, waivers=(DeclaredWaiver("no root", skip="kernel_log"),)),
            ["end_more_waivers"],
        ),
        (replace(DECLARED, limits=(OWN,)), replace(DECLARED, limits=(OWN,)), []),
        (
            replace(DECLARED, limits=(OWN,)),
            replace(DECLARED, limits=(replace(OWN, low=500.0),)),
            ["end_looser_file"],
        ),
        # of one file alone: held against what the other run was judged by, 600
        (DECLARED, replace(DECLARED, limits=(replace(OWN, low=500.0),)), ["end_looser_file"]),
        (DECLARED, replace(DECLARED, limits=(replace(OWN, low=650.0),)), []),
        (replace(DECLARED, limits=(replace(OWN, low=650.0),)), DECLARED, ["end_looser_file"]),
        (replace(DECLARED, limits=(replace(OWN, low=500.0),)), DECLARED, []),
        (
            DECLARED,
            replace(DECLARED, limits=(replace(OWN, component="gpu1", low=500.0),)),
            ["end_looser_file"],
        ),
        (
            DECLARED,
            replace(DECLARED, limits=(DeclaredLimit("gemm_f32", "TFLOP/s", low=1.0),)),
            ["end_looser_file"],
        ),
        (
            replace(DECLARED, limits=(DeclaredLimit("gemm_f32", "TFLOP/s", low=1.0),)),
            DECLARED,
            ["end_looser_file"],
        ),
    ],
)
def test_at_least_as_much_must_be_declared(
    was: Declaration, now: Declaration, expected: list[str]
) -> None:
    assert why(file(FAILS["a disk"], declared=was), file(declared=now)) == expected


def test_the_sheets_of_the_site_are_not_looser() -> None:
    def limits(low: float | None) -> Limits:
        own = Bounds("TFLOP/s", "ours", low=600.0)
        site = UNSET if low is None else Bounds("TFLOP/s", "theirs", low=low)
        looser = Looser("gemm_bf16", "gpu0", "limit", own, site)
        return Limits("2026-11-27.1", "2" * 64, (), (looser,))

    failed = file(FAILS["a disk"])
    assert why(failed, file(limits=limits(500.0))) == ["end_looser_sheets"]
    loose = replace(failed, limits=limits(500.0))
    assert why(loose, file(limits=limits(500.0))) == []
    assert why(loose, file(limits=limits(450.0))) == ["end_looser_sheets"]
    assert why(loose, file(limits=limits(None))) == ["end_looser_sheets"]


def test_a_verdict_says_all_of_it_after_a_round_trip() -> None:
    made = file(FAILS["a rate"], declared=replace(DECLARED, limits=(OWN,), waivers=(WAIVER,)))
    again = verdict_json.read(msgspec.json.encode(made))
    assert ending.proof(again) == ending.proof(made)
    assert ending.failure(again, ending.proof(again)).violations == (
        (GEMM, "gemm_bf16", "gpu1", None),
    )
