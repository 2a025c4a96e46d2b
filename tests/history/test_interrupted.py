"""Two writers at once, a kill at any point, a full disk, a folder that cannot be written:
nothing lost, nothing doubled, and said.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from nights import COPY, MACHINE, night, seen, write_run
from raising import raising
from thoroughness import ALL

from acceptance.history import location, lock, queries, rebuild
from acceptance.history import store as history_store
from acceptance.history import store as stores
from acceptance.history.errors import HistoryError
from acceptance.history.night import NightMeasurement
from acceptance.history.store import Store

KILLS = 24 if ALL else 6
FIGURES = tuple(
    NightMeasurement(COPY._replace(measurement=f"m{number}"), float(number)) for number in range(40)
)
STEP = (
    "CREATE TABLE later (x INTEGER)",
    "INSERT INTO later SELECT seq FROM night",
    "DROP TABLE later",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return location.database(tmp_path / "reports", MACHINE)


def started(work: Callable[[], object]) -> int:
    """A process of its own that does something; it ends with 0 where it came to its end."""
    pid = os.fork()
    if pid == 0:
        code = 9
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return pid


def at_once(*works: Callable[[], object]) -> list[int]:
    """Do several things at once, each in a process of its own; how each ended."""
    return [
        os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for pid in [started(work) for work in works]
    ]


def record(path: Path, *numbers: int) -> None:
    with Store.open(path) as store:
        for number in numbers:
            store.add(night(number, figures=FIGURES))


def whole(store: Store) -> list[str]:
    """The runs that are there; each must be there once and with everything."""
    store.check()
    runs = [kept.run_id for kept in store.nights()]
    assert len(set(runs)) == len(runs)
    courses = queries.trend_series(store)
    assert all([point.run_id for point in course.points] == runs for course in courses)
    assert len(courses) == (len(FIGURES) if runs else 0)
    return runs


def recorded(path: Path) -> list[str]:
    """The runs in the file, which is whole."""
    with Store.open(path) as store:
        return whole(store)


def names(count: int) -> list[str]:
    return [f"run-{number:05}" for number in range(count)]


def on_a_full_disk(size: int, work: Callable[[], object]) -> str:
    """What is said where no file may grow beyond a size: the kernel then takes a part of a write,
    as on a full disk.
    """
    reader, pen = os.pipe()

    def child() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            work()
        except HistoryError as error:
            os.write(pen, f"{error}".encode())

    assert at_once(child) == [0]
    os.close(pen)
    with os.fdopen(reader, encoding="utf-8") as told:
        return told.read()


def test_two_writers_lose_and_double_nothing(path: Path) -> None:
    Store.open(path).close()
    writers = [functools.partial(record, path, *range(a, b)) for a, b in ((0, 25), (15, 40))]
    assert at_once(*writers) == [0, 0]
    assert sorted(recorded(path)) == names(40)


def test_two_who_begin_it_at_once(path: Path) -> None:
    assert at_once(*(functools.partial(record, path, number) for number in range(4))) == [0] * 4
    assert len(recorded(path)) == 4


def test_two_who_find_it_damaged_at_once(path: Path) -> None:
    out = path.parents[2]
    for number in range(3):
        write_run(out, f"run-{number}")
    path.parent.mkdir(parents=True)
    path.write_text("nothing of ours\n" * 1000)
    assert at_once(*[lambda: rebuild.open_history(out, MACHINE)] * 3) == [0] * 3
    assert len([one for one in path.parent.iterdir() if ".damaged-" in one.name]) == 1
    with Store.open(path) as store:
        assert [kept.run_id for kept in store.nights()] == ["run-0", "run-1", "run-2"]


class Killer:
    """Kills its own process at the so-and-so-many-eth thing that SQLite does, or counts them."""

    def __init__(self, at: int | None) -> None:
        self.done = 0
        self._at = at
        self._connect = sqlite3.connect

    def connect(self, *given: object, **more: object) -> sqlite3.Connection:
        made: sqlite3.Connection = self._connect(*given, **more)  # type: ignore[call-overload]
        made.set_progress_handler(self._step, 1)
        return made

    def _step(self) -> int:
        self.done += 1
        if self.done == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


def points(seed: int, last: int) -> list[int]:
    """Where to kill: at the beginning, at the end, and drawn."""
    return sorted({1, last, *random.Random(seed).sample(range(1, last), KILLS - 2)})


def counted(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    killer = Killer(None)
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", killer.connect)
        work()
    return killer.done


def made(out: Path) -> None:
    store, _ = rebuild.rebuild(out, MACHINE)
    store.close()


def killed(work: Callable[[], object], at: int) -> None:
    def child() -> None:
        sqlite3.connect = Killer(at).connect  # type: ignore[assignment]
        work()

    assert at_once(child) == [-signal.SIGKILL]


def test_a_kill_while_nights_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(folder: str) -> Path:
        path = tmp_path / folder / "history.sqlite3"
        record(path, *range(4))
        return path

    last = counted(functools.partial(add, "counted"), monkeypatch)
    seen = set()
    for at in points(1, last):
        killed(functools.partial(add, f"at-{at}"), at)
        runs = recorded(tmp_path / f"at-{at}" / "history.sqlite3")
        assert runs == names(len(runs))
        seen.add(len(runs))
        assert recorded(add(f"at-{at}")) == names(4)
    assert len(seen) > 2  # kills came before, between and after


def test_a_kill_while_a_file_is_brought_to_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (*history_store.STEPS, STEP)

    old = tmp_path / "old" / "history.sqlite3"
    record(old, *range(30))

    def copied(name: str) -> Path:
        return shutil.copytree(old.parent, tmp_path / name) / old.name

    counted_in = copied("counted")
    last = counted(lambda: Store.open(counted_in, steps).close(), monkeypatch)
    for at in points(2, last):
        path = copied(f"at-{at}")
        killed(lambda path=path: Store.open(path, steps), at)
        with Store.open(path, steps) as store:
            assert len(whole(store)) == 30


def test_a_kill_while_a_history_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what it holds a part is in no run folder any more."""
    out = tmp_path / "reports"
    for number in range(2):
        write_run(out, f"run-{number}")
    path = location.database(out, MACHINE)
    rebuild.open_history(out, MACHINE)[0].close()
    record(path, *range(10, 13))
    kept = tmp_path / "kept"
    shutil.copytree(path.parent, kept)
    runs = ["run-0", "run-1", "run-00010", "run-00011", "run-00012"]

    def again() -> None:
        shutil.rmtree(path.parent)
        shutil.copytree(kept, path.parent)

    last = counted(lambda: made(out), monkeypatch)
    for at in points(3, last):
        again()
        killed(lambda: rebuild.rebuild(out, MACHINE), at)
        store, _ = rebuild.open_history(out, MACHINE)
        with store:
            store.check()
            assert [one.run_id for one in store.nights()] == runs
            assert sorted(len(course.points) for course in queries.trend_series(store)) == [
                2,
                *[3] * len(FIGURES),
            ]
        rebuild.rebuild(out, MACHINE)[0].close()
        assert not list(path.parent.glob("*.making*"))


@pytest.mark.parametrize("call", ["hardlink_to", "replace", "unlink"])
def test_a_kill_while_the_new_file_takes_the_place_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    out = tmp_path / "reports"
    path = location.database(out, MACHINE)
    record(path, 1)
    real = getattr(Path, call)

    def dies(self: Path, *given: object, **more: object) -> object:
        if self.name.endswith((".making-wal", ".making-shm", ".making")) and call == "unlink":
            return real(self, *given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    def child() -> None:
        monkeypatch.setattr(Path, call, dies)
        rebuild.rebuild(out, MACHINE)

    assert at_once(child) == [-signal.SIGKILL]
    rebuild.open_history(out, MACHINE)[0].close()
    assert recorded(path) == ["run-00001"]


def test_a_file_system_without_links_keeps_a_copy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    record(path, 1)
    monkeypatch.setattr(Path, "hardlink_to", raising(PermissionError(1, "Operation not permitted")))
    store, told = rebuild.rebuild(path.parents[2], MACHINE)
    with store:
        assert whole(store) == ["run-00001"]
    (aside,) = path.parent.glob("*.replaced-*Z")
    assert [one.values["kept"] for one in told] == [aside.name]
    assert recorded(aside) == ["run-00001"]


@pytest.mark.parametrize("size", [0, 1000, 5000, 20_000, 40_000, 60_000, 100_000])
def test_a_full_disk_is_said_and_takes_no_night_that_was_there(path: Path, size: int) -> None:
    record(path, 0)
    told = on_a_full_disk(size, functools.partial(record, path, *range(1, 400)))
    assert "history.sqlite3: cannot be" in told
    assert "make room" in told
    runs = recorded(path)
    assert runs
    assert runs == names(len(runs))


@pytest.mark.parametrize("size", [0, 5000, 40_000])
def test_a_disk_that_is_full_while_a_history_is_made_anew_takes_nothing_of_the_old(
    path: Path, size: int
) -> None:
    record(path, *range(20))
    out = path.parents[2]
    assert "make room" in on_a_full_disk(size, functools.partial(rebuild.rebuild, out, MACHINE))
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        assert (len(whole(store)), told) == (20, ())


def test_a_history_that_stays_in_use_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "BUSY_S", 0.05)
    with Store.open(path) as one, Store.open(path) as other:
        with (
            one.transaction(),
            pytest.raises(HistoryError, match=r"is in use by another process .*: wait until"),
        ):
            other.add(night(1))
        assert other.add(night(1))


def test_a_history_whose_lock_stays_taken_is_said(path: Path) -> None:
    told = pytest.raises(
        HistoryError, match="another process is at this history: wait until it has ended"
    )
    with lock.history_lock(path.parent), told, lock.history_lock(path.parent, 0.05):
        raise AssertionError
    with lock.history_lock(path.parent, 0.05):
        pass


def test_a_file_system_without_shared_memory_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As network file systems are: SQLite then stays with another journal, or cannot lock."""
    connect = sqlite3.connect

    def over_the_network(given: Path, **more: object) -> sqlite3.Connection:
        return connect(f"{given.as_uri()}?vfs=unix-dotfile", uri=True, **more)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(sqlite3, "connect", over_the_network)
    with pytest.raises(
        HistoryError, match=r"takes no write-ahead log .*: give a folder on a local disk with --out"
    ):
        Store.open(path)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(HistoryError, match=r"cannot be read or written \(Not a directory\)"):
        rebuild.open_history(tmp_path / "reports", MACHINE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_read_only_folder_can_be_looked_at_and_not_written(path: Path) -> None:
    with Store.open(path) as store:
        store.add(night(1))
    path.parent.chmod(0o555)
    path.chmod(0o444)
    told = os.memfd_create("told")

    def look() -> None:
        os.setuid(65534)
        with Store.view(path) as store:
            assert len(seen(store)[COPY.part]) == 1
        try:
            Store.open(path)
        except HistoryError as error:
            os.write(told, str(error).encode())

    for folder in (*path.parents,)[:-2]:
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)
    assert at_once(look) == [0]
    assert "fix" in os.pread(told, 4096, 0).decode()
