"""The steps of the GPU's matrix load, independent of torch, and the sustained load of a GPU.

The rate of square matrix products by size, as builders publish it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from acceptance.core.dtype import GEMM_READINGS
from acceptance.loads.card import Card, counted_work, take, times_for
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.contract import COLUMNS, ROOM, by_size
from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.miscompare import LapMismatch, Miscompare, WrongReference, WrongRepeat
from acceptance.loads.mismatch import ProductDifference, RemadeDigest
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Heartbeat, Output

_ROW_S = 0.05
_TOO_LONG_S = 3.0  # a size is left out when its warm-up and one timed product take longer

Prepare = Callable[[Dtype, int], Callable[[], None]]


def operations(size: int) -> int:
    """Multiplications and additions of one square product."""
    return 2 * size**3


def rows(
    card: Card, dtype: Dtype, wanted: Sequence[int], prepare: Prepare
) -> tuple[list[tuple[float, float]], list[str]]:
    """(n, TFLOP/s) for each size that fits, and one sentence for each that was left out.

    A product is warmed up once, then timed over a twentieth of a second, or once where it takes
    longer. `prepare` returns the function that makes the product.
    """
    found: list[tuple[float, float]] = []
    left_out = []
    for size in wanted:
        needed, free = dtype.bytes_needed(size), card.free_bytes()
        if needed > free:
            left_out.append(
                f"{size} needs {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free"
            )
            continue
        fastest = max((rate for _, rate in found), default=0.0)
        about_s = 2 * operations(size) / (fastest * 1e12) if found else 0.0
        if about_s > _TOO_LONG_S:
            left_out.append(f"{size} would take about {about_s:.0f} s")
            continue
        found.append((float(size), _rate(card, prepare(dtype, size), size)))
    return found, left_out


def _rate(card: Card, multiply: Callable[[], None], size: int) -> float:
    """TFLOP/s at one size."""
    take(card, multiply, 1)
    one_s = take(card, multiply, 1)
    count = times_for(_ROW_S, one_s)
    spent_s = one_s if count == 1 else take(card, multiply, count)
    return operations(size) * count / spent_s / 1e12


SMALLER = 4096  # the judged size on a GPU that is too small for the requested one
COOL_S = 0.5
SHORT_S = 0.1


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The findings on the first products, one entry a wrong product, and notes about them."""

    findings: tuple[WrongReference, ...]
    notes: tuple[str, ...]


class Trial(Protocol):
    """The products of one format; `verification.FormatTrial` makes them on a GPU."""

    def multiply(self) -> None:
        """Queue one product."""

    def verify(self) -> VerificationResult:
        """Make and check the first products."""

    def release(self) -> None:
        """Free the memory."""

    def remake(self) -> RemadeDigest | None:
        """Make the first product again; returns how it differs from before, or None."""

    def spoil(self) -> None:
        """Overwrite the result."""

    def compare(self, *, falsify: bool = False) -> ProductDifference | None:
        """How the result differs from the first product; None where it does not.

        `falsify` changes the result first, for an injected fault.
        """


@dataclass(frozen=True, slots=True)
class GemmOptions:
    """The load's options.

    The formats in order, the seconds of each, the size of the judged product, the sizes of the
    table, and the injected fault.
    """

    dtypes: tuple[Dtype, ...]
    seconds: float
    size: int
    table: tuple[int, ...]
    inject: str | None


@dataclass(slots=True)
class _State:
    """The state of one format."""

    dtype: Dtype
    trial: Trial
    one_s: float = 0.0
    right: bool = True
    wrong: int = 0
    spent_s: dict[str, float] = field(default_factory=dict)


def needs(dtypes: Sequence[Dtype], size: int) -> int:
    """Peak bytes of the verification, over all formats: two products and the first result."""
    return max(
        (2 * dtype.bytes_needed(size) + dtype.result_bytes * size**2 for dtype in dtypes), default=0
    )


def fitting_size(dtypes: Sequence[Dtype], size: int, whole_bytes: int) -> int:
    """The judged size on a GPU with this total memory: `size`, or 4096 where that does not fit.

    It must fit for each format alone. Memory in use by others does not count: a GPU in use is to be
    freed, not measured with less.
    """
    return size if needs(dtypes, size) <= ROOM * whole_bytes else min(size, SMALLER)


class GemmWorker:
    """Runs the load on a card and reports each finding at once."""

    def __init__(
        self,
        order: GemmOptions,
        card: Card,
        output: Output,
        trial_of: Callable[[Dtype, int], Trial],
        prepare: Prepare,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._order, self._card, self._output = order, card, output
        self._trial_of, self._prepare = trial_of, prepare
        self._clock, self._sleep = clock, sleep
        self._heartbeat = Heartbeat(output, order.seconds * len(order.dtypes))

    def run(self) -> None:
        """Measure every format from cool; then the tables; then every format sustained.

        One format has the memory at a time. Raises LoadError.
        """
        needed, free = needs(self._order.dtypes, self._order.size), self._card.free_bytes()
        if needed > free:
            raise LoadError(
                f"the matrices need {needed / 2**30:.1f} GiB of the GPU's memory and "
                f"{free / 2**30:.1f} GiB are free:"
                " end what uses the GPU"
            )
        states = []
        for dtype in self._order.dtypes:
            states.append(self._begin(dtype))
            states[-1].trial.release()
        for state in states:
            self._table(state)
        for turn, state in enumerate(states):
            self._sustain(state, turn * self._order.seconds)
            state.trial.release()

    def _begin(self, dtype: Dtype) -> _State:
        """Verify the first products, let the GPU rest, and measure the short rate.

        The short rate is over a tenth of a second.
        """
        began = self._clock()
        state = _State(dtype, self._trial_of(dtype, self._order.size))
        state.spent_s["made"] = self._clock() - began
        began = self._clock()
        checked = state.trial.verify()
        state.spent_s["verified"] = self._clock() - began
        for found in checked.findings:
            self._miscompare(state, found)
        state.right = not checked.findings
        for note in checked.notes:
            self._output.note(f"{dtype.name}, {note}")
        work = counted_work(state.trial.multiply, self._order.inject)
        state.one_s = take(self._card, work, 1)
        count = times_for(SHORT_S, state.one_s)
        state.trial.spoil()
        self._sleep(COOL_S)
        spent_s = take(self._card, work, count)
        self._compare(state, "short", falsify=False)
        rate = operations(self._order.size) * count / spent_s / 1e12
        self._output.reading(GEMM_READINGS[0].format(dtype.short), "TFLOP/s", OWN, rate)
        return state

    def _table(self, state: _State) -> None:
        dtype = state.dtype
        if not self._order.table:
            return
        began = self._clock()
        found, left_out = rows(
            self._card,
            dtype,
            self._order.table,
            lambda one, size: counted_work(self._prepare(one, size), self._order.inject),
        )
        state.spent_s["table"] = self._clock() - began
        if found:
            self._output.table(by_size(dtype.short), COLUMNS, found)
        for sentence in left_out:
            self._output.note(f"{dtype.name}, table: {sentence}")

    def _sustain(self, state: _State, before_s: float) -> None:
        """Run the sustained load, measure the rate of its last half, compare the last product."""
        dtype, order = state.dtype, self._order

        def tick(done_s: float) -> None:
            self._heartbeat.at(before_s + min(done_s, order.seconds))

        began = self._clock()
        found = state.trial.remake()
        if found is not None:
            wrong = LapMismatch(component=OWN, dtype=dtype.short, check="again", **found)
            self._miscompare(state, wrong)
            state.right = False
        elif not state.right:
            state.wrong += 1
        state.spent_s["made again"] = self._clock() - began
        began = self._clock()
        state.trial.spoil()
        marks = sustain(
            self._card,
            counted_work(state.trial.multiply, self._order.inject),
            order.seconds,
            state.one_s,
            tick,
        )
        state.spent_s["sustained"] = self._clock() - began
        began = self._clock()
        self._compare(state, "sustained", falsify=order.inject == "wrong")
        state.spent_s["compared"] = self._clock() - began
        rate = settled_rate(marks) * operations(order.size) / 1e12
        self._output.reading(GEMM_READINGS[1].format(dtype.short), "TFLOP/s", OWN, rate)
        self._output.reading(GEMM_READINGS[2].format(dtype.short), "count", OWN, state.wrong)
        text = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in state.spent_s.items())
        self._output.note(f"{dtype.name}: {text}; {marks[-1][1]} products under sustained load")

    def _compare(self, state: _State, when: str, *, falsify: bool) -> None:
        """Compare the last product with the first.

        Where the first was wrong, a product equal to it is wrong too, and one that differs is not
        known to be right.
        """
        found = state.trial.compare(falsify=falsify)
        if found is not None:
            dtype = state.dtype.short
            wrong = WrongRepeat(component=OWN, dtype=dtype, check="repeat", after=when, **found)
            self._miscompare(state, wrong)
        elif not state.right:
            state.wrong += 1

    def _miscompare(self, state: _State, miscompare: Miscompare) -> None:
        state.wrong += 1
        self._output.miscompare(miscompare)


def report_absent(
    output: Output,
    dtypes: Sequence[Dtype],
    capability: tuple[int, int],
    names: Sequence[str] = GEMM_READINGS,
) -> tuple[Dtype, ...]:
    """The formats that a GPU of this compute capability offers.

    The readings (`names`) of the others are reported as absent.
    """
    offered = []
    for dtype in dtypes:
        reason = dtype.missing(capability)
        if reason is None:
            offered.append(dtype)
            continue
        for name in names:
            output.absent(name.format(dtype.short), OWN, reason)
    return tuple(offered)


BATCH_S = 0.02
_AHEAD = 3  # batches queued before the first of them is waited for

Marks = Sequence[tuple[float, int]]  # seconds since the beginning, and pieces of work done by then


def sustain(
    card: Card,
    work: Callable[[], None],
    seconds: float,
    one_s: float,
    tick: Callable[[float], None],
) -> list[tuple[float, int]]:
    """Queue work of about `one_s` a piece, in batches, for `seconds`; returns progress marks.

    Times are by the card's clock. `tick` receives the seconds done, once a batch. The last batches
    are waited for.
    """
    batch = times_for(BATCH_S, one_s)
    begin = card.mark()
    given: deque[Any] = deque()
    marks = [(0.0, 0)]
    while marks[-1][0] < seconds or given:
        # estimated end of the last queued batch
        over_s = (
            marks[-1][0] + len(given) * batch * one_s
        )  # when the last batch that was given ends, about
        if (over_s < seconds and len(given) < _AHEAD) or not given:
            for _ in range(batch):
                work()
            given.append(card.mark())
        else:
            marks.append((card.seconds(begin, given.popleft()), marks[-1][1] + batch))
            tick(marks[-1][0])
    return marks


def last_half(marks: Marks) -> tuple[int, float]:
    """The pieces of work of the last half of the load, and their seconds.

    Counted from the last mark in the first half to the end.
    """
    end_s, done = marks[-1]
    begin_s, before = [mark for mark in marks if mark[0] <= end_s / 2][-1]
    return done - before, end_s - begin_s


def settled_rate(marks: Marks) -> float:
    """Pieces of work a second over the last half of the load."""
    pieces, seconds = last_half(marks)
    return pieces / seconds
