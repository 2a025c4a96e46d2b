"""The error of a program's text that is not what it should be."""

from __future__ import annotations

import math

from acceptance.core.message import Message, Text
from acceptance.core.plain_text import quote
from acceptance.wording.errors import WordedError


class UnreadableOutput(WordedError):
    """The text is not this tool's output, or a required line has an unknown form.

    `str()` is one sentence that quotes the line. Output that was parsed but proves nothing is
    different: a ToolOutput whose outcome is `error`.
    """

    def __init__(self, tool: str, line: str, why: Text) -> None:
        quoted = quote(line) if line.strip() else None
        super().__init__("output_unreadable", tool=tool, why=why, line=quoted)


def number(tool: str, line: str, digits: str) -> float:
    """`digits` as a finite number.

    Raises UnreadableOutput otherwise; thousands of digits are no measurement.
    """
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UnreadableOutput(tool, line, Message("number_unread"))
    return value
