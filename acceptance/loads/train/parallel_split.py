"""Tensor parallelism by hand, as Megatron-LM does it (arXiv 1909.08053, section 3).

Each rank has its share of the heads and of the feed-forward width: the matrices of queries, keys,
values and the first of the feed-forward part are split by columns, those of the output and the
second by rows. Two conjugate functions stand around each part: f is the identity forward and sums
over the ranks backward, g sums forward and is the identity backward. That makes two all-reduces of
a block in each direction. Embedding, norms and head are whole on every rank.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from acceptance.loads.train.model import Model
from acceptance.loads.train.parallel_values import share
from acceptance.loads.train.shapes import LayerShape


class _Enter(torch.autograd.Function):
    """Megatron's f."""

    @staticmethod
    def forward(_ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        distributed.all_reduce(gradient)
        return gradient


class _Leave(torch.autograd.Function):
    """Megatron's g; `drop` leaves out what the other ranks add."""

    @staticmethod
    def forward(_ctx: Any, values: Tensor, drop: bool) -> Tensor:
        total = values.contiguous()
        if drop:
            total = total.clone()
        # In place: no backward pass needs what a product of matrices gave.
        distributed.all_reduce(total)
        return values.view_as(values) if drop else total.view_as(total)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def _enter(_norm: nn.Module, _given: Any, values: Tensor) -> Tensor:
    # Under autocast a norm gives float32: what comes back is summed in the format of the products.
    kind = values.device.type
    if torch.is_autocast_enabled(kind):
        values = values.to(torch.get_autocast_dtype(kind))
    return _Enter.apply(values)


class RowLinear(nn.Module):
    """A linear map split by rows: each rank has part of the input, all get the sum."""

    def __init__(self, whole: nn.Linear, first: int, end: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(whole.weight.detach()[:, first:end].clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())
        self.drop = False

    def forward(self, values: Tensor) -> Tensor:
        """The whole output."""
        left: Tensor = _Leave.apply(functional.linear(values, self.weight), self.drop)
        return left + self.bias


def _columns(whole: nn.Linear, first: int, end: int) -> nn.Linear:
    """A linear map split by columns: the outputs from `first` to `end`."""
    made = nn.Linear(whole.in_features, end - first, device=whole.weight.device)
    with torch.no_grad():
        made.weight.copy_(whole.weight[first:end])
        made.bias.copy_(whole.bias[first:end])
    return made


def split(model: Model, rank: int, ranks: int) -> Model:
    """The model with the share of this rank of all blocks; the parameters' names stay."""
    layer = model.shape.layer
    heads, inner = _own_heads(layer, rank, ranks), share(layer.inner, rank, ranks)
    for block in model.blocks:
        attention, feed_forward = block.attention, block.feed_forward
        for name in ("query", "key", "value"):
            setattr(attention, name, _columns(getattr(attention, name), *heads))
        attention.out = RowLinear(attention.out, *heads)
        feed_forward.up = _columns(feed_forward.up, *inner)
        feed_forward.down = RowLinear(feed_forward.down, *inner)
        for norm in (block.first, block.second):
            norm.register_forward_hook(_enter)
    return model


def own(name: str, whole: Tensor, layer: LayerShape, rank: int, ranks: int) -> Tensor:
    """What a rank has of a parameter of this name."""
    heads, inner = _own_heads(layer, rank, ranks), share(layer.inner, rank, ranks)
    part = ".".join(name.split(".")[-3:])
    if part.startswith(("attention.query", "attention.key", "attention.value")):
        return whole[slice(*heads)]
    if part.startswith("feed_forward.up"):
        return whole[slice(*inner)]
    if part == "attention.out.weight":
        return whole[:, slice(*heads)]
    return whole[:, slice(*inner)] if part == "feed_forward.down.weight" else whole


def _own_heads(layer: LayerShape, rank: int, ranks: int) -> tuple[int, int]:
    first, end = share(layer.heads, rank, ranks)
    return first * layer.head, end * layer.head
