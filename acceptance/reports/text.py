"""Text from outside, made harmless: what a tool, a card's name or a machine file says is
untrusted in every report.
"""

from __future__ import annotations

import re

# XML 1.0 knows no other control characters than tab, line feed and carriage return, and no
# surrogates or non-characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
# Characters that turn the reading direction around would let a name rewrite the line it stands in;
# those that nobody sees (zero width, soft hyphens, tags) would make two names look like one. The
# joiners of Persian, Indic and emoji stay: words are written with them.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_BREAKS = re.compile(
    "\r\n|[\r\x85\u2028\u2029]"
)  # line ends to some readers and not to others: all become the one


def clean(text: str, limit: int = 20_000) -> str:
    """The text without terminal sequences, control characters and direction
    marks; what is cut is said.
    """
    if len(text) <= limit and text.isprintable():
        return text  # most are; Python calls printable nothing that is looked for below
    shown = _ANSI.sub("", text[: 4 * limit])  # a flood is not looked at whole
    shown = _HIDDEN.sub("\ufffd", _FORBIDDEN.sub("\ufffd", _BREAKS.sub("\n", shown)))
    # What was not looked at may be what matters: a flood of escape sequences must not hide it
    # unsaid.
    whole = len(text) <= 4 * limit and len(shown) <= limit
    return shown if whole else f"{shown[:limit]}... ({len(text) - limit} more characters)"


def one_line(text: str, limit: int = 2_000) -> str:
    """The same, on one line."""
    return " ".join(clean(text, limit).split())


def duration(seconds: float) -> str:
    """Seconds as people say them: `42 s`, `12 min`, `2 h 5 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """Bytes as people say them: `512 KiB`, `96.3 MiB`, `1.2 GiB`."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


def count_of(number: int, word: str) -> str:
    """A number of things: `1 check`, `2 checks`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
