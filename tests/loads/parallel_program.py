"""The load of parallel training with a trainer of its own instead of torch: it meets the others
through files in the folder that all ranks see.

    python parallel_program.py ASK

FAKE_TRAINER in the environment has words that spoil what the last rank says: `loss:wrong`,
`loss:nan`, `digest:other`, `clock:infinite`, `clock:other` (weights after a timed training),
`deviation:12` (as many gradients outside their bound), `uuid:other` (in the second arm),
`fast:` (steps shorter than those of one card alone). `late:SECONDS` lets the ranks join late.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from acceptance.loads.asks import decode
from acceptance.loads.collective import worker
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.train import parallel_load, parallel_values
from acceptance.loads.train.parallel_contract import Ask, Fault
from acceptance.loads.train.parallel_values import STEPS
from acceptance.loads.train.parallel_worker import (
    Clock,
    Clocked,
    Deviation,
    TrainerJoined,
    Verified,
    Verify,
)

SPOILED = {
    name: how
    for name, _, how in (word.partition(":") for word in os.environ.get("FAKE_TRAINER", "").split())
}
FREE = 1 << 36


class FileTrainer:
    """One rank; a step takes it a tenth of a second longer for each rank before it."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        time.sleep(float(SPOILED.get("late", 0)))
        self.rank, self.ranks, self.folder, self.turn = rank, ranks, folder, 0
        self.last = rank == ranks - 1
        off = os.environ.get("NCCL_P2P_DISABLE") == "1"
        assert os.environ["NCCL_NVLS_ENABLE"] == "0"
        assert not any(name.startswith("NCCL_STRAY") for name in os.environ)
        other = "uuid" in SPOILED and off
        self.joined = TrainerJoined(FREE, "files", f"GPU-{rank + 7 * other}", "bf16")
        self.off = off

    def _meet(self) -> None:
        """Wait for all others."""
        (self.folder / f"{self.turn}-{self.rank}").touch()
        while len(list(self.folder.glob(f"{self.turn}-*"))) < self.ranks:
            time.sleep(0.001)
        self.turn += 1

    def _is(self, name: str, how: str) -> bool:
        return self.last and SPOILED.get(name) == how

    def verify(self, task: Verify, fault: Fault | None) -> Verified:
        """What a sound rank says, but for what is spoiled."""
        self._meet()
        alone = tuple(float(step) for step in range(1, STEPS + 1))
        # its own share of the batch: only the mean of all ranks is that of one card
        own = 0.0 if task.way == "tp" else self.rank - (self.ranks - 1) / 2
        losses = [one + own for one in alone]
        if self._is("loss", "wrong"):
            losses[1] += 0.1
        if self._is("loss", "nan"):
            losses[1] = float("nan")
        count = int(SPOILED.get("deviation", 0)) if self.last else 0
        found = [Deviation("parallel_gradient", 1, f"t{one}", 2.0, 1.0) for one in range(count)]
        if fault == "wrong":
            found.append(Deviation("parallel_weights", STEPS, "w", 1.25, 1.0))
        elements = parallel_values.elements(task.way, 2) // 2
        whole = "b" if self._is("digest", "other") else "a"
        return Verified(
            tuple(losses),
            alone,
            STEPS * elements,
            elements,
            (0.5, 0.25 * (1 + self.rank)),
            whole * 16 if task.way == "ddp" else "",
            tuple(found),
        )

    def clock(self, task: Clock) -> Clocked:
        """A tenth of a second for each batch, and communication of as much for each step."""
        step_s = 0.1 * task.accumulation * (1 + 0.1 * self.rank)
        if task.way == "alone":
            return Clocked(5, step_s, 0.9 * step_s, 0.1 * step_s, 1 << 30, 0, "")
        self._meet()
        whole = step_s + (0.1 if self.off else 0.02)
        if "fast" in SPOILED:
            whole = 0.5 * step_s
        return Clocked(
            steps=5,
            step_s=whole,
            passes_s=whole - 0.01,
            optimizer_s=0.01,
            peak_bytes=(2 + self.rank) << 30,
            infinite=3 if self._is("clock", "infinite") else 0,
            digest=("b" if self._is("clock", "other") else "a") * 16 if task.way == "ddp" else "",
        )

    def leave(self) -> None:
        return None


def main(argv: Sequence[str]) -> None:
    ask = decode(argv[0])
    assert isinstance(ask, Ask)
    worker.Heartbeat = partial(Heartbeat, every_s=0.0)
    output = Output(sys.stdout)
    work = partial(parallel_load.run, ask, output, FileTrainer)
    exit_load(run_guarded(ask.load, work))


if __name__ == "__main__":
    main(sys.argv[1:])
