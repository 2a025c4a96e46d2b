"""Somebody else on a GPU that is tested: what it does to a check, to the run, and to a night."""

from __future__ import annotations

import msgspec
import pytest
from cases import each
from journals import DIGEST, NONE_ALLOWED, check, due, entries, plan
from worded import worded

from acceptance.core.fold import fold
from acceptance.core.foreign_process import is_disturbed
from acceptance.core.notes import run_notes
from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    ForeignProcess,
    Measured,
    Postponed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.core.verdict import CheckResult, Verdict
from acceptance.wording import words

COUNTED = due("errors", Gpu(1), "count", NONE_ALLOWED)
BURN = msgspec.structs.replace(check("burn.all", COUNTED), gpu_load_s=30.0)
TRAIN = ForeignProcess(Gpu(1), 125.0, 4242, "python3", None)
BUSY = ("gpu1: python3 (process 4242), from second 25 of the run on",)


def gone(at_s: float) -> ForeignProcess:
    return msgspec.structs.replace(TRAIN, until_s=at_s)


def run(
    one: PlannedCheck, *others: Body, value: float | None = None, last: tuple[Body, ...] = ()
) -> list[Entry]:
    """A run of one check from second 110 to 140; each record of `others` at second 126."""
    (owed,) = one.due
    read = value if value is not None else 0.0 if owed.unit == "count" else 200.0
    outcome = "fail" if value is not None else "pass"
    made = entries([RunStarted("run-1", plan(one), {"host": "box"}, "machine-1")])
    timed: list[tuple[float, Body]] = [
        (105.0, SessionStarted(one.session, DIGEST, (one.id,))),
        (110.0, CheckStarted(one.id)),
        *((126.0, body) for body in others),
        (139.0, Measured(one.id, owed.measurement, owed.component, owed.unit, read)),
        (140.0, CheckEnded(one.id, outcome, "", 30.0)),
        (141.0, SessionEnded(one.session, True, "exited 0", 36.0)),
        *((145.0, body) for body in last or (RunEnded(True, "every session of the plan was run"),)),
    ]
    lines = [
        Entry(number, at_s, made[0].utc, body, "journal.jsonl")
        for number, (at_s, body) in enumerate(timed, 1)
    ]
    return [*made, *lines]


def only(verdict: Verdict) -> CheckResult:
    (found,) = verdict.checks
    return found


@each(
    "others, when",
    [
        ((TRAIN,), "from second 15 to the end of this check"),
        ((TRAIN, gone(132.0)), "from second 15 to second 22 of this check"),
        ((msgspec.structs.replace(TRAIN, since_s=90.0),), "for the whole of this check"),
        (
            (msgspec.structs.replace(TRAIN, since_s=90.0, until_s=113.0),),
            "from its beginning to second 3 of this check",
        ),
    ],
)
def test_a_heating_check_is_unjudged(others: tuple[Body, ...], when: str) -> None:
    verdict = fold(run(BURN, *others))
    assert (verdict.verdict, only(verdict).outcome) == ("UNJUDGED", "error")
    (finding,) = only(verdict).findings
    assert (
        words.of(finding)
        == f"gpu1 was also used by python3 (process 4242) {when}: end it, and run again"
    )
    assert finding.component == Gpu(1)


def test_a_fault_that_it_found_stays_a_fault() -> None:
    verdict = fold(run(BURN, TRAIN, value=3.0))
    assert (verdict.verdict, only(verdict).outcome) == ("FAIL", "fail")


@pytest.mark.parametrize(("since_s", "until_s"), [(90.0, 109.0), (141.0, None)])
def test_before_and_after_a_check_it_is_for_the_reader(
    since_s: float, until_s: float | None
) -> None:
    found = run(BURN, msgspec.structs.replace(TRAIN, since_s=since_s, until_s=until_s))
    assert fold(found).verdict == "PASS"
    (note,) = run_notes(found)
    assert words.message(note).startswith(
        "gpu1 was also used by python3 (process 4242) from second "
    )


@each(
    "others, told",
    [
        ((TRAIN,), ["second 25 of the run to its end"]),
        ((TRAIN, gone(132.0)), ["second 25 of the run to second 32"]),
        ((msgspec.structs.replace(TRAIN, since_s=90.0),), ["second 0 of the run to its end"]),
        ((msgspec.structs.replace(TRAIN, since_s=100.4),), ["second 0 of the run to its end"]),
        (
            (TRAIN, msgspec.structs.replace(TRAIN, since_s=125.2)),
            ["second 25 of the run to its end"],
        ),
        (
            (gone(132.0), msgspec.structs.replace(TRAIN, since_s=135.0)),
            ["second 25 of the run to second 32", "second 35 of the run to its end"],
        ),
    ],
)
def test_each_use_is_told_once_with_its_seconds_in_the_run(
    others: tuple[Body, ...], told: list[str]
) -> None:
    notes = [words.message(one) for one in run_notes(run(BURN, *others))]
    assert notes == [f"gpu1 was also used by python3 (process 4242) from {one}" for one in told]


@each(
    "owed, outcome",
    [
        (due(component=Gpu(1)), "error"),
        (due(component=Pair(Gpu(0), Gpu(1))), "error"),
        (due(component=GPUS), "error"),
        (due(component=Gpu(0)), "pass"),
        (due(component=Gpu(10)), "pass"),
        (COUNTED, "pass"),
    ],
)
def test_a_rate_that_was_taken_of_that_gpu_meanwhile(owed: object, outcome: str) -> None:
    assert only(fold(run(check("link.copy", owed), TRAIN))).outcome == outcome  # type: ignore[arg-type]


def test_a_check_before_or_after_the_loads_is_disturbed_by_nobody() -> None:
    assert not is_disturbed(msgspec.structs.replace(BURN, session="host-after"), Gpu(0))
    assert is_disturbed(BURN, Gpu(0))


@each(
    "pid, command, memory, told",
    [
        (7, "python3", 3 << 29, "python3 (process 7, 1.5 GiB)"),
        (7, None, None, "a process (process 7)"),
        (None, None, None, "a part of its memory that no listed process holds"),
        (None, None, 3 << 29, "1.5 GiB of its memory that no listed process holds"),
        (None, "one of 7, 8", None, "one of 7, 8"),
    ],
)
def test_who_it_is_in_words(
    pid: int | None, command: str | None, memory: int | None, told: str
) -> None:
    assert worded(ForeignProcess(Gpu(0), 1.0, pid, command, memory).who) == told


def test_of_another_boot_is_another_time() -> None:
    made = [
        msgspec.structs.replace(one, boot=isinstance(one.body, ForeignProcess))
        for one in run(BURN, TRAIN)
    ]
    assert only(fold(made)).outcome == "pass"


# --- a night that gives way ---

GIVEN_UP = (Postponed(BUSY, 1, 3), RunEnded(False, "the machine is in use"))


def test_a_night_that_was_given_up_is_skipped() -> None:
    verdict = fold(run(BURN, TRAIN, last=GIVEN_UP))
    assert (verdict.verdict, verdict.postponed) == ("UNJUDGED", GIVEN_UP[0])
    assert (only(verdict).outcome, only(verdict).judged) == ("skip", ())
    (finding,) = verdict.findings
    assert words.of(finding) == (
        "the machine is in use, so the night was given up after 45 s (1 in a row, 3 are a "
        f"failure): {BUSY[0]}"
    )


def test_too_many_of_them_are_a_failure() -> None:
    verdict = fold(run(BURN, TRAIN, last=(Postponed(BUSY, 3, 3), GIVEN_UP[1])))
    assert (verdict.verdict, verdict.postponed) == ("FAIL", Postponed(BUSY, 3, 3))


def test_a_fault_found_by_then_is_not_lost() -> None:
    verdict = fold(run(BURN, TRAIN, value=3.0, last=GIVEN_UP))
    assert (verdict.verdict, verdict.postponed) == ("FAIL", None)
    assert only(verdict).outcome == "fail"
    assert [words.of(finding) for finding in verdict.findings] == [
        "the run did not come to its end: the machine is in use"
    ]


@each(
    "others, last",
    [
        ((), GIVEN_UP),
        ((TRAIN,), (GIVEN_UP[0], RunEnded(True, "every session of the plan was run"))),
        ((TRAIN,), GIVEN_UP[::-1]),
        ((TRAIN,), (GIVEN_UP[0], *GIVEN_UP)),
    ],
)
def test_what_was_not_given_up_in_that_way_is_judged(
    others: tuple[Body, ...], last: tuple[Body, ...]
) -> None:
    verdict = fold(run(BURN, *others, last=last))
    assert (verdict.verdict, verdict.postponed) == ("UNJUDGED", None)
