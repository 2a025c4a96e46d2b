"""Nights in Parquet: whole at every moment, joined by the newest verdict, asked through DuckDB."""

from __future__ import annotations

import os
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
from cases import each
from fleet_verdicts import LAST_NIGHT, NOW, place, run_id, verdict
from known import known
from raising import raising

from acceptance.core.parts import Gpu
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import night, parquet, verdicts
from acceptance.fleet.night import NightTable, Row
from acceptance.fleet.verdicts import Series, began
from acceptance.reports.verdict_json import File
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


HOSTILE = "'; DROP TABLE x; --\n\x00\x1b[31m \U0001f600 [a]*"
CHECKED = Row("m", "FAIL", checks=3, not_passed=(('a.b["c"]', "fail"),), parts=("GPU-1", "中"))


@each(
    "files, due",
    [
        (
            {
                "b": verdict("PASS", values=(1.0, 2.0), serial="b"),
                "a": verdict("FAIL", values={"copy_h2d": 3.0, "it's": 1e-300}, serial="a"),
            },
            ("a", "b", "c"),
        ),
        ({"a": verdict(values={HOSTILE: 1.0}, provenance={"gpu_model": HOSTILE})}, None),
        ({"a": None}, ("a", "b")),  # nothing was measured
        ({}, None),  # no machine
        (None, None),  # checks and GPUs of a machine
    ],
)
def test_what_is_written_is_read(
    tmp_path: Path, files: dict[str, File | None] | None, due: tuple[str, ...] | None
) -> None:
    fleet, out = tmp_path / "fleet", tmp_path / "a [b]*? 'c'"
    for name, file in (files or {}).items():
        place(fleet, name, file) if file else (fleet / name).mkdir(parents=True)
    checked = NightTable((CHECKED,), (), np.empty((1, 0)))
    made = {NIGHT: checked} if files is None else tables(fleet, due)
    assert parquet.write(out, made) == [out / f"night-{NIGHT}.parquet"]
    found = parquet.read(parquet.path_of(out, NIGHT))
    assert same(found, made[NIGHT])
    assert found.troubles == made[NIGHT].troubles
    assert sorted(path.name for path in out.iterdir()) == [".lock", f"night-{NIGHT}.parquet"]


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


def test_a_night_that_cannot_be_read_is_left_as_it_is(tmp_path: Path) -> None:
    place(tmp_path / "fleet", "a")
    path = parquet.path_of(tmp_path, NIGHT)
    path.write_bytes(b"PAR1 torn")
    with pytest.raises(WordedError, match="move it away, then collect again"):
        parquet.write(tmp_path, tables(tmp_path / "fleet"))
    assert path.read_bytes() == b"PAR1 torn"


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


def _copy(made: Path, query: str, options: str = "", change: str = "") -> Path:
    """Another night's file, made from what is asked of a file after a change."""
    other = made.with_name("night-2026-11-24.parquet")
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE night AS FROM read_parquet('{made}')")
        if change:
            connection.execute(f"UPDATE night SET {change} WHERE measurement IS NULL")
        connection.execute(f"COPY ({query}) TO '{other}' (FORMAT parquet{options})")
    return other


NIGHT_ROWS = "SELECT * FROM night"


@each(
    "query, options, change",
    [
        ("SELECT 1 AS x", "", ""),
        (NIGHT_ROWS, ", KV_METADATA {rigproof_troubles: '[1]'}", ""),
        *(
            (NIGHT_ROWS, "", change)
            for change in (
                *("verdict = 'passed'", "not_passed = '[['", "parts = '{}'", "parts = NULL"),
                """not_passed = '[["gemm","pass"]]'""",
            )
        ),
    ],
)
def test_what_somebody_else_wrote_is_refused(
    tmp_path: Path, query: str, options: str, change: str
) -> None:
    (made,) = parquet.write(tmp_path, {NIGHT: table(row("PASS"), 1.0)})
    with pytest.raises(WordedError, match="no file of a night"):
        parquet.read(_copy(made, query, options, change))
    copied = parquet.read(_copy(made, NIGHT_ROWS))
    assert same(copied, parquet.read(made))
    assert copied.troubles is None, "of a copy nobody knows what was not read"


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
    for step in (0, 2):
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
