"""The baseline's file: accepted once, replaced on request, kept for ever; never half written,
never lost, never believed when changed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import journals
import machine_facts
import pytest
from cases import each
from known import known
from raising import raising
from runs import machine_root, write_segment
from thoroughness import ALL

from acceptance.core.evidence import AnyBody, Observed
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import RunStarted
from acceptance.history import baseline_file, location, lock, noise
from acceptance.history.baseline_file import AcceptResult
from acceptance.history.errors import HistoryError
from acceptance.journal import reader
from acceptance.wording.errors import WordedUserError

NOISE = noise.read(Path(__file__).resolve().parents[2] / "fixtures" / "noise.toml")
MACHINE = "machine-1"
COPY = journals.plan(journals.check("link.copy", journals.due("copy_h2d", Gpu(0))))


def run(
    out: Path,
    name: str,
    value: float = 120.0,
    machine: str = MACHINE,
    *,
    run_id: str | None = None,
    plan: Plan = COPY,
    seen: Any = None,
) -> Path:
    """A whole run in a folder, which passes with this value; `seen` is the inventory."""
    bodies: list[AnyBody] = [*journals.bodies(plan, {("copy_h2d", Gpu(0)): value})]
    bodies[0] = RunStarted(run_id or name, plan, {"host": "box"}, machine)
    bodies.insert(1, Observed(seen or machine_facts.machine()))
    write_segment(out / name / reader.SUPERVISOR, bodies, machine_root(out / "root"), seals=True)
    return out / name


def assert_unsound(out: Path, said: str, machine: str = MACHINE) -> None:
    with pytest.raises(HistoryError, match=said):
        baseline_file.read(out, machine)


def accept(folder: Path, *, replace: bool = False) -> AcceptResult:
    out = folder.parent
    return baseline_file.accept(
        folder, out, NOISE, replace=replace, root=machine_root(out / "root")
    )


def test_a_run_is_made_the_baseline(tmp_path: Path) -> None:
    assert baseline_file.read(tmp_path, MACHINE) is None
    done = accept(run(tmp_path, "one"))
    assert (done.former, done.already) == (None, False)
    assert done.baseline.path == location.folder(tmp_path, MACHINE) / "baseline.json"
    found = baseline_file.require(tmp_path, MACHINE)
    assert found == done.baseline
    assert (found.certificate.machine.run_id, found.certificate.folder) == ("one", "one")
    assert found.certificate.replaces is None
    assert dict(found.certificate.era) == {"driver": "580.1", "profile": "smoke"}
    assert baseline_file.former_baselines(tmp_path, MACHINE) == ()


def test_the_folders_own_name_is_kept_not_that_of_a_link(tmp_path: Path) -> None:
    run(tmp_path, "one")
    (tmp_path / "latest").symlink_to("one")
    assert accept(tmp_path / "latest").baseline.certificate.folder == "one"


def test_the_same_run_again_changes_nothing(tmp_path: Path) -> None:
    first = accept(run(tmp_path, "one"))
    content = first.baseline.path.read_bytes()
    for replace in (False, True):
        again = accept(tmp_path / "one", replace=replace)
        assert (again.already, again.baseline) == (True, first.baseline)
    assert first.baseline.path.read_bytes() == content
    assert baseline_file.former_baselines(tmp_path, MACHINE) == ()


def test_another_run_takes_its_place_on_request_alone(tmp_path: Path) -> None:
    first = accept(run(tmp_path, "one"))
    content = first.baseline.path.read_bytes()
    with pytest.raises(
        WordedUserError,
        match=r"baseline.json: run one is the baseline since \d{4}-\d\d-\d\d: add --replace",
    ):
        accept(run(tmp_path, "two"))
    assert first.baseline.path.read_bytes() == content
    done = accept(tmp_path / "two", replace=True)
    assert done.former == first.baseline.path.parent / "baselines" / "one.json"
    assert done.former.read_bytes() == content
    found = baseline_file.require(tmp_path, MACHINE).certificate
    assert found.machine.run_id == "two"
    assert (known(found.replaces).run_id, known(found.replaces).sha256) == (
        "one",
        first.baseline.sha256,
    )
    assert known(found.replaces).accepted_utc == first.baseline.certificate.accepted_utc


def test_all_that_were_baselines_are_kept(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        accept(run(tmp_path, name), replace=True)
    accept(
        tmp_path / "one", replace=True
    )  # once more: its first certificate is kept as well as this one
    accept(tmp_path / "two", replace=True)
    kept = [
        one.certificate.machine.run_id for one in baseline_file.former_baselines(tmp_path, MACHINE)
    ]
    assert kept == ["one", "two", "three", "one"]
    assert len({one.sha256 for one in baseline_file.former_baselines(tmp_path, MACHINE)}) == 4


def test_a_run_with_a_strange_id_is_kept_under_another_name(tmp_path: Path) -> None:
    accept(run(tmp_path, "one", run_id="../../one"))
    former = known(accept(run(tmp_path, "two"), replace=True).former)
    assert former.parent == location.folder(tmp_path, MACHINE) / "baselines"
    assert "unsound-" in former.name


# --- runs that cannot be one ---


@each(
    "more, journal, said",
    [
        (
            {"value": 50.0},
            None,
            r"/one: is FAIL, and only a run that passed can be the baseline \(copy_h2d on gpu0",
        ),
        (
            {"machine": "machine-2"},
            None,
            r"/one: is a run of another machine \(machine-2\): accept it on that machine",
        ),
        ({}, '{"seq":', r"journal.jsonl ends in half a line.*: run `rigproof accept` again"),
        (
            {},
            "",
            r"/one: was ended before its plan was written, .*: run `rigproof accept` again",
        ),
    ],
    told=["failed", "of another machine", "torn", "ended before its plan"],
)
def test_a_run_that_is_refused(
    tmp_path: Path, more: dict[str, Any], journal: str | None, said: str
) -> None:
    folder = run(tmp_path, "one", **more)
    path = folder / reader.SUPERVISOR
    if journal:
        path.write_text(path.read_text() + journal)
    elif journal == "":
        path.unlink()
        write_segment(path, [], tmp_path / "root")
    with pytest.raises(WordedUserError, match=said):
        accept(folder)
    assert not baseline_file.path(tmp_path, MACHINE).exists()


def test_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(reader.NoRun):
        accept(tmp_path / "empty")


# --- what cannot be believed ---


def changed(tmp_path: Path) -> Path:
    """A baseline in which somebody has raised a figure."""
    file = accept(run(tmp_path, "one")).baseline.path
    plain = json.loads(file.read_bytes())
    plain["certificate"]["figures"][0]["value"] = 90.0
    file.write_text(json.dumps(plain))
    return file


def test_one_that_was_changed_is_refused_and_kept_when_it_is_replaced(tmp_path: Path) -> None:
    file = changed(tmp_path)
    content = file.read_bytes()
    for call in (
        lambda: baseline_file.read(tmp_path, MACHINE),
        lambda: baseline_file.require(tmp_path, MACHINE),
        lambda: accept(tmp_path / "one"),
        lambda: accept(run(tmp_path, "two")),
    ):
        with pytest.raises(
            HistoryError,
            match=r"is not what was sealed.*: put a copy of it back, or accept a run",
        ):
            call()
    assert file.read_bytes() == content
    former = known(accept(tmp_path / "two", replace=True).former)
    assert former.read_bytes() == content
    assert baseline_file.require(tmp_path, MACHINE).certificate.replaces is None
    assert (
        baseline_file.former_baselines(tmp_path, MACHINE) == ()
    )  # it is kept, and nobody believes it


def test_one_that_was_removed_is_missed(tmp_path: Path) -> None:
    accept(run(tmp_path, "one"))
    accept(run(tmp_path, "two"), replace=True).baseline.path.unlink()
    assert_unsound(
        tmp_path,
        r"baseline.json: is gone, and .*/one.json shows that there was one: put a copy of it back",
    )
    assert accept(tmp_path / "two", replace=True).former is None


def test_one_of_another_machine(tmp_path: Path) -> None:
    file = accept(run(tmp_path, "one")).baseline.path
    other = location.folder(tmp_path, "machine-2")
    other.mkdir()
    (other / file.name).write_bytes(file.read_bytes())
    assert_unsound(tmp_path, r"is the baseline of another machine \(machine-1\)", "machine-2")


def test_one_of_a_later_rigproof(tmp_path: Path) -> None:
    file = accept(run(tmp_path, "one")).baseline.path
    file.write_text(file.read_text().replace('"rigproof_baseline": 1', '"rigproof_baseline": 7'))
    assert_unsound(tmp_path, r"is written in format 7, .*: install a newer rigproof")


def test_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(
        WordedUserError, match=r"there is no baseline of this machine: accept a run that passed"
    ):
        baseline_file.require(tmp_path, MACHINE)


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    file = baseline_file.path(tmp_path, MACHINE)
    file.mkdir(parents=True)
    assert_unsound(
        tmp_path, r"json: cannot be read \(it is a folder, not a file\): put a copy of it back"
    )


# --- the disk, other processes, and the end of this one ---


def test_a_disk_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = accept(run(tmp_path, "one"))
    run(tmp_path, "two")

    monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.raises(
        HistoryError, match=r"cannot be written \(No space left on device\): make room there"
    ):
        accept(tmp_path / "two", replace=True)
    monkeypatch.undo()
    assert baseline_file.require(tmp_path, MACHINE) == first.baseline
    assert [path.name for path in first.baseline.path.parent.rglob(".baseline*")] == []


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("")
    with pytest.raises(HistoryError) as refused:
        accept(run(tmp_path, "one"))
    assert refused.value.message.code == "baseline_unwritten"


def test_another_process_that_stays_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = location.folder(tmp_path, MACHINE)
    folder.mkdir(parents=True)
    monkeypatch.setattr(baseline_file, "WAIT_S", 0.0)
    with lock.hold(folder / ".lock", 0.0), pytest.raises(HistoryError) as refused:
        accept(run(tmp_path, "one"))
    assert refused.value.message.code == "baseline_locked"


def loop(out: Path, turns: int) -> None:
    for _ in range(turns):
        for name in ("one", "two"):
            baseline_file.accept(out / name, out, NOISE, replace=True, root=out / "root")


def looping(out: Path, turns: int) -> BaseProcess:
    """A process of its own that replaces the baseline again and again."""
    # A daemon: a test that fails leaves none behind.
    context = multiprocessing.get_context("fork")
    process = context.Process(target=loop, args=(out, turns), daemon=True)
    process.start()
    return process


def test_two_at_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(tmp_path, name)
    accept(tmp_path / "one")
    both = [looping(tmp_path, 5) for _ in range(2)]
    while any(process.exitcode is None for process in both):
        assert baseline_file.require(tmp_path, MACHINE).certificate.machine.run_id in ("one", "two")
    assert [process.exitcode for process in both] == [0, 0]
    kept = baseline_file.former_baselines(tmp_path, MACHINE)
    assert len(kept) == len(
        list(baseline_file.path(tmp_path, MACHINE).parent.glob("baselines/*.json"))
    )


@each("seed", range(6 if ALL else 2))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    for name in ("one", "two"):
        run(tmp_path, name)
    accept(tmp_path / "one")
    process = looping(tmp_path, 10_000)
    kept = baseline_file.path(tmp_path, MACHINE).parent / "baselines"
    while not (kept.is_dir() and len(list(kept.iterdir())) > 2):
        assert process.exitcode is None
    time.sleep(0.003 * seed)
    process.kill()
    process.join()
    assert baseline_file.require(tmp_path, MACHINE).certificate.machine.run_id in ("one", "two")
    assert accept(tmp_path / "two", replace=True).baseline.certificate.machine.run_id == "two"
    assert accept(tmp_path / "one", replace=True).baseline.certificate.machine.run_id == "one"
    strays = [path.name for path in baseline_file.path(tmp_path, MACHINE).parent.rglob(".*.json.*")]
    assert strays == []
