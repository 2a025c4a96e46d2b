"""What is pruned, and what never is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from nights import MACHINE, record, recorded, write_run
from raising import raising
from refusal import refused

from acceptance.core.parts import Gpu
from acceptance.history import folder as history_folder
from acceptance.history import night_file, nights
from acceptance.history.errors import HistoryError
from acceptance.history.nights import PruneResult, prune
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
    nights.open_history(out, MACHINE)
    return out


def copied(source: str, target: str) -> object:
    """A copy; a link of what is large and is never written."""
    return os.link(source, target) if source.endswith("telemetry") else shutil.copy2(source, target)


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """The same, to do with as one likes."""
    shutil.copytree(made.parent, tmp_path / "copied", symlinks=True, copy_function=copied)
    return tmp_path / "copied" / "reports"


def pruned(out: Path, **given: object) -> PruneResult:
    """Prune what the history holds at the moment."""
    return prune(recorded(out), out, MACHINE, **{"today": TODAY, **given})  # type: ignore[arg-type]


def days(first: int, last: int) -> list[str]:
    return [f"run-{day:02}" for day in range(first, last + 1)]


def folders(found: PruneResult) -> list[str]:
    """The runs whose folders were removed."""
    return [name for name, _ in found.folders]


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("run-*"))


def test_what_is_old_goes_with_its_figures_and_the_night_stays_and_it_does_not_come_back(
    out: Path,
) -> None:
    found = pruned(out, keep_days=19.0)
    assert (folders(found), found.nights, names(out)) == (days(1, 9), 9, days(10, 30))
    assert all(100_000 < size < 200_000 for _, size in found.folders)
    left = recorded(out)
    assert [one.run_id for one in left if one.pruned] == days(1, 9)
    assert [one.run_id for one in left] == days(1, 30)
    measured = [one.value for made in left for one in made.figures]
    assert measured == [100.0 + day for day in range(10, 31)]
    assert pruned(out, keep_days=19.0) == PruneResult((), 0, found.left)
    assert not removed(out).exists()
    assert nights.open_history(out, MACHINE)[:2] == (left, ())


def test_the_oldest_go_until_the_rest_fits(out: Path, tmp_path: Path) -> None:
    found = pruned(out, keep_bytes=1_000_000)
    assert folders(found) == days(1, len(found.folders))
    assert 20 < len(found.folders) < 30
    assert (found.left <= 1_000_000, found.nights) == (True, 0)
    assert len([one for made in recorded(out) for one in made.figures]) == 30  # figures stay
    none = prune((), tmp_path / "reports", MACHINE, today=TODAY, keep_days=1.0)
    assert none == PruneResult((), 0, 0)


def test_the_newest_and_what_is_named_never_go(out: Path) -> None:
    (out / "latest").unlink()
    (out / "latest").symlink_to("run-05")
    found = pruned(out, keep_days=0.5, keep_bytes=0, never=["run-03"])
    assert names(out) == ["run-03", "run-05", "run-30"]
    assert found.left > 300_000
    kept = [one.run_id for one in recorded(out) if not one.pruned]
    assert kept == ["run-03", "run-05", "run-29", "run-30"]


def test_a_clock_that_runs_ahead_removes_nothing(out: Path) -> None:
    assert pruned(out, today=TODAY + 5000.0, keep_days=29.5).folders == ()
    assert pruned(out, today=0.0, keep_days=1.0).folders == ()


@pytest.mark.parametrize("last", [1, 2, 9], ids=["first", "second", "last"])
def test_a_full_disk_prunes_nothing(out: Path, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    before, synced = recorded(out), iter(range(1, last))

    def full(_file: int) -> None:
        if next(synced, None) is None:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        message = refused(HistoryError, pruned, out, keep_days=19.0)
    assert message.code == "history_out_of_reach"
    assert (len(names(out)), recorded(out)) == (30, before)
    assert len(list(night_file.folder(out, MACHINE).iterdir())) == 30
    assert len(pruned(out, keep_days=19.0).folders) == 9


def change(out: Path, **changed: Mapping[str, object]) -> None:
    """Write nights again with another `day`, or another `folder`, by their runs."""
    for name, by_run in changed.items():
        record(
            out,
            *(
                replace(one, **{name: by_run[one.run_id]})
                for one in recorded(out)
                if one.run_id in by_run
            ),
        )


@pytest.mark.parametrize("today", [TODAY, TODAY + 3650.0], ids=["set right since", "still ahead"])
@pytest.mark.parametrize("night", ["run-28", "run-29", "run-30"])
def test_one_night_of_a_clock_years_ahead_makes_no_other_one_old(
    out: Path, night: str, today: float
) -> None:
    change(out, day={night: TODAY + 3650.0})
    assert pruned(out, today=today, keep_days=30.0) == PruneResult((), 0, pytest.approx(3e6, rel=1))
    found = set(folders(pruned(out, today=today, keep_days=19.0)))
    assert {"run-01", "run-07"} <= found <= set(days(1, 10))


@pytest.mark.parametrize("day", [0.0, TODAY + 3650.0])
def test_a_night_with_a_wrong_clock_is_not_removed_for_it(out: Path, day: float) -> None:
    """Nor the run of a night that cannot be read."""
    change(out, day={"run-20": day, "run-01": TODAY + 1.0})
    file = night_file.folder(out, MACHINE) / "run-05.json"
    file.write_bytes(file.read_bytes().replace(b'night":2', b'night":3', 1))
    found = prune(nights.read(out, MACHINE)[0], out, MACHINE, today=TODAY, keep_days=19.0)
    assert folders(found) == [*days(2, 4), *days(6, 9)]


def test_what_the_clock_of_two_nights_says_is_believed(out: Path) -> None:
    """A machine that stood still for a year: its first night since says
    nothing, its second does.
    """
    change(out, day={"run-30": TODAY + 365.0})
    assert pruned(out, today=TODAY + 366.0, keep_days=100.0).folders == ()
    change(out, day={"run-29": TODAY + 365.0, "run-30": TODAY + 366.0})
    found = pruned(out, today=TODAY + 366.0, keep_days=100.0)
    assert folders(found) == days(1, 28)


def test_what_is_no_closed_run_of_this_machine_stays(out: Path) -> None:
    (out / "run-01" / "journal.jsonl").write_text("mine\n")
    (out / "run-02" / "verdict.json").unlink()
    (out / "run-03").rename(out / "elsewhere")
    (out / "run-03").symlink_to(out / "elsewhere")
    (out / "run-04" / "journal.jsonl").unlink()
    write_run(out, "run-99", machine="machine-2")
    change(out, folder={"run-05": "../root-machine-1-boot-1"})
    (out / "notes").mkdir()
    (out / "notes" / "a").write_text("mine")
    there = {path.name for path in out.iterdir()}
    assert folders(pruned(out, keep_days=0.5)) == days(6, 28)
    assert {path.name for path in out.iterdir()} == there - set(days(6, 28))
    assert (out.parent / "root-machine-1-boot-1").is_dir()


def removed(out: Path) -> Path:
    """Where a folder lies while it is removed."""
    return history_folder.folder(out, MACHINE) / "removed"


def test_who_dies_while_a_folder_goes_leaves_no_half_run(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pruned(out, keep_days=19.0)
    assert names(out) == days(2, 30)
    assert (removed(out) / "run-01").is_dir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", raising(PermissionError(13, "Permission denied", "x")))
        assert refused(HistoryError, pruned, out, keep_days=19.0).code == "history_out_of_reach"
    pruned(out, keep_days=24.0)
    assert not removed(out).exists()
