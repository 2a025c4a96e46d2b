"""The words of `pattern`, made and compared by a GPU itself.

torch has no unsigned shifts, so the arithmetic is signed, in 64 bits. A tensor here is one of
int64. Every function works on the device of its tensor, CPU included, and queues its work there.
"""

from __future__ import annotations

from typing import Any

from acceptance.loads.copy.pattern import FLIPPED, LISTED, SPOILED, TransferFault, place
from acceptance.loads.miscompare import TransferredWord

Tensor = Any  # torch.Tensor; torch is not installed where the types are checked

_CHUNK = 1 << 24  # words made at a time: 128 MiB, and as much again for their intermediate values
_WRAP = 1 << 64
# The constants of SplitMix64 as signed numbers: a product modulo 2**64 has the same bits.
_STEP, _FIRST, _SECOND = (
    x - _WRAP for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def words(start: int, count: int, device: Any) -> Tensor:
    """`count` words of the sequence, from number `start` on."""
    import torch

    start -= _WRAP if start >> 63 else 0  # as a signed number
    x = torch.arange(start, start + count, dtype=torch.int64, device=device)
    x.mul_(_STEP)
    _mix(x, 30).mul_(_FIRST)
    _mix(x, 27).mul_(_SECOND)
    return _mix(x, 31)


def _mix(x: Tensor, shift: int) -> Tensor:
    """x ^= x >> shift, as if x were unsigned: the bits filled in from the sign are masked off."""
    return x.bitwise_xor_((x >> shift).bitwise_and_((1 << (64 - shift)) - 1))


def write(tensor: Tensor, start: int) -> None:
    """Fill a buffer with the words from number `start` on."""
    for first in range(0, tensor.numel(), _CHUNK):
        part = tensor[first : first + _CHUNK]
        part.copy_(words(start + first, part.numel(), tensor.device))


def fault(tensor: Tensor, start: int) -> TransferFault | None:
    """How a buffer differs from the words from number `start` on; None where it does not.

    The whole buffer is compared, bit for bit. `unwritten` counts the wrong `words` that still hold
    the value with which the buffer was spoiled: nothing was written over them.
    """
    wrong = unwritten = 0
    places: list[TransferredWord] = []
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
    return {"words": wrong, "unwritten": unwritten, "first": tuple(places)} if wrong else None


def flip(tensor: Tensor) -> None:
    """Invert one bit of one byte in the middle of a buffer, for `--inject wrong`."""
    middle = tensor.numel() // 2
    tensor[middle : middle + 1].bitwise_xor_(1 << FLIPPED)
