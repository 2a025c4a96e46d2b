"""The shapes of the burn's products: three for each format, with results of equal size. Pure.

A product of m x k by k x n matrices takes 2 m n k operations and gives m x n elements, each of
which is read again to be compared. The greater the depth k, the lower the cost of comparing. So
fast formats have a greater k, at which reading the results takes about a hundredth of the time on
the fastest memory available. The libraries tile the square, tall and wide shapes differently, and
so reach other parts of the GPU with the same data. All results of a format have the same size, so
any of them fits any place in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.loads.gemm.dtypes import Dtype

WIDTH = 8192
DEPTH = {
    "f64": 8192,
    "f32": 8192,
    "tf32": 16384,
    "f16": 16384,
    "bf16": 16384,
    "f8": 32768,
    "i8": 32768,
}
# Architectures whose float64 rate is half of the float32 rate; the others have a 32nd or a 64th
# (NVIDIA's CUDA programming guide, throughput of arithmetic instructions).
FAST_FLOAT64 = frozenset({(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)})


@dataclass(frozen=True, slots=True)
class Shape:
    """An m x k matrix by a k x n matrix."""

    m: int
    n: int
    k: int

    @property
    def elements(self) -> int:
        """Elements of the result."""
        return self.m * self.n

    @property
    def operations(self) -> int:
        """Operations of one product: a multiplication and an addition for each of m n k pairs."""
        return 2 * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def shapes(dtype: Dtype, divisor: int = 1) -> tuple[Shape, ...]:
    """The square, the tall and the wide shape.

    `divisor` (a power of two) makes them narrower for a small or slow GPU. The depth stays, because
    it decides the cost of comparing; it shrinks only beyond a divisor of 8, which tests use.
    """
    width, depth = WIDTH // divisor, DEPTH[dtype.short] // max(1, divisor // 8)
    return (
        Shape(width, width, depth),
        Shape(2 * width, width // 2, depth),
        Shape(width // 2, 2 * width, depth),
    )


def divisor_for(dtype: Dtype, capability: tuple[int, int], whole_bytes: int) -> int:
    """The divisor of the width on a GPU of this compute capability and memory.

    It is the same for all GPUs of a model. float64 is made small where the architecture has a 32nd
    or a 64th of float32's rate. Operands and expected results take at most an eighth of the memory.
    With the memory for proving the first products (the second operand in float64, and its squares)
    they take at most six tenths.
    """
    divisor = 4 if dtype.short == "f64" and capability not in FAST_FLOAT64 else 1
    while divisor < 8 and not _fits(dtype, divisor, whole_bytes):
        divisor *= 2
    return divisor


def _fits(dtype: Dtype, divisor: int, whole_bytes: int) -> bool:
    found = shapes(dtype, divisor)
    a, b = operand_bytes(dtype, found)
    kept = a + b + len(found) * result_bytes(dtype, found)
    wide = 0 if dtype.short == "f64" else 16 * b // dtype.operand_bytes
    return 8 * kept <= whole_bytes and 10 * (kept + wide) <= 6 * whole_bytes


def operand_bytes(dtype: Dtype, shapes: tuple[Shape, ...]) -> tuple[int, int]:
    """Bytes of each operand in its largest shape; smaller shapes use the beginning of it."""
    return (
        max(shape.m * shape.k for shape in shapes) * dtype.operand_bytes,
        max(shape.k * shape.n for shape in shapes) * dtype.operand_bytes,
    )


def result_bytes(dtype: Dtype, shapes: tuple[Shape, ...]) -> int:
    """Bytes of one result, equal for all shapes."""
    return shapes[0].elements * dtype.result_bytes
