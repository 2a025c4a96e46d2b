"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

from acceptance.core.dtype import native_dtypes
from acceptance.core.message import Listed, Message, Value
from acceptance.core.parts import GPUS
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.names import COLLECTIVE_ARMS, OWN
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import digest_log, parallel_sizes, parallel_values
from acceptance.loads.train.digest_log import RunDigests, UnreadableLog
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
    PARALLEL_COLUMNS,
    PARALLEL_COUNTS,
    PARALLEL_TABLE,
    PARALLEL_TOTAL,
    PARALLEL_VALUE_COLUMNS,
    PARALLEL_VALUES,
    ParallelWay,
    parallel_efficiency,
)
from acceptance.loads.train.shapes import MODELS, ModelShape
from acceptance.loads.train.training_runs import TrainingRuns, TrainingVersions
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output
from acceptance.tools.load_output import ReadingKey, failed, same_gpu

_T = TypeVar("_T")
Cells = tuple[float | str, ...]


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
