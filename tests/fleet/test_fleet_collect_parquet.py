"""Nights in Parquet: whole at every moment, joined by the newest verdict, asked through DuckDB."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest
from fleet_verdicts import LAST_NIGHT, NOW, place, run_id, verdict
from known import known
from raising import raising

from acceptance.core.parts import Gpu
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import night, parquet, verdicts
from acceptance.fleet.night import NightTable, Row
from acceptance.fleet.verdicts import Series, began
from acceptance.wording import words
from acceptance.wording.errors import WordedError

FRESH = timedelta(hours=30)
NIGHT = "2026-11-25"
AT = began(LAST_NIGHT)
A, B = Series("c", "a", Gpu(0), "W"), Series("c", "b", Gpu(0), "W")


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def tables(folder: Path, due: tuple[str, ...] | None = None) -> dict[str, NightTable]:
    found = verdicts.collect([folder], NOW, NOW - FRESH)
    texts = [words.message(one.message) for one in found.troubles]
    made = night.tables(found, night.judge(found, due, NOW, FRESH), {}, NOW)
    return night.with_troubles(made, found, texts, NOW)


def same(one: NightTable, other: NightTable) -> bool:
    assert (one.rows, one.series) == (other.rows, other.series)
    np.testing.assert_array_equal(one.values, other.values)
    return True


def row(word: VerdictWord, at: datetime | None = AT, run: str | None = "r", **more: str) -> Row:
    return Row("m", word, run_id=run, began=at, **more)  # type: ignore[arg-type]


def table(one: Row, *values: float, series: tuple[Series, ...] = (A,)) -> NightTable:
    return NightTable((one,), series, np.array([values]))


# --- merging ---


def test_the_newest_verdict_of_a_machine_wins() -> None:
    assert AT is not None
    old, new = table(row("PASS"), 1.0), table(row("FAIL", AT + timedelta(hours=1)), 2.0)
    assert same(night.merge(old, new), new)
    assert same(night.merge(new, old), new)
    assert same(night.merge(old, table(row("UNJUDGED"), 3.0)), table(row("UNJUDGED"), 3.0))


def test_a_machine_of_which_only_one_table_knows_stays() -> None:
    one = NightTable((Row("m", "PASS", run_id="r", began=AT),), (A,), np.array([[1.0]]))
    two = NightTable((Row("k", "FAIL", run_id="r", began=AT),), (B,), np.array([[2.0]]))
    nan = np.nan
    whole = NightTable((*two.rows, *one.rows), (A, B), np.array([[nan, 2.0], [1.0, nan]]))
    assert same(night.merge(one, two), whole)
    assert same(night.merge(two, one), whole)


def test_doubt_makes_a_verdict_worse_and_loses_no_value() -> None:
    doubted = table(row("UNJUDGED", None, None, reason="torn"), series=())
    kept = night.merge(table(row("PASS"), 1.0), doubted)
    assert same(kept, table(row("UNJUDGED", reason="torn"), 1.0))
    assert night.merge(table(row("FAIL"), 1.0), doubted).rows[0].verdict == "FAIL"
    assert night.merge(kept, table(row("PASS"), 1.0)).rows[0].verdict == "PASS"


def test_a_verdict_takes_the_place_of_none() -> None:
    none = table(row("UNJUDGED", None, None, reason="no verdict"), series=())
    assert same(night.merge(none, table(row("PASS"), 1.0)), table(row("PASS"), 1.0))


def test_what_could_not_be_read_is_that_of_each_folders_last_collection() -> None:
    one = replace(table(row("PASS"), 1.0), troubles={"/x": ((None, "gone"),), "/y": (("m", "t"),)})
    two = replace(table(row("PASS"), 1.0), troubles={"/x": ()})
    unknown = table(row("PASS"), 1.0)
    assert night.merge(one, two).troubles == {"/x": (), "/y": (("m", "t"),)}
    assert night.merge(unknown, two).troubles == night.merge(two, unknown).troubles == {"/x": ()}
    assert night.merge(unknown, unknown).troubles is None


# --- the file ---


def test_what_is_written_is_read(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    place(fleet, "b", verdict("PASS", values=(1.0, 2.0), serial="b"))
    place(fleet, "a", verdict("FAIL", values={"copy_h2d": 3.0, "it's": 1e-300}, serial="a"))
    made = tables(fleet, ("a", "b", "c"))
    out = tmp_path / "a [b]*? 'c'"
    assert parquet.write(out, made) == [out / f"night-{NIGHT}.parquet"]
    assert same(parquet.read(out / f"night-{NIGHT}.parquet"), made[NIGHT])
    assert sorted(path.name for path in out.iterdir()) == [".lock", f"night-{NIGHT}.parquet"]


def test_hostile_texts_are_values(tmp_path: Path) -> None:
    text = "'; DROP TABLE x; --\n\x00\x1b[31m \U0001f600 [a]*"
    file = verdict("PASS", values={text: 1.0}, provenance={"gpu_model": text})
    place(tmp_path / "fleet", "a", file)
    made = tables(tmp_path / "fleet")
    (path,) = parquet.write(tmp_path, made)
    assert same(parquet.read(path), made[NIGHT])


def test_a_night_of_nothing_measured_is_read(tmp_path: Path) -> None:
    (tmp_path / "fleet/a").mkdir(parents=True)
    made = tables(tmp_path / "fleet", ("a", "b"))
    parquet.write(tmp_path, made)
    assert same(parquet.read(parquet.path_of(tmp_path, NIGHT)), made[NIGHT])


def test_anyone_can_ask_it(tmp_path: Path) -> None:
    for number in range(5):
        file = verdict("PASS", values=(600.0 + number,), serial=f"{number}")
        place(tmp_path / "fleet", f"m{number}", file)
    (path,) = parquet.write(tmp_path, tables(tmp_path / "fleet"))
    asked = duckdb.sql(
        f"SELECT measurement, component, median(value), mad(value) FROM '{path}' "
        "WHERE measurement IS NOT NULL GROUP BY ALL"
    ).fetchall()
    assert asked == [("gemm_bf16", "gpu0", 602.0, 1.0)]
    assert duckdb.sql(
        f"SELECT verdict, gpu_model, count(*) FROM '{path}' WHERE measurement IS NULL GROUP BY ALL"
    ).fetchall() == [("PASS", "NVIDIA H200", 5)]


def test_collecting_again_merges(tmp_path: Path) -> None:
    fleet, out = tmp_path / "fleet", tmp_path / "out"
    place(fleet, "a", verdict("PASS", values=(1.0,), serial="a"))
    parquet.write(out, tables(fleet, ("a", "b")))
    first = parquet.read(parquet.path_of(out, NIGHT))
    assert [(one.machine, one.verdict) for one in first.rows] == [("a", "PASS"), ("b", "UNJUDGED")]
    shutil.rmtree(fleet / "a")
    place(fleet, "b", verdict("FAIL", values=(2.0,), serial="b"))
    parquet.write(out, tables(fleet, ("a", "b")))
    again = parquet.read(parquet.path_of(out, NIGHT))
    assert [(one.machine, one.verdict) for one in again.rows] == [("a", "PASS"), ("b", "FAIL")]
    assert again.values.tolist() == [[1.0], [2.0]]


def test_a_night_that_cannot_be_read_is_left_as_it_is(tmp_path: Path) -> None:
    place(tmp_path / "fleet", "a")
    path = parquet.path_of(tmp_path, NIGHT)
    path.write_bytes(b"PAR1 torn")
    with pytest.raises(WordedError, match="move it away, then collect again"):
        parquet.write(tmp_path, tables(tmp_path / "fleet"))
    assert path.read_bytes() == b"PAR1 torn"


def test_a_parquet_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = parquet.path_of(tmp_path, NIGHT)
    duckdb.sql(f"COPY (SELECT 1 AS x) TO '{path}' (FORMAT parquet)")
    with pytest.raises(WordedError, match="no file of a night"):
        parquet.read(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("verdict", "passed"),
        ("not_passed", "[["),
        ("not_passed", '[["gemm","pass"]]'),
        ("parts", "{}"),
        ("parts", None),
    ],
)
def test_a_machine_that_was_written_by_somebody_else_is_refused(
    tmp_path: Path, column: str, value: str | None
) -> None:
    (made,) = parquet.write(tmp_path, {"2026-11-25": table(row("PASS"), 1.0)})
    other = tmp_path / "night-2026-11-24.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE night AS FROM read_parquet(?)", [str(made)])
        connection.execute(f"UPDATE night SET {column} = ? WHERE measurement IS NULL", [value])
        connection.execute(f"COPY night TO '{other}' (FORMAT parquet)")
    with pytest.raises(WordedError, match="no file of a night"):
        parquet.read(other)


def test_the_checks_and_gpus_of_a_machine_are_kept(tmp_path: Path) -> None:
    one = Row("m", "FAIL", checks=3, not_passed=(('a.b["c"]', "fail"),), parts=("GPU-1", "中"))
    (made,) = parquet.write(tmp_path, {"2026-11-25": NightTable((one,), (), np.empty((1, 0)))})
    assert parquet.read(made).rows == (one,)


def test_what_could_not_be_read_is_kept(tmp_path: Path) -> None:
    fleet = tmp_path / "it's"
    place(fleet, "a")
    (fleet / "a b").mkdir()
    (fleet / "torn").mkdir()
    (fleet / "torn/verdict.json").write_text("{")
    (path,) = parquet.write(tmp_path, tables(fleet))
    ((folder, troubles),) = known(parquet.read(path).troubles).items()
    assert folder == str(fleet)
    assert [machine for machine, _ in troubles] == [None, "torn"]
    assert all(str(fleet) in text for _, text in troubles)


def test_a_night_without_a_machine_keeps_what_could_not_be_read(tmp_path: Path) -> None:
    made = tables(tmp_path / "gone")
    (path,) = parquet.write(tmp_path, made)
    assert same(parquet.read(path), made[NIGHT])
    assert parquet.read(path).troubles == made[NIGHT].troubles


def _copy(made: Path, query: str, options: str = "") -> Path:
    """Another night's file, made from what is asked of a file."""
    other = made.with_name("night-2026-11-24.parquet")
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE night AS FROM read_parquet('{made}')")
        connection.execute(f"COPY ({query}) TO '{other}' (FORMAT parquet{options})")
    return other


def test_a_night_that_somebody_copied_does_not_know_what_was_unread(tmp_path: Path) -> None:
    place(tmp_path / "fleet", "a")
    (made,) = parquet.write(tmp_path, tables(tmp_path / "fleet"))
    copied = parquet.read(_copy(made, "SELECT * FROM night"))
    assert same(copied, parquet.read(made))
    assert copied.troubles is None


def test_what_somebody_else_wrote_of_troubles_is_refused(tmp_path: Path) -> None:
    (made,) = parquet.write(tmp_path, {"2026-11-25": table(row("PASS"), 1.0)})
    other = _copy(made, "SELECT * FROM night", ", KV_METADATA {rigproof_troubles: '[1]'}")
    with pytest.raises(WordedError, match="no file of a night"):
        parquet.read(other)


def test_a_disk_that_does_not_take_it_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path / "fleet", "a")
    made = tables(tmp_path / "fleet")
    (path,) = parquet.write(tmp_path, made)
    before = path.read_bytes()

    monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.raises(WordedError, match="No space left"):
        parquet.write(tmp_path, made)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".night-*"))


COLLECTOR = """
import sys
from datetime import timedelta
from pathlib import Path
from fleet_verdicts import NOW
from acceptance.fleet import night, parquet, verdicts
fleet, out = map(Path, sys.argv[1:])
while True:
    found = verdicts.collect([fleet], NOW, NOW - timedelta(hours=30))
    judged = night.judge(found, None, NOW, timedelta(hours=30))
    parquet.write(out, night.tables(found, judged, {}, NOW))
    print("written", flush=True)
"""


def test_a_collector_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Killed at points that nobody chose: the file is whole, and the next collector goes on."""
    fleet, out = tmp_path / "fleet", tmp_path / "out"
    earlier = run_id("2026-11-25T23:00")
    for number in range(20):
        file = verdict("PASS", earlier, values=tuple(range(1, 40)), serial=f"{number}")
        place(fleet, f"m{number:02}", file)
    made = tables(fleet)
    path = parquet.path_of(out, NIGHT)
    for step in range(4):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TZ": "UTC"}
        argv = [sys.executable, "-c", COLLECTOR, str(fleet), str(out)]
        with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as running:
            assert known(running.stdout).readline() == "written\n"
            time.sleep(0.013 * step)
            running.send_signal(signal.SIGKILL)
        assert same(parquet.read(path), made[NIGHT])
    parquet.write(out, made)
    assert not list(out.glob(".night-*"))


def test_two_collectors_do_not_write_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_WAIT_S", 0.0)
    place(tmp_path / "fleet", "a")
    with parquet._lock(tmp_path), pytest.raises(WordedError, match="another collector"):
        parquet.write(tmp_path, tables(tmp_path / "fleet"))
