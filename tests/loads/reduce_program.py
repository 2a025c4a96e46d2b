"""A load whose ranks reduce a sum together, as the program it would be: one rank for each GPU, one
meeting place, one stream.

    python reduce_program.py BACKEND COUNT FAULT

FAULT is none, or die or hang for the last rank, once the group has met. With NCCL each rank sees
one of the GPUs of CUDA_VISIBLE_DEVICES alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import LoadReading, Note, Output, ProtocolError, decode
from acceptance.loads.ranks import GpuRank, Ranks

WITHIN_S = 6.0  # for what the others do once they have met
MEET_S = 120.0  # torch alone takes some seconds to import


@dataclass(frozen=True)
class DeviceRank(GpuRank):
    """One GPU of a group, by its number in it, and the device that it alone sees."""

    device: str

    def prepare(self) -> None:
        assert "torch" not in sys.modules
        os.environ["CUDA_VISIBLE_DEVICES"] = self.device
        os.environ["NCCL_NVLS_ENABLE"] = "0"  # multicast needs rights that a container has not


def main(backend: str, count: int, fault: str) -> int:
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count)))).split(",")
    every = tuple(
        DeviceRank(number, devices[number] if backend == "nccl" else "") for number in range(count)
    )
    output = Output(sys.stdout)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            meet = f"file://{folder}/meet"

            def body(rank: DeviceRank, connection: Connection) -> None:
                import torch
                from torch import distributed

                distributed.init_process_group(
                    backend, init_method=meet, rank=rank.number, world_size=count
                )
                place = "cuda" if backend == "nccl" else "cpu"
                total = torch.tensor([float(rank.number)], device=place)
                distributed.barrier()
                connection.send(("met", os.getpid()))
                connection.recv()
                if rank.number == count - 1 and fault == "die":
                    os.kill(os.getpid(), 9)
                if rank.number == count - 1 and fault == "hang":
                    time.sleep(600)
                distributed.all_reduce(total)
                connection.send(("sum", float(total.item())))
                connection.recv()  # until all are done: a group is left together
                distributed.destroy_process_group()
                connection.send(("left", None))

            output.hello("collective", {"backend": backend, "gpus": count})
            with Ranks(every, body) as ranks:
                met = ranks.collect("met", MEET_S, lambda rank, value: None)
                output.note(" ".join(str(pid) for pid in met.values()))
                ranks.start(lambda moment: moment)
                sums = ranks.collect("sum", WITHIN_S, lambda rank, value: None)
                ranks.start(lambda moment: moment)
                ranks.collect("left", WITHIN_S, lambda rank, value: None)
            for rank in every:
                output.reading("sum", "count", rank.component, sums[rank])
            output.end()

    return run_guarded("collective", run)


@dataclass(frozen=True)
class Reduced:
    """How the program ended, what each rank has as the sum, and the ranks' processes."""

    returncode: int
    stderr: str
    sums: dict[str, float]
    pids: tuple[int, ...]


def reduce(backend: str, count: int, fault: str = "none") -> Reduced:
    """Run the program to its end."""
    done = subprocess.run(
        [sys.executable, __file__, backend, str(count), fault],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(sys.modules["acceptance"].__path__[0]).parent)},
    )
    lines = []
    for line in done.stdout.splitlines():
        try:
            lines.append(decode(line))
        except ProtocolError as error:
            raise AssertionError(f"the stream is torn: {error}") from None
    sums = {one.component: one.value for one in lines if isinstance(one, LoadReading)}
    pids = [int(word) for one in lines if isinstance(one, Note) for word in one.text.split()]
    assert len(pids) == count, done.stderr
    return Reduced(done.returncode, done.stderr, sums, tuple(pids))


def gone(done: Reduced) -> bool:
    """Whether none of its ranks is left."""
    return not any(Path(f"/proc/{pid}/cmdline").exists() for pid in done.pids)


if __name__ == "__main__":
    exit_load(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
