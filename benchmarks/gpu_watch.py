"""What watching the GPUs costs a load on them: the same products with the watch running and
without, in turns, in one run.

    python benchmarks/gpu_watch.py [--seconds 4] [--pairs 7]

A matrix load (torch, bfloat16, 8192 x 8192, random inputs) runs all the time; the watch that a run
uses is started and ended beside it. Each pair of turns gives a ratio of rates, watched over not
watched; the median and the range are printed (aim: 0.995), and how often each GPU was sampled.
Where there is no GPU, or no torch, it says so: then nothing was measured.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import msgspec

from acceptance.core import parts
from acceptance.core.evidence import Sample
from acceptance.journal import reader
from acceptance.journal import segment as journal_segment
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.observe.inventory import observe
from acceptance.watch import gpu_sampler, gpu_supervisor

LOAD = """
import sys, time
import torch
torch.manual_seed(1)
devices = range(torch.cuda.device_count())
pairs = [[torch.randn(8192, 8192, dtype=torch.bfloat16, device=f"cuda:{d}") for _ in range(2)] for d in devices]
while True:
    began = time.monotonic()
    for _ in range(20):
        for a, b in pairs:
            a @ b
    for d in devices:
        torch.cuda.synchronize(d)
    print(began, time.monotonic(), flush=True)
"""  # noqa: E501
SETTLE_S = 15.0  # until power and heat stand still


def watched(inventory: Inventory, folder: Path, seconds: float) -> tuple[float, float, float]:
    """Watch for some seconds: when the watch was ready, when it was ended, and the usual time
    between two samples.
    """
    folder.mkdir()
    due = gpu_supervisor.due_targets(inventory, [gpu.name for gpu in gpus(inventory)])
    context = folder / "context.json"
    context.write_bytes(
        msgspec.json.encode(
            gpu_sampler.SamplerContext(str(folder), "/", due, kernel_log=True),
            enc_hook=parts.encode,
        )
    )
    segment = folder / reader.GPU_TELEMETRY
    with subprocess.Popen(gpu_supervisor.argv(context)) as process:
        while not segment.exists():
            time.sleep(0.05)
        began = time.monotonic() + 0.5
        time.sleep(seconds + 0.5)
        ended = time.monotonic()
        process.terminate()
    stamps = [
        entry.boot_s
        for entry in journal_segment.read_segment(segment).entries
        if isinstance(entry.body, Sample) and entry.body.component == due[0].name
    ]
    return began, ended, statistics.median(after - before for before, after in pairwise(stamps))


def rate(batches: list[tuple[float, float]], began: float, ended: float) -> float:
    """Batches a second of those that lie whole in a span."""
    inside = [(first, last) for first, last in batches if began <= first and last <= ended]
    return len(inside) / sum(last - first for first, last in inside)


def main() -> int:
    """Print one line."""
    parser = argparse.ArgumentParser(description="What watching the GPUs costs a load on them.")
    parser.add_argument("--seconds", type=float, default=4.0, help="of one turn")
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    inventory = observe()
    try:
        import torch  # noqa: F401 - whether it can be had
    except ImportError:
        print("watch over the GPUs: not measured, because torch is not installed here")
        return 0
    if not inventory.nvml.devices:
        print("watch over the GPUs: not measured, because there is no GPU here")
        return 0
    spans, periods = [], []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "load"
        with (
            output.open("w") as file,
            subprocess.Popen([sys.executable, "-c", LOAD], stdout=file) as load,
        ):
            time.sleep(SETTLE_S)
            for number in range(options.pairs):
                bare = time.monotonic()
                time.sleep(options.seconds)
                until = time.monotonic()
                began, ended, period = watched(
                    inventory, Path(folder) / str(number), options.seconds
                )
                spans.append((bare, until, began, ended))
                periods.append(period)
            load.terminate()
        lines = [
            line.split() for line in output.read_text().splitlines()[:-1]
        ]  # the last may be torn
    batches = [(float(first), float(last)) for first, last in lines]
    ratios = [
        rate(batches, began, ended) / rate(batches, bare, until)
        for bare, until, began, ended in spans
    ]
    told = (
        f"{statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f} in "
        f"{len(ratios)} pairs)"
    )
    print(
        f"load with the watch over the GPUs / without: {told}, aim 0.995; a sample every "
        f"{statistics.median(periods):.3f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
