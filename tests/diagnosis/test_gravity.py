"""Which finding of a run stands in its headline."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.finding import Finding, FindingKind
from acceptance.core.parts import Gpu
from acceptance.diagnosis.gravity import Gravity, by_gravity, gravity
from acceptance.expect import measurements

KNOWN = measurements.shipped().by_name


def fail(check: str = "watch.heat", kind: FindingKind = "fail", **about: Any) -> Finding:
    return Finding(kind, check, about.pop("code", "outside_limit"), component=Gpu(0), **about)


LOST = fail("together.burn", event="xid.79", code="event_on")
LOST_BY_NVML = fail("run", event="gpu-lost", code="event_on")
ABSENT = fail("gpu.present", measurement="gpu_count")
ECC = fail("vram.patterns", event="xid.48", code="event_on")
ECC_COUNTED = fail("watch.counters", measurement="gpu_ecc_uncorrected_new")
RAM_COUNTED = fail("memory.errors", measurement="memory_errors_uncorrected")
WRONG = fail("compute.gemm_together", measurement="gemm_bf16_miscompares")
WRONG_EVENT = fail("together.burn", event="miscompare.bf16", code="event_on")
DIED = fail("together.burn", code="ended")
HOT = fail("watch.heat", measurement="gpu_temperature_margin")
ECHO = fail("together.burn", event="xid.13", code="event_on")
OF_A_SITE = fail("site.rack", measurement="rack_fan_speed")
BITS = fail("run", event="inventory.bits", code="bits_differ")
SLOW = fail("compute.gemm_together", measurement="gemm_bf16")
BESIDE = fail("compute.gemm_together", measurement="gemm_bf16_ratio")
DRIFTED = fail("link.host_copies", event="drift.step", code="drifted", measurement="copy_h2d")
BEFORE = fail("kernel_log.since_boot", measurement="kernel_faults_before")
GONE = fail("run", event="inventory.missing", code="part_missing")
FIRMWARE = fail("run", event="inventory.firmware", code="differs")
DECLARED = fail("inventory.board", measurement="bios_version_differs")
POSTPONED = fail("run", event="postponed", code="postponed_too_often")

# The gravest first: each stands before all that follow it.
RANKS = (
    (LOST, LOST_BY_NVML),
    (ABSENT,),
    (ECC, ECC_COUNTED, RAM_COUNTED),
    (WRONG, WRONG_EVENT),
    (DIED,),
    (HOT, ECHO, OF_A_SITE, BITS),
    (SLOW, BESIDE),
    (DRIFTED,),
    (BEFORE,),
    (GONE,),
    (FIRMWARE, DECLARED, POSTPONED),
)


def test_a_failure_stands_before_what_follows_from_it_and_before_paperwork() -> None:
    for place, rank in enumerate(RANKS):
        for later in RANKS[place + 1 :]:
            for first in rank:
                for other in later:
                    assert by_gravity([other, first], KNOWN) == (first, other)
        assert by_gravity(rank, KNOWN) == rank
        assert by_gravity(rank[::-1], KNOWN) == rank[::-1], "the plan's order stays"


def unjudged(check: str, code: str, **about: Any) -> Finding:
    return fail(check, "error", code=code, **about)


ERRORS = (
    unjudged("together.burn", "event_on", event="gpu-lost"),
    unjudged("gpu.ready", "ended"),
    unjudged("compute.gemm_together", "implausible", measurement="power_step_made"),
    unjudged("run", "run_closed"),
    unjudged("cpu.gemm", "did_not_finish"),
    unjudged("run", "evidence_missing"),
)


@given(st.permutations(ERRORS))
def test_what_could_not_be_judged_begins_with_what_hindered_it(found: list[Finding]) -> None:
    assert by_gravity(found, KNOWN) == ERRORS


def test_a_consequence_names_no_cause() -> None:
    for one in (
        unjudged("cpu.gemm", "never_ran"),
        unjudged("run", "run_did_not_end"),
        unjudged("link.peer_copies", "after_fault", measurement="copy_d2d_read"),
        unjudged("together.burn", "not_measured", measurement="burn_bf16", unmeasured=True),
    ):
        assert gravity(one, KNOWN) == Gravity.UNMEASURED


def test_the_kind_comes_first() -> None:
    kinds: tuple[FindingKind, ...] = ("fail", "error", "skip", "warn", "waived")
    paper = [fail("inventory.board", kind, measurement="bios_version_differs") for kind in kinds]
    lost = [fail("run", kind, event="gpu-lost") for kind in kinds]
    for worse, better in zip(paper, lost[1:], strict=False):
        assert by_gravity([better, worse], KNOWN) == (worse, better)


def test_nothing_is_lost() -> None:
    for found in permutations((LOST, SLOW, DECLARED)):
        assert by_gravity(found, KNOWN) == (LOST, SLOW, DECLARED)
    assert by_gravity((), KNOWN) == ()
