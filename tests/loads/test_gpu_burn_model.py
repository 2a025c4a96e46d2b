"""What gpu-burn says of the faults that the burn finds, by the model of its comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gpu_burn_model as model
from cases import each
from gpu_burn_model import AT, CASES, RING, SIDE, Card, Case, burn


@each("case", CASES, told=lambda case: f"{case.fault} {case.dtype}")
def test_what_it_says(case: Case) -> None:
    said = model.says(case)
    assert said.startswith("FAULTY") == case.finds
    assert case.finds or said == "OK"


def test_every_injection_of_the_burn_stands_in_the_table() -> None:
    told = {case.fault.partition(" ")[0].rstrip(",") for case in CASES}
    assert told >= {"bit", "stuck", "ulp17", "nan", "inf", "repeat", "input", "slow:50", "hang"}


def test_it_counts_every_element_once_for_each_result() -> None:
    stuck_first = next(case for case in CASES if case.fault == "stuck, in C[0]")
    stuck_later = next(case for case in CASES if case.fault == "stuck, not in C[0]")
    assert burn(stuck_first.card) == model.FILLINGS * (RING - 1)
    assert burn(stuck_later.card) == model.FILLINGS


def test_a_changed_operand_counts_until_the_ring_begins_anew() -> None:
    within = next(case for case in CASES if case.fault == "input, within")
    errors = burn(within.card)
    # A row of each product from the change to the end of its filling: at most the elements of a
    # row.
    assert 0 < errors <= SIDE * (RING - AT % RING)


def test_the_first_result_of_a_ring_is_never_compared_with_that_of_another() -> None:
    """All of a filling wrong in the same way, the one before and the one after
    right: nothing is found.
    """

    def one_filling(number: int, _slot: int, c: model.Matrix) -> None:
        if RING <= number < 2 * RING:
            c[:] = 0.0

    assert burn(Card(result=one_filling)) == 0


def test_the_table_is_printed_by_running_the_file() -> None:
    done = subprocess.run(
        [sys.executable, Path(model.__file__)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.stdout == f"{model.table()}\n"
    assert len(done.stdout.splitlines()) == len(CASES) + 2
