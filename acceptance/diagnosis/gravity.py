"""Which finding of a run stands first: the gravest, and of those the most causal one. Pure.

A failure comes before what could not be judged. A lost GPU comes before its consequences, what the
hardware reported of itself before the results that it spoilt, the state of a part before the rates
that follow from it, and everything that was measured before paperwork: what was declared, what the
baseline says, what became of the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from acceptance.core.finding import DRIFT, RUN, Finding, FindingKind
from acceptance.core.message import Unmeasured
from acceptance.expect.measurements import Measurement

_KINDS: tuple[FindingKind, ...] = ("fail", "error", "skip", "warn", "waived")
_LOST = frozenset({"gpu-lost", "xid.79"})
_ABSENT = frozenset(
    {"gpu_count", "gpu_answers", "gpu_driver_bound", "gpu_in_nvml", "gpu_seen_by_cuda"}
)
# Reported of a program, of the software or of the surroundings, often as the echo of something
# else: of a Xid of these codes NVIDIA says the same.
_ECHOES = frozenset(
    {"driver", "hung-task", "kernel", "lost", "oom", "thermal"}
    | {f"xid.{code}" for code in (13, 31, 43, 45, 69)}
)
# Counters by which memory says that it lost data: it spoils results, as an Xid or a machine check.
_REPORTS = frozenset({"gpu_ecc_uncorrected_new", "memory_errors_uncorrected"})
_KERNEL_LOG = frozenset({"kernel_faults_before", "kernel_faults_during"})
_RATES = frozenset({"GB/s", "TFLOP/s", "GFLOP/s", "Mtokens/s", "IOPS", "us", "ns"})
# Of what differs from the baseline: parts and links that are not there or do less.
_PARTS = frozenset(f"inventory.{what}" for what in ("missing", "less", "link", "nvlink", "network"))
_BITS = "inventory.bits"  # a training run that ends in other bits than before
# What was not measured because of something else, which has a finding of its own.
_CONSEQUENCES = frozenset(
    {"did_not_finish", "never_ran", "run_did_not_end", str(Unmeasured.AFTER_FAULT)}
)
# Why a run as a whole could not be judged; whatever else is said of it is paperwork.
_WHOLE_RUN = frozenset({"gap", "nothing_planned", "run_closed", "session_incomplete", "trouble"})


class Gravity(IntEnum):
    """How grave a finding is among those of its kind; the gravest first."""

    LOST = 0  # in the run
    ABSENT = 1  # from the beginning, or as a consequence
    REPORTED = 2
    WRONG_RESULT = 3  # and what else no waiver covers
    ENDED = 4  # a check that ended so, without a value or an event
    STATE = 5
    RATE = 6
    DRIFT = 7
    WHOLE_RUN = 8
    UNMEASURED = 9
    KERNEL_LOG = 10
    CHANGED_PART = 11
    PAPERWORK = 12


def gravity(finding: Finding, known: Mapping[str, Measurement]) -> Gravity:
    """How grave a finding is; `known` are the measurements of the families, by name."""
    if finding.event is not None:
        return _of_event(finding.event)
    if finding.unmeasured or finding.code in _CONSEQUENCES:
        return Gravity.UNMEASURED
    if finding.measurement is not None:
        return _of_value(finding.measurement, known.get(finding.measurement))
    if finding.check == RUN:
        return Gravity.WHOLE_RUN if finding.code in _WHOLE_RUN else Gravity.PAPERWORK
    return Gravity.ENDED


def _of_event(event: str) -> Gravity:
    kind = event.partition(".")[0]
    if event in _LOST:
        return Gravity.LOST
    if kind == "miscompare":
        return Gravity.WRONG_RESULT
    if event == _BITS or kind in _ECHOES or event in _ECHOES:
        return Gravity.STATE
    if kind == DRIFT:
        return Gravity.DRIFT
    if kind == "inventory":
        return Gravity.CHANGED_PART if event in _PARTS else Gravity.PAPERWORK
    return Gravity.PAPERWORK if kind == "postponed" else Gravity.REPORTED


def _of_value(name: str, known: Measurement | None) -> Gravity:
    if name in _ABSENT:
        return Gravity.ABSENT
    if name in _REPORTS:
        return Gravity.REPORTED
    if name in _KERNEL_LOG:
        return Gravity.KERNEL_LOG
    if known is None:
        return Gravity.STATE
    if known.fact:
        return Gravity.PAPERWORK
    if not known.waivable:
        return Gravity.WRONG_RESULT
    is_rate = known.unit in _RATES or known.ratio_of is not None
    return Gravity.RATE if is_rate else Gravity.STATE


def by_gravity(
    findings: Iterable[Finding], known: Mapping[str, Measurement]
) -> tuple[Finding, ...]:
    """The findings, the gravest first; equally grave ones stay as they are: in the plan's order."""
    return tuple(sorted(findings, key=lambda one: (_KINDS.index(one.kind), gravity(one, known))))
