"""Signs beyond plain letters, and what stands for them on a terminal that does not draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """`degree` follows a temperature, `more` is where a text was cut, `between` parts
    neighbours, `spinner` is rich's name.
    """

    degree: str
    more: str
    between: str
    spinner: str


UNICODE = Glyphs("\u00b0C", "\u2026", " \u00b7 ", "dots")
ASCII = Glyphs("C", "...", ", ", "line")


def plain_locale(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for plain ASCII: Python writes UTF-8 there none the less (PEP
    540), and a terminal need not know it.
    """
    # The first that is set decides, as for every program (POSIX, locale).
    locale = next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environ.get(name))), ""
    )
    return locale in ("C", "POSIX")


def glyphs_for(encoding: str) -> Glyphs:
    """The signs that a stream of this encoding can carry; the spinner's are beyond every
    encoding that is not Unicode.
    """
    try:
        "".join(astuple(UNICODE)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE if encoding.lower().startswith("utf") else ASCII
