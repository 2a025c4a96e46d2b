"""The burn's interface to torch: memory, products, comparisons, and descriptions of wrong results.

Needs torch. One block of memory, allocated once, holds everything: operands, expected results, and
in the rest the ring of results. The place of a result is its distance from the beginning of the
block, so a number names the same memory cell for the whole run, whatever its content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from acceptance.loads.burn import fault, product
from acceptance.loads.burn.compare import KINDS, KernelComparator, wrong_elements
from acceptance.loads.burn.product import Operands, digest, operands
from acceptance.loads.burn.ring import division
from acceptance.loads.burn.role import ChangedOperand, Counts, Proof, SlotPlaces
from acceptance.loads.burn.shape import Shape, result_bytes, shapes
from acceptance.loads.card import Card
from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.gemm.product import Tensor, formats, spoil
from acceptance.loads.miscompare import ReferenceKind, WrongReference
from acceptance.loads.mismatch import describe_elements

# attempts to allocate the memory, and the bytes by which each is smaller
_STEPS, _STEP = 5, 128 << 20
_ALIGNED = 512  # as CUDA's own allocations; the libraries choose their kernels by alignment


@dataclass(slots=True)
class Arena:
    """A block of memory that is handed out from its beginning."""

    piece: Tensor
    taken: int = 0

    def take(self, size: int) -> Tensor:
        """The next `size` bytes, flat. Raises ValueError where they do not fit."""
        begin = self.taken
        self.taken += -(-size // _ALIGNED) * _ALIGNED
        if begin + size > self.piece.numel():
            raise ValueError(f"{size} bytes do not fit any more")
        return self.piece[begin : begin + size]


@dataclass(slots=True)
class TorchTurn:
    """One format's turn: its operands, its expected products, and the ring of results."""

    dtype: Dtype
    shapes: tuple[Shape, ...]
    operands: Operands
    inputs: tuple[str, str]
    expected: list[Tensor]
    slots: list[Tensor]
    first_place: int
    group: int
    groups: int
    comparator: KernelComparator
    inject: str | None
    digests: list[str] = field(default_factory=list)
    stuck: fault.StuckBit | None = None
    stoppage: fault.Stoppage | None = None

    @property
    def filled_bytes(self) -> int:
        """Bytes of the results in the ring."""
        return self.groups * self.group * int(self.slots[0].numel())

    def _result(self, group: int, place: int, shape: int) -> Tensor:
        found = self.shapes[shape]
        _, given = formats(self.dtype)
        return self.slots[group * self.group + place].view(given).view(found.m, found.n)

    def make(self, group: int, shape: int, number: int) -> None:
        """Make the products of one shape for one group of the ring.

        The first of them is product `number` of the format.
        """
        for place in range(self.group):
            result = self._result(group, place, shape)
            if self.inject == "unwritten" and group == place == 0:
                continue
            self.operands.product(self.shapes[shape], result)()
            self._spoil(result, group * self.group + place, number + place)

    def _spoil(self, result: Tensor, slot: int, number: int) -> None:
        if self.inject is None:
            return
        fault.every_result(self.inject, self.dtype.short, result)
        if number == fault.AT:
            fault.one_result(self.inject, self.dtype.short, result)
            if self.inject == "input":
                self.operands.a.view(-1).view(torch.uint8)[self.operands.a.nbytes // 3] ^= 1 << 4
            if self.stoppage is not None and self.inject in ("hang", "lost"):
                self.stoppage.hang() if self.inject == "hang" else self.stoppage.lose()
        if self.stuck is not None and slot == 0:
            self.stuck.hold(result)

    def repeat(self, group: int, shape: int, times: int) -> None:
        """Make `times` products of a group once more."""
        for _ in range(times):
            self.operands.product(self.shapes[shape], self._result(group, 0, shape))()

    def compare(self, group: int, shape: int) -> Any:
        """Begin to compare all results of a group with the expected one."""
        results = [self._result(group, place, shape) for place in range(self.group)]
        return self.comparator.start(self.expected[shape], results, KINDS[self.dtype.short])

    def counts(self, ticket: Any) -> list[Counts]:
        """The counts of each result of the group."""
        return self.comparator.counts(ticket)

    def describe(self, group: int, place: int, shape: int) -> SlotPlaces:
        """Where a wrong result differs, and in which bits.

        Only the slot, where it does not differ any more.
        """
        result = self._result(group, place, shape)
        first, last = wrong_elements(self.expected[shape], result)
        slot = group * self.group + place
        if not first:
            return {"slot": slot}
        width, base = result.element_size(), self.first_place + slot * int(self.slots[0].numel())
        return {
            "slot": slot,
            **describe_elements(first, last, columns=result.shape[1], width=width, base=base),
        }

    def changed_inputs(self) -> list[ChangedOperand]:
        """The operands whose digest has changed since the turn began."""
        return [
            {"operand": name, "expected": before, "got": now}
            for name, before, now in zip("ab", self.inputs, self.operands.digests(), strict=True)
            if before != now
        ]


class TorchDevice:
    """A torch device: `cuda` with our own comparator, or `cpu` with torch's, for tests."""

    def __init__(
        self,
        device: str,
        card: Card,
        comparator: KernelComparator,
        inject: str | None = None,
        stoppage: fault.Stoppage | None = None,
    ) -> None:
        self._device, self._card, self._comparator, self._inject = device, card, comparator, inject
        self._stoppage = stoppage
        self._piece: Tensor = None

    def prove(self, dtype: Dtype, divisor: int) -> Proof:
        """Make and check the first product of every shape, of normal-random and whole numbers."""

        def fresh(size: int) -> Tensor:
            return torch.empty(-(-size // 8) * 8, dtype=torch.uint8, device=self._device)[:size]

        found = shapes(dtype, divisor)
        findings: list[WrongReference] = []
        notes: list[str] = []
        digests: list[tuple[str, str, str]] = []
        slowest_s = 0.0
        kinds: tuple[ReferenceKind, ...] = ("normal",) if dtype.exact else ("normal", "whole")
        for kind in kinds:
            own = operands(dtype, found, kind, fresh)
            inputs = "".join(own.digests())
            for shape in found:
                _, given = formats(dtype)
                result = (
                    fresh(shape.elements * dtype.result_bytes).view(given).view(shape.m, shape.n)
                )
                finding, text = product.first_proof(
                    own, shape, kind, result, self._making(own, shape, result)
                )
                findings += (
                    [msgspec.structs.replace(finding, shape=str(shape))]
                    if finding is not None
                    else []
                )
                notes.append(f"{shape}, {kind} numbers: {text}")
                if kind == "normal":
                    digests.append((str(shape), _folded(inputs), digest(result)))
                    slowest_s = max(slowest_s, self._seconds(own.product(shape, result)))
            del own, result
        return Proof(tuple(findings), tuple(notes), tuple(digests), slowest_s)

    def _making(self, own: Operands, shape: Shape, result: Tensor) -> Callable[[], None]:
        multiply = own.product(shape, result)

        def make() -> None:
            multiply()
            fault.every_result(self._inject, own.dtype.short, result)

        return make

    def _seconds(self, work: Callable[[], None]) -> float:
        begin = self._card.mark()
        work()
        return self._card.seconds(begin, self._card.mark())

    def fill(self, size: int) -> None:
        """Allocate `size` bytes in one block."""
        self._piece = None
        for smaller in range(_STEPS):  # a peer may have allocated some meanwhile
            try:
                self._piece = torch.empty(
                    size - smaller * _STEP, dtype=torch.uint8, device=self._device
                )
                return
            except torch.OutOfMemoryError:
                if smaller == _STEPS - 1:
                    raise

    def begin(self, dtype: Dtype, divisor: int, most: int) -> TorchTurn:
        """Make a format's operands and expected results; the ring gets the rest of the memory.

        Raises ValueError where the memory is too small.
        """
        memory, found = Arena(self._piece), shapes(dtype, divisor)
        own = operands(dtype, found, "normal", memory.take)
        _, given = formats(dtype)
        size = result_bytes(dtype, found)
        expected = []
        for shape in found:
            result = memory.take(size).view(given).view(shape.m, shape.n)
            spoil(result)
            self._making(own, shape, result)()
            expected.append(result)
        first_place = memory.taken
        step = -(-size // _ALIGNED) * _ALIGNED
        group, groups = division((self._piece.numel() - memory.taken) // step, most, len(found))
        slots = [memory.take(size) for _ in range(group * groups)]
        inject, stuck = self._inject, None
        if inject == "stuck":
            stuck = fault.StuckBit(expected[0])
        return TorchTurn(
            dtype,
            found,
            own,
            own.digests(),
            expected,
            slots,
            first_place,
            group,
            groups,
            self._comparator,
            inject,
            [digest(one) for one in expected],
            stuck,
            self._stoppage,
        )


def _folded(inputs: str) -> str:
    """The digests of both operands as a single one of 16 hex digits."""
    return f"{int(inputs[:16], 16) ^ int(inputs[16:], 16):016x}"
