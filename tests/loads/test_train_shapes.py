"""Shapes of layers and models: their parameters, and their operations by the published test values
(Megatron-LM's formula, reckoned by others).
"""

from __future__ import annotations

from typing import Any

import pytest
from cases import each

from acceptance.loads.train.shapes import LAYERS, MODELS, TINY, LayerName, ModelName


@each(
    "name, batch, sequence, tera",
    [
        ("bert", 64, 128, 0.21045),
        ("bert", 8, 512, 0.11167),
        ("gpt2", 8, 512, 0.11167),  # causal attention counts whole
        ("t5_decoder", 8, 512, 0.15462),
    ],
)
def test_operations_of_a_layer(name: LayerName, batch: int, sequence: int, tera: float) -> None:
    assert (LAYERS[name].forward_flop(batch, sequence) / 1e12) == pytest.approx(tera, abs=5e-6)


def test_a_gate_and_grouped_queries_are_counted() -> None:
    llama = LAYERS["llama"]
    assert (llama.head, llama.key_width) == (128, 1024)
    assert llama.feed_forward_flop(1, 1) == 6 * 4096 * 14336
    assert llama.attention_flop(1, 1) == 4 * 4096 * (4096 + 1024) + 4 * 4096


@each(
    "one, millions",
    [
        *((LAYERS["bert"], 12.58), (LAYERS["gpt2"], 12.58), (LAYERS["t5_decoder"], 16.78)),
        *((LAYERS["llama"], 218.1), (MODELS["gpt2"], 354.5), (MODELS["bert"], 333.8)),
        *((MODELS["neo"], 1315.1), (MODELS["digest"], 124.3), (MODELS["parallel"], 1313.0)),
    ],
)
def test_parameters_of_layers_and_models(one: Any, millions: float) -> None:
    assert one.parameters / 1e6 == pytest.approx(millions, rel=1e-3)


@each("name, times", [("bert", 1), ("t5_encoder", 1), ("t5_decoder", 2)])
def test_operations_by_the_formula(name: LayerName, times: int) -> None:
    """16 b s h^2 + x (4 b h s^2 + 8 b s h^2), x = 2 with cross-attention."""
    b, s, h = 3, 96, 1024
    told = 16 * b * s * h**2 + times * (4 * b * h * s**2 + 8 * b * s * h**2)
    assert LAYERS[name].forward_flop(b, s) == told


def test_the_model_of_tests_is_small() -> None:
    assert TINY.parameters < 1e6
    assert TINY.sample_flop() == 3 * (2 * TINY.layer.forward_flop(1, 32) + 2 * 32 * 64 * 211)


@each(
    "name, checkpointed, tera",
    [
        ("bert", False, 1.1010),
        ("bert", True, 1.4680),
        ("gpt2", False, 2.4809),
        ("neo", False, 18.582),
    ],
)
def test_operations_of_a_training_sample(name: ModelName, checkpointed: bool, tera: float) -> None:
    found = MODELS[name].sample_flop(checkpointed=checkpointed) / 1e12
    assert found == pytest.approx(tera, rel=1e-4)
