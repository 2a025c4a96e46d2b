"""What proves a burn: every format's turns in their order, whole, and digests that can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cases import each
from load_texts import Change, cell, changed, drop, printed, refusal, refusal_message, rows
from sound_loads import DIGEST, SHAPE, sound
from wrong_results import one_bit

from acceptance.core.message import Listed, Message
from acceptance.core.parts import Gpu, Pair
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
from acceptance.loads.protocol import LoadOutput

ASK = Ask(dtypes=("f64", "f8"), seconds=8.0, peers=1)
OWN = {"uuid": "GPU-1"}


def burned(
    ask: Ask, *changes: Change, parameters: Mapping[str, Any] = {}, **more: Any
) -> LoadOutput:
    return changed(printed(ask, {**OWN, **parameters}, **more), *changes)


def code(ask: Ask, *changes: Change, ran_s: float = 9.0, **more: Any) -> str:
    return refusal(ask, burned(ask, *changes, **more), OWN, ran_s)


def lasting(spent_s: float | str) -> Change:
    """All turns last so long."""
    return rows(LAPS, lambda found: [[*row[:4], spent_s, *row[5:]] for row in found])


def many(ask: Ask, laps: int, first: int, last: int) -> dict[str, Any]:
    """So many laps, of whose turns the first and the last are told."""
    every = [
        (float(lap), dtype, 50.0, 8.0, 0.02, 10.0 + lap + place / 4, 10.2 + lap + place / 4)
        for lap in range(laps)
        for place, dtype in enumerate(ask.dtypes)
    ]
    told = [*every[:first], *every[len(every) - last :]]
    return {"parameters": {"laps": laps}, "tables": {LAPS: (LAP_COLUMNS, told)}}


def only(*dtypes: Any) -> dict[str, Any]:
    """The tables of a GPU that has only these formats."""
    offered = sound(Ask(dtypes=dtypes, seconds=ASK.seconds)).tables
    return {LAPS: (LAP_COLUMNS, offered[LAPS]), DIGESTS: (DIGEST_COLUMNS, offered[DIGESTS])}


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


PLAIN = Ask(dtypes=ASK.dtypes, seconds=8.0, plain=True)
THREE = Ask(dtypes=("f64", "f16", "f8"), seconds=8.0)
OF_PLAIN = {"burn_f8_plain": "TFLOP/s", "burn_f8_verified_ratio": "ratio"}
COURSE = {COURSES: (COURSE_COLUMNS, [("f64", "plain", 1.0, 2.0, 50.0)])}
WRONG = {"wrong": (read({**one_bit(3), "dtype": "f8"}),)}


@each(
    "ask, changes, more, why",
    [
        # a format may be absent whole
        (ASK, (), {"absent": (1,), "tables": only("f64")}, ""),
        # a burn beside plain products is another
        (PLAIN, (), {}, ""),
        (PLAIN, (drop("table", COURSES),), {}, "load_without_table"),
        (ASK, (), {"tables": COURSE}, "load_stray"),
        *((PLAIN, (), {"without": (name,)}, "load_unmeasured") for name in OF_PLAIN),
        *(
            (ASK, (), {"more": {(name, Gpu(0)): unit}}, "load_stray")
            for name, unit in OF_PLAIN.items()
        ),
        # wrong results that are counted
        (ASK, (), {**WRONG, "values": {"burn_f8_miscompares": 1.0}}, ""),
        (ASK, (), WRONG, "load_uncounted"),
        # turns that last nineteen twentieths are enough
        (ASK, (lasting(1.9),), {}, ""),
        *((ASK, (lasting(one),), {}, "load_worked") for one in (1.89, "long")),
        # a turn may begin where the one before ends
        (ASK, (cell(LAPS, 1, 5, sound(ASK).tables[LAPS][0][6]),), {}, ""),
        (ASK, (cell(LAPS, 0, 5, 0.0),), {}, ""),
        # of many turns the first and the last are compared
        *(
            (ask, (), many(ask, *laps), "")
            for ask, *laps in (
                *((ASK, 1000, 250, 250), (THREE, 167, 250, 250), (ASK, 250, 500, 0)),
            )
        ),
        *(
            (ASK, (), many(ASK, 1000, *told), "load_turns")
            for told in (*((500, 0), (249, 250), (250, 249), (251, 250)),)
        ),
        (ASK, (), {"parameters": {"laps": 10**15}}, "load_turns"),  # refused at once
    ],
)
def test_what_is_due(ask: Ask, changes: Any, more: dict[str, Any], why: str) -> None:
    assert code(ask, *changes, **more) == why


# --- anything less ---


F8_OUT = rows(LAPS, lambda found: [row for row in found if row[1] != "f8"])
LESS = rows(LAPS, lambda found: found[:-1])


@each(
    "given, message",
    [
        (
            cell(DIGESTS, 0, 2, "none"),
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
            cell(LAPS, 1, 5, 101.7),
            Message(
                "load_turn",
                {"format": "f8", "lap": "0.0", "start": "101.7", "end": "103.8", "before": "101.8"},
            ),
        ),
        (
            LESS,
            Message("load_turns", {"turns": 3, "formats": 2, "laps": "2"}),
        ),
        (
            cell(LAPS, 0, 4, 0.0),
            Message("load_worked", {"worked": "6.0", "due": "8"}),
        ),
    ],
)
def test_what_is_wrong_is_named(given: Change, message: Message) -> None:
    assert refusal_message(ASK, burned(ASK, given), OWN) == message


@each(
    "given, expected",
    [
        *(({"without": (name.format("f8"),)}, "load_unmeasured") for name in READINGS),
        *(({"without": (name,)}, "load_unmeasured") for name in (*OF_GPU, *OF_PEER)),
        ({"absent": (0, 1)}, "load_without_format"),
        ({"more": {("burn_i8", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        ({"more": {("burn_f64", Gpu(1)): "TFLOP/s"}}, "load_stray"),
        ({"more": {("burn_peer_copied", Pair(Gpu(0), Gpu(2))): "GiB"}}, "load_stray"),
        ({"values": {"burn_f64_miscompares": -1.0}}, "load_unit"),
        (drop("table", LAPS), "load_without_table"),
        (drop("table", DIGESTS), "load_without_table"),
        (
            {"tables": {LAPS: (LAP_COLUMNS[:4], [row[:4] for row in sound(ASK).tables[LAPS]])}},
            "load_columns",
        ),
        (F8_OUT, "load_table_differs"),
        (cell(DIGESTS, 0, 0, "i8"), "load_table_differs"),
        (cell(LAPS, 1, 5, 101.7), "load_turn"),
        (cell(LAPS, 1, 6, 102.0), "load_turn"),
        (cell(LAPS, 0, 5, "then"), "load_turn"),
        (cell(LAPS, 0, 6, "now"), "load_turn"),
        (cell(LAPS, 0, 0, "first"), "load_turns"),
        (cell(LAPS, 0, 0, 1.0), "load_turns"),
        (LESS, "load_turns"),
        ({"parameters": {"laps": 3}}, "load_turns"),
        (cell(DIGESTS, 0, 2, "none"), "load_digest"),
        (cell(DIGESTS, 0, 3, DIGEST.upper()), "load_digest"),
        (cell(DIGESTS, 0, 3, 7.0), "load_digest"),
        (rows(DIGESTS, lambda found: found * 2), "load_digest"),
        *(({"parameters": {"laps": laps}}, "load_laps") for laps in (1, "2", None, 2.0, True)),
        *(({"parameters": {"library": one}}, "load_library_untold") for one in ("", None, 12)),
        ({"parameters": {"peers": 0}}, "load_parameter"),
        ({"parameters": {"dtypes": ["f64"]}}, "load_parameter"),
        ({"parameters": {"inject": "bit"}}, "load_fault_injected"),
        ({"ran_s": 7.9}, "load_ended_early"),
    ],
)
def test_anything_less_proves_nothing(given: Any, expected: str) -> None:
    assert (code(ASK, given) if callable(given) else code(ASK, **given)) == expected
