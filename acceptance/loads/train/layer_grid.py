"""The shapes of the table of layers, as published. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.loads.train.shapes import LAYERS, LayerName

_DOUBLED = (2, 4, 8, 16, 32, 64, 128)
# Layer, sequence, batches.
GRID: tuple[tuple[LayerName, int, tuple[int, ...]], ...] = (
    ("bert", 128, _DOUBLED),
    ("bert", 512, _DOUBLED),
    ("gpt2", 512, _DOUBLED[:6]),
    ("gpt2", 1024, _DOUBLED[:6]),
    ("t5_encoder", 512, _DOUBLED),
    ("t5_decoder", 512, _DOUBLED),
    ("llama", 2048, (1, 2, 4, 8)),
)
PART_BATCH, PART_SEQUENCE = 64, 128
# What stands in the place of rates that there are none of.
NO_TIME, NO_MEMORY = "no time", "no memory"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a BERT-large layer; `flop` are its operations at batch 64, sequence 128."""

    reading: str
    flop: int


def parts() -> Iterator[Part]:
    """The parts; an activation counts nothing."""
    shape = LAYERS["bert"]
    whole = shape.feed_forward_flop(PART_BATCH, PART_SEQUENCE)
    yield Part("layer_dense", whole // 2)
    yield Part("layer_dense_gelu", whole // 2)
    yield Part("layer_feed_forward", whole)
    yield Part("layer_attention", shape.attention_flop(PART_BATCH, PART_SEQUENCE))
