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
from acceptance.core.record import Postponed, RunEnded
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder
from acceptance.journal.run import Run
from acceptance.notify import hook as notify_hook
from acceptance.notify import notices, webhook
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


def made(folder: Path, value: float = 100.0) -> Run:
    run = folder / "run"
    values = {("copy", Gpu(0)): value}
    write_segment(
        run / "journal.jsonl",
        journals.bodies(journals.plan(), values),
        machine_root(folder / "root"),
    )
    (run / "logs").mkdir()
    return write_views(run)


def sentence(messages: Iterable[Message]) -> str:
    """The one sentence that is said."""
    (one,) = map(words.message, messages)
    return one


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    return executable(tmp_path / "hook", HOOK)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(webhook, "PAUSES_S", ())


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiving(200) as found:
        yield found


def test_everybody_is_told_of_a_failure(tmp_path: Path, hook: Path, there: Receiver) -> None:
    run, textfile = made(tmp_path, value=1.0), tmp_path / "rigproof.prom"
    assert (
        notices.notify_run(run, NotificationTargets(textfile, (str(hook),), Webhook(there.url)))
        == ()
    )
    assert (tmp_path / "called").read_text() == "FAIL\n"
    assert (tmp_path / "run_dir").read_text() == str(run.folder)
    assert (tmp_path / "headline").read_text() == summary.closing_line(run)
    verdict = (run.folder / run_folder.VERDICT).read_bytes()
    assert (tmp_path / "verdict").read_bytes() == verdict == there.seen[0][2]
    assert there.seen[0][1]["X-Rigproof-Run"] == "run-1"
    assert 'rigproof_run_verdict{verdict="FAIL"} 1.0' in textfile.read_text()
    assert stat.S_IMODE(textfile.stat().st_mode) == 0o644
    assert (run.folder / notify_hook.LOG).read_text() == "told the pager\n"
    assert (run.folder / f"{notify_hook.LOG}.err").exists()
    assert journal_run.read(run.folder).seal == run.seal, "what is told later is no evidence"
    assert run.seal.digest is not None


def test_a_pass_starts_no_command(tmp_path: Path, hook: Path, there: Receiver) -> None:
    run, textfile = made(tmp_path), tmp_path / "rigproof.prom"
    assert (
        notices.notify_run(run, NotificationTargets(textfile, (str(hook),), Webhook(there.url)))
        == ()
    )
    assert not (tmp_path / "called").exists()
    assert json.loads(there.seen[0][2])["verdict"] == "PASS"
    assert 'rigproof_run_verdict{verdict="PASS"} 1.0' in textfile.read_text()


def skipped_night(folder: Path, in_a_row: int) -> Run:
    run = folder / f"skipped-{in_a_row}"
    started = journals.bodies(journals.plan())[0]
    bodies = [
        started,
        Postponed(("gpu0 is in use",), in_a_row, 3),
        RunEnded(False, "the machine is in use"),
    ]
    write_segment(run / "journal.jsonl", bodies, machine_root(folder / "root"))
    (run / "logs").mkdir()
    return write_views(run)


def test_a_night_that_was_skipped_takes_no_verdict_away(
    tmp_path: Path, hook: Path, there: Receiver
) -> None:
    textfile, nights = tmp_path / "rigproof.prom", tmp_path / "rigproof-nights.prom"
    settings = NotificationTargets(textfile, (str(hook),), Webhook(there.url))
    notices.notify_run(made(tmp_path, value=1.0), settings)
    before = textfile.read_bytes()
    assert "rigproof_nights_skipped 0\n" in nights.read_text()
    (tmp_path / "called").unlink()
    there.seen.clear()
    assert notices.notify_skipped(skipped_night(tmp_path, 2), settings) == ()
    assert textfile.read_bytes() == before, "a machine that has failed has still failed"
    assert "rigproof_nights_skipped 2\n" in nights.read_text()
    assert stat.S_IMODE(nights.stat().st_mode) == 0o644
    assert not (tmp_path / "called").exists()
    assert there.seen == []


def test_too_many_nights_that_were_skipped_are_told_as_a_failure(
    tmp_path: Path, hook: Path
) -> None:
    textfile = tmp_path / "rigproof.prom"
    assert (
        notices.notify_run(skipped_night(tmp_path, 3), NotificationTargets(textfile, (str(hook),)))
        == ()
    )
    assert (tmp_path / "called").read_text() == "FAIL\n"
    assert 'rigproof_run_verdict{verdict="FAIL"} 1.0' in textfile.read_text()
    assert "rigproof_nights_skipped 3\n" in (tmp_path / "rigproof-nights.prom").read_text()


def test_a_skipped_night_that_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "x-nights.prom").mkdir()
    said = sentence(
        notices.notify_skipped(
            skipped_night(tmp_path, 1), NotificationTargets(tmp_path / "x.prom")
        ),
    )
    assert said.startswith(
        f"node-exporter is not told: {tmp_path}/x-nights.prom: cannot be written (Is a directory)"
    )
    assert notices.notify_skipped(skipped_night(tmp_path, 2), NotificationTargets()) == ()


def test_nobody_asked_to_be_told(tmp_path: Path) -> None:
    assert notices.notify_run(made(tmp_path), NotificationTargets()) == ()


def test_a_run_that_never_came_about_is_told(tmp_path: Path, hook: Path, there: Receiver) -> None:
    textfile = tmp_path / "rigproof.prom"
    said = notices.notify_no_run(
        "the engine does not answer",
        NotificationTargets(textfile, (str(hook),), Webhook(there.url)),
    )
    assert said == ()
    verdict = json.loads((tmp_path / "verdict").read_text())
    assert (verdict["verdict"], verdict["exit_code"]) == ("UNJUDGED", 3)
    assert [row["text"] for row in verdict["unjudged"]] == ["the engine does not answer"]
    assert (tmp_path / "headline").read_text().startswith("UNJUDGED: ")
    assert (tmp_path / "called").read_text() == "UNJUDGED\n"
    assert (tmp_path / "run_dir").read_text() == "none", "there is no folder, and none is made up"
    assert json.loads(there.seen[0][2]) == verdict
    assert 'rigproof_run_verdict{verdict="UNJUDGED"} 1.0' in textfile.read_text()


def test_who_cannot_be_told_keeps_nobody_else_from_it(tmp_path: Path, hook: Path) -> None:
    run = made(tmp_path, value=1.0)
    hook.write_text("#!/bin/sh\necho 'no such pager' >&2\nexit 7\n")
    (tmp_path / "taken.prom").mkdir()
    before = (run.folder / run_folder.VERDICT).read_bytes()
    targets = NotificationTargets(
        tmp_path / "taken.prom", (str(hook),), Webhook("http://127.0.0.1:9/secret")
    )
    first, second, third = map(words.message, notices.notify_run(run, targets))
    assert first.startswith(
        f"node-exporter is not told: {tmp_path}/taken.prom: cannot be written (Is a directory)"
    )
    assert f"the command of --on-fail, {hook}, ended with exit code 7 after" in second
    assert "it last said: no such pager" in second
    assert f"(all that it printed: {run.folder}/on-fail.txt)" in second
    assert third.startswith(
        "the webhook http://127.0.0.1:9/... was not told: it could not be reached ("
    )
    assert (run.folder / run_folder.VERDICT).read_bytes() == before
    assert journal_run.read(run.folder).verdict.verdict == "FAIL"


def test_a_command_without_end_is_ended(
    tmp_path: Path, hook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "TOLD_S", 0.1)
    hook.write_text("#!/bin/sh\nsleep 600\n")
    said = sentence(
        notices.notify_run(made(tmp_path, value=1.0), NotificationTargets(on_fail=(str(hook),))),
    )
    assert "did not end within its time and was stopped after" in said


def test_a_command_that_prints_without_end_fills_no_disk(tmp_path: Path, hook: Path) -> None:
    run = made(tmp_path, value=1.0)
    hook.write_text("#!/bin/sh\nhead -c 10000000 /dev/zero\n")
    assert notices.notify_run(run, NotificationTargets(on_fail=(str(hook),))) == ()
    assert (run.folder / "on-fail.txt").stat().st_size == notify_hook.CAP_BYTES


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "printf '\\033[31mred\\033]0;title\\007\\n'; exit 1",
            ("ended with exit code 1", "it last said: red"),
        ),
        (None, ("ended with exit code 127", "No such file or directory")),
    ],
    ids=["what it says steers no terminal", "it has gone"],
)
def test_a_command_that_fails(
    tmp_path: Path, hook: Path, command: str | None, told: tuple[str, ...]
) -> None:
    hook.write_text(f"#!/bin/sh\n{command}\n")
    argv = (str(hook),) if command else ("/nowhere/hook",)
    said = sentence(
        notices.notify_run(made(tmp_path, value=1.0), NotificationTargets(on_fail=argv))
    )
    assert all(text in said for text in told)
    assert said.isprintable()


def test_a_verdict_that_has_gone(tmp_path: Path, hook: Path) -> None:
    run = made(tmp_path, value=1.0)
    (run.folder / run_folder.VERDICT).unlink()
    first, second = map(
        words.message,
        notices.notify_run(
            run,
            NotificationTargets(on_fail=(str(hook),), webhook=Webhook("http://127.0.0.1:9/secret")),
        ),
    )
    assert first.startswith("the command of --on-fail did not run: ")
    assert (
        f"{run.folder}/verdict.json: cannot be read (No such file or directory): run `rigproof "
        f"report {run.folder}`"
    ) in second


def test_what_holds_no_run_is_told_as_trouble(tmp_path: Path, hook: Path) -> None:
    said = sentence(notices.notify_recorded(tmp_path, NotificationTargets(on_fail=(str(hook),))))
    assert said.startswith(f"the verdict of {tmp_path} cannot be told: ")
    assert "holds no run" in said
    assert (tmp_path / "called").read_text() == "UNJUDGED\n"


def test_an_error_of_our_own_stops_nothing(
    tmp_path: Path, hook: Path, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(
        notify_hook, "start", raising(ZeroDivisionError("https://hooks.example/secret"))
    )
    said = sentence(
        notices.notify_run(
            made(tmp_path, value=1.0),
            NotificationTargets(on_fail=(str(hook),), webhook=Webhook(there.url)),
        ),
    )
    assert said.startswith("an error of rigproof's own in raising.py, line ")
    assert "secret" not in said
    assert len(there.seen) == 1


def test_a_full_disk_is_told_where_no_run_came_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    said = sentence(notices.notify_no_run("why", NotificationTargets(on_fail=("true",))))
    assert said.startswith(
        "nobody was told that no run came about: No such file or directory: make room in "
    )


def test_the_textfile_of_a_recorded_run(tmp_path: Path) -> None:
    run, path = made(tmp_path), tmp_path / "rigproof.prom"
    assert notices.notify_run(run, NotificationTargets(textfile=path)) == ()
    before = path.read_bytes()
    path.unlink()
    notices.textfile(run, path)
    assert path.read_bytes() == before


def test_report_writes_it_when_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, path = made(tmp_path), tmp_path / "rigproof.prom"
    notices.notify_run(run, NotificationTargets(textfile=tmp_path / "before.prom"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["report", str(run.folder), "--textfile", str(path)]) == 0
    assert path.read_bytes() == (tmp_path / "before.prom").read_bytes()
    assert main(["report", str(run.folder), "--textfile", str(tmp_path / "x.txt")]) == 2
