"""What proves a burn: every format's turns in their order, whole, and digests that can be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from cases import each
from load_texts import printed, refusal, refusal_message
from sound_loads import DIGEST, SHAPE, sound
from wrong_results import one_bit

from acceptance.core.message import Listed, Message
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.loads.__main__ import main, parsed
from acceptance.loads.burn.contract import (
    COURSE_COLUMNS,
    COURSES,
    DIGEST_COLUMNS,
    DIGESTS,
    LAP_COLUMNS,
    LAPS,
    OF_GPU,
    OF_PEER,
    READINGS,
    Ask,
    digests,
)
from acceptance.loads.burn.fault import slowness
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import LoadOutput, parse

ASK = Ask(dtypes=("f64", "f8"), seconds=8.0, peers=1)
OWN = {"uuid": "GPU-1"}
Row = Sequence[float | str]


def burned(ask: Ask = ASK, *, parameters: Mapping[str, Any] = {}, **more: Any) -> LoadOutput:
    return parse(printed(ask, {**OWN, **parameters}, **more))


def code(ask: Ask = ASK, ran_s: float = 9.0, **more: Any) -> str:
    return refusal(ask, burned(ask, **more), OWN, ran_s)


def turns(change: Callable[[list[Row]], list[Row]], ask: Ask = ASK) -> dict[str, Any]:
    """The table of turns, with other rows."""
    return {"tables": {LAPS: (LAP_COLUMNS, change(list(sound(ask).tables[LAPS])))}}


def turn(place: int, column: int, cell: float | str) -> dict[str, Any]:
    """The table of turns with one other cell."""
    return turns(lambda rows: changed(rows, place, column, cell))


def digest(place: int, column: int, cell: float | str) -> dict[str, Any]:
    """The table of digests with one other cell."""
    rows = changed(list(sound(ASK).tables[DIGESTS]), place, column, cell)
    return {"tables": {DIGESTS: (DIGEST_COLUMNS, rows)}}


def changed(rows: list[Row], place: int, column: int, cell: float | str) -> list[Row]:
    own = rows[place]
    return [*rows[:place], (*own[:column], cell, *own[column + 1 :]), *rows[place + 1 :]]


def only(*dtypes: Any) -> dict[str, Any]:
    """The tables of a GPU that has only these formats."""
    offered = Ask(dtypes=dtypes, seconds=ASK.seconds)
    return {
        LAPS: (LAP_COLUMNS, sound(offered).tables[LAPS]),
        DIGESTS: (DIGEST_COLUMNS, sound(offered).tables[DIGESTS]),
    }


def more(name: str, unit: str, component: Component = Gpu(0)) -> dict[str, Any]:
    return {"more": {(name, component): unit}}


# --- what is asked ---

TYPED = ["burn", "dtypes=f64,bf16", "seconds=1"]
KINDS = ("bit", "stuck", "ulp17", "nan", "inf", "repeat", "unwritten", "input", "hang", "lost")


@each(
    "words, values, slow",
    [
        ([], {"peers": 0, "plain": False, "inject": None}, 0.0),
        (["peers=3", "plain=true", "inject=slow:10"], {"peers": 3, "plain": True}, 0.10),
        (["peers=31", "inject=slow:90"], {"peers": 31}, 0.90),
        (["inject=slow:1"], {}, 0.01),
        *(([f"inject={kind}"], {"inject": kind}, 0.0) for kind in KINDS),
    ],
)
def test_what_people_type(words: list[str], values: dict[str, Any], slow: float) -> None:
    ask = parsed([*TYPED, *words])
    assert isinstance(ask, Ask)
    assert {name: getattr(ask, name) for name in values} == values
    assert slowness(ask.inject) == slow
    assert "plain" not in ask.parameters() or ask.plain


def test_the_help_names_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["burn", "--help"]) == 0
    (line,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("inject: "))
    assert all(kind in line for kind in (*KINDS, "slow:PERCENT"))


# --- a whole burn ---


@each("peers", [0, 1, 7])
def test_a_whole_burn_is_proof(peers: int) -> None:
    ask = Ask(dtypes=ASK.dtypes, seconds=8.0, peers=peers)
    assert code(ask) == code(ask, ran_s=8.0) == ""
    assert len(burned(ask).readings) == 2 * 3 + 3 + 2 * peers
    assert digests(burned(ask))["f8", "8192x8192x8192"] == (DIGEST, DIGEST)


def test_a_format_may_be_absent_whole() -> None:
    lacking: dict[str, Any] = {"absent": (1,), "tables": only("f64")}
    assert code(**lacking) == ""
    assert {dtype for dtype, _ in digests(burned(**lacking))} == {"f64"}


def test_a_burn_beside_plain_products_is_another() -> None:
    plain = Ask(dtypes=ASK.dtypes, seconds=8.0, plain=True)
    assert code(plain) == ""
    assert code(plain, tables={COURSES: (COURSE_COLUMNS, [])}) == "load_without_table"
    courses = {COURSES: (COURSE_COLUMNS, [("f64", "plain", 1.0, 2.0, 50.0)])}
    assert code(tables=courses) == "load_stray"
    for name, unit in {"burn_f8_plain": "TFLOP/s", "burn_f8_verified_ratio": "ratio"}.items():
        assert code(plain, without=(name,)) == "load_unmeasured"
        assert code(**more(name, unit)) == "load_stray"


def test_wrong_results_that_are_counted_are_proof() -> None:
    wrong = (read({**one_bit(3), "dtype": "f8"}),)
    assert code(wrong=wrong, values={"burn_f8_miscompares": 1.0}) == ""
    assert code(wrong=wrong) == "load_uncounted"


def test_turns_that_last_nineteen_twentieths_are_enough() -> None:
    def lasting(spent_s: float | str) -> dict[str, Any]:
        return turns(lambda rows: [(*row[:4], spent_s, *row[5:]) for row in rows])

    assert code(**lasting(1.9)) == ""
    assert code(**lasting(1.89)) == code(**lasting("long")) == "load_worked"


def test_a_turn_may_begin_where_the_one_before_ends() -> None:
    assert code(**turn(1, 5, sound(ASK).tables[LAPS][0][6])) == code(**turn(0, 5, 0.0)) == ""


def test_of_many_turns_the_first_and_the_last_are_compared() -> None:
    def many(ask: Ask, laps: int, first: int, last: int) -> str:
        rows = [
            (float(lap), dtype, 50.0, 8.0, 0.02, 10.0 + lap + place / 4, 10.2 + lap + place / 4)
            for lap in range(laps)
            for place, dtype in enumerate(ask.dtypes)
        ]
        tables = {LAPS: (LAP_COLUMNS, [*rows[:first], *rows[len(rows) - last :]])}
        return code(ask, parameters={"laps": laps}, tables=tables)

    three = Ask(dtypes=("f64", "f16", "f8"), seconds=8.0)
    assert many(ASK, 1000, 250, 250) == many(three, 167, 250, 250) == many(ASK, 250, 500, 0) == ""
    for first, last in ((500, 0), (249, 250), (250, 249), (251, 250)):
        assert many(ASK, 1000, first, last) == "load_turns"
    assert code(parameters={"laps": 10**15}) == "load_turns", "refused at once"


# --- anything less ---


F8_OUT = turns(lambda rows: [row for row in rows if row[1] != "f8"])


@each(
    "given, message",
    [
        (
            digest(0, 2, "none"),
            Message(
                "load_digest",
                {"format": "f64", "shape": SHAPE, "inputs": "none", "result": DIGEST},
            ),
        ),
        (
            F8_OUT,
            Message(
                "load_table_differs",
                {"table": LAPS, "formats": Listed(ASK.dtypes), "others": Listed(("f8",))},
            ),
        ),
        (
            turn(1, 5, 101.7),
            Message(
                "load_turn",
                {"format": "f8", "lap": "0.0", "start": "101.7", "end": "103.8", "before": "101.8"},
            ),
        ),
        (
            turns(lambda rows: rows[:-1]),
            Message("load_turns", {"turns": 3, "formats": 2, "laps": "2"}),
        ),
        (
            turn(0, 4, 0.0),
            Message("load_worked", {"worked": "6.0", "due": "8"}),
        ),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], message: Message) -> None:
    assert refusal_message(ASK, burned(**given), OWN) == message


@each(
    "given, expected",
    [
        *(({"without": (name.format("f8"),)}, "load_unmeasured") for name in READINGS),
        *(({"without": (name,)}, "load_unmeasured") for name in (*OF_GPU, *OF_PEER)),
        ({"absent": (0, 1)}, "load_without_format"),
        (more("burn_i8", "TFLOP/s"), "load_stray"),
        (more("burn_f64", "TFLOP/s", Gpu(1)), "load_stray"),
        (more("burn_peer_copied", "GiB", Pair(Gpu(0), Gpu(2))), "load_stray"),
        ({"values": {"burn_f64_miscompares": -1.0}}, "load_unit"),
        ({"tables": {LAPS: (LAP_COLUMNS, [])}}, "load_without_table"),
        ({"tables": {DIGESTS: (DIGEST_COLUMNS, [])}}, "load_without_table"),
        (
            {"tables": {LAPS: (LAP_COLUMNS[:4], [row[:4] for row in sound(ASK).tables[LAPS]])}},
            "load_columns",
        ),
        (F8_OUT, "load_table_differs"),
        (digest(0, 0, "i8"), "load_table_differs"),
        (turn(1, 5, 101.7), "load_turn"),
        (turn(1, 6, 102.0), "load_turn"),
        (turn(0, 5, "then"), "load_turn"),
        (turn(0, 6, "now"), "load_turn"),
        (turn(0, 0, "first"), "load_turns"),
        (turn(0, 0, 1.0), "load_turns"),
        (turns(lambda rows: rows[:-1]), "load_turns"),
        ({"parameters": {"laps": 3}}, "load_turns"),
        (digest(0, 2, "none"), "load_digest"),
        (digest(0, 3, DIGEST.upper()), "load_digest"),
        (digest(0, 3, 7.0), "load_digest"),
        (
            {
                "tables": {
                    DIGESTS: (
                        DIGEST_COLUMNS,
                        [*sound(ASK).tables[DIGESTS]] * 2,
                    )
                }
            },
            "load_digest",
        ),
        *(({"parameters": {"laps": laps}}, "load_laps") for laps in (1, "2", None, 2.0, True)),
        *(({"parameters": {"library": one}}, "load_library_untold") for one in ("", None, 12)),
        ({"parameters": {"peers": 0}}, "load_parameter"),
        ({"parameters": {"dtypes": ["f64"]}}, "load_parameter"),
        ({"parameters": {"inject": "bit"}}, "load_fault_injected"),
        ({"ran_s": 7.9}, "load_ended_early"),
    ],
)
def test_anything_less_proves_nothing(given: dict[str, Any], expected: str) -> None:
    assert code(**given) == expected
