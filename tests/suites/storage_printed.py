"""What fio prints, made of its own command line; also the program `fio` of the tests, which prints
that (`python storage_printed.py STATE fio ...`).

It needs nothing but Python's own modules, so that it starts as fast as they do.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GB = 1_000_000_000
RATES = {"write": 2 * GB, "verify": 6 * GB, "read": 6 * GB, "randread": 3 * GB, "randwrite": GB}
# In nanoseconds, by fio's own names.
LATENCIES = {
    "min": 1000,
    "max": 900_000,
    "mean": 5000.0,
    "percentile": {
        "50.000000": 4000,
        "99.000000": 80_000,
        "99.900000": 300_000,
        "99.990000": 600_000,
    },
}


def options(argv: Sequence[str]) -> dict[str, str]:
    """The options of fio's command line."""
    pairs = (word.removeprefix("--").partition("=") for word in argv[1:])
    return {name: value for name, _, value in pairs}


def moved(argv: Sequence[str], rate: float) -> tuple[int, int]:
    """The bytes of a job at so many a second, and its milliseconds."""
    told = options(argv)
    block = int(told["bs"])
    if "time_based" in told:
        seconds = int(told["runtime"])
        return int(rate * seconds) // block * block, 1000 * seconds
    size = int(told.get("io_size", told["size"])) * int(told["numjobs"])
    return size, max(1, round(size / rate * 1000))


def fio_printed(argv: Sequence[str], rate: float | None = None) -> str:
    """The JSON of a job that ran whole, at so many bytes a second."""
    told = options(argv)
    size, took_ms = moved(argv, RATES[told["name"]] if rate is None else rate)
    count = size // int(told["bs"])
    way = "write" if "write" in told["rw"] else "read"
    side = {
        "io_bytes": size,
        "io_kbytes": size // 1024,
        "bw_bytes": size * 1000 // took_ms,
        "bw": size * 1000 // took_ms // 1024,
        "iops": count * 1000 / took_ms,
        "runtime": took_ms,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "clat_ns": LATENCIES,
    }
    job = {"jobname": told["name"], "error": 0, "job options": told, way: side}
    return json.dumps({"fio version": "fio-3.33", "global options": {}, "jobs": [job]}, indent=1)


# --- the program ---


def grow(stat: Path, way: str, size: int) -> None:
    """Count bytes as the kernel does."""
    numbers = [int(one) for one in stat.read_text().split()]
    numbers[6 if way == "write" else 2] += size // 512
    stat.write_text(" ".join(map(str, numbers)) + "\n")


def say(answer: Sequence[Any]) -> int:
    """Print what is to be printed on standard output and error; gives the exit code."""
    out, error, code = answer
    sys.stdout.write(out)
    sys.stderr.write(error)
    return int(code)


def answered(told: Mapping[str, Any], kind: str, file: str = "") -> Sequence[Any] | None:
    """What is printed in the place of the figures of a kind of job on a file; None for these."""
    for due, start, answer in told["answers"]:
        if due == kind and file.startswith(start):
            return list(answer)
    return None


def main(state: Path, argv: Sequence[str]) -> int:
    """Be fio, as the file `state` says for the kind of job.

    It is a JSON object: `stats` has the files of the kernel's counters by the beginning of the
    names of fio's files; `rates` are bytes a second by the beginning of the name and the number of
    the run on that file; `answers` has what is printed in the place of the figures: kind, beginning
    of the file's name, and standard output, standard error and exit code; `seconds` is how long
    each takes.
    """
    told: Mapping[str, Any] = json.loads(state.read_text())
    time.sleep(told.get("seconds", 0.0))
    words = options(argv)
    kind, file = words["name"], words["filename"]
    with state.with_suffix(".saw").open("a") as saw:
        saw.write(json.dumps(list(argv)) + "\n")
    if answer := answered(told, kind, file):
        return say(answer)
    ran = [json.loads(line) for line in state.with_suffix(".saw").read_text().splitlines()]
    count = sum(options(one)["filename"] == file for one in ran)
    own: Sequence[float] = next(
        (rates for start, rates in told["rates"].items() if file.startswith(start)), []
    )
    rate = own[count - 1] if count <= len(own) else RATES[kind]
    for start, stat in told["stats"].items():
        if file.startswith(start):
            grow(Path(stat), "write" if "write" in words["rw"] else "read", moved(argv, rate)[0])
    return say((fio_printed(argv, rate), "", 0))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
