"""Stands in for a load of ours on a described machine: `load.py MODULE ARGUMENTS`, as the
interpreter of the image is told to start it.

`loads.json` beside it says which load, what is wrong with which GPU, and what is left of its rate.
The burn is the real one, with torch on the processor in the place of the GPU: its faults are made
in its products and found by its own comparing, in every number format, and its copies are the real
ones on `linked_gpus`. Its rates, and all of the matrix load and the memory test, are those of an
H200, as recorded.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import seen

HERE = Path(__file__).parent
DIVISOR = 128  # matrices of 64 x 64, so that a processor makes thousands of them
FREE = 4 << 20
COPIED = 64 << 10  # bytes of a copy beside the products
GEMM = {
    "f64": 53.6,
    "f32": 51.2,
    "tf32": 344.0,
    "f16": 637.0,
    "bf16": 664.0,
    "f8": 1213.0,
    "i8": 869.0,
}
SHORT = {
    "f64": 57.0,
    "f32": 51.9,
    "tf32": 402.0,
    "f16": 760.0,
    "bf16": 814.0,
    "f8": 1403.0,
    "i8": 1100.0,
}


def plan(name: str) -> dict[str, Any]:
    told: dict[str, dict[str, Any]] = json.loads((HERE / "loads.json").read_text(encoding="utf-8"))
    return told[name]


def option(words: list[str], name: str, default: str = "") -> str:
    return words[words.index(name) + 1] if name in words else default


def who() -> tuple[seen.Gpu, dict[str, Any]]:
    """The GPU that it runs on, and what the hello says of it."""
    gpu = seen.gpus(seen.machine())[0]
    said = gpu.readings
    told = {"gpu": said["name"], "uuid": said["uuid"], "capability": said["compute_capability"]}
    return gpu, {**told, "library": "torch 2.11.0+cu130, CUDA 13.0"}


def recorded(name: str) -> dict[str, float]:
    """The readings of a recording, by name."""
    lines = (HERE / "recordings" / name).read_text(encoding="utf-8").splitlines()
    return {one["reading"]: one["value"] for one in map(json.loads, lines) if "reading" in one}


def burn(words: list[str]) -> None:
    import linked_gpus
    import torch

    from acceptance.loads import asks
    from acceptance.loads.burn import copies
    from acceptance.loads.burn.card import boot_s
    from acceptance.loads.burn.compare import TorchComparator
    from acceptance.loads.burn.device import TorchDevice
    from acceptance.loads.burn.worker import BurnOptions, BurnWorker
    from acceptance.loads.gemm.dtypes import DTYPES
    from acceptance.loads.protocol import Output

    # Other faults are played beside it, and threads of small products wait more than they work.
    torch.set_num_threads(1)
    told = plan("burn")
    gpu, parameters = who()
    sick = gpu.index == told["gpu"]
    fault = told["fault"] if sick else ""
    figures = recorded("clean.txt")
    share = told["share"] if sick else 1.0

    class Rated(Output):
        def reading(self, name: str, unit: str, component: str, value: float) -> None:
            if not name.endswith("_miscompares"):
                known = figures["burn_copied"] if name == "burn_peer_copied" else figures[name]
                value = known * (share if unit == "TFLOP/s" else 1.0)
            super().reading(name, unit, component, value)

    class Processor:
        mark = staticmethod(time.perf_counter)

        def seconds(self, begin: float, end: float) -> float:
            return end - begin

        def free_bytes(self) -> int:
            return FREE

    class Copies:
        """The real ones, in small; of the fault "lost-writes" nothing that the
        GPU sends reaches a peer.
        """

        def __init__(self) -> None:
            copies.PIECE = COPIED
            self._gpus = linked_gpus.Machine(
                1 + peers, range(1, 1 + peers) if fault == "lost-writes" else ()
            )
            with self._gpus.in_place():
                pattern = functools.partial(linked_gpus.NumpyPattern, self._gpus)
                self._copies = copies.Copies(output, pattern, range(1, 1 + peers), boot_s)

        def step(self) -> None:
            with self._gpus.in_place():
                self._copies.step()

        def finish(self) -> None:
            with self._gpus.in_place():
                self._copies.finish()

    ask = asks.decode(words[0])
    dtypes, peers = tuple(DTYPES[name] for name in ask.dtypes), ask.peers
    output = Rated(sys.stdout)
    order = BurnOptions(dtypes, ask.seconds, divisors=dict.fromkeys(DTYPES, DIVISOR))
    card = Processor()
    output.hello(ask.load, {**ask.parameters(), "laps": order.laps, **parameters})
    if fault == "hang":
        time.sleep(900)
    made = None if fault in ("", "lost", "lost-writes") else fault
    device = TorchDevice("cpu", card, TorchComparator(), made)
    BurnWorker(order, device, card, output, Copies(), boot_s).run(1 << 20)
    if fault == "lost":
        print("burn: CUDA error: an illegal memory access was encountered", file=sys.stderr)
        sys.exit(1)
    output.end()


def gpu_gemm(words: list[str]) -> None:
    from acceptance.loads import asks
    from acceptance.loads.protocol import Output

    told = plan("gpu_gemm")
    gpu, parameters = who()
    sick = gpu.index == told["gpu"]
    ask = asks.decode(words[0])
    output = Output(sys.stdout)
    output.hello(ask.load, {**ask.parameters(), **parameters})
    for index, dtype in enumerate(ask.dtypes):
        time.sleep(ask.seconds * 1.02)
        share = told["share"] if sick and told["dtype"] in ("", dtype) else 1.0
        wrong = float(sick and told["fault"] == "wrong" and told["dtype"] in ("", dtype))
        output.reading(
            f"gemm_{dtype}_short",
            "TFLOP/s",
            "gpu0",
            seen.wobble(SHORT[dtype] * share, gpu.index, index),
        )
        output.reading(
            f"gemm_{dtype}", "TFLOP/s", "gpu0", seen.wobble(GEMM[dtype] * share, gpu.index, index)
        )
        output.reading(f"gemm_{dtype}_miscompares", "count", "gpu0", wrong)
    output.end()


def vram(words: list[str]) -> None:
    from acceptance.loads import asks

    told = plan("vram")
    gpu, parameters = who()
    fault = told["fault"] if gpu.index == told["gpu"] else ""
    ask = asks.decode(words[0])
    lines = (
        (HERE / "recordings" / f"vram-{fault or 'bit'}.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    time.sleep(ask.seconds)
    for number, line in enumerate(lines):
        one = json.loads(line)
        if number == 0:
            one["parameters"] = {**ask.parameters(), **parameters}
        if not fault and "miscompare" in one:
            continue
        if not fault and one.get("reading") == "vram_miscompares":
            one["value"] = 0
        if not fault and one.get("table") == "vram_passes":
            one["rows"] = [[*row[:3], 0] for row in one["rows"]]
        if one.get("reading") == "vram_rate" and gpu.index == told["gpu"]:
            one["value"] *= told["share"]
        print(json.dumps(one), flush=True)


EVERY_ARM = """
import sys
from msgspec.structs import replace
from acceptance.loads.__main__ import main
from acceptance.loads.collective import load
begin = load.begin_arm
def every(ask, name, *rest):
    return begin(replace(ask, arms=(name,)), name, *rest)
load.begin_arm = every
sys.exit(main(sys.argv[1:]))
"""


def collective(words: list[str]) -> None:
    """The real one over gloo, in small, with its own faults; its rates and latencies, and the logs
    of NCCL, are made up for the described machine.

    Of the fault "slow PATH" that path has a share of its rate, of "too-soon" every latency has one,
    of "host-memory" NCCL goes that way whatever joins the GPUs. The real faults are in the first
    arm; with " everywhere" in each.
    """
    import collective_texts
    import nccl_texts
    from msgspec.structs import replace

    from acceptance.loads import asks
    from acceptance.loads.miscompare import of_arm

    told = plan("collective")
    found = seen.machine()
    shown = seen.gpus(found)
    fault, _, path = told["fault"].partition(" ")
    own = fault if fault in ("wrong", "order", "lost", "die", "hang") else None
    real = [f"{sys.executable}.real" if Path(f"{sys.executable}.real").exists() else sys.executable]
    ask: Any = asks.decode(words[0])
    small = replace(ask, backend="gloo", seconds=0.1, turns=1, most=4096, grace=120.0, inject=own)
    begin = ["-c", EVERY_ARM] if path == "everywhere" else asks.PROGRAM
    argv = asks.typed(small)
    done = subprocess.run([*real, *begin, *argv], stdout=subprocess.PIPE, text=True)

    def rate(arm: str, first: int, second: int) -> float:
        one, other = shown[first], shown[second]
        staged = 0.6 * seen.staged_rate(one, other)
        share = told["share"] if path == f"gpu{first}->gpu{second}" and arm == "default" else 1.0
        return share * (staged if arm == "p2p_off" else 0.8 * seen.peer_rate(found, one, other))

    def via(first: int, second: int) -> str:
        linked = seen.nvlink_rate(shown[first]) and seen.nvlink_rate(shown[second])
        return nccl_texts.P2P if linked and fault != "host-memory" else nccl_texts.SHM

    uuids = [gpu.readings["uuid"] for gpu in shown]
    addresses = [gpu.address for gpu in shown]
    made = collective_texts.lines(ask, uuids, addresses, rate=rate, via=via)
    for one in made:
        if fault == "too-soon" and one.get("unit") == "us":
            one["value"] *= told["share"]
    figures = {
        (one["reading"], one["component"]): one["value"]
        for one in made
        if one.get("unit") in ("GB/s", "us")
    }
    extra = [one for one in made if "log" in one]
    extra += [one for one in made if "latency" in str(one.get("reading"))]
    dropped = 0
    for line in done.stdout.splitlines():
        one = json.loads(line)
        if "parameters" in one:
            one = made[0]
        if "reading" in one:
            one["value"] = figures.get((one["reading"], one["component"]), one["value"])
        if one.get("table") == "collectives":
            for row in one["rows"]:
                key = of_arm(f"collective_{row[1]}", row[0]), row[2]
                row[-1] = round(figures[key], 3)
        if one.get("table") == "collective_slow_paths":
            dropped = 1  # its rates are gloo's
            continue
        if "end" in one:
            for more in extra:
                print(json.dumps(more))
            one["readings"] += len(extra) - dropped
        print(json.dumps(one))
    sys.stdout.flush()
    sys.exit(done.returncode)


def train_layers(words: list[str]) -> None:
    """The load of layers: figures of an H200, for the described machine; of the fault "wrong" one
    gradient element is just beyond its bound.
    """
    import train_layer_texts

    from acceptance.loads import asks

    told = plan("train_layers")
    gpu, about = who()
    sick = gpu.index == told["gpu"]
    ask: Any = asks.decode(words[0])
    wrong = [train_layer_texts.WRONG] if sick and told["fault"] == "wrong" else []
    share = seen.wobble(told["share"] if sick else 1.0, gpu.index, 0)
    time.sleep(ask.seconds)
    print(train_layer_texts.printed(ask, about, share=share, wrong=wrong), end="", flush=True)


def train_digest(words: list[str]) -> None:
    """Digests made up. Of the fault "transient" a repeat of one GPU differs from its first run, of
    "persistent" its bits are always others than those of its equals, and of "once" those of its
    first program alone.
    """
    import train_digest_texts
    from train_digest_texts import Wrong

    from acceptance.loads import asks
    from acceptance.loads.miscompare import DigestFormat
    from acceptance.loads.train.digest_contract import Ask

    told = plan("train_digest")
    gpu, about = who()
    about.pop("library")
    ask = asks.decode(words[0])
    assert isinstance(ask, Ask)
    fault = told["fault"] if gpu.index == told["gpu"] else ""
    odd = fault == "persistent" or (fault == "once" and ask.seconds > 1)
    dtype: DigestFormat = "bf16"
    wrong = {dtype: Wrong()} if odd else {}
    differing = [(dtype, 3, Wrong())] if fault == "transient" else []
    time.sleep(ask.seconds)
    print(train_digest_texts.printed(ask, about, wrong=wrong, differing=differing), end="")


def train_parallel(words: list[str]) -> None:
    """Figures of H100s, for a machine whose data goes over its NVLinks, or with the fault
    "host-memory" through host memory all the same. The faults "wrong", "drop", "die" and "hang" are
    made and found by the real load over gloo, in small.
    """
    import msgspec
    import train_parallel_texts

    from acceptance.loads import asks
    from acceptance.loads.miscompare import Miscompare, read
    from acceptance.loads.train.parallel_contract import Ask

    fault = plan("train_parallel")["fault"]
    ask = asks.decode(words[0])
    assert isinstance(ask, Ask)
    wrong: list[Miscompare] = []
    counts: dict[str, float] = {}
    status = 0
    if fault in ("wrong", "drop", "die", "hang"):
        real = f"{sys.executable}.real"
        python = real if Path(real).exists() else sys.executable
        # The faults are made in the first of its arms: the other would only train once more.
        small = msgspec.structs.replace(
            ask, backend="gloo", seconds=0.1, arms=("default",), inject=fault, grace=120.0
        )
        done = subprocess.run(asks.argv(python, small), stdout=subprocess.PIPE, text=True)
        status = done.returncode
        found = [json.loads(line) for line in done.stdout.splitlines()]
        wrong = [read(one["miscompare"]) for one in found if "miscompare" in one]
        counts = {one["reading"]: one["value"] for one in found if one.get("unit") == "count"}

    def efficiency(arm: str, way: str, accumulation: int) -> float:
        through = "p2p_off" if fault == "host-memory" else arm
        return train_parallel_texts.healthy(through, way, accumulation)

    uuids = [gpu.readings["uuid"] for gpu in seen.gpus(seen.machine())]
    text = train_parallel_texts.printed(
        ask, uuids, efficiency=efficiency, counts=counts, wrong=wrong
    )
    print(
        "".join(text.splitlines(keepends=True)[: None if status == 0 else 1 + len(wrong)]), end=""
    )
    sys.stdout.flush()
    sys.exit(status)


def train_step(words: list[str]) -> None:
    """Figures of an H200 and of H100s. Of the fault "memory" no batch fits."""
    import train_step_texts

    from acceptance.loads import asks

    told = plan("train_step")
    gpu, about = who()
    sick = gpu.index == told["gpu"]
    ask: Any = asks.decode(words[0])
    time.sleep(ask.seconds * 1.02)
    text = train_step_texts.printed(
        ask,
        about,
        share=seen.wobble(told["share"] if sick else 1.0, gpu.index, 0),
        wrong=[train_step_texts.WRONG] if sick and told["fault"] == "wrong" else [],
    )
    if sick and told["fault"] == "memory":
        print(text.partition("\n")[0], flush=True)
        print(f"train_step: {train_step_texts.TOO_LARGE}", file=sys.stderr)
        sys.exit(1)
    print(text, end="", flush=True)


def pulse(words: list[str]) -> None:
    told = plan("pulse")
    clockwork(words[0], told["gpu"] if told["fault"] == "element" else None)


def clockwork(given: str, bad: int | None) -> None:
    """The real one, on GPUs of clockwork: a product takes a millisecond. The first result of the
    GPU `bad` is wrong.
    """
    from acceptance.core.dtype import DtypeName
    from acceptance.loads import __main__
    from acceptance.loads.pulse import load
    from acceptance.loads.pulse.clocks import Alignment
    from acceptance.loads.pulse.device import Compared

    class Clockwork:
        dtype: DtypeName = "bf16"

        def __init__(self) -> None:
            gpu, self.about = who()
            self._bad = gpu.index == bad
            self._free_s = 0.0

        def start(self, count: int) -> Any:
            self._free_s = max(self._free_s, time.monotonic()) + 1e-3 * count
            wrong, self._bad = self._bad, False
            return self._free_s, Compared(count - wrong, (1,) * wrong, 1e-3 * count)

        def waves(self, begin_s: float, half_s: float, count: int) -> Any:
            whole_s = 2 * half_s * count
            return begin_s + whole_s, Compared(count, (), whole_s, count)

        def align(self) -> Alignment:
            return Alignment(0, 1000)

        def compared(self, ticket: Any) -> Compared:
            until_s, found = ticket
            time.sleep(max(0.0, until_s - time.monotonic()))
            done: Compared = found
            return done

    load.cuda = Clockwork
    if status := __main__.main([given]):
        sys.exit(status)


def changed(name: str, words: list[str]) -> None:
    """The real load, with a fault that it makes by itself (`fault`: what it injects), which its
    hello line keeps to itself; or with one reading (`fault`: name and component) at a share of a
    healthy one.

    What the other components showed of that reading is replaced by the healthy 1: a ratio beside
    siblings, which the machine's other work moves.
    """
    told = plan(name)
    real = [f"{sys.executable}.real" if Path(f"{sys.executable}.real").exists() else sys.executable]
    which, _, component = told["fault"].partition(" ")
    if words[0].startswith("{"):
        fault = {} if component else {"inject": which}
        argv = ["acceptance.loads", json.dumps({**json.loads(words[0]), **fault})]
    else:
        argv = [name, *words, *([] if component else ["--inject", which])]
    done = subprocess.run([*real, "-m", *argv], stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        one = json.loads(line)
        if "parameters" in one:
            one["parameters"].pop("inject", None)
        if component and one.get("reading") == which:
            one["value"] = told["share"] if one["component"] == component else 1.0
        print(json.dumps(one))
    sys.stdout.flush()
    sys.exit(done.returncode)


def main() -> None:
    name, *words = sys.argv[1:]
    own = {
        "burn": burn,
        "gpu_gemm": gpu_gemm,
        "pulse": pulse,
        "train_step": train_step,
        "vram": vram,
        "collective": collective,
        "train_layers": train_layers,
        "train_digest": train_digest,
        "train_parallel": train_parallel,
    }
    if name in own:
        own[name](words)
    else:
        changed(name, words)


if __name__ == "__main__":
    main()
