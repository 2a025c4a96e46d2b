"""The contract of the power load of all GPUs; `load` says what it measures and what not."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, field

from acceptance.core.message import english
from acceptance.core.parts import GPUS, Gpu
from acceptance.loads import contract, power_step
from acceptance.loads.contract import Due, Units, Unproved
from acceptance.loads.miscompare import UnusableLine
from acceptance.loads.power_step import (
    COLD_S,
    HIGHEST_HZ,
    LONGEST_S,
    LOWEST_HZ,
    MOST_GPUS,
    Kind,
)
from acceptance.loads.protocol import LoadOutput

MISCOMPARES = "power_miscompares"
MADE = "power_steps"  # the share of the steps that was made whole
STEPS = "power_steps"
COLUMNS = (
    "step",
    "gpus",
    "Hz",
    "seconds",
    "edges commanded",
    "edges made",
    "latest ms",
    "right",
    "wrong",
    "apart us",
)
# Before each step: its record reaches the disk, and the results of the step before it are verified.
REST_S = 1.0
PREPARED_S = 120.0  # the library is loaded, and the first product proved
LATE_S = 20.0  # how long a rank may need beyond its step
_RULES = (
    f"cold lasts more than {COLD_S:g} s, ramp 1 s or more, none more than {LONGEST_S:g} s; square "
    f"and anti_phase alone have HERTZ, {LOWEST_HZ:g} to {HIGHEST_HZ:g}, and last a whole wave; "
    "anti_phase is on two GPUs or more"
)


class Step(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A step on the first so many of the GPUs, or on all of them."""

    kind: Kind
    seconds: float
    hertz: float | None = None
    gpus: Annotated[int, Meta(ge=1)] | None = None

    def on(self, gpus: int) -> power_step.Step:
        """The step of a load of so many GPUs, by its own numbers. Raises UnusableLine."""
        own = tuple(map(Gpu, range(self.gpus or gpus)))
        return power_step.Step(self.kind, own, self.seconds, self.hertz)


class Ask(contract.Ask, tag="pulse", frozen=True, kw_only=True):
    """Full load that comes and goes on all GPUs, every result compared."""

    gpus: Annotated[int, Meta(ge=1, le=MOST_GPUS, description="one process for each")]
    steps: Annotated[
        tuple[Step, ...],
        Meta(
            min_length=1,
            description="KIND,SECONDS[,HERTZ[,GPUS]], a / between two: cold, ramp, square, "
            "anti_phase; on the first so many GPUs, or on all",
        ),
    ]
    watchdog: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="the file that the watch over the GPUs keeps fresh"),
    ] = field(default=None, name="leash")
    inject: Literal["element"] | None = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"leash"})

    def __post_init__(self) -> None:
        for one in self.steps:
            if (one.gpus or 0) > self.gpus:
                raise ValueError(f"a step on {one.gpus} GPUs needs gpus={one.gpus} or more")
            try:
                one.on(self.gpus)
            except UnusableLine:
                text = f"{one.kind},{one.seconds:g}"
                raise ValueError(f"{text} is no step of {self.gpus} GPUs: {_RULES}") from None

    def power_steps(self) -> tuple[power_step.Step, ...]:
        """The steps, by the load's own numbers of the GPUs."""
        return tuple(one.on(self.gpus) for one in self.steps)

    def parameters(self) -> dict[str, Any]:
        """The steps as a person types them, and whether there is a watchdog."""
        steps = [text_of(step) for step in self.power_steps()]
        return {**super().parameters(), "steps": steps, "watched": self.watchdog is not None}

    def due(self, output: LoadOutput) -> Due:
        """Wrong results of each GPU, the share of the steps, and the table of those begun."""
        counts: Units = {(MISCOMPARES, Gpu(number)): "count" for number in range(self.gpus)}
        return Due(readings={**counts, (MADE, GPUS): "ratio"}, tables={STEPS: COLUMNS})

    def least_s(self, output: LoadOutput) -> float:
        """The steps that were made whole, each after its rest; a wave may lack its last half."""
        whole = self.steps[: self._whole(output)]
        return sum(
            REST_S + one.seconds - (0.5 / one.hertz if one.hertz is not None else 0.0)
            for one in whole
        )

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved where the table has other steps than those that were made."""
        rows = [row[:4] for row in contract.table(output, STEPS).rows]
        due = [row_of(step) for step in self.power_steps()]
        share, whole = _made(output), self._whole(output)
        # the one in which the load was stopped is there too
        if share != whole / len(due) or rows != due[: whole + 1]:
            raise Unproved(
                english(
                    "load_steps_differ",
                    "says that {share} of the steps were made, and its table {table} has others",
                ),
                share=f"{share:g}",
                table=STEPS,
            )

    def _whole(self, output: LoadOutput) -> int:
        """How many steps were made whole."""
        return round(min(1.0, _made(output)) * len(self.steps))


def _made(output: LoadOutput) -> float:
    (share,) = (one.value for one in output.readings if one.name == MADE)
    return share


def text_of(step: power_step.Step) -> str:
    """A step as it is typed, on the first of the GPUs."""
    hertz = "" if step.hertz is None else f"{step.hertz:g}"
    return f"{step.kind},{step.seconds:g},{hertz},{len(step.gpus)}"


def row_of(step: power_step.Step) -> tuple[float | str, ...]:
    """The first cells of a step's row."""
    hertz = "-" if step.hertz is None else step.hertz
    return step.kind, len(step.gpus), hertz, step.seconds
