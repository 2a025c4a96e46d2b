from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from card_of_tests import FakeCard
from written import written

from acceptance.loads.card import ProcessorCard
from acceptance.loads.gemm import product
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train import step_load
from acceptance.loads.train.step_contract import Ask
from acceptance.loads.train.step_worker import StepOrder

GIB = 1 << 30


def orders(
    monkeypatch: pytest.MonkeyPatch, gib: int = 141, capability: str = "9.0", **asked: Any
) -> tuple[StepOrder, LoadOutput, list[tuple[Any, ...]]]:
    """What a run gives its worker, and what it makes of torch's parts."""
    seen: list[StepOrder] = []
    made: list[tuple[Any, ...]] = []

    class Card(FakeCard):
        def whole_bytes(self) -> int:
            return gib * GIB

    def worker(order: StepOrder, _card: object, _output: object, *parts: Any) -> SimpleNamespace:
        seen.append(order)
        small, matmul, trial_of = parts
        made.extend([small, matmul, trial_of("shape", "option", 4)])
        return SimpleNamespace(run=lambda: None)

    trial = ModuleType("step_trial")
    for name in ("SmallStep", "TorchMatmul", "TorchTrial"):
        setattr(trial, name, lambda *told, name=name, **more: (name, *told, *more.values()))
    monkeypatch.setitem(sys.modules, "acceptance.loads.train.step_trial", trial)
    monkeypatch.setattr(product, "settings", lambda: None)
    monkeypatch.setattr(step_load, "gpu_identity", lambda: {"gpu": "G", "capability": capability})
    monkeypatch.setattr(step_load, "CudaCard", Card)
    monkeypatch.setattr(step_load, "StepWorker", worker)
    text = written(lambda output: step_load.run(Ask(seconds=6.0, **asked), output))
    (order,) = seen
    return order, parse(text), made


def test_what_a_gpu_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    order, output, made = orders(monkeypatch, table=True)
    assert (order.judged, order.table, order.whole_bytes) == ("bf16", True, 141 * GIB)
    assert [shape.name for shape in order.models.values()] == [
        "GPT-2 medium",
        "BERT-large",
        "GPT-Neo-1.3B",
    ]
    told = {"device": "cuda", "seconds": 6.0, "table": True, "format": "bf16", "size": 8192}
    assert output.parameters == {**told, "gpu": "G", "capability": "9.0"}
    assert [one[0] for one in made] == ["SmallStep", "TorchMatmul", "TorchTrial"]
    assert made[1][1:] == ("bf16", 8192, "cuda")
    assert made[2][1:] == ("shape", "option", 4, "cuda")
    assert output.notes == ()


def test_an_older_and_smaller_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    order, output, made = orders(monkeypatch, inject="nan", gib=8, capability="7.5")
    assert (order.judged, order.inject) == ("f16", "nan")
    assert output.injected == "nan"
    assert made[1][1:] == ("f16", 4096, "cuda")
    assert output.notes == ("shares are of products of 4096, not 8192: the GPU's memory is small",)


def test_a_processor_trains_tiny_models_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    order, output, made = orders(monkeypatch, device="cpu")
    assert output.parameters["device"] == "cpu"
    assert {shape.parameters for shape in order.models.values()} == {made[0][2].parameters}
    assert not order.models["bert"].layer.causal
    card = ProcessorCard()
    assert card.seconds(card.mark(), card.mark()) >= 0
    assert card.free_bytes() == card.whole_bytes() == order.whole_bytes
