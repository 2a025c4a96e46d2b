"""Send a run's verdict to every notification target.

One failing target does not stop the others.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.verdict import UnreadableRun, VerdictWord
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder, segment
from acceptance.journal.run import Run
from acceptance.notify import hook as notify_hook
from acceptance.notify import textfile as notify_textfile
from acceptance.notify import webhook
from acceptance.notify.targets import NotificationTargets
from acceptance.process.deadline import Deadline
from acceptance.reports import verdict_json
from acceptance.reports.text import one_line

# for the command, and for the webhook: a nightly has ten minutes, a pager answers within seconds
TOLD_S = 60.0
NO_RUN = "no-run"  # the run id if no run was started


@dataclass(frozen=True, slots=True)
class _News:
    """A verdict to send.

    `file` is verdict.json. `run_dir` is None if no run was started.
    """

    word: VerdictWord
    run_id: str
    file: Path
    run_dir: Path | None
    metrics: bytes
    night: bytes | None  # metrics of the night, for their own file; None if the night is unknown


def notify_run(run: Run, settings: NotificationTargets) -> tuple[str, ...]:
    """Send the verdict of a run that has its verdict.json.

    Returns one sentence for each target that failed. The textfile is written and the webhook is
    posted at every verdict; the command is started at FAIL and UNJUDGED. Errors of the targets are
    never raised. Call it from the main thread, which may start programs.
    """
    news = _News(
        run.verdict.verdict,
        run.start.run_id,
        run.folder / run_folder.VERDICT,
        run.folder,
        notify_textfile.run_metrics(run),
        notify_textfile.night_metrics(run),
    )
    return _everybody(news, settings)


def notify_recorded(folder: Path, settings: NotificationTargets) -> tuple[str, ...]:
    """Send the verdict of a recorded run; of one that cannot be read, UNJUDGED with the reason.

    Everything else is as in `notify_run`.
    """
    try:
        run = journal_run.read(folder)
    except (segment.JournalError, UnreadableRun, OSError) as error:
        said = f"the verdict of {folder} cannot be told: {one_line(str(error))}"
        return (said, *notify_no_run(said, settings))
    return notify_run(run, settings)


def notify_skipped(run: Run, settings: NotificationTargets) -> tuple[str, ...]:
    """Write the metrics of a night that was skipped because the machine was in use.

    Only node-exporter is notified. The metrics of the last run that measured stay: a machine that
    failed has still failed. Returns one sentence for each failure.
    """
    if settings.textfile is None:
        return ()
    path, content = nights_of(settings.textfile), notify_textfile.night_metrics(run)
    said = _safely(lambda: _written(path, content))
    return () if said is None else (said,)


def notify_no_run(reason: str, settings: NotificationTargets) -> tuple[str, ...]:
    """Send an UNJUDGED verdict without checks, with the reason why no run was started.

    Everything else is as in `notify_run`.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="rigproof-") as folder:
            file = Path(folder) / run_folder.VERDICT
            file.write_bytes(verdict_json.unreadable(NO_RUN, reason))
            return _everybody(
                _News("UNJUDGED", NO_RUN, file, None, notify_textfile.no_run_metrics(), None),
                settings,
            )
    except OSError as error:
        return (
            (
                f"nobody was told that no run came about: {error.strerror}: make room in "
                f"{tempfile.gettempdir()}"
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
    run_folder.write_whole(path, content, then="start again", mode=0o644)


def _everybody(news: _News, settings: NotificationTargets) -> tuple[str, ...]:
    steps: list[Callable[[], str | None]] = []
    if (path := settings.textfile) is not None:
        steps.append(lambda: _textfile(news, path))
    if settings.on_fail and news.word != "PASS":
        steps.append(lambda: _hook(news, settings))
    if settings.webhook is not None:
        steps.append(lambda: _webhook(news, settings))
    return tuple(said for step in steps if (said := _safely(step)) is not None)


def _safely(step: Callable[[], str | None]) -> str | None:
    """Run one step; returns its failure, or None.

    An error of rigproof's own becomes a sentence too: the next target must still be notified, and
    the verdict stands.
    """
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - see above
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        # The exception's text may quote an address together with its key.
        return (
            f"an error of rigproof's own in {place} ({type(error).__name__}) kept somebody "
            "from "
            "being told; please report it"
        )


def _textfile(news: _News, path: Path) -> str | None:
    said = _written(path, news.metrics)
    if said is None and news.night is not None:
        said = _written(nights_of(path), news.night)
    return said


def _written(path: Path, content: bytes) -> str | None:
    try:
        _try_write(path, content)
    except segment.JournalError as error:
        return f"node-exporter is not told: {error}"
    return None


def _hook(news: _News, settings: NotificationTargets) -> str | None:
    return notify_hook.start(
        settings.on_fail, news.file, news.word, news.run_dir, Deadline.after(TOLD_S)
    )


def _webhook(news: _News, settings: NotificationTargets) -> str | None:
    hook = settings.webhook
    assert hook is not None
    try:
        body = regular_file.read(news.file, regular_file.SMALL_RECORD)
    except OSError as error:
        cure = f"run `rigproof report {news.run_dir}`"
        return (
            f"the webhook {hook.safe_address} was not told: {news.file}: cannot be read "
            f"({error.strerror}): {cure}"
        )
    failure = webhook.post(hook, body, news.run_id, Deadline.after(TOLD_S))
    return None if failure is None else f"the webhook {hook.safe_address} was not told: {failure}"
