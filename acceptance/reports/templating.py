"""Page templates; every value is shown as harmless text on one line."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from acceptance.core.message import Message
from acceptance.reports.text import one_line


def harmless(value: object) -> object:
    """The printable form of a value: untrusted text on one line, without control characters.

    Jinja escapes it afterwards. Raises TypeError for a message that nobody worded.
    """
    if isinstance(value, Message):
        raise TypeError(f"{value.code} reached a template without words")
    return value if isinstance(value, Markup | int | float) else one_line(f"{value}")


def environment(*packages: str) -> jinja2.Environment:
    """The templates of a package, and those of others that it takes parts of.

    An undefined name in a template is an error, not an empty place on the page.
    """
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a page is of one version, even if rigproof is updated meanwhile
    )
