from __future__ import annotations

from types import SimpleNamespace

import pytest
from card_of_tests import FakeCard
from written import written

from acceptance.loads.gemm import load, product
from acceptance.loads.gemm.contract import Ask
from acceptance.loads.gemm.worker import GemmOptions
from acceptance.loads.protocol import parse

ASK = Ask(dtypes=("f64", "bf16"), seconds=1.0)


@pytest.mark.parametrize(("gib", "size", "notes"), [(140, 8192, 0), (4, 4096, 1)])
def test_the_size_that_is_judged_is_told(
    monkeypatch: pytest.MonkeyPatch, gib: int, size: int, notes: int
) -> None:
    orders: list[GemmOptions] = []

    class Small(FakeCard):
        def whole_bytes(self) -> int:
            return gib << 30

    def worker(order: GemmOptions, *_: object) -> SimpleNamespace:
        orders.append(order)
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(load, "gpu_identity", lambda: {"gpu": "a GPU", "capability": "8.9"})
    monkeypatch.setattr(load, "CudaCard", Small)
    monkeypatch.setattr(load, "GemmWorker", worker)
    monkeypatch.setattr(product, "settings", lambda: None)
    output = parse(written(lambda output: load.run(ASK, output)))
    assert output.parameters["size"] == size
    assert [order.size for order in orders] == [size]
    told = ("4096 is judged, not 8192: the GPU's memory is too small for one format of that size",)
    assert output.notes == told[:notes]
