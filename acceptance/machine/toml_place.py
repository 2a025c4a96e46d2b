"""The lines of keys in a TOML text, and errors of such a text in words.

The standard parser gives values without their lines.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from acceptance.core import nearest, parts
from acceptance.core.regular_file import KIB

Path = tuple[str | int, ...]
_Shape = TypeVar("_Shape")

# Far above any line that people write, and any key. Time and memory of the standard parser grow
# with the square of the number of dots in a key: some MiB of them take minutes and all memory.
LONGEST_LINE = 16 * KIB
MOST_DOTS = 16
# A part of a line, and the `=` behind a key. The keys of an inline table stand behind its brace or
# a comma.
_PART = re.compile(r"([^={,]+)(=?)")

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a date",
    "time": "a time",
}
_BOUNDS = {">=": "at least", ">": "more than", "<=": "at most"}
_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t]+|\#[^\n]*)
    |(?P<newline>\r?\n)
    |(?P<text>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*')
    |(?P<other>[\[\]{},=.]|[^\s\[\]{},=.#"']+)
    """,
    re.DOTALL | re.VERBOSE,
)


class TomlError(Exception):
    """A TOML text is wrong: one sentence with the cure, and the line, where it is known."""

    def __init__(self, line: int | None, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


class _Places:
    """The line of every table, key and list element.

    The TOML text must be valid: the standard parser has accepted it; or valid but for one key or
    table that is given twice, which `twice` has, with its second line. Raises IndexError for any
    other.
    """

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self.twice: tuple[Path, int] | None = None
        self._implied: set[Path] = set()  # tables that only a header below them has named
        self._members: dict[Path, int] = {}  # how many `[[header]]` each list of tables has had
        self._tokens: list[tuple[str, int]] = []
        self._next = 0
        line = 1
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "blank":
                self._tokens.append(("\n" if match.lastgroup == "newline" else match[0], line))
            line += match[0].count("\n")
        table: Path = ()
        while self._peek():
            if self._peek() == "\n":
                self._take()
            elif self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _is_inside(self, closing: str) -> bool:
        """Whether more comes before the closing bracket.

        Consumes line ends and commas, and then the closing bracket if it is next.
        """
        while self._peek() in ("\n", ","):
            self._take()
        if self._peek() != closing:
            return True
        self._take()
        return False

    def _key(self) -> list[str]:
        names = []
        while True:
            name = self._take()
            names.append(tomllib.loads(f"name = {name}")["name"] if name[0] in "\"'" else name)
            if self._peek() != ".":
                return names
            self._take()

    def _header(self) -> Path:
        line = self._tokens[self._next][1]
        brackets = 0
        while self._peek() == "[":
            self._take()
            brackets += 1
        path: Path = ()
        for name in self._key():
            if path in self._members:  # a key below a list of tables belongs to its last member
                path = (*path, self._members[path] - 1)
            path = (*path, name)
            if path not in self.lines:
                self._implied.add(path)
            self.lines.setdefault(path, line)
        if path not in self._implied and not (brackets == 2 and path in self._members):
            self._given(path, line)
        elif brackets == 1:
            self.lines[path] = line
        self._implied.discard(path)
        if brackets == 2:
            self._members[path] = self._members.get(path, 0) + 1
            path = (*path, self._members[path] - 1)
            self.lines[path] = line
        for _ in range(brackets):
            self._take()
        return path

    def _given(self, path: Path, line: int) -> None:
        """Note what is given a second time; the first such is what the standard parser refused."""
        if self.twice is None and path in self.lines:
            self.twice = path, line

    def _pair(self, table: Path) -> None:
        line, path = self._tokens[self._next][1], table
        *tables, name = self._key()
        for one in tables:
            path = (*path, one)
            self.lines.setdefault(path, line)
        path = (*path, name)
        self._given(path, line)
        self.lines.setdefault(path, line)
        self._take()
        self._value(path)

    def _value(self, path: Path) -> None:
        self.lines.setdefault(path, self._tokens[self._next][1])
        opening = self._take()
        if opening == "[":
            index = 0
            while self._is_inside("]"):
                self._value((*path, index))
                index += 1
        elif opening == "{":
            while self._is_inside("}"):
                self._pair(path)
        else:
            while self._peek() not in ("\n", ",", "]", "}", ""):
                self._take()


def _too_long(text: str) -> str | None:
    """What is wrong with the first line that is too long, or may hold too long a key."""
    for number, line in enumerate(text.split("\n"), start=1):
        header = line.lstrip().startswith("[")
        keys = (part for part, end in _PART.findall(line) if end or header)
        dots = max((key.count(".") for key in keys), default=0)
        for count, most, what in (
            (len(line), LONGEST_LINE, "characters in a line"),
            (dots, MOST_DOTS, "dots in a key"),
        ):
            if count > most:
                return f"{count} {what}, and at most {most} are read (at line {number}, column 1)"
    return None


def loads(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table of a stranger's TOML text. Raises TomlError."""
    try:
        if (why := _too_long(text)) is not None:
            raise tomllib.TOMLDecodeError(why)
        return tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        at = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
        line = int(at[2]) if at and at[2] else text.count("\n") + 1
        if again := twice("\n".join(text.split("\n")[:line])):
            path, first, second = again
            sentence = f"{spell(path)} is given twice, first in line {first}: keep one of them"
            raise TomlError(second, sentence) from error
        what = f"{at[1]}, column {at[3]}" if at and at[3] else str(error)
        sentence = f"is not valid TOML ({what}): correct it there, or before"
        raise TomlError(line, sentence) from error
    except RecursionError as error:
        sentence = "is nested too deeply: such a file has tables in tables, no more"
        raise TomlError(None, sentence) from error
    except ValueError as error:  # a number of more digits than Python reads
        most = sys.get_int_max_str_digits()
        found = re.search(f"[0-9_]{{{most + 1}}}", text)
        place = text.count("\n", 0, found.start()) + 1 if found else None
        raise TomlError(place, f"a number of more than {most} digits: correct it") from error


def convert(
    table: Mapping[str, Any],
    text: str,
    shape: type[_Shape],
    forms: Mapping[str, str] = MappingProxyType({}),
    page: str = "docs/machine-files.md",
    keys: type[Any] | None = None,
) -> _Shape:
    """The table of a text as a value of this type.

    `forms`, `page` and `keys` are as for `explain`: without other `keys` those of the type. Raises
    TomlError, from msgspec's own error.
    """
    try:
        return msgspec.convert(table, shape, dec_hook=parts.decode)
    except msgspec.ValidationError as error:
        sentence, line = explain(str(error), text, forms, page, keys or shape)
        raise TomlError(line, sentence) from error


def places(text: str) -> dict[Path, int]:
    """The line of every table, key and list element of a valid TOML text.

    The path of each is its key: `("limit", 1, "unit")`.
    """
    return _Places(text).lines


def twice(text: str) -> tuple[Path, int, int] | None:
    """The key or table that a text gives twice, and both its lines; None where it gives none so.

    The text is what the standard parser refused, up to the end of the line at fault.
    """
    if _too_long(text) is not None:
        return None
    try:
        found = _Places(text)
    except (IndexError, tomllib.TOMLDecodeError):
        return None
    if found.twice is None:
        return None
    path, line = found.twice
    return path, found.lines[path], line


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line of the key at `path` in a valid TOML text.

    Where it is missing, the line of the innermost table around it; else None.
    """
    lines = places(text)
    return next(
        (lines[tuple(path[:end])] for end in range(len(path), 0, -1) if tuple(path[:end]) in lines),
        None,
    )


def spell(path: Sequence[str | int]) -> str:
    """A key as people count: `limit (number 2).unit` for `limit[1].unit`."""
    plain = re.compile(r"[A-Za-z0-9_-]+")
    return "".join(
        f" (number {part + 1})"
        if isinstance(part, int)
        else f".{part if plain.fullmatch(part) else json.dumps(part)}"
        for part in path
    ).lstrip(".")


def _value(text: str, path: Sequence[str | int]) -> Any:
    """What is at `path` in a valid TOML text."""
    value: Any = tomllib.loads(text)
    for part in path:
        value = value[part]
    return value


def past_a_bound(message: str) -> bool:
    """Whether a msgspec error is about a number that is too small or too large."""
    return re.match(r"Expected `\w+` [<>]", message) is not None


def explain(
    message: str,
    text: str,
    forms: Mapping[str, str],
    page: str = "docs/machine-files.md",
    shape: type[Any] | None = None,
) -> tuple[str, int | None]:
    """A msgspec error as one sentence for the user, and the line of the key.

    `message` is msgspec's own, `text` the valid TOML text. `forms` gives the required form of some
    keys, by their own name (`link_gen`) or with their table (`gpu_pair.path`); `page` has all keys.
    `shape` is the type that the text is read as: with it, the sentence names the key that is meant.
    """
    from acceptance.machine import toml_keys  # only for somebody's slip

    what, _, pointer = (
        message.rpartition(" - at `$")
        if re.search(r" - at `\$[\w.\[\]]*`$", message)
        else (message, "", "")
    )
    path: list[str | int] = [
        int(i) if i else name for name, i in re.findall(r"(\w+)|\[(\d+)\]", pointer)
    ]
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL)
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    expected = re.fullmatch(r"Expected `(.*)`, got `(.*)`", what)
    bound = re.fullmatch(r"Expected `\w+` (>=|>|<=) (.*)", what)
    if absent := unknown or missing:
        path.append(absent[1])
    key = spell(path)
    table = ".".join(part for part in path if isinstance(part, str))
    if unknown:
        meant = toml_keys.unknown(shape, path, _value(text, path)) if shape else None
        cure = meant or f"correct its spelling or remove it ({page})"
        sentence = f"{key} is no key that rigproof knows: {cure}"
    elif missing:
        sentence = f"{key} is missing: add it"
    elif form := forms.get(table) or (forms.get(str(path[-1])) if path else None):
        sentence = f"{key} must be {form}"
    elif expected:
        wanted = " or ".join(
            _TYPES.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null"
        )
        # any other number is named itself, because a whole number is one too
        given = str(_value(text, path)) if expected[2] == "float" else ""
        sentence = f"{key} must be {wanted}, not {given or _TYPES.get(expected[2], expected[2])}"
        sentence += toml_keys.misplaced(shape, path, _value(text, path)) if shape and path else ""
    elif bound:
        sentence = f"{key} must be {_BOUNDS[bound[1]]} {float(bound[2]):g}"
    elif fewest := re.fullmatch(r"Expected `array` of length >= (\d+)", what):
        sentence = (
            f"{key} must have at least {fewest[1]} {'entry' if fewest[1] == '1' else 'entries'}"
        )
    elif what == "Expected `str` of length >= 1":
        sentence = f"{key} is empty: fill it in or remove it"
    elif shape and path and (words := toml_keys.choices(shape, path)):
        text_given = str(_value(text, path))
        meant = nearest.cure(text_given, words, f"one of {', '.join(words)}")
        sentence = f"{key} {text_given!a} is no such word: {meant}"
    else:
        sentence = f"{key}: {what[0].lower()}{what[1:]}"
    return sentence, line_of(text, path)
