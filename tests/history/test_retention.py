"""What is pruned, and what never is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from nights import MACHINE, write_run
from raising import raising

from acceptance.core.parts import Gpu
from acceptance.history import night_file, queries, rebuild
from acceptance.history.errors import HistoryError
from acceptance.history.retention import PruneResult, prune
from acceptance.history.store import Store
from acceptance.journal import clock

TODAY = 20_484.0  # 2026-01-31; two of the last three nights say that it is the 29th


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty nights of January, each with a file of 100 kB."""
    out = tmp_path_factory.mktemp("retention") / "reports"
    with pytest.MonkeyPatch.context() as patched:
        for day in range(1, 31):
            patched.setattr(clock, "utc", lambda day=day: f"2026-01-{day:02}T02:00:00.000Z")
            folder = write_run(out, f"run-{day:02}", {("copy", Gpu(0)): 100.0 + day})
            (folder / "logs").mkdir()
            (folder / "logs" / "telemetry").write_bytes(b"x" * 100_000)
    (out / "latest").symlink_to("run-30")
    rebuild.open_history(out, MACHINE)[0].close()
    return out


def copied(source: str, target: str) -> object:
    """A copy; a link of what is large and is never written."""
    return os.link(source, target) if source.endswith("telemetry") else shutil.copy2(source, target)


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """The same, to do with as one likes."""
    shutil.copytree(made.parent, tmp_path / "copied", symlinks=True, copy_function=copied)
    return tmp_path / "copied" / "reports"


@pytest.fixture
def store(out: Path) -> Iterator[Store]:
    store, _ = rebuild.open_history(out, MACHINE)
    with store:
        yield store


def days(first: int, last: int) -> list[str]:
    return [f"run-{day:02}" for day in range(first, last + 1)]


def folders(found: PruneResult) -> list[str]:
    """The runs whose folders were removed."""
    return [name for name, _ in found.folders]


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("run-*"))


def test_what_is_old_goes_with_its_figures_and_the_night_stays(out: Path, store: Store) -> None:
    found = prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    gone = days(1, 9)
    assert folders(found) == gone
    assert all(100_000 < size < 200_000 for _, size in found.folders)
    assert found.nights == 9
    assert names(out) == days(10, 30)
    nights = store.nights()
    assert (
        [one.run_id for one in nights if one.pruned]
        == [one.run_id for one in nights if one.folder is None]
        == gone
    )
    assert len(nights) == 30
    (course,) = queries.trend_series(store)
    assert [point.value for point in course.points] == [100.0 + day for day in range(10, 31)]
    assert prune(store, out, MACHINE, today=TODAY, keep_days=19.0) == PruneResult((), 0, found.left)
    assert not (store.path.parent / "removed").exists()


def test_what_is_pruned_does_not_come_back(out: Path, store: Store) -> None:
    prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    store.close()
    again, _ = rebuild.open_history(out, MACHINE)
    with again:
        assert len(queries.trend_series(again)[0].points) == 21
        assert len(again.nights()) == 30


def test_the_oldest_go_until_the_rest_fits(out: Path, store: Store) -> None:
    found = prune(store, out, MACHINE, today=TODAY, keep_bytes=1_000_000)
    assert folders(found) == [f"run-{day:02}" for day in range(1, len(found.folders) + 1)]
    assert 20 < len(found.folders) < 30
    assert found.left <= 1_000_000
    assert found.nights == 0
    assert len(queries.trend_series(store)[0].points) == 30  # their figures stay


def test_the_newest_and_what_is_named_never_go(out: Path, store: Store) -> None:
    (out / "latest").unlink()
    (out / "latest").symlink_to("run-05")
    found = prune(store, out, MACHINE, today=TODAY, keep_days=0.5, keep_bytes=0, never=["run-03"])
    assert names(out) == ["run-03", "run-05", "run-30"]
    assert found.left > 300_000
    assert [one.run_id for one in store.nights() if not one.pruned] == [
        "run-03",
        "run-05",
        "run-29",
        "run-30",
    ]


def test_a_clock_that_runs_ahead_removes_nothing(out: Path, store: Store) -> None:
    assert prune(store, out, MACHINE, today=TODAY + 5000.0, keep_days=29.5).folders == ()
    assert prune(store, out, MACHINE, today=0.0, keep_days=1.0).folders == ()


def kept(out: Path) -> dict[str, tuple[float | None, ...]]:
    """The values in the night files."""
    files = night_file.files(out, MACHINE)
    records = [night_file.read(file, MACHINE) for file in files]
    assert all(one.pruned is not bool(one.night.figures) for one in records)
    return {one.night.run_id: tuple(row.value for row in one.night.figures) for one in records}


def test_a_night_stays_in_a_file_with_as_much_as_the_history_keeps(out: Path, store: Store) -> None:
    prune(store, out, MACHINE, today=TODAY, keep_days=24.0)
    gone = {f"run-{day:02}": () for day in range(1, 5)}
    assert kept(out) == gone
    found = prune(store, out, MACHINE, today=TODAY, keep_bytes=1_000_000)
    sizes = {name: (100.0 + int(name[4:]),) for name, _ in found.folders}
    assert len(sizes) > 10
    assert kept(out) == gone | sizes
    prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    older = {f"run-{day:02}": () for day in range(1, 10)}
    assert kept(out) == sizes | older
    before = store.nights()
    store.close()
    store.path.unlink()
    with rebuild.open_history(out, MACHINE)[0] as again:
        assert again.nights() == before
        assert len(queries.trend_series(again)[0].points) == 21
        assert prune(again, out, MACHINE, today=TODAY, keep_days=19.0).nights == 0


@pytest.mark.parametrize("last", [1, 2, 9], ids=["first", "second", "last"])
def test_a_full_disk_prunes_nothing(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    before = store.nights()
    synced = iter(range(1, last))

    def full(_file: int) -> None:
        if next(synced, None) is None:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(HistoryError, match=r"nights: .*No space left on device\): make room"):
            prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    assert len(names(out)) == 30
    assert store.nights() == before
    assert len(queries.trend_series(store)[0].points) == 30
    assert list(night_file.folder(out, MACHINE).iterdir()) == []
    assert len(prune(store, out, MACHINE, today=TODAY, keep_days=19.0).folders) == 9


def test_a_night_whose_rows_make_no_sense_prunes_nothing(out: Path, store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("UPDATE night SET scope = 'half' WHERE run_id = 'run-05'")
    with pytest.raises(HistoryError, match=r"night run-05 cannot be read: .*history --rebuild"):
        prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    assert len(names(out)) == 30
    assert kept(out) == {}


def clocks(store: Store, days: dict[str, float]) -> None:
    """What clocks said on some nights."""
    with store.transaction() as connection:
        connection.executemany(
            "UPDATE night SET day = ? WHERE run_id = ?", [(day, name) for name, day in days.items()]
        )


@pytest.mark.parametrize("today", [TODAY, TODAY + 3650.0], ids=["set right since", "still ahead"])
@pytest.mark.parametrize("night", ["run-28", "run-29", "run-30"])
def test_one_night_of_a_clock_years_ahead_makes_no_other_one_old(
    out: Path, store: Store, night: str, today: float
) -> None:
    clocks(store, {night: TODAY + 3650.0})
    assert prune(store, out, MACHINE, today=today, keep_days=30.0) == PruneResult(
        (), 0, pytest.approx(3e6, rel=1)
    )
    found = prune(store, out, MACHINE, today=today, keep_days=19.0)
    assert (
        {"run-01", "run-07"}
        <= {name for name, _ in found.folders}
        <= {f"run-{day:02}" for day in range(1, 11)}
    )


@pytest.mark.parametrize("day", [0.0, TODAY + 3650.0])
def test_a_night_with_a_wrong_clock_is_not_removed_for_it(
    out: Path, store: Store, day: float
) -> None:
    clocks(store, {"run-20": day, "run-01": TODAY + 1.0})
    assert folders(prune(store, out, MACHINE, today=TODAY, keep_days=19.0)) == days(2, 9)


def test_what_the_clock_of_two_nights_says_is_believed(out: Path, store: Store) -> None:
    """A machine that stood still for a year: its first night since says
    nothing, its second does.
    """
    clocks(store, {"run-30": TODAY + 365.0})
    assert prune(store, out, MACHINE, today=TODAY + 366.0, keep_days=100.0).folders == ()
    clocks(store, {"run-29": TODAY + 365.0, "run-30": TODAY + 366.0})
    found = prune(store, out, MACHINE, today=TODAY + 366.0, keep_days=100.0)
    assert folders(found) == days(1, 28)


def test_what_is_no_closed_run_of_this_machine_stays(out: Path, store: Store) -> None:
    (out / "run-01" / "journal.jsonl").write_text("mine\n")
    (out / "run-02" / "verdict.json").unlink()
    (out / "run-03").rename(out / "elsewhere")
    (out / "run-03").symlink_to(out / "elsewhere")
    (out / "run-04" / "journal.jsonl").unlink()
    write_run(out, "run-99", machine="machine-2")
    store.link("run-05", "../root-machine-1-boot-1")
    (out / "notes").mkdir()
    (out / "notes" / "a").write_text("mine")
    found = prune(store, out, MACHINE, today=TODAY, keep_days=0.5)
    assert folders(found) == days(6, 28)
    left = {path.name for path in out.iterdir()}
    assert left == {
        "run-01",
        "run-02",
        "run-03",
        "run-04",
        "run-05",
        "run-29",
        "run-30",
        "run-99",
        "elsewhere",
        "notes",
        "latest",
        "history",
    }
    assert (out.parent / "root-machine-1-boot-1").is_dir()


def test_who_dies_while_a_folder_goes_leaves_no_half_run(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(shutil, "rmtree", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    monkeypatch.undo()
    assert names(out) == days(2, 30)
    assert (store.path.parent / "removed" / "run-01").is_dir()
    prune(store, out, MACHINE, today=TODAY, keep_days=24.0)
    assert not (store.path.parent / "removed").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove anything")
def test_what_cannot_be_removed_is_told(out: Path, store: Store) -> None:
    out.chmod(0o555)
    with pytest.raises(HistoryError, match="fix the folder's permissions"):
        prune(store, out, MACHINE, today=TODAY, keep_days=19.0)
    out.chmod(0o755)


def test_the_file_gives_its_room_back(out: Path, store: Store) -> None:
    with store.transaction() as connection:
        rows = [
            (number, seq, float(seq), None, 0) for number in range(100, 400) for seq in range(1, 30)
        ]
        connection.executemany("INSERT INTO figure VALUES (?, ?, ?, ?, ?)", rows)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = store.path.stat().st_size
    prune(store, out, MACHINE, today=TODAY, keep_days=1.5)
    assert store.path.stat().st_size < before / 2


def test_a_history_without_nights(tmp_path: Path) -> None:
    store, _ = rebuild.open_history(tmp_path / "reports", MACHINE)
    with store:
        assert prune(
            store, tmp_path / "reports", MACHINE, today=TODAY, keep_days=1.0
        ) == PruneResult((), 0, 0)
