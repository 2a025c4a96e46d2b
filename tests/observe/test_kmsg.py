from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from cases import each
from raising import raising

from acceptance.observe import kernel_log as observe_kernel_log
from acceptance.observe import kmsg
from acceptance.observe.kmsg import Kmsg, KmsgRecord
from acceptance.wording.errors import NotMeasurable

TEXT = "6,0,1000000,-;first\n SUBSYSTEM=pci\n4,1,2500000,c;two\\x0alines\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    return tmp_path


def test_parse_records() -> None:
    assert kmsg.parse_records(TEXT) == (
        KmsgRecord(0, 1.0, 6, "first"),
        KmsgRecord(1, 2.5, 4, "two\nlines"),
    )
    assert kmsg.parse_records("") == ()
    with pytest.raises(ValueError, match="not a kmsg record: 'rubbish'"):
        kmsg.parse_records("rubbish\n")


def test_records_become_events() -> None:
    lines = kmsg.as_lines(
        [
            KmsgRecord(7, 3.5, 3, "x\nNVRM: Xid (PCI:0000:01:00): 79, gone"),
            KmsgRecord(8, 4.0, 3, " "),
        ]
    )
    assert [(line.text[:4], line.time, line.stamped) for line in lines] == [
        ("x", 3.5, True),
        ("NVRM", 3.5, True),
    ]
    assert [event.code for event in observe_kernel_log.events_of(lines)] == [79]


@each(
    "sequences, after, missing",
    [
        ([], 4, False),
        ([5, 6], 4, False),
        ([6], 4, True),
        ([5, 7], 4, True),
        ([9, 10], None, False),
        ([9, 11], None, True),
        ([0], -1, False),
        ([3], -1, True),
    ],
)
def test_gap(sequences: list[int], after: int | None, missing: bool) -> None:
    assert kmsg.gap(sequences, after) is missing


def test_a_file_that_grows(root: Path) -> None:
    path = root / "dev/kmsg"
    path.write_text(TEXT)
    with Kmsg(root) as log:
        assert [record.text for record in log.read_new()] == ["first", "two\nlines"]
        assert log.read_new() == []
        with path.open("a") as file:
            file.write("6,2,3000000,-;third\n6,3,")
        assert [record.sequence for record in log.read_new()] == [2]
        assert not log.lost
        with path.open("a") as file:
            file.write("4000000,-;fourth\n6,9,5000000,-;tenth\n")
        assert [record.sequence for record in log.read_new()] == [3, 9]
        assert log.lost


def test_from_now_on(root: Path) -> None:
    path = root / "dev/kmsg"
    path.write_text(TEXT)
    with Kmsg(root, since="now") as log:
        assert log.read_new() == []
        with path.open("a") as file:
            file.write("6,70,3000000,-;third\n")
        assert [record.sequence for record in log.read_new()] == [70]
        assert not log.lost


def test_a_boot_of_which_the_beginning_is_gone(root: Path) -> None:
    (root / "dev/kmsg").write_text("6,812,1000000,-;x\n")
    with Kmsg(root) as log:
        assert len(log.read_new()) == 1
        assert log.lost


def test_a_pipe_that_has_nothing_yet(root: Path) -> None:
    os.mkfifo(root / "dev/kmsg")
    with Kmsg(root) as log:
        writer = os.open(root / "dev/kmsg", os.O_WRONLY)
        assert log.read_new() == []
        os.write(writer, b"6,0,1000000,-;x\n")
        assert [record.text for record in log.read_new()] == ["x"]
        os.close(writer)


def test_overwritten_records_are_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "dev/kmsg").write_text("")
    answers: list[bytes | int] = [errno.EPIPE, b"6,0,1000000,-;x\n", errno.EAGAIN]

    def read(_descriptor: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer

    with Kmsg(root) as log:
        monkeypatch.setattr(os, "read", read)
        assert [record.text for record in log.read_new()] == ["x"]
        assert log.lost
        answers.append(errno.EIO)
        with pytest.raises(NotMeasurable, match="Input/output error"):
            log.read_new()


def test_a_flood_ends_with_the_batch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "dev/kmsg").write_text("")
    monkeypatch.setattr(kmsg, "_BATCH", 3)
    monkeypatch.setattr(os, "read", lambda _descriptor, _size: b"6,0,1,-;x\n")
    with Kmsg(root) as log:
        assert len(log.read_new()) == 3


def test_rubbish_is_no_silence(root: Path) -> None:
    (root / "dev/kmsg").write_text("rubbish\n")
    with Kmsg(root) as log, pytest.raises(NotMeasurable, match="rubbish"):
        log.read_new()


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.EPERM, "dmesg_restrict=0"),
        (errno.EACCES, "as root"),
        (errno.ENOENT, "on the host"),
        (errno.EIO, "dmesg"),
    ],
)
def test_what_cannot_be_opened_names_the_cure(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int, cure: str
) -> None:
    monkeypatch.setattr(os, "open", raising(OSError(number, os.strerror(number))))
    with pytest.raises(
        NotMeasurable, match=f"{re.escape(str(root))}/dev/kmsg cannot be read .*{cure}"
    ):
        Kmsg(root)


def test_a_machine_without_it(tmp_path: Path) -> None:
    with pytest.raises(NotMeasurable, match="on the host"):
        Kmsg(tmp_path)


@pytest.mark.tools
def test_the_real_one() -> None:
    try:
        log = Kmsg(since="boot")
    except NotMeasurable as unreadable:
        pytest.skip(str(unreadable))
    with log:
        records = log.read_new()
    assert [record.sequence for record in records] == sorted(record.sequence for record in records)
