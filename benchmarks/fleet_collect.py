"""What a fleet costs: 10,000 verdicts of 400 values collected, kept, compared, and asked.

    python benchmarks/fleet_collect.py [--machines 10000] [--values 400] [--nights 12]

The verdicts are made up and packed, as a fleet copies them. Each step is a process of its own, so
that its peak memory is its own too. Aim: median and MAD of every measurement in 1 s and 300 MB.

One measurement is asked of a year of nights. Of these, --nights have values of their own, and the
others are links to them: 365 take 11 GB on the disk and half an hour to write.
"""

from __future__ import annotations

import argparse
import gzip
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/fleet")]

import msgspec
import numpy as np
from fleet_verdicts import verdict

from acceptance import resources
from acceptance.fleet import comparison, night, parquet, verdicts
from acceptance.history import noise

ASK_S, ASK_MB = 1.0, 300.0
STEPS = ("collect", "compare", "ask", "make-year", "ask-year")
FRESH = timedelta(hours=30)
QUERY = (
    "SELECT check_id, measurement, component, median(value), mad(value) FROM read_parquet(?) "
    "WHERE measurement IS NOT NULL GROUP BY ALL"
)
MEASUREMENT = "measurement_200"
OF_A_YEAR = (
    "SELECT filename, median(value), mad(value) FROM read_parquet(?, filename = true) "
    f"WHERE measurement = '{MEASUREMENT}' GROUP BY ALL"
)
YEAR, FIRST = 365, date(2025, 11, 25)


def fill(fleet: Path, machines: int, values: int) -> None:
    """Write a packed verdict of each machine."""
    drawn = random.Random(9)
    run = f"{datetime.now(UTC) - timedelta(hours=3):%Y-%m-%dT%H-%M-%SZ}-0001"
    for number in range(machines):
        name = f"gpu-{number:05}"
        measured = {f"measurement_{n}": drawn.gauss(100.0, 1.0) for n in range(values)}
        file = verdict("PASS", run, measured, serial=name, machine_id=name)
        path = fleet / name / "verdict.json.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(msgspec.json.encode(file), 1))


class Clock:
    """Wall and processor time from its making on."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.monotonic(), time.process_time()

    def print(self, what: str, more: str = "") -> None:
        """Print both, and the peak memory of the process so far."""
        wall, cpu = time.monotonic() - self.wall, time.process_time() - self.cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        spent = f"{wall:6.2f} s ({cpu:.2f} s of processor), peak {peak:.0f} MB"
        print(f"  {what:<44} {spent}{more}", flush=True)


def collect(fleet: Path, out: Path) -> None:
    """Read, judge and keep the night; then collect it again."""
    now, clock = datetime.now(UTC), Clock()
    found = verdicts.collect([fleet], now, now - FRESH)
    clock.print("verdicts read")
    clock = Clock()
    judged = night.judge(found, None, now, FRESH)
    tables = night.tables(found, judged, {}, now)
    clock.print("the night judged, its table made")
    for what in ("the night kept", "the night merged with itself, and kept"):
        clock = Clock()
        paths = parquet.write(out, tables)
        size = sum(path.stat().st_size for path in paths)
        clock.print(what, f", {size / 1e6:.1f} MB on the disk")


def compare(out: Path) -> None:
    """Compare the machines of the night with those of the night before, as collect does."""
    (path,) = out.glob("*.parquet")
    clock = Clock()
    table = parquet.read(path)
    clock.print("a kept night read")
    book = noise.read(resources.locate("noise.toml"))
    clock = Clock()
    found = comparison.compare({"2026-11-25": table, "2026-11-26": table}, book)
    clock.print("machines of two nights compared", f", {found.compared} machines")


def ask(out: Path) -> None:
    """Ask for median and MAD of every measurement."""
    import duckdb

    (path,) = out.glob("*.parquet")
    aim = f", aim {ASK_S:.0f} s and {ASK_MB:.0f} MB"
    for what in ("median and MAD of all", "the same again"):
        clock = Clock()
        with duckdb.connect(config={"threads": "2"}) as connection:
            connection.execute(QUERY, [str(path)]).fetchall()
        clock.print(what, aim)


def _path_of(year: Path, number: int) -> Path:
    return parquet.path_of(year, f"{FIRST + timedelta(days=number):%Y-%m-%d}")


def make_year(out: Path, nights: int) -> None:
    """Write some nights with values of their own, and link the others of a year to them."""
    (path,) = out.glob("*.parquet")
    table, year, drawn = parquet.read(path), out / "year", np.random.default_rng(10)
    asked = [one.measurement for one in table.series].index(MEASUREMENT)
    began, medians = time.monotonic(), []
    for number in range(nights):
        values = table.values * drawn.normal(1.0, 0.01, table.values.shape)
        medians.append(float(np.median(values[:, asked])))
        night_ = _path_of(year, number).stem.removeprefix("night-")
        parquet.write(year, {night_: replace(table, values=values)})
    for number in range(nights, YEAR):
        _path_of(year, number).hardlink_to(_path_of(year, number % nights))
    expected = {_path_of(year, number).name: medians[number % nights] for number in range(YEAR)}
    (out / "medians").write_bytes(msgspec.json.encode(expected))
    spent = time.monotonic() - began
    print(f"  (a year made in {spent:.1f} s, {nights} nights of it with values of their own)")


def ask_year(out: Path) -> None:
    """Ask for one measurement in every night of a year, and hold it against what was drawn."""
    import duckdb

    expected = msgspec.json.decode((out / "medians").read_bytes(), type=dict[str, float])
    clock = Clock()
    with duckdb.connect(config={"threads": "2"}) as connection:
        nights = connection.execute(OF_A_YEAR, [str(out / "year/*.parquet")]).fetchall()
    clock.print("one measurement of a year, night by night")
    if {Path(name).name: median for name, median, _ in nights} != expected:
        raise SystemExit("the medians of the year are not those of the values that were drawn")


def main() -> int:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description="What a night of a fleet costs.")
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--values", type=int, default=400)
    parser.add_argument("--nights", type=int, default=12, choices=range(1, YEAR + 1), metavar="N")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "collect":
        collect(options.scratch / "fleet", options.scratch / "nights")
    elif options.step == "compare":
        compare(options.scratch / "nights")
    elif options.step == "ask":
        ask(options.scratch / "nights")
    elif options.step == "make-year":
        make_year(options.scratch / "nights", options.nights)
    elif options.step == "ask-year":
        ask_year(options.scratch / "nights")
    else:
        with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as scratch:
            print(f"night of {options.machines} machines x {options.values} values", flush=True)
            began = time.monotonic()
            fill(Path(scratch) / "fleet", options.machines, options.values)
            print(f"  (made in {time.monotonic() - began:.1f} s)", flush=True)
            for step in STEPS:
                argv = [sys.executable, __file__, "--step", step, "--scratch", scratch]
                argv += ["--nights", f"{options.nights}"]
                subprocess.run(argv, check=True)
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
