"""Whether the first products of the burn are right: against arithmetic that the products themselves do not use. Needs torch.

- Products of whole numbers, so small that all sums are exact whatever their order. Where the result is exact too (float64, float32, TF32,
  int8) every row by Freivalds' check in integers modulo 2**64 (C r == A (B r) for random odd r: see `exact_product`, whose bound holds
  here too), which the GPU's integer units compute; else against float64 products of the same numbers: what differs by more than the
  rounding of the result (`gpu_dtypes`) is wrong. float64 does not go through the units that multiply in narrower formats.
- Products of normal-random numbers against float64, within the bound that `gpu_dtypes` derives. float64 itself, for which there is
  nothing wider, against the processor's float64, in one row of each of 64 bands.

The float64 reference takes blocks of rows, spread evenly, for as long as its time allows: all of them on a GPU with fast float64. How many
rows were checked is told. Elements that are NaN or infinite are looked for in the whole result.
"""

from __future__ import annotations

import time
from typing import Any

from acceptance.loads.burn_product import Operands
from acceptance.loads.burn_shape import Shape
from acceptance.loads.gpu_gemm_verification import judged as judged_by_processor
from acceptance.loads.gpu_product import Product, Tensor, odd, spoil

REFERENCE_S = 2.0  # of float64 products for one result
_ROWS = 256
_VECTORS = 4
_LISTED = 4

Judged = tuple[dict[str, Any] | None, str]


def first(operands: Operands, shape: Shape, kind: str, result: Tensor, make: Any) -> Judged:
    """Make a product into `result` by `make()`, and what is wrong with it: a finding or None, and a sentence; `kind` is normal or whole."""
    spoil(result)
    make()
    dtype = operands.dtype
    if dtype.exact or (kind == "whole" and not dtype.result_error):
        return _freivalds(operands, shape, kind, result)
    return (
        _by_processor(operands, shape, result) if dtype.short == "f64" else _by_float64(operands, shape, kind, result)
    )


def _by_processor(operands: Operands, shape: Shape, result: Tensor) -> Judged:
    a, b = operands.views(shape)
    return judged_by_processor(Product(operands.dtype, a, b, result, lambda: None), "normal")


def _freivalds(operands: Operands, shape: Shape, kind: str, result: Tensor) -> Judged:
    """Every row of a product of whole numbers that comes out exact, in integers modulo 2**64."""
    import torch

    a, b = operands.views(shape)
    bound = float(shape.k) * operands.dtype.largest(shape.k) ** 2
    strange = odd(result)
    sound = (result.abs() <= bound) & (result == result.trunc() if result.is_floating_point() else True)
    unsound = int((~sound).sum())
    wrong: set[int] = set()
    for _ in range(0 if unsound else _VECTORS):
        # Freshly random each time: what a fixed vector would always miss, another finds. The seed is the operating system's.
        random = torch.Generator(result.device)
        random.seed()
        shape_of = (1, shape.n)
        r = torch.randint(-(2**63), 2**63 - 1, shape_of, device=result.device, generator=random, dtype=torch.int64) | 1
        right = _times(b, r)
        rows = (_times(result, r) != _times(a, right.view(1, -1))).nonzero().flatten().tolist()
        wrong.update(rows)
    told = f"all {shape.m} rows in integers"
    if not unsound and not wrong:
        return None, told
    listed = [{"index": [row]} for row in sorted(wrong)[:_LISTED]]
    elements = unsound or len(wrong)
    return {"check": kind, "rows": shape.m, "elements": elements, **strange, "first": listed}, told


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """matrix @ vector in integers modulo 2**64: torch multiplies no matrices of integers on a GPU."""
    import torch

    return torch.cat([
        (matrix[row : row + _ROWS].to(torch.int64) * vector).sum(dim=1) for row in range(0, len(matrix), _ROWS)
    ])  # fmt: skip


def _by_float64(operands: Operands, shape: Shape, kind: str, result: Tensor) -> Judged:
    import torch

    a, b = operands.views(shape)
    wide = b.to(torch.float64)
    own, share = operands.dtype.bound(shape.k)
    if kind == "whole":
        own, share = 2 * own, 0.0  # rounded once more where a library adds parts that it has rounded
    squares = wide.square() if share else None
    blocks = [(row, min(row + _ROWS, shape.m)) for row in range(0, shape.m, _ROWS)]
    rows = elements = 0
    largest = worst = 0.0
    listed: list[dict[str, Any]] = []
    began, left = time.monotonic(), list(range(len(blocks)))
    while left:
        before_s = time.monotonic()
        begin, end = blocks[left.pop(0)]
        part = a[begin:end].to(torch.float64)
        exact = part @ wide
        allowed = exact.abs().mul_(own)
        if squares is not None:
            allowed += (part.square() @ squares).sqrt_().mul_(share)
        got = result[begin:end].to(torch.float64)
        error = (got - exact).abs_()
        wrong = ~(error <= allowed)  # also where the error is no number
        here = int(wrong.sum())
        rows, elements, largest = rows + end - begin, elements + here, max(largest, float(error.max()))
        if share or own:
            worst = max(worst, float((error / allowed.clamp_(min=1e-300)).max()))
        for i, j in wrong.nonzero()[: _LISTED - len(listed)].tolist() if here else ():
            place = [begin + i, j]
            listed.append({"index": place, "expected": repr(float(exact[i, j])), "got": repr(float(got[i, j]))})
        now_s = time.monotonic()
        # By the block just done: the very first is slow, because the library wakes up.
        room = int((REFERENCE_S - (now_s - began)) / (now_s - before_s)) if rows > _ROWS else len(left)
        if room < len(left):  # too slow for all: those that there is time for, spread evenly over what is left
            left = [left[(2 * n + 1) * len(left) // (2 * room)] for n in range(room)] if room > 0 else []
    strange = odd(result)
    told = f"{rows} of {shape.m} rows in float64, largest error {largest:.3g}"
    told += f", at most {worst:.3g} of what is allowed" if share or own else ", none is allowed"
    if not elements and not any(strange.values()):
        return None, told
    return {"check": kind, "rows": rows, "elements": elements, **strange, "first": listed}, told
