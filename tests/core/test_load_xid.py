"""Xids in the run's own loads: whose they are, what they follow, and when one GPU is at fault."""

from __future__ import annotations

import journals
import msgspec
import pytest
from cases import each

from acceptance.core.finding import Siblings
from acceptance.core.fold import fold
from acceptance.core.load_xid import equal_gpus, works_on
from acceptance.core.notes import run_notes
from acceptance.core.parts import CPU, GPUS, Component, Function, Gpu, Part
from acceptance.core.plan import Plan, SessionName
from acceptance.core.record import (
    Body,
    Entry,
    Event,
    ForeignProcess,
    GpuUser,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Severity,
    Stopped,
    Suspicion,
)
from acceptance.core.verdict import Verdict
from acceptance.wording import words

FLOAT, TENSOR, HOST = "burn.gpu_burn[float]", "burn.gpu_burn[tensor]", "cpu.stress_ng"
DISK = "storage.read"
FUNCTIONS = {Gpu(0): "0000:01:00.0", Gpu(1): "0000:41:00.0", Gpu(2): "0000:81:00.0"}
BEGAN = {FLOAT: 101.0, TENSOR: 121.0, DISK: 141.0}  # each for 18 seconds
SEGMENT = {FLOAT: "journal-gpu-load.jsonl", TENSOR: "journal-gpu-load.jsonl"}


def plan(gpus: int, *, equal: bool = True) -> Plan:
    """Two loads on so many GPUs, which are compared where they are equal, and a disk."""
    cards = tuple(map(Gpu, range(gpus)))

    def load(name: str) -> journals.PlannedCheck:
        dues = [journals.due("rate", one) for one in cards]
        if equal and gpus > 1:
            among = Siblings("rate", cards)
            ratio = journals.due("ratio", cards[0], "ratio", None)
            dues.append(msgspec.structs.replace(ratio, criteria=(among,)))
        return journals.check(name, *dues, session="gpu-load")

    checks = [
        load(FLOAT),
        load(TENSOR),
        journals.check(DISK, journals.due(component=Part("disk", "sda"))),
        journals.check(HOST, journals.due(component=CPU), session="host-load"),
    ]
    functions = tuple(Function(FUNCTIONS[one]) for one in cards)
    return msgspec.structs.replace(journals.plan(*checks), gpus=cards, gpu_functions=functions)


def xid(
    gpu: int = 0,
    code: int = 31,
    pid: int | None = 4121,
    command: str | None = "gpu_burn",
    severity: Severity = "warning",
) -> Event:
    suspicion = Suspicion(Gpu(gpu), pid, command, consequence=code == 45)
    where = Function(FUNCTIONS[Gpu(gpu)])
    return Event("xid", severity, "t", "m", "a", code, where, suspicion=suspicion)


def run(planned: Plan, *timed: tuple[float, Body]) -> list[Entry]:
    """A run of all checks, one after the other, with these records of other segments."""
    found: list[tuple[float, Body, str]] = [
        (100.0, RunStarted("run-1", planned, {}, "machine-1"), "journal.jsonl")
    ]
    sessions: tuple[tuple[SessionName, tuple[str, ...], float], ...] = (
        ("gpu-load", (FLOAT, TENSOR), 100.0),
        ("load", (DISK,), 140.0),
        ("host-load", (HOST,), 160.0),
    )
    ids = tuple(check.id for check in planned.checks)
    for name, checks, since_s in sessions:
        own = f"journal-{name}.jsonl"
        found.append((since_s, SessionStarted(name, planned.digest, ids), own))
        for number, check in enumerate(checks):
            (due,) = (one for one in planned.checks if one.id == check)
            began_s = since_s + 1.0 + 20.0 * number
            start, *between, end = journals.check_bodies(due)
            found += [(began_s, one, own) for one in (start, *between)]
            found.append((began_s + 18.0, end, own))
        ended_s = since_s + 20.0 * len(checks) - 0.5
        found.append((ended_s, SessionEnded(name, True, "exit code 0", 1.0), "journal.jsonl"))
    found.append((200.0, RunEnded(True, "done"), "journal.jsonl"))
    found += [(at_s, body, "journal-watch.jsonl") for at_s, body in timed]
    return [
        Entry(number, at_s, "2026-01-01T00:00:00.000Z", body, segment)
        for number, (at_s, body, segment) in enumerate(sorted(found, key=lambda one: one[0]))
    ]


def judged(planned: Plan, *timed: tuple[float, Body]) -> Verdict:
    return fold(run(planned, *timed))


def xids(verdict: Verdict) -> list[tuple[str, str, str]]:
    """The findings of Xids: the check, the kind, and the event."""
    return [
        (one.check, one.kind, one.event or "")
        for check in verdict.checks
        for one in check.findings
        if one.event
    ]


def test_a_run_without_any_passes() -> None:
    assert judged(plan(2)).verdict == "PASS"


FOREIGN = ForeignProcess(Gpu(0), 90.0, 77, "train.py", None)
DRAWS = GpuUser(Gpu(0), 90.0, 78, "Xorg", own=False)
OWN = GpuUser(Gpu(0), 102.0, 4121, "/usr/bin/gpu_burn", own=True)
OOM = Event("oom", "warning", "t", "m", "a", "4121", hardware=False)
OTHERS_OOM = msgspec.structs.replace(OOM, code="999")


@each(
    "records, verdict",
    [
        # nobody else is there
        ([(110.0, xid())], "UNJUDGED"),
        ([(110.0, xid(pid=None, command=None))], "UNJUDGED"),
        ([(110.0, xid(code=45))], "UNJUDGED"),
        # the process is ours, by number or by name, whoever else is there
        ([(90.0, DRAWS), (102.0, OWN), (110.0, xid())], "UNJUDGED"),
        ([(90.0, DRAWS), (102.0, OWN), (110.0, xid(pid=5, command="gpu_burn"))], "UNJUDGED"),
        ([(90.0, DRAWS), (102.0, OWN), (110.0, xid(command=None))], "UNJUDGED"),
        ([(102.0, OWN), (110.0, xid(pid=None, command=None))], "UNJUDGED"),
        # another's name is not ours, whoever its process is
        ([(90.0, DRAWS), (102.0, OWN), (110.0, xid(pid=5, command="Xorg"))], "PASS"),
        # the process is another's, or may be
        ([(90.0, DRAWS), (102.0, OWN), (110.0, xid(pid=78, command="Xorg"))], "PASS"),
        ([(90.0, DRAWS), (110.0, xid(pid=None, command=None))], "PASS"),
        ([(90.0, DRAWS), (110.0, xid(pid=5, command="other"))], "PASS"),
        # another's, and gone long before; or on another GPU
        (
            [
                (90.0, DRAWS),
                (95.0, msgspec.structs.replace(DRAWS, until_s=95.0)),
                (110.0, xid(pid=None, command=None)),
            ],
            "UNJUDGED",
        ),
        (
            [
                (90.0, DRAWS),
                (100.0, msgspec.structs.replace(DRAWS, until_s=100.0)),
                (110.0, xid(pid=None, command=None)),  # as late as the driver may be
            ],
            "PASS",
        ),
        ([(90.0, DRAWS), (110.0, xid(1, pid=None, command=None))], "UNJUDGED"),
        # after a signal: of a deadline, to the session, by the kernel, by somebody
        ([(109.0, Stopped(FLOAT)), (110.0, xid())], "PASS"),
        # the kernel's clock may be early, and a program takes its time to end
        ([(110.1, Stopped(FLOAT)), (110.0, xid())], "PASS"),
        ([(110.3, Stopped(FLOAT)), (110.0, xid())], "UNJUDGED"),
        ([(110.1, OOM), (110.0, xid())], "PASS"),
        ([(101.5, Stopped(session="gpu-load")), (116.5, xid())], "PASS"),
        ([(101.5, Stopped(session="gpu-load")), (117.0, xid())], "UNJUDGED"),
        ([(115.0, Stopped(FLOAT, ended=True)), (110.0, xid())], "PASS"),
        ([(115.5, Stopped(FLOAT, ended=True)), (110.0, xid())], "UNJUDGED"),
        ([(105.0, Stopped(DISK)), (110.0, xid())], "UNJUDGED"),
        ([(119.5, Stopped(FLOAT)), (122.0, xid())], "PASS"),
        ([(119.5, Stopped(FLOAT)), (125.0, xid())], "UNJUDGED"),
        ([(109.0, Stopped(FLOAT, component=Gpu(0))), (110.0, xid())], "PASS"),
        ([(109.0, Stopped(FLOAT, component=GPUS)), (110.0, xid())], "PASS"),
        ([(109.0, Stopped(FLOAT, component=Gpu(1))), (110.0, xid())], "UNJUDGED"),
        ([(109.0, Stopped(FLOAT, component=CPU)), (110.0, xid())], "UNJUDGED"),
        ([(109.0, Stopped(session="gpu-load")), (110.0, xid())], "PASS"),
        ([(109.0, Stopped(session="load")), (110.0, xid())], "UNJUDGED"),
        ([(109.0, OOM), (110.0, xid())], "PASS"),
        # the kernel killed somebody else's program; one of ours may take its peers with it
        ([(109.0, OTHERS_OOM), (110.0, xid())], "UNJUDGED"),
        ([(109.0, OTHERS_OOM), (110.0, xid(pid=None, command=None))], "PASS"),
        ([(102.0, OWN), (109.0, OOM), (110.0, xid(pid=5))], "PASS"),
        ([(109.0, msgspec.structs.replace(OOM, code=None)), (110.0, xid())], "PASS"),
        ([(112.0, Stopped(FLOAT, ended=True)), (110.0, xid())], "PASS"),
        # before the signal: a load that hangs after its Xid is ended, too
        ([(110.0, xid()), (112.0, Stopped(FLOAT))], "UNJUDGED"),
        ([(102.0, xid()), (117.0, Stopped(FLOAT, ended=True))], "UNJUDGED"),
        # no load of ours was on the GPU
        ([(170.0, xid())], "PASS"),
        ([(150.0, xid())], "PASS"),
        ([(99.0, xid())], "PASS"),
        # in a load, and of no suspicion
        ([(110.0, msgspec.structs.replace(xid(), suspicion=None))], "PASS"),
        ([(110.0, xid(code=48, severity="fatal"))], "FAIL"),
    ],
)
def test_whose_it_is_and_what_it_follows(records: list[tuple[float, Body]], verdict: str) -> None:
    assert judged(plan(2), *records).verdict == verdict


def test_somebody_elses_process_stays_a_warning() -> None:
    found = judged(plan(2), (90.0, FOREIGN), (110.0, xid(pid=77, command="train.py")))
    assert xids(found) == [(FLOAT, "warn", "xid.31")]


def test_a_session_that_dies_takes_its_programs_with_it() -> None:
    dead = SessionEnded("gpu-load", False, "killed", 1.0)
    found = judged(plan(2), (110.5, dead), (110.0, xid(code=45)))
    assert xids(found) == [(FLOAT, "warn", "xid.45")]


def test_it_is_named_in_its_check() -> None:
    found = judged(plan(2), (110.0, xid()))
    assert xids(found) == [(FLOAT, "error", "xid.31")]
    assert {check.id: check.outcome for check in found.checks} == {
        FLOAT: "error",
        TENSOR: "pass",
        DISK: "pass",
        HOST: "pass",
    }
    (finding,) = (one for check in found.checks for one in check.findings)
    assert (finding.code, str(finding.component)) == ("xid_in_load", "0000:01:00.0")
    assert words.of(finding)


@each(
    "planned, records, verdict, kinds",
    [
        # again in another load, on one of two GPUs; the code need not be the same
        (plan(2), [(110.0, xid()), (130.0, xid())], "FAIL", ["fail", "fail"]),
        (plan(2), [(110.0, xid()), (130.0, xid(code=13))], "FAIL", ["fail", "fail"]),
        # twice in the same load: one finding
        (plan(2), [(110.0, xid()), (112.0, xid())], "UNJUDGED", ["error"]),
        # on its equal too, whenever
        (
            plan(2),
            [(110.0, xid()), (111.0, xid(1)), (130.0, xid())],
            "UNJUDGED",
            ["error", "error", "error"],
        ),
        # on one of its equals too, and not on all of them
        (
            plan(3),
            [(110.0, xid()), (111.0, xid(1)), (130.0, xid())],
            "UNJUDGED",
            ["error", "error", "error"],
        ),
        # one GPU alone, and one without an equal
        (plan(1), [(110.0, xid()), (130.0, xid())], "UNJUDGED", ["error", "error"]),
        (plan(2, equal=False), [(110.0, xid()), (130.0, xid())], "UNJUDGED", ["error"] * 2),
        # what is another's or follows a signal is no second time
        (
            plan(2),
            [(110.0, xid()), (129.0, Stopped(TENSOR)), (130.0, xid())],
            "UNJUDGED",
            ["error", "warn"],
        ),
        # 45 after another counts as that one; before it, or of another code, by itself
        (plan(2), [(110.0, xid()), (111.0, xid(code=45))], "UNJUDGED", ["error", "warn"]),
        (
            plan(2),
            [(110.0, xid()), (111.0, xid(1, code=45))],
            "UNJUDGED",
            ["error", "warn"],
        ),
        (
            plan(2),
            [(110.0, xid()), (111.0, xid(1, code=45, pid=9)), (130.0, xid())],
            "UNJUDGED",
            ["error", "error", "error"],
        ),
        (plan(2), [(110.0, xid(code=45)), (111.0, xid())], "UNJUDGED", ["error", "error"]),
        (plan(2), [(110.0, xid(code=45)), (111.0, xid(code=45))], "UNJUDGED", ["error"]),
        (
            plan(2),
            [(102.0, xid()), (134.0, xid(code=45))],
            "FAIL",
            ["fail", "fail"],
        ),
    ],
)
def test_software_or_card(
    planned: Plan, records: list[tuple[float, Body]], verdict: str, kinds: list[str]
) -> None:
    found = judged(planned, *records)
    assert (found.verdict, [kind for _, kind, _ in xids(found)]) == (verdict, kinds)


def test_equal_gpus_are_those_that_the_plan_compares() -> None:
    assert equal_gpus(plan(3), Gpu(1)) == {Gpu(0), Gpu(2)}
    assert equal_gpus(plan(1), Gpu(0)) == frozenset()


@each(
    "check, part, loaded",
    [
        (FLOAT, Function("0000:01:00.0"), True),
        (FLOAT, Gpu(1), True),
        (FLOAT, Part("disk", "sda"), False),
        (DISK, Part("disk", "sda"), True),
        (DISK, Part("disk", "sdb"), False),
        (HOST, Function("0000:01:00.0"), False),
    ],
)
def test_what_a_check_works_on(check: str, part: Component, loaded: bool) -> None:
    planned = plan(2)
    (one,) = (one for one in planned.checks if one.id == check)
    assert works_on(one, part, planned) is loaded


def test_a_check_of_no_load_works_on_nothing() -> None:
    before = journals.check("gpu.present", journals.due(component=Gpu(0)), session="host-before")
    assert not works_on(before, Gpu(0), plan(2))


# --- messages that nobody knows ---


FIRST = Function("0000:01:00.0")


def unknown(part: Component = FIRST) -> Event:
    return Event("unknown", "error", "something is odd", "m", "a", None, part, hardware=False)


@pytest.mark.parametrize(
    ("at_s", "part", "verdict", "notes"),
    [
        (110.0, Function("0000:01:00.0"), "UNJUDGED", 0),
        (150.0, Part("disk", "sda"), "UNJUDGED", 0),
        # no load is on it at that time
        (150.0, Function("0000:01:00.0"), "PASS", 1),
        (110.0, Part("disk", "sda"), "PASS", 1),
        (99.0, Function("0000:01:00.0"), "PASS", 1),
        (199.0, Part("net", "eth0"), "PASS", 1),
    ],
)
def test_an_unknown_error_of_a_part_under_load(
    at_s: float, part: Component, verdict: str, notes: int
) -> None:
    found = run(plan(2), (at_s, unknown(part)))
    assert fold(found).verdict == verdict
    assert [one.code for one in run_notes(found)] == ["unknown_line"] * notes


def test_an_unknown_error_is_quoted() -> None:
    found = judged(plan(2), (110.0, unknown()))
    (finding,) = (one for check in found.checks for one in check.findings)
    assert (finding.check, finding.kind) == (FLOAT, "error")
    assert finding.code == "unknown_line_under_load"
    assert finding.values["text"] == finding.quote == "something is odd"


def test_a_journal_without_a_beginning_has_no_such_notes() -> None:
    assert run_notes(run(plan(2), (110.0, unknown()))[1:]) == ()
