"""The words of `pattern` as a GPU makes and compares them itself: torch has no unsigned shifts, so
in signed 64-bit arithmetic.

A tensor here is one of int64. Every function works on the device where the tensor lies, CPU
included, and queues its work there.
"""

from __future__ import annotations

from typing import Any

from acceptance.loads.copy.pattern import FLIPPED, LISTED, SPOILED, place

Tensor = Any  # torch.Tensor; torch is not there where the types are checked

_CHUNK = 1 << 24  # words made at a time: 128 MiB, and as much again for what they are made from
_WRAP = 1 << 64
# The constants of SplitMix64 as signed numbers: a product modulo 2**64 has the same bits.
_STEP, _FIRST, _SECOND = (
    x - _WRAP for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def words(start: int, count: int, device: Any) -> Tensor:
    """`count` words of the sequence from number `start` on."""
    import torch

    start -= _WRAP if start >> 63 else 0  # as a signed number
    x = torch.arange(start, start + count, dtype=torch.int64, device=device)
    x.mul_(_STEP)
    _mix(x, 30).mul_(_FIRST)
    _mix(x, 27).mul_(_SECOND)
    return _mix(x, 31)


def _mix(x: Tensor, shift: int) -> Tensor:
    """x ^= x >> shift, as if x were unsigned: the bits that the sign filled in are cut off."""
    return x.bitwise_xor_((x >> shift).bitwise_and_((1 << (64 - shift)) - 1))


def write(tensor: Tensor, start: int) -> None:
    """Fill a buffer with the words that begin at number `start`."""
    for first in range(0, tensor.numel(), _CHUNK):
        part = tensor[first : first + _CHUNK]
        part.copy_(words(start + first, part.numel(), tensor.device))


def fault(tensor: Tensor, start: int) -> dict[str, Any] | None:
    """How a buffer differs from the words that begin at number `start`, bit for bit over the whole
    of it; None where it does not.

    `unwritten` are those of its wrong `words` that the buffer was spoiled with: nothing was written
    over them.
    """
    wrong = unwritten = 0
    places: list[dict[str, Any]] = []
    for first in range(0, tensor.numel(), _CHUNK):
        part = tensor[first : first + _CHUNK]
        expected = words(start + first, part.numel(), tensor.device)
        differs = part != expected
        here = int(differs.count_nonzero())
        if here:
            wrong += here
            unwritten += int((part == SPOILED).count_nonzero())
            for index in differs.nonzero().flatten()[: LISTED - len(places)].tolist():
                found = place(first + index, int(expected[index]) % _WRAP, int(part[index]) % _WRAP)
                places.append(found)
    return {"words": wrong, "unwritten": unwritten, "first": places} if wrong else None


def flip(tensor: Tensor) -> None:
    """Invert one bit of one byte in the middle of a buffer (for `--inject wrong`)."""
    middle = tensor.numel() // 2
    tensor[middle : middle + 1].bitwise_xor_(1 << FLIPPED)
