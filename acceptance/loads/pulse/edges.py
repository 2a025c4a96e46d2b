"""The edges of a power step: which GPU works how much from which moment on. Pure.

They are what the load commands, and all that it claims: what the supply sees follows them by the
time that a launch takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.parts import Component
from acceptance.loads.power_step import COLD_S, Step

# From this frequency on a half-wave is too short for the host to launch its work and to end it in
# time: one kernel works and rests by the GPU's own clock.
KERNEL_HZ = 200.0
STAIRS = 10  # of a ramp


@dataclass(frozen=True, slots=True)
class Edge:
    """A commanded change of a GPU's load, `at_s` seconds after the begin of the step.

    `level` is the share of the time for which the GPU works from here on: 1 is full load, 0 none.
    """

    at_s: float
    gpu: Component
    level: float


def within_kernel(step: Step) -> bool:
    """Whether the edges are made by a kernel; otherwise the host launches the work of each."""
    return step.hertz is not None and step.hertz >= KERNEL_HZ


def edges(step: Step) -> Iterator[Edge]:
    """All edges in the order of their time; each GPU is idle before the first and after the last.

    GPUs that work together have their edges at the same time, in the order of the step.
    """
    levels = dict.fromkeys(step.gpus, 0.0)
    for at_s, *both in _moments(step):
        for place, gpu in enumerate(step.gpus):
            level = both[place % 2]
            if level != levels[gpu]:
                levels[gpu] = level
                yield Edge(at_s, gpu, level)


def _moments(step: Step) -> Iterator[tuple[float, float, float]]:
    """When a level changes, and what it is from then on: of every first GPU, of every second."""
    if step.hertz is not None:
        # half-waves that fit; a step as long as its waves has its last one in spite of rounding
        halves = int(2 * step.hertz * step.seconds + 1e-9)
        for half in range(halves):
            works = 1.0 - half % 2
            yield (
                half / (2 * step.hertz),
                works,
                1.0 - works if step.kind == "anti_phase" else works,
            )
        yield halves / (2 * step.hertz), 0.0, 0.0
        return
    if step.kind == "cold":
        yield COLD_S, 1.0, 1.0
    else:
        for stair in range(STAIRS):
            level = (stair + 1) / STAIRS
            yield stair * step.seconds / STAIRS, level, level
    yield step.seconds, 0.0, 0.0
