"""The load between two nodes with a group of arrays and sockets instead of torch.distributed.

    python pair_program.py collective_pair NAME=VALUE ...

FAKE_PAIR in the environment has words: `lost` leaves the destination of an all-reduce at rank 1
as it was, `slow:SECONDS` is what an operation takes, `gone:NUMBER` ends this program in that
operation; `same` says that this is the host of rank 0. Otherwise each rank is its own host.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from collective_program import NumpyMemory

from acceptance.loads.__main__ import parsed
from acceptance.loads.collective import pair, rendezvous
from acceptance.loads.collective.contract import PairAsk
from acceptance.loads.collective.operation import Operation
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import Output

WORDS = {
    name: how
    for name, _, how in (word.partition(":") for word in os.environ.get("FAKE_PAIR", "").split())
}


class SocketGroup:
    """The ranks send each other their sources, rank 0 first."""

    def __init__(self, address: str, port: int, rank: int, ranks: int, _folder: Path) -> None:
        self.place, self.rank, self.ranks = (address, port), rank, ranks
        self.memory, self.done = NumpyMemory(), 0
        self.about, self.uuid = "sockets", f"GPU-{rank}"
        self.other: socket.socket | None = None

    def _meet(self) -> socket.socket:
        if self.rank == 0:
            with socket.create_server(self.place) as listening:
                return listening.accept()[0]
        end = time.monotonic() + 20
        while True:
            try:
                return socket.create_connection(self.place)
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)

    def _exchanged(self, own: bytes) -> bytes:
        self.other = self.other or self._meet()
        if self.rank == 0:
            self.other.sendall(len(own).to_bytes(8, "big") + own)
        size = int.from_bytes(self.other.recv(8, socket.MSG_WAITALL), "big")
        found = self.other.recv(size, socket.MSG_WAITALL) if size else b""
        if self.rank == 1:
            self.other.sendall(len(own).to_bytes(8, "big") + own)
        return found

    def run(self, operation: Operation, source: Any, destination: Any) -> float:
        import numpy as np
        from collective_model import received

        self.done += 1
        if WORDS.get("gone") == str(self.done):
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(30)
        other = np.frombuffer(self._exchanged(source.tobytes()), source.dtype)
        sources = [source, other] if self.rank == 0 else [other, source]
        lost = "lost" in WORDS and operation.name == "all_reduce" and self.rank == 1
        if len(destination) and not lost:
            share = len(destination) // (2 if operation.name == "all_gather" else 1)
            destination[...] = received(operation, self.memory.dtype, sources, share, self.rank)
        return float(WORDS.get("slow", "0.001"))

    def latency(self, _buffer: Any, _calls: int) -> float | None:
        return None

    def leave(self) -> None:
        return None


def main(argv: Sequence[str]) -> None:
    ask = parsed(argv)
    assert isinstance(ask, PairAsk)
    here = f"{rendezvous.host()} rank {0 if 'same' in WORDS else ask.rank}"
    rendezvous.host = lambda: here

    def join(rank: int, ranks: int, folder: Path) -> SocketGroup:
        return SocketGroup(ask.address, ask.port, rank, ranks, folder)

    work = partial(pair.run, ask, Output(sys.stdout), join)
    exit_load(run_guarded(ask.load, work))


if __name__ == "__main__":
    main(sys.argv[1:])
