from __future__ import annotations

import pytest

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
