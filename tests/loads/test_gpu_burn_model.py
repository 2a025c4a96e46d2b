"""What gpu-burn says of the faults that the burn injects, by the model of its comparison."""

from __future__ import annotations

import runpy
from pathlib import Path

from load_program import run

from acceptance.loads.burn.contract import FAULTS

MODEL = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/gpu_burn_model.py"))
CASES = {case.fault: case for case in MODEL["CASES"] if case.dtype == "float32"}


def test_the_script_prints_its_table_and_finds_each_verdict_as_expected() -> None:
    done = run("-m", "benchmarks.gpu_burn_model")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{MODEL['table']()}\n"
    assert len(done.stdout.splitlines()) == len(MODEL["CASES"]) + 2


def test_every_fault_that_the_burn_injects_stands_in_the_table() -> None:
    kinds = {fault.replace(":", " ").replace(",", " ").split()[0] for fault in CASES}
    assert kinds == {"none", "slow", *FAULTS}


def test_a_stuck_bit_counts_in_every_comparison_with_its_result() -> None:
    fillings, ring = MODEL["FILLINGS"], MODEL["RING"]
    assert MODEL["burn"](CASES["stuck, in C[0]"].card) == fillings * (ring - 1)
    assert MODEL["burn"](CASES["stuck, not in C[0]"].card) == fillings
