"""Words as a systemd unit and a crontab take them: whatever stands in a path or an argument is itself, and steers nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z0-9_+=:,./@-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_IMPOSSIBLE = re.compile(r"[\x00\ud800-\udfff]")  # no argument holds a zero byte, no unit what is not UTF-8


class Unquotable(ValueError):
    """A text that no unit or crontab can hold; the message is half a sentence."""


def word(text: str) -> str:
    """An argument of ExecStart=, by systemd.service(5), "Command lines": in quotes, specifiers and variables doubled."""
    return _quoted(text.replace("$", "$$"))


def program(path: str) -> str:
    """The program of ExecStart=, in which no variable is replaced; systemd starts none with quotes or backslashes in its name."""
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


def folder(path: str) -> str:
    """The value of WorkingDirectory=, which knows specifiers and no quotes: what would be read as something else is refused."""
    if _UNPRINTABLE.search(path) or path != path.strip() or path.endswith("\\"):
        raise Unquotable(f"the folder {path!a} has a name that no unit can hold")
    return path.replace("%", "%%")


def cron(words: Sequence[str]) -> str:
    """A command for a crontab: quoted for the shell, with each percent sign, which would be a line end, escaped (crontab(5))."""
    if any(_UNPRINTABLE.search(one) for one in words):
        raise Unquotable(f"{shlex.join(words)!a} holds a character that no crontab can hold")
    return shlex.join(words).replace("%", r"\%")
