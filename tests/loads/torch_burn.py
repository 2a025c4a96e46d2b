"""The burn with torch itself, on the processor: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from load_texts import by_name
from plain_comparator import TorchComparator
from written import ran

from acceptance.loads.burn import device as burn_device
from acceptance.loads.burn.compare import KINDS, wrong_elements
from acceptance.loads.burn.contract import READINGS
from acceptance.loads.burn.device import TorchDevice, digest, first_proof, operands
from acceptance.loads.burn.fault import slowness
from acceptance.loads.burn.shape import Shape, operand_bytes, result_bytes, shapes
from acceptance.loads.burn.worker import BurnOptions, BurnWorker
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.product import formats
from acceptance.loads.gemm.verification import BANDS
from acceptance.loads.protocol import LoadOutput

# 64 x 64, and products 512 to 2048 deep; in float8, which torch multiplies on a processor one
# element at a time, 16 x 16 and 512 deep.
DIVISORS = dict.fromkeys(DTYPES, 128) | {"f8": 512}
FREE = 4 << 20
GROUP_S = 0.01  # that a group of products takes, for the burn
every = pytest.mark.parametrize("dtype", DTYPES.values(), ids=list(DTYPES))


class Processor:
    """A card whose clock goes on by so much from mark to mark: a turn has as many products on a
    busy machine as on an idle one.
    """

    def __init__(self, free: int = FREE) -> None:
        self.free = free
        self.marks = 0

    def mark(self) -> int:
        self.marks += 1
        return self.marks

    def seconds(self, begin: int, end: int) -> float:
        return (end - begin) * GROUP_S

    def free_bytes(self) -> int:
        return self.free


class Nothing:
    def step(self) -> None:
        pass

    def finish(self) -> None:
        pass


def burn(
    dtypes: tuple[Dtype, ...], seconds: float, inject: str | None = None, free: int = FREE
) -> LoadOutput:
    order = BurnOptions(dtypes, seconds, slow=slowness(inject), divisors=DIVISORS)
    card = Processor(free)
    device = TorchDevice("cpu", card, TorchComparator(), inject)
    return ran(
        "burn",
        lambda output: BurnWorker(order, device, card, output, Nothing(), time.monotonic).run(
            1 << 20
        ),
        {"inject": inject} if inject else {},
    )


@every
def test_a_thousand_clean_products_of_each_format_raise_no_alarm(dtype: Dtype) -> None:
    products, seconds = 0, 0.5
    while products < 1000:
        output = burn((dtype,), seconds)
        found = by_name(output)
        assert found[f"burn_{dtype.short}_miscompares"] == 0
        assert output.miscompares == ()
        assert found.keys() == {name.format(dtype.short) for name in READINGS} | {"burn_filled"}
        (laps,) = (table for table in output.tables if table.name == "burn_laps")
        products += sum(int(row[3]) for row in laps.rows)
        seconds *= 2


def test_all_formats_in_turns() -> None:
    output = burn(tuple(DTYPES.values()), 0.7)
    assert not output.miscompares
    tables = {table.name: table for table in output.tables}
    assert [row[:2] for row in tables["burn_laps"].rows] == [
        (lap, short) for lap in range(2) for short in DTYPES
    ]
    assert len(tables["burn_digests"].rows) == 3 * len(DTYPES)


@every
@pytest.mark.parametrize(
    "inject", ["bit", "stuck", "ulp17", "nan", "inf", "repeat", "unwritten", "input"]
)
def test_every_fault_is_found(dtype: Dtype, inject: str) -> None:
    free = FREE
    if inject == "unwritten":  # a ring so small that it goes round many times
        found = shapes(dtype, DIVISORS[dtype.short])
        free = (1 << 20) + sum(operand_bytes(dtype, found)) + 36 * result_bytes(dtype, found)
    output = burn((dtype,), 0.8 if inject == "unwritten" else 0.2, inject, free)
    assert (
        by_name(output)[f"burn_{dtype.short}_miscompares"] == len(output.miscompares)
        or len(output.miscompares) == 64
    )
    facts = output.miscompares
    assert facts
    checks = {one.check for one in facts}
    ring = [one for one in facts if one.check == "ring"]
    if inject == "repeat":
        assert checks == {"normal"} if dtype.exact else checks == {"normal", "whole"}
        return
    if inject == "input":
        assert checks == {"ring", "inputs"}
        assert {one.operand for one in facts if one.check == "inputs"} == {"a"}
        return
    assert checks == {"ring"}
    first = ring[0]
    if inject == "unwritten":
        assert {one.slot for one in ring} == {0}
        assert len({one.lap for one in ring}) == 2
        assert len(ring) > 4, "not only the first time, when the memory held something else anyway"
        return
    if inject == "stuck":
        assert len({one.first[0].address for one in ring}) == 1
        assert {tuple(one.bits) for one in ring} == {(2,)}
        return
    assert len(ring) == 1
    assert first.iteration == 5
    if inject == "bit":
        assert (first.elements, first.bits) == (1, {3: 1})
    elif inject == "ulp17":
        assert first.stride == 17
        assert first.elements == -(-first.of // 17)
    elif dtype.short != "i8":
        assert (first.nan, first.infinite) == ((1, 0) if inject == "nan" else (0, 1))


@pytest.mark.parametrize("short", ["f32", "tf32", "f16", "bf16"])
def test_where_time_is_short_every_band_of_rows_is_looked_at_all_the_same(
    short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(burn_device, "REFERENCE_S", 0.0)
    dtype, shape = DTYPES[short], Shape(2048, 64, 128)
    own = operands(dtype, (shape,), "normal", lambda size: torch.empty(size, dtype=torch.uint8))
    _, given = formats(dtype)
    result = torch.empty(shape.m, shape.n, dtype=given)
    make = own.product(shape, result)
    found, text = first_proof(own, shape, "normal", result, make)
    assert found is None
    assert BANDS <= int(text.split()[0]) < shape.m, "not all rows"
    width = shape.m // BANDS
    for band in (1, 30, BANDS - 1):
        rows = slice(band * width, (band + 1) * width)

        def wrong(rows: slice = rows) -> None:
            make()
            result[rows] = 1000.0

        found, _ = first_proof(own, shape, "normal", result, wrong)
        assert found is not None
        assert {one.index[0] * BANDS // shape.m for one in found.first} == {band}
        assert found.elements >= shape.n


@every
def test_digests_change_with_one_bit_and_are_the_same_each_time(dtype: Dtype) -> None:
    import torch

    def take(size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8)

    found = shapes(dtype, DIVISORS[dtype.short])
    one, other = (operands(dtype, found, "normal", take) for _ in range(2))
    assert one.digests() == other.digests()
    other.b.view(-1).view(torch.uint8)[-1] ^= 1
    assert one.digests()[0] == other.digests()[0]
    assert one.digests()[1] != other.digests()[1]
    assert digest(one.a) != digest(one.b)


@every
def test_the_reference_comparator_counts_what_differs(dtype: Dtype) -> None:
    import torch

    _, given = __import__("acceptance.loads.gemm.product", fromlist=["formats"]).formats(dtype)
    expected = torch.ones(8, 9).to(given)
    results = [expected.clone() for _ in range(3)]
    results[1][7, 8] = 2
    results[2][0, 0] = float("nan") if dtype.short != "i8" else 5
    comparator = TorchComparator()
    counts = comparator.counts(comparator.start(expected, results, KINDS[dtype.short]))
    assert counts == [(0, 0, 0), (1, 0, 0), (1, int(dtype.short != "i8"), 0)]
    wrong, last = wrong_elements(expected, results[1])
    assert ([one.element for one in wrong], last) == ([71], 71)
