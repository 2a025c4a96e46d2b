"""What proves training steps: every judged model with its rate, and everything compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cases import each
from load_texts import changed, hello, printed, refusal
from sound_loads import WRONG_WEIGHT, sound

from acceptance.core.parts import Gpu
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train.step_contract import (
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_TABLE,
    Ask,
)

ONE = Ask(seconds=6.0)
TABLE = Ask(seconds=6.0, table=True)
SMALL = Ask(seconds=6.0, table=True, neo=False)
ABOUT = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}
SMALL_NUMBERS = 1874944  # parameters of the small model
COLUMNS = {STEP_TABLE: STEP_LOAD_COLUMNS, STEP_CHECKS: STEP_CHECK_COLUMNS}
Rows = list[list[float | str]]


def output(ask: Ask = ONE, wrong: Any = (), **more: Any) -> LoadOutput:
    """A sound output, with other values, parameters or whatever else is printed.

    Of `tables` each is a function that changes its rows.
    """
    made, changes = sound(ask, ABOUT), more.pop("tables", {})
    tables = {
        name: (COLUMNS[name], change([list(row) for row in made.tables[name]]))
        for name, change in changes.items()
    }
    said = hello(**more.pop("about", {}))
    return changed(printed(ask, ABOUT, wrong=wrong, tables=tables, **more), said)


def cells(first: str, place: int, cell: float | str) -> Callable[[Rows], Rows]:
    """Puts this into the rows of a model."""
    return lambda rows: [
        [cell if (number, row[0]) == (place, first) else one for number, one in enumerate(row)]
        for row in rows
    ]


def without(*keys: str) -> Callable[[Rows], Rows]:
    """Leaves out the rows that begin with, or compare, one of these."""
    return lambda rows: [row for row in rows if not {str(row[1]), str(row[2])} & {*keys}]


def code(found: LoadOutput, ask: Ask = ONE, ran_s: float = 20.0) -> str:
    return refusal(ask, found, {"uuid": "GPU-1"}, ran_s)


@each("ask", [ONE, TABLE, SMALL])
def test_a_whole_output_is_proof(ask: Ask) -> None:
    found = output(ask)
    assert code(found, ask) == ""
    names = {one.name for one in found.readings}
    assert ("step_neo" in names) == (ask is TABLE)
    assert ("step_gpt2" in names) == (ask is ONE)


def test_the_time_of_a_table_is_not_due() -> None:
    assert code(output(TABLE), TABLE, ran_s=0.5) == ""
    assert code(output(**of_checks("matmul", 4, 1.0)), ran_s=6.0) == ""  # the bound itself is right
    assert code(output(), ran_s=5.9) == "load_ended_early"


def test_wrong_results_that_are_counted_are_proof() -> None:
    assert code(output(wrong=[WRONG_WEIGHT])) == ""
    for count in (0.0, 2.0):
        other = output(wrong=[WRONG_WEIGHT], values={"step_miscompares": count})
        assert code(other) == "load_uncounted"


def test_a_loss_that_is_not_finite_cannot_fall() -> None:
    def lacking(*losses: str) -> LoadOutput:
        return output(wrong=[WRONG_WEIGHT], tables={STEP_CHECKS: without(*losses)})

    assert code(lacking("trained loss", "repeated losses")) == ""
    assert code(lacking("trained loss", "finite losses")) == "load_uncompared"
    assert code(output(tables={STEP_CHECKS: without("trained loss")})) == "load_uncompared"


def test_older_gpus_have_their_own_format() -> None:
    found = parse(printed(ONE, {**ABOUT, "capability": "7.5"}))
    assert found.parameters["format"] == "f16"
    assert code(found) == ""


def test_a_small_product_has_fewer_numbers() -> None:
    small = {STEP_CHECKS: cells("matmul", 3, 4096.0**2)}
    assert code(output(about={"size": 4096}, tables=small)) == ""
    assert code(output(tables=small)) == "load_uncompared"


@each(
    "about",
    [
        *({name: value} for name, value in (("device", "cpu"), ("seconds", 5.0), ("table", True))),
        *({name: value} for name, value in (("uuid", "GPU-2"), ("format", "f16"))),
        *({"capability": one} for one in ("7.5", None)),
        *({"size": one} for one in (256, 8192.0, None)),
    ],
)
def test_other_parameters_prove_nothing(about: dict[str, Any]) -> None:
    assert code(output(about=about)) == "load_parameter"


@each(
    "model, compared, least",
    [
        ("small model", "loss", 2.0),
        ("small model", "gradients", 2.0 * SMALL_NUMBERS),
        ("small model", "weights", 2.0 * SMALL_NUMBERS),
        ("GPT-2 medium", "first loss", 1.0),
        ("GPT-2 medium", "repeated losses", 3.0),
        ("GPT-2 medium", "finite losses", 7.0),
        ("GPT-2 medium", "trained loss", 1.0),
        ("matmul", "repeated product", 8192.0**2),
    ],
)
def test_so_many_numbers_are_compared(model: str, compared: str, least: float) -> None:
    def with_numbers(numbers: float) -> str:
        def change(rows: Rows) -> Rows:
            (*_, last) = [row for row in rows if (row[0], row[2]) == (model, compared)]
            last[3] = numbers
            return rows

        return code(output(tables={STEP_CHECKS: change}))

    assert with_numbers(least) == ""
    assert with_numbers(least - 1) == "load_uncompared"


def of_table(first: str, place: int, cell: float | str) -> dict[str, Any]:
    return {"tables": {STEP_TABLE: cells(first, place, cell)}}


def of_checks(first: str, place: int, cell: float | str) -> dict[str, Any]:
    return {"tables": {STEP_CHECKS: cells(first, place, cell)}}


@each(
    "more, why",
    [
        *(({"without": (name,)}, "load_unmeasured") for name in ("step_gpt2_share", "step_matmul")),
        *(
            ({"tables": {name: lambda _rows: []}}, "load_without_table")
            for name in (STEP_TABLE, STEP_CHECKS)
        ),
        ({"more": {("step_bert", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        ({"values": {"step_gpt2": -1.0}}, "load_unit"),
        ({"values": {"step_gpt2": 400.0}}, "load_rate_untold"),
        ({"values": {"step_gpt2_share": 0.0}}, "load_rate_none"),
        ({"values": {"step_gpt2_share": 0.9}}, "load_share"),
        ({"values": {"step_miscompares": 1.0}}, "load_uncounted"),
        (of_table("GPT-2 medium", 2, 0.0), "load_row_untold"),
        (of_table("GPT-2 medium", 7, "-"), "load_row_untold"),
        (of_table("GPT-2 medium", 1, "TF32"), "load_rows_stray"),
        (of_table("GPT-2 medium", 0, "BERT-large"), "load_rows_stray"),
        *((of_checks("small model", 3, one), "load_uncompared") for one in (0.0, 2.0)),
        (of_checks("matmul", 3, "none"), "load_uncompared"),
        *((of_checks("matmul", 4, one), "load_uncounted") for one in (1.5, "-")),
    ],
)
def test_anything_less_proves_nothing(more: dict[str, Any], why: str) -> None:
    assert code(output(**more)) == why


def rows_of(change: Callable[[Rows], Rows], name: str = STEP_TABLE) -> str:
    return code(output(TABLE, tables={name: change}), TABLE)


def test_every_row_of_the_table_was_compared_and_stands_there_once() -> None:
    def compared(rows: Rows) -> Rows:
        return [row for row in rows if row[:2] != ["GPT-2 medium", "TF32"]]

    assert rows_of(compared, STEP_CHECKS) == "load_uncompared"
    assert rows_of(compared) == ""  # what there was no time for
    assert rows_of(lambda rows: [*rows, rows[-1]]) == "load_rows_stray"


def test_where_memory_is_small_options_are_with_checkpointing() -> None:
    def checkpointed(rows: Rows) -> Rows:
        return [[row[0], "bfloat16, checkpointing", *row[2:]] for row in rows]

    assert code(output(tables={STEP_TABLE: checkpointed})) == ""


def test_a_judged_rate_is_that_of_the_judged_option() -> None:
    def slower(rows: Rows) -> Rows:
        for row in rows:
            if row[:2] == ["BERT-large", "bfloat16"]:
                row[6] = 1.0
        return rows

    assert rows_of(slower) == "load_rate_untold"


def test_the_shares_of_a_table_are_of_products_around_the_mean_one() -> None:
    def with_matmul(matmul: float, shares: Sequence[float]) -> str:
        usual = sound(TABLE, ABOUT).values
        values = {"step_matmul": matmul}
        for name, share in zip(("step_bert_share", "step_neo_share"), shares, strict=True):
            values[name] = share * usual[name]
        return code(output(TABLE, values=values), TABLE)

    assert with_matmul(658.0, (0.9, 1.1)) == ""
    usual = sound(TABLE, ABOUT).values
    own = usual["step_bert"] / usual["step_bert_share"]
    assert with_matmul(own, (1.0, 0.9)) == with_matmul(own, (1.0, 1.1)) == ""
    assert with_matmul(900.0, (0.9, 1.1)) == "load_share"


def test_the_largest_model_is_absent_exactly_where_memory_is_small() -> None:
    assert code(output(SMALL), TABLE) == "load_unmeasured"
    assert code(output(TABLE), SMALL) == "load_absence_untold"
    text = printed(SMALL, ABOUT).splitlines(keepends=True)
    for name in ("step_neo", "step_neo_share"):
        kept = [line for line in text if f'"absent": "{name}"' not in line]
        kept[-1] = kept[-1].replace(f"{len(text) - 2}", f"{len(kept) - 2}")
        assert code(parse("".join(kept)), SMALL) == "load_absence_untold"


def test_no_other_model_may_be_absent() -> None:
    text = printed(SMALL, ABOUT).replace('"absent": "step_neo"', '"absent": "step_gpt2"')
    assert code(parse(text), SMALL) == "load_absence_untold"
