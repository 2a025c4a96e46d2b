"""What the burn does beside gpu-burn and beside the same products without verification: rate,
power, clock, heat, and what is verified.

    python benchmarks/burn.py [--seconds 84] [--gpu-burn-seconds 20]

One run on the first GPU that CUDA shows. gpu-burn in its three modes, where it is on PATH; then
`burn plain=true`: each format's products verified and plain, in turns. The watch that a run uses
samples the GPU meanwhile; power, clock and temperature are means over the samples of each course,
its first second left out. `ratio` is the rate with every result verified over that without, in the
same run (aim: 0.98); `verified` says of which results every element was compared. Where there is no
GPU, or no torch, it says so: then nothing was measured.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance.core import parts
from acceptance.core.dtype import DTYPES
from acceptance.core.parts import Gpu as GpuName
from acceptance.diagnosis.gpu_history import GpuHistory, histories
from acceptance.journal import reader, segment
from acceptance.loads import asks
from acceptance.loads.burn.contract import Ask
from acceptance.loads.protocol import parse
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.observe.inventory import observe
from acceptance.tools import gpu_burn
from acceptance.tools.gpu_burn import Mode
from acceptance.watch import gpu_sampler, gpu_supervisor

SETTLE_S = 1.0
COMPARE_S = 3.0
RATE = {"float": 50.0, "tensor": 350.0, "double": 50.0}  # TFLOP/s, for the size of its ring alone
HEAD = (
    f"{'load':<10} {'format':<7} {'products':<9} {'TFLOP/s':>8} {'ratio':>7} {'W':>6} "
    f"{'MHz':>6} "
    f"{'degC':>5}  verified"
)


@dataclass(frozen=True, slots=True)
class Course:
    """One stretch of work: what did it, and from when to when, in seconds since boot."""

    load: str
    format: str
    products: str
    begin_s: float
    end_s: float
    rate: float
    verified: str


def boot_s() -> float:
    """Seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def burn_of_others(mode: Mode, seconds: int, free_mb: int) -> Course:
    """gpu-burn in one mode."""
    memory = gpu_burn.memory_mb(mode, rate_tflops=RATE[mode], compare_s=COMPARE_S, free_mb=free_mb)
    argv = gpu_burn.argv("gpu-burn", mode=mode, seconds=seconds, memory_mb=memory)
    begin = boot_s()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    output = gpu_burn.parse(f"{done.stdout}\n{done.stderr}")
    rate, compares = (
        output.reading(name)[GpuName(0)] for name in ("gpu_burn_rate", "gpu_burn_compares")
    )
    # It begins with the matrices, and ends with half a minute of waiting; what it did not compare
    # in the end it never does.
    told = f"all but the first of each of {compares:.0f} rings"
    return Course("gpu-burn", mode, "compared", begin + 5.0, begin + seconds, rate, told)


def burn_of_ours(seconds: float) -> list[Course]:
    """`burn plain=true`."""
    argv = asks.argv(sys.executable, Ask(dtypes=DTYPES, seconds=seconds, plain=True))
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    output = parse(done.stdout)
    wrong = [one for one in output.readings if one.name.endswith("_miscompares") and one.value]
    assert not wrong, wrong
    (courses,) = (table for table in output.tables if table.name == "burn_courses")
    return [
        Course(
            "burn",
            str(name),
            str(kind),
            float(begin),
            float(end),
            float(rate),
            "all" if kind == "verified" else "none",
        )
        for name, kind, begin, end, rate in courses.rows
    ]


def line(course: Sequence[Course], history: GpuHistory, plain: float | None) -> str:
    """One row of the table: the courses of one load and format together."""
    points = [
        point.values
        for point in history.points
        if any(one.begin_s + SETTLE_S <= point.boot_s <= one.end_s for one in course)
    ]
    assert points, "the watch took no sample meanwhile"
    power, clock, heat = (
        statistics.mean(values[name] for values in points)
        for name in ("power_w", "sm_clock_mhz", "temperature_c")
    )
    first, rate = course[0], statistics.mean(one.rate for one in course)
    ratio = f"{rate / plain:7.4f}" if plain is not None else " " * 7
    named = f"{first.load:<10} {first.format:<7} {first.products:<9}"
    return f"{named} {rate:8.1f} {ratio} {power:6.0f} {clock:6.0f} {heat:5.0f}  {first.verified}"


def measured(
    gpu: Gpu, inventory: Inventory, options: argparse.Namespace, folder: Path, free_mb: int
) -> tuple[list[Course], GpuHistory]:
    """Everything, with the watch beside it."""
    context = folder / "context.json"
    watched = gpu_supervisor.due_targets(inventory, [gpu.name])
    assert watched, "NVML does not answer for the GPU, so it cannot be watched"
    context.write_bytes(
        msgspec.json.encode(
            gpu_sampler.SamplerContext(str(folder), "/", watched, kernel_log=True),
            enc_hook=parts.encode,
        )
    )
    with subprocess.Popen(gpu_supervisor.argv(context)) as watch:
        courses: list[Course] = []
        if shutil.which("gpu-burn"):
            for mode in ("float", "tensor", "double"):
                courses.append(burn_of_others(mode, options.gpu_burn_seconds, free_mb))
        else:
            print("gpu-burn: not measured, because it is not on PATH")
        courses += burn_of_ours(options.seconds)
        time.sleep(0.5)
        watch.terminate()
    return courses, histories(segment.read_segment(folder / reader.GPU_TELEMETRY).entries)[gpu.name]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="The burn beside gpu-burn and beside unverified products."
    )
    parser.add_argument(
        "--seconds", type=float, default=84.0, help="of our burn, all formats, verified and plain"
    )
    parser.add_argument("--gpu-burn-seconds", type=int, default=20, help="of gpu-burn, each mode")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("burn: not measured, because torch is not installed here")
        return 0
    inventory = observe()
    due = gpus(inventory)
    if not due or not torch.cuda.is_available():
        print("burn: not measured, because there is no GPU here")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        free_mb = int(torch.cuda.get_device_properties(0).total_memory) >> 20
        courses, history = measured(due[0], inventory, options, Path(folder), free_mb)
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    print(HEAD)
    groups: dict[tuple[str, str, str], list[Course]] = {}
    for one in courses:
        groups.setdefault((one.load, one.format, one.products), []).append(one)
    for (load, name, products), group in groups.items():
        plain = groups.get((load, name, "plain"))
        beside = (
            statistics.mean(one.rate for one in plain) if plain and products == "verified" else None
        )
        print(line(group, history, beside))
    return 0


if __name__ == "__main__":
    sys.exit(main())
