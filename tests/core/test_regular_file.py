"""Paths from users and former runs: whatever stands there, nobody waits, and
the sentence says what it is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptance.core import regular_file
from acceptance.core.regular_file import NotRegular


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # the path of a socket is short
        made.bind(path.name)


KINDS: list[tuple[Callable[[Path], object], str]] = [
    (os.mkfifo, "it is a named pipe, not a file"),
    (Path.mkdir, "it is a folder, not a file"),
    (_socket, "it is a socket, not a file"),
    (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a file"),
    (lambda path: path.write_bytes(b"12345"), "it holds 5 bytes, and at most 4 bytes are read"),
]


@pytest.mark.parametrize(("make", "told"), KINDS)
def test_what_is_no_file_or_too_large_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x")
    for reads in (regular_file.read, regular_file.open_read):
        with pytest.raises(NotRegular) as caught:
            reads(tmp_path / "x", 4)
        assert caught.value.strerror == told


def test_a_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"1234")
    (tmp_path / "x").symlink_to("real")
    assert regular_file.read(tmp_path / "x", 4) == b"1234"
    with regular_file.open_read(tmp_path / "x", 4) as file:
        assert file.read() == b"1234"


def test_a_file_whose_size_is_not_known_is_read_to_the_bound() -> None:
    assert regular_file.read(Path("/proc/self/status"), 1 << 20).startswith(b"Name:")
    with pytest.raises(NotRegular, match="it holds more, and at most 4 bytes are read"):
        regular_file.read(Path("/proc/self/status"), 4)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular_file, "LINE", 4)
    path = tmp_path / "x"
    path.write_bytes(b"123\n12345")
    with (
        regular_file.open_read(path, 100) as file,
        pytest.raises(NotRegular, match="a line of more than 4 bytes"),
    ):
        assert [*regular_file.lines(file, path)] == []


def test_writing_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular, match="it is a named pipe"):
        regular_file.write(tmp_path / "pipe", b"x")
    regular_file.write(tmp_path / "x", b"12345")
    regular_file.write(tmp_path / "x", b"1")
    assert (tmp_path / "x").read_bytes() == b"1"


def test_sizes_are_told_in_words() -> None:
    assert [regular_file.size(one) for one in (5, 1 << 20, 3 << 29)] == [
        "5 bytes",
        "1 MiB",
        "1.5 GiB",
    ]
