from __future__ import annotations

import os
import shutil
from pathlib import Path

import journals
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import machine_root, write_segment

from acceptance.core.evidence import Sample
from acceptance.core.parts import Function, Gpu
from acceptance.core.record import Body, CheckEnded, CheckStarted, Entry, Event, Note, RunClosed
from acceptance.journal import clock, reader, segment
from acceptance.journal.reader import NoRun, Tail
from acceptance.journal.segment import JournalError
from acceptance.wording import words


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return machine_root(tmp_path / "root")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The boot-time clock, to be moved by hand."""
    moment = [100.0]
    monkeypatch.setattr(clock, "boot_s", lambda: moment[0])
    return moment


def told(entries: tuple[Entry, ...] | list[Entry]) -> list[object]:
    return [
        getattr(entry.body, "text", None) or getattr(entry.body, "check", None) for entry in entries
    ]


def test_segments_are_merged_by_the_clock(run_dir: Path, root: Path, now: list[float]) -> None:
    run_dir.mkdir()
    with (
        segment.Writer(run_dir / "journal.jsonl", root) as supervisor,
        segment.Writer(run_dir / "journal-load.jsonl", root) as load,
        segment.Writer(run_dir / "telemetry.jsonl", root) as telemetry,
    ):
        supervisor.write(Note("one"))
        now[0] = 102.0
        load.write(CheckStarted("three"))
        now[0] = 101.0
        supervisor.write(Note("two"))
        now[0] = 102.0
        supervisor.write(Note("at the moment of three, by the first writer"))
        load.write(CheckEnded("four", "pass", "", 1.0))
        telemetry.write(Sample({"x": 1.0}))
    found = reader.read(run_dir)
    assert told(found.entries) == [
        "one",
        "two",
        "at the moment of three, by the first writer",
        "three",
        "four",
    ]
    assert [entry.boot for entry in found.entries] == [0] * 5
    assert (found.run_dir, found.torn, found.boot_ids, found.machine_id) == (
        run_dir,
        (),
        ("boot-1",),
        "machine-1",
    )
    assert [type(entry.body) for entry in reader.read(run_dir, telemetry=True).entries][
        -1
    ] is Sample
    now[0] = 103.0
    write_segment(
        run_dir / reader.GPU_TELEMETRY, [Sample({"power_w": 300.0}, component=Gpu(0))], root
    )
    last = reader.read(run_dir, telemetry=True).entries[-1]
    assert (last.segment, last.body) == (
        "telemetry-gpu.jsonl",
        Sample({"power_w": 300.0}, component=Gpu(0)),
    )
    assert len(reader.read(run_dir).entries) == 5


def test_a_later_boot_comes_later_though_its_clock_began_again(
    tmp_path: Path, run_dir: Path, now: list[float]
) -> None:
    now[0] = 5000.0
    write_segment(
        run_dir / "journal.jsonl", [Note("before")], machine_root(tmp_path / "one", boot="one")
    )
    now[0] = 30.0
    closed = RunClosed(None, True, {}, "restarted")
    write_segment(
        run_dir / "journal-closed-1.jsonl", [closed], machine_root(tmp_path / "two", boot="two")
    )
    found = reader.read(run_dir)
    assert [(entry.body, entry.boot) for entry in found.entries] == [
        (Note("before"), 0),
        (closed, 1),
    ]
    assert found.boot_ids == ("one", "two")


def test_closing_segments_come_last(tmp_path: Path, run_dir: Path, now: list[float]) -> None:
    # By name alone `journal-closed-1` would come before `journal-load`, and its boot would count as
    # the first.
    first, second = (
        machine_root(tmp_path / "one", boot="one"),
        machine_root(tmp_path / "two", boot="two"),
    )
    (run_dir / "x").mkdir(parents=True)
    (run_dir / "journal.jsonl").write_bytes(b"")
    write_segment(run_dir / "journal-load.jsonl", [CheckStarted("a")], first)
    write_segment(run_dir / "journal-closed-2.jsonl", [Note("c")], second)
    write_segment(run_dir / "journal-closed-1.jsonl", [Note("b")], second)
    found = reader.read(run_dir)
    assert told(found.entries) == ["a", "b", "c"]
    assert found.boot_ids == ("one", "two")
    assert (found.pid, found.machine_id) == (None, None)
    assert tuple(map(words.message, found.torn)) == (
        "journal.jsonl ends in half a line, which was dropped: 'nothing was written'",
    )


def test_what_was_torn_is_said(run_dir: Path, root: Path) -> None:
    write_segment(run_dir / "journal.jsonl", [Note("one")], root)
    write_segment(run_dir / "journal-load.jsonl", [CheckStarted("a")], root)
    with (run_dir / "journal-load.jsonl").open("ab") as file:
        file.write(b'{"seq":1,')
    found = reader.read(run_dir)
    assert tuple(map(words.message, found.torn)) == (
        "journal-load.jsonl ends in half a line, which was dropped: '{\"seq\":1,'",
    )
    assert len(found.entries) == 2


def test_a_folder_without_a_run(tmp_path: Path, root: Path) -> None:
    write_segment(tmp_path / "journal-load.jsonl", [Note("no supervisor wrote here")], root)
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "journal-load.jsonl"):
        with pytest.raises(
            NoRun,
            match=rf"^{folder}: holds no run \(no journal\.jsonl\): give the folder of one run",
        ):
            reader.read(folder)


def test_a_folder_without_a_run_names_the_newest_runs(tmp_path: Path, root: Path) -> None:
    """A folder of runs itself, a run that is gone, and `latest` that points to one."""
    latest = tmp_path / "latest"
    latest.symlink_to("2026-09")
    with pytest.raises(NoRun, match=rf"^{latest}: there is no run yet .*`rigproof accept`$"):
        reader.read(latest)
    for day in range(1, 6):
        write_segment(tmp_path / f"2026-0{day}/journal.jsonl", [Note("one")], root)
    (tmp_path / "to-the-first").symlink_to("2026-01")
    newest = r", ".join(rf"{tmp_path}/2026-0{day}" for day in (5, 4, 3))
    for folder in (tmp_path, latest, tmp_path / "nowhere"):
        for read in (reader.read, reader.read_first_record):
            with pytest.raises(
                NoRun, match=rf"{folder}: holds no run .*; the newest here: {newest} "
            ):
                read(folder)


def test_damage_in_any_segment_is_told(run_dir: Path, root: Path) -> None:
    write_segment(run_dir / "journal.jsonl", [Note("one")], root)
    (run_dir / "journal-load.jsonl").write_text("rubbish\n")
    found = reader.read(run_dir)
    assert told(found.entries) == ["one"]
    (text,) = map(words.message, found.unread)
    assert "journal-load.jsonl, line 1: is not the head" in text
    own = run_dir / "journal.jsonl"
    own.write_text(own.read_text().replace('"rigproof_journal":3', '"rigproof_journal":2'))
    with pytest.raises(JournalError, match=r"journal-load\.jsonl, line 1: is not the head"):
        reader.read(run_dir)


RECORDS: list[Body] = [
    *journals.bodies(journals.plan()),
    Event("xid", "fatal", "NVRM: Xid 79", "gone", "reseat it", 79, Function("0000:01:00.0"), 12.5),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    root = machine_root(folder / "root")
    write_segment(folder / "run/journal.jsonl", RECORDS, root)
    write_segment(folder / "run/journal-watch.jsonl", RECORDS[-1:], root)
    return folder / "run"


@given(shares=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)))
def test_a_run_cut_anywhere_can_be_read(written: Path, shares: tuple[float, float]) -> None:
    cut = written.with_name("cut")
    shutil.copytree(written, cut, dirs_exist_ok=True)
    for name, share in zip(("journal.jsonl", "journal-watch.jsonl"), shares, strict=True):
        data = (written / name).read_bytes()
        (cut / name).write_bytes(data[: round(share * len(data))])
    found = [entry.body for entry in reader.read(cut).entries if entry.segment == "journal.jsonl"]
    assert found == RECORDS[: len(found)]


# --- the end of a long segment ---


def test_the_newest_entries(run_dir: Path, root: Path) -> None:
    path = write_segment(
        run_dir / "telemetry-gpu.jsonl", [Note(f"{number}") for number in range(50)], root
    )
    with path.open("ab") as file:
        file.write(b'{"seq":50,"bo')
    assert told(list(reader.read_last_entries(path))) == [f"{number}" for number in range(50)]
    few = reader.read_last_entries(path, 1000)
    assert told(list(few)) == [f"{number}" for number in range(50 - len(few), 50)]
    assert 5 < len(few) < 20
    assert (few[-1].seq, few[-1].segment) == (49, "telemetry-gpu.jsonl")


def test_no_segment_and_one_with_nothing_in_it_have_no_newest(
    tmp_path: Path, run_dir: Path, root: Path
) -> None:
    assert reader.read_last_entries(tmp_path / "none.jsonl") == ()
    assert reader.read_last_entries(write_segment(run_dir / "telemetry.jsonl", [], root)) == ()
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert reader.read_last_entries(tmp_path / "empty.jsonl") == ()


def test_a_segment_that_ends_in_rubbish(tmp_path: Path, run_dir: Path, root: Path) -> None:
    path = write_segment(run_dir / "telemetry.jsonl", [Note("a")], root)
    path.write_text(path.read_text() + "rubbish\n")
    with pytest.raises(JournalError, match=r"telemetry\.jsonl, near its end: is no record"):
        reader.read_last_entries(path)
    with pytest.raises(JournalError, match="cannot be read"):
        reader.read_last_entries(tmp_path)


# --- following a segment that is being written ---


def test_a_tail_gives_each_entry_once(run_dir: Path, root: Path) -> None:
    path = run_dir / "journal-load.jsonl"
    tail = Tail(path)
    assert tail.new() == []
    run_dir.mkdir()
    with segment.Writer(path, root) as writer:
        assert tail.new() == []
        writer.write(CheckStarted("a"))
        writer.write(CheckStarted("b"))
        assert told(tail.new()) == ["a", "b"]
        assert tail.new() == []
        writer.write(CheckStarted("c"))
        assert [(entry.seq, entry.segment) for entry in tail.new()] == [(2, "journal-load.jsonl")]


def test_a_tail_waits_for_the_whole_line(run_dir: Path, root: Path) -> None:
    path = write_segment(run_dir / "whole.jsonl", [CheckStarted("a"), CheckStarted("b")], root)
    growing = run_dir / "growing.jsonl"
    growing.write_bytes(b"")
    tail, seen = Tail(growing), []
    for byte in path.read_bytes():
        with growing.open("ab") as file:
            file.write(bytes([byte]))
        seen += tail.new()
    assert told(seen) == ["a", "b"]


def test_a_tail_tells_damage(run_dir: Path, root: Path) -> None:
    path = write_segment(run_dir / "journal-load.jsonl", [CheckStarted("a")], root)
    with path.open("ab") as file:
        file.write(b"rubbish \xff\n")
    with pytest.raises(JournalError, match=r"journal-load\.jsonl, line 3: is no record"):
        Tail(path).new()
    with pytest.raises(JournalError, match=r"run: cannot be read \(it is a folder, not a file\)"):
        Tail(run_dir).new()


def test_the_beginning_is_read_without_the_rest(run_dir: Path, root: Path) -> None:
    path = write_segment(run_dir / "journal.jsonl", [Note("one"), Note("two")], root)
    head, first = reader.read_first_record(run_dir)
    assert head.machine_id == "machine-1"
    assert first is not None
    assert first.body == Note("one")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") + 1] + b'{"seq":0')
    assert reader.read_first_record(run_dir) == (head, None)
    path.write_bytes(whole.replace(b'"note"', b'"tone"'))
    with pytest.raises(JournalError, match="line 2: is no record"):
        reader.read_first_record(run_dir)
    path.write_bytes(b"nothing of ours")
    with pytest.raises(JournalError, match="line 1: is not the head"):
        reader.read_first_record(run_dir)


def test_what_is_no_file_cannot_be_read_and_nobody_waits_for_it(run_dir: Path) -> None:
    with pytest.raises(NoRun):
        reader.read_first_record(run_dir)
    run_dir.mkdir()
    os.mkfifo(run_dir / "journal.jsonl")  # reading it would wait for somebody to write
    told = (
        r"journal\.jsonl: cannot be read \(it is a named pipe, not a file\): restore it from a copy"
    )
    for reads in (reader.read_first_record, reader.read):
        with pytest.raises(JournalError, match=told):
            reads(run_dir)
