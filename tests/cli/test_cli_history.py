"""`rigproof history`, as it is called."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import sqlite3
from pathlib import Path

import journals
import pytest
from cases import each
from command import Call, assert_one_sentence, assert_refused, printed
from known import known
from nights import COPY, MACHINE, night, record, write_run

from acceptance.core.parts import Gpu, Named
from acceptance.history import folder, night_file
from acceptance.history.night import NightMeasurement
from acceptance.journal import clock
from acceptance.journal import run as journal_run
from acceptance.reports import explanation
from acceptance.run import lock

PLAN = journals.plan(
    journals.check("link.copy", journals.due("copy_h2d", Gpu(0)), journals.due("copy_h2d", Gpu(1))),
    profile="nightly",
)


@pytest.fixture(autouse=True)
def this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are of this machine, and its lock is one of its own."""
    own = clock.machine_id
    monkeypatch.setattr(
        clock, "machine_id", lambda root=Path("/"): MACHINE if root == Path("/") else own(root)
    )
    monkeypatch.setattr(lock, "NAME", str(tmp_path / "rigproof.lock"))


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four nights; gpu1 is slower on the last."""
    out = tmp_path / "reports"
    for number in range(4):
        with monkeypatch.context() as patched:
            patched.setattr(
                clock, "utc", lambda number=number: f"2026-01-0{number + 1}T02:00:00.000Z"
            )
            values = {
                ("copy_h2d", Gpu(0)): 150.0 + number,
                ("copy_h2d", Gpu(1)): 120.0 if number == 3 else 150.0,
            }
            write_run(out, f"run-{number}", values, plan=PLAN)
    return out


def test_it_is_up_to_date_with_the_runs_that_are_there(call: Call, out: Path) -> None:
    text = printed(call("history"))
    assert text.splitlines()[:4] == [
        "machine machine-1: 4 nights recorded",
        "from 2026-01-01 to 2026-01-04",
        "4 PASS",
        "the last run: run-3: PASS",
    ]
    told = [" ".join(line.split()) for line in text.splitlines()]
    assert any(line.startswith("copy_h2d gpu1 GB/s 4 150 0 120 - ") for line in told)
    write_run(out, "run-4", plan=PLAN)
    assert "5 nights recorded" in call("history")[1]


def test_why_the_last_run_did_not_pass_as_long_as_it_is_there(call: Call, out: Path) -> None:
    values = {("copy_h2d", Gpu(0)): 150.0, ("copy_h2d", Gpu(1)): 1.0}
    run = write_run(out, "run-4", values, plan=PLAN)
    first = known(explanation.of_run(journal_run.read(run)))
    assert first.part == "gpu1"
    assert call("history")[1].splitlines()[3] == f"the last run: run-4: FAIL: {first.text}"
    shutil.rmtree(run)
    assert call("history")[1].splitlines()[3] == "the last run: run-4: FAIL"


def test_one_measurement_and_component_by_pattern(call: Call, out: Path) -> None:
    text = printed(call("history", "copy_*", "--component", "gpu1", "--nights", "2"))
    assert "gpu0" not in text
    assert "showing the last 2 nights" in text
    assert_refused(
        call("history", "copy_h2"),
        2,
        "no night has a value of copy_h2 (there is copy_h2d)",
        "'rigproof history' lists all",
    )
    assert_refused(
        call("history", "copy_h2d", "--component", "zzz"),
        2,
        "no night has a value of copy_h2d on zzz:",
    )


def test_a_page_with_plots(call: Call, out: Path, tmp_path: Path) -> None:
    code, text, _ = call("history", "--page", "nights.html")
    assert (code, text.splitlines()[-1]) == (0, "nights.html")
    shown = (tmp_path / "nights.html").read_text(encoding="utf-8")
    assert shown.startswith("<!doctype html>")
    assert shown.count("<figure>") == 2
    code, _, err = call("history", "--page", "nowhere/nights.html")
    assert code == 3
    assert_one_sentence(err, "nowhere/nights.html: cannot be written")


def test_every_value_for_other_programs(call: Call, out: Path) -> None:
    text = printed(call("history", "--export", "csv"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 8
    assert rows[-1] | {"era": ""} == {
        "run_id": "run-3",
        "utc": "2026-01-04T02:00:00.000Z",
        "verdict": "PASS",
        "profile": "nightly",
        "apart": "",
        "era": "",
        "check": "link.copy",
        "measurement": "copy_h2d",
        "component": "gpu1",
        "serial": "",
        "unit": "GB/s",
        "value": "120.0",
        "again": "",
        "outside": "0",
        "unsteady": "0",
        "failed": "0",
    }
    text = printed(
        call("history", "copy_h2d", "--component", "gpu0", "--nights", "2", "--export", "jsonl")
    )
    told = [json.loads(line) for line in text.splitlines()]
    assert [(one["run_id"], one["value"], one["again"], one["outside"]) for one in told] == [
        ("run-2", 152.0, None, False),
        ("run-3", 153.0, None, False),
    ]


def test_no_text_becomes_a_formula(call: Call, out: Path) -> None:
    series = COPY._replace(component=Named("=cmd()"), serial="@x")
    record(out, night(9, measured={series: NightMeasurement(1.0)}))
    text = call("history", "--export", "csv")[1]
    (row,) = [row for row in csv.DictReader(io.StringIO(text)) if row["run_id"] == "run-00009"]
    assert (row["component"], row["serial"], row["value"]) == ("'=cmd()", "'@x", "1.0")


def test_what_is_pruned_is_said(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(call("history", "--prune", "--keep-days", "0.5"))
    first, second, *rest = text.splitlines()
    assert first.startswith("removed run-0 (")
    assert second.startswith("removed run-1 (")
    assert rest[0] == "the values of 2 nights were removed from the history"
    assert rest[1].startswith("the runs that stay hold ")
    assert sorted(path.name for path in out.glob("run-*")) == ["run-2", "run-3"]
    assert "nothing to remove" in call("history", "--prune", "--keep-gib", "1")[1]
    call("history", "--prune", "--keep-gib", "0")
    assert [path.name for path in out.glob("run-*")] == ["run-3"]
    assert "4 nights recorded" in call("history")[1]


def test_the_baseline_is_never_pruned(call: Call, out: Path) -> None:
    assert call("baseline", "accept", "reports/run-0")[0] == 0
    assert "accepted as the baseline: run-0" in call("history", "--page", "nights.html")[1]
    assert 'class="born"' in Path("nights.html").read_text(encoding="utf-8")
    call("history", "--prune", "--keep-gib", "0")
    assert sorted(path.name for path in out.glob("run-*")) == ["run-0", "run-3"]


def test_a_baseline_that_cannot_be_read_stops_pruning_and_not_looking(
    call: Call, out: Path
) -> None:
    folder.folder(out, MACHINE).mkdir(parents=True)
    (folder.folder(out, MACHINE) / "baseline.json").write_text("{}")
    assert_refused(call("history", "--prune", "--keep-gib", "0"), 3, "baseline.json")
    assert len(list(out.glob("run-*"))) == 4
    text = printed(call("history"))
    assert "baseline.json" in text.splitlines()[0]


def test_nothing_is_pruned_while_a_run_goes(
    call: Call, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_SETTLED_S", 0.0)
    with lock.MachineLock():
        refused = call("history", "--prune", "--keep-gib", "0")
        assert_refused(refused, 2, "another rigproof run has this machine")
    assert len(list(out.glob("run-*"))) == 4


def night_path(out: Path, run_id: str) -> Path:
    return night_file.folder(out, MACHINE) / night_file.name(run_id)


def test_a_damaged_night_is_named_with_its_path_and_hides_no_other(call: Call, out: Path) -> None:
    call("history")
    shutil.rmtree(out / "run-1")
    path = night_path(out, "run-1")
    path.write_bytes(path.read_bytes()[:-40])
    first, *rest = printed(call("history")).splitlines()
    assert f"reports/{path.relative_to(out)}" in first
    assert "put a copy of it back, or move it away" in first
    assert "3 nights recorded" in "\n".join(rest)
    code, text, err = call("history", "--export", "jsonl")
    assert (code, len(text.splitlines())) == (0, 6)
    assert_one_sentence(err, f"reports/{path.relative_to(out)}")
    assert "请放回它的副本" in call("history", "--lang", "zh-CN")[1]


@each(
    "verb, code",
    [
        (("history",), 3),
        (("history", "--export", "csv"), 3),
        (("history", "--machine-id", MACHINE, "--prune", "--keep-gib", "1"), 3),
    ],
)
def test_an_older_history_is_to_be_converted_and_then_all_is_shown(
    call: Call, out: Path, verb: tuple[str, ...], code: int
) -> None:
    path = folder.database(out, MACHINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    sql = Path(__file__).parents[1] / "history/version-2.sql"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql.read_text())
    assert_refused(call(*verb), code, "'rigproof history convert'")
    assert "converted, with 5 nights" in printed(call("history", "convert"))
    assert "9 nights recorded" in printed(call("history"))
    shutil.rmtree(path.parent)


def test_there_is_nothing_to_convert(call: Call, out: Path) -> None:
    before = printed(call("history"))
    assert "nothing to convert" in printed(call("history", "convert"))
    assert printed(call("history")) == before


def test_another_machine_in_the_same_folder(call: Call, out: Path) -> None:
    record(out, night(1, machine_id="machine-2"))
    assert (
        "other machines with a history here: machine-2 (--machine-id shows one)"
        in call("history")[1]
    )
    text = printed(call("history", "--machine-id", "machine-2"))
    assert text.splitlines()[0] == "machine machine-2: 1 night recorded"
    assert_refused(
        call("history", "--machine-id", "machine-2", "--prune", "--keep-gib", "0"),
        2,
        "the history of machine-2 is another machine's: start this on that machine",
    )
    assert_refused(
        call("history", "--machine-id", "machine-3"),
        2,
        "reports: holds no history of machine-3 (there is one of machine-1, machine-2: "
        "--machine-id shows it)",
    )


def test_where_there_is_no_run(call: Call, tmp_path: Path) -> None:
    assert_refused(
        call("history"),
        2,
        "reports: holds no history of machine-1: give the folder of its runs with --out",
    )
    assert not (tmp_path / "reports").exists()
    assert call("history", "convert")[0] == 2


@each(
    "given, told",
    [
        (("--prune",), "--prune needs --keep-days or --keep-gib"),
        (("--keep-days", "3"), "give --prune as well"),
        (("copy_*", "--prune", "--keep-days", "3"), "goes by whole runs: leave MEASUREMENT"),
        (("--nights", "9", "--prune", "--keep-gib", "0"), "goes by whole runs: leave MEASUREMENT"),
        (("convert", "--prune", "--keep-gib", "0"), "takes --out and --machine-id alone"),
        (("convert", "--export", "csv"), "takes --out and --machine-id alone"),
        (("--page", "x.html", "--export", "csv"), "--page goes with looking at the history"),
        (("--prune", "--export", "csv"), "not allowed with argument"),
        (("--export", "xml"), "invalid choice"),
        (("--nights", "0"), "is no whole number from 1"),
        (("--prune", "--keep-days", "-1"), "is no number from 0"),
        (("--prune", "--keep-gib", "nan"), "is no number from 0"),
    ],
)
def test_a_mistake_in_the_call(call: Call, out: Path, given: tuple[str, ...], told: str) -> None:
    assert_refused(call("history", *given), 2, told)
    assert len(list(out.glob("run-*"))) == 4
