"""The report of a comparison, as its reader sees it."""

from __future__ import annotations

import compared_samples
import drawn
import pages
from cases import each
from hostile import TEXTS
from thoroughness import some

from acceptance.history.comparison import Comparison
from acceptance.reports.comparison_report import report

WORSE = "WORSE than A: measurements: 2 worse, 1 better, 1 changed; outcomes: 2 worse"
OUTSIDE = [
    ("worse vram_miscompares", "vram.patterns", "gpu0 count 0 2 (+2) none"),
    ("worse copy_h2d", "link.copy", "gpu0 GB/s 200 150 (-25.0 %) ± 3 %"),
    ("changed cpu_temperature", "watch.heat", "cpu \u00b0C 50 70 (+40.0 %) ± 8 \u00b0C"),
    ("better copy_h2d", "link.copy", "gpu1 GB/s 200 220 (+10.0 %) ± 3 %"),
]


def below(shown: list[str], heading: str, count: int) -> list[str]:
    """The lines below a heading and the heads of its table."""
    place = shown.index(heading) + 2
    return shown[place : place + count]


def short(comparison: Comparison) -> list[str]:
    return drawn.lines(report(comparison, everything=False))


def test_runs_first_then_what_is_worse_then_the_rest_and_one_closing_line() -> None:
    shown = short(compared_samples.one_machine())
    for heading, rows in (
        ("The runs", ["A reports/one box PASS smoke 90 s", "B reports/two box FAIL smoke 7 min"]),
        (
            "Outcomes that are not the same",
            [
                "worse the whole run PASS FAIL",
                "worse vram.patterns pass fail",
                "due now cpu.gemm - pass",
            ],
        ),
        ("Measurements outside the noise", [f"{what} {values}" for what, _, values in OUTSIDE]),
        ("What the runs do not have in common", ["machine kernel 6.1 6.2", "gpu0 vbios 96 -"]),
    ):
        assert below(shown, heading, len(rows)) == rows
    assert any(line.startswith("noise of copy_h2d: ") for line in shown)
    rest = "other measurements: 1 within the noise, 1 not due in all runs, 1 not compared"
    assert shown[-2:] == [f"{rest} (--all shows them)", WORSE]
    everything = drawn.lines(report(compared_samples.one_machine()))
    assert below(everything, "All other measurements", 3) == [
        "due now cpu_gemm_f64 cpu GB/s - 110 -",
        "not compared burn_copied gpu0 GiB 1 1 -",
        "within the noise copy_h2d gpu2 GB/s 200 200 ± 3 %",
    ]
    assert not any("--all" in line for line in everything)
    coloured = drawn.window(report(compared_samples.one_machine()), 120).splitlines()
    (worse,) = [line for line in coloured if "copy_h2d" in line and "150" in line]
    assert "\x1b[1;31m" in worse
    assert "worse" in worse, "a mark is a word, and colour only adds to it"


def test_a_page_has_the_checks_and_why_something_is_not_compared() -> None:
    found = report(compared_samples.one_machine())
    assert pages.words(drawn.page(found).find(".//h1")) == WORSE
    outside = [" ".join(row) for row in OUTSIDE]
    assert drawn.rows(found, "Measurements outside the noise") == outside
    (copied,) = [row for row in drawn.rows(found, "All other measurements") if "burn_copied" in row]
    assert "how much was done" in copied


def test_parts_that_moved_or_are_others_are_told_before_any_figure() -> None:
    found = report(compared_samples.moved())
    shown = drawn.lines(found)
    assert shown[4:7] == [
        "B: gpu1 is gpu0 of A in another slot (GPU-a), and compared with that",
        "B: gpu0 is gpu1 of A in another slot (GPU-b), and compared with that",
        "B: gpu2 is another part than in A (GPU-c there, GPU-x here)",
    ]
    assert shown[-1].startswith("NOTHING WORSE than A")
    titles = [section.title for section in found.sections]
    assert titles == ["The runs", "All other measurements", ""]
    other = short(compared_samples.hostile("plain"))[4:7]
    starts = ("A: FAIL:", "B: FAIL:", "B: another machine than A: ")
    assert all(line.startswith(start) for line, start in zip(other, starts, strict=True))


@each("text", some(TEXTS, 2))
def test_hostile_text_is_harmless(text: str) -> None:
    drawn.assert_harmless(report(compared_samples.hostile(text)))
