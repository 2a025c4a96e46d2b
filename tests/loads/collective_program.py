"""The load of collectives with a group of its own instead of torch.distributed: on arrays of numpy,
through files in the folder that all ranks see.

    python collective_program.py collective NAME=VALUE ...

FAKE_GROUP in the environment has words that spoil operations on their way: `NAME:lost` leaves the
destination of the last rank as it was, `NAME:swapped` changes the order of two blocks there,
`random:bit` inverts a bit of a sum of random numbers at the last rank. `graph:` gives a latency and
a log of each rank, as GPUs do, and `graph:stale` leaves a wrong number at rank 1. `late:SECONDS`
lets the ranks join late. How far it is, it says as often as it can.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from acceptance.loads.__main__ import parsed
from acceptance.loads.collective import load, worker
from acceptance.loads.collective.contract import Ask
from acceptance.loads.collective.pattern import Numbers, Operation, Rule
from acceptance.loads.miscompare import ElementType
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import Heartbeat, Output

SPOILED = {
    name: how
    for name, _, how in (word.partition(":") for word in os.environ.get("FAKE_GROUP", "").split())
}


class NumpyMemory:
    """Arrays; a bfloat16 is kept as a float32."""

    def __init__(self) -> None:
        self.dtype: ElementType = "f32"  # of the last buffer

    def places(self, first: int, count: int) -> Any:
        import numpy as np

        return np.arange(first, first + count, dtype=np.int64)

    def buffer(self, dtype: ElementType, count: int) -> Any:
        import numpy as np
        from collective_model import STORED

        self.dtype = dtype
        return np.empty(count, STORED[dtype])

    def write(self, _buffer: Any, _numbers: Numbers, _rule: Rule, _turn: int) -> bool:
        return False

    def differing(self, _got: Any, _numbers: Numbers, _rule: Rule, _turn: int) -> int | None:
        return None

    def words(self, piece: Any) -> Any:
        import numpy as np

        return piece.view(np.int32).astype(np.int64)

    def free_bytes(self) -> int:
        return 1 << 30


class FileGroup:
    """Every rank writes its source to a file, and reads those of all others."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        time.sleep(float(SPOILED.get("late", 0)))
        self.rank, self.ranks, self.folder = rank, ranks, folder
        self.memory, self.turn = NumpyMemory(), 0
        self.about, self.uuid = "files", f"GPU-{rank}"

    def run(self, operation: Operation, source: Any, destination: Any) -> float:
        import numpy as np
        from collective_model import received

        sources = self._exchanged(source)
        if len(destination):
            blocks = self.ranks if operation.name in ("all_gather", "all_to_all") else 1
            share = len(destination) // blocks
            last = self.rank == self.ranks - 1
            how = SPOILED.get(operation.name) if last else None
            if how == "lost":
                return 1e-3
            destination[...] = received(operation, self.memory.dtype, sources, share, self.rank)
            if how == "swapped":
                destination[...] = np.roll(destination, share)
            if last and "random" in SPOILED and _is_random(operation, sources[0]):
                destination.view(np.int32)[0] ^= 1
        return 1e-3 * (1 + self.rank)

    def _exchanged(self, own: Any) -> list[Any]:
        """The arrays of all ranks; they are of one format."""
        import numpy as np

        paths = [self.folder / f"{self.turn}-{number}" for number in range(self.ranks)]
        self.turn += 1
        unfinished = self.folder / f"part-{self.rank}"
        unfinished.write_bytes(own.tobytes())
        unfinished.rename(paths[self.rank])
        while not all(path.exists() for path in paths):
            time.sleep(0.001)
        return [np.frombuffer(path.read_bytes(), own.dtype) for path in paths]

    def latency(self, buffer: Any, calls: int) -> float | None:
        """The largest numbers; the time is a number of milliseconds for each rank."""
        import numpy as np

        if "graph" in SPOILED:
            (self.folder / f"nccl-{self.rank}.log").write_text(f"log of rank {self.rank}\n")
            buffer[:] = np.max(self._exchanged(buffer), axis=0)
            if SPOILED["graph"] == "stale" and self.rank == 1:
                buffer[1] -= 1
            return 1e-3 * (1 + self.rank)
        return None

    def leave(self) -> None:
        return None


def _is_random(operation: Operation, source: Any) -> bool:
    """Whether these are no whole numbers with exact sums."""
    return operation.name == "all_reduce" and float(source[source.argmax()]) > 2.0**31


def main(argv: Sequence[str]) -> None:
    ask = parsed(argv)
    assert isinstance(ask, Ask)
    worker.Heartbeat = partial(Heartbeat, every_s=0.0)
    work = partial(load.run, ask, Output(sys.stdout), FileGroup)
    exit_load(run_guarded(ask.load, work))


if __name__ == "__main__":
    main(sys.argv[1:])
