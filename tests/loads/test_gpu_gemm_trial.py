"""One format between its turns, on products that are strings; `torch_gpu_gemm.py` tries it on
real ones in the image.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from acceptance.loads.gemm import verification
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.verification import FormatTrial


class Buffer:
    """A result: what stands in it."""

    def __init__(self, held: str = "") -> None:
        self.held = held

    def clone(self) -> Buffer:
        return Buffer(self.held)


class Product:
    """A product whose multiplication gives what `right` says at that moment."""

    right = "right"
    alive: ClassVar[weakref.WeakSet[Product]] = weakref.WeakSet()

    def __init__(self, *_: object) -> None:
        self.result = Buffer()
        Product.alive.add(self)

    def multiply(self) -> None:
        assert self.result.held == "spoiled"
        self.result.held = Product.right


def difference(first: Buffer, got: Buffer) -> dict[str, Any] | None:
    return None if first.held == got.held else {"elements": 1}


def spoil(result: Buffer) -> None:
    result.held = "spoiled"


@pytest.fixture(autouse=True)
def products(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, fake in {
        "normal": Product,
        "whole_product": Product,
        "spoil": spoil,
        "digest": lambda result: f"digest of {result.held}",
        "difference": difference,
        "judge_product": lambda product, kind: (None, kind),
        "odd": lambda result: {"nan": 0, "infinite": 0},
    }.items():
        monkeypatch.setattr(verification, name, fake)
    monkeypatch.setattr(Product, "right", "right")
    yield
    Product.alive.clear()


def held() -> int:
    """Products that still have their memory."""
    gc.collect()
    return len(Product.alive)


def test_between_its_turns_a_format_holds_no_memory() -> None:
    trial = FormatTrial(DTYPES["f64"], 64, "cuda")
    checked = trial.verify()
    assert (
        checked.notes[0] == "normal-random operands: normal; digest of the result digest of right"
    )
    assert len(checked.notes) == 2
    assert held() == 1
    trial.release()
    assert held() == 0
    assert trial.remake() is None
    assert held() == 1
    trial.spoil()
    assert trial.compare() == {"elements": 1}, (
        "what was spoiled and not made again is not the first"
    )
    trial.multiply()
    assert trial.compare() is None
    trial.release()
    assert held() == 0


def test_a_first_product_that_comes_out_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = FormatTrial(DTYPES["i8"], 64, "cuda")
    assert len(trial.verify().notes) == 1
    trial.release()
    monkeypatch.setattr(Product, "right", "wrong")
    assert trial.remake() == {
        "expected": "digest of right",
        "got": "digest of wrong",
        "nan": 0,
        "infinite": 0,
    }
