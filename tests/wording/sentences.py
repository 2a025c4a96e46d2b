"""The English of every code: of the code's `english` and `plural`, and of `derived.toml`.

    python tests/wording/sentences.py TEMPLATE CATALOGUE

Adds the sentences of data files to the template of a translation, and writes the English catalogue.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from babel.messages.extract import extract_from_dir
from babel.messages.frontend import parse_keywords
from babel.messages.pofile import read_po, write_po

import acceptance
from acceptance.expect import limit_book

PACKAGE = Path(acceptance.__file__).parent
KEYWORDS = parse_keywords(["english:1c,2", "plural:1c,2,3"])


def of_code() -> dict[str, tuple[str, ...]]:
    """The English of each code of the package. Raises ValueError for one that has it twice."""
    found: dict[str, tuple[str, ...]] = {}
    for file, line, message, _, code in extract_from_dir(
        str(PACKAGE), [("**.py", "python")], keywords=KEYWORDS
    ):
        if code is None or code in found:
            raise ValueError(f"{file}:{line}: {code} has a sentence at another place")
        found[code] = (message,) if isinstance(message, str) else tuple(message)
    return found


def of_data() -> dict[str, tuple[str, ...]]:
    """The same of data files."""
    return {code: (text,) for code, text in limit_book.book().wording.items()}


def catalogue() -> str:
    """The English catalogue."""
    return json.dumps(of_code() | of_data(), ensure_ascii=False, indent=0, sort_keys=True) + "\n"


def main(template: Path, file: Path) -> None:
    with template.open("rb") as read:
        made = read_po(read)
    for code, (text,) in of_data().items():
        made.add(text, context=code)
    with template.open("wb") as write:
        write_po(write, made, no_location=True, sort_output=True, width=0)
    file.write_text(catalogue(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
