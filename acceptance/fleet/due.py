"""The machines that are due: a file with a name on each line, or Slurm's list of nodes."""

from __future__ import annotations

from pathlib import Path

from acceptance.core import plain_text, regular_file
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError

SLURM = ("-N", "-h", "-o", "%N")
_PROGRAM, _PACKAGE = "sinfo", "slurm-client"
_KUBERNETES = "node/"  # `kubectl get nodes -o name` puts it before each name
_SECONDS = 60.0


class DueError(WordedError):
    """The list of due machines cannot be read."""


def is_name(text: str) -> bool:
    """Whether a text can name a machine: visible letters without blanks, brackets and slashes."""
    return text.isprintable() and text != "" and not set(text) & set(" [],/\\\"'")


def names(text: str, source: str) -> tuple[str, ...]:
    """The machines of a list, one on each line, each once and in order.

    Takes what `sinfo -N -h -o %N` and `kubectl get nodes -o name` print. Blank lines and those that
    begin with # do not count. Raises DueError for any other line, and where no machine is named.
    """
    found: dict[str, None] = {}
    for number, line in enumerate(plain_text.lines(text), 1):
        name = line.strip().removeprefix(_KUBERNETES)
        if not name or name.startswith("#"):
            continue
        if not is_name(name):
            quoted = plain_text.quote(line)
            raise DueError("fleet_due_line", source=source, line=number, text=quoted)
        found[name] = None
    if not found:
        raise DueError("fleet_due_empty", source=source)
    return tuple(found)


def read(path: Path) -> tuple[str, ...]:
    """The machines that a file names. Raises DueError."""
    try:
        content = regular_file.read(path, regular_file.SMALL_RECORD)
        text = content.decode("utf-8")
    except OSError as error:
        raise DueError("fleet_due_unread", path=str(path), why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise DueError("fleet_due_unread", path=str(path), why="it is not UTF-8") from error
    return names(text, str(path))


def of_slurm() -> tuple[str, ...]:
    """The nodes that Slurm knows. Raises DueError, and CommandError where sinfo cannot run."""
    argv = (command.find(_PROGRAM, _PACKAGE), *SLURM)
    done = command.run(argv, deadline=Deadline.after(_SECONDS))
    if done.returncode != 0:
        raise DueError("fleet_sinfo_failed", why=done.last_lines(3))
    return names(done.stdout, " ".join((_PROGRAM, *SLURM)))
