"""The memory load: all cores copy and add arrays at memory speed, and every result is verified.

    python -m acceptance.loads memory_bandwidth seconds=10 cores='{"all": [[0], [1]]}'
        llc_bytes=33554432

One process for each physical core, pinned to the core's first logical CPU, has three arrays of
float64 that it wrote first itself. Each of the three, summed over all workers, is at least four
times the last-level caches together (`llc_bytes`, all sockets; STREAM's rule), so the caches
cannot hold them. All workers begin each repeat at one moment. A repeat is one or more passes over
the whole arrays, and lasts at least a tenth of a second. Copy (a = b) and triad (a = b + 3 c) take
turns until the time is over, with at least three counted repeats each. After every repeat, outside
the timed part, the whole result is verified bit for bit (triad against integer arithmetic) and then
spoiled in places, so that a repeat that did nothing is found.

The measurement is bytes / seconds from the first worker's start to the last one's end, median of
the repeats. Bytes are counted as STREAM counts them: 16 an element for copy (one read, one
written), 24 for triad (two read, one written). Not counted is the cache line that a core reads
before it overwrites part of it: the C library's copy mostly avoids that read, triad does not, so
triad may move a third more than it is credited with. Not measured are other hardware threads, the
remote memory of another socket, and latency.

It ends with one sentence on standard error and no end line when a worker dies or stops answering,
or the arrays cannot have their size.
"""

from __future__ import annotations

import math
import re
from multiprocessing.connection import Connection
from pathlib import Path

from acceptance.core.parts import MEMORY
from acceptance.loads.cpu.contract import BANDWIDTH, MemoryBandwidth
from acceptance.loads.cpu.cores import Core, cores_of, spent, working
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.rate_tally import RateTally

BYTES_AN_ELEMENT = {"copy": 16, "triad": 24}
# https://www.cs.virginia.edu/stream/ref.html: each array at least 4 times the last-level caches
CACHE_FACTOR = 4
# minimum bytes of an array: a pass takes milliseconds even on one fast core
_SMALLEST_BYTES = 16 * 2**20
_SHARE = 0.5  # share of the available memory for all arrays of all workers
_REPEAT_S = 0.1  # minimum; an uneven start of 0.1 ms is then a thousandth
_COUNTED = 3


def available_bytes(root: Path = Path("/")) -> int:
    """Memory available without swapping, as the kernel estimates it (MemAvailable).

    Raises LoadError where the kernel does not report it.
    """
    text = (root / "proc/meminfo").read_text()
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    if match is None:
        raise LoadError(
            "/proc/meminfo has no MemAvailable line: this load needs Linux 3.14 or later"
        )
    return int(match[1]) * 1024


def elements(workers: int, llc_bytes: int, megabytes_per_core: int | None, available: int) -> int:
    """Elements of each array of each worker.

    The arrays exceed the caches and fit into memory; raises LoadError where both are impossible.
    """
    least = math.ceil(CACHE_FACTOR * llc_bytes / workers)  # bytes of one array of one worker
    array = (
        max(_SMALLEST_BYTES, least)
        if megabytes_per_core is None
        else megabytes_per_core * 10**6 // 3
    )
    if array < least:
        needed = math.ceil(3 * least / 10**6)
        raise LoadError(
            f"arrays of {megabytes_per_core} MB a core fit into the cache: give "
            f"megabytes_per_core={needed} or more"
        )
    count = math.ceil(array / 8)
    if 24 * count * workers > _SHARE * available:
        raise LoadError(
            f"the arrays need {24 * count * workers / 2**30:.2f} GiB, more than half of the "
            f"{available / 2**30:.2f} GiB that are"
            " available: free memory"
        )
    return count


def run(ask: MemoryBandwidth, output: Output) -> None:
    """Run the workers from fork to the last reading. Raises LoadError."""
    cores = cores_of(ask.cores)
    count = elements(len(cores), ask.llc_bytes, ask.megabytes_per_core, available_bytes())
    output.hello(ask.load, {**ask.parameters(), "array_bytes": 8 * count})

    def body(core: Core, connection: Connection, fault: str | None) -> None:
        from acceptance.loads.cpu import (
            # imported here, so that the pinned worker loads numpy and the parent never does
            memory_worker,
        )

        memory_worker.work(core, connection, count, fault)

    tallies = {kernel: RateTally() for kernel in BYTES_AN_ELEMENT}
    with working(ask, output, cores, body) as workers:

        def repeat(kernel: str, passes: int) -> float:
            """One repeat on all cores; returns its seconds."""
            done = workers.do(lambda moment: (moment, kernel, passes)).values()
            tallies[kernel].wrong += sum(one.wrong for one in done)
            return spent(done)

        workers.collect("ready")
        passes = {kernel: math.ceil(_REPEAT_S / max(repeat(kernel, 1), 1e-6)) for kernel in tallies}
        for _ in workers.rounds(_COUNTED):
            for kernel, tally in tallies.items():
                moved = BYTES_AN_ELEMENT[kernel] * count * len(cores) * passes[kernel]
                tally.rates.append(moved / repeat(kernel, passes[kernel]) / 1e9)
    for kernel, tally in tallies.items():
        output.note(f"{kernel}: {tally.spread()} repeats of {passes[kernel]} passes")
        tally.report(output, BANDWIDTH[kernel], MEMORY)
    output.end()
