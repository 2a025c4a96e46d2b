"""A language model for training steps: embedding, equal blocks, a norm, a head of the same matrix.

GPT models predict the next token, BERT one of each masked place; both take synthetic tokens, and
the loss is the cross-entropy of all places, in float32 (in a float64 model in float64).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import checkpoint

from acceptance.loads.train.blocks import BertLayer, GptBlock, initialise
from acceptance.loads.train.shapes import ModelShape


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
