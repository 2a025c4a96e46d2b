from __future__ import annotations

import math

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.cli.read import json_object
from acceptance.core import plain_text
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import reading
from acceptance.tools.reading import Reading, ToolOutput


@each(
    "text, expected",
    [
        ("a\r\nb\rc\nd", ("a", "b", "c", "d")),
        ("\ufeffa  \nb\t", ("a", "b")),
        ("\x1b[31mred\x1b[0m\x1b]0;title\x07 x\x1bM", ("red x",)),
        ("    a\n      b\n\n    c\n", ("a", "  b", "", "c", "")),
        ("> a\n> \n>   b", ("a", "", "  b")),
        ("> a\nb", ("> a", "b")),
        ("a\n**b c**\n**d\n", ("a", "b c", "**d", "")),
        ("a\x0cb\u2028c", ("a\x0cb\u2028c",)),
        ("", ("",)),
    ],
)
def test_lines(text: str, expected: tuple[str, ...]) -> None:
    assert plain_text.lines(text) == expected


def test_what_no_program_put_before_the_lines_is_tidied_once() -> None:
    text = "> > a\n> > b"
    assert reading.tool_lines(text) == plain_text.lines(text) == ("> a", "> b")


@pytest.mark.parametrize(
    ("length", "shown"), [(200, "x" * 200), (201, "x" * 97 + " ... " + "x" * 98)]
)
def test_a_quote_says_where_it_was_cut(length: int, shown: str) -> None:
    assert plain_text.quote("x" * length) == shown


@given(st.text())
def test_lines_holds_no_line_end(text: str) -> None:
    assert all("\n" not in line and "\r" not in line for line in plain_text.lines(text))


def test_unreadable_quotes_the_line_escaped_and_capped() -> None:
    error = UnreadableOutput("tool", "  a\x1b\tb" + "x" * 500, "a row is torn")
    assert str(error).startswith("tool: a row is torn: 'a\\x1b\\tbxxx")
    assert str(error).endswith("x'")
    assert " ... " in str(error)
    assert len(str(error)) < 250
    assert str(UnreadableOutput("tool", "", "the text is empty")) == "tool: the text is empty"


@given(st.text())
def test_a_quote_is_one_printable_line(text: str) -> None:
    assert plain_text.quote(text).isprintable()


@each("value", [math.nan, math.inf, -math.inf])
def test_a_reading_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="rate of gpu0 is not a finite number"):
        Reading("rate", "GB/s", {"gpu0": value})


@each("digits", ["9" * 400, "nan", "1,5", "x"])
def test_number_refuses(digits: str) -> None:
    with pytest.raises(UnreadableOutput, match="a number cannot be read"):
        number("tool", "the line", digits)


def test_first_line() -> None:
    assert plain_text.first_line("\n \n b\n") == " b".strip()
    assert plain_text.first_line("\n") == ""


def test_json_object_has_designs_shape() -> None:
    output = ToolOutput(
        "tool", "pass", "fine", (Reading("rate", "GB/s", {"gpu0": 1.5}),), ({"kind": "xid"},)
    )
    assert json_object(output) == {
        "tool": "tool",
        "outcome": "pass",
        "reason": "fine",
        "readings": {"rate": {"unit": "GB/s", "values": {"gpu0": 1.5}}},
        "events": [{"kind": "xid"}],
    }
    assert output.reading("rate") == {"gpu0": 1.5}
    with pytest.raises(KeyError, match="speed"):
        output.reading("speed")


def test_a_value_is_shown_in_a_line_and_what_is_nested_is_named() -> None:
    assert [plain_text.quote_value(value) for value in (None, "a\n", 1.5, [1], {"a": 1})] == [
        "None",
        r"'a\n'",
        "1.5",
        "a list",
        "an object",
    ]
