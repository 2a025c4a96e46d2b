"""The contract of the training run whose bits are compared; `digest_load` says what it measures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.dtype import native_dtypes
from acceptance.core.message import english
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.miscompare import REPEATS_DIFFER, DifferingRun, DigestFormat
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import RunDigests, TrainingRuns, TrainingVersions
from acceptance.loads.train.proof import of_capability, other, require_parameter
from acceptance.loads.train.shapes import MODELS

# A row for each format, with the digest of the whole first run, and how often it was run.
TABLE = "train_digests"
COLUMNS = ("format", "steps", "repeats", "losses", "gradients", "weights", "seconds")
LOG = "train_digest_{}"  # of each format: all digests of the first run (`digest_log`)
# The check's table of each GPU: what its bits depend on.
VERSIONS = "train_versions"
VERSION_COLUMNS = ("what", "version")
# Every run is as long, on every card and night.
STEPS, BATCH = 20, 4
# A change of rigproof's after which the same machine gives other bits makes it higher.
RECIPE = 1
LEAST_REPEATS = 2  # with the first run
# The format of the products of each of the two runs: the first that the GPU has.
_FORMATS: tuple[tuple[DigestFormat, DigestFormat], ...] = (("bf16", "f16"), ("tf32", "f32"))

FaultKind = Literal["activation", "gradient", "weight", "optimizer"]


class Ask(contract.Ask, tag="train_digest", frozen=True, kw_only=True):
    """Train a model again and again on one GPU, and compare the bits."""

    seconds: Annotated[Seconds, Meta(description="of all repeats; each format runs twice at least")]
    device: Annotated[
        Literal["cuda", "cpu"], Meta(description="cpu is for tests: a tiny model")
    ] = "cuda"
    inject: Literal[FaultKind, "persistent"] | None = None
    inject_seed: Annotated[int, Meta(ge=0, description="chooses where the fault is")] = 0

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"inject_seed"})
    # They change how the libraries multiply, and with it the bits.
    CLEARED: ClassVar[frozenset[str]] = frozenset(
        {
            "NVIDIA_TF32_OVERRIDE",
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "TORCH_BLAS_PREFER_CUBLASLT",
            "DISABLE_ADDMM_CUDA_LT",
            "CUBLASLT_WORKSPACE_SIZE",
        }
    )

    def due(self, output: LoadOutput) -> Due:
        """The count of repeats that differ, and table and logs of the GPU's formats."""
        return Due(
            readings={(REPEATS_DIFFER, OWN): "count"},
            tables={TABLE: COLUMNS},
            logs=frozenset((LOG.format(dtype), OWN) for dtype in _formats_of(output)),
        )

    def least_s(self, output: LoadOutput) -> float:
        """All of the time."""
        return self.seconds

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for what is not the run of every GPU, whole, each difference counted."""
        model = MODELS["digest"]
        same = {"model": model.name, "batch": BATCH, "sequence": model.sequence}
        for name, due in {**same, "steps": STEPS, "recipe": RECIPE}.items():
            require_parameter(output, name, due)
        runs(output)


def formats(capability: str) -> tuple[DigestFormat, ...]:
    """The formats of the two runs on a GPU of this compute capability, such as "9.0".

    float16 autocast is for every GPU without bfloat16, with tensor cores or without. Raises
    ValueError for a capability that is none.
    """
    native = native_dtypes(capability)
    return tuple(first if first in native else other for first, other in _FORMATS)


def runs(output: LoadOutput) -> TrainingRuns:
    """The runs in the output. Raises Unproved where they are not whole, or contradict its table."""
    versions, found = _versions(output), _formats_of(output)
    rows = contract.table(output, TABLE).rows
    repeats = {row[2] for row in rows}
    if [row[0] for row in rows] != list(found) or len(repeats) != 1:
        raise Unproved(
            english(
                "load_digest_rows",
                "its table, its logs and its wrong results are not of the same runs",
            )
        )
    (count,) = repeats
    if not isinstance(count, float) or not count.is_integer() or count < LEAST_REPEATS:
        raise Unproved(
            english("load_repeats", "ran {told} times, and at least {least} are due"),
            told=str(count),
            least=f"{LEAST_REPEATS}",
        )
    first = {dtype: _first(output, dtype, row) for dtype, row in zip(found, rows, strict=True)}
    differing = tuple(one for one in output.miscompares if isinstance(one, DifferingRun))
    wrong = {(one.format, one.repeat) for one in differing}
    (counted,) = (one.value for one in output.readings)
    if counted != len(output.miscompares) or len(wrong) != len(output.miscompares):
        raise Unproved("load_uncounted")
    if not wrong <= {(dtype, number) for dtype in found for number in range(1, int(count))}:
        raise Unproved("load_digest_rows")
    return TrainingRuns(versions, first, int(count), differing)


def _formats_of(output: LoadOutput) -> tuple[DigestFormat, ...]:
    """The formats of the GPU that the load names."""
    found = of_capability(output, formats) or ()
    printed = output.parameters.get("formats")
    if not found or printed != list(found):
        raise other("formats", printed, list(found))
    return found


def _first(output: LoadOutput, dtype: DigestFormat, row: Sequence[float | str]) -> RunDigests:
    """The first run of a format, whose log must agree with its row."""
    (text,) = (one.text for one in output.logs if one.name == LOG.format(dtype))
    try:
        found = digest_log.parse(text)
    except LoadError as error:
        raise Unproved(
            english("load_digests_unread", "its digests in {format} cannot be read: {why}"),
            format=dtype,
            why=str(error),
        ) from error
    _, steps, _, *summaries, seconds = row
    took = isinstance(seconds, float) and 0 < seconds < sys.maxsize
    as_due = (
        found.steps == steps == STEPS
        and found.summaries == tuple(summaries)
        and found.tensors == digest_log.gpt_tensors(MODELS["digest"].layers)
    )
    if not (took and as_due):
        raise Unproved("load_digest_rows")
    return found


def _versions(output: LoadOutput) -> TrainingVersions:
    parameters = output.parameters
    texts = [parameters.get(name) for name in ("gpu", "library", "cublas")]
    gpu, library, cublas = (one if isinstance(one, str) else "" for one in texts)
    count = parameters.get("multiprocessors")
    if not (gpu and library and cublas) or type(count) is not int or count < 1:
        raise Unproved("load_library_untold")
    return TrainingVersions(gpu, count, library, cublas, RECIPE)
