"""Training on the GPUs: what it reaches, and whether its values are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from acceptance.core.component import Component
from acceptance.expect.sheet import Sheet
from acceptance.session.check import Check
from acceptance.suites.fixtures.gpu_loads import GpuLoads
from acceptance.suites.fixtures.train import step_table

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
Sheets = Mapping[Component, Sheet | None]
STEP = ("step_gpt2", "step_gpt2_ratio", "step_gpt2_share", "step_matmul", "step_miscompares")
STEPS = (
    "step_bert",
    "step_bert_ratio",
    "step_bert_share",
    "step_neo",
    "step_neo_ratio",
    "step_neo_share",
    "step_miscompares",
)


def _steps(
    loads: GpuLoads, names: Sequence[str], sheets: Sheets, table: WriteTable, check: Check
) -> None:
    """Judge rates, shares and wrong results of training steps, and write their tables."""
    for name in names:
        if name.endswith("_ratio"):
            check.ratio(name)
        elif name.endswith("_miscompares"):
            counts, notes = loads.miscompares(name)
            check(name, counts, notes=notes)
        else:
            check(name, loads.values(name))
    for gpu, output in loads.outputs.items():
        for one in output.tables:
            columns, rows = step_table(one, sheets.get(gpu))
            table(gpu, one.name, columns, rows)
    loads.raise_failed()


@pytest.mark.session("load")
@pytest.mark.costs(12.0, load="train_step", slack=300.0, loads_gpus=True)
@pytest.mark.measures(*STEP)
def test_step(
    train_steps: Callable[[], GpuLoads], sheets: Sheets, table: WriteTable, check: Check
) -> None:
    """Training steps of a GPT-2 medium on all GPUs at once, hot: forward, backward and AdamW, as
    plain torch trains under autocast.

    Measured: counted operations over the GPU's own time, without the first steps, and their share
    of the matrix products between which they run; a step of a small model against float64, and of
    the large one that its loss is right at first, repeats bit for bit, stays finite and falls. Not
    measured: compiled steps, reading of data, more than one GPU for one model.
    """
    _steps(train_steps(), STEP, sheets, table, check)


@pytest.mark.session("load")
@pytest.mark.costs(15.0, load="train_step_table", slack=600.0, loads_gpus=True)
@pytest.mark.measures(*STEPS)
def test_step_table(
    train_step_table: Callable[[], GpuLoads], sheets: Sheets, table: WriteTable, check: Check
) -> None:
    """Training steps of GPT-2 medium, BERT-large and GPT-Neo-1.3B shapes with the usual options, on
    all GPUs at once: float32, TF32, autocast with and without the fused optimizer, accumulation,
    checkpointing.

    Measured: as for the single step, a few seconds each; the two larger models are judged. Not
    measured: options for which the time or the GPU's memory does not suffice, which a note names.
    """
    _steps(train_step_table(), STEPS, sheets, table, check)
