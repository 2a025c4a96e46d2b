"""What a seal notices: evidence that is missing, changed, foreign or another machine's; and what
it leaves alone.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import journals
import machine_facts
import pytest
from cases import each
from msgspec.structs import replace
from reseal import anew
from runs import machine_root

from acceptance.core import parts
from acceptance.core.evidence import AnyBody, Observed, Sealed
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import Plan, Session
from acceptance.core.record import (
    Entry,
    Event,
    Measured,
    Note,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.journal import clock, reader, seal, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.reports.summary import closing_line
from acceptance.wording import words

PLAN = journals.plan(journals.check("link.copy", journals.due("copy_h2d", Gpu(0))))
XID = Event("xid", "fatal", "NVRM: Xid 79", "gone", "reseat it", 79, boot_s=None, source="nvml")
LOG = "logs/link.copy-1.log"


class Folder:
    """Runs in a folder, each written by a supervisor, a session and a watch that take turns."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._now_s = 100.0
        self.day = "2026-11-22"
        monkeypatch.setattr(clock, "boot_s", self._boot_s)
        monkeypatch.setattr(clock, "utc", lambda: f"{self.day}T{self._clock()}Z")

    def _boot_s(self) -> float:
        self._now_s += 1.0
        return self._now_s

    def _clock(self) -> str:
        minute, second = divmod(int(self._now_s), 60)
        return f"{minute // 60:02}:{minute % 60:02}:{second:02}.000"

    def run(
        self,
        run_id: str,
        value: float = 120.0,
        *,
        plan: Plan = PLAN,
        event: Event | None = None,
        machine: str = "machine-1",
        boot: str = "boot-1",
        serial: str | None = None,
        seals: bool = True,
    ) -> Path:
        """A whole run; it passes with this value."""
        run_dir = self.folder / run_id
        (run_dir / "logs").mkdir(parents=True)
        (run_dir / LOG).write_text("[1] copied\n")
        root = machine_root(self.folder / f"root-{machine}-{boot}", boot=boot, machine=machine)
        bodies = journals.bodies(plan, {("copy_h2d", Gpu(0)): value})
        session = [
            replace(body, serial=serial) if isinstance(body, Measured) else body
            for body in bodies
            if not isinstance(body, RunStarted | SessionEnded | RunEnded)
        ]
        ids = tuple(check.id for check in plan.checks)
        session = [body for body in session if not isinstance(body, SessionStarted)]
        with segment.Writer(run_dir / reader.SUPERVISOR, root) as own:
            own.write(RunStarted(run_dir.name, plan, {"host": "box"}, machine))
            own.write(Observed(machine_facts.machine()))
            self._write(run_dir / reader.TELEMETRY, [Note("sampled")], root)
            self._write(
                run_dir / "journal-load.jsonl",
                [SessionStarted("load", plan.digest, ids), *session],
                root,
            )
            self._write(run_dir / "journal-gpu.jsonl", [event] if event else [], root)
            own.write(SessionEnded("load", True, "exit code 0", 1.0))
            own.write(RunEnded(True, "done"))
            if seals:
                seal.write(own)
        return run_dir

    def _write(self, path: Path, bodies: list[AnyBody], root: Path) -> None:
        with segment.Writer(path, root) as writer:
            for body in bodies:
                writer.write(body)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return Folder(tmp_path, monkeypatch)


def told(run: Run) -> list[tuple[str, str]]:
    """Why the evidence is not whole: by code, and of which file."""
    return [
        (one.code, str(one.values.get("file", one.values.get("path", "")))) for one in run.troubles
    ]


def assert_told(run_dir: Path, verdict: str, code: str, name: str) -> None:
    """The verdict of the run's evidence, and what is said of it among all else."""
    found = journal_run.read(run_dir)
    assert found.verdict.verdict == verdict
    assert any(one == code and path.endswith(name) for one, path in told(found)), told(found)


def edit(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """The file with its lines changed."""
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def swap(path: Path, old: str, new: str) -> None:
    """The file with the first place of this pattern replaced."""
    path.write_text(re.sub(old, new, path.read_text(), count=1))


def test_a_run_is_sealed_and_passes(runs: Folder) -> None:
    found = journal_run.read(runs.run("one"))
    assert (found.verdict.verdict, told(found)) == ("PASS", [])
    assert found.seal.digest not in (None, journal_run.read(runs.run("two")).seal.digest)
    assert re.fullmatch(r"([A-Z2-7]{4}-){4}[A-Z2-7]{4}", found.seal.spoken or "")
    (sealed,) = [one.body for one in found.entries if isinstance(one.body, Sealed)]
    assert [(one.name, one.lines) for one in sealed.files] == [
        ("journal-gpu.jsonl", 1),
        ("journal-load.jsonl", 5),
        ("journal.jsonl", 5),
        (LOG, 1),
        ("telemetry.jsonl", 2),
    ]


def test_what_is_sealed_is_on_the_disk(runs: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is nobody's to bring there but the seal's, and it comes before the seal."""
    synced: list[str] = []
    fsync = os.fsync

    def listed(file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        synced.append(Path(f"/proc/self/fd/{number}").readlink().name)
        fsync(file)

    monkeypatch.setattr(os, "fsync", listed)
    found = journal_run.read(runs.run("one"))
    (sealed,) = [one.body for one in found.entries if isinstance(one.body, Sealed)]
    names = {Path(one.name).name for one in sealed.files}
    before = synced[: len(synced) - 1 - synced[::-1].index(reader.SUPERVISOR)]
    assert names <= set(before)
    assert before.count(Path(LOG).name) == 1


# --- what is done to the evidence of a run ---


def _linked(path: Path) -> None:
    kept = path.with_name("kept")
    path.rename(kept)
    path.symlink_to(kept)


def _last(change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    """The last line, a seal, changed."""
    return lambda lines: [*lines[:-1], change(lines[-1])]


def _again(line: str) -> str:
    """A seal, and one more."""
    seq = int(re.findall(r'"seq":(\d+)', line)[0])
    return line + line.replace(f'"seq":{seq}', f'"seq":{seq + 1}')


Change = Callable[[Path], object]
TAMPERED: list[tuple[Change, str, str]] = [
    *(
        (lambda run, change=change, name=name: change(run / name), code, name)  # type: ignore[misc]
        for name in ("journal-gpu.jsonl", "journal-load.jsonl", "telemetry.jsonl", LOG)
        for change, code in (
            (Path.unlink, "evidence_missing"),
            (lambda path: swap(path, "1", "2"), "evidence_changed"),
            (lambda path: path.write_bytes(path.read_bytes()[:-5]), "evidence_changed"),
            (_linked, "evidence_is_link"),
        )
    ),
    *(
        (
            lambda run, name=name: shutil.copy(run / "journal-gpu.jsonl", run / name),
            "evidence_foreign",
            name,
        )
        for name in ("journal-more.jsonl", "telemetry-gpu.jsonl", "logs/x.log.err")
    ),
    (lambda run: _linked(run / "logs"), "evidence_is_link", "logs"),
    (
        lambda run: edit(run / reader.SUPERVISOR, lambda lines: [*lines, '{"half']),
        "written_after_seal",
        reader.SUPERVISOR,
    ),
    (lambda run: edit(run / reader.SUPERVISOR, lambda lines: lines[:-1]), "not_sealed", ""),
    (lambda run: edit(run / reader.SUPERVISOR, lambda lines: lines[:-2]), "not_closed", ""),
    (lambda run: swap(run / reader.SUPERVISOR, "box", "bax"), "evidence_changed", "journal.jsonl"),
    # three words in a plan make no baseline of a partial run
    (
        lambda run: swap(run / reader.SUPERVISOR, '"scope":"full"', '"scope":"partial"'),
        "evidence_changed",
        "journal.jsonl",
    ),
    (
        lambda run: edit(
            run / reader.SUPERVISOR,
            _last(lambda one: re.sub('"digest":"....', '"digest":"00', one)),
        ),
        "seal_differs",
        "",
    ),
    (
        lambda run: edit(
            run / reader.SUPERVISOR,
            _last(lambda one: re.sub(r'(\{"name":"telemetry.jsonl"[^}]*\})', r"\1,\1", one)),
        ),
        "seal_differs",
        "",
    ),
    (lambda run: edit(run / reader.SUPERVISOR, _last(_again)), "sealed_again", ""),
]


@each("change, code, name", TAMPERED)
def test_evidence_that_is_missing_or_changed_proves_nothing(
    runs: Folder, tmp_path: Path, change: Change, code: str, name: str
) -> None:
    run_dir = runs.run(f"{tmp_path.name}/run")
    change(run_dir)
    assert_told(run_dir, "UNJUDGED", code, name)


def test_a_failure_stays_a_failure(runs: Folder) -> None:
    run_dir = runs.run("one", 1.0)
    (run_dir / LOG).unlink()
    shutil.copy(run_dir / reader.SUPERVISOR, run_dir / "journal-copy.jsonl")
    assert_told(run_dir, "FAIL", "evidence_missing", LOG)
    assert_told(run_dir, "FAIL", "evidence_foreign", "journal-copy.jsonl")
    assert "the evidence is incomplete): " in closing_line(journal_run.read(run_dir))


def test_the_segment_that_told_of_the_xid_cannot_be_left_out(runs: Folder) -> None:
    run_dir = runs.run("one", event=XID)
    assert journal_run.read(run_dir).verdict.verdict == "FAIL"
    (run_dir / "journal-gpu.jsonl").unlink()
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


@each("name", ["notes.txt", "rack.png", "logs/notes", "verdict.json"])
def test_what_is_laid_beside_is_nobodys_business(runs: Folder, tmp_path: Path, name: str) -> None:
    run_dir = runs.run(f"{tmp_path.name}/run")
    (run_dir / name).write_text("mine")
    assert journal_run.read(run_dir).verdict.verdict == "PASS"


def _of_version_2(run_dir: Path) -> None:
    """The run as a version without seals wrote it."""
    for path in run_dir.glob("*.jsonl"):
        swap(path, '"rigproof_journal":3', '"rigproof_journal":2')
        swap(path, r',"run_id":"[^"]*"}', "}")


def test_a_run_that_never_had_a_seal_is_unjudged_and_one_of_an_older_version_is_not(
    runs: Folder,
) -> None:
    run_dir = runs.run("one", seals=False)
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    _of_version_2(run_dir)
    found = journal_run.read(run_dir)
    assert (found.verdict.verdict, found.seal.old) == ("PASS", True)
    shutil.copy(runs.run("two") / "journal-load.jsonl", run_dir / "journal-load.jsonl")
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


def test_a_run_is_not_made_an_old_one_by_its_first_head(runs: Folder) -> None:
    run_dir = runs.run("one", event=XID)
    telemetry = (run_dir / "telemetry.jsonl").read_text()
    (run_dir / "journal-gpu.jsonl").unlink()
    edit(run_dir / reader.SUPERVISOR, lambda lines: lines[:-1])
    _of_version_2(run_dir)
    (run_dir / "telemetry.jsonl").write_text(telemetry)
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    swap(run_dir / reader.SUPERVISOR, '"rigproof_journal":2', '"rigproof_journal":0')
    with pytest.raises(segment.JournalError, match="there is no format 0"):
        journal_run.read(run_dir)


@pytest.mark.parametrize("name", ["journal-gpu.jsonl", "telemetry.jsonl", "journal-more.jsonl"])
@pytest.mark.parametrize("form", ["junk", "newer", "folder", "nothing"])
def test_what_cannot_be_read_takes_no_failure_away(runs: Folder, name: str, form: str) -> None:
    for value, word in ((1.0, "FAIL"), (120.0, "UNJUDGED")):
        run_dir = runs.run(f"run-{value:g}", value)
        path = run_dir / name
        text = (run_dir / "journal-gpu.jsonl").read_text()
        path.unlink(missing_ok=True)
        if form == "folder":
            path.mkdir()
        else:
            newer = text.replace('"rigproof_journal":3', '"rigproof_journal":4')
            path.write_text({"junk": "junk\n", "newer": newer, "nothing": ""}[form])
        found = journal_run.read(run_dir)
        assert found.verdict.verdict == word
        assert any(name in words.of(one) for one in found.verdict.findings)


# --- what is laid in, and everything sealed anew ---


def laid(good: Path, bad: Path, source: str, name: str = "") -> None:
    """A segment of one run in another, with the other's name in its head."""
    text = (good / source).read_text().replace(f'"{good.name}"', f'"{bad.name}"', 1)
    (bad / (name or source)).write_text(text.replace(f'"{source}"', f'"{name or source}"', 1))


LOAD, CLOSED = "journal-load.jsonl", "journal-closed-1.jsonl"
ANEW: list[tuple[dict[str, str], Callable[[Path, Path], object], str, str]] = [
    *(
        (
            other,
            lambda good, bad: shutil.copy(good / LOAD, bad / LOAD),
            "segment_of_another_run",
            LOAD,
        )
        for other in ({}, {"machine": "machine-2"}, {"boot": "boot-2"})
    ),
    ({}, lambda good, bad: laid(good, bad, LOAD), "session_outside", LOAD),
    ({"boot": "boot-2"}, lambda good, bad: laid(good, bad, LOAD), "segment_of_another_boot", LOAD),
    *(
        (
            {},
            lambda good, bad, name=name: laid(good, bad, name),  # type: ignore[misc]
            "segment_outside",
            name,
        )
        for name in ("journal-gpu.jsonl", "telemetry.jsonl")
    ),
    (
        {},
        lambda _, bad: shutil.copy(bad / "telemetry.jsonl", bad / "journal-gpu.jsonl"),
        "segment_of_another_run",
        "journal-gpu.jsonl",
    ),
    # a later start closes, and does nothing else
    (
        {"boot": "boot-2"},
        lambda good, bad: laid(good, bad, LOAD, CLOSED),
        "segment_of_another_run",
        CLOSED,
    ),
    (
        {},
        lambda _, bad: edit(
            bad / LOAD,
            lambda lines: [
                re.sub(r'"boot_s":[\d.]+', '"boot_s":1.0', line) if number == 2 else line
                for number, line in enumerate(lines)
            ],
        ),
        "clock_ran_back",
        LOAD,
    ),
]


@each("other, change, code, name", ANEW)
def test_what_is_not_of_this_run_gives_itself_away(
    runs: Folder,
    tmp_path: Path,
    other: dict[str, str],
    change: Callable[[Path, Path], object],
    code: str,
    name: str,
) -> None:
    bad = runs.run(f"{tmp_path.name}/bad", event=XID)
    good = runs.run(f"{tmp_path.name}/good", event=XID, **other)  # type: ignore[arg-type]
    change(good, bad)
    anew(bad)
    found = journal_run.read(bad)
    assert (code, name) in told(found)


def test_its_cards_give_it_away(runs: Folder) -> None:
    good = runs.run("good", serial="GPU-of-another")
    runs._now_s = 100.0
    bad = runs.run("bad", 1.0)
    laid(good, bad, LOAD)
    anew(bad)
    found = journal_run.read(bad)
    assert found.verdict.verdict == "UNJUDGED"
    (one,) = found.troubles
    assert (one.code, one.values["serial"]) == ("part_of_another_machine", "GPU-of-another")


@pytest.mark.parametrize("late", [False, True])
def test_two_sessions_of_a_phase_overlap_and_no_others(runs: Folder, late: bool) -> None:
    plan = journals.plan(
        journals.check("g.one", session="gpu-load"), journals.check("h.one", session="host-load")
    )
    run_dir = runs.folder / "both"
    run_dir.mkdir()
    root = machine_root(runs.folder / "root", boot="boot-1", machine="machine-1")
    ids = tuple(check.id for check in plan.checks)

    def write(session: Session, writer: segment.Writer) -> None:
        writer.write(SessionStarted(session, plan.digest, ids))
        for check in plan.share(session):
            for body in journals.check_bodies(check):
                writer.write(body)

    with (
        segment.Writer(run_dir / reader.SUPERVISOR, root) as own,
        segment.Writer(run_dir / "journal-gpu-load.jsonl", root) as gpus,
        segment.Writer(run_dir / "journal-host-load.jsonl", root) as host,
    ):
        own.write(RunStarted("both", plan, {"host": "box"}, "machine-1"))
        runs._write(run_dir / reader.TELEMETRY, [Note("sampled")], root)
        if not late:
            write("gpu-load", gpus)
        write("host-load", host)
        own.write(SessionEnded("host-load", True, "exit code 0", 1.0))
        own.write(SessionEnded("gpu-load", True, "exit code 0", 2.0))
        if late:  # after its own end
            write("gpu-load", gpus)
        own.write(RunEnded(True, "done"))
        seal.write(own)
    found = journal_run.read(run_dir)
    assert (("session_outside", "journal-gpu-load.jsonl") in told(found)) == late
    assert found.verdict.verdict == ("UNJUDGED" if late else "PASS"), told(found)


def test_the_copy_of_a_sites_checks_is_evidence(runs: Folder) -> None:
    """Else nobody could say afterwards what was run."""
    copy = runs.folder / "one" / "site-checks"
    copy.mkdir(parents=True)
    (copy / "ping.py").write_text("def test_it(): ...\n")
    (copy / "data.bin").write_bytes(bytes(range(256)))
    run_dir = runs.run("one")
    assert journal_run.read(run_dir).verdict.verdict == "PASS"
    (copy / "ping.py").write_text("def test_it(): pass\n")
    (copy / "data.bin").unlink()
    (copy / "more.toml").touch()
    found = journal_run.read(run_dir)
    assert (found.verdict.verdict, told(found)) == (
        "UNJUDGED",
        [
            ("evidence_missing", "site-checks/data.bin"),
            ("evidence_changed", "site-checks/ping.py"),
            ("evidence_foreign", "site-checks/more.toml"),
        ],
    )
    shutil.rmtree(copy)
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    copy.symlink_to(runs.folder)
    assert_told(run_dir, "UNJUDGED", "evidence_is_link", "site-checks")


def test_many_foreign_files_are_counted(runs: Folder) -> None:
    run_dir = runs.run("one")
    for number in range(40):
        (run_dir / f"logs/more-{number}.log").touch()
    *named, more = journal_run.read(run_dir).troubles
    assert (len(named), more.code, more.values["count"]) == (10, "evidence_more", 30)


def test_a_seal_in_a_segment_that_it_does_not_name(runs: Folder) -> None:
    run_dir = runs.run("one", seals=False)
    root = runs.folder / "root-machine-1-boot-1"
    files = tuple(seal._sealed(path, name) for name, path in seal.evidence(run_dir).items())
    with segment.Writer(run_dir / CLOSED, root) as writer:
        writer.write(Sealed(seal.digest_of("one", "machine-1", files), files))
    assert_told(run_dir, "UNJUDGED", "seal_elsewhere", CLOSED)


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_a_run_that_a_later_start_closed_is_whole(runs: Folder, boot: str) -> None:
    run_dir = runs.run("one", seals=False)
    root = machine_root(runs.folder / "later", boot=boot, machine="machine-1")
    if boot == "boot-2":
        runs._now_s = 5.0  # the clock since boot begins anew
    with segment.Writer(run_dir / "journal-closed-1.jsonl", root) as writer:
        writer.write(RunClosed(None, boot == "boot-2", {}, "it was cut off"))
        seal.write(writer)
    found = journal_run.read(run_dir)
    assert (found.troubles, found.seal.digest is None) == ((), False)
    assert found.verdict.verdict == "UNJUDGED"


STEPS_S = {
    "once forward": [0, 0, 0, 7200],
    "once back": [0, 0, 0, -7200],
    "forward and back": [0, 0, 3600, 0, 0],
    "there and further": [0, 3600, 90_000, 40 * 365 * 86_400],
    "back to 1970 and on": [-56 * 365 * 86_400, 0],
    "at each record": [86_400 * (-1) ** n * n for n in range(40)],
}


@pytest.mark.parametrize("steps", STEPS_S.values(), ids=STEPS_S)
@pytest.mark.parametrize("first", range(8))
def test_the_wall_clock_may_be_set_at_any_moment_and_often(
    runs: Folder, monkeypatch: pytest.MonkeyPatch, steps: list[int], first: int
) -> None:
    """Of `first` records the clock is right, then each of the steps; the last one stays."""
    begin = datetime.fromisoformat("2026-11-22T00:00:00Z")
    offsets = iter([0] * first + steps)
    last = [0]

    def utc() -> str:
        last[0] = next(offsets, last[0])
        moment = begin + timedelta(seconds=runs._now_s + last[0])
        return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    monkeypatch.setattr(clock, "utc", utc)
    found = journal_run.read(runs.run("one"))
    assert (found.troubles, told(found), found.verdict.verdict) == ((), [], "PASS")


def test_the_cards_of_another_machine_are_named_once_each(runs: Folder) -> None:
    pair = {Gpu(0): "GPU-a", Gpu(1): "GPU-b"}

    def measured(component: Component, serial: str | None) -> Entry:
        body = Measured("link.copy", "copy_h2d", component, "GB/s", 1.0, serial)
        return Entry(0, 1.0, "", body, "journal-load.jsonl")

    foreign = [measured(Gpu(0), "GPU-x"), measured(Gpu(0), "GPU-x"), measured(Gpu(1), "GPU-y")]
    own = [measured(Gpu(0), "GPU-a"), measured(Gpu(1), None), measured(Gpu(2), "GPU-z")]
    disk = measured(parts.parse("disk:sda"), "S-1")
    found = list(seal.other_parts([*foreign, *own, disk], {**pair, disk.body.component: "S-2"}))  # type: ignore[attr-defined]
    assert [one.values["serial"] for one in found] == ["GPU-x", "GPU-y"]
