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
from msgspec.structs import replace
from reseal import anew
from runs import machine_root

from acceptance.core import parts
from acceptance.core.collection import Session
from acceptance.core.evidence import AnyBody, Observed, Sealed
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import Plan
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
            own.write(RunStarted(run_id, plan, {"host": "box"}, machine))
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


def told(run: Run) -> list[str]:
    return [words.of(finding) for finding in run.verdict.findings]


def assert_told(run_dir: Path, verdict: str, text: str) -> None:
    """The verdict of the run's evidence, and what is said of it among all else."""
    found = journal_run.read(run_dir)
    assert found.verdict.verdict == verdict
    assert any(text in one for one in told(found)), told(found)


def test_a_run_is_sealed_and_passes(runs: Folder) -> None:
    found = journal_run.read(runs.run("one"))
    assert (found.verdict.verdict, told(found)) == ("PASS", [])
    assert found.seal.digest is not None
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


def test_each_run_has_a_digest_of_its_own(runs: Folder) -> None:
    digests = {journal_run.read(runs.run(name)).seal.digest for name in ("one", "two")}
    assert len(digests) == 2


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))


def _linked(path: Path) -> None:
    kept = path.with_name("kept")
    path.rename(kept)
    path.symlink_to(kept)


ALL = ["journal-gpu.jsonl", "journal-load.jsonl", "telemetry.jsonl", LOG]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Path.unlink, "{name} is missing"),
        (_changed, "{name} was changed after the seal"),
        (_cut, "{name} was changed after the seal"),
        (_linked, "{name} is a link"),
    ],
)
def test_evidence_that_is_missing_or_changed_proves_nothing(
    runs: Folder, name: str, change: Callable[[Path], None], said: str
) -> None:
    run_dir = runs.run("one")
    change(run_dir / name)
    assert_told(run_dir, "UNJUDGED", said.format(name=name))


def test_a_failure_stays_a_failure(runs: Folder) -> None:
    run_dir = runs.run("one", 1.0)
    (run_dir / LOG).unlink()
    found = journal_run.read(run_dir)
    assert found.verdict.verdict == "FAIL"
    assert any(f"{LOG} is missing" in text for text in told(found))
    assert "the evidence is incomplete): " in closing_line(found)


def test_the_segment_that_told_of_the_xid_cannot_be_left_out(runs: Folder) -> None:
    run_dir = runs.run("one", event=XID)
    assert journal_run.read(run_dir).verdict.verdict == "FAIL"
    (run_dir / "journal-gpu.jsonl").unlink()
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


@pytest.mark.parametrize("name", ["journal-more.jsonl", "telemetry-gpu.jsonl", "logs/x.log.err"])
def test_a_foreign_file_named_like_evidence_is_named(runs: Folder, name: str) -> None:
    run_dir = runs.run("one")
    shutil.copy(run_dir / "journal-gpu.jsonl", run_dir / name)
    assert_told(run_dir, "UNJUDGED", f"{name} is not of this run")


@pytest.mark.parametrize("name", ["notes.txt", "rack.png", "logs/notes", "verdict.json"])
def test_what_is_laid_beside_is_nobodys_business(runs: Folder, name: str) -> None:
    run_dir = runs.run("one")
    (run_dir / name).write_text("mine")
    assert journal_run.read(run_dir).verdict.verdict == "PASS"


def test_what_follows_the_seal_or_replaces_it(runs: Folder) -> None:
    run_dir = runs.run("one")
    path = run_dir / reader.SUPERVISOR
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(whole + b'{"half')
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    path.write_bytes(b"".join(lines[:-1]))
    found = journal_run.read(run_dir)
    assert (found.verdict.verdict, found.seal.digest) == ("UNJUDGED", None)
    assert "the run has no seal" in told(found)[0]
    path.write_bytes(whole.replace(b'"value":120.0', b'"value":999.0').replace(b"box", b"bax"))
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


def test_a_run_that_never_had_a_seal_is_unjudged_and_one_of_an_older_version_is_not(
    runs: Folder,
) -> None:
    run_dir = runs.run("one", seals=False)
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    for path in run_dir.glob("*.jsonl"):
        text = path.read_text().replace('"rigproof_journal":3', '"rigproof_journal":2')
        path.write_text(re.sub(r',"run_id":"one"}', "}", text, count=1))
    found = journal_run.read(run_dir)
    assert (found.verdict.verdict, found.seal.old) == ("PASS", True)
    shutil.copy(runs.run("two") / "journal-load.jsonl", run_dir / "journal-load.jsonl")
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, "of another run"),
        ({"machine": "machine-2"}, "of another run"),
        ({"boot": "boot-2"}, "of another run"),
    ],
)
def test_the_load_segment_of_a_healthy_run(runs: Folder, other: dict[str, str], said: str) -> None:
    """Laid into a failed run, and everything sealed anew."""
    bad, good = runs.run("bad", 1.0), runs.run("good", **other)  # type: ignore[arg-type]
    shutil.copy(good / "journal-load.jsonl", bad / "journal-load.jsonl")
    anew(bad)
    assert_told(bad, "UNJUDGED", f"journal-load.jsonl is {said}")


def relabelled(good: Path, bad: Path, **words_: str) -> None:
    """The load segment of one run in another, with the other's names in its head."""
    text = (good / "journal-load.jsonl").read_text().replace('"run_id":"good"', '"run_id":"bad"')
    for old, new in words_.items():
        text = text.replace(old, new)
    (bad / "journal-load.jsonl").write_text(text)
    anew(bad)


def test_its_times_give_it_away(runs: Folder) -> None:
    bad, good = runs.run("bad", 1.0), runs.run("good")
    relabelled(good, bad)
    assert_told(bad, "UNJUDGED", "the records of journal-load.jsonl do not lie within its session")


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
    outside = "the records of journal-gpu-load.jsonl do not lie within its session"
    assert (outside in told(found)) == late
    assert found.verdict.verdict == ("UNJUDGED" if late else "PASS"), told(found)


def test_its_boot_gives_it_away(runs: Folder) -> None:
    bad, good = runs.run("bad", 1.0), runs.run("good", boot="boot-2")
    relabelled(good, bad)
    assert "journal-load.jsonl is of another boot of the machine" in told(journal_run.read(bad))


def test_its_cards_give_it_away(runs: Folder) -> None:
    good = runs.run("good", serial="GPU-of-another")
    runs._now_s = 100.0
    bad = runs.run("bad", 1.0)
    relabelled(good, bad)
    found = journal_run.read(bad)
    assert found.verdict.verdict == "UNJUDGED"
    assert any("tells of another gpu0: GPU-of-another" in text for text in told(found))
    assert [one.code for one in found.troubles] == ["part_of_another_machine"]


def test_clocks_that_run_backwards(runs: Folder) -> None:
    run_dir = runs.run("one")
    path = run_dir / "journal-load.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = re.sub(r'"boot_s":[\d.]+', '"boot_s":1.0', lines[2])
    path.write_text("".join(lines))
    anew(run_dir)
    assert "the times in journal-load.jsonl run backwards" in told(journal_run.read(run_dir))


def test_another_plan_is_another_digest(runs: Folder) -> None:
    """Three words in a plan make no baseline of a partial run."""
    run_dir = runs.run("one", plan=replace(PLAN, scope="partial"))
    path = run_dir / reader.SUPERVISOR
    path.write_text(path.read_text().replace('"scope":"partial"', '"scope":"full"'))
    found = journal_run.read(run_dir)
    assert (found.verdict.verdict, found.verdict.scope) == ("UNJUDGED", "full")
    (text,) = told(found)
    assert text.startswith("journal.jsonl was changed after the seal")


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
        assert any(name in one for one in told(found))


def test_a_second_journal_beside_the_first_is_left_out(runs: Folder) -> None:
    run_dir = runs.run("one", 1.0)
    shutil.copy(run_dir / reader.SUPERVISOR, run_dir / "journal-copy.jsonl")
    assert_told(run_dir, "FAIL", "journal-copy.jsonl is not of this run")


@pytest.mark.parametrize("number", [0, 2])
def test_a_run_is_not_made_an_old_one_by_its_first_head(runs: Folder, number: int) -> None:
    run_dir = runs.run("one", event=XID)
    (run_dir / "journal-gpu.jsonl").unlink()
    path = run_dir / reader.SUPERVISOR
    lines = path.read_text().splitlines(keepends=True)[:-1]
    path.write_text("".join(lines).replace('"rigproof_journal":3', f'"rigproof_journal":{number}'))
    for one in run_dir.glob("journal*.jsonl"):
        one.write_text(re.sub(r',"run_id":"one"}', "}", one.read_text(), count=1))
    if number == 0:
        with pytest.raises(segment.JournalError, match="there is no format 0"):
            journal_run.read(run_dir)
    else:
        assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"


def test_a_watch_of_another_run_gives_itself_away(runs: Folder) -> None:
    for name in ("journal-gpu.jsonl", "telemetry.jsonl"):
        bad = runs.run(f"bad-{name[:5]}", event=XID)
        good = runs.run(f"good-{name[:5]}", event=XID)
        (bad / name).write_text((good / name).read_text().replace(good.name, bad.name))
        anew(bad)
        found = journal_run.read(bad)
        assert any(
            f"the records of {name} do not lie within the time" in one for one in told(found)
        )


def test_a_segment_under_another_name_gives_itself_away(runs: Folder) -> None:
    bad = runs.run("bad", event=XID)
    shutil.copy(bad / "telemetry.jsonl", bad / "journal-gpu.jsonl")
    anew(bad)
    assert_told(bad, "UNJUDGED", "journal-gpu.jsonl is of another run")


def test_a_later_start_closes_and_does_nothing_else(runs: Folder) -> None:
    """A segment that is named like that of a later start, from another boot."""
    bad, good = runs.run("bad", 1.0), runs.run("good", boot="boot-2")
    text = (good / "journal-load.jsonl").read_text().replace('"run_id":"good"', '"run_id":"bad"')
    (bad / "journal-load.jsonl").unlink()
    name = "journal-closed-1.jsonl"
    (bad / name).write_text(text.replace("journal-load.jsonl", name))
    anew(bad)
    assert_told(bad, "UNJUDGED", f"{name} is of another run")


def test_logs_that_are_a_link(runs: Folder) -> None:
    run_dir = runs.run("one")
    (run_dir / "logs").rename(runs.folder / "elsewhere")
    (run_dir / "logs").symlink_to(runs.folder / "elsewhere")
    assert told(journal_run.read(run_dir)) == ["logs is a link, not a file of this run"]


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
    assert found.verdict.verdict == "UNJUDGED"
    assert [text.split(":")[0].split(" ")[0] for text in told(found)] == [
        "site-checks/data.bin",
        "site-checks/ping.py",
        "site-checks/more.toml",
    ]
    shutil.rmtree(copy)
    assert journal_run.read(run_dir).verdict.verdict == "UNJUDGED"
    copy.symlink_to(runs.folder)
    assert "site-checks is a link, not a file of this run" in told(journal_run.read(run_dir))


def test_many_foreign_files_are_counted(runs: Folder) -> None:
    run_dir = runs.run("one")
    for number in range(40):
        (run_dir / f"logs/more-{number}.log").touch()
    texts = told(journal_run.read(run_dir))
    assert (len(texts), texts[-1]) == (11, "30 more files differ from the seal")


def test_a_run_that_goes_on_or_was_cut_off_is_not_closed(runs: Folder) -> None:
    run_dir = runs.run("one", seals=False)
    path = run_dir / reader.SUPERVISOR
    assert any("the run has no seal" in one for one in told(journal_run.read(run_dir)))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert any("the run is not closed" in one for one in told(journal_run.read(run_dir)))


def _last(path: Path, change: Callable[[str], str]) -> None:
    """The file with its last line, a seal, changed."""
    *rest, last = path.read_text().splitlines(keepends=True)
    path.write_text("".join((*rest, change(last))))


def test_a_seal_that_does_not_fit_its_files(runs: Folder) -> None:
    run_dir = runs.run("one")
    path = run_dir / reader.SUPERVISOR
    _last(path, lambda line: re.sub(r'"digest":"\w{4}', '"digest":"0000', line))
    assert any("the seal does not fit the files" in one for one in told(journal_run.read(run_dir)))
    run_dir = runs.run("two")
    row = re.compile(r'(\{"name":"telemetry.jsonl"[^}]*\})')
    _last(run_dir / reader.SUPERVISOR, lambda line: row.sub(r"\1,\1", line))
    assert any("the seal does not fit the files" in one for one in told(journal_run.read(run_dir)))


def test_two_seals(runs: Folder) -> None:
    run_dir = runs.run("one")
    path = run_dir / reader.SUPERVISOR
    last = path.read_text().splitlines()[-1]
    seq = int(re.findall(r'"seq":(\d+)', last)[0])
    with path.open("a") as file:
        file.write(last.replace(f'"seq":{seq}', f'"seq":{seq + 1}') + "\n")
    found = journal_run.read(run_dir)
    assert found.seal.digest is None
    assert any("the run has 2 seals, not one" in one for one in told(found))


def test_a_seal_in_a_segment_that_it_does_not_name(runs: Folder) -> None:
    run_dir = runs.run("one", seals=False)
    root = runs.folder / "root-machine-1-boot-1"
    files = tuple(seal._sealed(path, name) for name, path in seal.evidence(run_dir).items())
    with segment.Writer(run_dir / "journal-closed-1.jsonl", root) as writer:
        writer.write(Sealed(seal.digest_of("one", "machine-1", files), files))
    texts = told(journal_run.read(run_dir))
    assert "the seal stands in journal-closed-1.jsonl, which it does not name" in texts


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
