"""The load of collectives between two nodes as the program it is, both programs on this host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cases import each
from load_program import ROOT, gone, wait_for
from load_texts import values

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads.collective import pair
from acceptance.loads.collective.pair import meet_peer as meet
from acceptance.loads.miscompare import WrongCollective
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import parse, salvage

HERE = Path(__file__).parent
HOST = "127.0.0.1"
Ended = subprocess.CompletedProcess[str]


def free_port() -> int:
    with socket.create_server(("", 0)) as held:
        return int(held.getsockname()[1])


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder that both nodes see."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{HERE}")
    monkeypatch.setenv("FAKE_PAIR", f"folder:{tmp_path}")


def started(
    rank: int, port: int, *more: str, words: str = "", spoil: str = ""
) -> subprocess.Popen[str]:
    given = {"backend": "gloo", "rank": rank, "address": HOST, "port": port, "within": 60}
    given |= {"test": "a,b,1", "most": 32768, "turns": 2, "grace": 20}
    given |= dict(one.split("=") for one in more)
    words_ = [f"{name}={value}" for name, value in given.items()]
    argv = [sys.executable, str(HERE / "pair_program.py"), "collective_pair", *words_]
    told = {"FAKE_PAIR": f"{os.environ['FAKE_PAIR']} {words}", "FAKE_GROUP": spoil}
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **told})


def both(first: Sequence[str] = (), second: Sequence[str] = (), **said: str) -> list[Ended]:
    """Both programs; what is `said` is for the second rank."""
    port = free_port()
    programs = [started(0, port, *first), started(1, port, *second, **said)]
    return [ended(one) for one in programs]


def ended(program: subprocess.Popen[str]) -> Ended:
    out, err = program.communicate(timeout=100)
    return Ended(program.args, program.returncode, out, err)


def test_each_program_tells_what_its_rank_measured_and_compared() -> None:
    ways = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))
    digests = set()
    for rank, done in enumerate(both()):
        assert done.returncode == 0, done.stderr
        output = parse(done.stdout)
        found = values(output)
        assert found == {
            ("collective_all_reduce", GPUS): pytest.approx(32768 / 1e6),
            ("collective_all_gather", GPUS): pytest.approx(32768 / 2e6),
            ("collective_send_receive", ways[0]): pytest.approx(32768 / 1e6),
            ("collective_send_receive", ways[1]): pytest.approx(32768 / 1e6),
            ("collective_send_receive_miscompares", ways[1 - rank]): 0,
            ("collective_miscompares", Gpu(rank)): 0,
        }
        assert output.parameters["rank"] == rank
        assert output.parameters["test"] == "a,b,1"
        assert output.parameters["host"] == f"{pair.host()} rank {rank}"
        digests.add(output.parameters["program"])
        compared = {
            (row[1], row[2], row[4]): row[6] for table in output.tables for row in table.rows
        }
        elements = 3 * 32768 // 4  # a turn to warm up, and two
        assert compared["all_reduce", "gpus", 32768] == elements
        assert compared["all_gather", "gpus", 32768] == elements
        assert compared["send_receive", str(ways[1 - rank]), 32768] == elements
        assert compared["send_receive", str(ways[rank]), 32768] == 0
    assert digests == {pair.program_digest()}


@pytest.mark.parametrize(
    ("second", "said", "wrong"),
    [
        # an operation that changed nothing is wrong at its rank alone
        ((), {"spoil": "all_reduce:lost"}, 3 * (4096 + 32768) // 4),
        (("inject=wrong",), {}, 1),
    ],
)
def test_a_fault_is_counted_at_its_rank_alone(
    second: Sequence[str], said: dict[str, str], wrong: int
) -> None:
    first, output = (parse(done.stdout) for done in both((), second, **said))
    assert values(first)["collective_miscompares", Gpu(0)] == 0
    assert values(output)["collective_miscompares", Gpu(1)] == wrong
    assert (first.injected, output.injected) == (None, "wrong" if second else None)
    told = output.miscompares[0]
    assert isinstance(told, WrongCollective)
    assert (told.check, told.unwritten) == ("all_reduce", 0 if second else 1024)


@each(
    "more, said",
    [
        (("turns=3",), "the other node has another turns: 3, and 2 here"),
        (("most=4096",), "the other node has another most: 4096, and 32768 here"),
    ],
)
def test_nodes_that_would_not_do_the_same_do_not_begin(more: tuple[str, ...], said: str) -> None:
    first, second = both(second=more)
    assert (first.returncode, second.returncode) == (1, 1)
    assert said in first.stderr
    assert "the other node has another " in second.stderr
    assert first.stdout == second.stdout == ""


def test_a_host_is_not_the_other_node_of_itself() -> None:
    first, second = both(words="same")
    assert (first.returncode, second.returncode) == (1, 1)
    for done in (first, second):
        assert f"the two programs run on one host: {pair.host()} rank 0" in done.stderr
        (line,) = done.stdout.splitlines()
        assert f'"host": "{pair.host()} rank 0"' in line


def test_a_program_of_another_test_is_let_go() -> None:
    """It ends; the node that it came to waits for its own."""
    port = free_port()
    first = started(0, port)
    other = ended(started(1, port, "test=c,d,2"))
    assert other.returncode == 1
    assert "the other node has another test: a,b,1, and c,d,2 here" in other.stderr
    assert ended(started(1, port)).returncode == 0
    assert ended(first).returncode == 0


def test_a_node_that_only_another_test_came_to_says_so() -> None:
    port = free_port()
    first = started(0, port, "grace=4")
    ended(started(1, port, "test=c,d,2"))
    said = ended(first)
    assert said.returncode == 1
    assert said.stderr.endswith("in time, but the program of another test: c,d,2\n")


def test_a_host_that_does_not_say_what_it_is_is_met_by_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pair, "_BOOT", tmp_path / "boot_id")
    with pytest.raises(LoadError, match="boot_id of this node cannot be read: No such file"):
        pair.host()


def test_a_node_that_dies_ends_the_other_at_once() -> None:
    first, second = both(("grace=50",), words="gone:4")
    assert second.returncode == -9
    assert first.returncode == 1
    assert "has ended" in first.stderr or "is gone" in first.stderr
    assert '"end"' not in first.stdout
    assert salvage(first.stdout) == ()


@each(
    "rank, said",
    [(0, "did not come to port {}"), (1, "port {} was not reached in time: Connection")],
)
def test_a_node_that_never_arrives_is_waited_for_within_the_grace(rank: int, said: str) -> None:
    port = free_port()
    done = ended(started(rank, port, "grace=1"))
    assert (done.returncode, said.format(port) in done.stderr) == (1, True), done.stderr


def test_a_rank_that_hangs_ends_both() -> None:
    first, second = both(("grace=4",), ("grace=50", "inject=hang"))
    assert (first.returncode, second.returncode) == (1, 1)
    assert "the other node does not take part: all_reduce of 4096 bytes" in first.stderr


def test_a_program_that_nobody_ends_ends_itself() -> None:
    program = started(0, free_port(), "within=1")
    assert ended(program).returncode == -14
    wait_for(lambda: gone(program.pid))


class Other(threading.Thread):
    """Rank 1 as a program that sends this, and closes."""

    def __init__(self, port: int, *lines: bytes) -> None:
        super().__init__(daemon=True)
        self.port, self.lines = port, lines
        self.start()

    def run(self) -> None:
        for line in self.lines:
            with suppress(OSError), _connected(self.port) as connection:
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(4096)


def _connected(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((HOST, port))
        except OSError:
            threading.Event().wait(0.02)


def greeting(**more: str | int) -> bytes:
    return json.dumps({"program": "one", "rank": 1, **more}).encode() + b"\n"


@each(
    "line, said",
    [
        (greeting(program="two"), "the other node has another program: two, and one here"),
        (greeting(rank=0), "both programs were started as rank 0, or the other as 0"),
        (greeting(more=1), "the other node has another more: 1, and None here"),
        (b'{"rank": 1}\n', "the other node has another program: None, and one here"),
    ],
)
def test_a_greeting_that_differs_is_refused(line: bytes, said: str) -> None:
    port = free_port()
    Other(port, line)
    with pytest.raises(LoadError, match=said):
        meet(0, HOST, port, {"program": "one"}, 10.0)


def test_what_is_no_program_of_ours_is_not_met() -> None:
    port = free_port()
    Other(port, b"GET / HTTP/1.1\n", b"[]\n", b"", b"x" * 5000, greeting())
    peer = meet(0, HOST, port, {"program": "one"}, 20.0)
    assert peer.local == HOST
    with pytest.raises(LoadError, match="the other node"):
        peer.finish(5.0)
    peer.close()


def test_a_listener_that_is_no_program_of_ours_is_refused() -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"220 ready\n")
            connection.recv(4096)

    with socket.create_server((HOST, 0)) as listening:
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        with pytest.raises(LoadError, match="did not answer as our program"):
            meet(1, HOST, listening.getsockname()[1], {"program": "one"}, 10.0)


def test_the_interface_of_an_address() -> None:
    assert pair.interface(HOST) == "lo"
    assert pair.interface("192.0.2.1") is None
