"""Mutations of the tables that judge: each limit, each weight of an event, taken away or turned
round.

Pure: text in, texts out.

The tables are lines of `key = value`, so that a mutation is an edit of one line, or of the stretch
of lines that one entry takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BOUND = re.compile(r"^(?P<key>low|high|warn_low|warn_high) = (?P<value>[-+0-9.e_]+)(?P<rest>.*)$")
_OTHER_END = {"low": "high", "high": "low", "warn_low": "warn_high", "warn_high": "warn_low"}
_LOOSENED = 10.0
# Limits of an architecture: shares of the peak, several on a line.
_SHARES = re.compile(r"^(?:short|sustained) = \{|^copy = ")
_SHARE = re.compile(r"(?P<key>\w+) = (?P<value>0?\.\d+)")
_WEIGHT = re.compile(
    r'^(?P<before>severity = |\d+ = )"(?P<word>fatal|error|warning|info)"(?P<rest>.*)$'
)
_FLAG = re.compile(r"^(?P<key>hardware|by_text) = (?P<value>true|false)$")
_CODE = re.compile(r"\b\d{5}\b(?:, |,)?")


@dataclass(frozen=True, slots=True)
class DataMutation:
    """One change of a table: the line it begins on and that line, the change in words, and the
    whole table after it.
    """

    line: int
    text: str
    change: str
    table: str


def limit_mutations(text: str) -> Iterator[DataMutation]:
    """Every limit gone; every bound at the other end, and ten times looser (ten, where it is
    none); every remark gone.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line == "[[limit]]":
            end = next(
                (n for n in range(number + 1, len(lines)) if lines[n].startswith("[")), len(lines)
            )
            name = next((one for one in lines[number:end] if one.startswith("measurement")), "")
            yield _without(lines, number, end, name)
        elif line == "[measurement.limit]":
            yield _unlimited(lines, number)
        elif bound := _BOUND.match(line):
            key, value, rest = bound["key"], float(bound["value"]), bound["rest"]
            yield _edit(lines, number, f"{_OTHER_END[key]} = {bound['value']}{rest}")
            looser = _looser(value, low=key.endswith("low"))
            yield _edit(lines, number, f"{key} = {looser:g}{rest}")
            if key.startswith("warn"):
                yield _edit(lines, number, "")
        elif _SHARES.match(line):
            for share in _SHARE.finditer(line):
                looser = float(share["value"]) / _LOOSENED
                begin, end = share.span("value")
                yield _edit(lines, number, f"{line[:begin]}{looser:g}{line[end:]}")


def _unlimited(lines: list[str], number: int) -> DataMutation:
    """An entry of a family whose limit, in the table that begins here, is gone."""
    entry = max(place for place in range(number) if lines[place] == "[[measurement]]")
    end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith("[")), len(lines))
    named = re.search(r'"(\w+)"', "\n".join(lines[entry:number]))
    assert named is not None, "an entry begins with its names"
    without = [*lines[: entry + 1], 'no_limit = "gone"', *lines[entry + 1 : number], *lines[end:]]
    return DataMutation(
        number + 1, lines[number], f"limit of {named[1]} -> gone", "\n".join(without)
    )


def _looser(value: float, *, low: bool) -> float:
    """Ten times looser.

    Whole numbers stay whole: a count of 0.1 is no other limit than one of 1.
    """
    if not low:
        return value * _LOOSENED or _LOOSENED
    return float(value // _LOOSENED) if value == int(value) else value / _LOOSENED


def weight_mutations(text: str) -> Iterator[DataMutation]:
    """Every severity info, and info fatal; every flag turned round or gone; every code of a
    group gone; every entry gone.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if weight := _WEIGHT.match(line):
            word = "fatal" if weight["word"] == "info" else "info"
            yield _edit(lines, number, f'{weight["before"]}"{word}"{weight["rest"]}')
        elif flag := _FLAG.match(line):
            yield _edit(
                lines, number, f"{flag['key']} = {'false' if flag['value'] == 'true' else 'true'}"
            )
        elif line.startswith("[[message]]") or re.match(r"\[s?xid\.\d+\]", line):
            end = next(
                (n for n in range(number + 1, len(lines)) if lines[n].startswith("[")), len(lines)
            )
            yield _without(lines, number, end, line)
        elif line.startswith("codes = [") or re.match(r"^    \d{5},", line):
            for code in _CODE.finditer(line):
                yield _edit(
                    lines,
                    number,
                    line[: code.start()] + line[code.end() :],
                    f"{code[0].strip(', ')} -> gone",
                )
        elif re.match(r"^(?:count|seconds) = ", line):
            key, _, value = line.partition(" = ")
            yield _edit(lines, number, f"{key} = {float(value) * _LOOSENED:g}")


def _edit(lines: list[str], number: int, new: str, change: str = "") -> DataMutation:
    told = change or f"{lines[number]} -> {new or 'gone'}"
    return DataMutation(
        number + 1, lines[number], told, "\n".join([*lines[:number], new, *lines[number + 1 :]])
    )


def _without(lines: list[str], begin: int, end: int, name: str) -> DataMutation:
    return DataMutation(begin + 1, name, f"{name} -> gone", "\n".join(lines[:begin] + lines[end:]))
