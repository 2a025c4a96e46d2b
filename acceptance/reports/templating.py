"""Page templates; every value is shown as harmless text on one line, and code in it as code."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from acceptance.core.language import Language
from acceptance.core.message import Message
from acceptance.reports.text import CODE, degrees, one_line, quoted_code

MOST = 200  # lines of a list on a page


def harmless(value: object) -> object:
    """The printable form of a value: untrusted text on one line, without control characters.

    Text between backticks becomes code; Jinja escapes everything else afterwards. Raises TypeError
    for a message that nobody worded.
    """
    if isinstance(value, Message):
        raise TypeError(f"{value.code} reached a template without words")
    if isinstance(value, Markup | int | float):
        return value
    text = degrees(one_line(f"{value}"))
    if "`" not in text:
        return text
    pieces = enumerate(CODE.split(text))  # every second one is code
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else piece for place, piece in pieces
    )


def verbatim(value: object) -> Markup:
    """Text that is not ours, such as a command or a line of the kernel, as it is, on one line."""
    return Markup("{}").format(one_line(f"{value}"))


def plain(value: object) -> Markup:
    """Text for a place that holds no elements, such as a line of a picture."""
    return Markup("{}").format(degrees(quoted_code(one_line(f"{value}"))))


def gap(language: Language) -> Markup:
    """The blank after a label or a sentence; Chinese has none."""
    return Markup(" " if language("{label}: {text}", label="", text="").endswith(" ") else "")


def environment(*packages: str) -> jinja2.Environment:
    """The templates of a package, and those of others that it takes parts of.

    An undefined name in a template is an error, not an empty place on the page.
    """
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a page is of one version, even if rigproof is updated meanwhile
    )
    found.filters.update(verbatim=verbatim, plain=plain, kind=lambda one: type(one).__name__)
    found.globals.update(gap=gap, MOST=MOST)
    return found
