"""How long a run verified every result of its loads, and how much memory it tested."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import GIB
from acceptance.core.parts import CPU, GPUS, MEMORY, Component
from acceptance.journal.run import Run

RAM, GPU_MEMORY = "memory_tested", "vram_tested"  # GiB of the RAM, share of each GPU's memory


@dataclass(frozen=True, slots=True)
class LoadTime:
    """Seconds in which every result of a part was verified.

    `seconds` are those of the checks that passed or failed, `planned` those of the plan, `own`
    those that the profile has by itself.
    """

    component: Component
    seconds: float
    planned: float
    own: float


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """The share of a part's memory that was tested.

    Of RAM also how many GiB these are, and how many the profile fills here by default, where known.
    """

    component: Component
    share: float
    gib: float | None = None
    own_gib: float | None = None


def load_times(run: Run) -> tuple[LoadTime, ...]:
    """The times of each part that a check of the plan verifies."""
    ended = {check.id for check in run.verdict.checks if check.outcome in ("pass", "fail")}
    found = []
    for part in (GPUS, CPU, MEMORY):
        checks = [check for check in run.plan.checks if part in check.verifies]
        if checks:
            seconds = sum(check.load_s for check in checks if check.id in ended)
            planned = sum(check.load_s for check in checks)
            found.append(LoadTime(part, seconds, planned, sum(check.own_s for check in checks)))
    return tuple(found)


def tested_memory(run: Run) -> Iterator[MemoryShare]:
    """The memory that was tested, RAM first, as measured."""
    total = run.inventory.memory.total_bytes
    measured = [
        (judged.due.measurement, judged.due.component, judged.value)
        for check in run.verdict.checks
        for judged in check.judged
        if judged.value is not None and 0 <= judged.value < math.inf
    ]
    for name, component, value in measured:
        if name == RAM and total:
            yield MemoryShare(component, value * GIB / total, value, run.plan.own_memory_gib)
    for name, component, value in measured:
        if name == GPU_MEMORY:
            yield MemoryShare(component, value)


def lines(run: Run, language: Language = ENGLISH) -> Iterator[str]:
    """Both in words, a line for each part."""
    for time in load_times(run):
        yield language(
            "{component}: every result of {seconds} s of load verified (planned {planned} s, "
            "the profile's own {own} s)",
            component=str(time.component),
            seconds=f"{time.seconds:g}",
            planned=f"{time.planned:g}",
            own=f"{time.own:g}",
        )
    for memory in tested_memory(run):
        yield language(
            "{component}: {share} of its memory tested",
            component=str(memory.component),
            share=f"{memory.share:.0%}",
        )
