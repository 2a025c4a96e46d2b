"""Stands in for a load of ours on a machine that is sound: `sound.py MODULE ARGUMENTS`.

It gives of everything that the run's plan has due from its check a value within the limit, and the
tables and logs that its reader wants beside them. The plan is that of the newest run in the folder
that REPLAY_RUNS names.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import collective_texts
import nccl_texts
import seen
import train_digest_texts
import train_layer_texts
import train_parallel_texts
import train_step_texts
from sound_values import good_value

from acceptance.core.component import Component
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Due, Plan
from acceptance.core.record import RunStarted
from acceptance.journal import clock, segment
from acceptance.loads import asks
from acceptance.loads.names import BURN_DIGESTS, BURN_LAPS, DIGESTS, LAPS
from acceptance.loads.protocol import Output
from acceptance.loads.vram.contract import PASS_COLUMNS, PASSES, PATTERNS

# Seconds of each format's turn of the burn beside the first's, which has the rest: the checks that
# look at temperatures need some seconds of one format, and leave out those with few samples.
TURN_S = 0.05
LAP_COUNT = 2
Words = dict[str, str]
Line = dict[str, Any]


def options(words: list[str]) -> Words:
    """The options of a command line by name; a switch has no value."""
    found: Words = {}
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            found[name] = ""
        else:
            found[name] = word
    return found


def plan() -> Plan:
    """The plan of the run that is going on."""
    folders = Path(os.environ["REPLAY_RUNS"]).glob("*/journal.jsonl")
    newest = max(folders, key=lambda path: path.stat().st_mtime)
    entries = segment.read_segment(newest).entries
    return next(one.body.plan for one in entries if isinstance(one.body, RunStarted))


def dues(check: str) -> tuple[Due, ...]:
    """What this check owes and its load measures: ratios to siblings are reckoned by the check."""
    return tuple(
        due for one in plan().checks if one.id == check for due in one.due if due.siblings is None
    )


def numbers() -> tuple[int, ...]:
    """The machine's numbers of the GPUs that the load sees, its own first."""
    return tuple(gpu.index for gpu in seen.gpus(seen.machine()))


def as_seen(component: Component, shown: tuple[int, ...]) -> Component | None:
    """The load's name of a component, which counts the GPUs that it sees; None of another GPU's."""
    places = {Gpu(number): Gpu(place) for place, number in enumerate(shown)}
    first, *others = component.ends
    if not isinstance(first, Gpu):
        return component
    if places.get(first) != Gpu(0):
        return None
    if not others:
        return Gpu(0)
    other = places.get(others[0])  # type: ignore[call-overload]
    return Pair(Gpu(0), other) if other is not None else None


def readings(output: Output, check: str, without: Iterable[str] = ()) -> None:
    """Print all that the check owes of this load's GPU, or of the processors."""
    shown = numbers()
    for due in dues(check):
        component = as_seen(due.component, shown)
        if component is not None and due.measurement not in without:
            output.reading(due.measurement, due.unit, component, good_value(due))


def identity() -> Line:
    """What the hello of a load says of its GPU."""
    (gpu, *_) = seen.gpus(seen.machine())
    said = gpu.readings
    about = {"gpu": said["name"], "uuid": said["uuid"], "capability": said["compute_capability"]}
    return {**about, "library": "torch 2.11.0+cu130, CUDA 13.0"}


def gemm(words: list[str]) -> None:
    ask = asks.decode(words[0])
    output = Output(sys.stdout)
    output.hello(ask.load, {**ask.parameters(), **identity()})
    time.sleep(ask.seconds * len(ask.dtypes))
    readings(output, "compute.gemm_together")
    output.end()


def copies(words: list[str]) -> None:
    given = options(words)
    output = Output(sys.stdout)
    seconds = float(given["seconds"])
    output.hello("gpu_copy", {"seconds": seconds, "link": given["link"], **identity()})
    time.sleep(seconds)
    readings(output, "compute.copies")
    output.end()


def vram(words: list[str]) -> None:
    ask = asks.decode(words[0])
    output = Output(sys.stdout)
    output.hello(ask.load, {**ask.parameters(), **identity()})
    time.sleep(ask.seconds)
    readings(output, "vram.patterns")
    output.table(PASSES, PASS_COLUMNS, [(pattern, 1.0, 1000.0, 0.0) for pattern in PATTERNS])
    output.end()


def burn(words: list[str]) -> None:
    given = options(words)
    dtypes, seconds = given["dtypes"].split(","), float(given["seconds"])
    peers = int(given.get("peers") or 0)
    output = Output(sys.stdout)
    asked = {"dtypes": dtypes, "seconds": seconds, "peers": peers, "laps": LAP_COUNT}
    output.hello("burn", {**asked, **identity()})
    began_s = clock.boot_s()
    time.sleep(seconds)
    others = ("burn_digests_differ", "burn_cpu_failures", "burn_memory_errors")
    readings(output, "together.burn", (*others, "burn_memory_filled"))
    first_s = seconds / LAP_COUNT - TURN_S * (len(dtypes) - 1)
    rows: list[tuple[float | str, ...]] = []
    for lap in range(LAP_COUNT):
        for number, dtype in enumerate(dtypes):
            turn_s = TURN_S if number else first_s
            rows.append((float(lap), dtype, 1.0, 1.0, turn_s, began_s, began_s + turn_s))
            began_s += turn_s
    output.table(BURN_LAPS, LAPS, rows)
    digest = "0123456789abcdef"
    output.table(BURN_DIGESTS, DIGESTS, [(one, "64x64x64", digest, digest) for one in dtypes])
    output.end()


def on_processors(load: str, check: Callable[[Words], str]) -> Callable[[list[str]], None]:
    """A load of processors and RAM: its parameters are its options."""

    def run(words: list[str]) -> None:
        given = options(words)
        parameters: Line = {}
        for name, text in given.items():
            known = text.replace(".", "", 1).isdigit()
            value = (float(text) if "." in text else int(text)) if known else text
            parameters[name.replace("-", "_")] = value
        output = Output(sys.stdout)
        output.hello(load, parameters)
        time.sleep(float(given["seconds"]))
        readings(output, check(given))
        output.end()

    return run


def good(measurement: str) -> float:
    """A value of a measurement that the plan accepts."""
    return next(
        good_value(due)
        for check in plan().checks
        for due in check.due
        if due.measurement == measurement
    )


def layers(words: list[str]) -> None:
    """The shares of H200s, of a product that this card's limits accept."""
    given, about = options(words), identity()
    seconds = float(given["seconds"])
    time.sleep(seconds)
    made = train_layer_texts.table_lines if "table" in given else train_layer_texts.lines
    part = good("layer_matmul") / train_layer_texts.MATMUL
    lines = made(about, seconds=seconds, dtype=given["dtype"])
    for line in lines:
        if line.get("unit") == "TFLOP/s":
            line["value"] *= part
        for place, column in enumerate(line.get("columns", ())):
            for row in line["rows"] if column.endswith("TFLOP/s") else ():
                row[place] *= part
    print(train_layer_texts.printed(lines), end="", flush=True)


def steps(words: list[str]) -> None:
    given, (gpu, *_) = options(words), seen.gpus(seen.machine())
    seconds, memory = float(given["seconds"]), int(gpu.readings["memory_total_bytes"])
    time.sleep(seconds)
    lines = train_step_texts.lines(
        identity(),
        seconds=seconds,
        table="table" in given,
        neo=memory >= 30 << 30,
        matmul=good("step_matmul"),
    )
    print(train_step_texts.printed(lines), end="", flush=True)


def training(words: list[str]) -> None:
    given, about = options(words), identity()
    about.pop("library")
    seconds = float(given["seconds"])
    time.sleep(seconds)
    print(
        train_digest_texts.printed(train_digest_texts.lines(about, seconds=seconds)),
        end="",
        flush=True,
    )


def parallel(words: list[str]) -> None:
    given = options(words)
    time.sleep(float(given["seconds"]))
    lines = train_parallel_texts.lines(
        [gpu.readings["uuid"] for gpu in seen.gpus(seen.machine())],
        seconds=float(given["seconds"]),
        ways=given["ways"].split(","),  # type: ignore[arg-type]
        accumulate=[int(one) for one in given["accumulate"].split(",")],
    )
    print(train_parallel_texts.printed(lines), end="", flush=True)


def collective(words: list[str]) -> None:
    found = seen.machine()
    shown = seen.gpus(found)

    def rate(arm: str, first: int, second: int) -> float:
        one, other = shown[first], shown[second]
        staged = 0.6 * seen.staged_rate(one, other)
        return staged if arm == "p2p_off" else 0.8 * seen.peer_rate(found, one, other)

    def via(first: int, second: int) -> str:
        linked = seen.nvlink_rate(shown[first]) and seen.nvlink_rate(shown[second])
        return nccl_texts.P2P if linked else nccl_texts.SHM

    for line in collective_texts.lines(
        [gpu.readings["uuid"] for gpu in shown],
        [gpu.address for gpu in shown],
        seconds=float(options(words)["seconds"]),
        rate=rate,
        via=via,
    ):
        print(json.dumps(line))
    sys.stdout.flush()


def pulse(words: list[str]) -> None:
    import load

    load.clockwork(words[0], None)


LOADS: dict[str, Callable[[list[str]], None]] = {
    "acceptance.loads.burn.load": burn,
    "acceptance.loads.collective.load": collective,
    "acceptance.loads.copy.load": copies,
    "acceptance.loads.cpu.gemm": on_processors("cpu_gemm", lambda given: _gemm_of(given["dtype"])),
    "acceptance.loads.cpu.memory_bandwidth": on_processors(
        "memory_bandwidth", lambda _: "memory.bandwidth"
    ),
    "acceptance.loads.cpu.memory_random": on_processors("memory_random", lambda _: "memory.random"),
    "gpu_gemm": gemm,
    "pulse": pulse,
    "acceptance.loads.train.digest_load": training,
    "acceptance.loads.train.layer_load": layers,
    "acceptance.loads.train.parallel_load": parallel,
    "acceptance.loads.train.step_load": steps,
    "vram": vram,
}


def _gemm_of(dtype: str) -> str:
    return f"cpu.gemm[{dict(float64='f64', float32='f32')[dtype]}]"


def main() -> None:
    name, *words = sys.argv[1:]
    LOADS[name](words)


if __name__ == "__main__":
    main()
