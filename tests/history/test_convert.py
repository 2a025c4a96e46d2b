"""The history of the last rigproof that kept it in SQLite, converted: every night, in its place."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from nights import COPY, ERA, MACHINE, night, record, recorded, values, write_run

from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import ITSELF, Gpu
from acceptance.history import folder, night_file, nights
from acceptance.history.convert import convert
from acceptance.history.errors import HistoryError
from acceptance.history.night import Era, NightMeasurement, ReportedChanges

HERE = Path(__file__)
NEWER = Era((("driver", "590.1"), ("profile", "nightly"), ("station", "host")))
OTHER = COPY._replace(component=Gpu(1), serial=None)
REPORTED = ReportedChanges("birth", (KnownChange(ITSELF, "kernel", "6.13", "2026-01-01"),))
# What version-2.sql holds: as it was given to that rigproof.
NIGHTS = (
    night(1, measured={}, pruned=True),
    night(
        2,
        measured={
            COPY: NightMeasurement(50.5, 49.25, outside=True, failed=True),
            OTHER: NightMeasurement(None, unsteady=True),
        },
        verdict="FAIL",
        folder="run-00002",
    ),
    night(3, 52.0, apart="salvaged", seconds=None),
    night(4, measured={}, verdict="UNJUDGED", postponed=True),
    night(5, 53.0, era=NEWER, virtual=True, reported=REPORTED, day=3.0, folder="run-00005"),
)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def written(out: Path) -> Path:
    """The database of that rigproof."""
    path = folder.database(out, MACHINE)
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(HERE.with_name("version-2.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return path


@pytest.fixture
def database(out: Path) -> Path:
    return written(out)


def older_file(
    out: Path, run_id: str = "run-00009", day: str = "20009.0", profile: str = "profile"
) -> Path:
    """The night file of format 1 of a night that the database lacks."""
    content = HERE.with_name("night-1.json").read_text()
    record = content[content.index('"record":') + 9 : -2]
    for old, new in (("run-00001", run_id), ("20001.0", day), ('"profile"', f'"{profile}"')):
        record = record.replace(old, new)
    path = night_file.folder(out, MACHINE) / f"{run_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(record.encode()).hexdigest()
    path.write_text(f'{{"rigproof_night":1,"sha256":"{digest}","record":{record}}}\n')
    return path


def test_every_night_comes_back_in_its_place_and_runs_that_are_there_follow(
    out: Path, database: Path
) -> None:
    for name in ("run-00002", "later"):
        write_run(out, name)
    assert convert(out, MACHINE) == (5, ())
    assert recorded(out) == NIGHTS
    assert not database.exists()
    kept = sqlite3.connect(database.with_name("history.sqlite3.converted"))
    assert kept.execute("SELECT count(*) FROM night").fetchone() == (5,)
    kept.close()
    found, notices, _ = nights.open_history(out, MACHINE)
    assert (found[:5], [one.run_id for one in found[5:]], notices) == (NIGHTS, ["later"], ())


def test_nights_that_were_recorded_since_follow_those_that_are_converted(
    out: Path, database: Path
) -> None:
    record(out, *(night(number) for number in (51, 52)))
    older_file(out)
    assert convert(out, MACHINE)[0] == 6
    names = [*(one.run_id for one in NIGHTS), "run-00009", "run-00051", "run-00052"]
    found = [(one.run_id, one.number) for one in recorded(out)]
    assert found == list(zip(names, range(1, 9), strict=True))


def test_night_files_of_the_older_format_follow_those_of_the_database(
    out: Path, database: Path
) -> None:
    older_file(out, "run-00001")  # it is in the database, without its values
    older_file(out, "run-00010", "20010.0")
    older_file(out)
    assert convert(out, MACHINE) == (7, ())
    *first, ninth, tenth = recorded(out)
    assert tuple(first) == NIGHTS
    assert (ninth.run_id, ninth.number, tenth.run_id) == ("run-00009", 6, "run-00010")
    assert values(ninth) == {
        COPY: NightMeasurement(50.5, 49.25, outside=True, failed=True),
        OTHER: NightMeasurement(None, unsteady=True),
    }
    assert (ninth.era, ninth.apart, ninth.reported) == (ERA, "in-use", REPORTED)
    before = recorded(out)
    assert convert(out, MACHINE) == (0, ())
    assert recorded(out) == before


def changed(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()

    return change


@each(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:20_000]),
        lambda path: path.write_text("notes of mine\n" * 1000),
        changed("PRAGMA user_version = 1"),
        changed("UPDATE night SET scope = 'half' WHERE seq = 3"),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
    told=["torn", "foreign", "of another version", "another row", "a pipe"],
)
def test_what_cannot_be_converted_stays_as_it_is(
    tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    path = written(tmp_path)
    harm(path)
    with pytest.raises(HistoryError):
        convert(tmp_path, MACHINE)
    assert path.exists()
    assert night_file.files(tmp_path, MACHINE) == []


@each(
    "harm",
    [
        lambda path: path.write_text(path.read_text().replace("50.5", "50.6")),
        lambda path: path.write_text("{}"),
        lambda path: path.rename(path.with_name("run-00008.json")),
        lambda path: older_file(path.parents[3], profile="profil"),
    ],
    told=["changed", "empty", "of another name", "of another shape"],
)
def test_a_damaged_older_file_is_named_and_left(
    tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    """Without a database, too, the others are converted."""
    older_file(tmp_path, "run-00007")
    harm(older_file(tmp_path))
    before = {path.read_bytes() for path in night_file.files(tmp_path, MACHINE)}
    count, (notice,) = convert(tmp_path, MACHINE)
    assert (count, notice.code) == (1, "not_in_history")
    found, unread = nights.read(tmp_path, MACHINE)
    assert ([one.run_id for one in found], len(unread)) == (["run-00007"], 1)
    assert len(before & {path.read_bytes() for path in unread}) == 1


def test_who_was_killed_on_the_way_starts_again(out: Path, database: Path) -> None:
    pid = os.fork()
    if pid == 0:
        real, left = Path.replace, iter(range(3))

        def dies(self: Path, target: Path) -> Path:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(self, target)

        Path.replace = dies  # type: ignore[method-assign, assignment]
        convert(out, MACHINE)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    with pytest.raises(HistoryError):
        nights.read(out, MACHINE)
    assert convert(out, MACHINE) == (5, ())
    assert recorded(out) == NIGHTS
