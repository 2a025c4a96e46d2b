"""Published formulas of training. Pure.

Sizes are in bytes, rates in operations or bytes a second, times in seconds; nothing is in giga.
Where a formula comes from, and what it assumes, stands at each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from acceptance.loads.train.shapes import ADAMW_BYTES

Stage = Literal[0, 1, 2, 3]
STAGES: tuple[Stage, ...] = (0, 1, 2, 3)
DAY_S = 86400.0
FLOP_OF_TOKEN = 6  # a parameter: 2 forward, 4 backward
BACKWARD = 2 / 3  # of a forward and backward pass
GRADIENT = 4  # bytes: of a float32 gradient, as it is exchanged
ELEMENT = 2  # bytes: of bfloat16 or float16, in which activations are
# Bytes of a layer's activations for one element of its input (arXiv 2205.05198, section 4, with
# attention that keeps no scores): 10 on every GPU, and 24 that tensor parallelism divides.
ON_EACH, DIVIDED = 10, 24
HEAD_WIDTH = 128
WIDTH_OF_LAYERS = 128  # hidden width over layers, for a model that is known by its size alone


@dataclass(frozen=True, slots=True)
class Layout:
    """Bytes a parameter: of its weight, its gradient, and the optimizer's copies (AdamW)."""

    weight: int
    gradient: int
    optimizer: int

    @property
    def total(self) -> int:
        """Bytes a parameter without any sharding."""
        return self.weight + self.gradient + self.optimizer

    def on_each(self, stage: Stage, gpus: int) -> float:
        """Bytes a parameter on each of so many GPUs.

        ZeRO (arXiv 1910.02054, section 5): stage 1 shards the optimizer's copies, stage 2 the
        gradients too, stage 3 the weights too.
        """
        weight = self.weight / gpus if stage == 3 else self.weight
        gradient = self.gradient / gpus if stage >= 2 else self.gradient
        return weight + gradient + (self.optimizer / gpus if stage >= 1 else self.optimizer)


# bfloat16 weight and gradient; the optimizer keeps a float32 weight and two moments.
MIXED = Layout(2, 2, 12)
# The same without a float32 weight.
LEAN = Layout(2, 2, 8)
assert MIXED.total == ADAMW_BYTES


@dataclass(frozen=True, slots=True)
class Model:
    """A transformer as the formulas take it."""

    parameters: float
    layers: int
    hidden: int


def shape_of(parameters: float, layers: int | None = None, hidden: int | None = None) -> Model:
    """A model of this size: 12 L h^2 parameters, where not both are given with h = 128 L.

    Published models lie between h = 85 L (GPT-Neo-1.3B) and 128 L (GPT-3, Llama-8B). The width is a
    whole number of heads of 128.
    """
    if layers is None:
        width = hidden or (parameters * WIDTH_OF_LAYERS / 12) ** (1 / 3)
        layers = max(1, round(parameters / 12 / width**2))
    if hidden is None:
        heads = math.sqrt(parameters / 12 / layers) / HEAD_WIDTH
        hidden = HEAD_WIDTH * max(1, round(heads))
    return Model(parameters, layers, hidden)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one update of the weights is made of: micro-batches of samples."""

    micro: int
    accumulation: int
    gpus: int
    machines: int

    @property
    def samples(self) -> int:
        """Samples of one update."""
        return self.accumulation * self.machines * self.gpus * self.micro

    def updates(self, samples: int) -> int:
        """Updates in which so many samples are seen once."""
        return math.ceil(samples / self.samples)

    def passes(self, samples: int) -> int:
        """Forward and backward passes of each GPU in which so many samples are seen once."""
        return math.ceil(samples / (self.micro * self.gpus * self.machines))


def training_flop(parameters: float, tokens: float) -> float:
    """Operations of a training: 6 N D (arXiv 2001.08361). Attention is not in it."""
    return FLOP_OF_TOKEN * parameters * tokens


def attention_share(model: Model, context: int) -> float:
    """What attention adds to 6 N D: 12 L h s operations a token, counted whole where causal.

    Megatron-LM (arXiv 2104.04473, equation 3).
    """
    return 12 * model.layers * model.hidden * context / (FLOP_OF_TOKEN * model.parameters)


def days(flop: float, gpus: int, rate: float) -> float:
    """Days for so many operations on GPUs of this rate each."""
    return flop / (gpus * rate) / DAY_S


def largest_model(memory: float, bytes_a_parameter: float) -> float:
    """Parameters that fit beside nothing else: no activation, no buffer, no CUDA context."""
    return memory / bytes_a_parameter


def activation_bytes(model: Model, context: int, micro: int, tensor: int = 1) -> float:
    """Activations that all layers keep for backward: s b h L (10 + 24 / t) bytes.

    arXiv 2205.05198, with attention that keeps no scores, in a 16-bit format, with dropout's masks.
    """
    return context * micro * model.hidden * model.layers * (ON_EACH + DIVIDED / tensor)


def checkpointed_bytes(model: Model, context: int, micro: int) -> float:
    """Activations with checkpointing: each layer's input, and one layer that is computed again."""
    one = Model(model.parameters, 1, model.hidden)
    kept = ELEMENT * context * micro * model.hidden * model.layers
    return kept + activation_bytes(one, context, micro)


def gpus_needed(total: float, memory: float) -> int:
    """GPUs that together have so many bytes, if all of it can be divided."""
    return math.ceil(total / memory)


def tensor_parallel_limit(
    hidden: int, rate: float, bandwidth: float, element: int = ELEMENT
) -> float:
    """The most GPUs over which tensor parallelism does not wait for the link.

    6 E / TP / bytes >= operations a second / one-way bytes a second: what a layer computes for each
    byte that it sends must take at least as long as sending it.
    """
    return 6 * hidden / element * bandwidth / rate


def head_bandwidth(head: int, rate: float, element: int = ELEMENT) -> float:
    """One-way bandwidth that tensor parallelism needs with one head on each GPU.

    The same rule with E / TP = the width of a head.
    """
    return rate / (6 * head / element)


def exchange_seconds(size: float, bandwidth: float, times: float = 1) -> float:
    """Seconds in which so many bytes go over a link, so many times."""
    return times * size / bandwidth


def all_reduce_seconds(size: float, gpus: int, bus_rate: float) -> float:
    """Seconds of an all-reduce: 2 (n - 1) / n times the bytes, at nccl-tests' bus bandwidth."""
    return exchange_seconds(size, bus_rate, 2 * (gpus - 1) / gpus)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchange of gradients in one update, beside what is computed in it.

    `seconds` are those of the exchange, `computed` those of all passes of the update. `exposed` is
    what is left if the last backward pass hides all it can: gradients of earlier passes are only
    added up.
    """

    seconds: float
    computed: float
    exposed: float

    @property
    def unhidden_share(self) -> float:
        """The share of the update if nothing is hidden."""
        return self.seconds / (self.seconds + self.computed)

    @property
    def exposed_share(self) -> float:
        """The share of the update if the last backward pass hides what it can."""
        return self.exposed / (self.exposed + self.computed)


def exchange(seconds: float, of_pass: float, accumulation: int) -> Exchange:
    """The exchange of an update that takes so many passes."""
    return Exchange(seconds, accumulation * of_pass, max(0.0, seconds - BACKWARD * of_pass))


def bubble(stages: int, micro_batches: int) -> tuple[float, float]:
    """The idle time of a pipeline, over the ideal time and over the whole: (p-1)/m, (p-1)/(m+p-1).

    Megatron-LM (arXiv 2104.04473, section 2.2), without interleaved stages.
    """
    return (stages - 1) / micro_batches, (stages - 1) / (micro_batches + stages - 1)


def mfu(achieved: float, peak: float) -> float:
    """Model FLOP/s utilisation (arXiv 2204.02311): achieved over the dense peak."""
    return achieved / peak


def tokens_a_second(parameters: float, rate: float) -> float:
    """Tokens that a rate of operations trains a second."""
    return rate / (FLOP_OF_TOKEN * parameters)
