"""gpu-burn's progress lines, column by column, and what may stand between them.

One line is redrawn with a carriage return whenever anything happened on any GPU:
`10.0%  proc'd: 281 (51500 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 0   temps: 53 C - --   power: 600 W - 601 W`. Terminals clip it or
fold it, logs join it with its neighbours, versions before 2018 put `/` between the columns and show no rate, later ones end with power.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.tools import reading
from acceptance.tools.reading import UnreadableOutput

TOOL = "gpu-burn"
DIED = -1
# A C int: sums of wrong elements pass its end within seconds on a card whose every result is wrong.
_INT_RANGE = 2**32

_START = re.compile(r"(?<![\d.])(?P<percent>\d{1,3}\.\d)%\s+proc['\u2019\u00b4`]d:")
_DONE = re.compile(r"\s*(?P<done>-?\d+)\s*(?:\(\s*(?P<rate>\d+)\s*Gflop/s\s*\))?")
_ERRORS = re.compile(r"\s*(?P<errors>-?\d+)\s*(?P<note>\((?:WARNING|DIED)!\))?")
_TEMPERATURE = re.compile(r"\s*(?:(?P<celsius>\d+)\s*°?\s*C\b|--)")
_BETWEEN = re.compile(r"\s*(?:-(?=\s)|/)\s*")
_LABEL = {"errors": re.compile(r"\s*errors:"), "temps": re.compile(r"\s*temps:")}
# What a clipped line may end with, once digits and brackets are off.
_CLIPPED_WORDS = ("Gflop/s", "errors:", "WARNING!", "DIED!", "temps:")


@dataclass(frozen=True, slots=True)
class Column:
    """One GPU in one progress line. None is what the line does not show.

    `done`: products so far (-1: its process died); `rate`: GFLOP/s of the last interval; `errors`: wrong elements since the last 10 %
    summary, as printed; `temperature`: degC.
    """

    done: int | None = None
    rate: float | None = None
    errors: int | None = None
    died: bool = False
    temperature: float | None = None

    def wrong(self) -> int | None:
        """The wrong elements, of a GPU that lives: a negative count ran over the end of an int and is set right."""
        if self.died or self.errors is None:
            return None
        return self.errors if self.errors >= 0 else self.errors + _INT_RANGE


@dataclass(frozen=True, slots=True)
class Line:
    """One progress line at `percent` of the time. `whole`: each of its columns shows its products and its errors."""

    percent: float
    columns: tuple[Column, ...]
    whole: bool


def read(text: str) -> tuple[tuple[Line, ...], str]:
    """The progress lines of a text, and the text without them. Raises UnreadableOutput for a line that is neither whole nor clipped."""
    starts = list(_START.finditer(text))
    found: list[Line] = []
    rest = [text[: starts[0].start()] if starts else text]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=False):
        line, stop = _line(text[match.start() : end], match.end() - match.start(), match["percent"])
        found.append(line)
        rest.append(text[match.start() + stop : end])
    return tuple(found), "\n".join(rest)


def _line(piece: str, position: int, percent: str) -> tuple[Line, int]:
    """One line that begins `piece`, and where in the piece it ends."""
    quoted = piece.partition("\n")[0]
    done, position = _values(_DONE, piece, position)
    errors: list[re.Match[str]] = []
    temperatures: list[re.Match[str]] = []
    if label := _LABEL["errors"].match(piece, position):
        errors, position = _values(_ERRORS, piece, label.end())
        if label := _LABEL["temps"].match(piece, position):
            temperatures, position = _values(_TEMPERATURE, piece, label.end())
        else:
            position = _clip(piece, position, quoted)
    else:
        position = _clip(piece, position, quoted)
    if len(errors) > len(done):
        raise UnreadableOutput(TOOL, quoted, "a progress line has more error counts than GPUs")
    rated = any(match["rate"] for match in done)
    whole = 0 < len(done) == len(errors) and all(bool(match["rate"]) is rated for match in done)
    columns = tuple(
        _column(
            quoted,
            match,
            errors[index] if index < len(errors) else None,
            temperatures[index] if index < len(temperatures) else None,
            cut=not whole and not match["rate"],
        )
        for index, match in enumerate(done)
    )
    return Line(reading.number(TOOL, quoted, percent), columns, whole), position


def _values(pattern: re.Pattern[str], piece: str, position: int) -> tuple[list[re.Match[str]], int]:
    """The values of one field, and where they end."""
    found: list[re.Match[str]] = []
    match = pattern.match(piece, position)
    while match is not None:
        found.append(match)
        position = match.end()
        between = _BETWEEN.match(piece, position)
        if between is None:
            break
        position = between.end()
        match = pattern.match(piece, position)
    return found, position


def _clip(piece: str, position: int, quoted: str) -> int:
    """Where a clipped line ends. Raises UnreadableOutput when something else than the line's own beginning stands there."""
    end = piece.find("\n", position)
    end = len(piece) if end < 0 else end
    left = piece[position:end].strip(" \t-/()0123456789")
    if not (left.startswith(("...", "…")) or any(word.startswith(left) for word in _CLIPPED_WORDS)):
        raise UnreadableOutput(TOOL, quoted, "a progress line has an unknown form")
    return end


def _column(
    quoted: str, done: re.Match[str], errors: re.Match[str] | None, temperature: re.Match[str] | None, *, cut: bool
) -> Column:
    """One column. `cut`: the products may lack their last digits, so they are not known."""
    products = int(reading.number(TOOL, quoted, done["done"]))
    celsius = temperature["celsius"] if temperature else None
    return Column(
        done=None if cut else products,
        rate=reading.number(TOOL, quoted, done["rate"]) if done["rate"] else None,
        errors=int(reading.number(TOOL, quoted, errors["errors"])) if errors else None,
        died=products == DIED or (errors is not None and errors["note"] == "(DIED!)"),
        temperature=reading.number(TOOL, quoted, celsius) if celsius else None,
    )
