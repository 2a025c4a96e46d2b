"""What report.html costs: 8 GPUs for an hour, and for 72 hours, at the watch's own rate.

    python benchmarks/page.py [--hours 1,72]

Each journal is made up (`tests/reports/sample_runs.py`), then read, judged and rendered by a
process of its own. Limits: an hour in 2 s of wall time, 200 MB and 1 MB of page; 72 hours in 20 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS_S = {1: 2.0, 72: 20.0}
MEMORY_MB, PAGE_MB = 200.0, 1.0
# In a process of its own, as `rigproof report` is: interpreter, imports and templates count.
RENDER = """
import resource, sys
from pathlib import Path
from acceptance.expect import gpu_limits
from acceptance.journal import run
from acceptance.reports.page import render as page
folder = Path(sys.argv[1])
text = page.render(run.read(folder), gpu_limits.sheets())
(folder / "report.html").write_bytes(text.encode("utf-8"))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
"""


def made(hours: int, folder: Path) -> None:
    """A run of eight H200s that burns for so long."""
    sys.path[:0] = [
        str(ROOT),
        *(
            str(ROOT / "tests" / name)
            for name in (
                "",
                "core",
                "expect",
                "machine",
                "observe",
                "reports",
                "e2e",
                "nvml",
                "tools",
            )
        ),
    ]
    import sample_runs

    sample_runs.put(replace(sample_runs.MADE["8xh200"], seconds=3600.0 * hours), folder)


def main() -> int:
    """Print a line for each journal."""
    parser = argparse.ArgumentParser(description="What report.html costs.")
    parser.add_argument("--hours", default="1,72")
    options = parser.parse_args()
    for hours in map(int, options.hours.split(",")):
        with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as scratch:
            folder = Path(scratch) / "run"
            made(hours, folder)
            journal_mb = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-c", RENDER, str(folder)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            took = time.monotonic() - began
            peak_kib, cpu_s = map(float, done.stdout.split())
            page_mb, memory_mb = (
                (folder / "report.html").stat().st_size / 1e6,
                peak_kib * 1024 / 1e6,
            )
        limit_s = LIMITS_S.get(hours)
        share = f", {took / limit_s:.2f} of {limit_s:g} s" if limit_s else ""
        print(
            f"page of 8 GPUs x {hours} h   {took:.2f} s{share} ({cpu_s:.2f} s of processor), "
            f"from {journal_mb:.0f} MB of journal"
        )
        print(
            f"  peak memory         {memory_mb:.0f} MB, {memory_mb / MEMORY_MB:.2f} of "
            f"{MEMORY_MB:g} MB"
        )
        print(f"  size                {page_mb:.2f} MB, {page_mb / PAGE_MB:.2f} of {PAGE_MB:g} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
