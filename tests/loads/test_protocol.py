from __future__ import annotations

import io
import json
import math
from typing import Any

import msgspec
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from worded import worded
from wrong_results import ARRAY, DIGESTS, all_of

from acceptance.core.limit import UNITS
from acceptance.core.message import Message
from acceptance.core.parts import CPU, Core, Gpu, Named
from acceptance.loads.miscompare import UnusableLine, read, read_or_keep
from acceptance.loads.power_step import Step
from acceptance.loads.protocol import (
    Absence,
    LoadOutput,
    LoadReading,
    LoadTable,
    Output,
    ProtocolError,
    StepBegins,
    StepEnded,
    decode,
    parse,
    salvage,
    trouble,
    waits,
)
from acceptance.wording import errors, words

HELLO = '{"rigproof_load": 1, "load": "cpu_gemm", "parameters": {"size": 8}}'
READING = '{"reading": "cpu_gemm_f64", "unit": "GFLOP/s", "component": "cpu", "value": 107.5}'
SECOND = '{"reading": "cpu_gemm_core_f64", "unit": "GFLOP/s", "component": "core:0", "value": 53}'
MISCOMPARE = json.dumps({"miscompare": ARRAY})
NOTE = '{"note": "made by numpy"}'
PROGRESS = '{"progress": 5.0, "of": 60}'
ABSENT = '{"absent": "gemm_f8", "component": "gpu0", "reason": "emulated"}'
STEP = '{"kind": "square", "gpus": ["gpu0", "gpu1"], "seconds": 9.0, "hertz": 2.0}'
BEGINS = f'{{"step": {STEP}, "begins": 1000.5}}'
ENDED = f'{{"step_ended": {STEP}, "edges": 36, "right": 70, "wrong": 0}}'
TABLE = (
    '{"table": "gemm_f64_by_size", "columns": ["n", "what"], "rows": [[128, "a"], [512.5, "b"]]}'
)
TROUBLE = json.dumps(
    {"trouble": {"is": "message", "code": "kept_unknown", "values": {"file": "sealed"}}}
)
END = '{"end": true, "readings": 2}'
END_OF_NONE = '{"end": true, "readings": 0}'
WHOLE = [HELLO, NOTE, ABSENT, MISCOMPARE, PROGRESS, READING, SECOND, TABLE, END.replace("2", "4")]


def text(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_a_whole_output_is_read() -> None:
    assert parse(text(*WHOLE)) == LoadOutput(
        load="cpu_gemm",
        parameters={"size": 8},
        readings=(
            LoadReading("cpu_gemm_f64", "GFLOP/s", CPU, 107.5),
            LoadReading("cpu_gemm_core_f64", "GFLOP/s", Core(0), 53.0),
        ),
        miscompares=(read(ARRAY),),
        notes=("made by numpy",),
        tables=(LoadTable("gemm_f64_by_size", ("n", "what"), ((128.0, "a"), (512.5, "b"))),),
        absences=(Absence("gemm_f8", Gpu(0), "emulated"),),
    )


@each(
    "whole",
    ["\r\n".join(WHOLE), "\n".join(WHOLE), text(*WHOLE[:-1], '{"waits": "a turn"}', WHOLE[-1])],
)
def test_line_ends_a_missing_last_one_and_waits_change_nothing(whole: str) -> None:
    assert parse(whole) == parse(text(*WHOLE))


@each("parameter, fault", [('"size": 8', None), ('"inject": "bitflip"', "bitflip")])
def test_an_injected_fault_is_seen(parameter: str, fault: str | None) -> None:
    hello = HELLO.replace('"size": 8', parameter)
    assert parse(text(hello, END_OF_NONE)).injected == fault


def test_what_is_written_is_what_is_read() -> None:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("burn", {"dtype": "float64"})
    output.progress(1, 2)
    output.miscompare(read(DIGESTS))
    output.note("größer\nas ever")
    for unit in sorted(UNITS):
        output.reading(f"x_{sorted(UNITS).index(unit)}", unit, Gpu(0), 1.5)
    lacked = Message("format_not_native", {"format": "TF32", "needs": "8.0", "has": "7.0"})
    output.absent("y", Gpu(0), lacked)
    output.table("t", ("n", "GB/s"), [(1, 2.5)])
    output.log("nccl", Gpu(0), "a line\nand another\n")
    output.log("nccl", Gpu(1), "")
    output.end()
    found = parse(stream.getvalue())
    assert (found.load, found.parameters) == ("burn", {"dtype": "float64"})
    told = [("nccl", Gpu(0), "a line\nand another\n"), ("nccl", Gpu(1), "")]
    assert [(one.name, one.component, one.text) for one in found.logs] == told
    assert {reading.unit for reading in found.readings} == UNITS
    assert found.miscompares == (read(DIGESTS),)
    assert found.notes == ("größer\nas ever",)
    assert found.absences == (Absence("y", Gpu(0), lacked),)
    assert found.tables == (LoadTable("t", ("n", "GB/s"), ((1.0, 2.5),)),)


def test_steps_are_written_as_they_are_read() -> None:
    stream, step = io.StringIO(), Step("square", (Gpu(0), Gpu(1)), 9.0, 2.0)
    output = Output(stream)
    output.hello("pulse", {})
    output.step_begins(step, 1000.5)
    output.step_ended(step, edges=36, right=70, wrong=0)
    output.step_begins(step, 1012.0)
    output.step_ended(step, edges=36, right=69, wrong=1)
    output.end()
    _, *lines, _ = stream.getvalue().splitlines()
    assert lines[:2] == [BEGINS, ENDED]
    assert [decode(line) for line in lines] == [
        *(StepBegins(step, 1000.5), StepEnded(step, 36, 70, 0)),
        *(StepBegins(step, 1012.0), StepEnded(step, 36, 69, 1)),
    ]
    assert parse(stream.getvalue()).load == "pulse"


def test_every_line_is_flushed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, flushed = io.StringIO(), list[str]()
    monkeypatch.setattr(stream, "flush", lambda: flushed.append(stream.getvalue()), raising=False)
    Output(stream).miscompare(read(ARRAY))
    assert flushed == [MISCOMPARE + "\n"]


@each(
    "name, unit, component, value, said",
    [
        ("x", "GB/s", "cpu", math.nan, "not JSON compliant"),
        ("x", "GB/s", "cpu", math.inf, "not JSON compliant"),
        ("x", "GB/s", "cpu", -math.inf, "not JSON compliant"),
        ("x", "GB/s", "cpu", 10**400, "Number out of range - at `$.value`"),
        ("x", "GB/s", "cpu", True, "Expected `float`, got `bool` - at `$.value`"),
        ("x", "MB/s", "cpu", 1.0, "unit 'MB/s'"),
        ("x", "", "cpu", 1.0, "unit ''"),
        ("X y", "GB/s", "cpu", 1.0, "at `$.reading`"),
        ("x", "GB/s", Named("the cpu"), 1.0, "is no component that a load measures"),
    ],
)
def test_what_could_not_be_read_is_not_written(
    name: str, unit: str, component: str, value: float, said: str
) -> None:
    stream = io.StringIO()
    with pytest.raises((ProtocolError, ValueError)) as caught:
        Output(stream).reading(name, unit, component, value)
    assert said in words.text(errors.said(caught.value))
    assert stream.getvalue() == ""


Write = tuple[str, tuple[Any, ...]]
OF_X: Write = ("reading", ("x", "GB/s", Gpu(0), 1.0))
ABSENT_X: Write = ("absent", ("x", Gpu(0), Message("peer_out_of_reach")))
TABLE_X: Write = ("table", ("x", ("n",), [(1,)]))
LOG_X: Write = ("log", ("nccl", Gpu(1), "again"))


@each(
    "first, again",
    [
        *((first, again) for first in (OF_X, ABSENT_X) for again in (OF_X, ABSENT_X)),
        (TABLE_X, TABLE_X),
        (LOG_X, LOG_X),
    ],
)
def test_nothing_is_written_twice(first: Write, again: Write) -> None:
    stream = io.StringIO()
    output = Output(stream)
    for name, values in (first, ("reading", ("x", "GB/s", "cpu", 1.0))):
        getattr(output, name)(*values)
    told = stream.getvalue()
    with pytest.raises(UnusableLine) as caught:
        getattr(output, again[0])(*again[1])
    assert caught.value.message.code in ("load_reading_twice", "load_table_twice")
    assert stream.getvalue() == told


def test_texts_that_are_empty_or_no_unicode_are_not_written() -> None:
    stream = io.StringIO()
    output = Output(stream)
    for write in (lambda: output.note(""), lambda: output.hello("", {})):
        with pytest.raises(ProtocolError, match="of length >= 1"):
            write()
    with pytest.raises(ProtocolError, match="load_line_torn"):
        output.note("\ud800")
    assert stream.getvalue() == ""
    # A wrong result that no reader could use is written all the same, and at once.
    Output(stream).miscompare(msgspec.structs.replace(read(ARRAY), elements=-1))
    assert salvage(stream.getvalue()) == (read_or_keep({**ARRAY, "elements": -1}),)


@each(
    "lines, said",
    [
        ([], "printed nothing"),
        (["hello"], "not one whole JSON object: 'hello'"),
        ([READING, END], "does not begin with its hello line but with"),
        ([HELLO.replace("1", "2", 1), END], "its version is not 1, the only one known here"),
        ([HELLO.replace("1", "true", 1), END], "Expected `int`, got `bool`"),
        ([HELLO.replace("1", '"1"', 1), END], "Expected `int`, got `str`"),
        (
            [HELLO.replace('"parameters"', '"with"'), END],
            "Object contains unknown field `with`",
        ),
        (
            [HELLO.replace('{"size": 8}', "8"), END],
            "Expected `object`, got `int` - at `$.parameters`",
        ),
        ([HELLO.replace('"cpu_gemm"', "7"), END], "Expected `str`, got `int` - at `$.load`"),
        ([HELLO, HELLO, END], "it is a second hello"),
        ([HELLO, "", READING, SECOND, END], "not one whole JSON object: ''"),
        ([HELLO, "[1]", END], "not one whole JSON object"),
        ([HELLO, "[" * 100_000, END], "not one whole JSON object"),
        ([HELLO, READING + SECOND, END], "not one whole JSON object"),
        ([HELLO, '{"series": []}', END], "of no known kind"),
        (
            [HELLO, READING.replace("}", ', "limit": 3}'), END],
            "Object contains unknown field `limit`",
        ),
        ([HELLO, '{"note": "a", "note": "b"}', END], "not one whole JSON object"),
        ([HELLO, '{"note": "\\ud800"}', END], "not one whole JSON object"),
        ([HELLO, '{"note": 3}', END], "Expected `str`, got `int` - at `$.note`"),
        ([HELLO, '{"miscompare": {}}', END], "its wrong result cannot be read (its check is None,"),
        ([HELLO, '{"miscompare": 1}', END], "of no known kind"),
        ([HELLO, '{"progress": "half", "of": 1}', END], "Expected `float`, got `str`"),
        ([HELLO, '{"progress": 1}', END], "missing required field `of`"),
        ([HELLO, READING.replace("107.5", "NaN"), SECOND, END], "not one whole JSON object"),
        ([HELLO, READING.replace("107.5", "1e999"), SECOND, END], "not one whole JSON object"),
        (
            [HELLO, READING.replace("107.5", "1" + "0" * 400), SECOND, END],
            "Number out of range - at `$.value`",
        ),
        (
            [HELLO, READING.replace("107.5", "1" + "0" * 5000), SECOND, END],
            "not one whole JSON object",
        ),
        (
            [HELLO, READING.replace("107.5", "true"), SECOND, END],
            "Expected `float`, got ",
        ),
        (
            [HELLO, READING.replace("107.5", '"107.5"'), SECOND, END],
            "Expected `float`, got ",
        ),
        (
            [HELLO, READING.replace("107.5", "null"), SECOND, END],
            "Expected `float`, got ",
        ),
        (
            [HELLO, READING.replace("GFLOP", "MFLOP"), SECOND, END],
            "the unit 'MFLOP/s' is not one of",
        ),
        ([HELLO, READING.replace('"cpu"', '"the cpu"'), SECOND, END], "no component that"),
        (
            [HELLO, READING.replace("cpu_gemm_f64", "CPU"), SECOND, END],
            "matching regex",
        ),
        ([HELLO, READING, READING, END], "cpu_gemm_f64 of cpu comes twice"),
        ([HELLO, ABSENT, ABSENT, END], "gemm_f8 of gpu0 comes twice"),
        ([HELLO, ABSENT.replace("emulated", ""), END], "length >= 1 - at `$.reason`"),
        ([HELLO, ABSENT.replace("gpu0", "gpu 0"), END], "no component that"),
        ([HELLO, ABSENT.replace("gemm_f8", "8"), END], "matching regex"),
        (
            [HELLO, ABSENT.replace(', "reason": "emulated"', ""), END],
            "missing required field `reason`",
        ),
        ([HELLO, TABLE, TABLE, END], "the table gemm_f64_by_size comes twice"),
        (
            [HELLO, TABLE.replace("gemm_f64_by_size", "by size"), END],
            "matching regex",
        ),
        ([HELLO, TABLE.replace('["n", "what"]', '"n"'), END], "Expected `array`, got `str`"),
        (
            [HELLO, '{"table": "t", "columns": [], "rows": [[]]}', END],
            "length >= 1 - at `$.columns`",
        ),
        ([HELLO, '{"table": "t", "columns": ["n"], "rows": []}', END], "length >= 1 - at `$.rows`"),
        (
            [HELLO, '{"table": "t", "columns": ["n"], "rows": {"n": 1}}', END],
            "Expected `array`, got `object` - at `$.rows`",
        ),
        ([HELLO, TABLE.replace('"what"', '"n"'), END], "two columns have one name"),
        (
            [HELLO, TABLE.replace('"what"', "7"), END],
            "Expected `str`, got `int` - at `$.columns[1]`",
        ),
        ([HELLO, TABLE.replace(', "b"', ""), END], "a row has not one cell for each column"),
        (
            [HELLO, TABLE.replace('[128, "a"]', '"ab"'), END],
            "Expected `array`, got `str` - at `$.rows[0]`",
        ),
        ([HELLO, TABLE.replace('"b"', "null"), END], "Expected `float | str`, got `null`"),
        ([HELLO, TABLE.replace("512.5", "NaN"), END], "not one whole JSON object"),
        ([HELLO, BEGINS, END_OF_NONE], "before the one before it has ended"),
        ([HELLO, BEGINS, BEGINS, ENDED, END_OF_NONE], "before the one before it has ended"),
        ([HELLO, ENDED, END_OF_NONE], "or ends without having begun"),
        ([HELLO, BEGINS, ENDED, ENDED, END_OF_NONE], "or ends without having begun"),
        (
            [HELLO, BEGINS, ENDED.replace('"hertz": 2', '"hertz": 5'), END_OF_NONE],
            "before the one before it has ended",
        ),
        (
            [HELLO, BEGINS.replace('["gpu0", "gpu1"]', "[]"), END_OF_NONE],
            'and on two at least in anti-phase, not on ""',
        ),
        ([HELLO, BEGINS.replace("square", "ramp"), END_OF_NONE], "2.0 is no frequency of this"),
        ([HELLO, BEGINS.replace("9.0", "0.4"), END_OF_NONE], "0.4 s is too short or too long"),
        ([HELLO, BEGINS.replace("square", "saw"), END_OF_NONE], "Invalid enum value 'saw'"),
        ([HELLO, BEGINS.replace("1000.5", "null"), END_OF_NONE], "Expected `float`, got `null`"),
        ([HELLO, BEGINS, ENDED.replace("70", "-1")], "Expected `int` >= 0"),
        ([HELLO, READING, SECOND, TABLE, END], "does not close the 3 readings before it"),
        ([HELLO, READING, SECOND], "ends without its end line"),
        ([HELLO], "ends without its end line"),
        ([HELLO, READING, END], "does not close the 1 readings before it"),
        ([HELLO, READING, SECOND, END.replace("2", "2.0")], "Expected `int`, got `float`"),
        ([HELLO, READING, END.replace("2", "true")], "Expected `int`, got `bool`"),
        ([HELLO, READING, SECOND, END.replace("true", "1")], "Expected `bool`, got `int`"),
        (
            [HELLO, READING, SECOND, END.replace("}", ', "more": 1}')],
            "unknown field `more`",
        ),
        ([HELLO, READING, SECOND, END, NOTE], 'printed after its end: \'{"note": "made by numpy'),
        ([HELLO, TROUBLE], "could not go on: sealed is no sealed file of this version"),
        ([HELLO, READING, SECOND, TROUBLE, END], "could not go on: sealed is no sealed file"),
        ([HELLO, TROUBLE.replace('"kept_unknown"', "null")], "at `$.trouble"),
        ([HELLO, READING, SECOND, END, ""], "printed after its end: ''"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(lines: list[str], said: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse(text(*lines) if lines else "")
    sentence = worded(caught.value.message)
    assert said in sentence
    assert "\n" not in sentence
    assert len(sentence) < 500


def reading_of(output: LoadOutput) -> set[LoadReading | LoadTable | Absence]:
    return {*output.readings, *output.tables, *output.absences}


def parsed_or_none(lines: list[str]) -> LoadOutput | None:
    try:
        return parse(text(*lines))
    except ProtocolError:
        return None


def test_a_load_waits_while_its_last_line_says_so() -> None:
    stream = io.StringIO()
    Output(stream).waits("exclusive turn on machine")
    assert stream.getvalue() == '{"waits": "exclusive turn on machine"}\n'
    line = stream.getvalue().strip()
    assert waits(text(HELLO, line))
    assert not any(map(waits, ("", text(HELLO, line, PROGRESS), f"{text(HELLO, line)}torn")))


def test_the_trouble_of_a_load_is_its_last_line() -> None:
    stream = io.StringIO()
    Output(stream).trouble(Message("kept_unknown", {"file": "sealed"}))
    assert stream.getvalue() == TROUBLE + "\n"
    assert trouble(text(HELLO, TROUBLE)) == Message("kept_unknown", {"file": "sealed"})
    for other in ("", "torn", text(HELLO), text(TROUBLE, NOTE), TROUBLE[:-1]):
        assert trouble(other) is None


@given(st.data())
def test_no_cut_gives_other_readings(data: st.DataObject) -> None:
    whole = text(*WHOLE)
    cut = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(ProtocolError):
        parse(whole[:cut])
    with pytest.raises(ProtocolError):
        parse(whole[cut + 1 :])


@given(st.permutations(range(len(WHOLE))))
def test_no_order_of_lines_gives_other_readings(order: list[int]) -> None:
    found = parsed_or_none([WHOLE[number] for number in order])
    assert found is None or reading_of(found) == reading_of(parse(text(*WHOLE)))
    if order[0] != 0 or order[-1] != len(WHOLE) - 1:
        assert found is None


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, len(WHOLE)))
def test_a_doubled_or_lost_line_gives_no_other_readings(line: int, place: int) -> None:
    doubled = parsed_or_none([*WHOLE[:place], WHOLE[line], *WHOLE[place:]])
    assert doubled is None or reading_of(doubled) == reading_of(parse(text(*WHOLE)))
    lost = parsed_or_none([*WHOLE[:line], *WHOLE[line + 1 :]])
    assert lost is None or reading_of(lost) == reading_of(parse(text(*WHOLE)))


@given(st.integers(0, len(text(*WHOLE)) - 2), st.characters())
def test_an_altered_character_is_refused_or_changes_only_its_own_json_value(
    place: int, character: str
) -> None:
    whole = text(*WHOLE)
    altered = whole[:place] + character + whole[place + 1 :]
    try:
        found = parse(altered)
    except ProtocolError:
        return
    values: dict[int, Any] = {}
    for number, line in enumerate(altered.removesuffix("\n").split("\n")):
        values[number] = json.loads(line)
    changed = [number for number, line in enumerate(WHOLE) if values[number] != json.loads(line)]
    assert len(values) == len(WHOLE)
    assert len(changed) <= 1
    differing = reading_of(found) ^ reading_of(parse(text(*WHOLE)))
    proofs = {"reading", "table", "absent"}
    assert len(differing) == (2 if changed and proofs & json.loads(WHOLE[changed[0]]).keys() else 0)


@given(st.text())
def test_no_text_is_read_by_accident(rubbish: str) -> None:
    with pytest.raises(ProtocolError):
        parse(rubbish)


def test_miscompares_outlive_the_load() -> None:
    torn = (
        text(
            HELLO,
            "rubbish",
            MISCOMPARE,
            '{"miscompare": {"a": 1}}',
            '{"miscompare": {"a": 1}, "b": 2}',
            READING,
        )
        + MISCOMPARE[:-4]
    )
    assert salvage(torn) == all_of(ARRAY, {"a": 1})
    assert salvage("") == ()
