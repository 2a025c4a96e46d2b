"""The systemd units of a nightly run, and its line for cron: pure texts, with their quoting.

The default time of a nightly run, and the nights that lack a given hour.

Imports little, because `--help` imports it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from acceptance.core.exit_code import SKIPPED
from acceptance.core.message import UserError

AHEAD = 2 * 366  # days: rules of the time zone repeat every year, on another day


def skipped_on(at: time, today: date) -> date | None:
    """The next day within two years on which this machine's clocks skip that time; else None."""
    for ahead in range(AHEAD):
        # without a zone: in the machine's time zone
        moment = datetime.combine(today + timedelta(days=ahead), at)
        if datetime.fromtimestamp(moment.timestamp()).time() != at:
            return moment.date()
    return None


# where clocks are put forward, they skip an earlier hour: systemd would skip a night set to it
DEFAULT_TIME = time(4, 30)


_PLAIN = re.compile(r"[A-Za-z0-9_+=:,./@-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
# no argument may hold a zero byte, no unit anything but UTF-8
_IMPOSSIBLE = re.compile(r"[\x00\ud800-\udfff]")


def quote_word(text: str) -> str:
    """An argument of ExecStart=, by systemd.service(5), "Command lines".

    It is quoted if needed, with specifiers and variables doubled.
    """
    return _quoted(text.replace("$", "$$"))


def quote_program(path: str) -> str:
    """The program of ExecStart=, in which no variable is replaced.

    Raises UserError for quotes or backslashes, because systemd starts no such program.
    """
    if _UNPRINTABLE.search(path) or any(sign in path for sign in "\"'\\"):
        raise UserError(f"the program {path!a} has a name that systemd does not start")
    return _quoted(path)


def _quoted(text: str) -> str:
    if _IMPOSSIBLE.search(text):
        raise UserError(f"{text!a} holds a character that no unit can hold")
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _UNPRINTABLE.sub(lambda found: rf"\x{ord(found[0]):02x}", escaped) + '"'


def quote_folder(path: str) -> str:
    """The value of WorkingDirectory=, which has specifiers but no quoting.

    Raises UserError for a path that systemd would read differently.
    """
    if _UNPRINTABLE.search(path) or path != path.strip() or path.endswith("\\"):
        raise UserError(f"the folder {path!a} has a name that no unit can hold")
    return path.replace("%", "%%")


def cron_words(words: Sequence[str]) -> str:
    """A command for a crontab, quoted for the shell.

    Percent signs, which are line ends there (crontab(5)), are escaped.
    """
    if any(_UNPRINTABLE.search(one) for one in words):
        raise UserError(f"{shlex.join(words)!a} holds a character that no crontab can hold")
    return shlex.join(words).replace("%", r"\%")


NAME = "rigproof-nightly"
SERVICE, TIMER, FAILED = f"{NAME}.service", f"{NAME}.timer", f"{NAME}-failed.service"
# marks a unit as rigproof's, also to later versions: never change it
OURS = "# Written by `rigproof schedule install`"
MARK = (
    f"{OURS}, removed by `rigproof schedule uninstall`. For changes of your own: `systemctl edit`."
)
NICE = 10
# the folders that ProtectSystem=full makes read-only (systemd.exec(5))
READ_ONLY = tuple(map(Path, ("/usr", "/boot", "/efi", "/etc")))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: the program, when it starts, and its arguments.

    `program` is its argv, `arguments` those of the nightly run, `telling` those of the failure
    unit. `user` selects the units of one user (`systemctl --user`); otherwise `run_as` names the
    user, None for root.
    """

    program: tuple[str, ...]
    arguments: tuple[str, ...]
    telling: tuple[str, ...]
    folder: Path
    at: time = DEFAULT_TIME
    user: bool = False
    run_as: str | None = None

    @property
    def protected(self) -> bool:
        """Whether some system folders are read-only to it: only for root's units."""
        return not self.user and self.run_as is None

    @property
    def nightly(self) -> tuple[str, ...]:
        """The command of a night."""
        return (*self.program, "nightly", *self.arguments)

    @property
    def failure(self) -> tuple[str, ...]:
        """The command of the failure unit, which reports a night that was not PASS."""
        return (
            *self.program,
            "schedule",
            "failed",
            *(["--user"] if self.user else []),
            *self.telling,
        )


def texts(schedule: Schedule) -> dict[str, str]:
    """Every unit by its name. Raises UserError."""
    return {SERVICE: service(schedule), TIMER: timer(schedule), FAILED: failure_unit(schedule)}


def _started(command: Sequence[str]) -> str:
    return " ".join((quote_program(command[0]), *map(quote_word, command[1:])))


def _common(schedule: Schedule) -> list[str]:
    """The user, the folder and the environment, which both services share."""
    settings = "%h/.config/rigproof/environment" if schedule.user else "/etc/default/rigproof"
    # Set for root as well: HOME and the like are set only if a user is named.
    user = [] if schedule.user else [f"User={schedule.run_as or 'root'}"]
    return [
        "Type=oneshot",
        *user,
        f"WorkingDirectory={quote_folder(str(schedule.folder))}",
        f"EnvironmentFile=-{settings}",
        "UMask=0022",
    ]


def service(schedule: Schedule) -> str:
    """The unit of one night."""
    hold = "%t/rigproof-hold" if schedule.user else "/run/rigproof-hold"
    engine = (
        []
        if schedule.user
        else ["After=docker.service nvidia-persistenced.service nvidia-fabricmanager.service"]
    )
    lines = [
        MARK,
        "[Unit]",
        "Description=rigproof: is this machine as fit as on the day it was accepted?",
        *engine,
        "ConditionACPower=true",
        f"# `touch {hold.replace('%t', '$XDG_RUNTIME_DIR')}` holds it back until the next boot.",
        f"ConditionPathExists=!{hold}",
        f"OnFailure={FAILED}",
        "",
        "[Service]",
        *_common(schedule),
        f"ExecStart={_started(schedule.nightly)}",
        f"# {SKIPPED}: the machine was in use.",
        f"SuccessExitStatus={SKIPPED}",
        "# rigproof has deadlines of its own; this one is for a rigproof that hangs.",
        "TimeoutStartSec=2h",
        "# Time to end the loads and to write the verdict.",
        "TimeoutStopSec=3min",
        "KillMode=mixed",
        f"Nice={NICE}",
        "IOSchedulingClass=idle",
        "OOMScoreAdjust=500",
    ]
    if schedule.protected:
        # For another user some of these would block programs with more rights than that user
        # (nvidia-modprobe, mail).
        lines += [
            "ProtectSystem=full",
            "ProtectControlGroups=true",
            "ProtectHostname=true",
            "LockPersonality=true",
        ]
    return "\n".join(lines) + "\n"


def timer(schedule: Schedule) -> str:
    """The unit that starts the service every night."""
    return "\n".join(
        [
            MARK,
            "[Unit]",
            f"Description=rigproof, every night at {schedule.at:%H:%M}",
            "",
            "[Timer]",
            f"OnCalendar=*-*-* {schedule.at:%H:%M}:00",
            (
                "# So that not all machines of a room draw their full power in the same minute; "
                "of one machine it is the same every night."
            ),
            "RandomizedDelaySec=15min",
            "FixedRandomDelay=true",
            "AccuracySec=1min",
            "# A night on which the machine was off is made up for after the next start.",
            "Persistent=true",
            "",
            "[Install]",
            "WantedBy=timers.target",
            "",
        ]
    )


def failure_unit(schedule: Schedule) -> str:
    """The failure unit.

    It is started when a night was neither PASS nor skipped, or ended without a verdict.
    """
    lines = [
        MARK,
        "[Unit]",
        "Description=rigproof: a night was not PASS",
        "",
        "[Service]",
        *_common(schedule),
        f"ExecStart={_started(schedule.failure)}",
        "TimeoutStartSec=5min",
        "# Its output goes to the system's journal with priority err.",
        "SyslogIdentifier=rigproof",
        "SyslogLevel=err",
    ]
    return "\n".join(lines) + "\n"


def cron(schedule: Schedule) -> str:
    """The schedule as a line of a user's crontab, for machines without systemd.

    It has no random delay, and a missed night is not made up for.
    """
    there = cron_words(["cd", str(schedule.folder)])
    started = cron_words(["nice", "-n", str(NICE), "ionice", "-c", "3", *schedule.nightly])
    return f"{schedule.at.minute} {schedule.at.hour} * * * {there} && {started}"
