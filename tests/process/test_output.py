from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.process.command import LINE_BYTES, LineSplitter, Spool


def cut(*pieces: bytes) -> list[str]:
    heard: list[str] = []
    lines = LineSplitter(heard.append)
    for piece in pieces:
        lines.put(piece)
    lines.end()
    return heard


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], []),
        ([b""], []),
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a", b"b\nc", b"\n"], ["ab", "c"]),
        ([b"no end"], ["no end"]),
        ([b"\n\n"], ["", ""]),
        ([b"windows\r\n"], ["windows"]),
        ([b"\xff\n"], ["\N{REPLACEMENT CHARACTER}"]),
        ([b"\xc3", b"\xbc\n"], ["ü"]),
        ([b"x" * LINE_BYTES + b"\nshort\n"], ["x" * LINE_BYTES, "short"]),
        ([b"x" * (LINE_BYTES + 1) + b"\nshort\n"], ["short"]),
        ([b"x" * LINE_BYTES, b"y" * LINE_BYTES, b"\nshort\n"], ["short"]),
        ([b"x" * (LINE_BYTES + 1)], []),
    ],
    ids=range(13),
)
def test_lines(pieces: Sequence[bytes], expected: list[str]) -> None:
    assert cut(*pieces) == expected


@given(st.text(alphabet="ab\n", max_size=200), st.randoms(use_true_random=False))
def test_however_it_is_cut(text: str, chance: random.Random) -> None:
    pieces, rest = [], text.encode()
    while rest:
        size = chance.randint(1, 5)
        pieces.append(rest[:size])
        rest = rest[size:]
    assert cut(*pieces) == text.removesuffix("\n").split("\n") if text else cut(*pieces) == []


def test_nothing_of_a_line_that_is_too_long_is_held() -> None:
    lines = LineSplitter(lambda _line: None)
    for _ in range(100):
        lines.put(b"x" * LINE_BYTES)
        assert len(lines._begun) <= LINE_BYTES


@pytest.mark.parametrize("cap", [5, 1000])
def test_lines_are_heard_beyond_the_cap(tmp_path: Path, cap: int) -> None:
    read, write = os.pipe()
    heard: list[str] = []
    os.write(write, b"one\ntwo\nthree")
    os.close(write)
    spool = Spool(os.fdopen(read, "rb"), tmp_path / "log", cap, LineSplitter(heard.append))
    spool.drain()
    assert heard == ["one", "two", "three"]
    assert (spool.text(), spool.dropped) == ("one\ntwo\nthree"[:cap], max(0, 13 - cap))
    assert (tmp_path / "log").read_text() == spool.text()
