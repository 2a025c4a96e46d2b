"""What gpu-burn's progress lines say of each GPU over the run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.tools.gpu_burn_progress import Column, Line
from acceptance.tools.gpu_burn_table import Frame

# Operations of a product of 8192 x 8192 matrices as gpu-burn counts them (OPS_PER_MUL), 0.05 % more than 2 x 8192^3.
_PRODUCT_GFLOP = 1100.048498688
# Its clock counts whole seconds at both ends; it rounds rates to a Gflop/s, which is 0.1 % of a slow one.
_CLOCK_S = 1.5
_ROUNDED = 0.01
# After its time it waits for the next line of nvidia-smi, which comes every 5 s, and shows 100 % until then.
_OVERTIME_S = 10.0
# The reported rate is the median of the intervals, which lies this near to their mean on steady cards: 3 % on an H200.
_SPREAD = 0.15


@dataclass(frozen=True, slots=True)
class History:
    """The progress lines of one text in their order, and its frame. GPUs are numbered by column."""

    lines: tuple[Line, ...]
    frame: Frame

    @property
    def whole(self) -> tuple[Line, ...]:
        """The lines that show products and errors of every GPU."""
        return tuple(line for line in self.lines if line.whole)

    def widest(self) -> int:
        """The most GPUs that one line shows."""
        return max((len(line.columns) for line in self.lines), default=0)

    def _columns(self, *, whole: bool = False) -> Iterator[tuple[int, list[Column]]]:
        lines = self.whole if whole else self.lines
        columns: list[list[Column]] = [[] for _ in range(self.widest())]
        # Line by line: asked for each GPU anew, one very wide line among many short ones would take hours.
        for line in lines:
            for gpu, column in enumerate(line.columns):
                columns[gpu].append(column)
        yield from enumerate(columns)

    def rates(self) -> dict[int, float]:
        """Median rate in TFLOP/s. A rate is shown until the next compare, so it counts only where the products grew."""
        found = {}
        for gpu, columns in self._columns():
            before = 0
            rates = []
            for column in columns:
                if column.done is not None and column.done > before:
                    before = column.done
                    if column.rate:
                        rates.append(column.rate)
            if rates:
                found[gpu] = statistics.median(rates) / 1000
        return found

    def errors(self) -> dict[int, int]:
        """The most wrong elements in one line, of GPUs whose process lived."""
        counts = {
            gpu: [wrong for column in columns if (wrong := column.wrong()) is not None]
            for gpu, columns in self._columns()
        }
        return {gpu: max(wrong) for gpu, wrong in counts.items() if wrong}

    def temperatures(self) -> dict[int, float]:
        """The highest temperature in degC."""
        shown = {
            gpu: [column.temperature for column in columns if column.temperature is not None]
            for gpu, columns in self._columns()
        }
        return {gpu: max(values) for gpu, values in shown.items() if values}

    def died(self) -> list[int]:
        """GPUs whose process died."""
        return [gpu for gpu, columns in self._columns() if any(column.died for column in columns)]

    def rings(self) -> dict[int, int]:
        """The results in the ring of each GPU, where the text tells."""
        gpus = self.widest()
        if len(self.frame.rings) >= gpus and len(set(self.frame.rings)) == 1:
            return dict.fromkeys(range(gpus), self.frame.rings[0])
        return {gpu: ring for gpu, ring in self.frame.by_device.items() if gpu < gpus}

    def _products(self) -> Iterator[tuple[int, list[int]]]:
        """The products of each GPU in the whole lines, a dead process's left out."""
        for gpu, columns in self._columns(whole=True):
            if columns:
                yield gpu, [column.done for column in columns if column.done is not None and column.done >= 0]

    def compares(self) -> dict[int, int]:
        """How many compares were shown, at least."""
        rings = self.rings()
        found = {}
        for gpu, products in self._products():
            ring = rings.get(gpu) or math.gcd(*products) or 1
            found[gpu] = max(products, default=0) // ring
        return found

    def off_ring(self) -> list[int]:
        """GPUs whose products are no multiple of their ring, which the program cannot print."""
        rings = self.rings()
        return [gpu for gpu, products in self._products() if any(done % rings.get(gpu, 1) for done in products)]

    def falls(self) -> bool:
        """Whether time or products go back."""
        times = [line.percent for line in self.lines]
        return times != sorted(times) or any(products != sorted(products) for _, products in self._products())

    def _intervals(self) -> Iterator[tuple[int, list[tuple[int, float, float]]]]:
        """(products, seconds by the printed rate, percent) of each interval that a GPU showed with its rate."""
        for gpu in range(self.widest()):
            before, found = 0, []
            for line in self.whole:
                column = line.columns[gpu] if gpu < len(line.columns) else Column()
                if column.done is not None and column.done > before and column.rate:
                    products, before = column.done - before, column.done
                    found.append((products, products * _PRODUCT_GFLOP / column.rate, line.percent))
            if found:
                yield gpu, found

    def false_rate(self, seconds: int) -> str | None:
        """Why a printed rate does not agree with the products and the time of a run of `seconds`, or None.

        Each rate is the products of an interval over its length, so products over rates add up to
        the time that the progress shows.
        """
        for gpu, intervals in self._intervals():
            worked_s, percent = sum(length for _, length, _ in intervals), intervals[-1][2]
            shown_s = seconds * percent / 100
            error_s = _CLOCK_S + _ROUNDED * shown_s
            most_s = shown_s + error_s + (_OVERTIME_S if percent >= 100 else 0.0)
            if not shown_s - error_s <= worked_s <= most_s:
                return (
                    f"the rates of GPU {gpu} do not agree with its products and time: at these rates its"
                    f" {sum(done for done, _, _ in intervals)} products take {worked_s:.1f} s, and the progress shows"
                    f" {shown_s:.1f} s: the text was changed, or is of another run"
                )
            after = intervals[1:]  # the first interval holds the start
            if len(after) < 2:
                continue
            mean = sum(done for done, _, _ in after) * _PRODUCT_GFLOP / sum(length for _, length, _ in after)
            median = statistics.median(done * _PRODUCT_GFLOP / length for done, length, _ in after)
            if abs(median / mean - 1) > _SPREAD:
                return (
                    f"GPU {gpu} reports {median:.0f} Gflop/s and made {mean:.0f} Gflop/s over the whole time:"
                    " it stood still in between, or the text was changed; burn again and watch its clocks"
                )
        return None

    def without_rate(self) -> list[int]:
        """GPUs that show rates, all of them 0."""
        rates = self.rates()
        return [gpu for gpu, columns in self._columns() if gpu not in rates and any(c.rate == 0 for c in columns)]

    def stalled(self) -> list[int]:
        """GPUs whose products last grew before half of the time that is shown."""
        lines = self.whole
        found = []
        for gpu in range(self.widest()):
            final = lines[-1].columns[gpu].done
            reached = next(line.percent for line in lines if line.columns[gpu].done == final)
            if reached < lines[-1].percent / 2:
                found.append(gpu)
        return found
