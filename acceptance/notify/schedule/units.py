"""The systemd units of a nightly run, and its line for cron: pure texts, with their quoting."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from pathlib import Path

from acceptance.notify.schedule.default_time import DEFAULT_TIME

_PLAIN = re.compile(r"[A-Za-z0-9_+=:,./@-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_IMPOSSIBLE = re.compile(
    r"[\x00\ud800-\udfff]"
)  # no argument holds a zero byte, no unit what is not UTF-8


class Unquotable(ValueError):
    """A text that no unit or crontab can hold; the message is half a sentence."""


def quote_word(text: str) -> str:
    """An argument of ExecStart=, by systemd.service(5), "Command lines": in quotes, specifiers
    and variables doubled.
    """
    return _quoted(text.replace("$", "$$"))


def quote_program(path: str) -> str:
    """The program of ExecStart=, in which no variable is replaced; systemd starts none with
    quotes or backslashes in its name.
    """
    if _UNPRINTABLE.search(path) or any(sign in path for sign in "\"'\\"):
        raise Unquotable(f"the program {path!a} has a name that systemd does not start")
    return _quoted(path)


def _quoted(text: str) -> str:
    if _IMPOSSIBLE.search(text):
        raise Unquotable(f"{text!a} holds a character that no unit can hold")
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _UNPRINTABLE.sub(lambda found: rf"\x{ord(found[0]):02x}", escaped) + '"'


def quote_folder(path: str) -> str:
    """The value of WorkingDirectory=, which knows specifiers and no quotes: what would be read
    as something else is refused.
    """
    if _UNPRINTABLE.search(path) or path != path.strip() or path.endswith("\\"):
        raise Unquotable(f"the folder {path!a} has a name that no unit can hold")
    return path.replace("%", "%%")


def cron_words(words: Sequence[str]) -> str:
    """A command for a crontab: quoted for the shell, with each percent sign, which would be a
    line end, escaped (crontab(5)).
    """
    if any(_UNPRINTABLE.search(one) for one in words):
        raise Unquotable(f"{shlex.join(words)!a} holds a character that no crontab can hold")
    return shlex.join(words).replace("%", r"\%")


NAME = "rigproof-nightly"
SERVICE, TIMER, FAILED = f"{NAME}.service", f"{NAME}.timer", f"{NAME}-failed.service"
# by which a unit of an earlier rigproof is known: never change it
OURS = "# Written by `rigproof schedule install`"
MARK = (
    f"{OURS}, removed by `rigproof schedule uninstall`. For changes of your own: `systemctl edit`."
)
SKIPPED = 4  # the exit code of a night on which the machine was in use: no failure
NICE = 10
READ_ONLY = tuple(
    map(Path, ("/usr", "/boot", "/efi", "/etc"))
)  # what ProtectSystem=full makes so (systemd.exec(5))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is to be started, and when: the program with its own words, the nightly's arguments, and
    those with which a failure is told.

    `user` is for the units of one user (`systemctl --user`); else `run_as` names the user, root
    where it is None.
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
        """Whether some folders of the system are read-only to it: to root's units alone."""
        return not self.user and self.run_as is None

    @property
    def nightly(self) -> tuple[str, ...]:
        """The command of a night."""
        return (*self.program, "nightly", *self.arguments)

    @property
    def failure(self) -> tuple[str, ...]:
        """The command that tells when a night was not PASS."""
        return (
            *self.program,
            "schedule",
            "failed",
            *(["--user"] if self.user else []),
            *self.telling,
        )


def texts(schedule: Schedule) -> dict[str, str]:
    """Every unit by its name. Raises quoting.Unquotable."""
    return {SERVICE: service(schedule), TIMER: timer(schedule), FAILED: failure_unit(schedule)}


def _started(command: Sequence[str]) -> str:
    return " ".join((quote_program(command[0]), *map(quote_word, command[1:])))


def _common(schedule: Schedule) -> list[str]:
    """Who runs it, where, and with which environment."""
    settings = "%h/.config/rigproof/environment" if schedule.user else "/etc/default/rigproof"
    # Named for root as well: HOME and the like are set only where a user is named.
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
        # Of another user some of these would take away programs that may do more than he
        # (nvidia-modprobe, mail).
        lines += [
            "ProtectSystem=full",
            "ProtectControlGroups=true",
            "ProtectHostname=true",
            "LockPersonality=true",
        ]
    return "\n".join(lines) + "\n"


def timer(schedule: Schedule) -> str:
    """The unit that starts it."""
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
    """The unit that is started when the night was not PASS and not skipped, or did not come to
    its end at all.
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
        "# What it says stands among the errors of the system's journal.",
        "SyslogIdentifier=rigproof",
        "SyslogLevel=err",
    ]
    return "\n".join(lines) + "\n"


def cron(schedule: Schedule) -> str:
    """The same as a line of a user's crontab, for machines without systemd: without delay, and a
    night that is missed is missed.
    """
    there = cron_words(["cd", str(schedule.folder)])
    started = cron_words(["nice", "-n", str(NICE), "ionice", "-c", "3", *schedule.nightly])
    return f"{schedule.at.minute} {schedule.at.hour} * * * {there} && {started}"
