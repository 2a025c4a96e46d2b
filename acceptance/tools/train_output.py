"""The command lines of the loads of training, and the check of their output, for the suites."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from acceptance.core.dtype import native_dtypes
from acceptance.core.message import Message
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.names import OWN
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import RunDigests, UnreadableLog
from acceptance.loads.train.names import (
    DIGEST_BATCH,
    DIGEST_COLUMNS,
    DIGEST_FORMATS,
    DIGEST_LOG,
    DIGEST_READINGS,
    DIGEST_RECIPE,
    DIGEST_STEPS,
    DIGEST_TABLE,
)
from acceptance.loads.train.shapes import MODELS
from acceptance.loads.train.training_runs import TrainingRuns, TrainingVersions
from acceptance.process.command import ProgramResult
from acceptance.tools import load_output

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
