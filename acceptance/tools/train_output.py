"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

from acceptance.core.dtype import native_dtypes, trained_dtype
from acceptance.core.message import Listed, Message, Values
from acceptance.loads.names import OWN
from acceptance.loads.protocol import LoadOutput, LoadTable
from acceptance.loads.train import parallel_values
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.layer_grid import GRID, NO_MEMORY, NO_TIME
from acceptance.loads.train.names import (
    LAYER_COLUMNS,
    LAYER_PARTS,
    LAYER_READINGS,
    LAYER_TABLE,
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_OF_GPU,
    STEP_READINGS,
    STEP_REFERENCED,
    STEP_SIZES,
    STEP_TABLE,
    StepModel,
    layer_tensors,
    layers_compared,
)
from acceptance.loads.train.shapes import LAYERS, MODELS
from acceptance.loads.train.step_bounds import SMALL
from acceptance.loads.train.step_options import (
    FORMAT_NAMES,
    StepFormat,
    StepOption,
    judged_format,
    options,
)
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output
from acceptance.tools.load_output import ReadingKey, failed

LAYERS_LOAD = "train_layers"
# The slices under load are measured by the GPU, and each ends when its last batch does.
LAYERS_LEAST_SHARE = 0.95
_EXACT = 1e-6  # of figures that are not rounded

_T = TypeVar("_T")
Cells = tuple[float | str, ...]


def train_layers_argv(
    python: str, *, dtype: str, seconds: float, table: bool = False, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the load of layers, on one GPU; `dtype` is the judged format."""
    argv = [python, "-m", "acceptance.loads.train.layer_load", "--device", "cuda"]
    argv += ["--dtype", dtype, "--seconds", f"{float(seconds)}"]
    argv += ["--table"] if table else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_train_layers(
    completed: ProgramResult,
    *,
    dtype: str | None,
    seconds: float | None,
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """The output of the load of layers, if it ran completely and as requested.

    `also` holds other parameters that it must have had, such as the GPU's `uuid`. Format and time
    are not compared where they are None.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for a missing or unknown
    reading, another unit, a rate of 0, another format than this GPU's, a table that has not exactly
    the judged shape of each layer with the rates of the readings, a share that is not that of the
    rates, a tensor that was not compared, and wrong results that were reported but not counted.
    """
    output = _read(completed, dtype=dtype, seconds=seconds, table=False, also=also)
    _require_readings(output, {(name, OWN): unit for name, unit in LAYER_READINGS.items()})
    told = {one.name: one.value for one in output.readings}
    batches, own = output.parameters.get("batches"), output.parameters.get("dtype")
    table = load_output.table_of(output, LAYER_TABLE, LAYER_COLUMNS)
    due: list[Cells] = []
    for name, shape in LAYERS.items():
        batch = batches.get(name) if isinstance(batches, dict) else None
        if type(batch) is not int or batch not in _halves(shape.batch):
            values: Values = {"name": "batches", "told": repr(batches), "asked": str(shape.batch)}
            raise load_output.failed(Message("load_parameter", values), output)
        rates = told[f"layer_{name}_forward"], told[f"layer_{name}"], told[f"layer_{name}_share"]
        due.append((name, str(own), float(shape.sequence), float(batch), *rates))
        _require_share(rates[2], rates[1], told["layer_matmul"], f"layer_{name}_share", output)
    if list(table.rows) != due:
        raise load_output.failed(Message("load_layer_rows", {"table": LAYER_TABLE}), output)
    _require_layers_compared(output, layer_tensors(1, judged=True))
    return output


def read_train_layer_table(
    completed: ProgramResult,
    *,
    dtype: str | None,
    seconds: float | None,
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """The output of the load of layers with its table; arguments as in `read_train_layers`.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for a missing or unknown
    reading, another unit, a rate of 0, other formats than this GPU's, a table that has not exactly
    one row for each published shape in each of them, a row with neither rates nor the reason why
    there are none, no rate at all in the judged format, a tensor that was not compared, and wrong
    results that were reported but not counted.
    """
    output = _read(completed, dtype=dtype, seconds=seconds, table=True, also=also)
    _require_readings(output, {(name, OWN): unit for name, unit in LAYER_PARTS.items()})
    own = output.parameters.get("dtype")
    native = _of_capability(output, native_dtypes) or ()
    formats = [one for one in UNITS if one in native]
    if output.parameters.get("formats") != formats:
        raise failed(_other("formats", output.parameters.get("formats"), formats), output)
    table = load_output.table_of(output, LAYER_TABLE, LAYER_COLUMNS)
    cells = [(name, float(s), float(b)) for name, s, batches in GRID for b in batches]
    due = [(name, dtype, s, b) for dtype, (name, s, b) in product(formats, cells)]
    if [row[:4] for row in table.rows] != due or not _measured(table, str(own)):
        raise load_output.failed(Message("load_layer_rows", {"table": LAYER_TABLE}), output)
    _require_layers_compared(output, layer_tensors(len(formats), judged=False))
    return output


def _read(
    completed: ProgramResult,
    *,
    dtype: str | None,
    seconds: float | None,
    table: bool,
    also: Mapping[str, Any] | None,
) -> LoadOutput:
    asked: dict[str, Any] = {"device": "cuda", "table": table, **(also or {})}
    asked |= {} if dtype is None else {"dtype": dtype}
    asked |= {} if seconds is None else {"seconds": seconds}
    # The table may be complete before its time is over.
    least_s = 0.0 if seconds is None or table else LAYERS_LEAST_SHARE * seconds
    output = load_output.read(completed, LAYERS_LOAD, asked, least_s=least_s)
    judged = _of_capability(output, trained_dtype)
    if judged is None or output.parameters.get("dtype") != judged:
        raise failed(_other("dtype", output.parameters.get("dtype"), judged), output)
    return output


def _of_capability(output: LoadOutput, of: Callable[[str], _T]) -> _T | None:
    """What a GPU of the compute capability that the load names has; None where it names none."""
    try:
        return of(str(output.parameters.get("capability")))
    except ValueError:
        return None


def _require_readings(
    output: LoadOutput, due: Mapping[ReadingKey, str], lacked: frozenset[ReadingKey] = frozenset()
) -> None:
    """Raise LoadFailed unless exactly this was measured, and no rate or share is 0."""
    load_output.exactly(output, due, set(lacked))
    for one in output.readings:
        if one.unit != "count" and not one.value > 0:
            raise failed(Message("load_rate_none", {"name": one.name}), output)


def _halves(batch: int) -> set[int]:
    """The judged batches of smaller GPUs."""
    return {batch >> times for times in range(batch.bit_length())}


def _measured(table: LoadTable, dtype: str) -> bool:
    """Whether each row has its rates or a reason, and the judged format has rates."""
    reasons = ((NO_TIME,) * 3, (NO_MEMORY,) * 3)
    measured = [row for row in table.rows if row[4:] not in reasons]
    return all(map(_positive, measured)) and any(row[1] == dtype for row in measured)


def _positive(row: Sequence[float | str]) -> bool:
    return all(isinstance(rate, float) and rate > 0 for rate in row[4:])


def _require_share(share: float, rate: float, matmul: float, name: str, output: LoadOutput) -> None:
    if not math.isclose(share * matmul, rate, rel_tol=_EXACT):
        values: Values = {
            "name": name,
            "share": f"{share:g}",
            "rate": f"{rate:g}",
            "matmul": f"{matmul:g}",
        }
        raise load_output.failed(Message("load_share", values), output)


def _require_layers_compared(output: LoadOutput, tensors: int) -> None:
    """Raise LoadFailed unless so many tensors were compared, and every wrong one was counted."""
    (counted,) = (one.value for one in output.readings if one.name == "layer_miscompares")
    if counted != len(output.miscompares):
        raise load_output.failed(Message("load_uncounted"), output)
    if layers_compared(tensors, len(output.miscompares)) not in output.notes:
        raise failed(Message("load_tensors_uncompared", {"count": tensors}), output)


def _other(name: str, told: object, due: object) -> Message:
    return Message("load_parameter", {"name": name, "told": repr(told), "asked": repr(due)})


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
    this GPU's, a missing or unknown reading, a rate of 0 or one that is not in the table, a share
    that is not that of the rates, a row of another model or option, a model of which something was
    not compared, and wrong results that were not counted.
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
    _require_readings(output, due, frozenset(lacked))
    _require_rates(output, models, judged, table=table)
    _require_steps_compared(output, models, judged)
    (counted,) = (one.value for one in output.readings if one.name == "step_miscompares")
    if counted != len(output.miscompares):
        raise load_output.failed(Message("load_uncounted"), output)
    return output


def _judged(output: LoadOutput) -> StepFormat:
    """The judged format of the GPU that the load names."""
    judged, told = _of_capability(output, judged_format), output.parameters.get("format")
    if judged is None or told != judged:
        raise failed(_other("format", told, judged), output)
    return judged


def _require_rates(
    output: LoadOutput, models: list[StepModel], judged: StepFormat, *, table: bool
) -> None:
    """Raise LoadFailed unless each row has figures, and the judged readings are those of rows."""
    rows = load_output.table_of(output, STEP_TABLE, STEP_LOAD_COLUMNS).rows
    for row in rows:
        if not all(isinstance(one, float) and one > 0 for one in row[2:]):
            values: Values = {"table": STEP_TABLE, "row": ", ".join(map(str, row))}
            raise failed(Message("load_row_untold", values), output)
    own = tuple(StepOption(judged, checkpointed=which).name for which in (False, True))
    trained = tuple(options(judged))
    # Where memory is small, any option may be trained with checkpointing.
    known = {replace(one, checkpointed=True).name for one in trained} | {
        one.name for one in trained
    }
    due = {
        (MODELS[model].name, name)
        for model in (("gpt2", *models) if table else models)
        for name in (known if table else own)
    }
    told = [(str(row[0]), str(row[1])) for row in rows]
    if strangers := [", ".join(one) for one in told if one not in due or told.count(one) > 1]:
        values = {"table": STEP_TABLE, "rows": Listed(tuple(strangers))}
        raise failed(Message("load_rows_stray", values), output)
    place = STEP_LOAD_COLUMNS.index("TFLOP/s")
    rates = {(str(row[0]), str(row[1])): row[place] for row in rows}
    found = {one.name: one.value for one in output.readings}
    products = []
    for model in models:
        name, share = (one.format(model) for one in STEP_READINGS)
        of_row = next((rates[key] for one in own if (key := (MODELS[model].name, one)) in rates), 0)
        if of_row != round(found[name], 3):
            values = {"name": name, "component": str(OWN), "table": STEP_TABLE}
            raise failed(Message("load_rate_untold", values), output)
        products.append(found[name] / found[share])
    # Each share is of the products beside its own model, and `step_matmul` of all of them.
    matmul = found["step_matmul"]
    if not min(products) * (1 - _EXACT) <= matmul <= max(products) * (1 + _EXACT):
        _require_share(found[share], found[name], matmul, share, output)


def _require_steps_compared(
    output: LoadOutput, models: list[StepModel], judged: StepFormat
) -> None:
    """Raise LoadFailed unless everything was compared, and every difference beyond it reported."""
    rows = load_output.table_of(output, STEP_CHECKS, STEP_CHECK_COLUMNS).rows
    found = {row[:3]: row[3] for row in rows}
    own, size = FORMAT_NAMES[judged], output.parameters.get("size")
    if type(size) is not int or size not in STEP_SIZES:
        raise failed(_other("size", size, list(STEP_SIZES)), output)
    # Before and after the load: the loss, and every gradient and weight.
    parameters = parallel_values.split_parameters(SMALL) + parallel_values.whole_parameters(SMALL)
    due = {
        ("small model", name, what): 2.0 * (1 if what == "loss" else parameters)
        for name in (FORMAT_NAMES["f32"], own)
        for what in STEP_REFERENCED
    }
    trained = {(MODELS[model].name, own) for model in models} | {
        (str(row[0]), str(row[1]).partition(",")[0])
        for row in load_output.table_of(output, STEP_TABLE, STEP_LOAD_COLUMNS).rows
    }
    due |= {(*one, what): least for one in trained for what, least in STEP_LOSSES.items()}
    due["matmul", own, "repeated product"] = float(size**2)
    lacking = [
        key
        for key, least in due.items()
        if not isinstance(many := found.get(key), float) or many < least
    ]
    if output.miscompares:  # a loss that is not finite can neither fall nor be made again
        unknown = ("trained loss", "repeated losses")
        lacking = [key for key in lacking if key[2] not in unknown]
    elif any(not isinstance(row[4], float) or not row[4] <= 1 for row in rows):
        raise load_output.failed(Message("load_uncounted"), output)
    if lacking:
        names = Listed(tuple(f"{what} of {model} ({name})" for model, name, what in lacking))
        raise load_output.failed(Message("load_uncompared", {"names": names}), output)
