"""The files of a run that are views of its journal: verdict.json, junit.xml, report.html. Any of them can be written again at any time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acceptance import journal
from acceptance.judge.language import ENGLISH, Language
from acceptance.judge.verdict import Verdict, fold

VERDICT = "verdict.json"
JUNIT = "junit.xml"
PAGE = "report.html"


def put(path: Path, content: bytes, then: str | None = None, mode: int | None = None) -> None:
    """Write a file whole or not at all. Raises JournalError when the disk does not take it.

    `then` is what to do when there is room again; for the views of a journal that is to write them once more. `mode` says who may read
    it; without one that is the umask's business.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if path.is_char_device() or path.is_block_device():  # root would put the file in the device's place
        raise journal.JournalError(f"{path}: cannot be written (it is a device, not a file): give the name of a file")
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()  # left by an earlier process of the same number
        with draft.open("xb") as file:  # never through a link that somebody laid
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        cure = then or f"run `rigproof report {path.parent}`"
        raise journal.JournalError(f"{path}: cannot be written ({error.strerror}): make room, then {cure}") from error


def judge(run_dir: Path) -> Verdict:
    """Fold a run. Raises JournalError or UnreadableRun."""
    return fold(journal.read(run_dir).entries)


def load() -> None:
    """Load what writes a run's files, which takes its time: a run does so while its first session begins.

    What is loaded then is what ends the run, though rigproof was updated meanwhile.
    """
    import acceptance.reports.junit
    import acceptance.reports.page
    import acceptance.reports.verdict_json
    import acceptance.sampled  # noqa: F401 - see above


def write(run_dir: Path, language: Language = ENGLISH) -> Verdict:
    """Fold a run and write its files, the page in this language; the verdict goes last: a run with a verdict counts as closed."""
    from acceptance import gpu_limits, sampled  # not sooner: what begins a run, and `judge`, need none of it
    from acceptance.reports import junit, page, verdict_json

    found = journal.read(run_dir)
    verdict = fold(found.entries)
    put(run_dir / JUNIT, junit.render(verdict, found))
    looks = sampled.each(run_dir / journal.GPU_TELEMETRY)
    put(run_dir / PAGE, page.render(verdict, found, looks, gpu_limits.sheets(), language).encode("utf-8"))
    put(run_dir / VERDICT, verdict_json.render(verdict, found))
    return verdict


def write_unreadable(run_dir: Path, reason: str) -> None:
    """The verdict of a run whose journal holds no plan."""
    from acceptance.reports import verdict_json

    put(run_dir / VERDICT, verdict_json.unreadable(run_dir.name, reason))


def unlink_latest(out: Path) -> None:
    """Take `latest` away for as long as there is no new run: whoever publishes it must not find yesterday's verdict there."""
    with contextlib.suppress(OSError):
        if (out / "latest").is_symlink():
            (out / "latest").unlink()


def link_latest(run_dir: Path) -> None:
    """Point `latest` in the output folder to this run; a file system without links simply has none."""
    draft = run_dir.parent / f".latest.{os.getpid()}"
    try:
        draft.symlink_to(run_dir.name)
        draft.replace(run_dir.parent / "latest")
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
