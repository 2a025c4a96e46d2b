"""The machines that are due, by a file or by Slurm, and what a site tells of its machines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from acceptance.core import plain_text, regular_file
from acceptance.core.message import english
from acceptance.fleet.common_cause import SLOT
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError, WordedUserError

SLURM = ("-N", "-h", "-o", "%N")
_PROGRAM, _PACKAGE = "sinfo", "slurm-client"
_KUBERNETES = "node/"  # `kubectl get nodes -o name` puts it before each name
_SECONDS = 60.0
_MACHINE = "machine"  # the first column of the locations


def is_name(text: str) -> bool:
    """Whether a text can name a machine: visible letters without blanks, brackets and slashes."""
    return text.isprintable() and text != "" and not set(text) & set(" [],/\\\"'")


def names(text: str, source: str) -> tuple[str, ...]:
    """The machines of a list, one on each line, each once and in order.

    Takes what `sinfo -N -h -o %N` and `kubectl get nodes -o name` print. Blank lines and those that
    begin with # do not count. Raises WordedUserError for any other line,
    and where no machine is named.
    """
    found: dict[str, None] = {}
    for number, line in enumerate(plain_text.lines(text), 1):
        name = line.strip().removeprefix(_KUBERNETES)
        if not name or name.startswith("#"):
            continue
        if not is_name(name):
            quoted = plain_text.quote(line)
            raise WordedUserError(
                english(
                    "fleet_due_line",
                    "{source}, line {line}: {text} is no name of a machine: write one name on "
                    "each line, such as `sinfo -N -h -o %N` prints",
                ),
                source=source,
                line=number,
                text=quoted,
            )
        found[name] = None
    if not found:
        raise WordedUserError(
            english("fleet_due_empty", "{source} names no machine: write one name on each line"),
            source=source,
        )
    return tuple(found)


def read(path: Path) -> tuple[str, ...]:
    """The machines that a file names. Raises WordedUserError."""
    text = _text(
        path,
        lambda why: WordedUserError(
            english(
                "fleet_due_unread",
                "{path}: the list of due machines cannot be read ({why}): give a file with one "
                "name on each line",
            ),
            path=str(path),
            why=why,
        ),
    )
    return names(text, str(path))


def read_locations(path: Path) -> dict[str, dict[str, str]]:
    """What the site tells of each machine, such as its rack and switch; an empty cell is no fact.

    The file is a CSV file with a column `machine`, and one for each fact. Raises WordedUserError,
    which names the line.
    """
    source = str(path)
    text = _text(
        path,
        lambda why: WordedUserError(
            english(
                "fleet_locations_unread",
                "{path}: what is known of the machines cannot be read ({why}): give a CSV file "
                "such as `machine,rack`",
            ),
            path=source,
            why=why,
        ),
        "utf-8-sig",
    )
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: dict[str, dict[str, str]] = {}
    try:
        names = [name.strip() for name in next(rows, [])]
        if (
            names[:1] != [_MACHINE]
            or len(names) < 2
            or len(set(names)) < len(names)
            or not all(names)
        ):
            raise WordedUserError(
                english(
                    "fleet_locations_head",
                    "{path}: the first line must name the columns, `machine` first and then what "
                    "is known of each, such as `machine,rack,switch`",
                ),
                path=source,
            )
        if SLOT in names:
            raise WordedUserError(
                english(
                    "fleet_locations_slot",
                    "{path}: `slot` cannot be a column, because it is the position of a card in "
                    "its machine: name the column otherwise",
                ),
                path=source,
            )
        for row in rows:
            if not any(row):
                continue
            name, *facts = (cell.strip() for cell in row)
            if len(row) != len(names) or not is_name(name) or name in found:
                quoted = plain_text.quote(",".join(row))
                raise WordedUserError(
                    english(
                        "fleet_locations_line",
                        "{path}, line {line}: {text} is no row of a machine: write its name, "
                        "which stands there once, and a cell for each column",
                    ),
                    path=source,
                    line=rows.line_num,
                    text=quoted,
                )
            found[name] = {key: fact for key, fact in zip(names[1:], facts, strict=True) if fact}
    except csv.Error as error:
        why = f"line {rows.line_num}: {error}"
        raise WordedUserError("fleet_locations_unread", path=source, why=why) from error
    return found


def _text(path: Path, error: Callable[[str], WordedError], encoding: str = "utf-8") -> str:
    try:
        return regular_file.read(path, regular_file.SMALL_RECORD).decode(encoding)
    except OSError as trouble:
        raise error(trouble.strerror or str(trouble)) from trouble
    except UnicodeDecodeError as trouble:
        raise error("it is not UTF-8") from trouble


def of_slurm() -> tuple[str, ...]:
    """The nodes that Slurm knows. Raises WordedError."""
    argv = (command.find(_PROGRAM, _PACKAGE), *SLURM)
    done = command.run(argv, deadline=Deadline.after(_SECONDS))
    if done.returncode != 0:
        raise WordedUserError(
            english(
                "fleet_sinfo_failed",
                "sinfo cannot list the nodes ({why}): give them with --due FILE",
            ),
            why=done.last_lines(3),
        )
    return names(done.stdout, " ".join((_PROGRAM, *SLURM)))
