"""Non-ASCII signs, and their replacements on a terminal that cannot draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass


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
