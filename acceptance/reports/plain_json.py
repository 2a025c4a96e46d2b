"""JSON that is safe to print on a terminal.

Characters that a terminal would obey or hide are escaped; the values stay the same.
"""

from __future__ import annotations

import json
import re

import msgspec

from acceptance.journal.segment import encoded

# JSON itself escapes only the first 32 control characters; DEL, the 8-bit ones and direction marks
# stay.
_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]+")


def _escaped(letters: str) -> str:
    return json.dumps(letters)[1:-1].replace("\x7f", "\\u007f")  # DEL is ASCII, and json leaves it


def render(value: object, encoding: str = "utf-8") -> bytes:
    """A value as indented JSON with a final line end.

    `encoding` is that of the terminal. If it is not UTF-8, the result is ASCII: one byte of a
    letter in UTF-8 may be a control character there.
    """
    text = msgspec.json.format(encoded(value), indent=2).decode("utf-8")
    utf_8 = encoding.lower().replace("-", "").replace("_", "") == "utf8"
    escaped = _NOT_ASCII.sub(
        lambda found: found[0] if utf_8 and found[0].isprintable() else _escaped(found[0]), text
    )
    return escaped.encode("utf-8") + b"\n"
