"""The products of the burn on a device of torch: operands in memory that is handed in, results wherever they are wanted. Needs torch.

Operands are normal-random as in `gpu_product` (int8: standard deviation 32, rounded), or whole numbers whose sums are exact; both come
from torch's generator with a fixed seed, so that GPUs of one model with one library have the same ones. The shapes of a format share
their operands' memory: each takes the beginning of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from acceptance.loads.burn_shape import Shape, operand_bytes
from acceptance.loads.gpu_dtypes import DTYPES, Dtype
from acceptance.loads.gpu_product import Tensor, formats, multiplication

_INT8_DEVIATION = 32.0
_PIECE = 1 << 24  # elements drawn at a time, so that little memory is needed beside the operands
_DIGEST_PIECE = 1 << 22
# An odd constant of SplitMix64, as a signed number.
_WEIGHT = -7046029254386353131


@dataclass(frozen=True, slots=True)
class Operands:
    """Both operands of every shape of a format, as flat memory of its own type."""

    dtype: Dtype
    a: Tensor
    b: Tensor

    def product(self, shape: Shape, result: Tensor) -> Callable[[], None]:
        """Gives the device one product of this shape to make, into `result` (m x n)."""
        a, b = self.views(shape)
        return multiplication(self.dtype, a, b, result)

    def views(self, shape: Shape) -> tuple[Tensor, Tensor]:
        """The operands as matrices: m x k and k x n."""
        a = self.a[: shape.m * shape.k].view(shape.m, shape.k)
        flat = self.b[: shape.k * shape.n]
        # The libraries want the second operand of one byte by columns.
        b = flat.view(shape.n, shape.k).t() if self.dtype.operand_bytes == 1 else flat.view(shape.k, shape.n)
        return a, b

    def digests(self) -> tuple[str, str]:
        """64 bits of every operand's bits and their places."""
        return digest(self.a), digest(self.b)


def operands(dtype: Dtype, shapes: tuple[Shape, ...], kind: str, take: Callable[[int], Tensor]) -> Operands:
    """Operands of this `kind` (normal or whole), in memory that `take` gives, so many bytes at a time."""
    import torch

    taken, _ = formats(dtype)
    parts = [take(size).view(taken) for size in operand_bytes(dtype, shapes)]
    deepest = max(shape.k for shape in shapes)
    for order, part in enumerate(parts):
        seed = 1000 * list(DTYPES).index(dtype.short) + order + (500 if kind == "whole" else 0)
        random = torch.Generator(part.device).manual_seed(seed)
        for begin in range(0, part.numel(), _PIECE):
            piece = part[begin : begin + _PIECE]
            piece.copy_(_drawn(dtype, kind, piece.numel(), deepest, random))
    return Operands(dtype, parts[0], parts[1])


def _drawn(dtype: Dtype, kind: str, count: int, deepest: int, random: Any) -> Tensor:
    import torch

    if kind == "whole":
        largest = dtype.largest(deepest)
        return torch.randint(-largest, largest + 1, (count,), device=random.device, generator=random)
    wide = torch.float64 if dtype.short == "f64" else torch.float32
    drawn = torch.randn(count, device=random.device, generator=random, dtype=wide)
    return drawn.mul_(_INT8_DEVIATION).round_().clamp_(-127, 127) if dtype.short == "i8" else drawn


def digest(memory: Tensor) -> str:
    """64 bits of all of a buffer: the sum of its 64-bit words, each times an odd weight of its place; changed by any change of one word.

    The buffer's size is a multiple of eight bytes.
    """
    import torch

    flat = memory.view(-1).view(torch.uint8).view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for begin in range(0, flat.numel(), _DIGEST_PIECE):
        piece = flat[begin : begin + _DIGEST_PIECE]
        places = torch.arange(begin, begin + piece.numel(), dtype=torch.int64, device=flat.device)
        weights = places.mul(_WEIGHT).bitwise_xor_(places >> 7).bitwise_or_(1)
        total += piece.mul(weights).sum()
    return f"{int(total) & (2**64 - 1):016x}"
