"""Shapes of transformer layers and models, and the operations that count for them. Pure.

Conventions of counting, those of the published tables (Megatron-LM, arXiv 2104.04473, equation 3,
without recomputation; the notebooks "transformers-benchmarks"):

- A multiplication with an addition is two operations. Only products of matrices count: no norm, no
  activation, no softmax, no addition.
- A layer, forward, for batch b, sequence s, hidden width h and feed-forward width f:
  4 b s h f (6 b s h f where the feed-forward part is gated) and, for attention, 4 b s h (h + k),
  where k is the width of keys and values (h without grouped queries), and 4 b h s^2. With
  cross-attention to a sequence of the same length the attention counts twice. For f = 4 h and
  k = h that is 16 b s h^2 + x (4 b h s^2 + 8 b s h^2), x = 2 with cross-attention.
- Causal attention counts whole, as in the published tables, although the upper half of the scores
  is not computed: rates of causal layers are up to 4 h s^2 b / 2 too high. Box figures that halve
  it are said to do so.
- Backward counts as two forward passes. Recomputation (checkpointing) counts as one more.
- A training sample of a model: 3 (n layers + 2 s h v) with v words in the vocabulary; embeddings
  count nothing. The matrix of the vocabulary has rows up to the next multiple of 128, as
  Megatron-LM pads it (odd widths of bfloat16 matrices are slow); the rows added count nothing.

Ways of training a model, and the loss of new weights. Pure.

The loss of new weights is not ln(v) for v words (padded ones among them), because logits vary: the
last norm's output x has |x|^2 = h, and weights a standard deviation of 0.02, so a logit has the
variance s^2 = 0.02^2 h, and the mean of exp(logit) over the words is exp(s^2 / 2). The expected
loss is ln(v) + s^2 / 2, which is 11.03 for GPT-2 medium. It may differ from that by

    9 s / sqrt(n)                   the mean of n targets' logits (drawn without regard to x)
    + 9 sqrt((exp(s^2) - 1) / v)    the mean of exp(logit) over v words
    + 0.02 s + 0.01                 the output's own word, whose vector is part of x; rounding

On the processor, one sample of GPT-2 medium and of BERT-large differed by 0.09 of that at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from acceptance.core.dtype import trained_dtype

LayerName = Literal["bert", "gpt2", "t5_encoder", "t5_decoder", "llama"]
LAYER_NAMES: tuple[LayerName, ...] = get_args(LayerName)
ModelName = Literal["gpt2", "bert", "neo", "digest", "parallel"]
TRAINED = 3  # forward and backward, in forward passes
CHECKPOINTED = 4  # with recomputation
PADDED = 128  # rows of the vocabulary's matrix are a multiple of it
ADAMW_BYTES = 16  # a parameter: float32 weight, gradient and two moments


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One transformer layer.

    `inner` is the feed-forward width, `key_heads` the heads of keys and values. `batch` and
    `sequence` are those of the judged size, at which no healthy GPU waits for the host.
    """

    name: str
    hidden: int
    heads: int
    inner: int
    sequence: int
    batch: int
    key_heads: int = 0
    causal: bool = False
    cross: bool = False
    gated: bool = False

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads

    @property
    def key_width(self) -> int:
        """The width of all keys, or of all values, of a token."""
        return (self.key_heads or self.heads) * self.head

    def feed_forward_flop(self, batch: int, sequence: int) -> int:
        """Operations of the feed-forward part, forward."""
        products = 3 if self.gated else 2
        return 2 * products * batch * sequence * self.hidden * self.inner

    def attention_flop(self, batch: int, sequence: int) -> int:
        """Operations of the attention with its projections, forward; twice with cross-attention."""
        projections = 4 * batch * sequence * self.hidden * (self.hidden + self.key_width)
        scores = 4 * batch * self.hidden * sequence**2
        return (2 if self.cross else 1) * (projections + scores)

    def forward_flop(self, batch: int, sequence: int) -> int:
        """Operations of the layer, forward."""
        return self.feed_forward_flop(batch, sequence) + self.attention_flop(batch, sequence)

    @property
    def parameters(self) -> int:
        """Parameters in matrices; norms and biases add less than 0.2 %."""
        attention = 2 * self.hidden * (self.hidden + self.key_width)
        return (2 if self.cross else 1) * attention + (
            3 if self.gated else 2
        ) * self.hidden * self.inner


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model: equal layers between an embedding and a head that shares its matrix."""

    name: str
    layer: LayerShape
    layers: int
    vocabulary: int
    sequence: int

    @property
    def parameters(self) -> int:
        """Parameters in matrices, positions among them."""
        width = self.layer.hidden
        return self.layers * self.layer.parameters + (self.words + self.sequence) * width

    @property
    def words(self) -> int:
        """Rows of the vocabulary's matrix."""
        return -(-self.vocabulary // PADDED) * PADDED

    def sample_flop(self, *, checkpointed: bool = False) -> int:
        """Operations of one training sample of `sequence` tokens."""
        forward = self.layers * self.layer.forward_flop(1, self.sequence)
        head = 2 * self.sequence * self.layer.hidden * self.vocabulary
        return (CHECKPOINTED if checkpointed else TRAINED) * (forward + head)


LAYERS: dict[LayerName, LayerShape] = {
    "bert": LayerShape("BERT-large layer", 1024, 16, 4096, 512, 64),
    "gpt2": LayerShape("GPT-2 medium block", 1024, 16, 4096, 1024, 64, causal=True),
    "t5_encoder": LayerShape("T5-large encoder layer", 1024, 16, 4096, 512, 64),
    "t5_decoder": LayerShape(
        "T5-large decoder layer", 1024, 16, 4096, 512, 64, causal=True, cross=True
    ),
    "llama": LayerShape(
        "Llama-8B-like block", 4096, 32, 14336, 2048, 8, key_heads=8, causal=True, gated=True
    ),
}
MODELS: dict[ModelName, ModelShape] = {
    "gpt2": ModelShape("GPT-2 medium", LAYERS["gpt2"], 24, 50257, 1024),
    "bert": ModelShape("BERT-large", LAYERS["bert"], 24, 30522, 512),
    "neo": ModelShape(
        "GPT-Neo-1.3B", LayerShape("block", 2048, 16, 8192, 2048, 8, causal=True), 24, 50257, 2048
    ),
    # GPT-2 small: 124 M parameters
    "digest": ModelShape(
        "GPT-2 small", LayerShape("block", 768, 12, 3072, 1024, 4, causal=True), 12, 50257, 1024
    ),
    # that of box F: 1.3 G parameters, whose gradients take a while to exchange
    "parallel": ModelShape(
        "GPT of 1.3 G", LayerShape("block", 2048, 16, 8192, 1024, 8, causal=True), 24, 50257, 1024
    ),
}
# So small that a processor trains it in seconds: for tests without a GPU.
TINY = ModelShape("tiny", LayerShape("block", 64, 4, 256, 32, 2, causal=True), 2, 211, 32)


StepFormat = Literal["f32", "tf32", "bf16", "f16"]
FORMAT_NAMES: dict[StepFormat, str] = {
    "f32": "float32",
    "tf32": "TF32",
    "bf16": "bfloat16",
    "f16": "float16",
}
NARROW: tuple[StepFormat, ...] = ("bf16", "f16")  # those of autocast
SPREAD = 0.02  # the standard deviation of new weights (`blocks.SPREAD`, which needs torch)
LIKELY = 9.0  # as in `loads.gemm.dtypes`: exceeded once in 1e17 draws


@dataclass(frozen=True, slots=True)
class StepOption:
    """One way of training: the format of products, the optimizer, and how backward is fed.

    `accumulation` batches are added up before each update. `checkpointed` layers compute their
    forward pass again in backward.
    """

    format: StepFormat
    fused: bool = True
    accumulation: int = 1
    checkpointed: bool = False

    @property
    def narrow(self) -> bool:
        """Whether products run under autocast."""
        return self.format in NARROW

    @property
    def name(self) -> str:
        """Its name in tables and notes."""
        more = [] if self.fused else ["unfused"]
        more += ["checkpointing"] if self.checkpointed else []
        more += [f"{self.accumulation} accumulated"] if self.accumulation > 1 else []
        return ", ".join([FORMAT_NAMES[self.format], *more])


def judged_format(compute_capability: str) -> StepFormat:
    """bfloat16 where the GPU's tensor cores have it, else float16."""
    return trained_dtype(compute_capability)


def options(judged: StepFormat) -> Iterator[StepOption]:
    """The options of the table, the judged one first; TF32 only where the GPU has it."""
    yield StepOption(judged)
    yield StepOption(judged, fused=False)
    if judged == "bf16":
        yield StepOption("tf32")
    yield StepOption("f32")
    yield StepOption(judged, accumulation=4)
    yield StepOption(judged, accumulation=16)
    yield StepOption(judged, checkpointed=True)


def first_loss(shape: ModelShape, batch: int) -> tuple[float, float]:
    """The loss of new weights on random tokens, and how far it may lie from that."""
    variance = SPREAD**2 * shape.layer.hidden
    spread, words = math.sqrt(variance), shape.words
    margin = LIKELY * spread / math.sqrt(batch * shape.sequence)
    margin += LIKELY * math.sqrt(math.expm1(variance) / words)
    return math.log(words) + variance / 2, margin + 0.02 * spread + 0.01
