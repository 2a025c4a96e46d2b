"""Install the units where systemd finds them, and remove them without a trace.

The note that a nightly run leaves for systemd's failure unit, and that unit's report.
"""

from __future__ import annotations

import contextlib
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.exit_code import FAIL, UNJUDGED
from acceptance.core.message import Message, UserError, english, known
from acceptance.journal import run_folder
from acceptance.journal.segment import JournalError
from acceptance.notify.schedule import units
from acceptance.notify.schedule.units import FAILED, SERVICE, TIMER, Schedule
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.reports.text import one_line
from acceptance.wording import words

_SYSTEMCTL_S = 60.0
_STARTED_BY = "timers.target.wants"


@dataclass(frozen=True, slots=True)
class UnitLocation:
    """The location of the units: the system's or one user's.

    `stamp` is the file in which systemd records when the timer was last due.
    """

    folder: Path
    stamp: Path
    user: bool
    running: bool  # whether systemd runs here; else units are only written

    @classmethod
    def system(cls, root: Path = Path("/")) -> UnitLocation:
        """The location for the whole machine."""
        stamp = root / "var/lib/systemd/timers" / f"stamp-{TIMER}"
        return cls(root / "etc/systemd/system", stamp, user=False, running=_runs(root))

    @classmethod
    def of_user(cls, environment: Mapping[str, str], root: Path = Path("/")) -> UnitLocation:
        """The location of the current user, by the XDG base directories."""
        home = Path(environment.get("HOME") or Path.home())
        config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
        stamp = data / "systemd/timers" / f"stamp-{TIMER}"
        return cls(config / "systemd/user", stamp, user=True, running=_runs(root))


@dataclass(frozen=True, slots=True)
class InstallResult:
    """The files written or removed, in order, and whether systemd runs and knows of them."""

    files: tuple[Path, ...]
    running: bool


def _runs(root: Path) -> bool:
    return (root / "run/systemd/system").is_dir()  # sd_booted(3)


def known_user(name: str) -> str:
    """The name of a user of this machine. Raises UserError."""
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        raise UserError(
            f"--run-as {name}: there is no such user here: give another one, or make it first"
        ) from None


def unit_texts(schedule: Schedule) -> dict[str, str]:
    """The units' texts by their names.

    Raises UserError if a name cannot be written in a unit.
    """
    try:
        return units.texts(schedule)
    except UserError as error:
        raise UserError(f"{error}: give it another name") from error


def install(schedule: Schedule, place: UnitLocation) -> InstallResult:
    """Write the units, and start the timer if systemd runs.

    A unit with the same content is left as it is. Raises UserError; nothing is written if a
    unit of that name is not rigproof's.
    """
    texts = unit_texts(schedule)
    for name in texts:
        _ours(place.folder / name)
    written = []
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            path = place.folder / name
            content = text.encode("utf-8")
            if not path.is_file() or regular_file.read(path, regular_file.SMALL_RECORD) != content:
                run_folder.write_whole(path, content, then="install it again", mode=0o644)
                written.append(path)
    except (OSError, JournalError) as error:
        raise _schedule_error(place, error) from error
    if place.running:
        _systemctl(place, "daemon-reload")
        _systemctl(place, "enable", TIMER)
        # until its restart a timer that ran before keeps its old time
        _systemctl(place, "restart", TIMER)
    return InstallResult(tuple(written), place.running)


def uninstall(place: UnitLocation) -> InstallResult:
    """Stop the timer and remove all that `install` and systemd made for it.

    A nightly run that is under way is not stopped. Raises UserError; nothing is removed if a
    unit of that name is not rigproof's.
    """
    there = [place.folder / name for name in (TIMER, SERVICE, FAILED) if _ours(place.folder / name)]
    link = place.folder / _STARTED_BY / TIMER
    if place.running and (there or link.is_symlink()):
        _systemctl(place, "disable", "--now", TIMER)
    removed = []
    try:
        for path in (*there, link, place.stamp):
            if path.is_symlink() or path.exists():
                path.unlink()
                removed.append(path)
        with contextlib.suppress(OSError):  # the folder has other timers, or never existed
            link.parent.rmdir()
    except OSError as error:
        raise _schedule_error(place, error) from error
    if place.running and removed:
        _systemctl(place, "daemon-reload")
        with contextlib.suppress(UserError):  # neither has failed
            _systemctl(place, "reset-failed", SERVICE, FAILED)
    return InstallResult(tuple(removed), place.running)


def _ours(path: Path) -> bool:
    """Whether there is a unit of that name.

    Raises UserError if rigproof did not write it.
    """
    try:
        if not path.is_symlink() and not path.exists():
            return False
        with regular_file.open_read(path, regular_file.SMALL_RECORD) as file:
            ours = not path.is_symlink() and file.read(len(units.OURS)) == units.OURS.encode()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}): fix that, then start again"
        ) from error
    if not ours:
        raise UserError(f"{path} is not rigproof's: move it away, then start again")
    return True


def _schedule_error(place: UnitLocation, error: OSError | JournalError) -> UserError:
    if isinstance(error, PermissionError) or isinstance(error.__cause__, PermissionError):
        cure = (
            "make it writable"
            if place.user
            else "run it with sudo, or with --user for a schedule of your own"
        )
        return UserError(f"{place.folder}: you may not write there: {cure}")
    if isinstance(error, OSError):
        return UserError(
            f"{error.filename or place.folder}: {error.strerror}: fix that, then start again"
        )
    return UserError(str(error))


def _systemctl(place: UnitLocation, *arguments: str) -> None:
    text = " ".join(("systemctl", *(["--user"] if place.user else []), *arguments))
    try:
        argv = [command.find("systemctl"), *(["--user"] if place.user else []), *arguments]
        done = command.run(argv, deadline=Deadline.after(_SYSTEMCTL_S))
    except command.CommandError as error:
        raise UserError(
            f"the units lie in {place.folder}, and `{text}` could not be run: {error}"
        ) from error
    if done.returncode != 0:
        said = one_line(done.last_lines(2), 400)
        raise UserError(
            f"the units lie in {place.folder}, and `{text}` "
            f"{words.message(done.describe())}{f': {said}' if said else ''}: "
            "fix that, then type it"
        )


# Variables that a unit started by OnFailure= gets about the failed one, since systemd 251
# (systemd.exec(5)).
RESULT, CODE, STATUS = "MONITOR_SERVICE_RESULT", "MONITOR_EXIT_CODE", "MONITOR_EXIT_STATUS"
# nightly's exit codes for a verdict, valid if it has left a note
_WORDS = {
    str(FAIL): "FAIL",
    str(UNJUDGED): "UNJUDGED",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a night ended; `told` if the run itself has notified every target."""

    message: Message
    told: bool


def ending(environment: Mapping[str, str], note: FailureNote | None, *, user: bool) -> Ending:
    """How the night ended, from systemd's variables and the night's note.

    Without a note the targets count as not notified: twice is better than never.
    """
    result, code, status = (
        one_line(environment.get(name, ""), 100) for name in (RESULT, CODE, STATUS)
    )
    is_reported = note is not None and note.told
    own = " --user" if user else ""
    see = f"`journalctl{own} --unit {units.SERVICE}`"
    if not result:
        message = Message(
            english("night_not_passed", "the nightly run did not end with PASS: see {see}"),
            {"see": see},
        )
    elif code == "exited" and note is not None and status in _WORDS:
        about = known(verdict=_WORDS[status], headline=note.headline, see=see)
        message = (
            Message(
                english(
                    "night_told", "the nightly run ended with {verdict}[: {headline}]: see {see}"
                ),
                about,
            )
            if is_reported
            else Message(
                english(
                    "night_untold",
                    "the nightly run ended with {verdict}[: {headline}], and not everybody was "
                    "notified: see {see}",
                ),
                about,
            )
        )
    elif code == "exited":
        message = Message(
            english(
                "night_without_verdict",
                "the nightly run did not come to a verdict (exit code {code}): see {see}",
            ),
            {"code": status, "see": see},
        )
    else:
        signal = status or None
        message = Message(
            english(
                "night_cut_off",
                "the nightly run was ended before its verdict ({how}[, signal {signal}]): see "
                "{see}",
            ),
            known(how=result, signal=signal, see=see),
        )
    return Ending(message, is_reported)


NAME = ".told"  # in the folder of the runs
# The id of one start, as systemd gives it to the night (since 232) and to the unit started by
# OnFailure= (since 251): systemd.exec(5).
OWN, OTHERS = "INVOCATION_ID", "MONITOR_INVOCATION_ID"


class FailureNote(msgspec.Struct, frozen=True):
    """The note of one start.

    `run_dir` is the run's folder, None if no run was started; `told` says whether every target was
    notified; `headline` is what the run found.
    """

    invocation: str
    run_dir: str | None
    told: bool
    headline: str | None = None


def write_note(
    out: Path,
    environment: Mapping[str, str],
    run_dir: Path | None,
    *,
    told: bool,
    headline: str | None = None,
) -> None:
    """Leave the note if systemd started the night.

    If it cannot be written, the failure unit finds none and notifies every target again.
    """
    invocation = environment.get(OWN)
    if invocation:
        # a folder's name may not be UTF-8
        with contextlib.suppress(JournalError, OSError, UnicodeError):
            content = msgspec.json.encode(
                FailureNote(
                    invocation, str(run_dir) if run_dir is not None else None, told, headline
                )
            )
            out.mkdir(parents=True, exist_ok=True)  # a night that could not begin leaves none
            run_folder.write_whole(out / NAME, content, then=run_folder.START_AGAIN)


def find(out: Path, environment: Mapping[str, str]) -> FailureNote | None:
    """The note of the night that has failed now; None if it left none."""
    invocation = environment.get(OTHERS)
    try:
        found = msgspec.json.decode(
            regular_file.read(out / NAME, regular_file.SMALL_RECORD), type=FailureNote
        )
    except (OSError, ValueError):
        return None
    return found if invocation and found.invocation == invocation else None
