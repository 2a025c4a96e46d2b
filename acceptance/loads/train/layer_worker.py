"""The steps of the load of layers, independent of torch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from acceptance.core.dtype import DtypeName
from acceptance.loads.card import Card, counted_work, take, times_for
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.worker import operations, settled_rate, sustain
from acceptance.loads.miscompare import LAYER_MISCOMPARES, Miscompare, WrongLayer, WrongLayerRepeat
from acceptance.loads.program import LoadError, OutOfMemory
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.train.layer_contract import (
    GRID,
    LAYER_COLUMNS,
    LAYER_TABLE,
    NO_MEMORY,
    NO_TIME,
    layers_compared,
    parts,
)
from acceptance.loads.train.memory import layer_bytes
from acceptance.loads.train.shapes import TRAINED, LayerName, LayerShape

# Shares of the time under load: to warm up, for all slices of matrix products, and for each layer
# forward and forward with backward.
WARMING, PRODUCTS, FORWARD = 0.15, 0.2, 0.35
# In the table: the longest measurement of a rate, and the least time that is worth one.
CELL_S, LEAST_S = 0.2, 0.02
_PRODUCT_S = 0.3

Work = Callable[[], None]
Row = tuple[str | float, ...]


class LayerTrial(Protocol):
    """One layer in one shape and format."""

    def forward(self) -> None:
        """Queue one forward pass, as in training."""

    def train(self) -> None:
        """Queue one forward and one backward pass, to all gradients."""

    def keep(self) -> None:
        """Make and keep what `compare` compares with."""

    def compare(self) -> tuple[int, Sequence[WrongLayerRepeat]]:
        """Make the same again: how many tensors were compared, and which differ in their bits."""

    def release(self) -> None:
        """Free the memory."""


class Layers(Protocol):
    """The layers on a GPU; `layer_trial.TorchLayers` makes them."""

    def verify(
        self, name: LayerName, dtype: DtypeName, *, falsify: bool
    ) -> tuple[int, Sequence[WrongLayer], str]:
        """Compare a small layer with float64: how many tensors, the wrong ones, and a sentence.

        `falsify` moves one element of a gradient just beyond its bound, for an injected fault.
        """

    def product(self, dtype: DtypeName, size: int) -> Work:
        """A function that queues one square matrix product."""

    def layer(self, name: LayerName, dtype: DtypeName, *, batch: int, sequence: int) -> LayerTrial:
        """A layer that has made its first passes. Raises OutOfMemory."""

    def part(self, reading: str, dtype: DtypeName) -> Work:
        """A function that queues one forward pass of a part of a layer."""


@dataclass(frozen=True, slots=True)
class LayerOptions:
    """The load's options: the judged format, seconds under load, and the size of the product.

    `shapes` are the layers with their judged shape, `formats` those of the table in their order.
    """

    dtype: DtypeName
    seconds: float
    size: int
    shapes: Mapping[LayerName, LayerShape]
    formats: tuple[DtypeName, ...] = ()
    inject: str | None = None


class LayerWorker:
    """Runs the load on a card and reports each finding at once."""

    def __init__(
        self,
        order: LayerOptions,
        card: Card,
        output: Output,
        layers: Layers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order, self._card, self._output, self._layers = order, card, output, layers
        self._clock = clock
        self._wrong = self._compared = 0
        self._loaded_s, self._heartbeat = 0.0, Heartbeat(output, order.seconds)

    def judge(self) -> None:
        """Verify the small layers; then measure each layer in its judged shape, and compare it.

        Raises LoadError where the memory does not suffice.
        """
        order = self._order
        self._verify((order.dtype,))
        product = self._layers.product(order.dtype, order.size)
        product_s = self._one_s(product)
        warming_s, slice_s = WARMING * order.seconds, self._product_s()
        self._sustain(product, warming_s, product_s)
        slices: list[float] = []
        rates: dict[LayerName, tuple[float, float]] = {}
        share_s = (1 - WARMING - PRODUCTS) * order.seconds / len(order.shapes)
        for name, shape in order.shapes.items():
            trial = self._trial(name, shape)
            trial.keep()
            slices.append(self._product_rate(product, slice_s, product_s))
            flop = shape.forward_flop(shape.batch, shape.sequence)
            forward = self._rate(trial.forward, flop, FORWARD * share_s)
            whole = self._rate(trial.train, TRAINED * flop, (1 - FORWARD) * share_s)
            rates[name] = forward, whole
            compared, wrong = trial.compare()
            self._count(compared, wrong)
            trial.release()
        slices.append(self._product_rate(product, slice_s, product_s))
        # All slices but the first begin behind a layer, so the card is as hot as for the layers;
        # the median does not care for one that something else disturbed.
        matmul = statistics.median(slices)
        self._reading("layer_matmul", "TFLOP/s", matmul)
        rows: list[Row] = []
        for name, (forward, whole) in rates.items():
            self._reading(f"layer_{name}_forward", "TFLOP/s", forward)
            self._reading(f"layer_{name}", "TFLOP/s", whole)
            self._reading(f"layer_{name}_share", "ratio", whole / matmul)
            shape = order.shapes[name]
            key = name, order.dtype, shape.sequence, shape.batch
            rows.append((*key, forward, whole, whole / matmul))
        self._output.table(LAYER_TABLE, LAYER_COLUMNS, rows)
        self._end()
        told = ", ".join(f"{one:.1f}" for one in slices)
        self._output.note(f"the matrix product between the layers: {told} TFLOP/s")

    def tabulate(self) -> None:
        """Verify the small layers in every format; then the parts, and the table's rates.

        Formats come in their order until the time is over.
        """
        order = self._order
        self._verify(order.formats)
        began = self._clock()
        for part in parts():
            work = counted_work(self._layers.part(part.reading, order.dtype), self._order.inject)
            take(self._card, work, 1)
            rate = self._brief(work, CELL_S)
            self._reading(part.reading, "TFLOP/s", rate * part.flop / 1e12)
        rows: list[Row] = []
        for number, dtype in enumerate(order.formats):
            left_s = order.seconds - (self._clock() - began)
            # what an earlier format leaves over is for the later ones
            rows += self._tabulate(dtype, left_s / (len(order.formats) - number))
        self._output.table(LAYER_TABLE, LAYER_COLUMNS, rows)
        self._end()

    def _tabulate(self, dtype: DtypeName, seconds: float) -> list[Row]:
        """The rows of one format, in so many seconds; what did not fit in says why."""
        began, found, slices = self._clock(), list[tuple[Row, float | str, float | str]](), [0.0]
        cells = [(name, s, b) for name, s, batches in GRID for b in batches]
        product = self._layers.product(dtype, self._order.size)
        product_s = self._one_s(product)
        last: tuple[str, int] | None = None
        for number, (name, sequence, batch) in enumerate(cells):
            left_s = seconds - (self._clock() - began)
            # of the three that a cell takes: forward, with backward, and to make the layer
            budget_s = max(LEAST_S, min(CELL_S, left_s / (len(cells) - number) / 3))
            key: Row = (name, dtype, sequence, batch)
            if left_s < 3 * LEAST_S:
                found.append((key, NO_TIME, NO_TIME))
                continue
            if last != (name, sequence):
                last = name, sequence
                slices.append(self._product_rate(product, min(_PRODUCT_S, 3 * budget_s), product_s))
            found.append((key, *self._cell(name, dtype, batch, sequence, budget_s)))
            self._heartbeat.at(self._clock() - began)
        matmul = statistics.median(slices[1:] or slices)
        return [
            (*key, forward, whole, whole / matmul if isinstance(whole, float) else whole)
            for key, forward, whole in found
        ]

    def _cell(
        self, name: LayerName, dtype: DtypeName, batch: int, sequence: int, seconds: float
    ) -> tuple[float | str, float | str]:
        try:
            trial = self._layers.layer(name, dtype, batch=batch, sequence=sequence)
        except OutOfMemory:
            return NO_MEMORY, NO_MEMORY
        flop = self._order.shapes[name].forward_flop(batch, sequence)
        forward = (
            self._brief(counted_work(trial.forward, self._order.inject), seconds) * flop / 1e12
        )
        whole = (
            self._brief(counted_work(trial.train, self._order.inject), seconds)
            * TRAINED
            * flop
            / 1e12
        )
        trial.release()
        return forward, whole

    def _brief(self, work: Work, seconds: float) -> float:
        """Pieces of work a second, over so many seconds at the most and one piece at the least."""
        one_s = take(self._card, work, 1)
        count = times_for(seconds, one_s)
        return count / take(self._card, work, count)

    def _trial(self, name: LayerName, shape: LayerShape) -> LayerTrial:
        dtype = self._order.dtype
        needed = layer_bytes(name, shape, shape.batch, shape.sequence, dtype)
        free = self._card.free_bytes()
        try:
            if needed <= free:
                return self._layers.layer(name, dtype, batch=shape.batch, sequence=shape.sequence)
        except OutOfMemory:
            pass
        raise LoadError(
            f"a {shape.name} at batch {shape.batch} needs up to {needed / 2**30:.1f} GiB of the "
            f"GPU's memory and {free / 2**30:.1f} GiB are free: end what uses the GPU"
        )

    def _verify(self, formats: Sequence[DtypeName]) -> None:
        falsify = self._order.inject == "wrong"
        for dtype in formats:
            for name in self._order.shapes:
                compared, wrong, told = self._layers.verify(name, dtype, falsify=falsify)
                falsify = False
                self._count(compared, wrong)
                self._output.note(f"{name} in {dtype}: {told}")

    def _count(self, compared: int, wrong: Sequence[Miscompare]) -> None:
        self._compared += compared
        self._wrong += len(wrong)
        for one in wrong:
            self._output.miscompare(one)

    def _end(self) -> None:
        self._reading(LAYER_MISCOMPARES, "count", self._wrong)
        self._output.note(layers_compared(self._compared, self._wrong))

    def _reading(self, name: str, unit: str, value: float) -> None:
        self._output.reading(name, unit, OWN, value)

    def _one_s(self, work: Work) -> float:
        """Seconds of one piece of work; the first one, which also loads its library, left out."""
        take(self._card, work, 1)
        return take(self._card, work, 1)

    def _product_s(self) -> float:
        """Seconds of each slice of matrix products: one before each layer, and one at the end."""
        return PRODUCTS * self._order.seconds / (len(self._order.shapes) + 1)

    def _product_rate(self, product: Work, seconds: float, one_s: float) -> float:
        """TFLOP/s of the matrix product over the last half of so many seconds."""
        return self._sustain(product, seconds, one_s) * operations(self._order.size) / 1e12

    def _rate(self, work: Work, flop: int, seconds: float) -> float:
        """TFLOP/s of a layer's passes over the last half of so many seconds."""
        counted = counted_work(work, self._order.inject)
        return self._sustain(counted, seconds, take(self._card, counted, 1)) * flop / 1e12

    def _sustain(self, work: Work, seconds: float, one_s: float) -> float:
        """Pieces of work a second, over the last half of so many seconds."""
        before_s = self._loaded_s
        marks = sustain(
            self._card, work, seconds, one_s, lambda done_s: self._heartbeat.at(before_s + done_s)
        )
        self._loaded_s += marks[-1][0]
        return settled_rate(marks)
