"""What one GPU has shown of a training run whose bits are compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.train.digest_log import RunDigests


@dataclass(frozen=True, slots=True)
class TrainingVersions:
    """What the bits of a training run depend on, beside the GPU's own soundness and the driver."""

    gpu: str
    multiprocessors: int
    library: str
    cublas: str
    recipe: int


@dataclass(frozen=True, slots=True)
class TrainingRuns:
    """The first run of each format on one GPU, and the repeats that differed from it."""

    versions: TrainingVersions
    first: Mapping[DigestFormat, RunDigests]
    repeats: int
    differing: tuple[DifferingRun, ...]

    def differing_in(self, dtype: DigestFormat) -> int:
        """How many repeats in this format had other bits than the first run."""
        return sum(one.format == dtype for one in self.differing)
