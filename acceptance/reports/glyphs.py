"""Non-ASCII signs, and their replacements on a terminal that cannot draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from acceptance.reports.text import degrees, one_line, quoted_code


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
