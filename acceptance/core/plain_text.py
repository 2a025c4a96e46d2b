"""Clean foreign text (ANSI escapes, line ends, indentation) and quote it in messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTE_LIMIT = 200
_CUT = " ... "
# ECMA-48: CSI sequences (colours, cursor), OSC sequences (titles), then the two-character ones.
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BOLD = re.compile(r"^(\s*)\*\*(.*)\*\*$")


def shortened(text: str, limit: int) -> str:
    """The text in at most `limit` characters.

    Its beginning and its end stay: errors tell their cause last.
    """
    if len(text) <= limit:
        return text
    head = (limit - len(_CUT)) // 2
    return f"{text[:head].rstrip()}{_CUT}{text[len(text) - (limit - len(_CUT) - head) :].lstrip()}"


def quote(line: str, limit: int = _QUOTE_LIMIT) -> str:
    """A line for use in a message: at most `limit` characters of its beginning and its end, and
    control characters escaped."""
    shown = line.strip()
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in shortened(shown, limit)
    )


def quote_value(value: object) -> str:
    """A JSON value for use in a message.

    Objects and lists are only named: they may be too deep to write out.
    """
    return (
        "an object"
        if isinstance(value, dict)
        else "a list"
        if isinstance(value, list)
        else quote(repr(value))
    )


def raw_lines(text: str) -> list[str]:
    r"""The lines of a text as they are; `\r\n`, `\r` and `\n` end a line."""
    return _LINE_END.split(text)


def lines(text: str) -> tuple[str, ...]:
    r"""The lines of a text, without what terminals, mails and forums add.

    `\r\n`, `\r` and `\n` end a line (progress is drawn with `\r`). str.splitlines would also split
    at form feeds and at U+2028, which occur inside lines. ANSI sequences, a byte order mark and
    trailing blanks are removed. So are three habits of pasted text, because people send recordings
    from mails, issues and forums: `> ` before *every* line, an indentation common to *every* line,
    and `**` around a line. A mark on only some lines stays: it belongs to the text.
    """
    return _tidied(raw_lines(text.removeprefix("\ufeff")))


def _tidied(raw: Sequence[str]) -> tuple[str, ...]:
    found = [(_ANSI.sub("", line) if "\x1b" in line else line).rstrip() for line in raw]
    inked = [line for line in found if line]
    if inked and all(line.lstrip().startswith(">") for line in inked):
        found = [line.lstrip()[1:] for line in found]
        inked = [line for line in found if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in inked), default=0)
    return tuple(
        (_BOLD.sub(r"\1\2", line[indent:]) if line.endswith("**") else line[indent:]).rstrip()
        for line in found
    )


def first_line(text: str) -> str:
    """The first line that is not blank, for a message; empty when there is none."""
    return next((line for line in lines(text) if line.strip()), "")


def same_text(text: str, found: str | None) -> bool:
    """Whether an observed text equals the declared one, ignoring blanks and case.

    A missing text never equals it.
    """
    return (
        found is not None
        and " ".join(found.split()).casefold() == " ".join(text.split()).casefold()
    )
