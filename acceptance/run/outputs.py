"""The files of a run that are views of its journal: verdict.json, junit.xml, report.html.

Each can be written again at any time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acceptance.core.language import ENGLISH, Language
from acceptance.core.verdict import Verdict
from acceptance.journal import reader
from acceptance.journal.run_folder import JUNIT, PAGE, VERDICT, write_whole
from acceptance.machine import changes


def judge(run_dir: Path) -> Verdict:
    """Fold a run. Raises JournalError or UnreadableRun."""
    return changes.judge(reader.read(run_dir).entries)


def load() -> None:
    """Import the modules that write a run's files, while its first session starts.

    Importing takes time. The run also ends with the modules of its start, even if rigproof is
    updated meanwhile.
    """
    import acceptance.journal.samples
    import acceptance.reports.junit
    import acceptance.reports.verdict_json  # noqa: F401 - see above
    from acceptance.expect import gpu_limits
    from acceptance.reports.page import render

    gpu_limits.sheets()
    render.load()


def write(run_dir: Path, language: Language = ENGLISH) -> Verdict:
    """Fold a run and write its files, the page in this language.

    The verdict is written last: a run with a verdict counts as closed.
    """
    from acceptance.expect import gpu_limits

    # imported here, because neither the start of a run nor `judge` needs it
    from acceptance.journal import (
        samples,  # not sooner: what begins a run, and `judge`, need none of it
    )
    from acceptance.reports import junit, verdict_json
    from acceptance.reports.page import render

    found = reader.read(run_dir)
    verdict = changes.judge(found.entries)
    write_whole(run_dir / JUNIT, junit.render(verdict, found))
    looks = samples.read_samples(run_dir / reader.GPU_TELEMETRY)
    write_whole(
        run_dir / PAGE,
        render.render(verdict, found, looks, gpu_limits.sheets(), language).encode("utf-8"),
    )
    write_whole(run_dir / VERDICT, verdict_json.render(verdict, found))
    return verdict


def write_unreadable(run_dir: Path, reason: str) -> None:
    """The verdict of a run whose journal holds no plan."""
    from acceptance.reports import verdict_json

    write_whole(run_dir / VERDICT, verdict_json.unreadable(run_dir.name, reason))


def unlink_latest(out: Path) -> None:
    """Remove `latest` while there is no new run.

    Whoever publishes it must not find yesterday's verdict there.
    """
    with contextlib.suppress(OSError):
        if (out / "latest").is_symlink():
            (out / "latest").unlink()


def link_latest(run_dir: Path) -> None:
    """Point `latest` in the output folder to this run.

    A file system without links has no `latest`.
    """
    draft = run_dir.parent / f".latest.{os.getpid()}"
    try:
        draft.symlink_to(run_dir.name)
        draft.replace(run_dir.parent / "latest")
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
