from __future__ import annotations

import pytest
import terminal_run
from cases import each
from rich.cells import cell_len
from rich.console import Console
from thoroughness import some

from acceptance.core.language import ENGLISH
from acceptance.core.parts import Gpu, parse
from acceptance.core.record import CheckEnded, CheckStarted
from acceptance.reports.dashboard import Dashboard
from acceptance.reports.gauges import Gauges
from acceptance.reports.margins import Margins
from acceptance.reports.progress import RunProgress
from acceptance.reports.text import ASCII, UNICODE, Glyphs


class Run:
    """A run in the middle of its burn, and its dashboard."""

    def __init__(self, gpus: int, signs: Glyphs = UNICODE) -> None:
        self.now_s = 0.0
        self.remaining = RunProgress(terminal_run.plan(gpus), lambda: self.now_s)
        self.gauges = Gauges(
            [Gpu(n) for n in range(gpus)],
            {parse(terminal_run.address(n)): Gpu(n) for n in range(gpus)},
        )
        self.margins = Margins(terminal_run.plan(gpus))
        for body in terminal_run.live(gpus):
            self.gauges.entry(terminal_run.entry(body))
            self.margins.entry(terminal_run.entry(body))
            if isinstance(body, CheckStarted):
                self.remaining.started(body.check)
            elif isinstance(body, CheckEnded):
                self.now_s += body.seconds
                self.remaining.ended(body.check, body.outcome)
        self.now_s += 190.0
        self.board = Dashboard(self.remaining, self.gauges, self.margins, ENGLISH, signs)

    def drawn(self, width: int, height: int) -> list[str]:
        console = Console(width=width, height=height, color_system=None)
        with console.capture() as capture:
            console.print(self.board)
        return [line.rstrip() for line in capture.get().splitlines()]


def test_what_is_running_every_gpu_the_machine_and_what_came_out() -> None:
    lines = Run(2).drawn(80, 24)
    assert lines[0] == ""
    assert "under load: together.burn  " in lines[1]
    assert lines[1].endswith(" 4 min \u00b7 about 105 s left")
    assert lines[2] == "  title of together.burn"
    assert [line.split()[0] for line in lines[3:6]] == ["GPU", "gpu0", "gpu1"]
    assert lines[6:8] == [
        "nearest to their limits",
        "FAIL copy_h2d gpu0 12 GB/s, 40 % below its limit",
    ]
    assert (
        lines[8]
        == "CPU 71 \u00b0C \u00b7 CPU clock 4950 MHz \u00b7 system load 32.1 \u00b7 RAM free 18 GiB"
    )
    assert lines[9:] == ["2 of 4 checks done \u00b7 1 passed \u00b7 1 failed"]


@each(
    "gpus, height, lines_each",
    [
        *((*fits, True) for fits in ((0, 24), (2, 6), (8, 12), (16, 20), (16, 24))),
        *((*too_many, False) for too_many in ((2, 5), (8, 10), (16, 19))),
    ],
)
def test_gpus_are_a_line_each_where_they_fit_and_are_summed_up_where_not(
    gpus: int, height: int, lines_each: bool
) -> None:
    lines = Run(gpus).drawn(80, height)
    told = [line.split()[0] for line in lines if line.startswith("gpu")]
    assert told == [str(Gpu(n)) for n in range(gpus)] or not lines_each
    summed_up = f"{gpus} GPUs \u00b7 errors: 1 (gpu1) \u00b7 hottest gpu1 86 \u00b0C"
    assert (summed_up in "\n".join(lines)) is not lines_each
    assert len(lines) <= height - 2
    assert gpus or any(line.startswith("CPU 71") for line in lines)


@each("signs", [UNICODE, ASCII])
@each("gpus", [0, 1, 8, 64])
def test_it_fits_whatever_the_window(gpus: int, signs: Glyphs) -> None:
    """Each size raises by itself where something is wrong; what is drawn says nothing then."""
    run, bar = Run(gpus, signs), str.maketrans("", "", "\u2501\u2578\u257a\u2026")
    for width in some((1, 2, 3, 5, 10, 20, 39, 40, 71, 72, 80, 200), 7):
        for height in some((1, 2, 3, 5, 10, 24, 60), 4):
            run.board.lines(width, height)
            lines = run.drawn(width, height)
            assert 0 < len(lines) <= max(1, height - 2) or width < 10
            assert max(map(cell_len, lines)) <= width
            assert signs is UNICODE or "".join(lines).translate(bar).isascii()


def test_between_two_checks_and_where_the_picture_has_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(1)
    run.remaining.ended("together.burn", "error")
    lines = run.drawn(80, 24)
    assert "between two checks" in lines[1]
    assert lines[-1] == "3 of 4 checks done \u00b7 1 passed \u00b7 1 failed \u00b7 1 with errors"
    monkeypatch.setattr(run.gauges, "gauges", lambda: 1 / 0)
    assert run.drawn(80, 24) == [], "it is no fault of the run"
