"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from acceptance.core.dtype import native_dtypes
from acceptance.core.message import Message, Values
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.names import OWN
from acceptance.loads.protocol import LoadOutput, LoadTable
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import RunDigests, UnreadableLog
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.layer_grid import GRID, NO_MEMORY, NO_TIME
from acceptance.loads.train.names import (
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
)
from acceptance.loads.train.shapes import LAYERS, MODELS
from acceptance.loads.train.training_runs import TrainingRuns, TrainingVersions
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output

LAYERS_LOAD = "train_layers"
# The slices under load are measured by the GPU, and each ends when its last batch does.
LAYERS_LEAST_SHARE = 0.95

_Cells = tuple[float | str, ...]


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
    reading, another unit, a table that has not exactly the judged shape of each layer with the
    rates of the readings, a share that is not that of the rates, and wrong results that were
    reported but not counted.
    """
    output = _read(completed, dtype=dtype, seconds=seconds, table=False, also=also)
    load_output.exactly(output, {(name, OWN): unit for name, unit in LAYER_READINGS.items()}, set())
    told = {one.name: one.value for one in output.readings}
    batches, own = output.parameters.get("batches"), output.parameters.get("dtype")
    table = load_output.table_of(output, LAYER_TABLE, LAYER_COLUMNS)
    due: list[_Cells] = []
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
    _require_counts(output)
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
    reading, another unit, a table that has not exactly one row for each published shape in each of
    the formats, a row with neither rates nor the reason why there are none, no rate at all in the
    judged format, and wrong results that were reported but not counted.
    """
    output = _read(completed, dtype=dtype, seconds=seconds, table=True, also=also)
    load_output.exactly(output, {(name, OWN): unit for name, unit in LAYER_PARTS.items()}, set())
    formats, own = output.parameters.get("formats"), output.parameters.get("dtype")
    if not isinstance(formats, list) or formats != [one for one in UNITS if one in formats]:
        values: Values = {"name": "formats", "told": repr(formats), "asked": ",".join(UNITS)}
        raise load_output.failed(Message("load_parameter", values), output)
    table = load_output.table_of(output, LAYER_TABLE, LAYER_COLUMNS)
    cells = [(name, float(s), float(b)) for name, s, batches in GRID for b in batches]
    due = [(name, dtype, s, b) for dtype, (name, s, b) in product(formats, cells)]
    if [row[:4] for row in table.rows] != due or not _measured(table, str(own)):
        raise load_output.failed(Message("load_layer_rows", {"table": LAYER_TABLE}), output)
    _require_counts(output)
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
    return load_output.read(completed, LAYERS_LOAD, asked, least_s=least_s)


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
    if not (matmul > 0 and math.isclose(share * matmul, rate, rel_tol=1e-6)):
        values: Values = {
            "name": name,
            "share": f"{share:g}",
            "rate": f"{rate:g}",
            "matmul": f"{matmul:g}",
        }
        raise load_output.failed(Message("load_share", values), output)


def _require_counts(output: LoadOutput) -> None:
    (counted,) = (one.value for one in output.readings if one.name == "layer_miscompares")
    if counted != len(output.miscompares):
        raise load_output.failed(Message("load_uncounted"), output)


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
    load_output.exactly(
        output, {(name, OWN): unit for name, unit in DIGEST_READINGS.items()}, set()
    )
    training_runs(output)
    return output


def training_runs(output: LoadOutput) -> TrainingRuns:
    """The runs in the output of the load. Raises LoadFailed as `read_train_digest` does."""
    versions, told = _versions(output), output.parameters
    try:
        native = native_dtypes(str(told.get("capability")))
    except ValueError:
        native = ()
    formats = tuple(first if first in native else other for first, other in DIGEST_FORMATS)
    if not native or told.get("formats") != list(formats):
        values = {"name": "formats", "told": repr(told.get("formats")), "asked": str(formats)}
        raise load_output.failed(Message("load_parameter", values), output)
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
