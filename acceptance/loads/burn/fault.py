"""Faults injected into the burn (`inject`), to prove that they are found and told apart.

Never set in a real run.

    bit        one bit of one element of one product flips
    stuck      a bit of one memory cell holds one value, whatever is written there
    ulp17      every 17th element of one product is off by one unit in the last place
    nan, inf   one element of one product is NaN, or infinite (int8 has neither: there one
               element is another number)
    repeat     one element is wrong in the same way in every product, the first included
    unwritten  one place in memory keeps its old content: its products are not made
    input      a bit of an operand flips while products are made
    slow:P     the rate falls by P per cent from the second lap on, by extra work that is not
               counted (an idle pause of that length would cost less: a GPU at its power limit
               is faster after a pause)
    hang       the GPU stops answering
    lost       the GPU fails with an error, like one that falls off the bus

Every function works on a result as whole numbers with the same bits. Needs torch, and for `hang`
and `lost` a GPU.
"""

from __future__ import annotations

import ctypes
from typing import Any

from acceptance.loads.gemm.product import Tensor, words

# The product of each format that the one-product faults spoil: in the first lap, before its memory
# is used again.
AT = 5
STRIDE = 17
HANG_NS = 150 * 10**9
_NAN = {
    "f64": 0x7FF8 << 48,
    "f32": 0x7FC0 << 16,
    "tf32": 0x7FC0 << 16,
    "f16": 0x7E00,
    "bf16": 0x7FC0,
    "f8": 0x7FC0,
}
_INF = {
    "f64": 0x7FF0 << 48,
    "f32": 0x7F80 << 16,
    "tf32": 0x7F80 << 16,
    "f16": 0x7C00,
    "bf16": 0x7F80,
    "f8": 0x7F80,
}
# A bit that changes the number a lot.
_HIGH = {
    "f64": 58,
    "f32": 27,
    "tf32": 27,
    "f16": 13,
    "bf16": 12,
    "f8": 12,
    "i8": 20,
}


def slowness(kind: str | None) -> float:
    """The share of its rate that the GPU is to lose; 0 without `slow`."""
    return (
        int(kind.partition(":")[2]) / 100 if kind is not None and kind.startswith("slow:") else 0.0
    )


def one_result(kind: str | None, dtype: str, result: Tensor) -> None:
    """Spoil one product of a format, for `bit`, `ulp17`, `nan` and `inf`."""
    bits = words(result).view(-1)
    middle = bits.numel() // 2 + 3
    if kind == "bit":
        bits[middle] ^= 1 << 3
    elif kind == "ulp17":
        bits[::STRIDE] += 1
    elif kind in ("nan", "inf"):
        bits[middle] = (_NAN if kind == "nan" else _INF).get(dtype, 0x7F7F7F7F)


def every_result(kind: str | None, dtype: str, result: Tensor) -> None:
    """Spoil every product, the first included, for `repeat`."""
    if kind == "repeat":
        words(result).view(-1)[result.numel() // 3] ^= 1 << _HIGH[dtype]


class StuckBit:
    """A memory bit stuck at the opposite of its value in the first shape's products."""

    def __init__(self, expected: Tensor) -> None:
        bits = words(expected).view(-1)
        self._at, self._bit = bits.numel() // 2 + 11, 1 << 2
        self._value = 0 if int(bits[self._at]) & self._bit else self._bit

    def hold(self, result: Tensor) -> None:
        """Apply the stuck bit to a product that was written over the cell."""
        bits = words(result).view(-1)
        bits[self._at] = (bits[self._at] & ~self._bit) | self._value


class Stoppage:
    """Kernels that make the GPU hang or fail."""

    def __init__(self) -> None:
        from acceptance.loads.card import Kernels

        self._kernels = Kernels("fault")

    def hang(self) -> None:
        """Keep the GPU busy for longer than any wait lasts."""
        self._launch("pause_ns", ctypes.c_ulonglong(HANG_NS))

    def lose(self) -> None:
        """End the GPU's context with an error."""
        self._launch("give_up")

    def _launch(self, name: str, *arguments: Any) -> None:
        self._kernels.launch(name, 1, 1, arguments)
