"""What proves parallel training: figures that fit each other, and values that were compared."""

from __future__ import annotations

from typing import Any

from cases import each
from load_texts import Change, cell, changed, drop, hello, printed, reading, refusal, rows
from wrong_results import UNEQUAL

from acceptance.core.parts import GPUS
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.parallel_contract import EFFICIENCIES, Ask

ASK = Ask(ranks=2, seconds=1.0, ways=("ddp",), accumulate=(1,))
UUIDS = ["GPU-1a", "GPU-2b"]


def output(*changes: Change, ask: Ask = ASK, **more: Any) -> LoadOutput:
    return changed(printed(ask, {"uuids": UUIDS}, **more), *changes)


def code(*changes: Change, ask: Ask = ASK, **more: Any) -> str:
    return refusal(ask, output(*changes, ask=ask, **more), {"uuids": UUIDS}, 0.0)


def test_whole_training_is_proof_however_short_it_was() -> None:
    every = Ask(ranks=2, seconds=1.0)
    assert code() == code(ask=every) == ""
    counts = {"parallel_miscompares", "parallel_disagreements"}
    assert {one.name for one in output(ask=every).readings} == {
        "parallel_ddp",
        *EFFICIENCIES,
        *counts,
    }
    assert {one.component for one in output().readings} == {GPUS}


def test_other_ways_have_no_rate_of_data_parallel_training() -> None:
    for ask in (
        Ask(ranks=2, seconds=1.0, ways=("zero2", "tp"), accumulate=(4,)),
        Ask(ranks=2, seconds=1.0, ways=("ddp",), accumulate=(4,)),
        Ask(ranks=2, seconds=1.0, arms=("p2p_off",)),
    ):
        assert code(ask=ask) == ""
        assert "parallel_ddp" not in {one.name for one in output(ask=ask).readings}


@each(
    "change, why",
    [
        *(
            (hello(**{name: value}), "load_parameter")
            for name, value in (
                ("backend", "gloo"),
                ("ranks", 3),
                ("arms", ["default"]),
                ("ways", ["zero2"]),
                ("accumulate", [4]),
                ("seconds", 0.5),
                ("uuids", UUIDS[::-1]),
                ("uuids", UUIDS[:1]),
                ("uuids", None),
                ("model", "tiny"),
                ("model", ["parallel"]),
                ("batch", 3),
                ("batch", 8.0),
                ("batch", None),
                ("tensor_batch", 17),
                ("tensor_batch", 0),
                ("tensor_batch", "16"),
            )
        ),
        (hello(model="digest", batch=2, tensor_batch=4), "load_training_unsound"),
        (drop("reading", "parallel_ddp"), "load_unmeasured"),
        (drop("reading", "parallel_miscompares"), "load_unmeasured"),
        (drop("table", "train_parallel"), "load_without_table"),
        (drop("table", "train_parallel_values"), "load_without_table"),
        (rows("train_parallel", lambda found: found[1:]), "load_trainings"),
        (rows("train_parallel", lambda found: found[:-1]), "load_trainings"),
        (rows("train_parallel", lambda found: [*found, found[0]]), "load_trainings"),
        (rows("train_parallel_values", lambda found: found[:-1]), "load_trainings"),
        (rows("train_parallel_values", lambda found: [*found, found[0]]), "load_trainings"),
        (reading("parallel_ddp", 0.04), "load_rate_untold"),
        (reading("parallel_ddp", 0.0), "load_rate_none"),
        (reading("parallel_ddp_efficiency", 0.9), "load_rate_untold"),
        (reading("parallel_ddp_efficiency_p2p_off", 0.9), "load_rate_untold"),
        *(
            (cell("train_parallel", row, place, value), "load_training_unsound")
            for row, place, value in (
                (1, 3, 4),
                (1, 4, 10.0),
                (1, 5, 300.0),
                (1, 7, -1.0),
                (1, 7, "40"),
                (1, 8, 1.0),
                (1, 8, 0),
                (1, 10, 0.5),
                (0, 6, 1.1),
                (0, 4, 0),
                (0, 8, 100.0),
            )
        ),
        *(
            (cell("train_parallel_values", row, place, value), "load_uncompared")
            for row, place, value in ((0, 3, 2), (1, 4, 5), (0, 5, 5), (0, 6, 0), (0, 7, 1))
        ),
        (cell("train_parallel_values", 0, 9, 1.25), "load_uncounted"),
        (cell("train_parallel_values", 0, 10, "nan"), "load_uncounted"),
    ],
)
def test_what_is_not_this_training_proves_nothing(change: Change, why: str) -> None:
    assert code(change) == why


@each(
    "changes",
    [
        # compute of one card alone and the optimizer that exceed a step are said by a note
        (cell("train_parallel", 1, 9, 1.1), cell("train_parallel", 1, 10, 0)),
        # the mean card's rate beside the slowest card's time
        (cell("train_parallel", 0, 8, 320.0),),
    ],
)
def test_a_step_that_hides_all_and_cards_that_differ_are_sound(changes: tuple[Change, ...]) -> None:
    assert code(*changes) == ""


def test_what_is_wrong_must_be_counted() -> None:
    counts = {"parallel_miscompares": 1.0}
    beyond = cell("train_parallel_values", 0, 9, 1.25)
    assert code(wrong=[read(UNEQUAL)]) == "load_uncounted"
    assert code(beyond, wrong=[read(UNEQUAL)], values=counts) == ""
