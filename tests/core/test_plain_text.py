from __future__ import annotations

import pytest
from cases import each

from acceptance.core import plain_text
from acceptance.core.plain_text import same_text


@pytest.mark.parametrize(
    ("declared", "found", "answer"),
    [
        ("AMD Ryzen 9", "amd  RYZEN 9 ", True),
        ("AMD Ryzen 9", "AMD Ryzen 9 7950X", False),
        ("STRASSE", "straße", True),
        ("x", None, False),
        ("", None, False),
        ("", "", True),
    ],
)
def test_texts_are_compared_but_for_blanks_and_case(
    declared: str, found: str | None, answer: bool
) -> None:
    assert same_text(declared, found) is answer


@each(
    "text, limit, shown",
    [
        ("short", 5, "short"),
        (
            "RuntimeError: " + "x" * 50 + " out of memory",
            40,
            "RuntimeError: xxx ... xxxx out of memory",
        ),
        ("a" * 100, 11, "aaa ... aaa"),
    ],
)
def test_a_long_text_keeps_more_of_its_end(text: str, limit: int, shown: str) -> None:
    assert plain_text.shortened(text, limit) == shown
    assert len(shown) <= limit
