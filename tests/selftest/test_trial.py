"""How a run is held against what had to be said of it: every way of not being caught is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from journals import NONE_ALLOWED, bodies, check, due, entries, plan
from run_left import Run
from runs import machine_root, write_views

from acceptance.core.finding import Within
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.record import CheckEnded, SessionEnded
from acceptance.core.verdict import CheckResult, Verdict
from acceptance.journal import reader, segment
from acceptance.journal import run as journal_run
from acceptance.wording import words
from selftest import trial
from selftest.fault import Expect, Fault, Named

SAID = r"copy on gpu0: measured 50 GB/s, limit >= 100"
FAULT = Fault("a slow copy", (Expect("link.copy", SAID),), 1)


def made(folder: Path, value: float = 50.0, *others: float) -> Run:
    """A run of the checks link.copy and, with a value of its own each, link.other1 and so on;
    read back as after a call.
    """
    names = ["link.copy", *(f"link.other{number}" for number in range(1, len(others) + 1))]
    planned = plan(*(check(name, due(name.replace("link.", ""))) for name in names))
    values = {
        (name.replace("link.", ""), Gpu(0)): one
        for name, one in zip(names, (value, *others), strict=True)
    }
    records = [
        replace_container(body)
        if isinstance(body, SessionEnded)
        else told(body, values)
        if isinstance(body, CheckEnded)
        else body
        for body in bodies(planned, values)
    ]
    return left(folder, records)


def left(folder: Path, records: Iterable[Any]) -> Run:
    """The run with these records, as after a call."""
    run_dir = folder / "run-1"
    (run_dir / "logs").mkdir(parents=True)
    with segment.Writer(run_dir / reader.SUPERVISOR, machine_root(folder / "root")) as writer:
        for entry in entries(records):
            writer.write(entry.body)
    verdict = write_views(run_dir).verdict
    return Run(verdict.exit_code, f"{verdict.verdict}\n", "", 3.0, run_dir)


def replace_container(body: SessionEnded) -> SessionEnded:
    return SessionEnded(body.session, body.complete, body.detail, body.seconds, "0123456789abcdef")


def told(body: CheckEnded, values: dict[tuple[str, str], float]) -> CheckEnded:
    low = values[body.check.replace("link.", ""), Gpu(0)] < 100.0
    if not low:
        return CheckEnded(body.check, "pass", "", body.seconds)
    return CheckEnded(body.check, "fail", "", body.seconds, ("outside_limit",))


def row(run: Run, fault: Fault = FAULT, home: Path | None = None) -> Any:
    (found,) = trial.rows(Named("links", "one", fault), run, 0.0, home or run.path.parent)
    return found


def test_a_fault_that_was_said_is_caught_and_names_its_run(tmp_path: Path) -> None:
    found = row(made(tmp_path))
    assert found.caught
    assert found.message.startswith("copy on gpu0: measured 50 GB/s")
    assert (found.by, found.run_id, found.container) == ("link.copy", "run-1", "0123456789ab")
    assert (tmp_path / found.journal).is_file()
    assert found.seconds > 0


@each(
    "fault, wrong",
    [
        (FAULT, ""),
        (Fault("", (Expect("link.copy", "measured 51 GB/s"),), 1), "said .* not /measured 51"),
        (Fault("", (Expect("link.copy", SAID, "error"),), 1), "came to fail, not error"),
        (Fault("", (Expect("link.more", SAID),), 1), "no testcase link.more"),
        (Fault("", (Expect("link.copy", SAID),), 3), "ended with 1, not 3"),
        (
            Fault("", (Expect("start", SAID, "refused"),), 2),
            "a run was made, and it was to be refused",
        ),
    ],
)
def test_what_was_not_said_is_missed(tmp_path: Path, fault: Fault, wrong: str) -> None:
    found = row(made(tmp_path), fault)
    assert found.caught == (not wrong)
    if wrong:
        assert re.search(wrong, found.wrong), found.wrong


def test_a_check_that_is_accused_too_spoils_the_row_unless_it_may_be(tmp_path: Path) -> None:
    run = made(tmp_path, 50.0, 60.0)
    assert "link.other1 was accused too (fail)" in row(run).wrong
    assert row(run, Fault("", FAULT.expect, 1, also=("link\\.other.*",))).caught


@each(
    "fails, wrong", [(None, ""), (2, ""), (1, "lists 2 failures, not 1"), (3, "2 failures, not 3")]
)
def test_one_failure_too_many_spoils_the_row(tmp_path: Path, fails: int | None, wrong: str) -> None:
    fault = Fault("", FAULT.expect, 1, also=("link\\.other.*",), fails=fails)
    found = row(made(tmp_path, 50.0, 60.0), fault)
    assert (found.caught, wrong in found.wrong) == (not wrong, True)


def test_reports_that_do_not_agree_spoil_the_row(tmp_path: Path) -> None:
    run = made(tmp_path)
    page = run.path / "report.html"
    page.write_text(
        page.read_text(encoding="utf-8").replace('<h1 class="FAIL">', '<h1 class="PASS">'),
        encoding="utf-8",
    )
    assert "its reports do not agree" in row(run).wrong


def test_a_refusal_is_caught_by_its_words_and_not_by_a_traceback(tmp_path: Path) -> None:
    fault = Fault("", (Expect("start", "machine.toml, line 3: ", "refused"),), 2)
    refused = Run(2, "", "rigproof: machine.toml, line 3: no\n", 0.4, None)
    assert row(refused, fault, tmp_path).caught
    broken = replace(refused, err="Traceback\nmachine.toml, line 3: no\n")
    assert "traceback" in row(broken, fault, tmp_path).wrong
    assert "it said" in row(replace(refused, err="rigproof: no\n"), fault, tmp_path).wrong
    assert "no run was made" in row(refused, FAULT, tmp_path).wrong


def test_a_load_without_its_time_starved_the_run(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert trial.starved(run) == ""
    path = run.path / "verdict.json"
    verdict = json.loads(path.read_text(encoding="utf-8"))
    values = {"stressor": "cpu", "ran": "0.6", "due": "1"}
    text = words.message(Message("workers_short", values))
    verdict["unjudged"].append({"check": "cpu.stress_ng", "text": text})
    path.write_text(json.dumps(verdict), encoding="utf-8")
    assert trial.starved(run) == text
    assert trial.starved(replace(run, folder=None)) == ""


def two_findings(folder: Path) -> Run:
    """A run in which a slow copy of one GPU and wrong results of another failed one check."""
    slow, wrong = due("copy_h2d"), due("vram_miscompares", Gpu(1), "count", NONE_ALLOWED)
    planned = plan(check("link.copy", slow, wrong))
    values = {("copy_h2d", Gpu(0)): 50.0, ("vram_miscompares", Gpu(1)): 2.0}
    records = [
        CheckEnded(body.check, "fail", "", body.seconds, ("outside_limit",))
        if isinstance(body, CheckEnded)
        else body
        for body in bodies(planned, values)
    ]
    return left(folder, records)


@each("says", ["copy_h2d on gpu0: measured 50", "vram_miscompares on gpu1: measured 2"])
def test_the_first_cause_of_the_finding_that_is_awaited_must_be_the_due_one(
    says: str, tmp_path: Path
) -> None:
    run = two_findings(tmp_path)
    rows = run.verdict["violations"]
    (first,) = (row["causes"][0]["what"] for row in rows if re.search(says, row["text"]))
    (other,) = (row["causes"][0]["what"] for row in rows if not re.search(says, row["text"]))
    assert row(run, Fault("", (Expect("link.copy", says, cause=first),), 1)).caught
    for wrong in (other, "a tired engineer", ""):
        found = row(run, Fault("", (Expect("link.copy", says, cause=wrong),), 1))
        assert f"the likely cause shown first is {first!r}, not {wrong!r}" in found.wrong


def test_words_below_a_finding_are_of_that_finding(tmp_path: Path) -> None:
    run = two_findings(tmp_path)
    for finding in run.verdict["violations"]:
        says, first = re.escape(finding["symptom"]), finding["causes"][0]["what"]
        assert row(run, Fault("", (Expect("link.copy", says, cause=first),), 1)).caught


def test_that_no_cause_is_shown_can_be_due(tmp_path: Path) -> None:
    run = two_findings(tmp_path)
    verdict = run.verdict
    verdict["violations"][0].pop("causes")
    (run.path / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    says = re.escape(verdict["violations"][0]["text"])
    assert row(run, Fault("", (Expect("link.copy", says, cause=""),), 1)).caught
    found = row(run, Fault("", (Expect("link.copy", says, cause="heat"),), 1))
    assert "the likely cause shown first is none, not 'heat'" in found.wrong


def test_words_of_no_finding_have_no_cause(tmp_path: Path) -> None:
    run = two_findings(tmp_path)
    verdict = run.verdict
    verdict["violations"] = [{"check": "link.other", "text": "another"}]
    (run.path / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    expect = Expect("link.copy", "copy_h2d on gpu0", cause="heat")
    assert "is in no finding of link.copy" in trial.said(expect, run)[1]


# --- a fault in the harness itself turns the row red ---


def test_a_dropped_limit_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Within, "judge", lambda *_: None)
    assert not row(made(tmp_path)).caught


def test_a_fold_that_counts_only_what_sessions_say_failed_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = journal_run.judge

    def lenient(*found: Any) -> Verdict:
        folded = judge(*found)
        checks = tuple(passed(one) for one in folded.checks)
        return msgspec.structs.replace(folded, checks=checks, findings=())

    monkeypatch.setattr(journal_run, "judge", lenient)
    assert not row(made(tmp_path)).caught


def passed(one: CheckResult) -> CheckResult:
    return msgspec.structs.replace(one, outcome="pass", findings=())
