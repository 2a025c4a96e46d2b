"""What a history costs: 10,000 nights of 200 measurements (27 years), asked what a nightly run and
a person ask.

    python benchmarks/history.py [--nights 10000] [--measurements 200]

The nights are made up, and written in bulk. Aims: 100 ms each question, 2 s for all that one
night's judgement is held against.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from acceptance import resources
from acceptance.core.parts import Gpu
from acceptance.history import drift_rules, export, location, noise, queries, retention
from acceptance.history.era import Era
from acceptance.history.night import Night, NightMeasurement, SeriesKey
from acceptance.history.reference_builder import build_reference
from acceptance.history.store import Store

QUESTION_S, JUDGEMENT_S = 0.1, 2.0
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


def lines(count: int) -> list[SeriesKey]:
    """So many measurements, as those of a board of eight cards."""
    return [
        SeriesKey(
            "gpu.load",
            f"{NAMES[n % 8]}_{n // 64}",
            Gpu(n // 8 % 8),
            UNITS[n % 8],
            f"GPU-{n // 8 % 8:036d}",
        )
        for n in range(count)
    ]


def night(number: int, measured: Sequence[SeriesKey]) -> Night:
    """A night whose every measurement is 100."""
    figures = tuple(NightMeasurement(line, 100.0) for line in measured)
    return Night(
        f"2026-01-01T02-00-00Z-{number:05}",
        "machine-1",
        "2026-01-01T02:00:00.000Z",
        FIRST_DAY + number,
        500.0,
        "nightly",
        "full",
        "PASS",
        False,
        False,
        None,
        ERA,
        {Gpu(0): "GPU-0"},
        figures,
    )


def build(path: Path, nights: int, measured: Sequence[SeriesKey]) -> None:
    """Write the nights: the first as a run adds it, the rest by measurement, as
    they lie in the file.
    """
    drawn = random.Random(9)
    with Store.open(path) as store:
        store.add(night(1, measured))
        with store.transaction() as connection:
            columns = (
                "run_id, folder, utc, day, seconds, profile, scope, verdict, virtual, "
                "postponed, "
                "apart, era, parts"
            )
            connection.executemany(
                f"INSERT INTO night ({columns}) SELECT ?, ?, utc, ?, seconds, profile, scope, "
                "verdict, 0, 0, NULL, era, parts"
                " FROM night WHERE seq = 1",
                [
                    (f"2026-01-01T02-00-00Z-{n:05}", f"2026-01-01T02-00-00Z-{n:05}", FIRST_DAY + n)
                    for n in range(2, nights + 1)
                ],
            )
            for line in range(1, len(measured) + 1):
                rows = ((line, n, drawn.gauss(100.0, 0.5), None, 0) for n in range(2, nights + 1))
                connection.executemany("INSERT INTO figure VALUES (?, ?, ?, ?, ?)", rows)


def timed(what: str, aim_s: float, ask: Callable[[], object]) -> None:
    """Ask three times; the quickest is told, beside the aim."""
    took = []
    for _ in range(3):
        began, cpu = time.monotonic(), time.process_time()
        ask()
        took.append((time.monotonic() - began, time.process_time() - cpu))
    wall_s, cpu_s = min(took)
    print(
        f"  {what:<58} {1000 * wall_s:7.1f} ms, {wall_s / aim_s:.2f} of {1000 * aim_s:.0f} "
        f"ms ({1000 * cpu_s:.1f} ms of processor)"
    )


def judgement(store: Store) -> None:
    """Everything that tonight's values are held against, from the store to a `Past` each."""
    book = drift_rules.read(
        resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
    )
    nights = book.sheet.nights
    found = queries.night_values(store, ERA.key, first=nights.recent, last=nights.known)
    today = FIRST_DAY + 20_000
    for part, looks in found.items():
        rule = book.rule(part.measurement, part.unit, None, virtual=False)
        if rule is not None:
            build_reference(looks, 100.0, rule=rule, today=today, baseline_day=FIRST_DAY)


def main() -> int:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description="What a history costs.")
    parser.add_argument("--nights", type=int, default=10_000)
    parser.add_argument("--measurements", type=int, default=200)
    options = parser.parse_args()
    measured = lines(options.measurements)
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as scratch:
        path = location.database(Path(scratch), "machine-1")
        began = time.monotonic()
        build(path, options.nights, measured)
        held = path.stat().st_size
        rows = options.nights * options.measurements
        print(
            f"history of {options.nights} nights x {options.measurements} measurements: "
            f"{held / 1e6:.1f} MB, {held / rows:.1f} B a value"
        )
        print(f"  (made in {time.monotonic() - began:.1f} s)")
        one = measured[0]
        with Store.open(path) as store:
            timed(
                "one measurement's series, every night",
                QUESTION_S,
                lambda: queries.trend_series(store, one.measurement, str(one.component)),
            )
            timed(
                "the overview: every measurement, the last 120 nights",
                QUESTION_S,
                lambda: queries.trend_series(store, last=export.NIGHTS),
            )
            timed(
                "looks: every measurement, the first 28 and last 200 nights",
                QUESTION_S,
                lambda: queries.night_values(store, ERA.key, first=28, last=200),
            )
            timed(
                "looks: every measurement, the last 120 nights",
                QUESTION_S,
                lambda: queries.night_values(store, ERA.key, first=0, last=120),
            )
            timed(
                "all that one night is held against, remembered",
                JUDGEMENT_S,
                lambda: judgement(store),
            )
            timed("the structure of the whole file checked", 2.0, store.check)
            counter = iter(range(options.nights + 1, options.nights + 9))
            timed("a night added", QUESTION_S, lambda: store.add(night(next(counter), measured)))
            began = time.monotonic()
            found = retention.prune(store, Path(scratch), "machine-1", today=1e6, keep_days=365.0)
            took = time.monotonic() - began
            print(
                f"  all but a year pruned: {found.nights} nights in {took:.1f} s, "
                f"{path.stat().st_size / 1e6:.1f} MB left"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"  peak memory {peak / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
