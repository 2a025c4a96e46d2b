"""What somebody at a terminal sees, drawn by an emulator: windows large and small, colours,
locales, a window that changes, Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import pytest
from cases import each
from forks import Forks
from screens import Seat
from thoroughness import ALL, some

PLAIN = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
CLOSING = "2 passed, 2 failed"


@contextlib.contextmanager
def loaded(environ: dict[str, str]) -> Iterator[Forks]:
    """Processes of Pythons that started in this environment."""
    found = Forks(["terminal_run"], environ)
    yield found
    found.end()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with loaded(PLAIN) as found:
        yield found


def seat(
    forks: Forks,
    gpus: int,
    columns: int,
    lines: int,
    environ: dict[str, str] | None = None,
    hold_s: float = 60.0,
) -> Seat:
    return Seat(
        forks, "terminal_run:play", (gpus, hold_s), columns, lines, {**PLAIN, **(environ or {})}
    )


def in_the_burn(lines: list[str]) -> bool:
    """The view is there, drawn once over itself, with all that was told so far.

    A frame comes in pieces: between two of them the screen holds parts of both.
    """
    text = "\n".join(lines)
    return (
        "together.burn" in text
        and text.count("checks done") == 1
        and ("gpu1   " in text or "errors: 1 (gpu1)" in text)
        and "1 failed" in text
    )


def assert_left_clean(found: Seat, *, holds: bool = True) -> None:
    """The end: the cursor is back, nothing of the view is left, the verdict is the last line and
    stands by itself.
    """
    if holds:
        found.go_on()
    lines, code = found.ended()
    assert code == 0, "\n".join(lines)
    assert not found.screen.cursor.hidden
    told = [line for line in lines if line]
    closing = next(place for place, line in enumerate(told) if line.startswith("FAIL: "))
    assert " ".join(" ".join(told[closing:]).split()).endswith(CLOSING)
    assert found.screen.cursor.x == 0
    assert not [
        line for line in lines if "checks done" in line or re.search(r"about \d+ \w+ left", line)
    ]


WINDOWS = [(2, 80, 24), (2, 120, 40), (8, 80, 24), (2, 40, 10), (8, 120, 40), (8, 40, 10)]


@each("gpus, columns, lines", some(WINDOWS, 2))
def test_the_view_fits_its_window_and_leaves_it_clean(
    forks: Forks, gpus: int, columns: int, lines: int
) -> None:
    found = seat(forks, gpus, columns, lines)
    text = "\n".join(found.until(in_the_burn, "the view"))
    assert "about 3 min left" in text  # of 5, at the pace of checks that were played at once
    assert ("hottest gpu1 86 \u00b0C" in text) is (lines == 10 and gpus == 8)
    assert ("645 TFLOP/s bf16" in text) is (gpus == 8 and lines > 10)
    assert "too hot" in text
    assert b"\x1b[?25l" in found.sent
    assert_left_clean(found)


LOCALES = [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}]


@each("environ", LOCALES if ALL else LOCALES[2:])
def test_a_locale_without_our_signs_gets_plain_ones(environ: dict[str, str]) -> None:
    with loaded({**PLAIN, **environ}) as forks:
        found = seat(forks, 8, 80, 24, environ)
        assert "86 C " in "\n".join(found.until(in_the_burn, "the view"))
        assert_left_clean(found)
    assert found.sent.isascii()
    assert b"\\x" not in found.sent
    assert b"\\u" not in found.sent


@pytest.mark.parametrize(("environ", "coloured"), [({"NO_COLOR": "1"}, False), ({}, True)])
def test_no_color_is_obeyed(forks: Forks, environ: dict[str, str], coloured: bool) -> None:
    found = seat(forks, 2, 80, 24, environ)
    found.until(in_the_burn, "the view")
    assert_left_clean(found)
    colour = rb"\x1b\[[0-9;]*(3[0-7]|38|9[0-7])[;m]"
    assert bool(re.search(colour, found.sent)) is coloured


def test_a_dumb_terminal_gets_calm_lines(forks: Forks) -> None:
    found = seat(forks, 8, 80, 24, {"TERM": "dumb"}, hold_s=0.0)
    assert_left_clean(found, holds=False)
    assert b"\x1b" not in found.sent
    assert b"pass   gpu.present" in found.sent


def test_a_window_that_is_drawn_smaller_and_larger_is_lived_with(forks: Forks) -> None:
    found = seat(forks, 8, 100, 30, hold_s=60.0)
    found.until(in_the_burn, "the view")
    found.resize(40, 10)
    found.until(lambda lines: "hottest gpu1" in "\n".join(lines), "the view of the small window")
    found.resize(90, 30)
    found.until(lambda lines: "held back by" in "\n".join(lines), "the view of the large window")
    found.go_on()
    lines, code = found.ended()
    assert code == 0
    assert not found.screen.cursor.hidden
    assert " ".join("\n".join(lines).split()).endswith(CLOSING)


def test_ctrl_c_leaves_the_terminal_clean(forks: Forks) -> None:
    found = seat(forks, 2, 80, 24, hold_s=600.0)
    found.until(in_the_burn, "the view")
    found.type(b"\x03")
    lines, _ = found.ended()
    assert not found.screen.cursor.hidden
    assert [line for line in lines if line][-1] == "stopped"
    assert "checks done" not in "\n".join(lines)
