from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import journals
import pytest
import samples
from junitparser import JUnitXml
from product_session import observed
from refusal import assert_raises, raised
from runs import known_provenance, machine_root, write_segment, write_views

from acceptance.core.evidence import Scratch
from acceptance.core.language import ENGLISH
from acceptance.core.parts import Part
from acceptance.core.record import RunStarted
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder
from acceptance.journal.segment import JournalError
from acceptance.machine import machine_file
from acceptance.reports import junit, verdict_json
from acceptance.reports.page import render
from acceptance.run import outputs
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.station.base import HostStation
from acceptance.station.options import Options

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs/1xh200-host-accept"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run that passed."""
    write_segment(
        tmp_path / "run/journal.jsonl",
        journals.bodies(journals.plan()),
        machine_root(tmp_path / "root"),
        seals=True,
    )
    return tmp_path / "run"


def test_every_view_is_written_and_can_be_written_again(run_dir: Path) -> None:
    assert journal_run.read(run_dir).verdict.verdict == "PASS"
    assert {path.name for path in run_dir.iterdir()} == {"journal.jsonl"}
    write_views(run_dir)
    views = {
        name: (run_dir / name).read_bytes() for name in ("verdict.json", "junit.xml", "report.html")
    }
    assert json.loads(views["verdict.json"])["verdict"] == "PASS"
    write_views(run_dir)
    assert {name: (run_dir / name).read_bytes() for name in views} == views
    assert {path.name for path in run_dir.iterdir()} == {"journal.jsonl", *views}


def test_every_view_of_a_run_of_a_version_without_seals_says_that_it_is_not_sealed(
    tmp_path: Path,
) -> None:
    run_dir = shutil.copytree(RECORDED, tmp_path / "run")
    outputs.write(journal_run.read(run_dir))
    content = json.loads((run_dir / "verdict.json").read_bytes())
    assert (content["verdict"], content["provenance"]["evidence"]) == ("PASS", "not sealed")
    assert 'name="evidence" value="not sealed"' in (run_dir / "junit.xml").read_text()
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert '<p class="closing">not sealed</p>' in page
    assert "<dt>evidence</dt><dd>not sealed</dd>" in page


def test_the_verdict_goes_last(run_dir: Path) -> None:
    (run_dir / "report.html").mkdir()
    assert "report.html: cannot be written (Is a directory): make room" in raised(
        JournalError, write_views, run_dir
    )
    assert not (run_dir / "verdict.json").exists()
    assert sorted(path.name for path in run_dir.iterdir()) == [
        "journal.jsonl",
        "junit.xml",
        "report.html",
    ]


UPDATED = """
import importlib.machinery, sys
from pathlib import Path
from acceptance.journal import run
from acceptance.run import outputs

outputs.load()
import jinja2

def gone(*_):
    raise RuntimeError("this is of another version now")

jinja2.PackageLoader.get_source = importlib.machinery.SourceFileLoader.get_data = gone
found = run.read(Path(sys.argv[1]))
outputs.write(found)
print(found.verdict.verdict)
"""


def test_what_is_loaded_at_the_beginning_ends_the_run(run_dir: Path) -> None:
    """An update in the middle of a run must not mix two versions of what writes its files."""
    argv = [sys.executable, "-c", UPDATED, str(run_dir)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("PASS\n", "")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("before")
    assert_raises(
        JournalError,
        run_folder.write_whole,
        tmp_path / "n/x",
        b"after",
        match=rf"written \(No such file or directory\): .* `rigproof report {tmp_path}/n`",
    )
    assert_raises(
        JournalError,
        run_folder.write_whole,
        tmp_path / "n/x",
        b"after",
        then=run_folder.START_AGAIN,
        match=r"No such file or directory\): make sure .*, then start again$",
    )
    run_folder.write_whole(tmp_path / "x", b"after")
    assert (tmp_path / "x").read_bytes() == b"after"


def test_a_link_that_somebody_laid_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("text")
    (tmp_path / f".x.{os.getpid()}").symlink_to(precious)
    (tmp_path / "x").symlink_to(precious)
    run_folder.write_whole(tmp_path / "x", b"ours")
    assert (precious.read_text(), (tmp_path / "x").read_bytes()) == ("text", b"ours")
    assert not (tmp_path / "x").is_symlink()


def test_a_run_without_a_plan_has_a_verdict(tmp_path: Path) -> None:
    outputs.write_unreadable(tmp_path, "why")
    found = json.loads((tmp_path / "verdict.json").read_text())
    assert (found["verdict"], found["unjudged"][0]["text"]) == ("UNJUDGED", "why")


def test_latest_points_to_the_newest(tmp_path: Path) -> None:
    for name in ("first", "second"):
        outputs.link_latest(tmp_path / name)
    assert (tmp_path / "latest").readlink() == Path("second")
    (tmp_path / "latest").unlink()
    (tmp_path / "latest/mine").mkdir(parents=True)
    outputs.link_latest(tmp_path / "third")  # a folder of that name is somebody's work
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


DECLARED = """
schema = 1
name = "tower"
[order]
number = "PO <4711>"
asset_tag = "AT-9"
[psu]
watts = 1600
"""
TOLD = {"order_number": "PO <4711>", "asset_tag": "AT-9", "psu_watts": "1600"}


def test_order_and_supply_are_in_every_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_provenance(monkeypatch)
    (tmp_path / "box.toml").write_text(DECLARED, encoding="utf-8")
    made = journals.plan(journals.check("cpu.burn"))
    options = Options(machine_file=tmp_path / "box.toml")
    declared = machine_file.read(tmp_path / "box.toml")
    prepared = PreparedRun(options, declared, observed(), made, "a summary")
    records = list(header_records(prepared, HostStation(), tmp_path / "run-1"))
    (start,) = [one for one in records if isinstance(one, RunStarted)]
    assert TOLD.items() <= start.provenance.items()
    run = samples.run(records)
    (suite,) = JUnitXml.fromstring(junit.render(run))
    assert TOLD.items() <= {one.name: one.value for one in suite.properties()}.items()
    assert TOLD.items() <= json.loads(verdict_json.render(run))["provenance"].items()
    head = render.render(run, (), ENGLISH).partition("</header>")[0]
    assert all(text in head for text in ("PO &lt;4711&gt;", "AT-9", "1600 W"))


def test_the_folders_that_are_written_in_are_recorded(tmp_path: Path) -> None:
    place = Scratch(
        "/data",
        Part("disk", "sda"),
        "/",
        "ext4",
        "/dev/sda1",
        ("sda",),
        (),
        9,
        8,
        1,
        keep=True,
        sealed_bytes=0,
    )
    made = journals.plan()
    prepared = PreparedRun(Options(), None, observed(), made, "a summary", scratches=(place,))
    assert list(header_records(prepared, HostStation(), tmp_path / "run-1"))[-1] == place


def test_what_the_file_does_not_name_is_nowhere(tmp_path: Path) -> None:
    prepared = PreparedRun(Options(), None, observed(), journals.plan(), "a summary")
    (start,) = [
        one
        for one in header_records(prepared, HostStation(), tmp_path / "run-1")
        if isinstance(one, RunStarted)
    ]
    assert not TOLD.keys() & start.provenance.keys()
