"""Two clean runs of every machine that ships, drawn with the noise of sound hardware, side by
side: nothing is worse; a slow part is.
"""

from __future__ import annotations

import functools
import random

from cases import each
from thoroughness import ALL

from acceptance import resources
from acceptance.core.parts import Gpu
from acceptance.history import noise
from acceptance.history.comparison import ComparedRun, Comparison, compare
from selftest import drawn_runs
from selftest.drawn_runs import Machine

BOOK = noise.read_rules(resources.locate("drift.toml"), noise.read(resources.locate("noise.toml")))


# The figures of eight GPUs take longest to draw; one machine of eight is enough for `make test`.
NAMES = [name for name in drawn_runs.NAMES if ALL or name != "8xh200"]
WITH_GPUS = [name for name in NAMES if name != drawn_runs.WITHOUT_GPUS]


@functools.cache
def drawn(machine: Machine, seed: int, slow: float = 1.0) -> ComparedRun:
    """A clean run; `slow` is what the sustained rate of gpu0 in bfloat16 is multiplied with."""
    values = drawn_runs.draw(machine, random.Random(seed))
    for key, value in values.items():
        if key[1:] == ("gemm_bf16", Gpu(0)) and value is not None:
            values[key] = slow * value
    return ComparedRun(
        str(seed), drawn_runs.judged(machine, values), str(seed), virtual=machine.virtual
    )


def pair(name: str, slow: float = 1.0) -> Comparison:
    machine = drawn_runs.named(name)
    return compare([drawn(machine, 1), drawn(machine, 2, slow)], BOOK)


@each("name", NAMES)
def test_two_clean_runs_are_within_the_noise(name: str) -> None:
    found = pair(name)
    assert len(found.rows) > 50
    assert [
        (row.measurement, row.component, row.values)
        for row in found.of_kind("worse", "lost", "changed")
    ] == []


@each("name", WITH_GPUS)
def test_a_gpu_a_sixth_slower_is_outside_it(name: str) -> None:
    assert ("gemm_bf16", Gpu(0)) in {
        (row.measurement, row.component) for row in pair(name, 0.83).of_kind("worse")
    }
