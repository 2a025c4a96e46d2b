"""The parts of the GPU's matrix load that need torch, on tensors of the processor.

pytest does not collect this file: torch is in the image only.
`tests/containers/test_torch_loads.py` runs it there.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
import written

from acceptance.core.dtype import GEMM_READINGS
from acceptance.loads.gemm import verification
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.product import (
    difference,
    digest,
    normal,
    settings,
    spoil,
    whole_product,
    words,
)
from acceptance.loads.gemm.verification import (
    BANDS,
    FormatTrial,
    judge_product,
    reference,
    sampled_rows,
)
from acceptance.loads.gemm.worker import GemmOptions, GemmWorker
from acceptance.loads.protocol import LoadOutput

SIZE = 256
every = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)


class Processor:
    """The processor as a card: done is what was given."""

    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin

    def free_bytes(self) -> int:
        return 1 << 32


@pytest.fixture(autouse=True)
def as_the_load_does() -> None:
    torch.set_num_threads(2)
    settings()


@every
def test_a_right_product_is_found_right(dtype: Dtype) -> None:
    trial = FormatTrial(dtype, SIZE, "cpu")
    checked = trial.verify()
    assert checked.findings == ()
    assert len(checked.notes) == (1 if dtype.exact else 2)
    trial.spoil()
    trial.multiply()
    assert trial.compare() is None


@every
def test_a_changed_bit_and_an_old_result_differ_from_the_first(dtype: Dtype) -> None:
    trial = FormatTrial(dtype, SIZE, "cpu")
    trial.verify()
    trial.multiply()
    found = trial.compare(falsify=True)
    assert found is not None
    assert (found["elements"], found["nan"], found["infinite"]) == (1, 0, 0)
    (one,) = found["first"]
    assert one.index == (SIZE // 2, SIZE // 2)
    assert int(one.expected, 16) ^ int(one.got, 16) == int(one.xor, 16) == 1
    trial.spoil()
    found = trial.compare()
    assert found is not None
    assert found["elements"] > SIZE * SIZE * 0.9
    assert len(found["first"]) == 4


@every
def test_the_first_product_is_the_same_when_it_is_made_again(dtype: Dtype) -> None:
    trial = FormatTrial(dtype, SIZE, "cpu")
    trial.verify()
    trial.release()
    assert trial.remake() is None
    trial.spoil()
    trial.multiply()
    assert trial.compare() is None


def test_another_first_product_than_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = FormatTrial(DTYPES["f32"], SIZE, "cpu")
    trial.verify()
    trial.release()

    def changed(dtype: Dtype, size: int, device: str) -> Any:
        product = normal(dtype, size, device)
        product.a[7, 8] += 1
        return product

    monkeypatch.setattr(verification, "normal", changed)
    found = trial.remake()
    assert found is not None
    assert found["expected"] != found["got"]
    assert (found["nan"], found["infinite"]) == (0, 0)


@every
def test_operands_are_the_same_every_time_and_not_each_other(dtype: Dtype) -> None:
    one, other = normal(dtype, SIZE, "cpu"), normal(dtype, SIZE, "cpu")
    for a, b in ((one.a, other.a), (one.b, other.b)):
        assert torch.equal(a.double(), b.double())
    assert not torch.equal(one.a.double(), one.b.double())
    spread = 32.0 if dtype.short == "i8" else 1.0
    assert float(one.a.double().std()) == pytest.approx(spread, rel=0.05)
    assert float(one.a.double().mean()) == pytest.approx(0.0, abs=0.05 * spread)
    assert not torch.equal(one.a[0].double(), one.a[1].double())


@every
def test_the_second_product_is_of_whole_numbers_up_to_its_bound(dtype: Dtype) -> None:
    for operand in (whole_product(dtype, SIZE, "cpu").a, whole_product(dtype, SIZE, "cpu").b):
        numbers = operand.double()
        assert torch.equal(numbers, numbers.round())
        assert 0.9 * dtype.largest(SIZE) < float(numbers.abs().max()) <= dtype.largest(SIZE)


@every
def test_the_reference_is_the_product_of_these_rows_and_of_their_squares(dtype: Dtype) -> None:
    product = normal(dtype, SIZE, "cpu")
    before = digest(product.a.contiguous()) if dtype.operand_bytes > 1 else None
    exact, squares = reference(product, [0, 77])
    a, b = product.a.double(), product.b.double()
    torch.testing.assert_close(exact, (a @ b)[[0, 77]])
    torch.testing.assert_close(squares, (a.square() @ b.square())[[0, 77]])
    assert before is None or digest(product.a.contiguous()) == before


@every
@pytest.mark.parametrize("kind", ["normal", "whole"])
def test_a_foreign_band_of_rows_is_found(dtype: Dtype, kind: str) -> None:
    product = (whole_product if kind == "whole" else normal)(dtype, SIZE, "cpu")
    product.multiply()
    assert judge_product(product, kind)[0] is None
    band = product.result[64:68]
    band.copy_(band.flip(1) * 100)  # far off, for the widest bound too
    found, told = judge_product(product, kind)
    assert found is not None
    assert found.check == kind
    assert found.elements > SIZE / 2
    assert all(64 <= one.index[0] < 68 for one in found.first)
    exact = dtype.exact_sums(kind)
    assert ("all 256 rows in integers" if exact else "largest error") in told


@every
def test_one_wrong_whole_number_in_a_sampled_row_is_found(dtype: Dtype) -> None:
    product = whole_product(dtype, SIZE, "cpu")
    product.multiply()
    product.result[:, 9] += 32 if dtype.result_error else 1
    found, _ = judge_product(product, "whole")
    assert found is not None
    assert {one.index[1] for one in found.first} == {9}


@pytest.mark.parametrize("short", ["f64", "f32", "tf32", "i8"])
def test_one_wrong_bit_of_an_exact_product_is_found_in_any_row(short: str) -> None:
    product = whole_product(DTYPES[short], SIZE, "cpu")
    product.multiply()
    for row in (0, 77, SIZE - 1):
        right = float(product.result[row, 5])
        words(product.result)[row, 5] ^= 1
        found, _ = judge_product(product, "whole")
        words(product.result)[row, 5] ^= 1
        assert found is not None
        assert (found.rows, found.elements) == (SIZE, 1)
        (one,) = found.first
        assert (one.index, one.expected) == ((row, 5), repr(right))
        assert one.got != one.expected
    assert judge_product(product, "whole")[0] is None


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("short", ["f64", "f32", "tf32", "f16", "bf16", "f8"])
def test_what_is_no_number_is_found_wherever_it_is(short: str, strange: float) -> None:
    product = normal(DTYPES[short], SIZE, "cpu")
    product.multiply()
    product.result[3, 5] = strange
    found, _ = judge_product(product, "normal")
    assert found is not None
    assert (found.nan, found.infinite) == ((1, 0) if strange != strange else (0, 1))
    product.result.fill_(strange)
    found, _ = judge_product(product, "normal")
    assert found is not None
    assert found.elements == found.rows * SIZE


def test_every_band_has_one_row() -> None:
    for size in (64, 256, 8192):
        rows = sampled_rows(size)
        assert [row * BANDS // size for row in rows] == list(range(BANDS))
    assert sampled_rows(10) == list(range(10))
    assert len({tuple(sampled_rows(8192)) for _ in range(3)}) == 3


@every
def test_the_digest_tells_results_apart(dtype: Dtype) -> None:
    product = normal(dtype, SIZE, "cpu")
    product.multiply()
    first = product.result.clone()
    assert digest(first) == digest(product.result)
    assert difference(first, product.result) is None
    bits = words(product.result)
    bits[7, 200] = bits[7, 200] ^ 1
    assert digest(first) != digest(product.result)
    spoil(product.result)
    assert digest(first) != digest(product.result)


def ran(inject: str | None) -> LoadOutput:
    order = GemmOptions(tuple(DTYPES.values()), 0.1, SIZE, (64, 128), inject)

    def multiply(dtype: Dtype, size: int) -> Any:
        return normal(dtype, size, "cpu").multiply

    return written.ran(
        "gpu_gemm",
        lambda output: GemmWorker(
            order,
            Processor(),
            output,
            lambda dtype, size: FormatTrial(dtype, size, "cpu"),
            multiply,
            sleep=lambda _: None,
        ).run(),
    )


@pytest.mark.parametrize("inject", [None, "wrong", "slow"])
def test_the_whole_load(inject: str | None) -> None:
    output = ran(inject)
    found = {reading.name: reading.value for reading in output.readings}
    assert found.keys() == {name.format(short) for short in DTYPES for name in GEMM_READINGS}
    assert all(value > 0 for name, value in found.items() if "miscompares" not in name)
    wrong = 1 if inject == "wrong" else 0
    assert {value for name, value in found.items() if "miscompares" in name} == {wrong}
    assert [one.dtype for one in output.miscompares] == list(DTYPES) * wrong
    assert [table.name for table in output.tables] == [f"gemm_{short}_by_size" for short in DTYPES]
    assert all(len(table.rows) == 2 for table in output.tables)
