"""A language model for training steps: embedding, equal blocks, a norm, a head of the same matrix.

GPT models predict the next token, BERT one of each masked place; both take synthetic tokens, and
the loss is the cross-entropy of all places, in float32 (in a float64 model in float64).

Transformer layers as plain torch modules of our own, without dropout.

Attention is torch's scaled_dot_product_attention. Weights are drawn from a normal distribution of
standard deviation 0.02 by a generator with a fixed seed, biases are 0 and norms 1.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import checkpoint

from acceptance.loads.train.shapes import LayerName, LayerShape, ModelShape

SPREAD = 0.02  # of the weights at the beginning
# T5's relative positions: as many buckets, and the distance from which all share the last one.
BUCKETS, FURTHEST = 32, 128


class RmsNorm(nn.Module):
    """Root-mean-square norm (T5's and Llama's)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, values: Tensor) -> Tensor:
        """Normalise the last axis."""
        return functional.rms_norm(values, self.weight.shape, self.weight, 1e-6)


class Attention(nn.Module):
    """Attention of queries to a memory, which is the input itself without cross-attention."""

    def __init__(self, shape: LayerShape, *, causal: bool, bias: bool, scaled: bool = True) -> None:
        super().__init__()
        self._shape, self._causal = shape, causal
        self._scale = None if scaled else 1.0
        self.query = nn.Linear(shape.hidden, shape.hidden, bias=bias)
        self.key = nn.Linear(shape.hidden, shape.key_width, bias=bias)
        self.value = nn.Linear(shape.hidden, shape.key_width, bias=bias)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=bias)

    def forward(
        self,
        values: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        turn: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Attend; `mask` is added to the scores, `turn` rotates queries and keys (Llama's)."""
        source = values if memory is None else memory

        def heads(tensor: Tensor) -> Tensor:
            return tensor.unflatten(-1, (-1, self._shape.head)).transpose(1, 2)

        query, key = heads(self.query(values)), heads(self.key(source))
        value = heads(self.value(source))
        if turn is not None:
            query, key = rotate(query, turn), rotate(key, turn)
        mixed = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=self._causal and mask is None,
            scale=self._scale,
            enable_gqa=bool(self._shape.key_heads),
        )
        return self.out(mixed.transpose(1, 2).flatten(2))


def rotate(values: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions: the halves of a head, turned by cosine and sine of (positions, half)."""
    cosine, sine = turn
    one, other = values.chunk(2, -1)
    return torch.cat((one * cosine - other * sine, other * cosine + one * sine), -1)


class FeedForward(nn.Module):
    """The feed-forward part: dense to `inner`, an activation, dense back."""

    def __init__(self, shape: LayerShape, activation: Any, *, bias: bool) -> None:
        super().__init__()
        self._activation = activation
        self.up = nn.Linear(shape.hidden, shape.inner, bias=bias)
        self.gate = nn.Linear(shape.hidden, shape.inner, bias=bias) if shape.gated else None
        self.down = nn.Linear(shape.inner, shape.hidden, bias=bias)

    def forward(self, values: Tensor) -> Tensor:
        """Apply it; with a gate, the activation is the gate's."""
        up = self.up(values)
        wide = (
            self._activation(up) if self.gate is None else self._activation(self.gate(values)) * up
        )
        return self.down(wide)


class BertLayer(nn.Module):
    """BERT's: norms after each part, biases, attention in both directions."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.attention = Attention(shape, causal=False, bias=True)
        self.feed_forward = FeedForward(shape, functional.gelu, bias=True)
        self.first, self.second = nn.LayerNorm(shape.hidden), nn.LayerNorm(shape.hidden)

    def forward(self, values: Tensor, _memory: Tensor | None = None) -> Tensor:
        """The layer's output."""
        values = self.first(values + self.attention(values))
        return self.second(values + self.feed_forward(values))


class GptBlock(nn.Module):
    """GPT-2's: norms before each part, biases, causal attention."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.attention = Attention(shape, causal=shape.causal, bias=True)
        self.feed_forward = FeedForward(
            shape, partial(functional.gelu, approximate="tanh"), bias=True
        )
        self.first, self.second = nn.LayerNorm(shape.hidden), nn.LayerNorm(shape.hidden)

    def forward(self, values: Tensor, _memory: Tensor | None = None) -> Tensor:
        """The block's output."""
        values = values + self.attention(self.first(values))
        return values + self.feed_forward(self.second(values))


class T5Layer(nn.Module):
    """T5's: norms before each part, no biases, unscaled scores with relative positions.

    The decoder's also attends to a memory, for which its caller gives the encoder's output.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self._causal = shape.causal
        self.attention = Attention(shape, causal=shape.causal, bias=False, scaled=False)
        self.cross = (
            Attention(shape, causal=False, bias=False, scaled=False) if shape.cross else None
        )
        self.feed_forward = FeedForward(shape, functional.relu, bias=False)
        self.norms = nn.ModuleList(RmsNorm(shape.hidden) for _ in range(2 + shape.cross))
        self.positions = nn.Embedding(BUCKETS, shape.heads)
        self._chosen: Tensor | None = None  # the bucket of (query, key), as 0 and 1
        self._later: Tensor | None = None

    def forward(self, values: Tensor, memory: Tensor | None = None) -> Tensor:
        """The layer's output."""
        first, last = self.norms[0], self.norms[-1]
        mask = self._mask(values.shape[1], values.dtype)
        values = values + self.attention(first(values), mask=mask)
        if self.cross is not None:
            values = values + self.cross(self.norms[1](values), memory)
        return values + self.feed_forward(last(values))

    def _mask(self, sequence: int, dtype: torch.dtype) -> Tensor:
        """What is added to the scores of (query, key), for all heads."""
        device = self.positions.weight.device
        if self._chosen is None or (self._chosen.shape[0], self._chosen.dtype) != (sequence, dtype):
            buckets = relative_buckets(sequence, both_ways=not self._causal)
            # By a product with 0 and 1: the gradient of a look-up has no fixed order of addition.
            self._chosen = functional.one_hot(buckets, BUCKETS).to(device, dtype)
            places = torch.arange(sequence, device=device)
            self._later = places[None, :] > places[:, None]
        mask = (self._chosen @ self.positions.weight.to(dtype)).permute(2, 0, 1)
        if self._causal:
            mask = mask.masked_fill(self._later, float("-inf"))
        return mask[None].contiguous()


def bucket(distance: int, *, both_ways: bool) -> int:
    """T5's bucket of a distance from query to key: near ones have their own, far ones share.

    Exact where a distance lies on the border of two buckets, on which devices round differently.
    """
    buckets, offset = BUCKETS, 0
    if both_ways:
        buckets //= 2
        offset = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(0, -distance)
    near = buckets // 2
    if distance < near:
        return offset + distance
    share = math.log(distance / near) / math.log(FURTHEST / near)
    return offset + min(buckets - 1, near + int(share * (buckets - near) + 1e-9))


def relative_buckets(sequence: int, *, both_ways: bool) -> Tensor:
    """The buckets of (query, key), on the processor."""
    found = [bucket(one, both_ways=both_ways) for one in range(1 - sequence, sequence)]
    places = torch.arange(sequence)
    return torch.tensor(found)[places[None, :] - places[:, None] + sequence - 1]


class LlamaBlock(nn.Module):
    """Llama's: RMS norms before each part, no biases, rotary positions, grouped queries, a gate."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self._half = shape.head // 2
        self.attention = Attention(shape, causal=True, bias=False)
        self.feed_forward = FeedForward(shape, functional.silu, bias=False)
        self.first, self.second = RmsNorm(shape.hidden), RmsNorm(shape.hidden)

    def forward(self, values: Tensor, _memory: Tensor | None = None) -> Tensor:
        """The block's output."""
        turn = self._turn(values.shape[1], values.device, values.dtype)
        values = values + self.attention(self.first(values), turn=turn)
        return values + self.feed_forward(self.second(values))

    def _turn(
        self, sequence: int, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        pace = 500000.0 ** (
            -torch.arange(self._half, device=device, dtype=torch.float64) / self._half
        )
        angle = torch.arange(sequence, device=device, dtype=torch.float64)[:, None] * pace
        return angle.cos().to(dtype), angle.sin().to(dtype)


MODULES: dict[LayerName, type[nn.Module]] = {
    "bert": BertLayer,
    "gpt2": GptBlock,
    "t5_encoder": T5Layer,
    "t5_decoder": T5Layer,
    "llama": LlamaBlock,
}


def initialise(module: nn.Module, seed: int) -> None:
    """Draw all matrices anew, on their device; biases 0, norms as they are made."""
    device = next(module.parameters()).device
    generator = torch.Generator(device=device).manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, SPREAD, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()


def layer(name: LayerName, shape: LayerShape, device: str, dtype: torch.dtype) -> nn.Module:
    """A layer with weights of seed 1, in this format."""
    with torch.device(device):
        module = MODULES[name](shape).to(dtype)
    initialise(module, 1)
    return module


class Model(nn.Module):
    """A model of this shape; `recompute` keeps only the inputs of the blocks for backward."""

    def __init__(self, shape: ModelShape, *, recompute: bool = False) -> None:
        super().__init__()
        self.shape, self.recompute = shape, recompute
        width = shape.layer.hidden
        block = GptBlock if shape.layer.causal else BertLayer
        self.tokens = nn.Embedding(shape.words, width)
        self.positions = nn.Parameter(torch.empty(shape.sequence, width))
        self.blocks = nn.ModuleList(block(shape.layer) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of these places; both are whole numbers of (batch, sequence)."""
        values = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            values = (
                checkpoint.checkpoint(block, values, use_reentrant=False)
                if self.recompute
                else block(values)
            )
        logits = functional.linear(self.norm(values), self.tokens.weight)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return functional.cross_entropy(wide.flatten(0, 1), targets.flatten())


def model(shape: ModelShape, device: str, *, seed: int = 1, recompute: bool = False) -> Model:
    """A model with weights of this seed, in float32 on the device."""
    with torch.device(device):
        made = Model(shape, recompute=recompute)
    initialise(made, seed)
    return made


def batch(shape: ModelShape, device: str, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Tokens and targets of (size, sequence), by the seed; targets are the tokens that follow."""
    generator = torch.Generator(device=device).manual_seed(seed)
    drawn = torch.randint(
        shape.vocabulary, (size, shape.sequence + 1), generator=generator, device=device
    )
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
