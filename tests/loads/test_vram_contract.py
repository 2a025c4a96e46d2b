"""What proves a memory test: a pass of every pattern, and every wrong word counted."""

from __future__ import annotations

from typing import Any

from cases import each
from load_texts import printed, refusal
from sound_loads import sound
from wrong_results import vram as wrong_words

from acceptance.loads.miscompare import read
from acceptance.loads.vram.contract import (
    MAP,
    MAP_COLUMNS,
    PASS_COLUMNS,
    PASSES,
    READINGS,
    Ask,
)

ASK = Ask(seconds=8.0)
OWN = {"uuid": "GPU-1"}
ROWS = sound(ASK).tables[PASSES]


def code(ran_s: float = 10.0, **more: Any) -> str:
    return refusal(ASK, printed(ASK, OWN, **more), OWN, ran_s)


def rows(place: int, column: int, cell: float | str) -> dict[str, Any]:
    """The table of passes with one other cell."""
    changed = [list(row) for row in ROWS]
    changed[place][column] = cell
    return {"tables": {PASSES: (PASS_COLUMNS, changed)}}


def test_a_whole_memory_test_is_proof() -> None:
    assert code() == ""
    assert code(ran_s=4.0) == ""
    assert code(**rows(1, 1, 1.0)) == ""


def test_wrong_words_that_are_counted_are_proof() -> None:
    tables = {**rows(0, 3, 3.0)["tables"], MAP: (MAP_COLUMNS, [(0.0, 512.0, 3.0, "5:3")])}
    counted = {"vram_miscompares": 3.0}
    assert code(tables=tables, values=counted, wrong=(read(wrong_words([(64, 0, 4)])),)) == ""


@each(
    "more, why",
    [
        *(({"without": (name,)}, "load_unmeasured") for name in READINGS),
        ({"tables": {PASSES: (PASS_COLUMNS, [])}}, "load_without_table"),
        (rows(1, 1, 0.0), "load_pattern_missing"),
        (rows(1, 1, "all"), "load_pattern_missing"),
        (
            {"tables": {PASSES: (PASS_COLUMNS, ROWS[:-1])}},
            "load_pattern_missing",
        ),
        (rows(1, 3, 2.0), "load_words_uncounted"),
        (rows(1, 3, "x"), "load_words_uncounted"),
        ({"wrong": (read(wrong_words([(64, 0, 4)])),)}, "load_uncounted"),
        ({"ran_s": 3.9}, "load_ended_early"),
    ],
)
def test_anything_less_proves_nothing(more: dict[str, Any], why: str) -> None:
    assert code(**more) == why
