"""The contract of the training steps of one GPU; `step_load` says what it measures and what not.

Readings are of `gpu0`, the load's own GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from acceptance.core.message import Listed, english
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.gemm.contract import MULTIPLYING
from acceptance.loads.miscompare import STEP_MISCOMPARES
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import parallel_values
from acceptance.loads.train.proof import (
    of_capability,
    other,
    require_counted,
    require_parameter,
    require_rates,
    require_share,
)
from acceptance.loads.train.shapes import (
    FORMAT_NAMES,
    MODELS,
    StepFormat,
    StepOption,
    judged_format,
    options,
)
from acceptance.loads.train.step_bounds import SMALL

# The rate of one model, and its share of the card's own matrix product.
StepModel = Literal["gpt2", "bert", "neo"]
STEP_MODELS: tuple[StepModel, ...] = get_args(StepModel)
STEP_READINGS = {"step_{}": "TFLOP/s", "step_{}_share": "ratio"}
STEP_OF_GPU = {"step_matmul": "TFLOP/s", STEP_MISCOMPARES: "count"}
STEP_TABLE = "train_steps"
STEP_COLUMNS = (
    "model",
    "option",
    "batch",
    "accumulation",
    "samples/s",
    "ktokens/s",
    "TFLOP/s",
    "MFU",
    "GiB",
    "ms",
    "ms p5",
    "ms p95",
)
# As the load has them, which does not know the sheet's peak.
STEP_LOAD_COLUMNS = tuple(name for name in STEP_COLUMNS if name != "MFU")
# What was compared, of which model and format: how many numbers, and the largest difference as a
# share of the allowed one (of losses that must be equal, finite or lower: how many are not).
STEP_CHECKS = "train_step_checks"
STEP_CHECK_COLUMNS = ("model", "format", "compared", "numbers", "share of allowed")
STEP_REFERENCED = ("loss", "gradients", "weights")  # of a small model, against float64
# Of each model in each format, with the least number of them: the loss of new weights is made three
# times and that of the last ones twice, and at least six steps are made.
STEP_LOSSES = {"first loss": 1, "repeated losses": 3, "finite losses": 7, "trained loss": 1}
STEP_SIZES = 8192, 4096  # of the matrix product; the smaller one on GPUs with little memory
NEO_GIB = 30  # GPUs with less memory than this are not to train the model neo
# Of the small model, all of which are compared before and after the load.
SMALL_PARAMETERS = parallel_values.split_parameters(SMALL) + parallel_values.whole_parameters(SMALL)
Rows = Sequence[tuple[float | str, ...]]


class Ask(contract.Ask, tag="train_step", frozen=True, kw_only=True):
    """Train models on one GPU, and verify the steps."""

    seconds: Annotated[Seconds, Meta(description="of load, all models and options together")]
    table: Annotated[bool, Meta(description="true: every model in every option")] = False
    neo: Annotated[
        bool, Meta(description=f"of the table: whether the GPU must have {NEO_GIB} GiB for GPT-Neo")
    ] = True
    device: Annotated[
        Literal["cuda", "cpu"], Meta(description="cpu trains tiny models, for tests")
    ] = "cuda"
    inject: Literal["wrong", "slow", "nan"] | None = None

    # The load looks at the GPU's memory itself.
    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"neo"})
    CLEARED: ClassVar[frozenset[str]] = MULTIPLYING

    @property
    def models(self) -> tuple[StepModel, ...]:
        """The judged models."""
        if not self.table:
            return ("gpt2",)
        return ("bert", "neo") if self.neo else ("bert",)

    def due(self, output: LoadOutput) -> Due:
        """Rate and share of each judged model; the largest one is absent where memory is small."""
        units = dict(STEP_OF_GPU)
        for model in self.models:
            units |= {name.format(model): unit for name, unit in STEP_READINGS.items()}
        lacked = STEP_READINGS if self.table and not self.neo else ()
        return Due(
            readings={(name, OWN): unit for name, unit in units.items()},
            absences=frozenset((name.format("neo"), OWN) for name in lacked),
            tables={STEP_TABLE: STEP_LOAD_COLUMNS, STEP_CHECKS: STEP_CHECK_COLUMNS},
        )

    def least_s(self, output: LoadOutput) -> float:
        """The time; the table ends when it has all rows."""
        return 0.0 if self.table else self.seconds

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for another format than this GPU's, and for what was not done.

        That is a rate of 0 or one that is not in the table, a share that is not that of the rates,
        a row of another model or option, a model of which something was not compared, and a wrong
        result that was not counted.
        """
        judged = of_capability(output, judged_format)
        require_parameter(output, "format", judged)
        assert judged is not None  # as required
        require_rates(output)
        rows = contract.table(output, STEP_TABLE).rows
        self._require_rows(rows, judged)
        self._require_rates(output, rows, judged)
        self._require_compared(output, rows, judged)
        require_counted(output, STEP_MISCOMPARES)

    def _require_rows(self, rows: Rows, judged: StepFormat) -> None:
        """Raise Unproved unless each row has figures, is of a due model and option, and unique."""
        for row in rows:
            if not all(isinstance(one, float) and one > 0 for one in row[2:]):
                raise Unproved(
                    english(
                        "load_row_untold", "has a row without figures in its table {table}: {row}"
                    ),
                    table=STEP_TABLE,
                    row=", ".join(map(str, row)),
                )
        # Where memory is small, any option may be trained with checkpointing.
        trained = tuple(options(judged)) if self.table else (StepOption(judged),)
        names = {one.name for one in trained}
        names |= {replace(one, checkpointed=True).name for one in trained}
        due = {(MODELS[model].name, name) for model in ("gpt2", *self.models) for name in names}
        printed = [(str(row[0]), str(row[1])) for row in rows]
        unexpected = [", ".join(one) for one in printed if one not in due or printed.count(one) > 1]
        if unexpected:
            raise Unproved(
                english(
                    "load_rows_stray",
                    "has rows in its table {table} that are of no model and option of this run, "
                    "or repeated: {rows}",
                ),
                table=STEP_TABLE,
                rows=Listed(tuple(unexpected)),
            )

    def _require_rates(self, output: LoadOutput, rows: Rows, judged: StepFormat) -> None:
        """Raise Unproved unless the judged readings are those of rows, and shares of the product.

        Each share is of the products beside its own model, and `step_matmul` of all of them.
        """
        place = STEP_LOAD_COLUMNS.index("TFLOP/s")
        rates = {(str(row[0]), str(row[1])): row[place] for row in rows}
        own = tuple(StepOption(judged, checkpointed=which).name for which in (False, True))
        values = {one.name: one.value for one in output.readings}
        products = []
        for model in self.models:
            rate, share = (name.format(model) for name in STEP_READINGS)
            keys = ((MODELS[model].name, name) for name in own)
            found = [rates[key] for key in keys if key in rates]
            if found[:1] != [round(values[rate], 3)]:
                raise Unproved("load_rate_untold", name=rate, component=str(OWN), table=STEP_TABLE)
            products.append(values[rate] / values[share])
        matmul = values["step_matmul"]
        if not min(products) <= matmul <= max(products):
            require_share(share, values[share], values[rate], matmul)

    def _require_compared(self, output: LoadOutput, rows: Rows, judged: StepFormat) -> None:
        """Raise Unproved unless all was compared, and every difference beyond it reported."""
        checks = contract.table(output, STEP_CHECKS).rows
        numbers = {row[:3]: row[3] for row in checks}
        size = output.parameters.get("size")
        if type(size) is not int or size not in STEP_SIZES:
            raise other("size", size, list(STEP_SIZES))
        own = FORMAT_NAMES[judged]
        trained = {(MODELS[model].name, own) for model in self.models} | {
            (str(row[0]), str(row[1]).partition(",")[0]) for row in rows
        }
        due = {
            ("small model", name, what): 2.0 * (1 if what == "loss" else SMALL_PARAMETERS)
            for name in (FORMAT_NAMES["f32"], own)
            for what in STEP_REFERENCED
        }
        due |= {
            (*one, what): float(least) for one in trained for what, least in STEP_LOSSES.items()
        }
        due["matmul", own, "repeated product"] = float(size**2)
        lacking = [
            key
            for key, least in due.items()
            if not isinstance(many := numbers.get(key), float) or many < least
        ]
        if output.miscompares:  # a loss that is not finite can neither fall nor be made again
            unknown = ("trained loss", "repeated losses")
            lacking = [key for key in lacking if key[2] not in unknown]
        elif any(not isinstance(row[4], float) or not row[4] <= 1 for row in checks):
            raise Unproved("load_uncounted")
        if lacking:
            names = tuple(f"{what} of {model} ({name})" for model, name, what in lacking)
            raise Unproved("load_uncompared", names=Listed(names))
