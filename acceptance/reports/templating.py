"""Templates of pages: whatever a value holds, the page shows it as harmless text on one line."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from acceptance.reports.text import one_line


def harmless(value: object) -> object:
    """What a page may show of any value: untrusted text on one line, without control characters.

    Jinja escapes it after that.
    """
    return value if isinstance(value, Markup | int | float) else one_line(f"{value}")


def environment(package: str) -> jinja2.Environment:
    """The templates of a package; a name that was not given to one is an error, and no empty
    place on the page.
    """
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a page is of one version, though rigproof be updated meanwhile
    )
