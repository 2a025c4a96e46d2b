"""What a history costs: its night files read, and drawn as `rigproof history` does.

    python benchmarks/history.py

Goals: a year of nights of eight GPUs (839 measurements) in 0.5 s, 10,000 nights of 200 measurements
(27 years) in 5 s. The nights are made up.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from acceptance import resources
from acceptance.core.parts import Gpu
from acceptance.history import export, night_file, nights, noise, queries
from acceptance.history.night import Era, Night, NightMeasurement, SeriesKey
from acceptance.history.reference_builder import build_reference
from acceptance.reports import report_terminal, trend_report
from acceptance.reports.terminal import Terminal

MACHINE = "machine-1"
FIRST_DAY = 20_000.0
NAMES = (
    "gemm_bf16",
    "gemm_f64",
    "copy_h2d",
    "copy_d2h",
    "p2p_write",
    "memory_read",
    "gpu_temperature",
    "burn_rate",
)
UNITS = ("TFLOP/s", "TFLOP/s", "GB/s", "GB/s", "GB/s", "GB/s", "degC", "TFLOP/s")
ERA = Era((("driver", "580.159.04"), ("profile", "nightly"), ("station", "docker")))
Result = TypeVar("Result")


def series(count: int) -> tuple[SeriesKey, ...]:
    """So many measurements, as those of a board of eight cards."""
    return tuple(
        SeriesKey(
            "gpu.load",
            f"{NAMES[n % 8]}_{n // 64}",
            Gpu(n // 8 % 8),
            UNITS[n % 8],
            f"GPU-{n // 8 % 8:036d}",
        )
        for n in range(count)
    )


def night(number: int, measured: tuple[SeriesKey, ...], drawn: random.Random) -> Night:
    """A night whose measurements scatter around 100."""
    return Night(
        run_id=f"2026-01-01T02-00-00Z-{number:05}",
        machine_id=MACHINE,
        utc="2026-01-01T02:00:00.000Z",
        day=FIRST_DAY + number,
        seconds=500.0,
        profile="nightly",
        scope="full",
        verdict="PASS",
        virtual=False,
        postponed=False,
        apart=None,
        era=ERA,
        series=measured,
        figures=tuple(NightMeasurement(drawn.gauss(100.0, 0.5)) for _ in measured),
        number=number,
    )


def timed(what: str, ask: Callable[[], Result], goal_s: float | None = None) -> Result:
    """Ask three times; the quickest is printed, and its processor time beside the goal."""
    took = []
    for _ in range(3):
        began, cpu = time.monotonic(), time.process_time()
        answer = ask()
        took.append((time.process_time() - cpu, time.monotonic() - began))
    cpu_s, wall_s = min(took)
    beside = f", {cpu_s / goal_s:.2f} of {goal_s:g} s" if goal_s else ""
    print(f"  {what:<40} {wall_s:6.3f} s ({cpu_s:.3f} s of processor{beside})")
    return answer


def draw(recorded: tuple[Night, ...], last: int) -> str:
    """The nights as `rigproof history --nights` draws them on a terminal."""
    text = io.StringIO()
    report = export.trend_report(
        recorded, Path("reports"), MACHINE, noise.read(resources.locate("noise.toml")), last=last
    )
    screen = Terminal(Console(file=text, width=120))
    report_terminal.show(trend_report.report(report, drawn=False), screen)
    return text.getvalue()


def judge(recorded: tuple[Night, ...]) -> None:
    """Everything that tonight's values are held against."""
    book = noise.read_rules(
        resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
    )
    rules = book.sheet.nights
    found = queries.night_values(recorded, ERA, first=rules.recent, last=rules.known)
    for part, values in found.items():
        rule = book.rule(part.measurement, part.unit, None, virtual=False)
        if rule is not None:
            build_reference(
                values, 100.0, rule=rule, today=FIRST_DAY + 20_000, baseline_day=FIRST_DAY
            )


def measure(count: int, measurements: int, goal_s: float) -> None:
    """Print what so many nights cost."""
    drawn, measured = random.Random(9), series(measurements)
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as scratch:
        out = Path(scratch)
        folder = night_file.folder(out, MACHINE)
        folder.mkdir(parents=True)
        for number in range(1, count + 1):
            made = night(number, measured, drawn)
            (folder / night_file.name(made.run_id)).write_bytes(night_file.encode(made))
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{count} nights x {measurements} measurements: {size / 1e6:.1f} MB")
        recorded, _ = timed("read", lambda: nights.read(out, MACHINE))
        timed("read and drawn", lambda: draw(nights.read(out, MACHINE)[0], count), goal_s)
        timed("all that one night is compared with", lambda: judge(recorded))
        timed("a night added", lambda: night_file.write(out, MACHINE, [recorded[-1]]))


def main() -> int:
    """Print a line for each question."""
    argparse.ArgumentParser(description="What a history costs.").parse_args()
    measure(365, 839, 0.5)
    measure(10_000, 200, 5.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory {peak / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
