"""A machine's nights on the terminal, as its reader sees them."""

from __future__ import annotations

import dataclasses

import translated
import trend_reports
from cases import each
from test_junit import HOSTILE
from test_terminal import piped, watched
from thoroughness import some

from acceptance.history import trend
from acceptance.history.trend import TrendReport
from acceptance.reports import trend_terminal, trend_words


def lines(found: TrendReport, *, one: bool = False) -> list[str]:
    terminal, out = piped()
    trend_terminal.show(found, terminal, one=one)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_night_of_a_partial_run_says_so() -> None:
    found = trend_reports.machine()
    *others, last = found.shown
    partial = dataclasses.replace(last, apart="partial")
    shown = lines(dataclasses.replace(found, shown=(*others, partial)))
    assert shown[2].startswith("20 PASS, 1 PASS (partial), 1 FAIL, ")
    assert shown[3] == "the last run: run-23: PASS (partial)"


def test_which_machine_what_changed_most_then_everything() -> None:
    shown = lines(trend_reports.machine(("fedc9876",)))
    assert shown[:6] == [
        "machine 0123abcd: 40 nights recorded",
        "showing the last 24 nights, from 2026-01-01 to 2026-01-24",
        "21 PASS, 1 FAIL, 1 UNJUDGED, 1 skipped, the machine was in use",
        "the last run: run-23: PASS",
        "accepted as the baseline: run-0",
        "other machines with a history here: fedc9876 (--machine-id shows one)",
    ]
    place = shown.index("What changed most: the last week beside the nights before")
    head, *rows = shown[place + 1 : shown.index("All measurements") - 1]
    assert head == "measurement component unit nights median MAD last trend outside change values"
    assert [row[: row.rindex(" ")] for row in rows] == [
        "copy_h2d gpu0 GB/s 23 50 0.1 46.2 ↓ 1 -8.0 %"
    ]
    place = shown.index("All measurements")
    rows = shown[place + 2 :]
    assert [row.split()[:2] for row in rows] == [
        ["copy_h2d", "gpu0"],
        ["copy_h2d", "gpu1"],
        ["copy_d2h", "gpu0"],
        ["copy_d2h", "gpu1"],
    ]
    assert rows[1].startswith("copy_h2d gpu1 GB/s 23 50.1 0.1 50.2 → 1 ")
    assert rows[3].startswith("copy_d2h gpu1 GB/s 1 5 0 5 - ")
    assert rows[3].endswith("▄")


def test_one_that_was_named_tells_where_another_era_begins() -> None:
    shown = lines(trend_reports.machine(), one=True)
    assert "Nights of the named measurements" in shown
    assert not any("changed" in line for line in shown)
    assert shown[-1] == (
        "copy_d2h gpu0: another era from run-12 on: driver: 580.1 -> 590.2; time of burn: 20 "
        "s -> 30 s"
    )


def test_nothing_changed_and_nothing_there() -> None:
    found = trend_reports.machine()
    quiet = TrendReport("m", 1, found.shown[:1], found.rows[1:2])
    assert lines(quiet)[:3] == [
        "machine m: 1 night recorded",
        "from 2026-01-01 to 2026-01-01",
        "1 PASS",
    ]
    assert "Nothing changed by more than noise in the last week." in lines(quiet)
    few = TrendReport("m", 1, found.shown[:1], found.rows[3:])
    assert "There are too few nights to tell what changed." in lines(few)
    assert not any("Nothing changed" in line for line in lines(few))
    assert lines(TrendReport("m", 0, (), ())) == ["machine m: 0 nights recorded"]


def test_parts_that_were_replaced_are_told_by_their_serial_numbers() -> None:
    found = trend_reports.machine()
    first = found.rows[0]
    other = trend_reports.course("copy_h2d", "gpu0", {22: 50.0}, serial="GPU-c")
    rows = (first, type(first)(other, first.summary))
    shown = lines(TrendReport("m", 2, found.shown, rows), one=True)
    assert sum("gpu0 (GPU-a)" in line for line in shown) == 1
    assert sum("gpu0 (GPU-c)" in line for line in shown) == 1


def test_a_terminal_that_draws_nothing() -> None:
    assert [trend_words.arrow(trend, plain=True) for trend in ("up", "down", "level", None)] == [
        "^",
        "v",
        "=",
        "-",
    ]


@each("text", some(HOSTILE, 4))
def test_hostile_text_is_inert(text: str) -> None:
    for one in (True, False):
        terminal, out = piped()
        trend_terminal.show(trend_reports.hostile(text), terminal, one=one)
        assert not any(ord(letter) < 32 and letter != "\n" for letter in out.getvalue())
        assert "\x1b" not in out.getvalue()


def test_a_narrow_window() -> None:
    terminal, out = watched(60)
    trend_terminal.show(trend_reports.machine(), terminal)
    assert all(len(line) <= 60 for line in out.getvalue().splitlines() if "\x1b" not in line)


def test_another_language() -> None:
    terminal, out = piped()
    words = {
        "All measurements": "Alle Messungen",
        "machine {id}: {nights} recorded": "Maschine {id}: {nights}",
    }
    trend_terminal.show(trend_reports.machine(), terminal, translated.language(words))
    assert "Alle Messungen" in out.getvalue()
    assert "Maschine 0123abcd: 40 nights" in out.getvalue()


def test_a_change_from_nothing_is_told_in_its_unit() -> None:
    made = trend_reports.course("faults", "gpu0", {n: 0.0 if n < 12 else 3.0 for n in range(24)})
    row = trend.row(made, trend_reports.BOOK, virtual=False, facts=trend_reports.FACTS)
    assert trend_words.share(row) == "+3"
    assert trend_words.share(trend_reports.machine().rows[3]) == "-"
