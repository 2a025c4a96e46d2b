"""Make text from outside harmless, and signs drawable.

Output of tools, names of cards and texts of machine files are untrusted in every report. Signs that
a terminal cannot draw have replacements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass

# XML 1.0 allows no control characters but tab, line feed and carriage return, and no surrogates or
# non-characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
# Characters that reverse the reading direction would let a name rewrite its line; invisible ones
# (zero width, soft hyphens, tags) would make two names look the same. The joiners of Persian, Indic
# and emoji stay: words are written with them.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# code in a sentence, as in Markdown
CODE = re.compile(r"`([^`\n]+)`")
_DEGREES = re.compile(r"\bdegC\b")
# line ends to some readers and not to others: all become a line feed
_BREAKS = re.compile("\r\n|[\r\x85\u2028\u2029]")


def clean(text: str, limit: int = 20_000) -> str:
    """The text without terminal sequences, control characters and direction marks.

    A text of more than `limit` characters is cut, with a remark.
    """
    if len(text) <= limit and text.isprintable():
        return text  # most are; Python calls printable nothing that is looked for below
    shown = _ANSI.sub("", text[: 4 * limit])  # bounds the work on a flood
    shown = _HIDDEN.sub("\ufffd", _FORBIDDEN.sub("\ufffd", _BREAKS.sub("\n", shown)))
    # A flood of escape sequences must not hide the rest silently: a cut of the input is reported
    # too.
    whole = len(text) <= 4 * limit and len(shown) <= limit
    return shown if whole else f"{shown[:limit]}... ({len(text) - limit} more characters)"


def one_line(text: str, limit: int = 2_000) -> str:
    """The text as `clean` returns it, on one line."""
    return " ".join(clean(text, limit).split())


def quoted_code(text: str) -> str:
    """The text with code in quotation marks, for readers that show backticks as they are."""
    return CODE.sub(lambda code: f'"{code[1]}"' if "'" in code[1] else f"'{code[1]}'", text)


def degrees(text: str) -> str:
    """The text with the sign of degrees Celsius, whose name in data formats is `degC`."""
    return _DEGREES.sub("\u00b0C", text) if "degC" in text else text


def first_line(text: str) -> str:
    """The first of several lines, as it is."""
    return text.split("\n", 1)[0]


def duration(seconds: float) -> str:
    """A duration in seconds for people: `42 s`, `12 min`, `2 h 5 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """A size in bytes for people: `512 KiB`, `96.3 MiB`, `1.2 GiB`."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of a terminal.

    `degree` follows a temperature, `more` marks a cut text, `between` separates neighbours,
    `spinner` is the name of rich's spinner.
    """

    degree: str
    more: str
    between: str
    spinner: str


UNICODE = Glyphs("\u00b0C", "\u2026", " \u00b7 ", "dots")
ASCII = Glyphs("C", "...", ", ", "line")


def sentence(text: str, signs: Glyphs, limit: int = 2_000) -> str:
    """A sentence on one line of a terminal, its code in quotation marks."""
    shown = quoted_code(one_line(text, limit))
    return degrees(shown) if signs == UNICODE else shown


def plain_locale(environ: Mapping[str, str]) -> bool:
    """Whether the locale asks for plain ASCII.

    Python writes UTF-8 in such a locale (PEP 540), but the terminal may not support it.
    """
    # The first that is set decides, as POSIX says of the locale.
    locale = next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environ.get(name))), ""
    )
    return locale in ("C", "POSIX")


def glyphs_for(encoding: str) -> Glyphs:
    """The signs that a stream of this encoding can carry.

    Without a Unicode encoding these are the plain ones: no other encoding has the spinner's.
    """
    try:
        "".join(astuple(UNICODE)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE if encoding.lower().startswith("utf") else ASCII
