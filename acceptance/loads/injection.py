"""Faults put into the matrix load on purpose (`--inject`), to prove that they are found. Never set in a real run."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable

from acceptance.loads.bits import Buffer, flip

Multiply = Callable[[int, Buffer], None]

FIRST = -1  # the turn of the product that is checked against integers; the timed ones count from 0


def injected(kind: str, multiply: Multiply) -> Multiply:
    """The same multiplication with a fault: bitflip, stuck, nan, slow:PERCENT, die or hang."""
    name, _, percent = kind.partition(":")

    def faulty(turn: int, out: Buffer) -> None:
        began = time.monotonic()
        multiply(turn, out)
        if name == "stuck":
            out.reshape(-1)[out.size // 3] += 1
        elif turn == FIRST:
            return
        elif name == "slow":
            share = float(percent) / 100
            time.sleep((time.monotonic() - began) * share / (1 - share))
        elif turn > 0:
            return
        elif name == "bitflip":
            flip(out, out.size // 2, 0)
        elif name == "nan":
            out.reshape(-1)[out.size // 2] = math.nan
        elif name == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            time.sleep(7 * 86400)

    return faulty
