"""One worker of the matrix load, on its core, and the injected faults (`--inject`).

Imported by the worker only: the thread limits must be set before numpy is loaded.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from acceptance.core.parts import Component
from acceptance.loads import bits
from acceptance.loads.bits import Buffer, flip
from acceptance.loads.cpu.cores import Core
from acceptance.loads.cpu.gemm import LoopResult, WorkerReady
from acceptance.loads.exact_product import Matrix, faults, operand
from acceptance.loads.miscompare import Miscompare, WrongFirstProduct, WrongRepeat
from acceptance.loads.ranks import REPORTED, sleep_until

Multiply = Callable[[int, Buffer], None]
Step = Callable[[int], None]  # of the number of the round

FIRST = -1  # the turn of the product that is checked against integers; the timed ones count from 0


def inject_fault(kind: str, multiply: Multiply) -> Multiply:
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


@dataclass(slots=True)
class ProductCheck:
    """The bitwise comparison of every later product with the first.

    It spoils the buffer afterwards for the next product.
    """

    first: Matrix
    result: Matrix
    report: Callable[[WrongRepeat], None]
    component: Component
    began: float
    wrong: int = 0

    def __call__(self, turn: int) -> None:
        """Compare the product of this turn.

        Differences are counted, and the first few reported.
        """
        if not bits.same_bits(self.first, self.result):
            self.wrong += 1
            if self.wrong <= REPORTED:
                seconds = round(time.monotonic() - self.began, 6)
                self.report(
                    WrongRepeat(
                        component=self.component,
                        check="repeat",
                        product=turn,
                        seconds=seconds,
                        **bits.difference(self.first, self.result),
                    )
                )
        bits.spoil(self.result, turn)


def spoiled_result(size: int, dtype: str) -> Matrix:
    """A result buffer filled with a value that no right result has."""
    return np.full((size, size), bits.SPOILED, dtype=dtype)


def numpy_product(size: int, dtype: str) -> tuple[Matrix, Matrix, Multiply]:
    """The two operands, and a function that multiplies them by numpy's BLAS into a given buffer."""
    a, b = operand(size, dtype, 1), operand(size, dtype, 2)

    def multiply(_turn: int, out: Matrix) -> None:
        np.matmul(a, b, out=out)

    return a, b, multiply


def library() -> str:
    """The versions of numpy and BLAS, for the record."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index,call-overload,unused-ignore]
    return f"numpy {np.__version__}, BLAS {blas.get('name')} {blas.get('version')}"


def run_loop(until: float, multiply: Step, check: Step) -> tuple[int, float]:
    """Call multiply(0), check(0), multiply(1), check(1), ... until the monotonic time `until`.

    Each is called at least once. Returns the number of rounds, and the seconds from the first call
    to the end of the last.
    """
    count = 0
    began = time.monotonic()
    while True:
        multiply(count)
        check(count)
        count += 1
        now = time.monotonic()
        if now >= until:
            return count, now - began


def work(core: Core, connection: Connection, size: int, dtype: str, inject: str | None) -> None:
    """The worker's whole sequence.

    Make and check the first product, send ready, wait for the start, make and compare products
    until the deadline, send the counts.
    """

    def report(wrong: Miscompare) -> None:
        connection.send(("miscompare", wrong))

    a, b, multiply = numpy_product(size, dtype)
    if inject is not None:
        multiply = inject_fault(inject, multiply)
    first = spoiled_result(size, dtype)
    multiply(FIRST, first)
    found = faults(a, b, first)
    if found is not None:
        report(WrongFirstProduct(component=core.component, check="exact", **found))
    result = spoiled_result(size, dtype)
    connection.send(
        ("ready", WorkerReady(hashlib.sha256(first.data).hexdigest(), found is None, library()))
    )
    _, (start, until) = connection.recv()
    sleep_until(start)
    comparison = ProductCheck(first, result, report, core.component, start)
    products, seconds = run_loop(until, lambda turn: multiply(turn, result), comparison)
    # Where the first product is wrong, no later product counts as right: one equal to it is wrong
    # too, and one that differs is not known to be right.
    connection.send(
        ("lap", LoopResult(products, comparison.wrong if found is None else products, seconds))
    )
