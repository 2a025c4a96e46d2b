"""Everybody is told, and what does not work is one sentence."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import journals
import pytest
from executable import executable
from raising import raising
from receiver import Receiver, receiving
from runs import machine_root, write_segment, write_views

from acceptance.__main__ import main
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.record import Body, Postponed, RunEnded
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder
from acceptance.journal.run import Run
from acceptance.notify import notices, webhook
from acceptance.notify import notices as notify_hook
from acceptance.notify.targets import NotificationTargets, Webhook
from acceptance.reports import summary
from acceptance.wording import words

# Keeps what it was told beside itself: its environment and its standard input.
HOOK = """#!/bin/sh
here=$(dirname "$0")
echo "$RIGPROOF_VERDICT" >>"$here/called"
printf %s "${RIGPROOF_RUN_DIR-none}" >"$here/run_dir"
printf %s "$RIGPROOF_HEADLINE" >"$here/headline"
cat >"$here/verdict"
echo "told the pager"
"""


def written(run: Path, bodies: list[Body]) -> Run:
    write_segment(run / "journal.jsonl", bodies, machine_root(run.parent / "root"))
    (run / "logs").mkdir()
    return write_views(run)


def made(folder: Path, value: float = 100.0) -> Run:
    values = {("copy", Gpu(0)): value}
    return written(folder / "run", journals.bodies(journals.plan(), values))


def skipped_night(folder: Path, in_a_row: int) -> Run:
    started = journals.bodies(journals.plan())[0]
    skipped = Postponed(("gpu0 is in use",), in_a_row, 3)
    ended = RunEnded(False, "the machine is in use")
    return written(folder / f"skipped-{in_a_row}", [started, skipped, ended])


def codes(messages: Iterable[Message]) -> list[str]:
    return [one.code for one in messages]


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    return executable(tmp_path / "hook", HOOK)


@pytest.fixture
def everybody(tmp_path: Path, hook: Path, there: Receiver) -> NotificationTargets:
    return NotificationTargets(tmp_path / "rigproof.prom", (str(hook),), Webhook(there.url))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(webhook, "PAUSES_S", ())


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiving(200) as found:
        yield found


def test_everybody_is_told_of_a_failure(
    tmp_path: Path, everybody: NotificationTargets, there: Receiver
) -> None:
    run, textfile = made(tmp_path, value=1.0), tmp_path / "rigproof.prom"
    assert notices.notify_run(run, everybody) == ()
    told = {name: (tmp_path / name).read_text() for name in ("called", "run_dir", "headline")}
    assert told == {
        "called": "FAIL\n",
        "run_dir": str(run.folder),
        "headline": summary.closing_line(run),
    }
    verdict = (run.folder / run_folder.VERDICT).read_bytes()
    assert (tmp_path / "verdict").read_bytes() == verdict == there.seen[0][2]
    assert there.seen[0][1]["X-Rigproof-Run"] == "run-1"
    assert 'rigproof_run_verdict{verdict="FAIL"} 1.0' in textfile.read_text()
    assert stat.S_IMODE(textfile.stat().st_mode) == 0o644
    assert (run.folder / notify_hook.LOG).read_text() == "told the pager\n"
    assert (run.folder / f"{notify_hook.LOG}.err").exists()
    assert journal_run.read(run.folder).seal == run.seal, "what is told later is no evidence"
    assert run.seal.digest is not None


def test_a_pass_starts_no_command_and_report_writes_its_textfile_again(
    tmp_path: Path,
    everybody: NotificationTargets,
    there: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, path = made(tmp_path), tmp_path / "rigproof.prom"
    assert notices.notify_run(run, NotificationTargets()) == ()
    assert notices.notify_run(run, everybody) == ()
    assert not (tmp_path / "called").exists()
    assert json.loads(there.seen[0][2])["verdict"] == "PASS"
    before = path.read_bytes()
    assert b'rigproof_run_verdict{verdict="PASS"} 1.0' in before
    path.unlink()
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["report", str(run.folder), "--textfile", str(path)]) == 0
    assert path.read_bytes() == before
    assert main(["report", str(run.folder), "--textfile", str(tmp_path / "x.txt")]) == 2


def test_a_night_that_was_skipped_takes_no_verdict_away(
    tmp_path: Path, everybody: NotificationTargets, there: Receiver
) -> None:
    """A machine that has failed has still failed; too many skipped nights are a failure."""
    textfile, nights = tmp_path / "rigproof.prom", tmp_path / "rigproof-nights.prom"
    notices.notify_run(made(tmp_path, value=1.0), everybody)
    before = textfile.read_bytes()
    assert "rigproof_nights_skipped 0\n" in nights.read_text()
    (tmp_path / "called").unlink()
    there.seen.clear()
    second = skipped_night(tmp_path, 2)
    assert notices.notify_skipped(second, everybody) == ()
    assert textfile.read_bytes() == before
    assert "rigproof_nights_skipped 2\n" in nights.read_text()
    assert stat.S_IMODE(nights.stat().st_mode) == 0o644
    assert ((tmp_path / "called").exists(), there.seen) == (False, [])
    assert notices.notify_run(skipped_night(tmp_path, 3), everybody) == ()
    assert (tmp_path / "called").read_text() == "FAIL\n"
    assert "rigproof_nights_skipped 3\n" in nights.read_text()
    nights.unlink()
    nights.mkdir()
    assert codes(notices.notify_skipped(second, everybody)) == ["exporter_not_told"]
    assert notices.notify_skipped(second, NotificationTargets()) == ()


def test_a_run_that_never_came_about_is_told(
    tmp_path: Path,
    everybody: NotificationTargets,
    there: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert notices.notify_no_run("the engine does not answer", everybody) == ()
    verdict = json.loads((tmp_path / "verdict").read_text())
    assert (verdict["verdict"], verdict["exit_code"]) == ("UNJUDGED", 3)
    assert [row["text"] for row in verdict["unjudged"]] == ["the engine does not answer"]
    assert (tmp_path / "headline").read_text().startswith("UNJUDGED: ")
    assert (tmp_path / "called").read_text() == "UNJUDGED\n"
    assert (tmp_path / "run_dir").read_text() == "none", "there is no folder, and none is made up"
    assert json.loads(there.seen[0][2]) == verdict
    textfile = (tmp_path / "rigproof.prom").read_text()
    assert 'rigproof_run_verdict{verdict="UNJUDGED"} 1.0' in textfile
    # what holds no run is trouble that is told
    assert codes(notices.notify_recorded(tmp_path / "root", everybody)) == ["verdict_untold"]
    assert (tmp_path / "called").read_text() == "UNJUDGED\n" * 2
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert codes(notices.notify_no_run("why", everybody)) == ["nobody_told"]


def test_who_cannot_be_told_keeps_nobody_else_from_it(tmp_path: Path, hook: Path) -> None:
    run = made(tmp_path, value=1.0)
    hook.write_text("#!/bin/sh\necho 'no such pager' >&2\nexit 7\n")
    (tmp_path / "taken.prom").mkdir()
    before = (run.folder / run_folder.VERDICT).read_bytes()
    targets = NotificationTargets(
        tmp_path / "taken.prom", (str(hook),), Webhook("http://127.0.0.1:9/secret")
    )
    told = notices.notify_run(run, targets)
    assert codes(told) == ["exporter_not_told", "hook_failed", "webhook_not_told"]
    first, second, third = map(words.message, told)
    assert f"{tmp_path}/taken.prom" in first
    for word in (str(hook), "exit code 7", "no such pager", f"{run.folder}/on-fail.txt"):
        assert word in second
    assert "http://127.0.0.1:9/... " in third
    assert (run.folder / run_folder.VERDICT).read_bytes() == before
    assert journal_run.read(run.folder).verdict.verdict == "FAIL"


SILENT, RED = "sleep 600", "printf '\\033[31mred\\033]0;title\\007\\n'; exit 1"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (SILENT, ["did not end within its time"]),
        (RED, ["ended with exit code 1", "it last said: red"]),
        (None, ["ended with exit code 127", "No such file or directory"]),
        ("head -c 10000000 /dev/zero", []),
    ],
    ids=["without end", "what it says steers no terminal", "it has gone", "prints without end"],
)
def test_a_command(
    tmp_path: Path,
    hook: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str | None,
    told: list[str],
) -> None:
    if command == SILENT:
        monkeypatch.setattr(notices, "TOLD_S", 0.1)
    hook.write_text(f"#!/bin/sh\n{command}\n")
    argv = (str(hook),) if command else ("/nowhere/hook",)
    run = made(tmp_path, value=1.0)
    said = list(map(words.message, notices.notify_run(run, NotificationTargets(on_fail=argv))))
    assert (len(said), [one for one in told if one not in said[0]]) == (len(told) and 1, [])
    assert all(one.isprintable() for one in said)
    assert (run.folder / "on-fail.txt").stat().st_size <= notify_hook.CAP_BYTES


def test_a_verdict_that_has_gone(tmp_path: Path, hook: Path) -> None:
    run = made(tmp_path, value=1.0)
    (run.folder / run_folder.VERDICT).unlink()
    targets = NotificationTargets(None, (str(hook),), Webhook("http://127.0.0.1:9/secret"))
    told = notices.notify_run(run, targets)
    assert codes(told) == ["hook_not_run", "webhook_not_told"]
    assert f"{run.folder}/verdict.json: cannot be read (" in words.message(told[1])


def test_an_error_of_our_own_stops_nothing(
    tmp_path: Path,
    everybody: NotificationTargets,
    there: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = ZeroDivisionError("https://hooks.example/secret")
    monkeypatch.setattr(notify_hook, "start", raising(error))
    (told,) = notices.notify_run(made(tmp_path, value=1.0), everybody)
    assert told.code == "not_told_by_own_error"
    assert "secret" not in words.message(told)
    assert len(there.seen) == 1
