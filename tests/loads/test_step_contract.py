"""What proves training steps: every judged model with its rate, and everything compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases import each
from load_texts import Change, changed, drop, hello, line_of, printed, refusal, rows
from sound_loads import WRONG_WEIGHT, sound

from acceptance.core.parts import Gpu
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.step_contract import (
    STEP_CHECKS,
    STEP_TABLE,
    Ask,
)

ONE = Ask(seconds=6.0)
TABLE = Ask(seconds=6.0, table=True)
SMALL = Ask(seconds=6.0, table=True, neo=False)
ABOUT = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}
SMALL_NUMBERS = 1874944  # parameters of the small model

CHECKPOINTED = "bfloat16, checkpointing"
SMALLER = 4096.0**2
USUAL = sound(TABLE, ABOUT).values
NEAR = USUAL["step_bert"] / USUAL["step_bert_share"]


def of(table: str, model: str, place: int, value: object, option: str = "") -> Change:
    """Put this into the rows of a model, or into those of one of its options."""
    return rows(
        table,
        lambda found: [
            [*row[:place], value, *row[place + 1 :]]
            if row[0] == model and option in ("", row[1])
            else row
            for row in found
        ],
    )


def without(table: str, *keys: str) -> Change:
    """Leave out the rows that name, or compare, one of these."""
    return rows(table, lambda found: [row for row in found if not {*row[1:3]} & {*keys}])


def last_numbers(model: str, compared: str, numbers: float) -> Change:
    """So many numbers in the last such comparison."""

    def change(found: list[list[Any]]) -> list[list[Any]]:
        (*_, last) = [row for row in found if (row[0], row[2]) == (model, compared)]
        last[3] = numbers
        return found

    return rows(STEP_CHECKS, change)


def matmul(rate: float, *shares: float) -> dict[str, Any]:
    """A rate of products, and the shares of the models so much beside the usual ones."""
    names = "step_bert_share", "step_neo_share"
    own = {name: share * USUAL[name] for name, share in zip(names, shares, strict=True)}
    return {"values": {"step_matmul": rate, **own}}


def output(ask: Ask, *changes: Change, about: Mapping[str, Any] = ABOUT, **more: Any) -> LoadOutput:
    return changed(printed(ask, about, **more), *changes)


def code(
    found: Ask, *changes: Change, ask: Ask | None = None, ran_s: float = 20.0, **more: Any
) -> str:
    """Why the output of one that was asked this proves nothing of what was asked."""
    told = output(found, *changes, **more)
    return refusal(ask or found, told, {"uuid": "GPU-1"}, ran_s)


def test_the_readings_are_those_of_the_models_that_fit() -> None:
    for ask, due in ((ONE, {"step_gpt2"}), (TABLE, {"step_neo"}), (SMALL, set())):
        names = {one.name for one in output(ask).readings}
        assert names & {"step_neo", "step_gpt2"} == due
    older = output(ONE, about={**ABOUT, "capability": "7.5"})
    assert older.parameters["format"] == "f16"


WRONG = {"wrong": [WRONG_WEIGHT]}


@each(
    "ask, changes, more, why",
    [
        *((ask, (), {}, "") for ask in (ONE, TABLE, SMALL)),
        (ONE, (), {"about": {**ABOUT, "capability": "7.5"}}, ""),
        (TABLE, (), {"ran_s": 0.5}, ""),  # the time of a table is not due
        (ONE, (), {"ran_s": 5.9}, "load_ended_early"),
        (ONE, (of(STEP_CHECKS, "matmul", 4, 1.0),), {"ran_s": 6.0}, ""),  # the bound itself
        # wrong results that are counted
        (ONE, (), WRONG, ""),
        *(
            (ONE, (), {**WRONG, "values": {"step_miscompares": count}}, "load_uncounted")
            for count in (0.0, 2.0)
        ),
        # a loss that is not finite cannot fall
        (ONE, (without(STEP_CHECKS, "trained loss", "repeated losses"),), WRONG, ""),
        (ONE, (without(STEP_CHECKS, "trained loss", "finite losses"),), WRONG, "load_uncompared"),
        (ONE, (without(STEP_CHECKS, "trained loss"),), {}, "load_uncompared"),
        # a small product has fewer numbers
        (ONE, (hello(size=4096), of(STEP_CHECKS, "matmul", 3, SMALLER)), {}, ""),
        (ONE, (of(STEP_CHECKS, "matmul", 3, SMALLER),), {}, "load_uncompared"),
        # so many numbers are compared
        *(
            (ONE, (last_numbers(model, compared, least - less),), {}, "load_uncompared" * less)
            for model, compared, least in (
                ("small model", "loss", 2.0),
                ("small model", "gradients", 2.0 * SMALL_NUMBERS),
                ("small model", "weights", 2.0 * SMALL_NUMBERS),
                ("GPT-2 medium", "first loss", 1.0),
                ("GPT-2 medium", "repeated losses", 3.0),
                ("GPT-2 medium", "finite losses", 7.0),
                ("GPT-2 medium", "trained loss", 1.0),
                ("matmul", "repeated product", 8192.0**2),
            )
            for less in (0, 1)
        ),
        # every row of the table was compared and stands there once
        (
            TABLE,
            (
                rows(
                    STEP_CHECKS,
                    lambda found: [row for row in found if row[:2] != ["GPT-2 medium", "TF32"]],
                ),
            ),
            {},
            "load_uncompared",
        ),
        (TABLE, (without(STEP_TABLE, "TF32"),), {}, ""),  # what there was no time for
        (TABLE, (rows(STEP_TABLE, lambda found: [*found, found[-1]]),), {}, "load_rows_stray"),
        # where memory is small options are with checkpointing
        (ONE, (of(STEP_TABLE, "GPT-2 medium", 1, CHECKPOINTED),), {}, ""),
        # a judged rate is that of the judged option
        (TABLE, (of(STEP_TABLE, "BERT-large", 6, 1.0, "bfloat16"),), {}, "load_rate_untold"),
        # the shares of a table are of products around the mean one
        (TABLE, (), matmul(658.0, 0.9, 1.1), ""),
        *((TABLE, (), matmul(NEAR, 1.0, share), "") for share in (0.9, 1.1)),
        (TABLE, (), matmul(900.0, 0.9, 1.1), "load_share"),
        # the largest model is absent exactly where memory is small, and no other
        (SMALL, (), {"ask": TABLE}, "load_unmeasured"),
        (TABLE, (), {"ask": SMALL}, "load_absence_untold"),
        *(
            (SMALL, (drop("absent", name),), {}, "load_absence_untold")
            for name in ("step_neo", "step_neo_share")
        ),
        (
            SMALL,
            (lambda lines: line_of(lines, "absent", "step_neo").update(absent="step_gpt2"),),
            {},
            "load_absence_untold",
        ),
        # anything less
        *(
            (ONE, (), {"without": (name,)}, "load_unmeasured")
            for name in ("step_gpt2_share", "step_matmul")
        ),
        *(
            (ONE, (drop("table", name),), {}, "load_without_table")
            for name in (STEP_TABLE, STEP_CHECKS)
        ),
        (ONE, (), {"more": {("step_bert", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        *(
            (ONE, (), {"values": {name: value}}, why)
            for name, value, why in (
                ("step_gpt2", -1.0, "load_unit"),
                ("step_gpt2", 400.0, "load_rate_untold"),
                ("step_gpt2_share", 0.0, "load_rate_none"),
                ("step_gpt2_share", 0.9, "load_share"),
                ("step_miscompares", 1.0, "load_uncounted"),
            )
        ),
        *(
            (ONE, (of(table, model, place, value),), {}, why)
            for table, model, place, value, why in (
                (STEP_TABLE, "GPT-2 medium", 2, 0.0, "load_row_untold"),
                (STEP_TABLE, "GPT-2 medium", 7, "-", "load_row_untold"),
                (STEP_TABLE, "GPT-2 medium", 1, "TF32", "load_rows_stray"),
                (STEP_TABLE, "GPT-2 medium", 0, "BERT-large", "load_rows_stray"),
                (STEP_CHECKS, "small model", 3, 0.0, "load_uncompared"),
                (STEP_CHECKS, "small model", 3, 2.0, "load_uncompared"),
                (STEP_CHECKS, "matmul", 3, "none", "load_uncompared"),
                (STEP_CHECKS, "matmul", 4, 1.5, "load_uncounted"),
                (STEP_CHECKS, "matmul", 4, "-", "load_uncounted"),
            )
        ),
    ],
)
def test_what_is_due(ask: Ask, changes: Any, more: dict[str, Any], why: str) -> None:
    assert code(ask, *changes, **more) == why


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
    assert code(ONE, hello(**about)) == "load_parameter"
