"""The tables of docs/limits.md that follow from `fixtures/derived.toml`.

python tests/expect/limits_page.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from acceptance.expect import limit_book

PAGE = Path(__file__).resolve().parents[2] / "docs/limits.md"
_HEADS = {
    "low": "| measurements | floor | where the number comes from |\n",
    "high": "| measurements | ceiling | where the number comes from |\n",
    "figure": "| figure | value | where it comes from |\n",
}


def rows(kind: str) -> Iterator[tuple[str, str, str]]:
    """The rows of a table: of floors (`low`), ceilings (`high`) or figures."""
    book = limit_book.book()
    if kind == "figure":
        for name in book.figure.__struct_fields__:
            one = getattr(book.figure, name)
            yield f"`{name}`", f"{one.value:,g} {one.unit}", one.basis
        return
    for row in book.derived:
        number = getattr(row, kind)
        if number is None:
            continue
        basis = row.basis
        for of, names in row.of.items():
            yield ", ".join(map(_name, names)), f"{number:g} x {book.quantity[of]}", basis
            basis = "the same"


def _name(pattern: str) -> str:
    return f"`{pattern.replace('*', '<...>')}`"


def current(text: str) -> str:
    """The page with the tables as they are to be."""
    for kind, head in _HEADS.items():
        table = head + "|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows(kind))
        text = re.sub(re.escape(head) + r"(?:\|.*\n)+", lambda _, own=table: own, text)
    return text


def main() -> None:
    """Bring the page up to date."""
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
