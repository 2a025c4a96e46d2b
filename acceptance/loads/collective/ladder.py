"""The sizes of the operations: from 8 bytes to 4 GiB, as memory and time allow. Pure.

From 8 bytes to 1 GiB each size is eight times the one before, so the small and the large protocols
of NCCL are both used (LL, LL128, Simple), and 16 MiB, 128 MiB and 1 GiB are among them.
"""

from __future__ import annotations

from acceptance.core.limit import GIB

STEP = 8
SIZES: tuple[int, ...] = (*(8 * STEP**number for number in range(10)), 4 * GIB)
BUFFERS = 2  # of the size: source and destination


def fitting(room: int, work: int) -> tuple[int, ...]:
    """The sizes for which a rank has memory.

    `room` is its free memory and `work` what verifying needs besides the buffers, in bytes. Raises
    ValueError where not even the smallest size fits.
    """
    found = tuple(size for size in SIZES if BUFFERS * size + work <= room)
    if not found:
        raise ValueError(f"{room / GIB:.2f} GiB of free memory are too little for any size")
    return found


def affordable(size: int, done: int, took_s: float, left_s: float) -> bool:
    """Whether `size` ends within `left_s` seconds, after `done` bytes took `took_s`.

    Time is taken to grow with the size. A part of it does not, so that sound hardware is rarely
    slower.
    """
    return took_s * size / done <= left_s
