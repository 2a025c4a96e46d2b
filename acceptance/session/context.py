"""One pytest session of the product: its context, and the command line that starts it.

The product's own sessions run on the packaged configuration. Plugin autoload is off, and variables
that steer pytest are removed from the environment: a stray `-k` in PYTEST_ADDOPTS must not turn a
failing machine green.

The time limits of a check: for its programs, and for the whole of it. Pure.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.evidence import Scratch
from acceptance.core.plan import (
    LOAD_SESSIONS,
    REPEAT_SESSION,
    LimitSet,
    Plan,
    PlannedCheck,
    SessionName,
)
from acceptance.core.record import Outcome
from acceptance.expect.collected import CollectedCheck
from acceptance.journal import clock
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.observe.event import PartKind
from acceptance.process import reaper

SUITES = Path(__file__).resolve().parents[1] / "suites"
# Exit codes of a session, beyond those of pytest itself (0 to 5).
REFUSED = 64  # package digest or collection differ from the plan's: nothing was heated
NO_JOURNAL = 65  # the journal could not be written


class SessionContext(msgspec.Struct, frozen=True):
    """The input of a session, as a JSON file.

    In mode `collect` it only lists its checks into `answer`. A repeat session runs the checks of
    the load sessions that `again` names. `niceness` lowers the session's priority against other
    programs. With `fail_fast` it stops at the first check that fails. `scratches` are the tested
    filesystems on which this run has made its folder (`scratch_place.run_folder`). `limits` has the
    sheets of the site, so that a container judges by the same. `site` is the folder with the run's
    copy of the site's own checks, for the session that has these.
    """

    mode: Literal["collect", "run"]
    root: str
    answer: str | None = None
    session: SessionName | None = None
    run_dir: str | None = None
    # Of the run, as its other segments name them: a container has names of its own.
    run_id: str | None = None
    machine_id: str | None = None
    # Sequence number of the last kernel message before the run, where it can be read.
    kernel_log_after: int | None = None
    # Parts under test before the run, by their names in the kernel's messages.
    tested_parts: dict[str, PartKind] = {}
    plan: Plan | None = None
    machine: Machine | None = None
    inventory: Inventory | None = None
    again: tuple[str, ...] = ()
    niceness: int = 0
    fail_fast: bool = False
    scratches: tuple[Scratch, ...] = ()
    limits: LimitSet | None = None
    site: str | None = None

    def __hash__(self) -> int:
        return hash((self.mode, self.run_id, self.session))

    def share(self) -> tuple[PlannedCheck, ...]:
        """The checks that this session runs, in the order of the plan."""
        return share(self.plan, self.session, self.again) if self.plan and self.session else ()


class Answer(msgspec.Struct, frozen=True):
    """The result of a collecting session.

    `mistakes` are what is wrong with a site's own checks, a sentence each, and `site_digest` is the
    digest of their files.
    """

    digest: str
    checks: tuple[CollectedCheck, ...]
    mistakes: tuple[str, ...] = ()
    site_digest: str | None = None


def share(
    plan: Plan, session: SessionName, repeated_checks: tuple[str, ...] = ()
) -> tuple[PlannedCheck, ...]:
    """The checks of the plan that a session of this name runs.

    A repeat session runs those in `again`.
    """
    if session == REPEAT_SESSION:
        loads = (check for session in LOAD_SESSIONS for check in plan.share(session))
        return tuple(check for check in loads if check.id in repeated_checks)
    return plan.share(session)


def ends_run(check: PlannedCheck, outcome: Outcome, *, fail_fast: bool) -> bool:
    """Whether nothing is run after a check with this outcome.

    A gate that could not be judged ends the run. One that fails ends it with `fail_fast` only: the
    verdict is known then, and what else the machine has is tested all the same.
    """
    return (check.gate and outcome not in ("pass", "fail")) or (fail_fast and outcome == "fail")


def write(context: SessionContext, path: Path) -> None:
    """Write a session's context."""
    regular_file.write(path, msgspec.json.encode(context, enc_hook=parts.encode))


def read(path: Path) -> SessionContext:
    """Read a session's context."""
    return msgspec.json.decode(
        regular_file.read(path, regular_file.SEGMENT_BYTES),
        type=SessionContext,
        dec_hook=parts.decode,
    )


def argv(context: Path, site: Path | None = None) -> list[str]:
    """The command line of a session, of the suites or of a `site`'s own checks.

    Pure: it depends only on its arguments and on the package's location.
    """
    root = SUITES if site is None else site
    return [
        sys.executable,
        "-P",  # do not import from the working directory
        "-m",
        "pytest",
        "-c",
        str(SUITES / "pytest.ini"),
        f"--rootdir={root}",
        f"--confcutdir={root}",
        *(("--noconftest",) if site is not None else ()),
        "-p",
        "pytest_timeout",
        "-p",
        "acceptance.session.plugin",
        f"--rigproof-context={context}",
        str(root),
    ]


def in_container(
    context: str, seconds: float, boot_id: str, python: str = "/opt/rigproof/venv/bin/python"
) -> list[str]:
    """The command line of a session in a container. Pure.

    It runs this module as a program, with the image's own Python.
    """
    return [python, "-P", "-m", "acceptance.session.context", context, f"{seconds:.0f}", boot_id]


def main(arguments: list[str]) -> None:
    """Become the reaper of a session: the first process of a container.

    The reaper ends the session when the engine closes its standard input, which happens when the
    harness outside is gone. It also ends it after `seconds`, the deadline inside, beside the one
    outside. An engine on another machine, or in a virtual one, is refused: the loads would test
    that machine.
    """
    context, seconds, boot_id = Path(arguments[0]), float(arguments[1]), arguments[2]
    if clock.boot_id() != boot_id:
        sys.stderr.write(
            "the container does not run under this machine's kernel: use an engine on the "
            "machine itself\n"
        )
        sys.exit(REFUSED)
    own = [
        sys.executable,
        "-I",
        "-S",
        reaper.__file__,
        f"stdin:{seconds:.0f}",
        "3",
        "--",
        *argv(context),
    ]
    os.execv(own[0], own)


def environment(run_id: str | None, context: Path | None = None) -> dict[str, str]:
    """Additions to a session's cleaned environment.

    Every descendant carries the run id and the session's name, that of its context's file, so that
    orphans can be found.
    """
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    own |= {"RIGPROOF_SESSION": context.stem} if context else {}
    return {**own, "RIGPROOF_RUN": run_id} if run_id else own


def programs_s(planned: PlannedCheck) -> float:
    """Seconds for all programs of a check together.

    A quarter more than expected, its slack, and half a minute for a slow machine.
    """
    return planned.seconds * 1.25 + planned.slack_s + 30.0


def check_limit_s(planned: PlannedCheck) -> float:
    """Seconds after which pytest itself ends a check.

    This is later than the deadline of its programs, whose errors say more.
    """
    return programs_s(planned) + 30.0


if __name__ == "__main__":
    main(sys.argv[1:])
