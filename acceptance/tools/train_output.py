"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from acceptance.core.message import Listed, Message
from acceptance.loads.names import OWN
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.names import (
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_OF_GPU,
    STEP_READINGS,
    STEP_REFERENCED,
    STEP_TABLE,
    StepModel,
)
from acceptance.loads.train.shapes import MODELS
from acceptance.loads.train.step_options import FORMAT_NAMES, StepFormat, judged_format
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output
from acceptance.tools.load_output import ReadingKey


def train_step_argv(
    python: str, *, seconds: float, table: bool = False, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the training steps of one GPU; `seconds` bound all its models."""
    argv = [python, "-m", "acceptance.loads.train.step_load", "--device", "cuda"]
    argv += ["--seconds", f"{float(seconds)}"]
    argv += ["--table"] if table else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_train_step(
    completed: ProgramResult,
    *,
    seconds: float | None,
    table: bool,
    neo: bool,
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """The output of the training steps, if they ran completely and as requested.

    `neo` says whether the GPU has memory for the largest model, which is absent otherwise. `also`
    holds other parameters that it must have had, such as the GPU's `uuid`. The time is not compared
    where `seconds` is None; the table ends when it has all rows, so no time is due for it.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for another format than
    this GPU's, a missing or unknown reading, a rate that is not in the table, a model of which
    something was not compared, and wrong results that were not counted.
    """
    asked: dict[str, Any] = {"device": "cuda", "table": table, **(also or {})}
    asked |= {} if seconds is None else {"seconds": seconds}
    least_s = 0.0 if seconds is None or table else seconds
    output = load_output.read(completed, "train_step", asked, least_s=least_s)
    judged = _judged(output)
    models: list[StepModel] = ["gpt2"] if not table else ["bert", "neo"] if neo else ["bert"]
    due: dict[ReadingKey, str] = {(name, OWN): unit for name, unit in STEP_OF_GPU.items()}
    for model in models:
        due |= {(name.format(model), OWN): unit for name, unit in STEP_READINGS.items()}
    lacked: set[ReadingKey] = set()
    if table and not neo:
        lacked = {(name.format("neo"), OWN) for name in STEP_READINGS}
        absent = {(one.name, one.component) for one in output.absences}
        if absent != lacked:
            names = Listed(tuple(name for name, _ in sorted(lacked ^ absent)))
            raise load_output.failed(Message("load_absence_untold", {"names": names}), output)
    load_output.exactly(output, due, lacked)
    _require_rates(output, models)
    _require_compared(output, models, judged)
    (counted,) = (one.value for one in output.readings if one.name == "step_miscompares")
    if counted != len(output.miscompares):
        raise load_output.failed(Message("load_uncounted"), output)
    return output


def _judged(output: LoadOutput) -> StepFormat:
    """The judged format of the GPU that the load names."""
    told, format_ = output.parameters.get("capability"), output.parameters.get("format")
    try:
        judged = judged_format(str(told))
    except ValueError:
        judged = None
    if judged is None or format_ != judged:
        values = {"name": "format", "told": repr(format_), "asked": repr(judged)}
        raise load_output.failed(Message("load_parameter", values), output)
    return judged


def _require_rates(output: LoadOutput, models: list[StepModel]) -> None:
    """Raise LoadFailed unless each judged rate is that of a row, and each row has figures."""
    table = load_output.table_of(output, STEP_TABLE, STEP_LOAD_COLUMNS)
    place = STEP_LOAD_COLUMNS.index("TFLOP/s")
    rates = {(row[0], row[place]) for row in table.rows}
    for row in table.rows:
        if not all(isinstance(one, float) and one > 0 and math.isfinite(one) for one in row[2:]):
            values = {"table": STEP_TABLE, "row": ", ".join(map(str, row))}
            raise load_output.failed(Message("load_row_untold", values), output)
    for model in models:
        for one in output.readings:
            told = MODELS[model].name, round(one.value, 3)
            if one.name == f"step_{model}" and told not in rates:
                values = {"name": one.name, "component": str(OWN), "table": STEP_TABLE}
                raise load_output.failed(Message("load_rate_untold", values), output)


def _require_compared(output: LoadOutput, models: list[StepModel], judged: StepFormat) -> None:
    """Raise LoadFailed unless everything was compared, and every difference beyond it reported."""
    rows = load_output.table_of(output, STEP_CHECKS, STEP_CHECK_COLUMNS).rows
    found = {row[:3]: row[3] for row in rows}
    own = FORMAT_NAMES[judged]
    due = {
        ("small model", name, what): 2.0  # before and after the load
        for name in (FORMAT_NAMES["f32"], own)
        for what in STEP_REFERENCED
    }
    due |= {(MODELS[model].name, own, what): 1.0 for model in models for what in STEP_LOSSES}
    due["matmul", own, "repeated product"] = 1.0
    lacking = [
        key
        for key, least in due.items()
        if not isinstance(many := found.get(key), float) or many < least
    ]
    if output.miscompares:  # a loss that is not finite cannot fall
        lacking = [key for key in lacking if key[2] != "trained loss"]
    elif any(not isinstance(row[4], float) or not row[4] <= 1 for row in rows):
        raise load_output.failed(Message("load_uncounted"), output)
    if lacking:
        names = Listed(tuple(f"{what} of {model} ({name})" for model, name, what in lacking))
        raise load_output.failed(Message("load_uncompared", {"names": names}), output)
