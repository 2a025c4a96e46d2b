"""Whether a run outlives the terminal that it was started from."""

from __future__ import annotations

import os
import re
from pathlib import Path

from acceptance.process import command
from acceptance.process.deadline import Deadline

_ANSWER_S = 3.0
# The unit of a login. Root's own logins are spared (KillExcludeUsers).
_LOGIN = re.compile(r"/user-[1-9][0-9]*\.slice/session-[^/]+\.scope")
_SETTING = (
    "get-property",
    "org.freedesktop.login1",
    "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager",
    "KillUserProcesses",
)


def has_terminal() -> bool:
    """Whether this process talks to a terminal."""
    return any(os.isatty(number) for number in (0, 1, 2))


def ended_at_logout(root: Path = Path("/")) -> bool:
    """Whether systemd ends this process, whatever it handles, when its login ends.

    It does where this process belongs to a login and KillUserProcesses is set.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
        if not _LOGIN.search(groups):
            return False
        argv = [command.find("busctl"), *_SETTING]
        return command.run(argv, deadline=Deadline.after(_ANSWER_S)).stdout.strip() == "b true"
    except (OSError, command.CommandError):  # no systemd
        return False
