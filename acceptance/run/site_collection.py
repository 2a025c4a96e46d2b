"""A site's own checks before the run: read, collected by pytest on the host, and checked.

Nothing of this loads the machine, and a mistake in any of them is an error of the command line.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance.core import nearest
from acceptance.core.message import Message, UserError, english
from acceptance.core.parts import Component
from acceptance.core.plan import SiteChecks
from acceptance.expect import site_families
from acceptance.expect.collected import CollectedCheck
from acceptance.expect.measurements import Measurements
from acceptance.journal import seal
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.run import site_folder
from acceptance.session import context as session_context
from acceptance.wording import words

COLLECTION_S = 60.0  # importing the files takes no time, unless they do work of their own
# Exit codes of pytest that has collected: all of it, with errors in files, and nothing.
COLLECTED = (0, 1, 2, 5)
_NAMED = 10  # mistakes in a message


def _refused(folder: Path, *sentences: str) -> UserError:
    """The error of a site's own checks that cannot be run, with each mistake's file and line."""
    left = len(sentences) - _NAMED
    named = "; ".join(sentences[:_NAMED]) + (f"; and {left} more" if left > 0 else "")
    count = f"{len(sentences)} mistakes" if len(sentences) > 1 else "a mistake"
    return UserError(f"--checks {folder}: {count}, so nothing was started: {named}")


@dataclass(frozen=True, slots=True)
class CollectedSite:
    """A site's own checks, ready for a plan."""

    folder: site_folder.SiteFolder
    bound: SiteChecks
    checks: tuple[CollectedCheck, ...]
    measurements: Measurements


def collect(given: Path, root: Path) -> CollectedSite:
    """Read and collect the site's checks.

    Raises UserError, and CommandError where pytest cannot be started.
    """
    folder = site_folder.read_checks(given)
    bound = folder.checks
    try:
        families = site_families.parse(bound.families)
    except UserError as error:
        raise _refused(folder.path, str(error)) from error
    answer = _collected(folder, root)
    if answer.mistakes or answer.site_digest != bound.digest:
        raise _refused(
            folder.path, *(answer.mistakes or ("a file changed meanwhile: start again",))
        )
    ids = [check.id for check in answer.checks]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise _refused(folder.path, f"{twice[0]} stands twice: give each its own name")
    return CollectedSite(folder, bound, answer.checks, families.measurements)


def _collected(folder: site_folder.SiteFolder, root: Path) -> session_context.Answer:
    with tempfile.TemporaryDirectory(prefix="rigproof-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        copy, context, answer = (
            place / seal.SITE_CHECKS,
            place / "context.json",
            place / "answer.json",
        )
        folder.write(copy)
        session_context.write(
            session_context.SessionContext(
                mode="collect", root=str(root), answer=str(answer), site=str(copy)
            ),
            context,
        )
        done = command.run(
            session_context.argv(context, copy),
            deadline=Deadline.after(COLLECTION_S),
            env=session_context.environment(None),
            cwd=place,
        )
        if done.timed_out or done.returncode not in COLLECTED or not answer.is_file():
            why = words.message(done.describe())
            last = done.last_lines(3)
            why = f"could not be collected ({why}){f': {last}' if last else ''}"
            cure = "a file does nothing when it is imported: move such work into its checks"
            raise _refused(folder.path, f"the files {why}: {cure}")
        return msgspec.json.decode(answer.read_bytes(), type=session_context.Answer)


def require_classes(site: CollectedSite, classes: Mapping[str, Sequence[Component]]) -> None:
    """Raise UserError for a measurement of a class of components that there is not."""
    for check in site.checks:
        for one in check.measures:
            if one.per not in classes:
                cure = nearest.cure(
                    one.per, classes, "the usual ones are machine, cpu, memory, disk, gpu"
                )
                family = site.measurements.by_name[one.name].family
                raise _refused(
                    site.folder.path,
                    f"{family}.toml: {one.name} is per {one.per!a}, which is no class of "
                    f"components: {cure}",
                )


def not_due(site: CollectedSite, classes: Mapping[str, Sequence[Component]]) -> list[Message]:
    """The site's checks of which this machine has no component, for the plan."""
    return [
        Message(
            english(
                "site_check_not_due",
                "{check}, a check of the site's own: this machine has no component of the class "
                "{per}",
            ),
            {"check": check.id, "per": check.measures[0].per},
        )
        for check in site.checks
        if not any(classes[one.per] for one in check.measures)
    ]
