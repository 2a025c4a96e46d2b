"""The training steps of one GPU, independent of torch: what is timed, and what is compared."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from acceptance.core.message import Message, english
from acceptance.loads.card import Card, take
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.worker import last_half, sustain
from acceptance.loads.miscompare import STEP_MISCOMPARES, StepCheck, WrongStep, WrongValue
from acceptance.loads.program import LoadError, OutOfMemory
from acceptance.loads.protocol import Output
from acceptance.loads.train.memory import MOST_BATCH, step_batch, step_bytes
from acceptance.loads.train.shapes import (
    FORMAT_NAMES,
    ModelShape,
    StepFormat,
    StepOption,
    first_loss,
    options,
)
from acceptance.loads.train.step_contract import (
    NEO_GIB,
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_READINGS,
    STEP_TABLE,
    StepModel,
)

GIB = 1 << 30
ROUNDS = 3  # turns of steps, each after one of matrix products
HEAT_SHARE = 1 / 6  # of the time, matrix products before the first turn
MATMUL_SHARE = 2 / 7  # of a round; steps have the rest
SETTLE_S = 0.3  # of a turn, which clocks and power need to follow the other work
LEAST = 3  # steps a turn that count, however long they take
WARM = 2  # steps that do not count
AHEAD = 2  # steps queued before the first of them is waited for
JUDGED_S = 6.0  # of each judged model in the table
ROW_S = 3.0  # of steps in a row of the table, where there is time
# A guess of the rate of the wider formats, as a share of the narrow one's, until one is measured.
GUESSED = {"tf32": 0.3, "f32": 0.08}
LARGEST = 1e9  # stands for a share that is not finite


@dataclass(frozen=True, slots=True)
class Checked:
    """A comparison of a tensor: how many of its numbers are wrong, and the first of those.

    `what` is one of `names.STEP_REFERENCED`. `share` is the largest difference as a share of the
    allowed one.
    """

    what: str
    name: str
    numbers: int
    wrong: int
    share: float
    first: tuple[WrongValue, ...] = ()


class Trial(Protocol):
    """The training of one model; `step_trial.TorchTrial` is it on a device."""

    def step(self) -> Any:
        """Queue one step; returns the loss before it, on the device."""

    def loss(self, *, checkpointed: bool) -> Any:
        """Queue a forward pass; returns its loss, on the device."""

    def values(self, losses: list[Any]) -> list[float]:
        """Losses of the device as numbers."""

    def spoil(self) -> None:
        """Make one weight NaN, for an injected fault."""

    def peak_bytes(self) -> int:
        """The most memory that it took."""

    def release(self) -> None:
        """Free the memory."""


class SmallCheck(Protocol):
    """One step of a small model against its reference."""

    def check(self, dtype: StepFormat, *, falsify: bool = False) -> list[Checked]:
        """Make the step in this format, and compare it."""


class Matmul(Protocol):
    """The matrix product that the rates of steps are shares of."""

    flop: int
    bytes: int

    def multiply(self) -> None:
        """Queue one product."""

    def compare(self) -> Checked:
        """Compare the last product with the first, bit for bit."""


@dataclass(frozen=True, slots=True)
class StepOrder:
    """The load's options.

    `judged` is the format of the judged steps, `whole_bytes` the GPU's memory. With `table` every
    model is trained in every option, and the judged models are the two others.
    """

    seconds: float
    table: bool
    judged: StepFormat
    models: Mapping[StepModel, ModelShape]
    whole_bytes: int
    inject: str | None = None

    @property
    def neo_fits(self) -> bool:
        """Whether the largest model is to be trained here."""
        return self.whole_bytes >= NEO_GIB * GIB


@dataclass(slots=True)
class Product:
    """Matrix products that counted, and the rate of each of their turns."""

    pieces: int = 0
    spent_s: float = 0.0
    turns: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    """One model in one option, under way."""

    key: StepModel
    shape: ModelShape
    option: StepOption
    batch: int
    trial: Trial
    losses: list[Any]
    one_s: float = 0.0
    durations: list[float] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Samples a step."""
        return self.batch * self.option.accumulation

    @property
    def rate(self) -> float:
        """TFLOP/s over all steps that count."""
        flop = self.samples * self.shape.sample_flop(checkpointed=self.option.checkpointed)
        return flop * len(self.durations) / sum(self.durations) / 1e12

    def row(self) -> tuple[str | float, ...]:
        """Its row of the table; the share of the sheet's peak is not known here."""
        samples = self.samples * len(self.durations) / sum(self.durations)
        milliseconds = [1e3 * one for one in sorted(self.durations)]
        figures: dict[str, str | float] = {
            "model": self.shape.name,
            "option": self.option.name,
            "batch": float(self.batch),
            "accumulation": float(self.option.accumulation),
            "samples/s": round(samples, 3),
            "ktokens/s": round(samples * self.shape.sequence / 1e3, 3),
            "TFLOP/s": round(self.rate, 3),
            "GiB": round(self.trial.peak_bytes() / GIB, 2),
            "ms": round(statistics.median(milliseconds), 3),
            "ms p5": round(_rank(milliseconds, 0.05), 3),
            "ms p95": round(_rank(milliseconds, 0.95), 3),
        }
        return tuple(figures[name] for name in STEP_LOAD_COLUMNS)


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def timed_steps(
    card: Card, step: Callable[[], None], seconds: float, least: int, one_s: float
) -> list[float]:
    """Seconds of each of the steps that fill this time by the card's clock, at least so many.

    A few are queued ahead, so that the card waits for the host as little as in a real training.
    """
    marks, found = deque([card.mark()]), list[float]()

    def wait() -> None:
        found.append(card.seconds(marks.popleft(), marks[0]))

    given = 0
    while given < least or sum(found) + (len(marks) - 1) * (found or [one_s])[-1] < seconds:
        step()
        given += 1
        marks.append(card.mark())
        if len(marks) > AHEAD + 1:
            wait()
    while len(marks) > 1:
        wait()
    return found


def settled(durations: Sequence[float], seconds: float) -> list[float]:
    """The steps of a turn without the first, and without those of its first `seconds`."""
    ends_s = list(itertools.accumulate(durations))
    late = sum(end_s <= seconds for end_s in ends_s) + 1  # the one that begins before counts not
    return list(durations[min(late, max(1, len(durations) - LEAST)) :])


class StepWorker:
    """Trains on a card and reports each finding at once."""

    def __init__(
        self,
        order: StepOrder,
        card: Card,
        output: Output,
        small: SmallCheck,
        matmul: Matmul,
        trial_of: Callable[[ModelShape, StepOption, int], Trial],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order, self._card, self._output = order, card, output
        self._small, self._matmul, self._trial_of = small, matmul, trial_of
        self._clock = clock
        self._wrong = 0
        self._rows: list[tuple[str | float, ...]] = []
        self._done: set[tuple[StepModel, str]] = set()
        self._compared: dict[tuple[str, str, str], tuple[int, float]] = {}
        self._product = Product()
        self._rates: dict[StepFormat, float] = {}
        self._poison = order.inject == "nan"

    def run(self) -> None:
        """Compare a small step; train; compare the small step again, on the hot card.

        Raises LoadError where the memory does not suffice for a judged model.
        """
        order = self._order
        self._verify(falsify=False)
        if order.table:
            self._table(self._clock() + order.seconds)
        else:
            self._judge("gpt2", order.seconds)
        self._verify(falsify=order.inject == "wrong")
        wrong = self._matmul.compare()
        self._report("step_repeat", "matmul", order.judged, wrong)
        self._output.table(STEP_TABLE, STEP_LOAD_COLUMNS, self._rows)
        rows = [(*key, float(many), share) for key, (many, share) in self._compared.items()]
        self._output.table(STEP_CHECKS, STEP_CHECK_COLUMNS, rows)
        rate = self._product.pieces * self._matmul.flop / self._product.spent_s / 1e12
        self._output.reading("step_matmul", "TFLOP/s", OWN, rate)
        turns = ", ".join(f"{one:.1f}" for one in self._product.turns)
        self._output.note(f"matrix products before and after each turn of steps: {turns} TFLOP/s")
        self._output.reading(STEP_MISCOMPARES, "count", OWN, float(self._wrong))

    def _verify(self, *, falsify: bool) -> None:
        """One step of the small model in float32 and in the judged format, against float64."""
        formats: tuple[StepFormat, ...] = ("f32", self._order.judged)
        for dtype in formats:
            own = falsify and dtype == self._order.judged
            for one in self._small.check(dtype, falsify=own):
                self._report("step_reference", "small model", dtype, one)

    def _report(self, check: StepCheck, model: str, dtype: StepFormat, one: Checked) -> None:
        """Count a comparison, and its wrong result where there is one."""
        name, key = FORMAT_NAMES[dtype], (model, FORMAT_NAMES[dtype], one.what)
        many, share = self._compared.get(key, (0, 0.0))
        worst = one.share if math.isfinite(one.share) else LARGEST
        self._compared[key] = many + one.numbers, round(max(share, worst), 6)
        if one.wrong:
            self._wrong += 1
            self._output.miscompare(
                WrongStep(
                    component=OWN,
                    check=check,
                    model=model,
                    option=name,
                    tensor=one.name,
                    elements=one.wrong,
                    of=one.numbers,
                    first=one.first,
                )
            )

    def _table(self, end_s: float) -> None:
        """The judged models beside matrix products, then every model in every option."""
        order = self._order
        due: list[StepModel] = ["bert"]
        if order.neo_fits:
            due.append("neo")
        else:
            values = {"gib": f"{order.whole_bytes / GIB:.0f}", "least": f"{NEO_GIB}"}
            for name in STEP_READINGS:
                self._output.absent(
                    name.format("neo"),
                    OWN,
                    Message(
                        english(
                            "gpu_memory_small",
                            "the GPU has {gib} GiB of memory, and training this model needs "
                            "{least}",
                        ),
                        values,
                    ),
                )
        for key in due:
            self._judge(key, min(JUDGED_S, order.seconds / 12))
        keys: list[StepModel] = ["gpt2", *due]
        pending = [(key, option) for key in keys for option in options(order.judged)]
        pending = [one for one in pending if (one[0], one[1].name) not in self._done]
        left_out = []
        for number, (key, option) in enumerate(pending):
            slot_s = (end_s - self._clock()) / (len(pending) - number)
            if not self._row(key, option, slot_s):
                left_out.append(f"{order.models[key].name} ({option.name})")
        if left_out:
            self._output.note(f"there was no time or memory for {'; '.join(left_out)}")

    def _row(self, key: StepModel, option: StepOption, slot_s: float) -> bool:
        """Train for one row of the table; whether there was time and memory for it."""
        shape = self._order.models[key]
        narrow = self._rates[self._order.judged]
        rate = self._rates.get(option.format, GUESSED.get(option.format, 1.0) * narrow)
        flop = shape.sample_flop(checkpointed=option.checkpointed) * option.accumulation
        most, count = MOST_BATCH, WARM + LEAST + 1
        while most and count * most * flop / (rate * 1e12) > 2 * slot_s:
            most //= 2
        if not most:
            return False
        state = self._fit(key, option, most, due=False)
        if state is None:
            return False
        if (key, state.option.name) not in self._done:
            self._turn(state, min(ROW_S, slot_s / 2), settle_s=0.0)
            self._conclude(state)
        state.trial.release()
        return True

    def _judge(self, key: StepModel, seconds: float) -> None:
        """Train one model in turns with matrix products, so that both are equally hot."""
        state = self._fit(key, StepOption(self._order.judged), MOST_BATCH, due=True)
        assert state is not None
        own = Product()
        product_s = take(self._card, self._matmul.multiply, 1)
        self._multiply(Product(), HEAT_SHARE * seconds, product_s)
        round_s = (1 - HEAT_SHARE) * seconds / ROUNDS
        for number in range(ROUNDS):
            if self._poison and number == ROUNDS - 1:
                state.trial.spoil()
                self._poison = False
            self._turn(state, (1 - MATMUL_SHARE) * round_s, settle_s=SETTLE_S)
            self._multiply(own, MATMUL_SHARE * round_s, product_s)
            self._output.progress(
                round(HEAT_SHARE * seconds + (number + 1) * round_s, 1), self._order.seconds
            )
        self._conclude(state)
        rate, product = state.rate, own.pieces * self._matmul.flop / own.spent_s / 1e12
        for name, value in zip(STEP_READINGS, (rate, rate / product), strict=True):
            self._output.reading(name.format(key), STEP_READINGS[name], OWN, value)
        self._product.pieces += own.pieces
        self._product.spent_s += own.spent_s
        self._product.turns += own.turns
        state.trial.release()

    def _multiply(self, into: Product, seconds: float, one_s: float) -> None:
        marks = sustain(self._card, self._matmul.multiply, seconds, one_s, lambda _done: None)
        pieces, spent_s = last_half(marks)
        into.pieces += pieces
        into.spent_s += spent_s
        into.turns.append(pieces * self._matmul.flop / spent_s / 1e12)

    def _turn(self, state: _State, seconds: float, *, settle_s: float) -> None:
        """A turn of steps."""

        def step() -> None:
            for _ in range(2 if self._order.inject == "slow" else 1):
                state.losses.append(state.trial.step())

        found = timed_steps(self._card, step, seconds, LEAST + 1, state.one_s)
        state.durations += settled(found, settle_s)

    def _fit(self, key: StepModel, option: StepOption, most: int, *, due: bool) -> _State | None:
        """New weights, their loss, and the first steps, with the largest batch that memory allows.

        None where no batch fits and the model is not due. Raises LoadError where it is.
        """
        shape = self._order.models[key]
        found = step_batch(shape, option, self._order.whole_bytes, self._matmul.bytes)
        if found is not None and found[0] != option:
            self._output.note(
                f"{shape.name}: not even one sample fits into the GPU's memory without "
                "checkpointing, so this is with it"
            )
        while found is not None:
            tried, batch = found[0], min(found[1], most)
            state = self._begin(key, shape, tried, batch)
            if state is not None:
                return state
            if batch > 1:
                most = batch // 2
                more = f"{most} is tried"
            elif not tried.checkpointed:
                found = replace(tried, checkpointed=True), 1
                more = "checkpointing is tried"
            else:
                found, more = None, "nothing less is possible"
            self._output.note(
                f"{shape.name}, {tried.name}: the GPU's memory did not suffice for a batch of "
                f"{batch}; {more}"
            )
        if not due:
            return None
        needed = step_bytes(shape, replace(option, checkpointed=True), 1) + self._matmul.bytes
        raise LoadError(
            f"{shape.name} needs about {needed / GIB:.1f} GiB of the GPU's memory for one sample "
            f"with checkpointing, and the GPU has {self._order.whole_bytes / GIB:.1f} GiB: end "
            "what else uses it; on a smaller card leave this check out with --only"
        )

    def _begin(
        self, key: StepModel, shape: ModelShape, option: StepOption, batch: int
    ) -> _State | None:
        """The loss of new weights, made again, and the first steps; None for too little memory."""
        trial: Trial | None = None
        try:
            trial = self._trial_of(shape, option, batch)
            modes = [option.checkpointed] * 2 + ([] if option.checkpointed else [True])
            losses = [trial.loss(checkpointed=mode) for mode in modes]
            losses += [trial.step() for _ in range(WARM - 1)]
            state = _State(key, shape, option, batch, trial, losses)
            state.one_s = take(self._card, lambda: losses.append(trial.step()), 1)
        except OutOfMemory:
            if trial is not None:
                trial.release()
            return None
        first, *others = trial.values(losses[: len(modes) + 1])
        due, margin = first_loss(shape, batch)
        wrong = not abs(first - due) <= margin  # also where it is NaN
        value = WrongValue(index=(0,), expected=f"{due:.4f} +- {margin:.4f}", got=repr(first))
        one = Checked("first loss", "loss", 1, int(wrong), abs(first - due) / margin, (value,))
        self._report("step_start", shape.name, option.format, one)
        self._repeated(state, [first, *others])
        state.losses = losses[len(modes) :]
        return state

    def _repeated(self, state: _State, losses: Sequence[float]) -> None:
        """Hold losses of the same weights and tokens to be the same, bit for bit."""
        first, *others = losses
        odd = [number for number, one in enumerate(others, start=1) if one != first]
        listed = tuple(
            WrongValue(index=(number,), expected=repr(first), got=repr(losses[number]))
            for number in odd[:4]
        )
        one = Checked("repeated losses", "loss", len(others), len(odd), len(odd), listed)
        self._report("step_repeat", state.shape.name, state.option.format, one)

    def _conclude(self, state: _State) -> None:
        """Compare the losses of all steps, and the loss of the last weights with itself."""
        option, trial = state.option, state.trial
        again = trial.values([trial.loss(checkpointed=option.checkpointed) for _ in range(2)])
        losses = [*trial.values(state.losses), again[0]]
        odd = [number for number, one in enumerate(losses) if not math.isfinite(one)]
        listed = tuple(WrongValue(index=(number,), got=repr(losses[number])) for number in odd[:4])
        one = Checked("finite losses", "loss", len(losses), len(odd), len(odd), listed)
        self._report("step_finite", state.shape.name, option.format, one)
        if not odd:
            self._repeated(state, again)
            value = WrongValue(index=(0,), expected=f"< {losses[0]!r}", got=repr(losses[-1]))
            wrong = not losses[-1] < losses[0]
            share = losses[-1] / losses[0]
            fall = Checked("trained loss", "loss", 1, int(wrong), share, (value,))
            self._report("step_falls", state.shape.name, option.format, fall)
        self._rates[option.format] = state.rate
        self._done.add((state.key, option.name))
        self._rows.append(state.row())
