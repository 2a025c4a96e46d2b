from __future__ import annotations

import tomllib

import msgspec
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import assert_raises
from test_machine_file import lines
from thoroughness import examples

from acceptance.machine import toml_place
from acceptance.machine.toml_place import Path, explain, line_of, places, spell, twice

TEXT = """\
# [comment] a = 1
top = 1
"quoted.key" . 'x' = [ # comment with ] and "
  1, [2,
  3], { a = "]", b.c = 1979-05-27 07:32:00 },
]
[table]
text = \"\"\"
[not.a.table]
no = 'key' \\\"\"\" "\"\"\"\"
literal = '''a
b = ''c'''
[ deep . "er table" ] # header
k = 1
[[list]]
[[list]]
k = 2
[list.inner]
k = 3
[[list.many]]
[[list.many]]
k = 4
[deep]
"""


def all_paths(value: object, path: Path = ()) -> set[Path]:
    found = {path} if path else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= all_paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found |= all_paths(inner, (*path, index))
    return found


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_place_of_a_text(end: str) -> None:
    text = TEXT.replace("\n", end)
    assert places(text) == {
        ("top",): 2,
        ("quoted.key",): 3,
        ("quoted.key", "x"): 3,
        ("quoted.key", "x", 0): 4,
        ("quoted.key", "x", 1): 4,
        ("quoted.key", "x", 1, 0): 4,
        ("quoted.key", "x", 1, 1): 5,
        ("quoted.key", "x", 2): 5,
        ("quoted.key", "x", 2, "a"): 5,
        ("quoted.key", "x", 2, "b"): 5,
        ("quoted.key", "x", 2, "b", "c"): 5,
        ("table",): 7,
        ("table", "text"): 8,
        ("table", "literal"): 11,
        ("deep",): 23,
        ("deep", "er table"): 13,
        ("deep", "er table", "k"): 14,
        ("list",): 15,
        ("list", 0): 15,
        ("list", 1): 16,
        ("list", 1, "k"): 17,
        ("list", 1, "inner"): 18,
        ("list", 1, "inner", "k"): 19,
        ("list", 1, "many"): 20,
        ("list", 1, "many", 0): 20,
        ("list", 1, "many", 1): 21,
        ("list", 1, "many", 1, "k"): 22,
    }
    assert set(places(text)) == all_paths(tomllib.loads(text))


def test_the_innermost_table_stands_in_for_a_key_that_is_missing() -> None:
    assert line_of(TEXT, ["list", 1, "many", 0, "absent"]) == 20
    assert line_of(TEXT, ["list", 1, "absent", "x"]) == 16
    assert line_of(TEXT, ["absent"]) is None
    assert line_of("", []) is None


@each(
    "text",
    [
        "",
        "\n\n",
        "a = 1",
        "a = 1 # b",
        "[a]",
        "a = []",
        "a = {}\n",
        'a = "#"',
        "a = '''''''",
        'a = """"b""""',
    ],
)
def test_texts_that_end_anywhere(text: str) -> None:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(places(text)) == all_paths(table)


@settings(max_examples=examples(200))
@given(st.lists(lines, max_size=8), st.sampled_from(["\n", "\r\n", " # [x] = 1\n", "\n\n  "]))
def test_the_walk_finds_what_the_parser_finds(found: list[str], end: str) -> None:
    text = end.join(found)
    try:
        table = tomllib.loads(text)
    except ValueError:
        return
    assert set(places(text)) == all_paths(table)
    assert twice(text) is None


@each(
    "text, found",
    [
        ("a = 1\nb = 2\na = 3", (("a",), 1, 3)),
        ("a.b = 1\na.b = 2", (("a", "b"), 1, 2)),
        ("a.b = 1\na = 2", (("a",), 1, 2)),
        ("a = 1\n[a]", (("a",), 1, 2)),
        ("[a]\n[b]\n[a]", (("a",), 1, 3)),
        ("[a.b]\n[a]\n[a]", (("a",), 2, 3)),
        ("[a]\n[[a]]", (("a",), 1, 2)),
        ("[[a]]\n[a]", (("a",), 1, 2)),
        ("a = []\n[[a]]", (("a",), 1, 2)),
        ("[[a]]\nb = 1\n[[a]]\nb = 1\nb = 2", (("a", 1, "b"), 4, 5)),
        ("[[a]]\n[a.b]\n[a.b]", (("a", 0, "b"), 2, 3)),
        ("a = { b = 1,\tb = 2 }", (("a", "b"), 1, 1)),
        ('a = 1\nb = """\n"""\n"a" = 3', (("a",), 1, 4)),
        # a fault of another kind
        ("a = 1\n[b", None),
        ("a = [1", None),
        ("a b = 1\n'", None),
        ("=", None),
    ],
)
def test_what_is_given_twice(text: str, found: tuple[Path, int, int] | None) -> None:
    assert_raises(tomllib.TOMLDecodeError, tomllib.loads, text)
    assert twice(text) == found


def test_a_key_as_people_count() -> None:
    assert spell(["limit", 1, "unit"]) == "limit (number 2).unit"
    assert spell(["memory", "dimm", 0]) == "memory.dimm (number 1)"
    assert spell(["a b", "c.d"]) == '"a b"."c.d"'
    assert spell([]) == ""


@each(
    "message, sentence, line",
    [
        (
            "Object contains unknown field `x - at `$y`` - at `$.table`",
            'table."x - at `$y`" is no key',
            7,
        ),
        ("Object contains unknown field `a\nb`", r'"a\nb" is no key', None),
        (
            "Expected `int | str | null`, got `bool` - at `$.list[1].k`",
            "list (number 2).k must be a whole number or text in quotes",
            17,
        ),
        ("Something new - at `$.table.text`", "table.text: something new", 8),
        ("Something new", ": something new", None),
        (
            "Expected `str`, got `datetime` - at `$.top`",
            "top must be text in quotes, not a date",
            2,
        ),
        ("Expected `str`, got `date` - at `$.top`", "top must be text in quotes, not a date", 2),
        ("Expected `str`, got `time` - at `$.top`", "top must be text in quotes, not a time", 2),
        ("Expected `int` >= 1 - at `$.top`", "top must be at least 1", 2),
    ],
)
def test_messages_are_explained(message: str, sentence: str, line: int | None) -> None:
    told, place = explain(message, TEXT, {})
    assert told.startswith(sentence)
    assert place == line


LONG = {
    "a line": ("schema = 1\n# " + "x" * toml_place.LONGEST_LINE, 2, "characters in a line"),
    "a key": ("schema = 1\n\n" + "a." * 100_000 + "a = 1", 3, "characters in a line"),
    "dots": ("a." * (toml_place.MOST_DOTS + 1) + "a = 1", 1, "dots in a key"),
    "a header": ("[" + "a." * (toml_place.MOST_DOTS + 1) + "a]", 1, "dots in a key"),
    "an inline table": ("a = {" + "b . " * (toml_place.MOST_DOTS + 1) + "b = 1}", 1, "dots in a"),
}


@pytest.mark.parametrize(("text", "line", "what"), LONG.values(), ids=LONG)
def test_what_is_too_long_is_not_parsed(text: str, line: int, what: str) -> None:
    with pytest.raises(toml_place.TomlError, match=rf"{what}.*, column 1") as caught:
        toml_place.loads(text)
    assert caught.value.line == line
    assert toml_place.twice(text) is None


def test_the_longest_line_and_key_that_are_read() -> None:
    key = "a." * toml_place.MOST_DOTS + "a"
    numbers = f"[{', '.join(['1.5'] * 1000)}]"
    text = f"{key} = 1\nsaid = '{'. ' * 99}'\nlist = {numbers}\n#".ljust(
        toml_place.LONGEST_LINE, "x"
    )
    assert toml_place.loads(text)["list"] == [1.5] * 1000


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
