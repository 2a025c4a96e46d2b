"""gpu-burn's comparison as a model, and what it says of the faults that the burn finds.

    python benchmarks/gpu_burn_model.py

prints the table, and fails where a verdict is not the one that the table itself expects. The
verdicts in docs/measurements.md are copied from it by hand.

The algorithm is that of its source (wilicc/gpu-burn, gpu_burn-drv.cpp and compare.cu): operands are
made once and never looked at again; a ring of results C[0], C[1], ... is filled by one product
after the other; then, for every k from 1 on and every element i, `if (fabs(C[0][i] - C[k][i]) >
EPSILON) errors += 1`, and the next filling begins with C[0] again. EPSILON is 0.001 for float32 and
1e-7 for float64. Exit status and rates play no part: a GPU is FAULTY where errors were counted or
its process died. Where no process is alive it ends with an error and says nothing of the GPU.

Here a result has 64 x 64 elements and not 8192 x 8192; each is a sum of 8192 products of numbers
from 0 to 10, as gpu-burn's are, so that its size and its last place are the same. What is compared,
with what, and how, is the same too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32] | npt.NDArray[np.float64]
EPSILON: Mapping[str, float] = {"float32": 0.001, "float64": 1e-7}
SIDE, DEPTH, RING, FILLINGS = 64, 8192, 6, 4
AT = 8  # the product that is spoiled, counted over all fillings: the third result of the second
WORDS = {4: np.uint32, 8: np.uint64}


def sound(_number: int, _a: Matrix) -> None:
    """Operands stay as they were made."""


@dataclass(slots=True)
class Card:
    """A GPU with a fault: what happens to the first operand before a product, and to its result,
    and which product it `skips`; or it `hangs`, and compares nothing; or the process `dies`.
    """

    operands: Callable[[int, Matrix], None] = sound
    result: Callable[[int, int, Matrix], None] = lambda _number, _slot, _c: None
    skips: int | None = None
    hangs: bool = False
    dies: bool = False


def bits(matrix: Matrix) -> npt.NDArray[np.unsignedinteger]:
    """The same memory as whole numbers."""
    return matrix.reshape(-1).view(WORDS[matrix.itemsize])


@functools.cache
def made(dtype: str) -> tuple[Matrix, Matrix, Matrix]:
    """The operands and their product, which is the same each time that they are."""
    random = np.random.default_rng(10)
    a, b = ((10 * random.random(shape)).astype(dtype) for shape in ((SIDE, DEPTH), (DEPTH, SIDE)))
    return a, b, np.matmul(a, b)


def burn(card: Card, dtype: str = "float32") -> int:
    """How many errors gpu-burn counts."""
    a, b, right = made(dtype)
    if card.operands is not sound:
        a = a.copy()
    ring = [np.zeros((SIDE, SIDE), dtype) for _ in range(RING)]
    errors = 0
    for filling in range(0 if card.hangs else FILLINGS):
        for slot, c in enumerate(ring):
            number = filling * RING + slot
            card.operands(number, a)
            if number != card.skips:
                c[:] = right if card.operands is sound else np.matmul(a, b)
            card.result(number, slot, c)
        with np.errstate(
            invalid="ignore"
        ):  # NaN and infinity less infinity: the comparison is false, as in C
            errors += sum(int((np.abs(ring[0] - c) > EPSILON[dtype]).sum()) for c in ring[1:])
    return errors


def _bit(bit: int, *, always: bool = False) -> Callable[[int, int, Matrix], None]:
    def spoil(number: int, _slot: int, c: Matrix) -> None:
        if always or number == AT:
            bits(c)[77] ^= bits(c).dtype.type(1 << bit)

    return spoil


def _stuck(slot: int) -> Callable[[int, int, Matrix], None]:
    """A cell that holds the opposite of what the products have there."""

    def spoil(_number: int, at: int, c: Matrix) -> None:
        if at == slot:
            bits(c)[77] ^= bits(c).dtype.type(1 << 20)

    return spoil


def _ulp17(number: int, _slot: int, c: Matrix) -> None:
    if number == AT:
        bits(c)[::17] += bits(c).dtype.type(1)


def _set(
    value: float, *, first: bool = False, every: bool = False
) -> Callable[[int, int, Matrix], None]:
    def spoil(number: int, slot: int, c: Matrix) -> None:
        if every or (slot == 0 if first else number == AT):
            c.reshape(-1)[77] = value

    return spoil


def _input(when: int) -> Callable[[int, Matrix], None]:
    def spoil(number: int, a: Matrix) -> None:
        if number == when:
            bits(a)[77] ^= bits(a).dtype.type(1 << (20 if a.itemsize == 4 else 45))

    return spoil


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, gpu-burn's words on it in the number format, and why."""

    fault: str
    card: Card
    dtype: str
    finds: bool
    why: str


CASES = (
    Case("none", Card(), "float32", False, "nothing is wrong"),
    Case(
        "bit 0",
        Card(result=_bit(0)),
        "float32",
        True,
        "a unit in the last place is 0.0156, more than 0.001",
    ),
    Case(
        "bit 11",
        Card(result=_bit(11)),
        "float64",
        False,
        "6e-8 is less than 1e-7: the lowest 12 bits are not looked at",
    ),
    Case("stuck, not in C[0]", Card(result=_stuck(3)), "float32", True, "C[0] is right"),
    Case(
        "stuck, in C[0]",
        Card(result=_stuck(0)),
        "float32",
        True,
        "every other result counts as wrong instead",
    ),
    Case(
        "ulp17",
        Card(result=_ulp17),
        "float32",
        True,
        "a unit in the last place is 0.0156, more than 0.001",
    ),
    Case(
        "ulp17",
        Card(result=_ulp17),
        "float64",
        False,
        "a unit in the last place is 3e-11, less than 1e-7",
    ),
    Case("nan", Card(result=_set(math.nan)), "float32", False, "a comparison with NaN is false"),
    Case(
        "nan, in C[0]",
        Card(result=_set(math.nan, first=True)),
        "float32",
        False,
        "a comparison with NaN is false",
    ),
    Case(
        "inf",
        Card(result=_set(math.inf)),
        "float32",
        True,
        "infinity less a number is more than 0.001",
    ),
    Case(
        "inf, in all",
        Card(result=_set(math.inf, every=True)),
        "float32",
        False,
        "infinity less infinity is NaN",
    ),
    Case(
        "repeat",
        Card(result=_bit(28, always=True)),
        "float32",
        False,
        "C[0] is wrong in the same way",
    ),
    Case("unwritten", Card(skips=AT), "float32", False, "it holds an earlier correct result"),
    Case(
        "input, between",
        Card(operands=_input(2 * RING)),
        "float32",
        False,
        "the new C[0] is made of it too",
    ),
    Case(
        "input, within",
        Card(operands=_input(AT)),
        "float32",
        True,
        "until the ring is full; from then on nothing is wrong",
    ),
    Case("slow:50", Card(), "float32", False, "no rate is judged"),
    Case(
        "hang", Card(hangs=True), "float32", False, "no error was counted, having compared nothing"
    ),
    Case("lost", Card(dies=True), "float32", True, "no process is alive"),
)


def says(case: Case) -> str:
    """gpu-burn's word on a case."""
    if case.card.dies:
        return "an error"
    errors = burn(case.card, case.dtype)
    return f"FAULTY ({errors} error{'s' if errors > 1 else ''})" if errors else "OK"


def table() -> str:
    """The cases as lines of a table in Markdown."""
    rows = [f"| {case.fault} | {case.dtype} | {says(case)} | {case.why} |" for case in CASES]
    return "\n".join(["| fault | format | gpu-burn says | because |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
    other = [case.fault for case in CASES if (says(case) != "OK") != case.finds]
    raise SystemExit(f"another verdict than the table expects: {other}" if other else 0)
