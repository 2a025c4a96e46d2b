"""One worker of the memory load, on its core.

Imported by the worker only: numpy must be loaded in the worker's environment. The three arrays of
float64, a (written), b and c (read), are first written by the pinned worker, so that the kernel
puts them into the memory next to its core. b and c hold whole numbers from 1 to 2**50, so b + 3 c
is exact and is known in integers.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import msgspec
import numpy as np
from numpy.typing import NDArray

from acceptance.loads import bits
from acceptance.loads.cpu.cores import Core, Done
from acceptance.loads.exact_product import spread
from acceptance.loads.miscompare import WrongArray
from acceptance.loads.ranks import TaskPipe, sleep_until

Array = NDArray[np.float64]

# Elements that triad processes at a time: 512 KiB, so that the result of the multiplication is
# still in the core's cache for the addition. Measured on one core of a server CPU with 1 MiB of L2,
# GB/s: 19 at 8192 elements, 23 at 32768, 25 at 65536, 28 at 131072 (which fills that L2).
BLOCK = 65536
SCALAR = np.float64(3.0)
_INJECTED_TURN = 2  # turns 0 and 1 are the warm-up of copy and triad, 2 and 3 the first that count


@dataclass(slots=True)
class Arrays:
    """One worker's share of the memory: `count` elements an array, different on every core."""

    a: Array
    b: Array
    c: Array
    blocks: list[tuple[Array, Array, Array]] = field(default_factory=list)

    @classmethod
    def allocate(cls, count: int, cpu: int) -> Arrays:
        """Allocate and write all three arrays; a is spoiled."""
        a, b, c = (np.empty(count, dtype=np.float64) for _ in range(3))
        arrays = cls(a, b, c)
        for first in range(0, count, BLOCK):
            part = slice(first, first + BLOCK)
            arrays.blocks.append((arrays.a[part], arrays.b[part], arrays.c[part]))
        for number, array in enumerate((arrays.b, arrays.c)):
            for first in range(0, count, BLOCK):
                here = array[first : first + BLOCK]
                here[...] = (
                    spread(here.size, ((2 * cpu + number) << 36) + first) >> np.uint64(14)
                ) + np.uint64(1)
        arrays.a.fill(bits.SPOILED)
        return arrays

    def copy(self) -> None:
        """a = b, by one call of the C library's memory copy."""
        np.copyto(self.a, self.b)

    def triad(self) -> None:
        """a = b + 3 c, block by block.

        3 c goes into a's block, and b is added to it while it is in the cache.
        """
        for a, b, c in self.blocks:
            np.multiply(c, SCALAR, a)
            np.add(a, b, a)

    def copy_fault(self) -> bits.BufferDifference | None:
        """How a differs from b, bit for bit over the whole array; None where it does not."""
        return None if bits.same_bits(self.a, self.b) else bits.difference(self.b, self.a)

    def triad_fault(self) -> bits.BufferDifference | None:
        """How a differs from b + 3 c computed in integers; None where it does not."""
        faults: bits.BufferDifference | None = None
        for number, (a, b, c) in enumerate(self.blocks):
            expected = (b.astype(np.int64) + 3 * c.astype(np.int64)).astype(np.float64)
            if not bits.same_bits(expected, a):
                found = bits.difference(expected, a)
                found["first"] = tuple(
                    msgspec.structs.replace(one, index=(one.index[0] + number * BLOCK,))
                    for one in found["first"]
                )
                if faults is None:
                    faults = found
                else:
                    faults["elements"] += found["elements"]
                    faults["nan"] += found["nan"]
        return faults


def work(core: Core, connection: Connection, count: int, inject: str | None) -> None:
    """The worker's whole sequence, until the parent ends it.

    Fill the arrays and send ready. For every start run the passes, verify, spoil a, and send the
    times and the number of wrong elements.
    """
    arrays = Arrays.allocate(count, core.cpu)
    connection.send(("ready", None))
    for turn, (start, kernel, passes) in enumerate(TaskPipe(connection).tasks()):
        run, fault = (
            (arrays.copy, arrays.copy_fault)
            if kernel == "copy"
            else (arrays.triad, arrays.triad_fault)
        )
        sleep_until(start)
        began = time.monotonic()
        for _ in range(passes):
            run()
        ended = time.monotonic()
        if inject == "bitflip" and turn in (_INJECTED_TURN, _INJECTED_TURN + 1):
            bits.flip(arrays.a, count // 2, 0)
        if inject == "die" and turn == _INJECTED_TURN:
            os.kill(os.getpid(), signal.SIGKILL)
        found = fault()
        if found is not None:
            wrong = WrongArray(component=core.component, check=kernel, repeat=turn // 2, **found)
            connection.send(("miscompare", wrong))
        bits.spoil(arrays.a, turn)
        connection.send(("done", Done(began, ended, 0 if found is None else found["elements"])))
