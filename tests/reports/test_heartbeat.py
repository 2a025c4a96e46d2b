from __future__ import annotations

import re

from cases import each
from test_dashboard import Run

from acceptance.core.language import ENGLISH
from acceptance.reports.heartbeat import EVERY_S, Heartbeat
from acceptance.reports.text import ASCII


class Log:
    """The lines of a run that nobody watches, by its clock."""

    def __init__(self, gpus: int) -> None:
        self.run = Run(gpus)
        self.calm = Heartbeat(
            self.run.remaining, self.run.gauges, ENGLISH, ASCII, lambda: self.run.now_s
        )

    def after(self, seconds: float) -> str | None:
        self.run.now_s += seconds
        return self.calm.line()


@each(
    "gpus, end",
    [
        (
            2,
            "gpu0 448 W, 64 C, 2520 MHz, power limit, 640 TFLOP/s bf16, turn 3 of 60; "
            "gpu1 448 W, 86 C, 1800 MHz, too hot, 641 TFLOP/s bf16, turn 3 of 60, errors: 1",
        ),
        (
            8,
            "8 GPUs; errors: 1 (gpu1); hottest gpu1 86 C; slowest gpu1 1410 MHz; too hot: gpu1, "
            "gpu3; 5548 W in all",
        ),
        (0, "CPU 71 C; CPU clock 4950 MHz; system load 32.1; RAM free 18 GiB"),
    ],
    told=["a few GPUs", "many are summed up", "without GPUs the machine"],
)
def test_a_line_a_minute(gpus: int, end: str) -> None:
    log = Log(gpus)
    assert log.after(EVERY_S - 1) is None
    start = "...    together.burn                  250 s  about 45 s left; "
    assert log.after(1) == f"{start}{end}"
    assert log.after(EVERY_S - 1) is None
    assert log.after(1) is not None


def test_nothing_is_said_after_something_was_and_between_checks() -> None:
    log = Log(2)
    log.after(EVERY_S - 1)
    log.calm.reset()
    assert log.after(EVERY_S - 1) is None
    log.run.remaining.ended("together.burn", "pass")
    assert log.after(EVERY_S) is None


def test_after_an_hour_a_line_in_ten_minutes() -> None:
    log = Log(2)
    lines = [log.after(10.0) for _ in range(6 * 60 * 3)]
    told = [
        float(found[1]) for line in lines if line and (found := re.search(r"(\d+) s  about", line))
    ]
    assert told[:3] == [250.0, 310.0, 370.0]
    assert len([seconds for seconds in told if seconds < 3600]) in (56, 57)
    assert {round(b - a) for a, b in zip(told[-5:], told[-4:], strict=False)} == {600}
