"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

from acceptance.core.dtype import native_dtypes, trained_dtype
from acceptance.core.message import Listed, Message, Value, Values
from acceptance.core.parts import GPUS
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.names import COLLECTIVE_ARMS, OWN
from acceptance.loads.protocol import LoadOutput, LoadTable
from acceptance.loads.train import digest_log, parallel_sizes, parallel_values
from acceptance.loads.train.digest_log import RunDigests, UnreadableLog
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.layer_grid import GRID, NO_MEMORY, NO_TIME
from acceptance.loads.train.names import (
    ALONE,
    DIGEST_BATCH,
    DIGEST_COLUMNS,
    DIGEST_FORMATS,
    DIGEST_LOG,
    DIGEST_READINGS,
    DIGEST_RECIPE,
    DIGEST_STEPS,
    DIGEST_TABLE,
    LAYER_COLUMNS,
    LAYER_PARTS,
    LAYER_READINGS,
    LAYER_TABLE,
    PARALLEL_COLUMNS,
    PARALLEL_COUNTS,
    PARALLEL_TABLE,
    PARALLEL_TOTAL,
    PARALLEL_VALUE_COLUMNS,
    PARALLEL_VALUES,
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_OF_GPU,
    STEP_READINGS,
    STEP_REFERENCED,
    STEP_SIZES,
    STEP_TABLE,
    ParallelWay,
    StepModel,
    layer_tensors,
    layers_compared,
    parallel_efficiency,
)
from acceptance.loads.train.shapes import LAYERS, MODELS, ModelShape
from acceptance.loads.train.step_bounds import SMALL
from acceptance.loads.train.step_options import (
    FORMAT_NAMES,
    StepFormat,
    StepOption,
    judged_format,
    options,
)
from acceptance.loads.train.training_runs import TrainingRuns, TrainingVersions
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output
from acceptance.tools.load_output import ReadingKey, failed, same_gpu

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


DIGEST_LEAST_REPEATS = 2


def train_digest_argv(python: str, *, seconds: float, inject: str | None = None) -> tuple[str, ...]:
    """The command line of the training run whose bits are compared, on one GPU."""
    argv = [python, "-m", "acceptance.loads.train.digest_load", "--device", "cuda"]
    argv += ["--seconds", f"{float(seconds)}"]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_train_digest(
    completed: ProgramResult, *, seconds: float | None, also: Mapping[str, Any] | None = None
) -> LoadOutput:
    """The output of the digests of a training run, if it ran completely and as requested.

    `also` holds other parameters that it must have had, such as the GPU's `uuid`. The time is not
    compared where `seconds` is None.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for a run that is not
    the one that every GPU makes, a missing or unknown reading, a format without a log or with
    another one than its row says, fewer than two runs of a format, a repeat that differed and is
    not counted, and versions that are not told.
    """
    asked: dict[str, Any] = {
        "device": "cuda",
        "model": MODELS["digest"].name,
        "batch": DIGEST_BATCH,
        "sequence": MODELS["digest"].sequence,
        "steps": DIGEST_STEPS,
        "recipe": DIGEST_RECIPE,
        **({} if seconds is None else {"seconds": seconds}),
        **(also or {}),
    }
    output = load_output.read(completed, "train_digest", asked, least_s=seconds or 0.0)
    _require_readings(output, {(name, OWN): unit for name, unit in DIGEST_READINGS.items()})
    training_runs(output)
    return output


def training_runs(output: LoadOutput) -> TrainingRuns:
    """The runs in the output of the load. Raises LoadFailed as `read_train_digest` does."""
    versions, told = _versions(output), output.parameters
    native = _of_capability(output, native_dtypes) or ()
    formats = tuple(first if first in native else other for first, other in DIGEST_FORMATS)
    if not native or told.get("formats") != list(formats):
        raise failed(_other("formats", told.get("formats"), list(formats)), output)
    rows = load_output.table_of(output, DIGEST_TABLE, DIGEST_COLUMNS).rows
    if [row[0] for row in rows] != list(formats) or len({row[2] for row in rows}) != 1:
        raise load_output.failed(Message("load_digest_rows"), output)
    names = {DIGEST_LOG.format(dtype) for dtype in formats}
    if {one.name for one in output.logs} != names or {one.component for one in output.logs} != {
        OWN
    }:
        raise load_output.failed(Message("load_digest_rows"), output)
    repeats = rows[0][2]
    if not isinstance(repeats, float) or not repeats.is_integer() or repeats < DIGEST_LEAST_REPEATS:
        values = {"told": str(repeats), "least": f"{DIGEST_LEAST_REPEATS}"}
        raise load_output.failed(Message("load_repeats", values), output)
    first = {
        dtype: _first(output, dtype, tuple(map(str, row[3:6])), row[1], row[6])
        for dtype, row in zip(formats, rows, strict=True)
    }
    differing = tuple(one for one in output.miscompares if isinstance(one, DifferingRun))
    (counted,) = (one.value for one in output.readings)
    runs = {(one.format, one.repeat) for one in differing}
    possible = {(dtype, number) for dtype in formats for number in range(1, int(repeats))}
    if counted != len(output.miscompares) or len(runs) != len(output.miscompares):
        raise load_output.failed(Message("load_uncounted"), output)
    if not runs <= possible:
        raise load_output.failed(Message("load_digest_rows"), output)
    return TrainingRuns(versions, first, int(repeats), differing)


def _first(
    output: LoadOutput,
    dtype: DigestFormat,
    summaries: tuple[str, ...],
    steps: float | str,
    seconds: float | str,
) -> RunDigests:
    (text,) = (one.text for one in output.logs if one.name == DIGEST_LOG.format(dtype))
    try:
        found = digest_log.parse(text)
    except UnreadableLog as error:
        values = {"format": dtype, "why": str(error)}
        raise load_output.failed(Message("load_digests_unread", values), output) from error
    took = isinstance(seconds, float) and 0 < seconds < sys.maxsize
    as_due = (
        found.steps == steps == DIGEST_STEPS
        and found.summaries == summaries
        and found.tensors == digest_log.gpt_tensors(MODELS["digest"].layers)
    )
    if not (took and as_due):
        raise load_output.failed(Message("load_digest_rows"), output)
    return found


def _versions(output: LoadOutput) -> TrainingVersions:
    told = output.parameters
    texts = [told.get(name) for name in ("gpu", "library", "cublas")]
    gpu, library, cublas = (one if isinstance(one, str) else "" for one in texts)
    count, recipe = told.get("multiprocessors"), told.get("recipe")
    if not (gpu and library and cublas) or type(count) is not int or count < 1:
        raise load_output.failed(Message("load_library_untold"), output)
    assert type(recipe) is int  # as asked
    return TrainingVersions(gpu, count, library, cublas, recipe)


_RowKey = tuple[str | float, ...]  # arm, way, accumulation
ROUNDED = 2e-3  # of the figures in a row, which are rounded


def train_parallel_argv(
    python: str,
    *,
    ranks: int,
    seconds: float,
    ways: Sequence[ParallelWay],
    accumulate: Sequence[int],
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of parallel training; `seconds` are those of all timed trainings."""
    argv = [python, "-m", "acceptance.loads.train.parallel_load", "--backend", "nccl"]
    argv += ["--ranks", str(ranks), "--seconds", f"{float(seconds)}"]
    argv += ["--ways", ",".join(ways), "--accumulate", ",".join(map(str, accumulate))]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_train_parallel(
    completed: ProgramResult,
    *,
    uuids: Sequence[str],
    seconds: float | None,
    ways: Sequence[ParallelWay],
    accumulate: Sequence[int],
) -> LoadOutput:
    """The output of parallel training on these GPUs, if it ran completely and as requested.

    `seconds` is not compared where it is None. It ends when it has measured all, so no time is due.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for other GPUs than
    these, an unknown model, a missing or unknown reading, another unit, a training that is missing
    in the table or contradicts itself, a reading that is not in it, a training of which not every
    loss, gradient and weight was compared with one card's, and wrong results that were not counted.
    """
    ranks = len(uuids)
    asked: dict[str, object] = {"backend": "nccl", "ranks": ranks, "arms": list(COLLECTIVE_ARMS)}
    asked |= {"ways": list(ways), "accumulate": list(accumulate)}
    asked |= {} if seconds is None else {"seconds": seconds}
    output = load_output.read(completed, "train_parallel", asked, least_s=0.0)
    told = output.parameters.get("uuids")
    if not isinstance(told, list) or len(told) != ranks or not all(map(same_gpu, told, uuids)):
        raise failed(_other("uuids", told, list(uuids)), output)
    due: dict[ReadingKey, str] = {(name, GPUS): unit for name, unit in PARALLEL_COUNTS.items()}
    for way, accumulation, arm in product(ways, accumulate, COLLECTIVE_ARMS):
        due[parallel_efficiency(way, arm, accumulated=accumulation > 1), GPUS] = "ratio"
    if "ddp" in ways and 1 in accumulate:
        due[PARALLEL_TOTAL, GPUS] = "Mtokens/s"
    _require_readings(output, due)
    _require_trainings(output, ranks, ways, accumulate)
    _require_compared(output, ranks, ways, accumulate)
    counted = any(one.value for one in output.readings if one.name in PARALLEL_COUNTS)
    if output.miscompares and not counted:
        raise failed(Message("load_uncounted"), output)
    return output


def _other(name: str, told: object, due: object) -> Message:
    return Message("load_parameter", {"name": name, "told": repr(told), "asked": repr(due)})


def _rows(
    output: LoadOutput,
    name: str,
    columns: tuple[str, ...],
    due: Sequence[_RowKey],
) -> Mapping[_RowKey, Cells]:
    """The rows of a table by arm, way and accumulation; raises LoadFailed unless all are there."""
    table = load_output.table_of(output, name, columns)
    rows = {row[:3]: row for row in table.rows}
    if len(rows) != len(table.rows) or rows.keys() != set(due):
        names = Listed(tuple(f"{arm} {way} {count:g}" for arm, way, count in due))
        others = Listed(tuple(" ".join(map(str, row[:3])) for row in table.rows))
        values: dict[str, Value] = {"formats": names, "table": name, "others": others}
        raise failed(Message("load_trainings", values), output)
    return rows


def _require_trainings(
    output: LoadOutput, ranks: int, ways: Sequence[ParallelWay], accumulate: Sequence[int]
) -> None:
    """Raise LoadFailed unless every training is in the table, and its figures fit each other."""
    model, batch = output.parameters.get("model"), output.parameters.get("batch")
    whole = output.parameters.get("tensor_batch")
    shape = next((one for name, one in MODELS.items() if name == model), None)
    known = (model, batch) in parallel_sizes.CHOICES
    if shape is None or type(batch) is not int or not known:
        raise failed(_other("model", (model, batch), list(parallel_sizes.CHOICES)), output)
    if type(whole) is not int or not 1 <= whole <= ranks * batch:
        raise failed(_other("tensor_batch", whole, ranks * batch), output)
    due = [
        (arm, way, count)
        for arm, count in product(COLLECTIVE_ARMS, accumulate)
        for way in (ALONE, *ways)
    ]
    rows = _rows(output, PARALLEL_TABLE, PARALLEL_COLUMNS, due)
    told = {one.name: one.value for one in output.readings}
    for (arm, way, count), row in rows.items():
        samples = {ALONE: batch, "tp": whole}.get(str(way), ranks * batch) * int(count)
        alone = rows[arm, ALONE, count]
        if not _fits(row, alone, shape, samples, whole if way == "tp" else batch, ranks):
            values: dict[str, Value] = {"row": str(row)}
            raise failed(Message("load_training_unsound", values), output)
        for one in ways:
            name = parallel_efficiency(one, str(arm), accumulated=int(count) > 1)
            if one == way and told[name] != row[6]:
                raise failed(_untold(name), output)
    total = rows.get(("default", "ddp", 1))
    if total is not None and not _near(told[PARALLEL_TOTAL], float(total[4]) / 1e3):
        raise failed(_untold(PARALLEL_TOTAL), output)


def _untold(name: str) -> Message:
    values: dict[str, Value] = {"name": name, "component": str(GPUS), "table": PARALLEL_TABLE}
    return Message("load_rate_untold", values)


def _near(told: float, due: float) -> bool:
    return math.isclose(told, due, rel_tol=ROUNDED, abs_tol=5e-4)


def _fits(
    row: Cells, alone: Cells, shape: ModelShape, samples: int, batch: int, ranks: int
) -> bool:
    """Whether the figures of a training are numbers that fit each other.

    The rate is what the step's time gives, and its operations are those counted for the model; the
    efficiency is the rate against that of as many cards alone; the shares are those of one step.
    """
    figures = [one for one in (*row[3:], *alone[3:]) if isinstance(one, float) and one >= 0]
    if len(figures) != 2 * len(row[3:]):
        return False
    told, rate, teraflop, efficiency, _, step_ms, compute, communication, optimizer = figures[:9]
    tokens = samples * shape.sequence
    flop = rate * 1e3 * shape.sample_flop() / shape.sequence / 1e12
    one_card, of_alone = row[1] == ALONE, figures[10]
    # Of several cards alone the mean rate is told, and the slowest one's time.
    timed = tokens / step_ms if step_ms > 0 else 0.0
    of_time = timed * (1 - ROUNDED) <= rate if one_card else _near(rate, timed)
    due = 1.0 if one_card else rate / (ranks * of_alone) if of_alone > 0 else 0.0
    whole = compute + communication + optimizer
    return (
        told == batch
        and rate > 0
        and of_time
        and _near(teraflop, flop)
        and _near(efficiency, due)
        and (_near(whole, 1.0) or (communication == 0 and whole >= 1.0))
    )


def _require_compared(
    output: LoadOutput, ranks: int, ways: Sequence[ParallelWay], accumulate: Sequence[int]
) -> None:
    """Raise LoadFailed unless everything was compared with one card's training, in all arms.

    A difference above its bound must have been reported.
    """
    due = list(product(COLLECTIVE_ARMS, ways, accumulate))
    rows = _rows(output, PARALLEL_VALUES, PARALLEL_VALUE_COLUMNS, due)
    short, untold = [], []
    for arm, way, count in due:
        row = rows[arm, way, count]
        elements = parallel_values.elements(way, ranks)
        steps = parallel_values.STEPS
        expected = (
            steps,
            steps * ranks,
            steps * elements,
            elements,
            ranks if way == "ddp" else 0,
        )
        name = f"{way} {count} ({arm})"
        if row[3:8] != expected:
            short.append(name)
        if not all(isinstance(one, float) and 0 <= one <= 1 for one in row[8:]):
            untold.append(name)
    if short:
        values: dict[str, Value] = {"names": Listed(tuple(short))}
        raise failed(Message("load_uncompared", values), output)
    if untold and not any(one.value for one in output.readings if one.name in PARALLEL_COUNTS):
        raise failed(Message("load_uncounted"), output)


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
