"""The error of a program's text that is not what it should be."""

from __future__ import annotations

import math

from acceptance.core import plain_text
from acceptance.core.message import Message, Text, Value, english
from acceptance.core.plain_text import quote
from acceptance.core.regular_file import MIB
from acceptance.wording.errors import WordedError

# Far above any line and any recording seen: gpu-burn's results of eight GPUs take 300 characters,
# the JSON of a bandwidth matrix some ten thousand. A parser takes seconds for a line this long.
LONGEST_LINE = MIB
MOST_LINES = MIB


class UnreadableOutput(WordedError):
    """The text is not this tool's output, or a required line has an unknown form.

    `str()` is one sentence that quotes the line. Output that was parsed but proves nothing is
    different: a ToolOutput whose outcome is `error`.
    """

    def __init__(self, tool: str, line: str, why: Text) -> None:
        quoted = quote(line) if line.strip() else None
        super().__init__(
            english("output_unreadable", "{tool}: {why}[: '{line}']"),
            tool=tool,
            why=why,
            line=quoted,
        )


class OutputTooLong(UnreadableOutput):
    """The text is longer than any tool prints; `str()` is one sentence with the line."""

    def __init__(self, code: str, **values: Value) -> None:
        WordedError.__init__(self, code, **values)


def require_bounded(text: str) -> None:
    """Raise OutputTooLong where a line of the text, or the number of its lines, is too great."""
    if len(text) < min(LONGEST_LINE, MOST_LINES):
        return
    count = 1 + text.count("\n") + text.count("\r") - text.count("\r\n")
    if count > MOST_LINES:
        raise OutputTooLong(
            english(
                "output_of_many_lines",
                "the text has {count} lines, and at most {most} are read: give the part that "
                "matters",
            ),
            count=count,
            most=MOST_LINES,
        )
    for at, line in enumerate(plain_text.raw_lines(text), start=1):
        if len(line) > LONGEST_LINE:
            place = {"line": at, "length": len(line), "most": LONGEST_LINE}
            raise OutputTooLong(
                english(
                    "output_line_too_long",
                    "line {line} is {length} characters long, and at most {most} are read: give "
                    "the program's own output",
                ),
                **place,
            )


def number(tool: str, line: str, digits: str) -> float:
    """`digits` as a finite number.

    Raises UnreadableOutput otherwise; thousands of digits are no measurement.
    """
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UnreadableOutput(
            tool, line, Message(english("number_unread", "a number cannot be read"))
        )
    return value
