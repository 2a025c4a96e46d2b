"""The baseline's file: accepted once, replaced on request, kept for ever; never half written,
never lost, never believed when changed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import journals
import machine_facts
import pytest
from cases import each
from known import known
from raising import raising
from refusal import refused
from runs import machine_root, write_segment
from thoroughness import ALL

from acceptance.core.evidence import AnyBody, Observed
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import RunStarted
from acceptance.history import baseline_file, noise
from acceptance.history import folder as history_folder
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


def accept(folder: Path, *, replace: bool = False) -> AcceptResult:
    out = folder.parent
    return baseline_file.accept(
        folder, out, NOISE, replace=replace, root=machine_root(out / "root")
    )


def test_a_run_is_made_the_baseline_once(tmp_path: Path) -> None:
    """By its folder's own name, not that of a link."""
    assert baseline_file.read(tmp_path, MACHINE) is None
    message = refused(WordedUserError, baseline_file.require, tmp_path, MACHINE)
    assert message.code == "no_baseline"
    run(tmp_path, "one")
    (tmp_path / "latest").symlink_to("one")
    done = accept(tmp_path / "latest")
    assert (done.former, done.already) == (None, False)
    file = done.baseline.path
    assert file == history_folder.folder(tmp_path, MACHINE) / "baseline.json"
    found = baseline_file.require(tmp_path, MACHINE)
    assert found == done.baseline
    assert (found.certificate.machine.run_id, found.certificate.folder) == ("one", "one")
    assert found.certificate.replaces is None
    assert dict(found.certificate.era) == {"driver": "580.1", "profile": "smoke"}
    content = file.read_bytes()
    for replace in (False, True):
        again = accept(tmp_path / "one", replace=replace)
        assert (again.already, again.baseline) == (True, done.baseline)
    assert file.read_bytes() == content
    assert baseline_file.former_baselines(tmp_path, MACHINE) == ()


def test_another_run_takes_its_place_on_request_alone(tmp_path: Path) -> None:
    first = accept(run(tmp_path, "one", run_id="../../one"))
    content = first.baseline.path.read_bytes()
    message = refused(WordedUserError, accept, run(tmp_path, "two"))
    assert (message.code, message.values["run"]) == ("baseline_there", "../../one")
    assert first.baseline.path.read_bytes() == content
    former = known(accept(tmp_path / "two", replace=True).former)
    assert former.parent == first.baseline.path.parent / "baselines"
    assert "unsound-" in former.name, "a strange id names no file"
    assert former.read_bytes() == content
    replaces = known(baseline_file.require(tmp_path, MACHINE).certificate.replaces)
    assert (replaces.run_id, replaces.sha256, replaces.accepted_utc) == (
        "../../one",
        first.baseline.sha256,
        first.baseline.certificate.accepted_utc,
    )


def test_all_that_were_baselines_are_kept(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        run(tmp_path, name)
    for name in ("one", "two", "three", "one", "two"):
        accept(tmp_path / name, replace=True)
    kept = baseline_file.former_baselines(tmp_path, MACHINE)
    names = ["one", "two", "three", "one"]
    assert [one.certificate.machine.run_id for one in kept] == names
    assert [one.path.name for one in kept][:1] == ["one.json"]
    assert len({one.sha256 for one in kept}) == 4


# --- runs that cannot be one ---


@each(
    "more, journal, code",
    [
        ({"value": 50.0}, None, "run_rejected"),
        ({"machine": "machine-2"}, None, "run_of_other_machine"),
        ({}, '{"seq":', "torn_run"),
        ({}, "", "run_without_plan"),
    ],
    told=["failed", "of another machine", "torn", "ended before its plan"],
)
def test_a_run_that_is_refused(
    tmp_path: Path, more: dict[str, Any], journal: str | None, code: str
) -> None:
    folder = run(tmp_path, "one", **more)
    path = folder / reader.SUPERVISOR
    if journal:
        path.write_text(path.read_text() + journal)
    elif journal == "":
        path.unlink()
        write_segment(path, [], tmp_path / "root")
    message = refused(WordedUserError, accept, folder)
    assert (message.code, message.values["run"]) == (code, str(folder))
    assert not baseline_file.path(tmp_path, MACHINE).exists()
    folder.rename(tmp_path / "other")
    folder.mkdir()
    with pytest.raises(reader.NoRun):
        accept(folder)


# --- what cannot be believed ---


def gone(file: Path) -> None:
    """Another has replaced it, and is gone."""
    accept(run(file.parents[2], "two"), replace=True).baseline.path.unlink()


def raised(file: Path) -> None:
    """Somebody has raised a figure."""
    plain = json.loads(file.read_bytes())
    plain["certificate"]["figures"][0]["value"] = 90.0
    file.write_text(json.dumps(plain))


def newer(file: Path) -> None:
    file.write_text(file.read_text().replace('"rigproof_baseline": 1', '"rigproof_baseline": 7'))


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@each(
    "harm, codes",
    [
        (raised, ("baseline_unsound", "seal_broken")),
        (gone, ("baseline_unsound", "baseline_gone")),
        (newer, ("baseline_newer", "certificate_newer")),
        (folder, ("baseline_unsound", "cannot_be_read")),
    ],
)
def test_what_cannot_be_believed(
    tmp_path: Path, harm: Callable[[Path], None], codes: tuple[str, str]
) -> None:
    harm(accept(run(tmp_path, "one")).baseline.path)
    message = refused(HistoryError, baseline_file.read, tmp_path, MACHINE)
    why = message.values["why"]
    assert isinstance(why, Message)
    assert (message.code, why.code) == codes


def test_one_of_another_machine(tmp_path: Path) -> None:
    file = accept(run(tmp_path, "one")).baseline.path
    other = history_folder.folder(tmp_path, "machine-2")
    other.mkdir()
    (other / file.name).write_bytes(file.read_bytes())
    message = refused(HistoryError, baseline_file.read, tmp_path, "machine-2")
    assert message.values["why"] == Message("baseline_of_other_machine", {"machine": "machine-1"})


def test_one_that_was_changed_is_refused_and_kept_when_it_is_replaced(tmp_path: Path) -> None:
    file = accept(run(tmp_path, "one")).baseline.path
    raised(file)
    content = file.read_bytes()
    run(tmp_path, "two")
    for call in (
        lambda: baseline_file.require(tmp_path, MACHINE),
        lambda: accept(tmp_path / "one"),
        lambda: accept(tmp_path / "two"),
    ):
        assert refused(HistoryError, call).code == "baseline_unsound"
    assert file.read_bytes() == content
    assert known(accept(tmp_path / "two", replace=True).former).read_bytes() == content
    assert baseline_file.require(tmp_path, MACHINE).certificate.replaces is None
    # it is kept, and nobody believes it
    assert baseline_file.former_baselines(tmp_path, MACHINE) == ()
    baseline_file.path(tmp_path, MACHINE).unlink()
    assert accept(tmp_path / "two", replace=True).former is None


# --- the disk, other processes, and the end of this one ---


def test_a_file_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "one")
    (tmp_path / "history").write_text("")
    assert refused(HistoryError, accept, tmp_path / "one").code == "baseline_unwritten"
    (tmp_path / "history").unlink()
    first = accept(tmp_path / "one").baseline
    run(tmp_path, "two")
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
        message = refused(HistoryError, accept, tmp_path / "two", replace=True)
    assert message.code == "baseline_unwritten"
    monkeypatch.setattr(baseline_file, "WAIT_S", 0.01)
    with history_folder.hold(first.path.parent / ".lock", 0.0):
        message = refused(HistoryError, accept, tmp_path / "two", replace=True)
    assert message.code == "baseline_locked"
    assert baseline_file.require(tmp_path, MACHINE) == first
    assert list(first.path.parent.rglob(".baseline*")) == []


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
    both = [looping(tmp_path, 5 if ALL else 2) for _ in range(2)]
    while any(process.exitcode is None for process in both):
        assert baseline_file.require(tmp_path, MACHINE).certificate.machine.run_id in ("one", "two")
    assert [process.exitcode for process in both] == [0, 0]
    files = baseline_file.path(tmp_path, MACHINE).parent.glob("baselines/*.json")
    assert len(baseline_file.former_baselines(tmp_path, MACHINE)) == len(list(files))


@each("seed", range(6 if ALL else 1))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    for name in ("one", "two"):
        run(tmp_path, name)
    folder = accept(tmp_path / "one").baseline.path.parent
    process = looping(tmp_path, 10_000)
    while len(list(folder.glob("baselines/*"))) <= 2:
        assert process.exitcode is None
    time.sleep(0.003 * seed)
    process.kill()
    process.join()
    assert baseline_file.require(tmp_path, MACHINE).certificate.machine.run_id in ("one", "two")
    for name in ("two", "one"):
        accepted = accept(tmp_path / name, replace=True).baseline.certificate
        assert accepted.machine.run_id == name
    assert list(folder.rglob(".*.json.*")) == []
