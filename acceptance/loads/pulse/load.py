"""The power load: full load that comes and goes on all GPUs, in steps, every result compared.

    python -m acceptance.loads pulse gpus=2 steps=cold,8/square,9,2

One process for each GPU, in the order in which CUDA shows them. A step is KIND,SECONDS, for a wave
KIND,SECONDS,HERTZ, and KIND,SECONDS,HERTZ,GPUS where only the first so many GPUs work. Kinds are
those of `power_step`. Below 200 Hz the host launches matrix products between two edges; from there
on a kernel of ours works and rests by the GPU's own clock. Each result is compared with the first
one, bit for bit, during the step and after it. The first one is proved before.

Each step is told on the stream before it begins (`contract.REST_S` sooner), and after its end with
the edges that were made. It ends with the step at which the watchdog is pulled or nobody holds it
(`watchdog`): then the steps after it are left out. It changes no limit and no clock.

Readings: `power_miscompares` of each GPU, and `power_steps`, the share of the steps that was made
whole. The table `power_steps` has every step: edges commanded and made on all of its GPUs, the
latest edge, and results; where GPUs follow their own clocks, which are held against the host's at
the step's begin and at its end, also the most by which two of them may have been apart.

Exit status: 0 when it ran to its last step or was stopped; 1 when a rank died or hangs, a GPU made
fewer than nine tenths of its edges of a step, or torch failed, with one sentence on standard error;
2 for arguments that cannot be used.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from acceptance.core.parts import GPUS, Component
from acceptance.loads.power_step import Step
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.pulse import clocks, worker
from acceptance.loads.pulse.contract import (
    COLUMNS,
    LATE_S,
    MADE,
    MISCOMPARES,
    PREPARED_S,
    REST_S,
    STEPS,
    Ask,
    row_of,
    text_of,
)
from acceptance.loads.pulse.device import Device
from acceptance.loads.pulse.watchdog import Watchdog
from acceptance.loads.pulse.worker import Done, Turn
from acceptance.loads.ranks import GpuRank, Ranks

LEAST_MADE = 0.9  # share of a GPU's edges; with fewer the step was not what it is called


class OneGpuRank(GpuRank):
    """A process that sees one GPU."""

    def prepare(self) -> None:
        """Show it its own GPU alone."""
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        own = shown.split(",")[self.number] if shown else str(self.number)
        os.environ["CUDA_VISIBLE_DEVICES"] = own


def _row(step: Step, done: Mapping[OneGpuRank, Done]) -> tuple[float | str, ...]:
    found = done.values()
    apart_ns = clocks.apart_ns(one.drift for one in found if one.drift is not None)
    return (
        *row_of(step),
        sum(one.due for one in found),
        sum(one.made for one in found),
        round(1e3 * max(one.late_s for one in found), 3),
        sum(one.right for one in found),
        sum(one.wrong for one in found),
        "-" if apart_ns is None else round(apart_ns / 1e3, 3),
    )


def cuda() -> Device:
    """The GPU of a rank."""
    from acceptance.loads.pulse.cuda_device import CudaDevice

    return CudaDevice()


def run(ask: Ask, output: Output) -> None:
    """All steps. Raises LoadError, also for a GPU with too few edges of a step."""
    watchdog = Watchdog(None if ask.watchdog is None else Path(ask.watchdog))
    try:
        _run(ask, watchdog, output)
    finally:
        watchdog.drop()


def _run(ask: Ask, watchdog: Watchdog, output: Output) -> None:
    every, steps = tuple(map(OneGpuRank, range(ask.gpus))), ask.power_steps()

    def body(rank: GpuRank, connection: Connection) -> None:
        inject = ask.inject if rank == every[-1] else None
        worker.work(rank.number, connection, cuda, watchdog, inject)

    wrong: Counter[Component] = Counter()
    rows: list[tuple[float | str, ...]] = []
    stopped: str | None = None
    whole = 0
    with Ranks(every, body) as ranks:
        ready: dict[OneGpuRank, dict[str, Any]] = ranks.collect(
            "ready", PREPARED_S, lambda *_: None
        )
        about = [ready[rank] for rank in every]
        # from here on the steps follow one another: what loads the machine beside them begins now
        watchdog.wait()
        uuids = [one.get("uuid") for one in about]
        output.hello(ask.load, {**ask.parameters(), "uuids": uuids})
        for text in dict.fromkeys(str(one) for one in about):
            output.note(text)
        for step in steps:
            # what is written of it must be on the disk before it begins
            output.step_begins(step, time.clock_gettime(time.CLOCK_BOOTTIME) + REST_S)
            turn = Turn(step, time.monotonic() + REST_S)
            ranks.start(lambda _, turn=turn: turn)  # type: ignore[misc]  # the loop's own
            done: dict[OneGpuRank, Done] = ranks.collect(
                "done",
                REST_S + step.seconds + LATE_S,
                lambda _, one: output.miscompare(one),
            )
            for rank, one in done.items():
                wrong[rank.component] += one.wrong
            rows.append(_row(step, done))
            found = done.values()
            output.step_ended(
                step,
                edges=sum(one.made for one in found),
                right=sum(one.right for one in found),
                wrong=sum(one.wrong for one in found),
            )
            stopped = next((one.stopped for one in done.values() if one.stopped), None)
            if stopped is not None:
                output.note(f"{stopped}: the steps after {text_of(step)} are left out")
                break
            for rank, one in done.items():
                if one.made < LEAST_MADE * one.due:
                    raise LoadError(
                        f"of the {one.due} edges of the step {text_of(step)} "
                        f"{rank.component} made {one.made}"
                    )
            whole += 1
        ranks.start(lambda _: None)
        ranks.collect("left", LATE_S, lambda *_: None)
    for rank in every:
        output.reading(MISCOMPARES, "count", rank.component, wrong[rank.component])
    output.reading(MADE, "ratio", GPUS, whole / len(steps))
    output.table(STEPS, COLUMNS, rows)
    output.end()
