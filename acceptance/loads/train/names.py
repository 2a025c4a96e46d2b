"""Names of the training loads' readings, and columns of their tables, for loads and readers alike.

Readings of one GPU are of `gpu0`, the load's own; those of parallel training are of `gpus`.
"""

from __future__ import annotations

from itertools import product
from typing import Literal, get_args

from acceptance.loads.miscompare import DigestFormat

# Digests of a training run: own repeats that differ; the table has a row for each format, with the
# digest of the whole first run, and how often it was run. The log of each format has all digests of
# the first run (`digest_log`); the versions are what its bits depend on.
DIGEST_READINGS = {"digest_repeats_differ": "count"}
DIGEST_TABLE = "train_digests"
DIGEST_COLUMNS = ("format", "steps", "repeats", "losses", "gradients", "weights", "seconds")
DIGEST_LOG = "train_digest_{}"
DIGEST_VERSIONS = "train_versions"  # the check's table, of each GPU
DIGEST_VERSION_COLUMNS = ("what", "version")
# Every run is as long, on every card and night.
DIGEST_STEPS, DIGEST_BATCH = 20, 4
# A change of rigproof's after which the same machine gives other bits makes it higher.
DIGEST_RECIPE = 1
# The format of the products of each of the two runs: the first that the GPU has.
DIGEST_FORMATS: tuple[tuple[DigestFormat, DigestFormat], ...] = (("bf16", "f16"), ("tf32", "f32"))

# Parallel training: of each way its efficiency against one card; the arm without peer access, and
# four accumulated batches a step, have names of their own.
ParallelWay = Literal["ddp", "zero2", "zero3", "tp"]
PARALLEL_WAYS: tuple[ParallelWay, ...] = get_args(ParallelWay)
ACCUMULATED = "_accumulated"
P2P_OFF = "_p2p_off"
PARALLEL_EFFICIENCIES = tuple(
    f"parallel_{way}_efficiency{more}{arm}"
    for way, more, arm in product(PARALLEL_WAYS, ("", ACCUMULATED), ("", P2P_OFF))
)
PARALLEL_TABLE = "train_parallel"
PARALLEL_COLUMNS = (
    "arm",
    "way",
    "accumulation",
    "batch",
    "ktokens/s",
    "TFLOP/s",
    "efficiency",
    "GiB",
    "ms",
    "compute",
    "communication",
    "optimizer",
)

PARALLEL_TOTAL = "parallel_ddp"  # Mtokens/s of all GPUs, as the machine comes, accumulation 1
PARALLEL_COUNTS = {"parallel_miscompares": "count", "parallel_disagreements": "count"}
PARALLEL_ACCUMULATIONS = (1, 4)
ALONE = "alone"  # the way of each card by itself, in the table
# What was compared with one card's training, and the largest difference as a share of its bound.
PARALLEL_VALUES = "train_parallel_values"
PARALLEL_VALUE_COLUMNS = (
    "arm",
    "way",
    "accumulation",
    "steps",
    "losses",
    "gradients",
    "weights",
    "digests",
    "loss / bound",
    "gradient / bound",
    "weight / bound",
)


def parallel_efficiency(way: ParallelWay, arm: str, *, accumulated: bool) -> str:
    """The name of an efficiency; the arm is "default" or "p2p_off"."""
    more = ACCUMULATED if accumulated else ""
    return f"parallel_{way}_efficiency{more}{P2P_OFF if arm == 'p2p_off' else ''}"
