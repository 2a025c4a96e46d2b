"""The load of collectives between two nodes: this program runs on each, with one rank.

    python -m acceptance.loads collective_pair backend=nccl rank=0 address=gpu-01 \\
        test=gpu-01,gpu-02,1 within=120

Rank 0 listens on `port`; rank 1 connects to `address`, which is that of rank 0. They meet
(`rendezvous`): a node with other code of the loads, another torch or other arguments ends both, and
so does one host at both ends. `test` is what no other test has: rank 0 lets a program of another
test go, and waits on.

Then torch.distributed uses the same port, over NCCL between one GPU of each node (`gpu`), or over
gloo between processors. NCCL_* and GLOO_* variables of the site stay, as they say which network to
use; they stand in the first line. Without GLOO_SOCKET_IFNAME gloo gets the interface that
leads to the other node.

Nothing is heated. Both programs make the same turns in the same order, each with numbers of its own
(`pattern`): all-reduce, all-gather, and a send-receive from rank 0 to 1 and back, in float32, of
4 KiB and of `most` bytes. One turn of each size warms up; the median of `turns` others counts.
The destination is spoiled before each turn and compared whole after it, at the rank that has it.

Each program prints what its own rank measured; `gpu0` is that of rank 0 and `gpu1` that of rank 1.
Readings, in GB/s of bus bandwidth of the largest size: `collective_all_reduce` and
`collective_all_gather` of `gpus`, `collective_send_receive` of both paths. `collective_miscompares`
counts wrong elements at this rank, `collective_send_receive_miscompares` those of the path to it.
The table `collectives` has every size, with how many elements were compared. Where GPUs are used,
`nccl` is NCCL's log.

Exit status: 0 when it ran whole, whatever it found; 1 when the other node was not there, was this
one, was another version, ended or did not take part within `grace` seconds, or torch failed, with
one sentence on standard error and no end line; 2 for arguments that cannot be used. After
`within` seconds a signal (SIGALRM) ends it, whoever started it.
"""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from acceptance.core.parts import GPUS, Component
from acceptance.loads.collective import rendezvous, worker
from acceptance.loads.collective.contract import (
    COLLECTIVES,
    COLUMNS,
    NODES,
    PAIR_OPERATIONS,
    PairAsk,
    path_of,
    rate_of,
)
from acceptance.loads.collective.group import Join
from acceptance.loads.collective.load import SMALL, CollectiveRun, entry
from acceptance.loads.collective.operation import Operation, pairs
from acceptance.loads.collective.rendezvous import Peer
from acceptance.loads.collective.variant import NCCL_DEBUG, Joined, VariantRank
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES, PATH_MISCOMPARES
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import RankLost, Ranks, RankSilent

_GONE_S = 1.0  # for the end of the other program to arrive here
_NETWORK = ("NCCL_", "GLOO_")  # what the site says of its network


class NodeRank(VariantRank):
    """The rank of this node. The site's variables of NCCL stay."""

    def prepare(self) -> None:
        """Have NCCL write its log."""
        os.environ |= {**NCCL_DEBUG, "NCCL_DEBUG_FILE": str(self.log)}


@dataclass(slots=True)
class PairRun(CollectiveRun):
    """The turns of this node's rank, while the other node is there."""

    peer: Peer | None = None

    def progress(self) -> None:
        """Raise LoadError as soon as the other program has ended."""
        CollectiveRun.progress(self)
        if self.peer is not None:
            self.peer.require_alive()

    def silent(self, error: RankSilent, task: object) -> RankSilent:
        """The rank of this node waits in the operation, or it is late itself."""
        who = "the other node does not take part" if self.entered else str(error)
        return RankSilent(f"{who}: {task}")


def _measure(run: PairRun, component: Component, most: int) -> None:
    """All turns, and the readings of this rank."""
    sizes = sorted({min(SMALL, most), most})
    for name in PAIR_OPERATIONS:
        rates = [run.measure(Operation(name, NODES), "f32", size) for size in sizes]
        run.reading(rate_of(name), "GB/s", GPUS, rates[-1])
    for ends in pairs(NODES):
        rates = [run.path(ends, size) for size in sizes]
        path = path_of(ends)
        run.reading(rate_of("send_receive"), "GB/s", path, rates[-1])
        if path.second == component:
            run.reading(PATH_MISCOMPARES, "count", path, run.wrong[path])
    run.reading(COLLECTIVE_MISCOMPARES, "count", component, run.wrong[component])


def run(ask: PairAsk, output: Output, join: Join | None = None) -> None:
    """This node's half; `join` is for tests. Raises LoadError, RankLost."""
    # What started it may be gone, or be on another machine: this ends it all the same.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, ask.within)
    meet = f"tcp://{ask.address}:{ask.port}"
    start, load_libraries = entry(ask.backend, join, meet, ask.gpu)
    greeting: rendezvous.Greeting = {
        "test": ask.test,
        "host": rendezvous.host(),
        "program": rendezvous.program_digest(),
        "torch": rendezvous.library_version(),
        "backend": ask.backend,
        "most": ask.most,
        "turns": ask.turns,
    }
    with tempfile.TemporaryDirectory() as folder:
        rank: VariantRank = NodeRank(ask.rank, "default", Path(folder))

        def body(one: VariantRank, connection: Connection) -> None:
            load_libraries()
            _, leads = connection.recv()
            if leads is not None:
                os.environ.setdefault("GLOO_SOCKET_IFNAME", leads)
            worker.work(one, NODES, connection, start, ask.inject)

        # Forked before the two meet: torch is loaded meanwhile.
        with Ranks((rank,), body) as ranks:
            peer = rendezvous.meet(ask.rank, ask.address, ask.port, greeting, ask.grace)
            with closing(peer):
                if peer.host == greeting["host"]:
                    # What started the two sees it in the first line of both.
                    output.hello(ask.load, {**greeting, **ask.parameters()})
                    raise LoadError(f"the two programs run on one host: {peer.host}")
                try:
                    own = PairRun((rank,), ranks, output, ask.grace, ask.within, ask=ask, peer=peer)
                    _run_rank(own, rank, ask, greeting)
                    peer.finish(ask.grace)
                except RankLost:
                    # A rank fails for want of the other, too.
                    peer.require_alive(_GONE_S)
                    raise
                finally:
                    rank.report_log(output)
    output.table(COLLECTIVES, COLUMNS, own.rows)
    output.end()


def _run_rank(run: PairRun, rank: VariantRank, ask: PairAsk, greeting: rendezvous.Greeting) -> None:
    peer = run.peer
    assert peer is not None
    run.ranks.start(lambda _moment: rendezvous.interface(peer.local))
    joined: Joined = run.collect("joined")[rank]
    about = {
        "uuids": [joined.uuid],
        "network": {name: value for name, value in os.environ.items() if name.startswith(_NETWORK)},
    }
    run.output.hello(ask.load, {**greeting, **ask.parameters(), **about})
    run.begin()
    run.output.note(joined.about)
    _measure(run, rank.component, ask.most)
    run.leave()
