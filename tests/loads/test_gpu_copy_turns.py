"""The turns of the copy loads, with real processes and locks, on a torch that is numpy."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from cases import each
from load_program import ROOT
from written import written

from acceptance.loads.copy import device_pattern, elementwise
from acceptance.loads.copy import load as copy_load
from acceptance.loads.copy.contract import PEER_READINGS, Ask
from acceptance.loads.copy.turns import Turns
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Note, Output, Waits, decode, parse, waits

FAKE = Path(__file__).parent / "fake_torch"
HOLDER = """
import sys
from pathlib import Path
from acceptance.loads.copy.turns import Turns
from acceptance.loads.protocol import Output
turns = Turns(Path(sys.argv[1]), sys.argv[2], Output(sys.stdout))
with getattr(turns, sys.argv[3])():
    print("has it", flush=True)
    sys.stdin.readline()
"""
SMALL = """
import sys
from acceptance.loads.__main__ import main
from acceptance.loads.copy import elementwise, load
load.ELEMENTS, elementwise._BATCH_S = (100, 400), 1e-4
print("ready", flush=True)
sys.stdin.readline()
sys.exit(main(["gpu_copy", *sys.argv[1:]]))
"""


def turns(folder: Path | None, link: str = "gpu0", stream: StringIO | None = None) -> Turns:
    return Turns(folder, link, Output(stream or StringIO()))


def taken(file: Path, *, shared: bool) -> bool:
    """Whether another could not have this lock now."""
    with file.open("a+b") as opened:
        try:
            fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def begin(*argv: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | environ,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


# --- the locks ---


def test_loads_are_beside_each_other_and_a_link_is_of_one(tmp_path: Path) -> None:
    own = turns(tmp_path)
    machine, link = tmp_path / "machine", tmp_path / "link-gpu0"
    with own.beside():
        assert taken(machine, shared=False)
        assert not taken(machine, shared=True)
        with turns(tmp_path, "gpu4").beside(), own.on_link():
            assert taken(link, shared=True)
            with turns(tmp_path, "gpu4").on_link():
                assert taken(tmp_path / "link-gpu4", shared=True)
        assert not taken(link, shared=False)
    assert not taken(machine, shared=False)


def test_alone_nothing_is_beside(tmp_path: Path) -> None:
    with turns(tmp_path).alone():
        assert taken(tmp_path / "machine", shared=True)
    assert not taken(tmp_path / "machine", shared=False)


@each("turn", ["beside", "on_link", "alone"])
def test_without_a_folder_there_are_no_turns(turn: str) -> None:
    stream = StringIO()
    with getattr(turns(None, stream=stream), turn)():
        pass
    assert stream.getvalue() == ""


@each(
    "turn, told",
    [
        ("beside", "shared turn on machine"),
        ("on_link", "exclusive turn on link-gpu0"),
        ("alone", "exclusive turn on machine"),
    ],
)
def test_a_turn_is_told_before_and_after(turn: str, told: str, tmp_path: Path) -> None:
    stream = StringIO()
    with getattr(turns(tmp_path, stream=stream), turn)():
        assert not waits(stream.getvalue())  # others may wait for it now
    first, *others = map(decode, stream.getvalue().splitlines())
    assert first == Waits(told)
    for line, verb in zip(others, ("waited", "took"), strict=True):
        assert isinstance(line, Note)
        assert re.fullmatch(rf"{told}: {verb} \d+\.\d s", line.text)


def test_a_turn_that_fails_is_given_back_and_its_error_kept(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of the work"), turns(tmp_path).alone():
        raise OSError("of the work")
    assert not taken(tmp_path / "machine", shared=False)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(LoadError, match=r"gone: No such file or directory: let the run lie on"),
        turns(tmp_path / "gone").beside(),
    ):
        pass


def test_a_filesystem_without_locks_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(LoadError, match=r"No locks available: .* with file locks \(--out\)"),
        turns(tmp_path).alone(),
    ):
        pass


@each("turn, file", [("on_link", "link-gpu0"), ("alone", "machine"), ("beside", "machine")])
def test_one_that_is_killed_holds_nobody_up(turn: str, file: str, tmp_path: Path) -> None:
    holder = begin(HOLDER, str(tmp_path), "gpu0", turn)
    assert waits(said(holder))
    assert "waited" in said(holder)
    assert said(holder) == "has it\n"
    waiting = begin(HOLDER, str(tmp_path), "gpu0", "alone" if turn == "beside" else turn)
    assert waits(said(waiting))
    assert taken(tmp_path / file, shared=False)
    holder.kill()
    assert "waited" in said(waiting)
    assert said(waiting) == "has it\n"
    waiting.communicate("\n", timeout=30)
    holder.communicate(timeout=30)
    assert (waiting.returncode, holder.returncode) == (0, -9)


# --- the load ---


@pytest.fixture
def fake(torch: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fake in torch's place: two GPUs, the second in reach."""
    torch(gpus="2", peers="1")
    monkeypatch.setattr(copy_load, "ELEMENTS", (100,))
    monkeypatch.setattr(elementwise, "_BATCH_S", 1e-4)
    monkeypatch.setattr(device_pattern, "_CHUNK", 50_000)
    return import_module("torch")


def asked(folder: Path, link: str) -> Ask:
    return Ask(seconds=0.01, peers=1, mib=1, turns=str(folder), link=link)


def test_each_path_is_in_its_turn_and_its_buffers_are_gone_at_the_end_of_it(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course: list[str] = []
    buffers: list[weakref.ref[Any]] = []

    @contextmanager
    def turn(_: Turns, name: str, lock: int) -> Iterator[None]:
        kind = {fcntl.LOCK_SH: "shared", fcntl.LOCK_EX: "exclusive"}[lock]
        course.append(f"{name}, {kind}")
        yield
        course.append(f"end of {name}")

    def empty(count: int, dtype: Any, device: str = "cpu", pin_memory: bool = False) -> Any:
        found = fake.Tensor(fake.np.full(count, 77, dtype), device)
        buffers.append(weakref.ref(found))
        if pin_memory:
            course.append("pinned")
        return found

    def empty_cache() -> None:
        course.append(f"cache emptied of all but {sum(one() is not None for one in buffers)}")

    told = Output.reading

    def reading(self: Output, name: str, *values: Any) -> None:
        course.append(name)
        told(self, name, *values)

    monkeypatch.setattr(Turns, "_turn", turn)
    monkeypatch.setattr(Output, "reading", reading)
    monkeypatch.setattr(fake, "empty", empty)
    monkeypatch.setattr(fake.cuda, "empty_cache", empty_cache)
    text = written(lambda output: copy_load.run(asked(tmp_path, "gpu4"), output))
    assert course == [
        "machine, shared",
        "copy_own_d2d",
        "cache emptied of all but 0",
        "elementwise_miscompares",
        "cache emptied of all but 0",
        "link-gpu4, exclusive",
        "pinned",
        "pinned",
        "copy_own_h2d",
        "copy_own_d2h",
        "copy_own_h2d_bidirectional",
        "copy_own_d2h_bidirectional",
        "copy_own_h2d_pageable",
        "copy_own_d2h_pageable",
        "cache emptied of all but 0",
        "end of link-gpu4",
        "end of machine",
        "copy_own_miscompares",
        "machine, exclusive",
        "copy_own_p2p",
        "copy_own_p2p_miscompares",
        "cache emptied of all but 0",
        "end of machine",
    ]
    assert parse(text).parameters["link"] == "gpu4"


def test_a_gpu_without_peers_waits_for_no_turn_alone(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "PEERS", [])
    output = parse(written(lambda output: copy_load.run(asked(tmp_path, "gpu0"), output)))
    assert [one.name for one in output.absences] == [*PEER_READINGS]
    taken_turns = {note.partition(":")[0] for note in output.notes if " turn on " in note}
    assert taken_turns == {"exclusive turn on link-gpu0", "shared turn on machine"}


Span = tuple[float, float]
KINDS = {"cuda->cuda": "private", "cuda->cuda:1": "peer"}


def spans(trace: Path) -> dict[int, dict[str, Span]]:
    """From the first to the last copy of each kind, by process."""
    found: dict[int, dict[str, Span]] = {}
    for line in trace.read_text().splitlines():
        process, way, began, ended = line.split()
        own, kind = found.setdefault(int(process), {}), KINDS.get(way, "host")
        first, _ = own.get(kind, (float(began), 0.0))
        own[kind] = first, float(ended)
    return found


def apart(one: Span, other: Span) -> bool:
    return one[1] < other[0] or other[1] < one[0]


def test_loads_that_start_at_once_share_nothing_at_one_time(tmp_path: Path) -> None:
    """Two that share a link, and one with a link of its own, as programs."""
    trace, folder = tmp_path / "trace", tmp_path / "turns"
    folder.mkdir()
    environ = {"PYTHONPATH": f"{FAKE}:{ROOT}", "FAKE_TORCH_TRACE": str(trace)}
    environ |= {"FAKE_TORCH_GPUS": "2", "FAKE_TORCH_PEERS": "1"}
    given = ("seconds=0.1", "peers=1", "mib=1", f"turns={folder}")
    links = ("gpu0", "gpu0", "gpu2")
    running = [begin(SMALL, *given, f"link={link}", **environ) for link in links]
    assert [said(one) for one in running] == ["ready\n"] * 3
    for one in running:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    outputs = [one.communicate(timeout=60)[0] for one in running]
    assert [one.returncode for one in running] == [0, 0, 0]
    assert tuple(parse(text).parameters["link"] for text in outputs) == links
    found = spans(trace)
    first, second, _ = (found[one.pid] for one in running)
    assert apart(first["host"], second["host"])
    for one, other in permutations(found.values(), 2):
        assert one["private"][1] < one["host"][0] < one["host"][1] < one["peer"][0]
        for kind in ("private", "host", "peer"):
            assert apart(one["peer"], other[kind]), kind
