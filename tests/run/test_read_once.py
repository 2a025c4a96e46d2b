"""A journal is read once and folded once, whatever is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import journals
import nights
import pytest
from runs import RECORDED, machine_root, unpacked
from test_supervisor import PAST, Fake, strayed

from acceptance import resources
from acceptance.__main__ import main
from acceptance.cli import machine_test
from acceptance.core.plan import Plan
from acceptance.core.verdict import Verdict
from acceptance.history import baseline_file, noise
from acceptance.history import nights as history_nights
from acceptance.journal import clock, reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.machine.inventory import Inventory
from acceptance.notify.textfile import run_metrics
from acceptance.observe.inventory import observe
from acceptance.run import planning, recall
from acceptance.run.planning import PreparedRun
from acceptance.station.options import Options

PROGRAM = strayed()


@dataclass
class Counts:
    """The run folders whose journal was read whole, in order, and how many folds there were."""

    read: list[str] = field(default_factory=list)
    folds: int = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    found = Counts()
    read_segment, judge = segment.read_segment, journal_run.judge

    def read(path: Path) -> segment.Segment:
        if path.name == reader.SUPERVISOR:
            found.read.append(path.parent.name)
        return read_segment(path)

    def judged(*about: Any) -> Verdict:
        found.folds += 1
        return judge(*about)

    monkeypatch.setattr(reader, "read_segment", read)
    monkeypatch.setattr(segment, "read_segment", read)
    monkeypatch.setattr(journal_run, "judge", judged)
    return found


class Free:
    """The lock of a machine that nobody else uses."""

    def __init__(self, _root: Path) -> None:
        pass

    def __enter__(self) -> Free:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def last_run(self) -> None:
        pass

    def claim(self, _run_dir: Path) -> None:
        pass


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return observe()


@pytest.fixture
def nightly(
    tmp_path: Path, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Plan], int]:
    """A night of this plan through the real command, with a session that is no pytest."""

    def prepare(options: Options) -> PreparedRun:
        return PreparedRun(options, None, inventory, plan, "a summary")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine_test.lock, "MachineLock", Free)
    monkeypatch.setattr(planning, "prepare", prepare)
    monkeypatch.setattr(machine_test.preflight, "choose", lambda *_: (Fake(PROGRAM), None))
    monkeypatch.setattr(recall, "_with_past", lambda made, *_: made)
    plan = journals.plan()

    def night(made: Plan) -> int:
        nonlocal plan
        plan = made
        return main(["nightly", "--out", "out", "--textfile", "run.prom", "--on-fail", "false"])

    return night


@pytest.mark.parametrize("again", [False, True], ids=["sound", "repeated"])
def test_a_night(
    again: bool,
    nightly: Callable[[Plan], int],
    tmp_path: Path,
    counts: Counts,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A repeat needs to know what the first try gave, and reads and folds what there is by then."""
    due = journals.due(limit=None)
    due = due.against(PAST) if again else due
    assert nightly(journals.plan(journals.check("a.one", due))) == 0, capfd.readouterr()
    folder = (tmp_path / "out/latest").resolve()
    assert (counts.read, counts.folds) == ([folder.name] * (1 + again), 1 + again)
    assert (folder / "journal-load-again.jsonl").exists() == again
    # Everything was written all the same, the history included.
    assert json.loads((folder / "verdict.json").read_bytes())["verdict"] == "PASS"
    assert (tmp_path / "run.prom").read_bytes() == run_metrics(journal_run.read(folder))
    nights, _ = history_nights.read(tmp_path / "out", clock.machine_id(Path("/")))
    assert [one.folder for one in nights] == [folder.name]


def test_a_recorded_run(tmp_path: Path, counts: Counts) -> None:
    names = ["1xh200-nightly-accepted", "1xh200-nightly-after", "1xh200-host-smoke"]
    for name in names:
        unpacked(RECORDED[name], tmp_path / name)
    first, *_ = folders = [str(tmp_path / name) for name in names]
    for argv, read in (
        (["judge", first], names[:1]),
        (["report", first], names[:1]),
        (["report", first, "--textfile", str(tmp_path / "run.prom")], names[:1]),
        (["compare", *folders], names),
    ):
        counts.read.clear()
        counts.folds = 0
        assert main(argv) in (0, 1)
        assert (argv[0], counts.read, counts.folds) == (argv[0], read, len(read))


def test_a_history_of_many_runs(tmp_path: Path, counts: Counts) -> None:
    names = [name for name in RECORDED if "h200" in name]
    for name in names:
        unpacked(RECORDED[name], tmp_path / name)
        (tmp_path / name / run_folder.VERDICT).write_text("{}")  # it is closed
    _, start = reader.read_first_record(tmp_path / names[0])
    nights, *_ = history_nights.open_history(tmp_path, start.body.machine_id)  # type: ignore[union-attr]
    assert len(nights) == len(names)
    assert (sorted(counts.read), counts.folds) == (names, len(names))


def test_a_baseline(tmp_path: Path, counts: Counts) -> None:
    """In place of another one a run is judged without its past too."""
    book = noise.read(resources.locate("noise.toml"))
    root = machine_root(tmp_path / "root", machine="vm")
    made = tmp_path / "made"
    run = nights.write_run(made, "run-1", plan=journals.plan(), machine="vm")
    for replaced in (False, True):
        baseline_file.accept(run, tmp_path, book, replace=replaced, root=root)
        assert (counts.read, counts.folds) == ([run.name], 1 + replaced)
        counts.read.clear()
        counts.folds = 0
