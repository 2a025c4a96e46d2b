"""Points, power cuts and what is asked of a run that was cut off. Kills and full disks themselves
are played by the self-test.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import fake_driver
import journals
import pytest
from cases import each
from rig import Rig
from run_left import Run
from runs import machine_root, write_segment

from acceptance.core.evidence import Sample
from acceptance.core.record import Body, CheckEnded, CheckStarted, Measured
from acceptance.journal import reader
from acceptance.run import unfinished
from acceptance.wording import words
from selftest import power
from selftest.aftermath import Cut, segments
from selftest.disk import Disk, refused
from selftest.points import moment, spread
from selftest.scene import Scene

WHOLE = journals.bodies(journals.plan())
MEASURED = next(number for number, body in enumerate(WHOLE) if isinstance(body, CheckEnded))


# --- points ---


def test_of_n_points_of_a_kind_there_is_one_in_each_nth() -> None:
    found = spread(("harness", "load", "reboot"), 20, seed=7)
    assert [point.number for point in found] == list(range(1, 21))
    assert [point.kind for point in found[:4]] == ["harness", "load", "reboot", "harness"]
    for kind, count in (("harness", 7), ("load", 7), ("reboot", 6)):
        parts = [point.part for point in found if point.kind == kind]
        assert sorted(int(part * count) for part in parts) == list(range(count))
        assert parts != sorted(parts)


def test_the_same_seed_gives_the_same_points() -> None:
    kinds = ("space", "reports", "space", "inodes")
    assert spread(kinds, 50, seed=1) == spread(kinds, 50, seed=1) != spread(kinds, 50, seed=2)
    assert sum(point.kind == "space" for point in spread(kinds, 8, seed=1)) == 4
    one, other = spread(kinds, 2, seed=1)
    assert one.choice(1).random() == one.choice(1).random() != other.choice(1).random()


@each(
    "part, found",
    [(0.0, (0, 0.0)), (0.24, (0, 2.4)), (0.25, (1, 0.0)), (0.5, (2, 0.0)), (0.99, (2, 4.9))],
)
def test_a_moment_is_counted_from_the_mark_before_it(part: float, found: tuple[int, float]) -> None:
    number, seconds = moment(part, [0.0, 2.5, 5.0, 10.0])
    assert (number, round(seconds, 6)) == found


def test_no_moment_is_after_the_end() -> None:
    with pytest.raises(ValueError, match=r"1\.0 is no part"):
        moment(1.0, [0.0, 2.0])


# --- power cuts ---


def test_what_reached_the_disk_is_not_lost(tmp_path: Path) -> None:
    root = machine_root(tmp_path / "root")
    measured = Measured("a.b", "x", "c", "s", 1.0)
    ended: list[Body] = [CheckStarted("a.b"), measured, CheckEnded("a.b", "pass", "", 1.0)]
    whole = write_segment(tmp_path / "run/journal.jsonl", ended, root).read_bytes()
    open_ = write_segment(
        tmp_path / "run/journal-load.jsonl", [*ended, measured, measured], root
    ).read_bytes()
    assert power.on_disk(whole, telemetry=False) == len(whole)
    assert open_[: power.on_disk(open_, telemetry=False)].count(b"\n") == 1 + len(ended)
    assert power.on_disk(b'{"half', telemetry=False) == 0
    samples = write_segment(
        tmp_path / "run/telemetry.jsonl", [Sample({"a": 1.0})] * 3, root
    ).read_bytes()
    assert samples[: power.on_disk(samples, telemetry=True)].count(b"\n") == 1, (
        "all of them are of the last second"
    )
    power.lose(tmp_path / "run", random.Random(1))
    assert (tmp_path / "run/journal.jsonl").read_bytes() == whole
    assert (tmp_path / "run/journal-load.jsonl").stat().st_size < len(open_)


# --- what is asked of a run that was cut off ---


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    """A run that was cut off in the middle of a check, with half a line at its end."""
    root = machine_root(tmp_path / "root")
    folder = write_segment(tmp_path / "out/run-1/journal.jsonl", WHOLE[:MEASURED], root).parent
    write_segment(
        folder / "telemetry-gpu.jsonl", [Sample({"power_w": 450.0}, component="gpu0")], root
    )
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"seq":')
    return Cut(folder, segments(folder))


def close(cut: Cut, tmp_path: Path, boot: str = "boot-1") -> str:
    (sentence,) = unfinished.close_all(
        cut.folder.parent, None, machine_root(tmp_path / "root", boot=boot)
    )
    return f"{words.message(sentence)}\n"


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_one_that_is_as_it_must_be(cut: Cut, tmp_path: Path, boot: str) -> None:
    assert list(cut.before_the_next_start()) == []
    told = close(cut, tmp_path, boot)
    assert list(cut.after_the_next_start(told)) == []
    assert "gpu0 was last seen at 450 W" in cut.sentence(told)
    assert list(cut.judged_again(3, "UNJUDGED")) == []


def test_each_thing_that_is_not_as_it_must_be(cut: Cut, tmp_path: Path) -> None:
    assert list(cut.after_the_next_start("")) == ["no later start has closed it"]
    told = close(cut, tmp_path)

    def wrong(told: str = told, *, rebooted: bool | None = None) -> str:
        return "; ".join(cut.after_the_next_start(told, rebooted=rebooted))

    assert "no later start names it" in wrong("nothing")
    assert "rebooted=False" in wrong(rebooted=True)
    assert "was running, and it is told as" in wrong(told.replace("link.copy", "link.other"))
    assert "whether the machine was restarted" in wrong(
        told.replace("the harness was killed", "the machine was restarted")
    )
    assert "how gpu0 was last seen is not told" in wrong(told.replace("gpu0", "gpu1"))
    assert list(cut.judged_again(0, "Traceback")) == [
        "it said: 'Traceback'",
        "`rigproof judge` ends with exit code 0, and verdict.json says UNJUDGED",
    ]
    verdict = json.loads((cut.folder / "verdict.json").read_bytes())
    (cut.folder / "verdict.json").write_text(json.dumps(verdict | {"verdict": "PASS"}))
    assert "verdict.json says PASS, and UNJUDGED is due" in wrong()
    assert "verdict.json says PASS, and its journal UNJUDGED" in "; ".join(
        cut.before_the_next_start()
    )
    (cut.folder / "verdict.json").write_text(json.dumps(verdict | {"notes": []}))
    assert "does not say what was torn" in wrong()
    (cut.folder / "report.html").unlink()
    assert "report.html or junit.xml is missing" in wrong()
    changed = replace(cut, kept={**cut.kept, reader.SUPERVISOR: b"other"})
    assert "journal.jsonl was changed" in "; ".join(changed.after_the_next_start(told))
    (cut.folder / "journal.jsonl").write_bytes(b"no journal\n")
    assert "the journal does not read back" in "; ".join(cut.before_the_next_start())


def test_what_is_asked_of_a_run_without_room() -> None:
    good = Run(
        3,
        "",
        "rigproof: x: cannot be written (No space left on device): make room, then start again\n",
        1.0,
        None,
    )
    assert list(refused(good)) == []
    for bad, word in (
        (replace(good, code=0), "the exit code is 0"),
        (replace(good, err=""), "it does not say in one line"),
        (replace(good, err=good.err * 2), "it does not say in one line"),
        (replace(good, err=good.err.replace("make room", "pray")), "it does not say in one line"),
        (replace(good, out="PASS: 5 passed\n"), "it says PASS"),
        (replace(good, out="Traceback"), "it said: 'Traceback"),
    ):
        assert any(word in line for line in refused(bad)), word


# --- the real thing ---


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver library."""
    return fake_driver.shared(tmp_path_factory)


@pytest.mark.e2e
def test_a_drafted_machine_file_without_room(tmp_path: Path, library: Path) -> None:
    """There is no journal yet that a report could be made from."""
    rig = Rig(tmp_path)
    scene = Scene(rig, "host", library=library)
    with Disk(rig.out) as disk:
        disk.leave(pages=0)
        run = scene.run(scene.argv("gpu.present"))
        assert (run.code, list(refused(run))) == (3, [])
        assert run.err.endswith(
            "/machine.toml: cannot be written (No space left on device): make room, then "
            "start again\n"
        )
