"""Stands in for every load of ours on a described machine: `load.py ASK`, as the interpreter of a
machine, or of the image, is told to start it.

What it prints is made of its contract (`load_texts`). In a run of which REPLAY_RUNS names the
folder, each value that the run's plan has due is within its limit. Otherwise `loads.json` beside it
says of each load what is wrong with which GPU, and what is left of its rate; figures are those of
an H200, as recorded. Where only the load itself can make and find a fault, that runs: the burn with
torch on the processor in the place of the GPU, in every number format, and with real copies on
`linked_gpus`; parallel training and collectives in small over gloo; loads of processors and RAM;
and the power load on GPUs of clockwork.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import load_texts
import nccl_texts
import pulse_program
import seen
import sound_loads
from msgspec.structs import replace
from sound_values import good_value

from acceptance.core.parts import Component, Gpu, Pair
from acceptance.core.record import RunStarted
from acceptance.journal import clock, segment
from acceptance.loads import asks, protocol
from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.contract import ReadingKey
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm import contract as gemm
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import Output
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.vram import contract as vram

HERE = Path(__file__).parent
REAL = Path(f"{sys.executable}.real")  # in an image, where this stands in for the interpreter
PYTHON = str(REAL if REAL.exists() else sys.executable)
# Seconds of each format's turn of the burn beside the first's, which has the rest: the checks that
# look at temperatures need some seconds of one format, and leave out those with few samples.
TURN_S = 0.05
DIVISOR = 128  # matrices of 64 x 64, so that a processor makes thousands of them
FREE = 4 << 20
COPIED = 64 << 10  # bytes of a copy beside the products
# Rates of a format, sustained and short.
GEMM = {
    "f64": (53.6, 57.0),
    "f32": (51.2, 51.9),
    "tf32": (344.0, 402.0),
    "f16": (637.0, 760.0),
    "bf16": (664.0, 814.0),
    "f8": (1213.0, 1403.0),
    "i8": (869.0, 1100.0),
}
OF_CORES = cpu.Gemm | cpu.MemoryBandwidth | cpu.MemoryRandom
OF_ALL = collective.Ask | parallel.Ask | pulse.Ask
Values = dict[str | ReadingKey, float]
Given = dict[str, Any]  # keywords of `printed`


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong with one GPU."""

    fault: str = ""
    gpu: int = 0
    share: float = 1.0
    dtype: str = ""


def identity(gpu: seen.Gpu) -> dict[str, Any]:
    """What a load says of its GPU."""
    said = gpu.readings
    about = {"gpu": said["name"], "uuid": said["uuid"], "capability": said["compute_capability"]}
    return {**about, "library": "torch 2.11.0+cu130, CUDA 13.0"}


@dataclasses.dataclass(frozen=True)
class Fake:
    """A load on the GPUs that it sees, its own first; `fault` is what is wrong with that one, and
    of a load of all GPUs with any.
    """

    ask: asks.AnyAsk
    fault: Fault
    gpus: list[seen.Gpu]

    @property
    def about(self) -> dict[str, Any]:
        """What its first line says of its GPUs."""
        if isinstance(self.ask, OF_ALL):
            return {"uuids": [gpu.readings["uuid"] for gpu in self.gpus]}
        return identity(self.gpus[0]) if self.gpus else {}

    def print(self, **given: Any) -> None:
        """Print the whole output, after the time that it takes."""
        text = load_texts.printed(self.ask, self.about, **given)
        time.sleep(1.02 * self.ask.least_s(protocol.parse(text)))
        print(text, end="", flush=True)


def fake(ask: asks.AnyAsk) -> Fake:
    """The load with its fault."""
    file = HERE / "loads.json"
    told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    fault = Fault(**told.get(ask.load, {}))
    if isinstance(ask, OF_CORES):
        return Fake(ask, fault, [])
    gpus = seen.gpus(seen.machine())
    sick = isinstance(ask, OF_ALL) or gpus[0].index == fault.gpu
    return Fake(ask, fault if sick else Fault(), gpus)


# --- within the limits of the run's plan ---


def as_seen(component: Component, gpus: list[seen.Gpu]) -> Component | None:
    """The load's name of a component, which counts the GPUs that it sees; None of another GPU's."""
    places: Mapping[Component, Gpu] = {Gpu(one.index): Gpu(n) for n, one in enumerate(gpus)}
    first, *others = component.ends
    if not isinstance(first, Gpu):
        return component
    if places.get(first) != Gpu(0) or not all(one in places for one in others):
        return None
    return Pair(Gpu(0), places[others[0]]) if others else Gpu(0)


def plan_values(gpus: list[seen.Gpu]) -> Iterator[tuple[ReadingKey, float]]:
    """A good value of everything that the plan of the run going on has due from these GPUs; a check
    reckons ratios to siblings itself.
    """
    folders = Path(os.environ["REPLAY_RUNS"]).glob("*/journal.jsonl")
    newest = max(folders, key=lambda path: path.stat().st_mtime)
    bodies = (entry.body for entry in segment.read_segment(newest).entries)
    plan = next(body.plan for body in bodies if isinstance(body, RunStarted))
    for due in (due for check in plan.checks for due in check.due if due.siblings is None):
        if (component := as_seen(due.component, gpus)) is not None:
            yield (due.measurement, component), good_value(due)


def within_plan(one: Fake) -> Given:
    """Values that the plan accepts; those of training are shares of a product that it does.

    Of choices, such as peers, what the plan has nothing due of is out of reach.
    """
    values = dict(plan_values(one.gpus))
    match one.ask:
        case layers.Ask():
            return {"matmul": values["layer_matmul", Gpu(0)]}
        case step.Ask():
            return {"matmul": values["step_matmul", Gpu(0)]}
        case digest.Ask():
            return {}
    choices = one.ask.due(load_texts.EMPTY).choices
    absent = [number for number, units in enumerate(choices) if not units.keys() & values.keys()]
    return {"values": values, "absent": absent}


# --- with a fault ---


def recording(name: str) -> Given:
    """What a recording has, to be printed again."""
    text = (HERE / "recordings" / name).read_text(encoding="utf-8")
    return load_texts.again(protocol.parse(text))


def with_fault(one: Fake) -> Given:
    """The figures of an H200, and what the fault makes of them."""
    fault = one.fault
    what = fault.fault
    match one.ask:
        case gemm.Ask() as ask:
            values: Values = {}
            for place, dtype in enumerate(ask.dtypes):
                hit = fault.dtype in ("", dtype)
                rates = (rate * (fault.share if hit else 1.0) for rate in GEMM[dtype])
                names = f"gemm_{dtype}", f"gemm_{dtype}_short"
                wobbled = (seen.wobble(rate, one.gpus[0].index, place) for rate in rates)
                values |= dict(zip(names, wobbled, strict=True))
                values[f"gemm_{dtype}_miscompares"] = float(hit and what == "wrong")
            return {"values": values}
        case vram.Ask():
            given = recording(f"vram-{what or 'bit'}.txt")
            given["values"]["vram_rate", Gpu(0)] *= fault.share
            if not what:
                return {"values": {**given["values"], ("vram_miscompares", Gpu(0)): 0.0}}
            return given
        case layers.Ask() | step.Ask() as ask:
            layered = isinstance(ask, layers.Ask)
            wrong = sound_loads.WRONG_GRADIENT if layered else sound_loads.WRONG_WEIGHT
            share = seen.wobble(fault.share, one.gpus[0].index, 0)
            return {"share": share, "wrong": [wrong] * (what == "wrong")}
        case digest.Ask() as ask:
            # Always other bits, or those of its first program alone, which is the longer one.
            odd = what == "persistent" or (what == "once" and ask.seconds > 1)
            flip = sound_loads.Flip()
            differing = [("bf16", 3, flip)] * (what == "transient")
            return {"flips": {"bf16": flip} if odd else {}, "differing": differing}
    raise AssertionError(f"nothing fakes a fault of {one.ask.load}")


def paths(one: Fake) -> Given:
    """Of the fault "slow PATH" that path has a share of its rate, of "too-soon" every latency has
    one, of "host-memory" data goes that way whatever joins the GPUs.
    """
    what, _, path = one.fault.fault.partition(" ")
    machine = seen.machine()

    def rate(arm: str, first: int, second: int) -> float:
        ends = one.gpus[first], one.gpus[second]
        if arm == "p2p_off":
            return 0.6 * seen.staged_rate(*ends)
        slow = what == "slow" and path == f"gpu{first}->gpu{second}"
        return (one.fault.share if slow else 1.0) * 0.8 * seen.peer_rate(machine, *ends)

    def via(first: int, second: int) -> str:
        linked = all(seen.nvlink_rate(one.gpus[end]) for end in (first, second))
        return nccl_texts.P2P if linked and what != "host-memory" else nccl_texts.SHM

    def efficiency(arm: str, way: str, accumulation: int) -> float:
        through = "p2p_off" if what == "host-memory" else arm
        return sound_loads.efficiency_of_h100s(through, way, accumulation)

    if isinstance(one.ask, parallel.Ask):
        return {"efficiency": efficiency}
    late = one.fault.share if what == "too-soon" else 1.0
    addresses = [gpu.address for gpu in one.gpus]
    return {"rate": rate, "via": via, "latency_us": 20.0 * late, "addresses": addresses}


def among_all(one: Fake) -> None:
    """The faults "wrong", "order", "lost", "drop", "die" and "hang" are made and found by the real
    load in small, in its first arm; with " everywhere" in each.
    """
    what, _, where = one.fault.fault.partition(" ")
    counts: dict[ReadingKey, float] = {}
    wrong: list[Miscompare] = []
    ask: Any = one.ask
    if what in ("wrong", "order", "lost", "drop", "die", "hang"):
        small = replace(ask, backend="gloo", seconds=0.1, grace=120.0, inject=what)
        if isinstance(ask, collective.Ask):
            small = replace(small, turns=1, most=4096)
        for arm in ask.arms if where == "everywhere" else ask.arms[:1]:
            status, text = run(replace(small, arms=(arm,)))
            if status:
                hello = load_texts.printed(ask, one.about).partition("\n")[0]
                print(hello, text.partition("\n")[2], sep="\n", end="", flush=True)
                sys.exit(status)
            found = protocol.parse(text)
            wrong += found.miscompares
            counts |= {
                (read.name, read.component): read.value
                for read in found.readings
                if read.unit == "count"
            }
    one.print(**paths(one), values=counts, wrong=wrong)


def run(ask: asks.AnyAsk) -> tuple[int, str]:
    """Run the real load: its exit status, and what it prints."""
    done = subprocess.run(asks.argv(PYTHON, ask), stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout


def of_cores(one: Fake) -> None:
    """The real load with a fault that it makes by itself, which its first line keeps to itself; or
    with one reading (`fault`: name and component) at a share of a healthy one.

    What the other components showed of that reading is replaced by the healthy 1: a ratio beside
    siblings, which the machine's other work moves.
    """
    what, _, component = one.fault.fault.partition(" ")
    status, text = run(one.ask if component else replace(one.ask, inject=what))
    lines = load_texts.lines_of(text)
    for line in lines:
        if "parameters" in line:
            line["parameters"].pop("inject", None)
        if component and line.get("reading") == what:
            line["value"] = one.fault.share if line["component"] == component else 1.0
    print(load_texts.text_of(lines), end="", flush=True)
    sys.exit(status)


def clockwork(one: Fake) -> None:
    """The real one, on GPUs of clockwork. Of the fault "element" the first result of the sick GPU
    is wrong.
    """
    from acceptance.loads import __main__
    from acceptance.loads.pulse import load

    class Clockwork(pulse_program.Clockwork):
        def __init__(self) -> None:
            super().__init__()
            gpu = seen.gpus(seen.machine())[0]  # its rank sees it alone
            self.about = identity(gpu)
            self.bad = one.fault.fault == "element" and gpu.index == one.fault.gpu

        def start(self, count: int) -> Any:
            until_s, found = super().start(count)
            wrong, self.bad = self.bad, False
            told = dataclasses.replace(found, right=count - wrong, wrong=(1,) * wrong)
            return until_s, told

    load.cuda = Clockwork
    sys.exit(__main__.run(one.ask))


def burn_on_processor(one: Fake, ask: burn.Ask) -> None:
    """The real burn with its figures recorded; of the fault "lost-writes" nothing that the GPU
    sends reaches a peer.
    """
    import linked_gpus
    import torch
    from plain_comparator import TorchComparator

    from acceptance.loads.burn import copies
    from acceptance.loads.burn.device import TorchDevice
    from acceptance.loads.burn.worker import BurnOptions, BurnWorker
    from acceptance.loads.card import ProcessorCard, boot_s
    from acceptance.loads.gemm.dtypes import DTYPES

    # Other faults are played beside it, and threads of small products wait more than they work.
    torch.set_num_threads(1)
    what = one.fault.fault
    figures = {name: value for (name, _), value in recording("clean.txt")["values"].items()}

    class Rated(Output):
        def reading(self, name: str, unit: str, component: Component, value: float) -> None:
            if unit != "count":
                known = figures["burn_copied" if name == "burn_peer_copied" else name]
                value = known * (one.fault.share if unit == "TFLOP/s" else 1.0)
            super().reading(name, unit, component, value)

    class Processor(ProcessorCard):
        def free_bytes(self) -> int:
            return FREE

    class Copies(copies.Copies):
        """The real ones, in small."""

        def step(self) -> None:
            with machine.in_place():
                super().step()

        def finish(self) -> None:
            with machine.in_place():
                super().finish()

    output, card = Rated(sys.stdout), Processor()
    dtypes = tuple(DTYPES[name] for name in ask.dtypes)
    order = BurnOptions(dtypes, ask.seconds, divisors=dict.fromkeys(DTYPES, DIVISOR))
    output.hello(ask.load, {**ask.parameters(), "laps": order.laps, **one.about})
    if what == "hang":
        time.sleep(900)
    copies.PIECE = COPIED
    peers = range(1, 1 + ask.peers)
    machine = linked_gpus.Machine(1 + ask.peers, peers if what == "lost-writes" else ())
    with machine.in_place():
        pattern = functools.partial(linked_gpus.NumpyPattern, machine)
        beside = Copies(output, pattern, peers, boot_s)
    made = None if what in ("", "lost", "lost-writes") else what
    device = TorchDevice("cpu", card, TorchComparator(), made)
    BurnWorker(order, device, card, output, beside, boot_s).run(1 << 20)
    if what == "lost":
        print("burn: CUDA error: an illegal memory access was encountered", file=sys.stderr)
        sys.exit(1)
    output.end()


def main() -> None:
    one = fake(asks.decode(sys.argv[1]))
    sound = "REPLAY_RUNS" in os.environ
    match one.ask:
        case pulse.Ask():
            clockwork(one)
        case collective.Ask() | parallel.Ask():
            among_all(one)
        case burn.Ask() if sound:
            one.print(**within_plan(one), begin_s=clock.boot_s(), rest_s=TURN_S)
        case burn.Ask() as ask:
            burn_on_processor(one, ask)
        case cpu.Gemm() | cpu.MemoryBandwidth() | cpu.MemoryRandom() if not sound:
            of_cores(one)
        case step.Ask() as ask if one.fault.fault == "memory":
            print(load_texts.printed(ask, one.about).partition("\n")[0], flush=True)
            print(f"train_step: {sound_loads.TOO_LARGE}", file=sys.stderr)
            sys.exit(1)
        case _:
            one.print(**(within_plan if sound else with_fault)(one))


if __name__ == "__main__":
    main()
