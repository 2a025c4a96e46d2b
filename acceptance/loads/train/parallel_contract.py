"""The contract of parallel training; `parallel_load` says what it measures and what not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from acceptance.core.message import Listed, english
from acceptance.core.parts import GPUS
from acceptance.loads import contract
from acceptance.loads.contract import Due, Seconds, Unproved
from acceptance.loads.miscompare import (
    PARALLEL_DISAGREEMENTS,
    PARALLEL_MISCOMPARES,
    CollectiveVariant,
    of_variant,
)
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import memory, parallel_values
from acceptance.loads.train.parallel_values import VERIFIED, ParallelWay
from acceptance.loads.train.proof import other, require_rates
from acceptance.loads.train.shapes import MODELS, ModelShape

WAYS: tuple[ParallelWay, ...] = get_args(ParallelWay)
Accumulation = Literal[1, 4]
ACCUMULATIONS: tuple[Accumulation, ...] = get_args(Accumulation)
Variant = Literal["default", "p2p_off"]  # as the machine comes, and without peer access
ARMS: tuple[Variant, ...] = get_args(Variant)
MOST_RANKS = VERIFIED.layer.heads
TOTAL = "parallel_ddp"  # Mtokens/s of all GPUs, as the machine comes, accumulation 1
COUNTS = (PARALLEL_MISCOMPARES, PARALLEL_DISAGREEMENTS)
TABLE = "train_parallel"
COLUMNS = (
    "arm",
    "way",
    "accumulation",
    "batch",
    "ktokens/s",
    "TFLOP/s",
    "efficiency",
    "GiB",
    "ms",
    "compute",
    "communication",
    "optimizer",
)
ALONE = "alone"  # the way of each card by itself, in the table
# What was compared with one card's training, and the largest difference as a share of its bound.
VALUES = "train_parallel_values"
VALUE_COLUMNS = (
    "arm",
    "way",
    "accumulation",
    "steps",
    "losses",
    "gradients",
    "weights",
    "digests",
    "loss / bound",
    "gradient / bound",
    "weight / bound",
)
ROUNDED = 2e-3  # of the figures in a row, which are rounded

Cells = tuple[float | str, ...]
RowKey = tuple[float | str, ...]  # variant, way, accumulation
Fault = Literal["wrong", "drop", "die", "hang"]


class Ask(contract.Ask, tag="train_parallel", frozen=True, kw_only=True):
    """Train one model on all GPUs, timed against each alone, and verify its values."""

    ranks: Annotated[int, Meta(ge=2, le=MOST_RANKS, description="one for each GPU")]
    seconds: Annotated[Seconds, Meta(description="of all timed trainings together")]
    backend: Annotated[
        Literal["nccl", "gloo"], Meta(description="gloo is for tests, between processors")
    ] = "nccl"
    ways: Annotated[
        tuple[ParallelWay, ...],
        Meta(min_length=1, description="how GPUs share the training, all by default"),
    ] = WAYS
    accumulate: Annotated[
        tuple[Accumulation, ...],
        Meta(min_length=1, description="batches of a step, both by default"),
    ] = ACCUMULATIONS
    arms: Annotated[
        tuple[Variant, ...],
        Meta(min_length=1, description="p2p_off is without peer access; both by default"),
    ] = ARMS
    grace: Annotated[
        Seconds, Meta(description="seconds a rank may be late, besides those of a training")
    ] = 60.0
    inject: Annotated[Fault | None, Meta(description="on the last rank")] = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"grace"})

    def __post_init__(self) -> None:
        for name in ("ways", "accumulate", "arms"):
            contract.require_each_once(name, getattr(self, name))

    def due(self, output: LoadOutput) -> Due:
        """The efficiency of each training, the counts, and both tables."""
        readings = dict.fromkeys(COUNTS, "count") | {
            efficiency(way, variant, accumulated=count > 1): "ratio"
            for way, count, variant in product(self.ways, self.accumulate, self.arms)
        }
        if "ddp" in self.ways and 1 in self.accumulate and "default" in self.arms:
            readings[TOTAL] = "Mtokens/s"
        return Due(
            readings={(name, GPUS): unit for name, unit in readings.items()},
            tables={TABLE: COLUMNS, VALUES: VALUE_COLUMNS},
        )

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for a rate of 0, figures that contradict each other, and values that were
        not compared.
        """
        require_rates(output)
        self._require_trainings(output)
        self._require_compared(output)

    def _require_trainings(self, output: LoadOutput) -> None:
        """Every training is in the table, and its figures fit each other and the readings."""
        model, batch, whole = map(output.parameters.get, ("model", "batch", "tensor_batch"))
        ranks, known = self.ranks, memory.CHOICES
        name = next((one for one, _ in known if one == model), None)
        if name is None or type(batch) is not int or (name, batch) not in known:
            raise other("model", (model, batch), list(known))
        if type(whole) is not int or not 1 <= whole <= ranks * batch:
            raise other("tensor_batch", whole, ranks * batch)
        rows = _rows(output, TABLE, list(product(self.arms, (ALONE, *self.ways), self.accumulate)))
        for (variant, way, count), row in rows.items():
            samples = {ALONE: batch, "tp": whole}.get(str(way), ranks * batch) * int(count)
            own = whole if way == "tp" else batch
            if not _fits(row, rows[variant, ALONE, count], MODELS[name], samples, own, ranks):
                raise Unproved(
                    english(
                        "load_training_unsound",
                        "told a training whose figures do not fit each other or its model: {row}",
                    ),
                    row=str(row),
                )
        found = {one.name: one.value for one in output.readings}
        for variant, way, count in product(self.arms, self.ways, self.accumulate):
            reading = efficiency(way, variant, accumulated=count > 1)
            if found[reading] != rows[variant, way, count][6]:
                raise _untold(reading)
        if TOTAL in found and not _near(found[TOTAL], float(rows["default", "ddp", 1][4]) / 1e3):
            raise _untold(TOTAL)

    def _require_compared(self, output: LoadOutput) -> None:
        """Everything was compared with one card's training, and what is wrong is counted."""
        due = list(product(self.arms, self.ways, self.accumulate))
        rows = _rows(output, VALUES, due)
        steps, ranks = parallel_values.STEPS, self.ranks
        short, beyond = [], False
        for variant, way, count in due:
            row = rows[variant, way, count]
            elements = parallel_values.elements(way, ranks)
            digests = ranks if way == "ddp" else 0
            if row[3:8] != (steps, steps * ranks, steps * elements, elements, digests):
                short.append(f"{way} {count} ({variant})")
            beyond |= not all(isinstance(one, float) and 0 <= one <= 1 for one in row[8:])
        if short:
            raise Unproved("load_uncompared", names=Listed(tuple(short)))
        if beyond and not any(one.value for one in output.readings if one.name in COUNTS):
            raise Unproved("load_uncounted")


def efficiency(way: ParallelWay, variant: CollectiveVariant, *, accumulated: bool) -> str:
    """The name of an efficiency; accumulated batches and the variant have their own."""
    return of_variant(f"parallel_{way}_efficiency{'_accumulated' if accumulated else ''}", variant)


EFFICIENCIES = tuple(
    efficiency(way, variant, accumulated=accumulated)
    for way, accumulated, variant in product(WAYS, (False, True), ARMS)
)


def _untold(name: str) -> Unproved:
    return Unproved("load_rate_untold", name=name, component=str(GPUS), table=TABLE)


def _rows(output: LoadOutput, name: str, due: Sequence[RowKey]) -> Mapping[RowKey, Cells]:
    """The rows of a table by variant, way, accumulation. Raises Unproved unless all are there."""
    given = contract.table(output, name).rows
    rows = {row[:3]: row for row in given}
    if len(rows) != len(given) or rows.keys() != set(due):
        names = Listed(tuple(f"{variant} {way} {count:g}" for variant, way, count in due))
        others = Listed(tuple(" ".join(map(str, row[:3])) for row in given))
        raise Unproved(
            english(
                "load_trainings",
                "was to have the rows {formats} in its table {table}, and has {others}",
            ),
            formats=names,
            table=name,
            others=others,
        )
    return rows


def _near(printed: float, due: float) -> bool:
    return math.isclose(printed, due, rel_tol=ROUNDED, abs_tol=5e-4)


def _fits(
    row: Cells, alone: Cells, shape: ModelShape, samples: int, batch: int, ranks: int
) -> bool:
    """Whether the figures of a training are numbers that fit each other.

    The rate is what the step's time gives, and its operations are those counted for the model; the
    efficiency is the rate against that of as many cards alone; the shares are those of one step.
    """
    figures = [one for one in (*row[3:], *alone[3:]) if isinstance(one, float) and one >= 0]
    if len(figures) != 2 * len(row[3:]):
        return False
    printed, rate, teraflop, share, _, step_ms, compute, communication, optimizer = figures[:9]
    tokens = samples * shape.sequence
    flop = rate * 1e3 * shape.sample_flop() / shape.sequence / 1e12
    one_card, of_alone = row[1] == ALONE, figures[10]
    # Of several cards alone the mean rate is told, and the slowest one's time.
    timed = tokens / step_ms if step_ms > 0 else 0.0
    of_time = timed * (1 - ROUNDED) <= rate if one_card else _near(rate, timed)
    due = 1.0 if one_card else rate / (ranks * of_alone) if of_alone > 0 else 0.0
    whole = compute + communication + optimizer
    return (
        printed == batch
        and rate > 0
        and of_time
        and _near(teraflop, flop)
        and _near(share, due)
        and (_near(whole, 1.0) or (communication == 0 and whole >= 1.0))
    )
