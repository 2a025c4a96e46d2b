"""The load between two nodes with a group of arrays and files instead of torch.distributed.

    python pair_program.py collective_pair NAME=VALUE ...

FAKE_PAIR in the environment has words: `folder:PATH` is what both nodes see, `gone:NUMBER` ends
this program in that operation, `same` says that this is the host of rank 0; otherwise each rank is
its own host. FAKE_GROUP spoils operations, as in `collective_program`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from collective_program import FileGroup

from acceptance.loads.__main__ import parsed
from acceptance.loads.collective import pair
from acceptance.loads.collective.contract import PairAsk
from acceptance.loads.collective.pattern import Operation
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import Output

WORDS = {
    name: how
    for name, _, how in (word.partition(":") for word in os.environ.get("FAKE_PAIR", "").split())
}


class Group(FileGroup):
    """Every operation takes a millisecond."""

    def run(self, operation: Operation, source: Any, destination: Any) -> float:
        if WORDS.get("gone") == str(self.turn + 1):
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(30)
        super().run(operation, source, destination)
        return 1e-3


def main(argv: Sequence[str]) -> None:
    ask = parsed(argv)
    assert isinstance(ask, PairAsk)
    here = f"{pair.host()} rank {0 if 'same' in WORDS else ask.rank}"
    pair.host = lambda: here

    def join(rank: int, ranks: int, _folder: Path) -> FileGroup:
        return Group(rank, ranks, Path(WORDS["folder"]))

    work = partial(pair.run, ask, Output(sys.stdout), join)
    exit_load(run_guarded(ask.load, work))


if __name__ == "__main__":
    main(sys.argv[1:])
