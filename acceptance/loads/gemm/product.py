"""Square matrix products on a torch device: operands, multiplication, and the bits of results.

Needs torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.miscompare import WrongPlace, WrongValue
from acceptance.loads.mismatch import OddCounts, ProductDifference

Tensor = Any
_BLOCK = 1024  # rows made or read at a time, to keep memory use low
_INT8_DEVIATION = 32.0
_THREADS = 8
LISTED = 4  # wrong elements of a result that are listed; all are counted


def formats(dtype: Dtype) -> tuple[Any, Any]:
    """torch's types of the operands and of the result."""
    import torch

    return {
        "f64": (torch.float64, torch.float64),
        "f32": (torch.float32, torch.float32),
        "tf32": (torch.float32, torch.float32),
        "f16": (torch.float16, torch.float16),
        "bf16": (torch.bfloat16, torch.bfloat16),
        "f8": (torch.float8_e4m3fn, torch.bfloat16),
        "i8": (torch.int8, torch.int32),
    }[dtype.short]


def settings() -> None:
    """Set torch's threads and precision.

    At most eight threads, so that one process does not take every core, and no partial sums in the
    narrow format of a result.
    """
    import torch

    torch.set_num_threads(min(_THREADS, len(os.sched_getaffinity(0))))
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@dataclass(slots=True)
class Product:
    """Two operands, the buffer of their product, and the multiplication."""

    dtype: Dtype
    a: Tensor
    b: Tensor
    result: Tensor
    multiply: Callable[[], None]


def normal(dtype: Dtype, size: int, device: str) -> Product:
    """The product of two matrices of normal-random numbers.

    They are the same each time on GPUs of one model.
    """
    return _product(dtype, size, device, lambda rows, random: drawn(dtype, (rows, size), random))


def drawn(dtype: Dtype, shape: tuple[int, ...], random: Any) -> Tensor:
    """Normal-random numbers of a format, on the generator's device and not yet in its type."""
    import torch

    wide = torch.float64 if dtype.short == "f64" else torch.float32
    numbers = torch.randn(shape, device=random.device, generator=random, dtype=wide)
    return (
        numbers.mul_(_INT8_DEVIATION).round_().clamp_(-127, 127) if dtype.short == "i8" else numbers
    )


def whole_product(dtype: Dtype, size: int, device: str) -> Product:
    """The product of two matrices of whole numbers, all of whose sums are exact."""
    import torch

    largest = dtype.largest(size)

    def draw(rows: int, random: Any) -> Tensor:
        return torch.randint(-largest, largest + 1, (rows, size), device=device, generator=random)

    return _product(dtype, size, device, draw)


def _product(dtype: Dtype, size: int, device: str, draw: Callable[[int, Any], Tensor]) -> Product:
    import torch

    taken, given = formats(dtype)
    operands = []
    for order in range(2):
        random = torch.Generator(device).manual_seed(1000 * list(DTYPES).index(dtype.short) + order)
        operand = torch.empty(size, size, dtype=taken, device=device)
        for row in range(0, size, _BLOCK):
            rows = operand[row : row + _BLOCK]
            rows.copy_(draw(len(rows), random))
        operands.append(operand)
    a, b = operands
    if dtype.operand_bytes == 1:
        b = b.t()  # the libraries require the second operand of one-byte formats in column order
    result = torch.empty(size, size, dtype=given, device=device)
    return Product(dtype, a, b, result, multiplication(dtype, a, b, result))


def multiplication(dtype: Dtype, a: Tensor, b: Tensor, result: Tensor) -> Callable[[], None]:
    """A function that queues one product."""
    import torch

    if dtype.short == "i8":
        return lambda: torch._int_mm(a, b, out=result)
    if dtype.short == "f8":
        one = torch.ones((), device=a.device)
        return lambda: torch._scaled_mm(
            a, b, one, one, out_dtype=result.dtype, use_fast_accum=True, out=result
        )
    # "high" is TF32, and only for float32
    precision = "high" if dtype.short == "tf32" else "highest"

    def multiply() -> None:
        torch.set_float32_matmul_precision(precision)
        torch.mm(a, b, out=result)

    return multiply


def spoil(result: Tensor) -> None:
    """Overwrite a result, so that an old one cannot pass as a new one."""
    result.fill_(-0.5 if result.dtype.is_floating_point else -(2**31))


def words(result: Tensor) -> Tensor:
    """A result as whole numbers with the same bits."""
    import torch

    return result.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()])


def digest(result: Tensor) -> str:
    """A digest of 64 bits: the sum of each element's bits times an odd weight of its place.

    Two results that differ in one element have different digests.
    """
    import torch

    total = torch.zeros((), dtype=torch.int64, device=result.device)
    for row in range(0, len(result), _BLOCK):
        bits = words(result[row : row + _BLOCK]).reshape(-1).to(torch.int64)
        places = (
            torch.arange(bits.numel(), dtype=torch.int64, device=result.device)
            + row * result.shape[1]
        )
        weights = (places * -7046029254386353131) ^ (places >> 7)
        total += (bits * (weights | 1)).sum()
    return f"{int(total) & (2**64 - 1):016x}"


def difference(expected: Tensor, got: Tensor) -> ProductDifference | None:
    """How two results differ bit for bit; None where they do not."""
    import torch

    want, have = words(expected), words(got)
    if torch.equal(want, have):
        return None
    places = (want != have).nonzero()
    digits = 2 * expected.element_size()
    mask = 16**digits - 1
    first = tuple(
        WrongPlace(
            index=place,
            expected=f"{old:0{digits}x}",
            got=f"{new:0{digits}x}",
            xor=f"{old ^ new:0{digits}x}",
        )
        for place in map(tuple, places[:LISTED].tolist())
        for old, new in [(int(want[place]) & mask, int(have[place]) & mask)]
    )
    return {"elements": len(places), **odd(got), "first": first}


def wrong_values(
    wrong: Tensor, expected: Tensor, got: Tensor, most: int = LISTED, rows: list[int] | None = None
) -> tuple[WrongValue, ...]:
    """The first of the elements that are `wrong`; `rows` are the numbers of the rows, if others."""
    return tuple(
        WrongValue(
            index=place if rows is None else (rows[place[0]], *place[1:]),
            expected=repr(float(expected[place])),
            got=repr(float(got[place])),
        )
        for place in map(tuple, wrong.nonzero()[:most].tolist())
    )


def odd(numbers: Tensor) -> OddCounts:
    """The numbers of NaN and of infinite elements."""
    return (
        {"nan": int(numbers.isnan().sum()), "infinite": int(numbers.isinf().sum())}
        if numbers.dtype.is_floating_point
        else {"nan": 0, "infinite": 0}
    )
