"""Comparing results bit for bit, and spoiling a buffer so that old results
cannot pass for new ones.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[Any]  # float32 or float64, in C order

# Results are whole numbers, so this is none of them. Not a NaN: a library may multiply the old
# contents by 0 before it adds to them.
SPOILED = 0.5
# One element in 61: about an eighth of the cache lines. The places move on by one each time, so 61
# rounds cover every element; as a prime the step does not line up with the rows of any usual size,
# so every block of a product has spoiled places every time.
STRIDE = 61
_LISTED = 4

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memcmp.restype = ctypes.c_int


def same_bits(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers of equal size hold the same bits: one pass over both
    whole, no temporaries.
    """
    if one.nbytes != other.nbytes or not (one.flags.c_contiguous and other.flags.c_contiguous):
        raise ValueError("only whole buffers of equal size can be compared")
    return bool(_memcmp(one.ctypes.data, other.ctypes.data, one.nbytes) == 0)


def spoil(buffer: Buffer, turn: int) -> None:
    """Overwrite a sample of the buffer with a value that no right result has."""
    buffer.reshape(-1)[turn % STRIDE :: STRIDE] = SPOILED


def flip(buffer: Buffer, index: int, bit: int) -> None:
    """Invert one bit of one element (for `--inject`)."""
    words = buffer.reshape(-1).view(_words(buffer))
    words[index] ^= words.dtype.type(1 << bit)


def difference(expected: Buffer, got: Buffer) -> dict[str, Any]:
    """How two buffers of equal shape differ, for a report: how many elements, how many of them
    NaN, and the bits of the first few.
    """
    want, have = (buffer.reshape(-1).view(_words(buffer)) for buffer in (expected, got))
    places = np.flatnonzero(want != have)
    digits = 2 * expected.itemsize
    return {
        "elements": len(places),
        "nan": int(np.isnan(got.reshape(-1)[places]).sum()),
        "first": [
            {
                "index": [int(part) for part in np.unravel_index(place, expected.shape)],
                "expected": f"{want[place]:0{digits}x}",
                "got": f"{have[place]:0{digits}x}",
                "xor": f"{want[place] ^ have[place]:0{digits}x}",
            }
            for place in places[:_LISTED]
        ],
    }


def _words(buffer: Buffer) -> type[np.uint32 | np.uint64]:
    return np.uint32 if buffer.itemsize == 4 else np.uint64
