"""The key that is meant by a wrong one, beyond what a machine file has (`test_machine_errors`)."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from cases import each

from acceptance.machine.toml_place import explain


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    share: float = 0.0


class Row(msgspec.Struct, forbid_unknown_fields=True):
    limit: Inner | str | None = None
    names: tuple[str, ...] = ()


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    row: tuple[Row, ...] = ()
    inner: Inner | None = None
    more: dict[str, str] = {}
    rows: bool = False


def told(text: str) -> str:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(tomllib.loads(text), Shape)
    sentence, line = explain(str(caught.value), text, {}, "docs/x.md", Shape)
    assert line is not None
    return sentence


@each(
    "text, sentence",
    [
        ("[[row]]\nlimit = 3", "row (number 1).limit must be text in quotes or a table, not a"),
        ("[row]", "row must be a list, not a table: write [[row]], not [row]"),
        ("row = true", "row must be a list, not true or false: did you mean rows? [[row]] begins"),
        ("row = 3", "row must be a list, not a whole number: begin a table with [[row]]"),
        ("[[rows]]", "rows must be true or false, not a list: did you mean [[row]]?"),
        ("[[inner]]", "inner must be a table, not a list: write [inner], not [[inner]]"),
        (
            "[[row]]\nname = 3",
            "row (number 1).name is no key that rigproof knows: did you mean names",
        ),
        (
            "[[row]]\nlimits.share = 3",
            "row (number 1).limits is no key that rigproof knows: did you",
        ),
        ("[[row]]\nlimit.shar = 1", "did you mean share?"),
        (
            "share = 1",
            "share is no key that rigproof knows: did you mean share in [row.limit] or in [i",
        ),
        ("[[row]]\nrows = 1", "did you mean rows before the first table?"),
        ("[more]\nx = 3", "more must be text in quotes, not a whole number"),
        (
            "zebra = 1",
            "zebra is no key that rigproof knows: correct its spelling or remove it (docs/x",
        ),
        (
            "[[row]]\nnames = [3]",
            "row (number 1).names (number 1) must be text in quotes, not a whole",
        ),
    ],
)
def test_the_key_that_is_meant(text: str, sentence: str) -> None:
    assert sentence in told(text)


def test_what_is_said_of_any_text_has_no_more_words() -> None:
    assert told("[more]\nx = 3") == "more must be text in quotes, not a whole number"
