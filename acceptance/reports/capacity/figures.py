"""What a run measured of all that training needs. What it did not measure is None.

What the capacity card is asked, and what it assumes where nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from acceptance.core.parts import Component
from acceptance.core.verdict import Judgement
from acceptance.expect import sheet
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.loads.train.parallel_contract import EFFICIENCIES
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.reports import pair_table
from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.formulas import MIXED, Batch, Model

# Of each, the first that the run measured is taken. A short product is no sustained one.
PRODUCTS = ("gemm_bf16", "step_matmul", "layer_matmul", "gemm_f16")
STEPS = ("step_neo", "step_gpt2", "step_bert")
# Through host memory where there is no peer access.
LINKS = ("collective_send_receive", "p2p_write", "copy_own_p2p", "p2p_staged")
FEEDS = ("storage_feed_gpu", "storage_feed_host", "storage_memmap_cold")
# A run's values in bytes, operations, tokens and seconds. A journal may hold anything: no machine
# has more.
_BASE = {"TFLOP/s": 1e12, "GB/s": 1e9, "Mtokens/s": 1e6, "s": 1.0, "ratio": 1.0}
_MOST = 1e9


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value in base units.

    It is that of `component`, and the least of `count` components (of disks the best).
    """

    value: float
    measurement: str
    component: Component
    count: int = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run measured.

    `gpus` are those of the test, `memory` is that of the smallest of them, `model` the model of
    all. `peak` is the dense peak of the model's sheet in bfloat16, in float16 where the card has no
    bfloat16, and `sheet` its name. `peer_access` is None where the driver does not tell.
    """

    gpus: int
    model: str | None
    memory: float | None
    product: Figure | None
    step: Figure | None
    peak: float | None
    sheet: str | None
    efficiencies: dict[str, Figure]
    link: Figure | None
    peer_access: bool | None
    all_reduce: Figure | None
    write: Figure | None
    checkpoint: Figure | None
    feed: Figure | None

    def efficiency(self, way: str) -> Figure | None:
        """The efficiency of a way of training in parallel, with all GPUs of the run."""
        return self.efficiencies.get(f"parallel_{way}_efficiency")


def measured(run: Run, sheets: Sequence[Sheet]) -> Figures:
    """The figures of a run."""
    due = gpus(run.inventory, run.plan.gpus or None)
    judged = [one for one in pair_table.judged(run) if _believable(one)]
    peak, name = _peak(due, sheets)
    ways = {way: one for way in EFFICIENCIES if (one := _best(judged, (way,)))}
    return Figures(
        gpus=len(due),
        model=_model(due),
        memory=_memory(due),
        product=_best(judged, PRODUCTS),
        step=_best(judged, STEPS),
        peak=peak,
        sheet=name,
        efficiencies=ways,
        link=_best(judged, LINKS),
        peer_access=_peer_access(run.inventory, due),
        all_reduce=_best(judged, ("collective_all_reduce",)),
        write=_best(judged, ("storage_write",), max),
        # seconds: the best has the least
        checkpoint=_best(judged, ("storage_checkpoint_write",)),
        feed=_best(judged, FEEDS, max),
    )


def _believable(one: Judgement) -> bool:
    """Whether a value can be reckoned with, good or bad."""
    value = one.value
    return (
        value is not None
        and math.isfinite(value)
        and 0.0 < value < _MOST
        and one.due.unit in _BASE
        and not any(finding.kind == "error" for finding in one.findings)
    )


def _values(judged: Iterable[Judgement], name: str) -> list[tuple[float, Component]]:
    return [
        (one.value * _BASE[one.due.unit], one.due.component)
        for one in judged
        if one.due.measurement == name and one.value is not None
    ]


def _best(
    judged: Sequence[Judgement],
    names: Iterable[str],
    best: Callable[[list[tuple[float, Component]]], tuple[float, Component]] = min,
) -> Figure | None:
    """The first of these that was measured; of its components the least, unless told otherwise."""
    for name in names:
        if found := _values(judged, name):
            value, where = best(found)
            return Figure(value, name, where, len(found))
    return None


def _peak(due: Sequence[Gpu], sheets: Sequence[Sheet]) -> tuple[float | None, str | None]:
    """The lowest dense peak, and whose; None where a GPU's is not known."""
    found = []
    for gpu in due:
        own = sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model)
        peaks = own.peak.by_dtype() if own is not None else {}
        peak = peaks.get("bf16") or peaks.get("f16")
        if own is None or peak is None:
            return None, None
        found.append((peak * 1e12, own.name))
    return min(found, default=(None, None))


def _model(due: Sequence[Gpu]) -> str | None:
    models = {gpu.model for gpu in due}
    return models.pop() if len(models) == 1 else None


def _memory(due: Sequence[Gpu]) -> float | None:
    sizes = [gpu.memory_bytes for gpu in due]
    known = [float(size) for size in sizes if size]
    return min(known) if known and len(known) == len(sizes) else None


def _peer_access(inventory: Inventory, due: Sequence[Gpu]) -> bool | None:
    """Whether every two GPUs may write to each other's memory."""
    own = {gpu.nvml_index for gpu in due}
    told = [pair.p2p_write for pair in inventory.nvml.pairs if pair.a in own and pair.b in own]
    if not told or None in told:
        return None
    return all(answer == "ok" for answer in told)


# Usual sizes of models, of which the largest that fits is taken; without a known memory the first
# that is not larger than 7e9.
SIZES = (70e9, 13e9, 7e9, 1.3e9, 350e6, 125e6)
UNKNOWN_MEMORY = 7e9
TOKENS_A_PARAMETER = 20  # arXiv 2203.15556
CONTEXT = 4096
MICRO = 1
ACCUMULATION = 4
CHECKPOINT_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Question:
    """The model and its training, as they were asked for; None is left to assumption.

    `gpus` are those of each machine, `micro` and `context` samples and tokens of a micro-batch,
    `checkpoint_every` seconds.
    """

    parameters: float | None = None
    tokens: float | None = None
    gpus: int | None = None
    machines: int | None = None
    context: int | None = None
    micro: int | None = None
    accumulation: int | None = None
    layers: int | None = None
    hidden: int | None = None
    checkpoint_every: float | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """A training with nothing left open; `gpus` are those of each machine."""

    model: Model
    tokens: float
    context: int
    batch: Batch
    checkpoint_every: float

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.batch.gpus * self.batch.machines


def training(question: Question, gpus: int, memory: float | None) -> Training:
    """What is asked; on so many GPUs of a machine, with this memory each, where nothing else is."""
    batch = Batch(
        question.micro or MICRO,
        question.accumulation or ACCUMULATION,
        question.gpus or gpus,
        question.machines or 1,
    )
    context = question.context or CONTEXT

    def model(parameters: float) -> Model:
        return formulas.shape_of(parameters, question.layers, question.hidden)

    def fits(parameters: float) -> bool:
        kept = formulas.checkpointed_bytes(model(parameters), context, batch.micro)
        states = MIXED.on_each(3, batch.gpus * batch.machines) * parameters  # all of it sharded
        return states + kept <= (memory or 0.0)

    usual = next(filter(fits, SIZES), SIZES[-1]) if memory else UNKNOWN_MEMORY
    parameters = question.parameters or usual
    return Training(
        model(parameters),
        question.tokens or TOKENS_A_PARAMETER * parameters,
        context,
        batch,
        question.checkpoint_every or CHECKPOINT_EVERY_S,
    )
