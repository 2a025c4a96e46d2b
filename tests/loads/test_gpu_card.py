from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from acceptance.loads.card import CudaCard, gpu_identity
from acceptance.loads.program import LoadError


class Event:
    """A CUDA event that a test moves: milliseconds."""

    at = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.recorded: float | None = None
        self.waited = False

    def record(self) -> None:
        self.recorded = Event.at

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, end: Event) -> float:
        assert end.waited
        assert self.recorded is not None
        assert end.recorded is not None
        return end.recorded - self.recorded


def fake_torch(*, available: bool = True) -> Any:
    """As much of torch as tells of a GPU."""
    torch: Any = ModuleType("torch")
    torch.__version__ = "2.10.0"
    torch.version = SimpleNamespace(cuda="12.8")
    traits = SimpleNamespace(
        name="NVIDIA H200", uuid="01234567-89ab-cdef-0123-456789abcdef", major=9, minor=0
    )
    torch.cuda = SimpleNamespace(
        is_available=lambda: available,
        get_device_properties=lambda index: [traits][index],
        Event=Event,
        empty_cache=lambda: None,
        mem_get_info=lambda: (1000, 2000),
    )
    return torch


def test_who_the_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    assert gpu_identity() == {
        "gpu": "NVIDIA H200",
        "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef",
        "capability": "9.0",
        "library": "torch 2.10.0, CUDA 12.8",
    }


def test_no_gpu_and_no_torch_have_their_cures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(available=False))
    with pytest.raises(LoadError, match=r"torch sees no GPU: .*CUDA_VISIBLE_DEVICES"):
        gpu_identity()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LoadError, match=r"torch cannot be imported .*: run it in rigproof's image"):
        gpu_identity()


def test_time_is_that_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    card = CudaCard()
    monkeypatch.setattr(Event, "at", 10.0)
    begin = card.mark()
    monkeypatch.setattr(Event, "at", 2510.0)
    assert card.seconds(begin, card.mark()) == 2.5
    assert card.free_bytes() == 950
    assert card.whole_bytes() == 2000
