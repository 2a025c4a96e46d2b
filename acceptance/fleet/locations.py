"""What a site tells of its machines: a CSV file with a column `machine`, and one for each fact."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from acceptance.core import plain_text, regular_file
from acceptance.fleet import due
from acceptance.fleet.common_cause import SLOT
from acceptance.wording.errors import WordedError

MACHINE = "machine"


class LocationsError(WordedError):
    """The file of locations cannot be read."""


def read(path: Path) -> dict[str, dict[str, str]]:
    """The facts of each machine, such as its rack and switch; an empty cell is no fact.

    Raises LocationsError, which names the line.
    """
    source = str(path)
    try:
        text = regular_file.read(path, regular_file.SMALL_RECORD).decode("utf-8-sig")
    except OSError as error:
        raise LocationsError("fleet_locations_unread", path=source, why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise LocationsError(
            "fleet_locations_unread", path=source, why="it is not UTF-8"
        ) from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: dict[str, dict[str, str]] = {}
    try:
        names = [name.strip() for name in next(rows, [])]
        if (
            names[:1] != [MACHINE]
            or len(names) < 2
            or len(set(names)) < len(names)
            or not all(names)
        ):
            raise LocationsError("fleet_locations_head", path=source)
        if SLOT in names:
            raise LocationsError("fleet_locations_slot", path=source)
        for row in rows:
            if not any(row):
                continue
            name, *facts = (cell.strip() for cell in row)
            if len(row) != len(names) or not due.is_name(name) or name in found:
                quoted = plain_text.quote(",".join(row))
                raise LocationsError(
                    "fleet_locations_line", path=source, line=rows.line_num, text=quoted
                )
            found[name] = {key: fact for key, fact in zip(names[1:], facts, strict=True) if fact}
    except csv.Error as error:
        why = f"line {rows.line_num}: {error}"
        raise LocationsError("fleet_locations_unread", path=source, why=why) from error
    return found
