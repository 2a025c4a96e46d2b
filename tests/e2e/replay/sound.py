"""Stands in for a load of ours on a machine that is sound: `sound.py MODULE ARGUMENTS`.

It gives of everything that the run's plan has due from its check a value within the limit, and the
tables and logs that its reader wants beside them. The plan is that of the newest run in the folder
that REPLAY_RUNS names.
"""

from __future__ import annotations

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
from acceptance.core.message import Message
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Due, Plan
from acceptance.core.record import RunStarted
from acceptance.journal import clock, segment
from acceptance.loads import asks
from acceptance.loads.burn.contract import DIGEST_COLUMNS, DIGESTS, LAP_COLUMNS, LAPS
from acceptance.loads.copy.contract import ELEMENTS, PEER_READINGS, PRODUCT_COLUMNS, PRODUCTS
from acceptance.loads.protocol import LoadOutput, Output
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import parallel_contract as parallel
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
    """Peers of which the plan has nothing due are out of reach."""
    ask = asks.decode(words[0])
    parameters = {**ask.parameters(), **identity()}
    output = Output(sys.stdout)
    output.hello(ask.load, parameters)
    time.sleep(ask.least_s(LoadOutput(ask.load, parameters, (), (), ())))
    check, shown = "compute.copies", numbers()
    readings(output, check)
    measured = {as_seen(due.component, shown) for due in dues(check)}
    for peer in (Pair(Gpu(0), Gpu(number)) for number in range(1, len(shown))):
        for name in PEER_READINGS if peer not in measured else ():
            output.absent(name, peer, Message("peer_out_of_reach"))
    output.table(PRODUCTS, PRODUCT_COLUMNS, [(elements, 1.0, 1.0) for elements in ELEMENTS])
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
    ask = asks.decode(words[0])
    output = Output(sys.stdout)
    output.hello(ask.load, {**ask.parameters(), "laps": LAP_COUNT, **identity()})
    began_s = clock.boot_s()
    time.sleep(ask.seconds)
    others = ("burn_digests_differ", "burn_cpu_failures", "burn_memory_errors")
    readings(output, "together.burn", (*others, "burn_memory_filled"))
    first_s = ask.seconds / LAP_COUNT - TURN_S * (len(ask.dtypes) - 1)
    rows: list[tuple[float | str, ...]] = []
    for lap in range(LAP_COUNT):
        for number, dtype in enumerate(ask.dtypes):
            turn_s = TURN_S if number else first_s
            rows.append((float(lap), dtype, 1.0, 1.0, turn_s, began_s, began_s + turn_s))
            began_s += turn_s
    output.table(LAPS, LAP_COLUMNS, rows)
    digest = "0123456789abcdef"
    products = [(one, "64x64x64", digest, digest) for one in ask.dtypes]
    output.table(DIGESTS, DIGEST_COLUMNS, products)
    output.end()


def on_processors(words: list[str]) -> None:
    """A load of processors and RAM: what no check owes, such as a count of right products, is 1."""
    ask = asks.decode(words[0])
    output = Output(sys.stdout)
    output.hello(ask.load, ask.parameters())
    time.sleep(ask.seconds)
    owed = {
        (due.measurement, due.component): good_value(due)
        for check in plan().checks
        for due in check.due
    }
    for key, unit in ask.due(LoadOutput(ask.load, {}, (), (), ())).readings.items():
        name, component = key
        output.reading(name, unit, component, owed.get(key, 1.0))
    output.end()


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
    ask: Any = asks.decode(words[0])
    time.sleep(ask.seconds)
    text = train_layer_texts.printed(ask, identity(), matmul=good("layer_matmul"))
    print(text, end="", flush=True)


def steps(words: list[str]) -> None:
    ask: Any = asks.decode(words[0])
    time.sleep(ask.seconds)
    text = train_step_texts.printed(ask, identity(), matmul=good("step_matmul"))
    print(text, end="", flush=True)


def training(words: list[str]) -> None:
    ask, about = asks.decode(words[0]), identity()
    assert isinstance(ask, digest.Ask)
    about.pop("library")
    time.sleep(ask.seconds)
    print(train_digest_texts.printed(ask, about), end="", flush=True)


def training_together(words: list[str]) -> None:
    ask = asks.decode(words[0])
    assert isinstance(ask, parallel.Ask)
    time.sleep(ask.seconds)
    uuids = [gpu.readings["uuid"] for gpu in seen.gpus(seen.machine())]
    print(train_parallel_texts.printed(ask, uuids), end="", flush=True)


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

    uuids, addresses = [gpu.readings["uuid"] for gpu in shown], [gpu.address for gpu in shown]
    ask: Any = asks.decode(words[0])
    lines = collective_texts.lines(ask, uuids, addresses, rate=rate, via=via)
    print(collective_texts.printed(lines), end="", flush=True)


def pulse(words: list[str]) -> None:
    import load

    load.clockwork(words[0], None)


LOADS: dict[str, Callable[[list[str]], None]] = {
    "collective": collective,
    "burn": burn,
    "gpu_copy": copies,
    "cpu_gemm": on_processors,
    "memory_bandwidth": on_processors,
    "memory_random": on_processors,
    "gpu_gemm": gemm,
    "pulse": pulse,
    "train_digest": training,
    "train_layers": layers,
    "train_parallel": training_together,
    "train_step": steps,
    "vram": vram,
}


def main() -> None:
    name, *words = sys.argv[1:]
    LOADS[name](words)


if __name__ == "__main__":
    main()
