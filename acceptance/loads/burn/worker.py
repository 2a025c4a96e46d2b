"""The burn's sequence of steps, independent of torch: its options, and the state of each format."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from acceptance.loads.burn.contract import (
    COURSE_COLUMNS,
    COURSES,
    DIGEST_COLUMNS,
    DIGESTS,
    LAP_COLUMNS,
    LAP_ROWS,
    LAPS,
    LEAST_LAPS,
    READINGS,
)
from acceptance.loads.burn.shape import (
    AHEAD,
    MIN_GROUPS,
    BackgroundCopies,
    BurnDevice,
    FormatTurn,
    Proof,
    ResultGroup,
    ResultRing,
    Shape,
    shapes,
)
from acceptance.loads.card import Card
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.miscompare import (
    ChangedInputs,
    LapMismatch,
    Miscompare,
    WrongProduct,
)
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import HEARTBEAT_S, Heartbeat, Lap, LapFormat, Output

TURN_S = 30.0  # approximate seconds of one format's turn


@dataclass(frozen=True, slots=True)
class BurnOptions:
    """The burn's options: number formats, total seconds, and whether to time plain products too.

    The GPU must have the formats. `slow` is the share of its rate that the GPU is to lose from the
    second lap on, where that is injected; `divisors` are the divisors of the matrix width by format
    (`shape.divisor_for`).
    """

    dtypes: tuple[Dtype, ...]
    seconds: float
    plain: bool = False
    slow: float = 0.0
    divisors: Mapping[str, int] = field(default_factory=dict)

    @property
    def laps(self) -> int:
        """Number of turns of each format."""
        return max(LEAST_LAPS, round(self.seconds / TURN_S / max(1, len(self.dtypes))))

    @property
    def turn_s(self) -> float:
        """Seconds of one turn."""
        return self.seconds / self.laps / max(1, len(self.dtypes))


@dataclass(slots=True)
class Format:
    """The state of one format.

    `first_last` are TFLOP/s of the first and of the last lap; `work` and `plain` sum operations and
    seconds.
    """

    dtype: Dtype
    divisor: int
    most: int  # results compared at once
    proof: Proof
    products: int = 0
    wrong: int = 0
    told: int = 0
    first_last: tuple[float, float] = (0.0, 0.0)
    work: tuple[float, float] = (0.0, 0.0)
    plain: tuple[float, float] = (0.0, 0.0)
    changed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The format's shapes at its divisor."""
        return shapes(self.dtype, self.divisor)


GROUP = 8  # products compared at once; fewer where they are slow
GROUP_S = 0.5
LISTED = 64  # wrong products of a format reported one by one; all are counted
_LINES = 2000  # of progress at most, however long the burn


@dataclass(frozen=True, slots=True)
class _Series:
    """A series of products.

    `from_s` and `to_s` are seconds since boot, from the first product to the end of the last.
    `spent_s` are seconds by the GPU's clock, and include the comparison of all that was still in
    memory, at another clock and another power.
    """

    from_s: float
    to_s: float
    spent_s: float
    operations: float

    @property
    def rate(self) -> float:
        """The rate in TFLOP/s."""
        return self.operations / self.spent_s / 1e12


class BurnWorker:
    """Runs a burn on a device and reports each finding at once."""

    def __init__(
        self,
        order: BurnOptions,
        device: BurnDevice,
        card: Card,
        output: Output,
        beside: BackgroundCopies,
        boot_s: Callable[[], float],
    ) -> None:
        self._order, self._device, self._card, self._output = order, device, card, output
        self._beside, self._boot_s = beside, boot_s
        self._done_s = 0.0
        every_s = max(HEARTBEAT_S, order.seconds / _LINES)
        self._heartbeat = Heartbeat(output, order.seconds, every_s)
        self._room = ""
        self._filled = 1.0
        self._laps: list[tuple[float | str, ...]] = []
        self._series_rows: list[tuple[float | str, ...]] = []

    def run(self, reserve_bytes: int) -> None:
        """Prove the first products of every format, then burn in turns. Raises LoadError."""
        formats = [self._prove(dtype) for dtype in self._order.dtypes]
        free = self._card.free_bytes()
        self._room = (
            f"{free / 2**30:.1f} GiB are free, of which {reserve_bytes / 2**30:.1f} GiB "
            "are kept "
            "for the library"
        )
        self._room += " and the GPU's peers; end what uses the GPU, if something does"
        if free <= reserve_bytes:
            raise LoadError(f"the GPU's memory is too small: {self._room}")
        self._device.fill(free - reserve_bytes)
        for lap in range(self._order.laps if formats else 0):
            for one in formats:
                self._turn(one, lap, free)
            proved = tuple(
                LapFormat(
                    one.dtype.short,
                    float(f"{one.first_last[1]:.4g}"),
                    max(0, one.products - one.wrong),
                    one.wrong,
                )
                for one in formats
            )
            self._output.lap(Lap(lap + 1, self._order.laps, round(self._done_s), proved))
        self._beside.finish()
        for one in formats:
            self._report(one)
        if formats:
            self._output.reading("burn_filled", "ratio", OWN, self._filled)
            digests = [(one.dtype.short, *row) for one in formats for row in one.proof.digests]
            self._output.table(DIGESTS, DIGEST_COLUMNS, digests)
            half = LAP_ROWS // 2
            rows = (
                self._laps
                if len(self._laps) <= LAP_ROWS
                else self._laps[:half] + self._laps[-half:]
            )
            self._output.table(LAPS, LAP_COLUMNS, rows)
            if self._order.plain:
                self._output.table(COURSES, COURSE_COLUMNS, self._series_rows[:LAP_ROWS])

    def _prove(self, dtype: Dtype) -> Format:
        divisor = self._order.divisors.get(dtype.short, 1)
        proof = self._device.prove(dtype, divisor)
        found = Format(
            dtype, divisor, max(1, min(GROUP, int(GROUP_S / max(proof.one_s, 1e-9)))), proof
        )
        for finding in proof.findings:
            self._wrong(found, finding)
        for note in proof.notes:
            self._output.note(f"{dtype.name}, {note}")
        return found

    def _turn(self, one: Format, lap: int, free: int) -> None:
        """One format's turn: its products, then the comparison of everything still in memory.

        The inputs are checked at the end.
        """
        try:
            turn = self._device.begin(one.dtype, one.divisor, one.most)
        except ValueError as error:
            raise LoadError(
                f"the GPU's memory is too small for {one.dtype.name}: {error}: {self._room}"
            ) from None
        self._filled = min(self._filled, turn.filled_bytes / free)
        for (shape, _, due), got in zip(one.proof.digests, turn.digests, strict=True):
            if due != got:
                self._wrong(
                    one,
                    LapMismatch(
                        component=OWN,
                        dtype=one.dtype.short,
                        check="again",
                        shape=shape,
                        lap=lap,
                        expected=due,
                        got=got,
                    ),
                )
        half_s = self._order.turn_s / (2 if self._order.plain else 1)
        before = one.products
        done = self._series(one, turn, lap, half_s, verify=True)
        one.work = (one.work[0] + done.operations, one.work[1] + done.spent_s)
        one.first_last = (one.first_last[0] if lap else done.rate, done.rate)
        when = round(done.from_s, 3), round(done.to_s, 3)
        self._laps.append(
            (lap, one.dtype.short, done.rate, one.products - before, done.spent_s, *when)
        )
        if self._order.plain:
            plain = self._series(one, turn, lap, half_s, verify=False)
            one.plain = (one.plain[0] + plain.operations, one.plain[1] + plain.spent_s)
        self._inputs(one, turn, lap)

    def _series(
        self, one: Format, turn: FormatTurn, lap: int, seconds: float, *, verify: bool
    ) -> _Series:
        """Make products for `seconds`, until the last of them was compared."""
        ring, given, began_s = ResultRing(turn.groups), deque[Any](), self._boot_s()
        operations = done_s = owed = 0.0
        count = 0
        begin = self._card.mark()
        while count < MIN_GROUPS or done_s < seconds:
            shape = count % len(one.shapes)
            if verify:
                self._compare(ring.ahead(), turn)
                self._settle(ring.pop(), one, turn, lap)
            made = ResultGroup(ring.next, one.products, shape, self._boot_s())
            turn.make(made.group, shape, made.number if verify else -GROUP)
            if self._order.slow and lap and verify:
                owed += turn.group * self._order.slow / (1 - self._order.slow)
                turn.repeat(made.group, shape, int(owed))
                owed -= int(owed)
            ring.push(made)
            given.append(self._card.mark())
            count += 1
            operations += turn.group * one.shapes[shape].operations
            if verify:
                one.products += turn.group
            self._beside.step()
            if len(given) > AHEAD:
                done_s = self._card.seconds(begin, given.popleft())
                now_s = self._done_s + min(done_s, seconds)
                self._heartbeat.at(min(now_s, self._order.seconds))
        for made in ring.drain() if verify else ():
            self._compare(made if made.ticket is None else None, turn)
        for made in ring.drain() if verify else ():
            self._settle(made, one, turn, lap)
        spent_s = self._card.seconds(begin, self._card.mark())
        done = _Series(began_s, began_s + self._card.seconds(begin, given[-1]), spent_s, operations)
        kind = "verified" if verify else "plain"
        self._series_rows += (
            [(one.dtype.short, kind, done.from_s, done.to_s, done.rate)]
            if self._order.plain
            else []
        )
        self._done_s += seconds
        return done

    @staticmethod
    def _compare(made: ResultGroup | None, turn: FormatTurn) -> None:
        if made is not None:
            made.ticket = turn.compare(made.group, made.shape)

    def _settle(self, made: ResultGroup | None, one: Format, turn: FormatTurn, lap: int) -> None:
        """Report the comparison of a group before the group is overwritten."""
        if made is None:
            return
        for place, (wrong, nan, infinite) in enumerate(turn.counts(made.ticket)):
            if not wrong:
                continue
            if not one.told:
                self._inputs(one, turn, lap)
            if one.told >= LISTED:
                one.wrong += 1
                continue
            shape = one.shapes[made.shape]
            self._wrong(
                one,
                WrongProduct(
                    component=OWN,
                    dtype=one.dtype.short,
                    check="ring",
                    shape=str(shape),
                    iteration=made.number + place,
                    lap=lap,
                    made_s=made.made_s,
                    found_s=self._boot_s(),
                    elements=wrong,
                    of=shape.elements,
                    nan=nan,
                    infinite=infinite,
                    **turn.describe(made.group, place, made.shape),
                ),
            )

    def _inputs(self, one: Format, turn: FormatTurn, lap: int) -> None:
        for changed in turn.changed_inputs():
            if (known := (changed["operand"], changed["got"])) not in one.changed:
                one.changed.add(known)
                self._wrong(
                    one,
                    ChangedInputs(
                        component=OWN,
                        dtype=one.dtype.short,
                        check="inputs",
                        lap=lap,
                        **changed,
                    ),
                )

    def _wrong(self, one: Format, miscompare: Miscompare) -> None:
        one.wrong += 1
        if one.told < LISTED:
            one.told += 1
            self._output.miscompare(miscompare)

    def _report(self, one: Format) -> None:
        rate, kept, wrong = (name.format(one.dtype.short) for name in READINGS)
        self._output.reading(rate, "TFLOP/s", OWN, one.work[0] / one.work[1] / 1e12)
        self._output.reading(kept, "ratio", OWN, one.first_last[1] / one.first_last[0])
        self._output.reading(wrong, "count", OWN, one.wrong)
        if self._order.plain:
            plain = one.plain[0] / one.plain[1] / 1e12
            self._output.reading(f"burn_{one.dtype.short}_plain", "TFLOP/s", OWN, plain)
            share = one.work[0] / one.work[1] / 1e12 / plain
            self._output.reading(f"burn_{one.dtype.short}_verified_ratio", "ratio", OWN, share)
