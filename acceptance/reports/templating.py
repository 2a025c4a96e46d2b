"""Page templates; every value is shown as harmless text on one line, and code in it as code."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from acceptance.core.language import Language
from acceptance.core.message import Message
from acceptance.reports import text as reports_text
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


class Bytecode(jinja2.BytecodeCache):
    """Compiled templates, kept where Python keeps the modules of their package, and as it does.

    Compiling all of them takes as long as a tenth of a short run.
    """

    def __init__(self) -> None:
        # The compiler calls them for what is constant in a template.
        own = (__file__, reports_text.__file__)
        self._own = "".join(Path(one).read_text(encoding="utf-8") for one in own)

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The path of a template's bytecode."""
        template = Path(filename or name)
        return cache_from_source(template.parents[1] / f"{template.name}.j2")

    def get_source_checksum(self, source: str) -> str:
        """A checksum of all that the bytecode comes from."""
        return super().get_source_checksum(source + self._own)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template's bytecode; one that is missing or damaged is compiled again."""
        with contextlib.suppress(OSError, EOFError, ValueError, pickle.UnpicklingError):
            bucket.bytecode_from_string(Path(bucket.key).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template's bytecode, where Python would keep its own."""
        place = Path(bucket.key)
        draft = place.with_suffix(f".{os.getpid()}")
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True)
                draft.write_bytes(bucket.bytecode_to_string())
                draft.replace(place)


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
        bytecode_cache=Bytecode(),
        auto_reload=False,  # a page is of one version, even if rigproof is updated meanwhile
    )
    found.filters.update(verbatim=verbatim, plain=plain, kind=lambda one: type(one).__name__)
    found.globals.update(gap=gap, MOST=MOST)
    return found
