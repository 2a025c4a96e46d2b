"""What each of our loads has of its own in a sound output: the figures of its hardware, and the
rows and logs that must agree with them. `load_texts.printed` makes the text.

A function is given the ask, what the hardware says of itself, and the wrong results; whatever else
it takes is a keyword of `printed` too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from typing import Any, NamedTuple

import nccl_texts
from wrong_results import LAYER, RUN, TRAINED

from acceptance.core.dtype import DtypeName, native_dtypes
from acceptance.core.parts import GPUS, Gpu
from acceptance.loads import power_step
from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.collective.pattern import ELEMENT_TYPES, ITEMSIZE, Operation
from acceptance.loads.contract import OWN, ReadingKey
from acceptance.loads.copy import contract as copy
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.miscompare import (
    REPEATS_DIFFER,
    CollectiveVariant,
    DigestFormat,
    DigestPart,
    Miscompare,
    of_variant,
    read,
)
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.pulse.edges import edges
from acceptance.loads.storage import contract as storage
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import digest_log, parallel_values
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.train.digest_log import Row, RunDigests, Stamp
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.layer_contract import GRID
from acceptance.loads.train.shapes import (
    FORMAT_NAMES,
    LAYERS,
    MODELS,
    LayerName,
    StepOption,
    judged_format,
    options,
)
from acceptance.loads.vram import contract as vram

Rows = Sequence[Sequence[float | str]]
About = Mapping[str, Any]
Wrong = Sequence[Miscompare]
Values = dict[str | ReadingKey, float]
Logs = dict[ReadingKey, str]


@dataclass(frozen=True)
class Sound:
    """The output of a sound run, as far as its due readings do not say it.

    `facts` are parameters that were not asked; `steps` are those of the power load, each with when
    it began, its edges and its wrong results. Values are by name, or of one component.
    """

    facts: About = field(default_factory=dict)
    values: Mapping[str | ReadingKey, float] = field(default_factory=dict)
    tables: Mapping[str, Rows] = field(default_factory=dict)
    logs: Mapping[ReadingKey, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    wrong: Wrong = ()
    steps: Sequence[tuple[power_step.Step, float, int, int]] = ()


# --- one GPU, processors, disks ---

DIGEST = "0123456789abcdef"
SHAPE = "8192x8192x8192"
BURN_LAPS = 2
BEGIN_S = 100.0


def of_burn(
    ask: burn.Ask,
    _about: About,
    _wrong: Wrong,
    *,
    begin_s: float = BEGIN_S,
    rest_s: float | None = None,
) -> Sound:
    """Its turns of the formats, one after the other, each as long; with `rest_s` so long beside the
    first's, which has the rest of each lap.
    """
    lap_s = ask.seconds / BURN_LAPS
    rest_s = rest_s or lap_s / len(ask.dtypes)
    first_s = lap_s - rest_s * (len(ask.dtypes) - 1)
    turns: list[tuple[float | str, ...]] = []
    for lap, dtype in product(range(BURN_LAPS), ask.dtypes):
        turn_s = first_s if dtype == ask.dtypes[0] else rest_s
        turns.append((float(lap), dtype, 50.0, 10.0, turn_s, begin_s, begin_s + 0.9 * turn_s))
        begin_s += turn_s
    return Sound(
        {"laps": BURN_LAPS, "library": "cuBLAS 12.8"},
        tables={
            burn.LAPS: turns,
            burn.DIGESTS: [(dtype, SHAPE, DIGEST, DIGEST) for dtype in ask.dtypes],
            burn.COURSES: [(one, "plain", 1.0, 2.0, 50.0) for one in ask.dtypes],
        },
    )


COPIES = {copy.PRODUCTS: [(count, 12 * count / 2**20, 400.0) for count in copy.ELEMENTS]}
MEMMAP = {storage.MEMMAP: [(arm, 8.0, 1.0, 16400.0, 65536.0, 60.0, 90.0) for arm in storage.ARMS]}
VRAM = {vram.PASSES: [(pattern, 2.0, 4000.0, 0.0) for pattern in vram.PATTERNS]}


# --- power ---


@cache
def edge_count(one: power_step.Step) -> int:
    """The edges that are due in a step; the longest has tens of thousands."""
    return sum(1 for _ in edges(one))


def of_pulse(
    ask: pulse.Ask, _about: About, _wrong: Wrong, *, made: int | None = None, bad: int = 0
) -> Sound:
    """So many of its steps were made: if not all, it was stopped in the next one. So many results
    on the last GPU were `bad`.
    """
    due = ask.power_steps()
    whole = len(due) if made is None else made
    began = [(one, edge_count(one)) for one in due[: whole + 1]]
    starts = [BEGIN_S + sum(one.seconds + 1.0 for one in due[:place]) for place in range(len(due))]
    return Sound(
        values={(pulse.MISCOMPARES, Gpu(ask.gpus - 1)): bad, pulse.MADE: whole / len(due)},
        tables={
            pulse.STEPS: [
                (*pulse.row_of(one), count, count, 0.5, 1000, bad, "-") for one, count in began
            ]
        },
        steps=[(one, at_s, count, bad) for (one, count), at_s in zip(began, starts, strict=False)],
    )


# --- collectives ---


def pci(rank: int) -> str:
    """The PCI address of a rank's GPU."""
    return f"0000:0{rank}:00.0"


def nccl_logs(arm: CollectiveVariant, addresses: Sequence[str], via: nccl_texts.Via) -> Logs:
    """NCCL's log of each rank, whose GPU has this PCI address."""
    own = {
        "default": [],
        "p2p_off": ["NCCL_P2P_DISABLE set by environment to 1"],
        "multicast": [
            "AllReduce: 1073741824 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}"
        ],
    }
    multicast = int(arm == "multicast")
    texts = nccl_texts.processes(
        len(addresses),
        (lambda _first, _second: nccl_texts.SHM) if arm == "p2p_off" else via,
        exchange=True,
        extra=[f"NCCL_NVLS_ENABLE set by environment to {multicast}", *own[arm]],
    )
    found: Logs = {}
    for rank, text in enumerate(texts):
        told = text
        for number, address in enumerate(addresses):
            digits = address.replace(":", "").replace(".", "").lstrip("0")
            told = told.replace(f"busId {nccl_texts.bus(number)} ", f"busId {digits} ")
        found[of_variant(collective.NCCL_LOG, arm), Gpu(rank)] = told
    return found


def of_collectives(
    ask: collective.Ask,
    _about: About,
    _wrong: Wrong,
    *,
    rate: Callable[[str, int, int], float] = lambda _arm, _first, _second: 20.0,
    via: nccl_texts.Via = lambda _first, _second: nccl_texts.SHM,
    latency_us: float = 20.0,
    addresses: Sequence[str] | None = None,
) -> Sound:
    """`rate` gives GB/s of a path in an arm, and the slowest is that of an operation of all; `via`
    is NCCL's transport of a path.
    """
    ranks, values, logs = range(ask.ranks), Values(), Logs()
    paths = list(permutations(ranks, 2))
    rows: list[tuple[float | str, ...]] = []

    def compare(arm: str, operation: Operation, component: object, dtype: str, gb_s: float) -> None:
        """One of 2400 elements a share, in one turn that counts, after one that does not."""
        share, itemsize = 2400, next(ITEMSIZE[one] for one in ELEMENT_TYPES if one == dtype)
        size, elements = (
            share * operation.shares * itemsize,
            sum(operation.receives(rank, share) for rank in ranks),
        )
        about = arm, operation.name, str(component), dtype
        rows.append((*about, size, 1, 2 * elements, 1e6, round(gb_s, 3)))

    for arm in ask.arms:
        slowest = min(rate(arm, *path) for path in paths)
        for name, dtype in product(collective.SUMS, ("bf16", "f16", "i32")):
            compare(arm, Operation(name, ask.ranks), GPUS, dtype, 1.0)
        for name in collective.WHOLE_GROUP:
            values[of_variant(collective.rate_of(name), arm)] = slowest
            compare(arm, Operation(name, ask.ranks), GPUS, "f32", slowest)
        values[of_variant(collective.LATENCY, arm)] = latency_us
        for path in paths if arm != "multicast" else ():
            where, sent = collective.path_of(path), Operation("send_receive", ask.ranks, *path)
            values[of_variant(collective.rate_of(sent.name), arm), where] = rate(arm, *path)
            compare(arm, sent, where, "f32", rate(arm, *path))
        logs |= nccl_logs(arm, addresses or [pci(rank) for rank in ranks], via)
    return Sound(values=values, tables={collective.COLLECTIVES: rows}, logs=logs)


def of_pair(ask: collective.PairAsk, _about: About, _wrong: Wrong, *, rate: float = 10.0) -> Sound:
    """All its operations have this rate."""
    elements = 6 * 2048  # of 8 KiB, in a turn to warm up and five
    ways = (collective.path_of(ends) for ends in permutations(range(collective.NODES), 2))
    arrived = {
        **{(name, str(GPUS)): elements for name in collective.PAIR_OPERATIONS},
        **{("send_receive", str(way)): elements * (way.second == Gpu(ask.rank)) for way in ways},
    }
    rows = [
        ("default", *key, "f32", 8192, ask.turns, count, 9.0, rate)
        for key, count in arrived.items()
    ]
    return Sound(
        {"host": f"h{ask.rank}", "uuids": [""]},
        {collective.rate_of(name): rate for name, _ in arrived},
        {collective.COLLECTIVES: rows},
    )


# --- layers of transformers ---

MATMUL = 658.0  # the card's own product, of an H200
# Forward, and forward with backward, in TFLOP/s; T5's have the H100s' shares of the product.
RATES: dict[LayerName, tuple[float, float]] = {
    "bert": (464.0, 436.0),
    "gpt2": (495.0, 472.0),
    "t5_encoder": (331.0, 316.0),
    "t5_decoder": (357.0, 326.0),
    "llama": (625.0, 610.0),
}
# Of the parts and formats the higher of two H100s.
PARTS = {
    "layer_dense": 521.7,
    "layer_dense_gelu": 450.3,
    "layer_feed_forward": 516.1,
    "layer_attention": 105.7,
}
FORMATS: dict[DtypeName, float] = {"bf16": 1.0, "f16": 0.97, "tf32": 0.36, "f32": 0.1}
Cell = tuple[LayerName, DtypeName, int, int]
WRONG_GRADIENT = read(LAYER)


def of_layers(
    ask: layers.Ask,
    about: About,
    wrong: Wrong,
    *,
    share: float = 1.0,
    matmul: float = MATMUL,
    unmeasured: Mapping[Cell, str] = {},
) -> Sound:
    """`share` is left of the rates of the layers, which are so much of `matmul`; `unmeasured` has
    cells of the table without rates, and why.
    """
    part = matmul / MATMUL
    formats = [one for one in UNITS if one in native_dtypes(about["capability"])]
    values: Values = {"layer_matmul": matmul, "layer_miscompares": float(len(wrong))}
    values |= {name: part * rate for name, rate in PARTS.items()}
    rows: list[tuple[float | str, ...]] = []
    for name, rates in RATES.items():
        figures = *(share * part * rate for rate in rates), share * rates[1] / MATMUL
        names = f"layer_{name}_forward", f"layer_{name}", f"layer_{name}_share"
        values |= dict(zip(names, figures, strict=True))
        rows.append((name, ask.dtype, LAYERS[name].sequence, LAYERS[name].batch, *figures))
    known: About = {"formats": [], "batches": {name: shape.batch for name, shape in LAYERS.items()}}
    tensors = layers.layer_tensors(1, judged=True)
    if ask.table:
        cells: list[Cell] = [
            (name, dtype, sequence, batch)
            for dtype in formats
            for name, sequence, batches in GRID
            for batch in batches
        ]
        rows = [
            (*one, *((unmeasured[one],) * 3 if one in unmeasured else _cell(one, part)))
            for one in cells
        ]
        known = {"formats": formats, "batches": {}}
        tensors = layers.layer_tensors(len(formats), judged=False)
    notes = (layers.layers_compared(tensors, len(wrong)),)
    return Sound({**known, "size": 8192}, values, {layers.LAYER_TABLE: rows}, notes=notes)


def _cell(one: Cell, part: float) -> tuple[float, float, float]:
    """The figures of a row of the table of published shapes."""
    name, dtype, *_ = one
    forward, both = RATES[name]
    return FORMATS[dtype] * part * forward, FORMATS[dtype] * part * both, both / MATMUL


# --- training steps ---

STEP_SHARES: Mapping[step.StepModel, float] = {"gpt2": 0.57, "bert": 0.387, "neo": 0.675}
# What a load says for whose model the memory does not suffice.
TOO_LARGE = (
    "GPT-2 medium needs about 6.1 GiB of the GPU's memory for one sample with checkpointing, and "
    "the GPU has 5.8 GiB: end what else uses it; on a smaller card leave this check out with --only"
)
WRONG_WEIGHT = read(TRAINED)


def of_steps(
    ask: step.Ask, about: About, wrong: Wrong, *, share: float = 1.0, matmul: float = MATMUL
) -> Sound:
    """`share` is left of the rates of steps, which are so much of `matmul`."""
    judged = judged_format(about["capability"])
    own = FORMAT_NAMES[judged]
    rates = {model: round(share * part * matmul, 3) for model, part in STEP_SHARES.items()}
    values: Values = {"step_matmul": matmul, "step_miscompares": float(len(wrong))}
    values |= {f"step_{model}": rate for model, rate in rates.items()}
    values |= {f"step_{model}_share": rate / matmul for model, rate in rates.items()}
    models: Sequence[step.StepModel] = ("gpt2", *ask.models) if ask.table else ask.models
    trained = list(options(judged)) if ask.table else [StepOption(judged)]
    rows = [_step_row(model, option, rates[model]) for model in models for option in trained]
    checks: list[tuple[float | str, ...]] = [
        ("small model", name, what, 2.0 if what == "loss" else 3749888.0, 0.237)
        for name in ("float32", own)
        for what in step.STEP_REFERENCED
    ]
    ways = dict.fromkeys((one[0], str(one[1]).partition(",")[0]) for one in rows)
    checks += [(*one, what, 9.0, 0.7) for one in ways for what in step.STEP_LOSSES]
    checks.append(("matmul", own, "repeated product", 67108864.0, 0.0))
    tables = {step.STEP_TABLE: rows, step.STEP_CHECKS: checks}
    return Sound({"format": judged, "size": 8192}, values, tables)


def _step_row(model: step.StepModel, option: StepOption, rate: float) -> tuple[float | str, ...]:
    shape = MODELS[model]
    samples = rate * 1e12 / shape.sample_flop(checkpointed=option.checkpointed)
    batch, k_tokens = (16.0, float(option.accumulation)), round(samples * shape.sequence / 1e3, 3)
    figures = round(samples, 3), k_tokens, rate, 29.2, 105.9, 105.7, 106.4
    return shape.name, option.name, *batch, *figures


# --- digests of training runs ---

DIGEST_MODEL = MODELS["digest"]
TENSORS = digest_log.gpt_tensors(DIGEST_MODEL.layers)
LIBRARY = "torch 2.10.0+cu128, CUDA 12.8"
REPEATS = 12


class Flip(NamedTuple):
    """A bit that differs first, in one tensor; all that follows differs too.

    `gpu` makes other bits of what follows.
    """

    step: int = 6
    part: DigestPart = "gradient"
    tensor: str = "blocks.3.feed_forward.up.weight"
    bit: int = 12
    gpu: str = "gpu1"


def _number(*about: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(about).encode()).digest()[:8], "big")


@cache
def digest_run(dtype: str, flip: Flip | None = None) -> RunDigests:
    """A run of this format; equal arguments have equal bits."""
    rows, differs = [], False
    for number, part, count in digest_log.due_rows(digest.STEPS, len(TENSORS)):
        stamps = []
        for place in range(count):
            name = digest_log.LOSS if part == "loss" else TENSORS[place]
            about = (dtype, number, part, name)
            stamp = Stamp(_number(*about, "digest"), _number(*about, "sum") >> 1, 0)
            if flip is not None and (number, part, name) == flip[:3]:
                differs = True
                bits = (stamp.digest + (0x9E37_79B9_7F4A_7C15 << flip.bit)) % (1 << 64)
                stamp = Stamp(bits, stamp.total + (1 << flip.bit), 0)
            elif differs and flip is not None:
                stamp = Stamp(_number(*about, flip.gpu), _number(*about, flip.gpu, 1), 0)
            stamps.append(stamp)
        rows.append(Row(number, part, tuple(stamps)))
    return RunDigests(TENSORS, tuple(rows))


def of_digests(
    _ask: digest.Ask,
    about: About,
    _wrong: Wrong,
    *,
    flips: Mapping[str, Flip] = {},
    differing: Sequence[tuple[DigestFormat, int, Flip]] = (),
    multiprocessors: int = 132,
) -> Sound:
    """`flips` are in first runs, which differ from those of sound GPUs, by format; `differing` are
    repeats that do from the first run: format, number, and where.
    """
    own = digest.formats(about["capability"])
    first = {dtype: digest_run(dtype, flips.get(dtype)) for dtype in own}
    facts = {
        "formats": list(own),
        "model": DIGEST_MODEL.name,
        "batch": digest.BATCH,
        "sequence": DIGEST_MODEL.sequence,
        "steps": digest.STEPS,
        "recipe": digest.RECIPE,
        "library": LIBRARY,
        "cublas": "12.8.4",
        "multiprocessors": multiprocessors,
    }
    wrong = [
        read(
            RUN
            | {"format": dtype, "repeat": repeat, "digests": 2000}
            | {"step": where.step, "part": where.part, "tensor": where.tensor, "bit": where.bit}
        )
        for dtype, repeat, where in differing
    ]
    rows = [(one, digest.STEPS, REPEATS, *run.summaries, 0.5) for one, run in first.items()]
    logs: Logs = {(digest.LOG.format(dtype), OWN): run.text() for dtype, run in first.items()}
    return Sound(
        facts, {REPEATS_DIFFER: float(len(wrong))}, {digest.TABLE: rows}, logs, wrong=wrong
    )


# --- parallel training ---

ALONE_TFLOPS = 412.8  # of one card
# Of two cards, by arm and way: with 1 and with 4 accumulated batches.
EFFICIENCIES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("default", "ddp"): (0.9192, 0.9797),
    ("default", "zero2"): (0.962, 0.9681),
    ("default", "zero3"): (0.9332, 0.9201),
    ("default", "tp"): (0.7559, 0.7365),
    ("p2p_off", "ddp"): (0.5968, 0.8553),
    ("p2p_off", "zero2"): (0.7217, 0.839),
    ("p2p_off", "zero3"): (0.6091, 0.7293),
    ("p2p_off", "tp"): (0.3929, 0.3821),
}


def efficiency_of_h100s(arm: str, way: str, accumulation: int) -> float:
    """Efficiencies as two H100s have them."""
    return EFFICIENCIES[arm, way][parallel.ACCUMULATIONS.index(accumulation)]


def of_parallel(
    ask: parallel.Ask,
    _about: About,
    _wrong: Wrong,
    *,
    efficiency: Callable[[str, str, int], float] = efficiency_of_h100s,
) -> Sound:
    """`efficiency` is of an arm, a way and an accumulation."""
    ranks, batch, shape = ask.ranks, 8, MODELS["parallel"]
    flop = shape.sample_flop() / shape.sequence

    def row(arm: str, way: str, count: int) -> tuple[float | str, ...]:
        cards, share = (1, 1.0) if way == parallel.ALONE else (ranks, efficiency(arm, way, count))
        rate = ALONE_TFLOPS * 1e12 / flop * share * cards
        own, step_ms = batch * (ranks if way == "tp" else 1), count * batch * cards / rate * 1e3
        optimizer = 0.05
        compute = round(min((1 - optimizer) * share, 1.0), 4)
        times = compute, round(1 - compute - optimizer, 4), optimizer
        tera = round(rate / 1e3, 3), round(rate * flop / 1e12, 3)
        return arm, way, count, own, *tera, share, 40.5, round(step_ms * shape.sequence, 3), *times

    values: Values = {}
    trained, compared = [], []
    for arm, count in product(ask.arms, ask.accumulate):
        trained.append(row(arm, parallel.ALONE, count))
        for way in ask.ways:
            name = parallel.efficiency(way, arm, accumulated=count > 1)
            values[name] = efficiency(arm, way, count)
            trained.append(row(arm, way, count))
            if (arm, way, count) == ("default", "ddp", 1):
                values[parallel.TOTAL] = float(trained[-1][4]) / 1e3
            steps, elements = parallel_values.STEPS, parallel_values.elements(way, ranks)
            numbers = steps, steps * ranks, steps * elements, elements, ranks * (way == "ddp")
            compared.append((arm, way, count, *numbers, 0.0017, 0.004, 0.0017))
    facts = {"model": "parallel", "batch": batch, "tensor_batch": batch * ranks, "format": "bf16"}
    return Sound(
        {**facts, "library": "torch 2.10.0+cu128, nccl 2.27.5, NVIDIA H200"},
        values,
        {parallel.TABLE: trained, parallel.VALUES: compared},
    )


SOUND: Mapping[type, Callable[..., Sound]] = {
    burn.Ask: of_burn,
    collective.Ask: of_collectives,
    collective.PairAsk: of_pair,
    copy.Ask: lambda *_: Sound(tables=COPIES),
    cpu.Gemm: lambda ask, *_: Sound(values={cpu.GEMM[ask.dtype][-1]: 1.0}),  # right products
    digest.Ask: of_digests,
    layers.Ask: of_layers,
    parallel.Ask: of_parallel,
    pulse.Ask: of_pulse,
    step.Ask: of_steps,
    storage.Memmap: lambda *_: Sound(tables=MEMMAP),
    vram.Ask: lambda *_: Sound(tables=VRAM),
}


def sound(ask: object, about: Mapping[str, Any] = {}, wrong: Wrong = (), **own: Any) -> Sound:
    """What a load has of its own in a sound output, but for these wrong results."""
    made = SOUND.get(type(ask))
    return Sound() if made is None else made(ask, about, wrong, **own)
