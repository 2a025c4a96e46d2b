"""Send a run's verdict to every notification target.

One failing target does not stop the others.

The command of --on-fail, started when a night is not PASS.

It gets the verdict on standard input and has a deadline. No shell is involved.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import Message, english, known
from acceptance.core.verdict import VerdictWord
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder, segment
from acceptance.journal.run import Run
from acceptance.notify import textfile as notify_textfile
from acceptance.notify import webhook
from acceptance.notify.targets import NotificationTargets
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.reports import summary, verdict_json
from acceptance.reports.text import one_line
from acceptance.wording import words
from acceptance.wording.errors import said

LOG = "on-fail.txt"  # beside the views: what lies in logs/ is sealed before this
CAP_BYTES = 64 * 1024  # of the command's output
RUN_DIR, VERDICT = "RIGPROOF_RUN_DIR", "RIGPROOF_VERDICT"
HEADLINE = "RIGPROOF_HEADLINE"


def start(
    argv: Sequence[str],
    verdict_file: Path,
    word: VerdictWord,
    run_dir: Path | None,
    closing: str,
    deadline: Deadline,
) -> Message | None:
    """Start the command once and wait for it.

    Returns why it failed, or None. The command reads verdict.json from standard
    input. `RIGPROOF_VERDICT` is PASS, FAIL or UNJUDGED, `RIGPROOF_HEADLINE` the run's closing line;
    `RIGPROOF_RUN_DIR` is the run's folder, absent if no run was started. Its output goes to
    `on-fail.txt` in that folder, its errors to `on-fail.txt.err`. Processes that it leaves running
    are ended with it.
    """
    environment = {VERDICT: word, HEADLINE: closing} | (
        {RUN_DIR: str(run_dir)} if run_dir is not None else {}
    )
    log = run_dir / LOG if run_dir is not None else None
    name = one_line(argv[0], 200)
    try:
        done = command.run(
            argv,
            deadline=deadline,
            env=environment,
            log=log,
            cap_bytes=CAP_BYTES,
            stdin=verdict_file,
        )
    except command.CommandError as error:
        return Message(
            english(
                "hook_not_run",
                "the command of --on-fail did not run: {why}: fix it, or give another one",
            ),
            {"why": error.message},
        )
    if done.returncode == 0 and not done.timed_out:
        return None
    last = one_line(done.last_lines(2), 400) or None
    printed = str(log) if log is not None and done.log_error is None else None
    values = known(command=name, how=done.describe(), last=last, log=printed)
    return Message(
        english(
            "hook_failed",
            "the command of --on-fail, {command}, {how}[; it last said: {last}][ (all that it "
            "printed: {log})]: try it by hand with a verdict.json on its standard input",
        ),
        values,
    )


# for the command, and for the webhook: a nightly has ten minutes, a pager answers within seconds
TOLD_S = 60.0
NO_RUN = "no-run"  # the run id if no run was started


@dataclass(frozen=True, slots=True)
class _News:
    """A verdict to send.

    `closing` is the closing line, `file` is verdict.json. `run_dir` is None if no run was started.
    """

    word: VerdictWord
    run_id: str
    closing: str
    file: Path
    run_dir: Path | None
    metrics: bytes
    night: bytes | None  # metrics of the night, for their own file; None if the night is unknown


def notify_run(run: Run, settings: NotificationTargets) -> tuple[Message, ...]:
    """Send the verdict of a run that has its verdict.json.

    Returns one message for each target that failed. The textfile is written and the webhook is
    posted at every verdict; the command is started at FAIL and UNJUDGED. Errors of the targets are
    never raised. Call it from the main thread, which may start programs.
    """
    news = _News(
        run.verdict.verdict,
        run.start.run_id,
        one_line(summary.closing_line(run)),
        run.folder / run_folder.VERDICT,
        run.folder,
        notify_textfile.run_metrics(run),
        notify_textfile.night_metrics(run),
    )
    return _everybody(news, settings)


def notify_recorded(folder: Path, settings: NotificationTargets) -> tuple[Message, ...]:
    """Send the verdict of a recorded run; of one that cannot be read, UNJUDGED with the reason.

    Everything else is as in `notify_run`.
    """
    try:
        run = journal_run.read(folder)
    except (segment.JournalError, OSError) as error:
        told = Message(
            english("verdict_untold", "the verdict of {run} cannot be told: {why}"),
            {"run": str(folder), "why": said(error)},
        )
        return (told, *notify_no_run(one_line(words.message(told)), settings))
    return notify_run(run, settings)


def notify_skipped(run: Run, settings: NotificationTargets) -> tuple[Message, ...]:
    """Write the metrics of a night that was skipped because the machine was in use.

    Only node-exporter is notified. The metrics of the last run that measured stay: a machine that
    failed has still failed. Returns one message for each failure.
    """
    if settings.textfile is None:
        return ()
    path, content = nights_of(settings.textfile), notify_textfile.night_metrics(run)
    failed = _safely(lambda: _written(path, content))
    return () if failed is None else (failed,)


def notify_no_run(reason: str, settings: NotificationTargets) -> tuple[Message, ...]:
    """Send an UNJUDGED verdict without checks, with the reason why no run was started.

    Everything else is as in `notify_run`.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="rigproof-") as folder:
            file = Path(folder) / run_folder.VERDICT
            file.write_bytes(verdict_json.unreadable(NO_RUN, reason))
            return _everybody(
                _News(
                    "UNJUDGED",
                    NO_RUN,
                    f"UNJUDGED: {one_line(reason)}",
                    file,
                    None,
                    notify_textfile.no_run_metrics(),
                    None,
                ),
                settings,
            )
    except OSError as error:
        where = tempfile.gettempdir()
        return (
            Message(
                english(
                    "nobody_told",
                    "nobody was told that no run came about: {why}: make room in {folder}",
                ),
                {"why": str(error.strerror), "folder": where},
            ),
        )


def textfile(run: Run, path: Path) -> None:
    """Write the metrics of a recorded run. Raises JournalError when the disk does not take them."""
    _try_write(path, notify_textfile.run_metrics(run))


def nights_of(path: Path) -> Path:
    """The path of the nights' metrics: `rigproof-nights.prom` beside `rigproof.prom`."""
    return path.with_name(f"{path.stem}-nights{path.suffix}")


def _try_write(path: Path, content: bytes) -> None:
    # node-exporter runs as another user, who must be able to read the file
    run_folder.write_whole(path, content, then=run_folder.START_AGAIN, mode=0o644)


def _everybody(news: _News, settings: NotificationTargets) -> tuple[Message, ...]:
    steps: list[Callable[[], Message | None]] = []
    if (path := settings.textfile) is not None:
        steps.append(lambda: _textfile(news, path))
    if settings.on_fail and news.word != "PASS":
        steps.append(
            lambda: start(
                settings.on_fail,
                news.file,
                news.word,
                news.run_dir,
                news.closing,
                Deadline.after(TOLD_S),
            )
        )
    if settings.webhook is not None:
        steps.append(lambda: _webhook(news, settings))
    return tuple(failed for step in steps if (failed := _safely(step)) is not None)


def _safely(step: Callable[[], Message | None]) -> Message | None:
    """Run one step; returns its failure, or None.

    An error of rigproof's own becomes a message too: the next target must still be notified, and
    the verdict stands.
    """
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - see above
        where = traceback.extract_tb(error.__traceback__)[-1]
        # The exception's text may quote an address together with its key.
        values = {"file": Path(where.filename).name, "line": str(where.lineno)}
        return Message(
            english(
                "not_told_by_own_error",
                "an error of rigproof's own in {file}, line {line} ({error}) kept somebody from "
                "being told; please report it",
            ),
            {**values, "error": type(error).__name__},
        )


def _textfile(news: _News, path: Path) -> Message | None:
    failed = _written(path, news.metrics)
    if failed is None and news.night is not None:
        failed = _written(nights_of(path), news.night)
    return failed


def _written(path: Path, content: bytes) -> Message | None:
    try:
        _try_write(path, content)
    except segment.JournalError as error:
        return Message(
            english("exporter_not_told", "node-exporter is not told: {why}"), {"why": error.message}
        )
    return None


def _webhook(news: _News, settings: NotificationTargets) -> Message | None:
    hook = settings.webhook
    assert hook is not None
    try:
        body = regular_file.read(news.file, regular_file.SMALL_RECORD)
    except OSError as error:
        cure = Message("report_again", {"run": str(news.run_dir)})
        file, because = str(news.file), str(error.strerror)
        why = Message(
            english("verdict_unread", "{path}: cannot be read ({why}): {then}"),
            {"path": file, "why": because, "then": cure},
        )
        return Message(
            english("webhook_not_told", "the webhook {address} was not told: {why}"),
            {"address": hook.safe_address, "why": why},
        )
    failure = webhook.post(hook, body, news.run_id, Deadline.after(TOLD_S))
    if failure is None:
        return None
    return Message("webhook_not_told", {"address": hook.safe_address, "why": failure})
