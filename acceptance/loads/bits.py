"""Bitwise comparison of results, and spoiling of buffers.

A spoiled buffer cannot pass off old results as new ones.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from acceptance.loads.miscompare import WrongPlace

Buffer = NDArray[Any]  # float32 or float64, in C order

# No right result has this value, because results are whole numbers. It is not NaN because a library
# may multiply the old contents by 0 before it adds to them.
SPOILED = 0.5
# One element in 61, which touches about an eighth of the cache lines. The positions shift by one
# each turn, so 61 turns cover every element. 61 is prime, so the step does not line up with the
# rows of any usual size, and every block of a product has spoiled elements in every turn.
STRIDE = 61
_LISTED = 4

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memcmp.restype = ctypes.c_int


def same_bits(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers of equal size hold the same bits.

    One pass over both buffers, without temporaries. Raises ValueError for buffers that differ in
    size or are not contiguous.
    """
    if one.nbytes != other.nbytes or not (one.flags.c_contiguous and other.flags.c_contiguous):
        raise ValueError("only whole buffers of equal size can be compared")
    return bool(_memcmp(one.ctypes.data, other.ctypes.data, one.nbytes) == 0)


def spoil(buffer: Buffer, turn: int) -> None:
    """Overwrite a sample of the buffer with a value that no right result has."""
    buffer.reshape(-1)[turn % STRIDE :: STRIDE] = SPOILED


def flip(buffer: Buffer, index: int, bit: int) -> None:
    """Invert one bit of one element, for `--inject`."""
    words = buffer.reshape(-1).view(_words(buffer))
    words[index] ^= words.dtype.type(1 << bit)


class BufferDifference(TypedDict):
    """How a result or an array of the processor differs."""

    elements: int
    nan: int
    first: tuple[WrongPlace, ...]


def difference(expected: Buffer, got: Buffer) -> BufferDifference:
    """How two buffers of equal shape differ.

    The number of differing elements, how many of these are NaN, and the bits of the first few.
    """
    want, have = (buffer.reshape(-1).view(_words(buffer)) for buffer in (expected, got))
    places = np.flatnonzero(want != have)
    digits = 2 * expected.itemsize
    return {
        "elements": len(places),
        "nan": int(np.isnan(got.reshape(-1)[places]).sum()),
        "first": tuple(
            WrongPlace(
                index=tuple(int(part) for part in np.unravel_index(place, expected.shape)),
                expected=f"{want[place]:0{digits}x}",
                got=f"{have[place]:0{digits}x}",
                xor=f"{want[place] ^ have[place]:0{digits}x}",
            )
            for place in places[:_LISTED]
        ),
    }


def _words(buffer: Buffer) -> type[np.uint32 | np.uint64]:
    return np.uint32 if buffer.itemsize == 4 else np.uint64
