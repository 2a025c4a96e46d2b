"""A comparison on the terminal, as its reader sees it."""

from __future__ import annotations

import compared_samples
import translated
from cases import each
from test_junit import HOSTILE
from test_terminal import piped, watched
from thoroughness import some

from acceptance.history.comparison import Comparison
from acceptance.reports import comparison_terminal


def lines(comparison: Comparison, *, everything: bool = False) -> list[str]:
    terminal, out = piped()
    comparison_terminal.show(comparison, terminal, everything=everything)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_runs_first_then_what_is_worse_then_the_rest_and_one_closing_line() -> None:
    shown = lines(compared_samples.one_machine())
    assert shown[:2] == ["A reports/one box PASS smoke 90 s", "B reports/two box FAIL smoke 7 min"]
    place = shown.index("Outcomes that are not the same")
    assert shown[place + 1 : place + 5] == [
        "check A B",
        "worse the whole run PASS FAIL",
        "worse vram.patterns pass fail",
        "due now cpu.gemm - pass",
    ]
    place = shown.index("Measurements outside the noise")
    assert shown[place + 1 : place + 6] == [
        "measurement component unit A B noise",
        "worse vram_miscompares gpu0 count 0 2 (+2) none",
        "worse copy_h2d gpu0 GB/s 200 150 (-25.0 %) ± 3 %",
        "changed cpu_temperature cpu \u00b0C 50 70 (+40.0 %) ± 8 \u00b0C",
        "better copy_h2d gpu1 GB/s 200 220 (+10.0 %) ± 3 %",
    ]
    assert any(line.startswith("noise of copy_h2d: recorded H200 runs") for line in shown)
    place = shown.index("What the runs do not have in common")
    assert shown[place + 1 : place + 4] == ["A B", "kernel 6.1 6.2", "gpu0 vbios 96 -"]
    assert shown[-2] == (
        "other measurements: 1 within the noise, 1 not due in all runs, 1 not compared "
        "(--all shows them)"
    )
    assert (
        shown[-1] == "WORSE than A: measurements: 2 worse, 1 better, 1 changed; outcomes: 2 worse"
    )


def test_everything_is_shown_when_asked_for() -> None:
    shown = lines(compared_samples.one_machine(), everything=True)
    assert "All measurements" in shown
    assert "within the noise copy_h2d gpu2 GB/s 200 200 ± 3 %" in shown
    assert "not compared burn_copied gpu0 GiB 1 1 -" in shown
    assert "due now cpu_gemm_f64 cpu GB/s - 110 -" in shown
    assert not any("--all" in line for line in shown)


def test_parts_that_moved_or_are_others_are_told_before_any_figure() -> None:
    shown = lines(compared_samples.moved())
    assert shown[2:5] == [
        "B: gpu1 is gpu0 of A in another slot (GPU-a), and compared with that",
        "B: gpu0 is gpu1 of A in another slot (GPU-b), and compared with that",
        "B: gpu2 is another part than in A (GPU-c there, GPU-x here)",
    ]
    assert shown[-1].startswith("NOTHING WORSE than A")


def test_another_machine_is_told_first() -> None:
    shown = lines(compared_samples.hostile("plain"))
    told = (
        "B: another machine than A: parts are compared by name where they have no serial "
        "number "
        "in common"
    )
    assert [line[:8] for line in shown[2:4]] == ["A: FAIL:", "B: FAIL:"]
    assert shown[4] == told


def test_a_mark_is_a_word_and_colour_only_adds_to_it() -> None:
    terminal, out = watched(120)
    comparison_terminal.show(compared_samples.one_machine(), terminal)
    worse = next(
        line for line in out.getvalue().splitlines() if "copy_h2d" in line and "150" in line
    )
    assert "worse" in worse
    assert "\x1b[1;31m" in worse


@each("width", [120, 60, 30])
def test_a_narrow_terminal_breaks_cells_and_loses_nothing(width: int) -> None:
    terminal, out = watched(width)
    comparison_terminal.show(compared_samples.one_machine(), terminal)
    letters = "".join(part for part in out.getvalue() if part.isalnum())
    assert "NOTHING" not in letters
    for word in ("150", "220", "WORSE"):
        assert word in letters


@each("text", some(HOSTILE, 4))
def test_hostile_text_stays_text(text: str) -> None:
    terminal, out = piped()
    comparison_terminal.show(compared_samples.hostile(text), terminal, everything=True)
    shown = out.getvalue()
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
    assert not {"\x7f", "\x9b"} & set(shown)
    assert len(shown) < 100_000
    shown.encode("utf-8")


def test_another_language() -> None:
    terminal, out = piped()
    words = translated.language(
        {"worse": "schlechter", "Measurements outside the noise": "Messwerte"}, "zh-CN"
    )
    comparison_terminal.show(compared_samples.one_machine(), terminal, language=words)
    shown = out.getvalue()
    assert "Messwerte" in shown
    assert "schlechter" in shown
    assert "copy_h2d" in shown
