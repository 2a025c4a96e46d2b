"""The files of a run that are views of its journal: verdict.json, junit.xml, report.html.

Each can be written again at any time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message
from acceptance.journal.run import Run
from acceptance.journal.run_folder import JUNIT, PAGE, VERDICT, write_whole


def load() -> None:
    """Import the modules that write a run's files, while its first session starts.

    Importing takes time. The run also ends with the modules of its start, even if rigproof is
    updated meanwhile.
    """
    import acceptance.journal.samples
    import acceptance.reports.junit
    import acceptance.reports.verdict_json  # noqa: F401 - see above
    from acceptance.expect import site_sheets
    from acceptance.reports.page import render

    site_sheets.own_sheets()
    render.load()


def write(run: Run, language: Language = ENGLISH) -> None:
    """Write a run's files, the page in this language.

    The verdict is written last: a run with a verdict counts as closed.
    """
    # imported here, because neither the start of a run nor `judge` needs it
    from acceptance.expect import site_sheets
    from acceptance.reports import junit, verdict_json
    from acceptance.reports.page import render

    write_whole(run.folder / JUNIT, junit.render(run))
    page = render.render(run, site_sheets.of_record(run.start.limits).models, language)
    write_whole(run.folder / PAGE, page.encode("utf-8"))
    write_whole(run.folder / VERDICT, verdict_json.render(run))


def card(run: Run, language: Language = ENGLISH) -> bytes:
    """The top of a run's page as one picture, SVG."""
    from acceptance.expect import site_sheets
    from acceptance.reports.page import overview_svg

    models = site_sheets.of_record(run.start.limits).models
    return overview_svg.draw(run, models, language).encode("utf-8")


def write_unreadable(run_dir: Path, reason: Message) -> None:
    """The verdict of a run whose journal holds no plan."""
    from acceptance.reports import verdict_json

    write_whole(run_dir / VERDICT, verdict_json.unreadable(run_dir.name, reason))


def link_latest(run_dir: Path) -> None:
    """Point `latest` in the output folder to this run.

    Nothing else moves or removes it: a call that starts no run leaves it. Whoever publishes a
    call's own run takes its folder from --run-dir-file. A file system without links has no
    `latest`.
    """
    draft = run_dir.parent / f".latest.{os.getpid()}"
    try:
        draft.symlink_to(run_dir.name)
        draft.replace(run_dir.parent / "latest")
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
