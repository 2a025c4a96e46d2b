"""The load of collectives between two nodes: this program runs on each, with one rank.

    python -m acceptance.loads collective_pair backend=nccl rank=0 address=gpu-01 \
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

Two programs on two nodes meet over TCP, compare their versions, and see when the other is gone.

Each sends one line of JSON with its greeting, and the two must agree but for `rank` and `host`. Who
waits lets the program of another test go, and waits on. The connection stays open, so that the end
of a program is known to the other at once; the last line on it says that it has measured all.
Standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import select
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import acceptance
from acceptance.core.parts import GPUS, Component
from acceptance.loads.collective import worker
from acceptance.loads.collective.contract import (
    COLLECTIVES,
    COLUMNS,
    NODES,
    PAIR_OPERATIONS,
    PairAsk,
    path_of,
    rate_of,
)
from acceptance.loads.collective.load import SMALL, CollectiveRun, entry
from acceptance.loads.collective.pattern import Operation, pairs
from acceptance.loads.collective.worker import NCCL_DEBUG, Join, Joined, VariantRank
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES, PATH_MISCOMPARES
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import RankLost, Ranks, RankSilent

SIOCGIFADDR = 0x8915  # linux/sockios.h
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # random(4)
_NAMESPACE = Path("/proc/self/ns/net")
_TEST, _HOST = "test", "host"  # keys of a greeting
_MOST = 4096  # bytes of a greeting
_GREETING_S = 5.0  # a stranger that says nothing does not keep the other node out
_PAUSE_S = 0.2  # between two tries to connect
_DONE = b"done\n"
_MAPPED = "::ffff:"  # before an IPv4 address on a socket of both families
_CODE = (".py", ".cu")
Greeting = Mapping[str, str | int | list[int]]


def program_digest() -> str:
    """SHA-256 of the code that this program consists of: the loads, and the vocabulary of core."""
    package = Path(acceptance.__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(one for room in ("core", "loads") for one in (package / room).rglob("*")):
        if path.suffix in _CODE:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(package).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def library_version() -> str:
    """The version of torch; empty where it is not installed."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def host() -> str:
    """What no other node has: the id of the host's boot, and the network namespace on it.

    Containers of one host that have networks of their own are nodes of their own. Raises LoadError
    where the host does not tell.
    """
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()} net {_NAMESPACE.stat().st_ino}"
    except OSError as error:
        raise LoadError(f"{error.filename} of this node cannot be read: {error.strerror}") from None


class Peer:
    """The connection to the other node's program, and the host that it says it runs on."""

    def __init__(self, connection: socket.socket, host: object = None) -> None:
        self._connection = connection
        self.host = host

    @property
    def local(self) -> str:
        """The address of this node on the way to the other."""
        return str(self._connection.getsockname()[0]).removeprefix(_MAPPED)

    def require_alive(self, within_s: float = 0.0) -> None:
        """Raise LoadError where the other program has ended, or ends within this time."""
        readable, _, _ = select.select([self._connection], [], [], within_s)
        if readable:
            try:
                gone = not self._connection.recv(1, socket.MSG_PEEK)
            except OSError as error:
                raise LoadError(f"the other node is gone: {error.strerror}") from None
            if gone:
                raise LoadError("the program of the other node has ended")

    def finish(self, within_s: float) -> None:
        """Say that all is measured, and wait until the other says so. Raises LoadError."""
        try:
            self._connection.sendall(_DONE)
            last = _line(self._connection, time.monotonic() + within_s)
        except OSError as error:
            raise LoadError(f"the other node is gone: {error}") from None
        if last != _DONE:
            raise LoadError("the program of the other node ended before it had measured all")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def meet_peer(rank: int, address: str, port: int, greeting: Greeting, within_s: float) -> Peer:
    """Meet the other rank of two: rank 0 listens on `port`, rank 1 connects to `address`.

    Raises LoadError where it does not come within the time, or its greeting differs.
    """
    end = time.monotonic() + within_s
    said = {**greeting, "rank": rank}
    connection, other = (_accept if rank == 0 else _connect)(address, port, said, end)
    there = other.pop(_HOST, None)
    if differs := _difference(rank, greeting, other):
        connection.close()
        raise LoadError(differs)
    return Peer(connection, there)


def _difference(rank: int, own: Greeting, other: dict[str, object]) -> str | None:
    """How the other's greeting does not fit."""
    if (found := other.pop("rank", None)) != 1 - rank:
        return f"both programs were started as rank {rank}, or the other as {found!r}"
    for key in sorted((own.keys() | other.keys()) - {_HOST}):
        if other.get(key) != own.get(key):
            return f"the other node has another {key}: {other.get(key)}, and {own.get(key)} here"
    return None


def _accept(
    _address: str, port: int, greeting: Greeting, end: float
) -> tuple[socket.socket, dict[str, object]]:
    """The connection of the first that sends a greeting of this test.

    What sends none is not spoken to. A program of another test gets the greeting, by which it ends.
    """
    stranger = ""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        listening = socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise LoadError(f"port {port} of this node cannot be used: {error.strerror}") from None
    with listening:
        while (left := end - time.monotonic()) > 0:
            listening.settimeout(left)
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                break
            try:
                other = _greeting(connection, min(end, time.monotonic() + _GREETING_S))
                connection.sendall(_encoded(greeting))
            except (OSError, ValueError):
                connection.close()
                continue
            if other.get(_TEST) == greeting.get(_TEST):
                return connection, other
            connection.close()
            stranger = f", but the program of another test: {other.get(_TEST)}"
    raise LoadError(f"the other node did not come to port {port} in time{stranger}")


def _connect(
    address: str, port: int, greeting: Greeting, end: float
) -> tuple[socket.socket, dict[str, object]]:
    """A connection, tried again until the other listens."""
    why = "no time"
    while (left := end - time.monotonic()) > 0:
        try:
            connection = socket.create_connection((address, port), timeout=left)
        except OSError as error:
            why = error.strerror or str(error)
            time.sleep(min(_PAUSE_S, max(0.0, end - time.monotonic())))
            continue
        try:
            connection.sendall(_encoded(greeting))
            return connection, _greeting(connection, end)
        except (OSError, ValueError) as error:
            connection.close()
            raise LoadError(
                f"{address} port {port} did not answer as our program: {error}"
            ) from None
    raise LoadError(f"{address} port {port} was not reached in time: {why}")


def _encoded(greeting: Greeting) -> bytes:
    return json.dumps(greeting).encode() + b"\n"


def _greeting(connection: socket.socket, end: float) -> dict[str, object]:
    greeting = json.loads(_line(connection, end))
    if not isinstance(greeting, dict):
        raise ValueError("no greeting")
    return greeting


def _line(connection: socket.socket, end: float) -> bytes:
    """One line, or what came of it before the other closed. Raises OSError."""
    found = b""
    while len(found) < _MOST and not found.endswith(b"\n"):
        connection.settimeout(max(0.001, end - time.monotonic()))
        # a byte at a time: what follows the line stays in the socket
        if not (byte := connection.recv(1)):
            break
        found += byte
    return found


def interface(address: str) -> str | None:
    """The network interface that has this IPv4 address; None where none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


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
    greeting: Greeting = {
        "test": ask.test,
        "host": host(),
        "program": program_digest(),
        "torch": library_version(),
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
            peer = meet_peer(ask.rank, ask.address, ask.port, greeting, ask.grace)
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


def _run_rank(run: PairRun, rank: VariantRank, ask: PairAsk, greeting: Greeting) -> None:
    peer = run.peer
    assert peer is not None
    run.ranks.start(lambda _moment: interface(peer.local))
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
