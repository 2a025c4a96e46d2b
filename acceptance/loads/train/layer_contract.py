"""The contract of the load of transformer layers; `layer_load` says what it measures and what not.

Readings are of `gpu0`, the load's own GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.dtype import TrainedDtype, native_dtypes, trained_dtype
from acceptance.core.message import english
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.gemm.contract import MULTIPLYING
from acceptance.loads.miscompare import LAYER_MISCOMPARES
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.proof import (
    of_capability,
    other,
    require_counted,
    require_parameter,
    require_rates,
    require_share,
)
from acceptance.loads.train.shapes import LAYER_NAMES, LAYERS, LayerName

# Forward with backward, the forward pass alone, and the first's share of the card's own matrix
# product in the same program.
LAYER_READINGS = {
    **{f"layer_{name}": "TFLOP/s" for name in LAYER_NAMES},
    **{f"layer_{name}_forward": "TFLOP/s" for name in LAYER_NAMES},
    **{f"layer_{name}_share": "ratio" for name in LAYER_NAMES},
    "layer_matmul": "TFLOP/s",
    LAYER_MISCOMPARES: "count",
}
# Parts of a BERT-large layer at batch 64, sequence 128, forward.
LAYER_PARTS = {
    "layer_dense": "TFLOP/s",
    "layer_dense_gelu": "TFLOP/s",
    "layer_feed_forward": "TFLOP/s",
    "layer_attention": "TFLOP/s",
    LAYER_MISCOMPARES: "count",
}
# Parameters of each layer. With inputs and output they are the tensors that are compared.
LAYER_PARAMETERS: dict[LayerName, int] = {
    "bert": 16,
    "gpt2": 16,
    "t5_encoder": 9,
    "t5_decoder": 14,
    "llama": 9,
}
LAYER_TABLE = "train_layers"
LAYER_COLUMNS = (
    "layer",
    "format",
    "sequence",
    "batch",
    "forward TFLOP/s",
    "with backward TFLOP/s",
    "share",
)
# The shapes of the table, as published.
_DOUBLED = (2, 4, 8, 16, 32, 64, 128)
# Layer, sequence, batches.
GRID: tuple[tuple[LayerName, int, tuple[int, ...]], ...] = (
    ("bert", 128, _DOUBLED),
    ("bert", 512, _DOUBLED),
    ("gpt2", 512, _DOUBLED[:6]),
    ("gpt2", 1024, _DOUBLED[:6]),
    ("t5_encoder", 512, _DOUBLED),
    ("t5_decoder", 512, _DOUBLED),
    ("llama", 2048, (1, 2, 4, 8)),
)
PART_BATCH, PART_SEQUENCE = 64, 128
# What stands in the place of rates that there are none of.
NO_TIME, NO_MEMORY = "no time", "no memory"
# The slices under load are measured by the GPU, and each ends when its last batch does.
LEAST_SHARE = 0.95


class Ask(contract.Ask, tag="train_layers", frozen=True, kw_only=True):
    """Run transformer layers on one GPU, forward and backward, and verify the results."""

    dtype: Annotated[TrainedDtype, Meta(description="the judged format")]
    seconds: Annotated[Seconds, Meta(description="of load, all layers together")]
    table: Annotated[bool, Meta(description="true: the published shapes, all formats")] = False
    device: Annotated[Literal["cuda", "cpu"], Meta(description="cpu is for tests")] = "cuda"
    inject: Literal["wrong", "slow"] | None = None

    CLEARED: ClassVar[frozenset[str]] = MULTIPLYING

    def due(self, output: LoadOutput) -> Due:
        """The judged layers; with the table the parts of one. In both forms a table of layers."""
        units = LAYER_PARTS if self.table else LAYER_READINGS
        return Due(
            readings={(name, OWN): unit for name, unit in units.items()},
            tables={LAYER_TABLE: LAYER_COLUMNS},
        )

    def least_s(self, output: LoadOutput) -> float:
        """The time; the table may be complete before."""
        return 0.0 if self.table else LEAST_SHARE * self.seconds

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for another format than this GPU's, and for what was not done.

        That is a rate of 0, a table that has not exactly the due layers, a share that is not that
        of the rates, a tensor that was not compared, and a wrong result that was not counted.
        """
        require_parameter(output, "dtype", of_capability(output, trained_dtype))
        require_rates(output)
        rows = contract.table(output, LAYER_TABLE).rows
        if self.table:
            native = native_dtypes(str(output.parameters["capability"]))  # of which dtype is
            formats = [one for one in UNITS if one in native]
            require_parameter(output, "formats", formats)
            cells = [(name, float(s), float(b)) for name, s, batches in GRID for b in batches]
            due = [(name, dtype, s, b) for dtype, (name, s, b) in product(formats, cells)]
            whole = [row[:4] for row in rows] == due and _measured(rows, self.dtype)
            tensors = layer_tensors(len(formats), judged=False)
        else:
            whole = list(rows) == self._judged(output)
            tensors = layer_tensors(1, judged=True)
        if not whole:
            raise Unproved(
                english(
                    "load_layer_rows",
                    "the table {table} does not have exactly the due layers with their rates",
                ),
                table=LAYER_TABLE,
            )
        require_counted(output, LAYER_MISCOMPARES)
        if layers_compared(tensors, len(output.miscompares)) not in output.notes:
            raise Unproved(
                english(
                    "load_tensors_uncompared", "did not show that all {count} tensors were compared"
                ),
                count=tensors,
            )

    def _judged(self, output: LoadOutput) -> list[tuple[float | str, ...]]:
        """The due rows of the judged layers, whose batch halves on smaller GPUs."""
        batches = output.parameters.get("batches")
        values = {one.name: one.value for one in output.readings}
        rows: list[tuple[float | str, ...]] = []
        for name, shape in LAYERS.items():
            batch = batches.get(name) if isinstance(batches, dict) else None
            halves = {shape.batch >> times for times in range(shape.batch.bit_length())}
            if type(batch) is not int or batch not in halves:
                raise other("batches", batches, shape.batch)
            reading = f"layer_{name}"
            rate, share = values[reading], values[f"{reading}_share"]
            require_share(f"{reading}_share", share, rate, values["layer_matmul"])
            key = name, self.dtype, float(shape.sequence), float(batch)
            rows.append((*key, values[f"{reading}_forward"], rate, share))
        return rows


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a BERT-large layer; `flop` are its operations at batch 64, sequence 128."""

    reading: str
    flop: int


def parts() -> Iterator[Part]:
    """The parts; an activation counts nothing."""
    shape = LAYERS["bert"]
    whole = shape.feed_forward_flop(PART_BATCH, PART_SEQUENCE)
    yield Part("layer_dense", whole // 2)
    yield Part("layer_dense_gelu", whole // 2)
    yield Part("layer_feed_forward", whole)
    yield Part("layer_attention", shape.attention_flop(PART_BATCH, PART_SEQUENCE))


def _measured(rows: Sequence[Sequence[float | str]], dtype: str) -> bool:
    """Whether each row has its rates or a reason, and the judged format has rates."""
    reasons = ((NO_TIME,) * 3, (NO_MEMORY,) * 3)
    measured = [row for row in rows if tuple(row[4:]) not in reasons]
    return any(row[1] == dtype for row in measured) and all(
        isinstance(rate, float) and rate > 0 for row in measured for rate in row[4:]
    )


def layer_tensors(formats: int, *, judged: bool) -> int:
    """How many tensors the load compares.

    In each of so many formats these are the output and every gradient of each small layer; with
    `judged`, also those of each judged layer under strict determinism, and its timed output.
    """
    found = 0
    for name, parameters in LAYER_PARAMETERS.items():
        own = 1 + (2 if LAYERS[name].cross else 1) + parameters
        found += formats * own + (own + 1 if judged else 0)
    return found


def layers_compared(tensors: int, wrong: int) -> str:
    """The load's note about what it compared."""
    return f"{tensors} tensors compared, {wrong} of them wrong"
