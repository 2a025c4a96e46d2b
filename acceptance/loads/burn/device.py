"""The burn's interface to torch: memory, products, comparisons, and descriptions of wrong results.

Needs torch. One block of memory, allocated once, holds everything: operands, expected results, and
in the rest the ring of results. The place of a result is its distance from the beginning of the
block, so a number names the same memory cell for the whole run, whatever its content.

The burn's products on a torch device, and the proof of the first of them.

The caller provides the memory of operands and results. The proof uses arithmetic that the products
themselves do not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from acceptance.loads.burn import fault
from acceptance.loads.burn.compare import KINDS, KernelComparator, wrong_elements
from acceptance.loads.burn.shape import (
    ChangedOperand,
    Counts,
    Proof,
    Shape,
    SlotPlaces,
    division,
    operand_bytes,
    result_bytes,
    shapes,
)
from acceptance.loads.card import Card
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.product import (
    LISTED,
    Product,
    Tensor,
    drawn,
    formats,
    multiplication,
    odd,
    spoil,
    wrong_values,
)
from acceptance.loads.gemm.verification import judge_product, sampled_rows
from acceptance.loads.miscompare import ReferenceKind, WrongReference, WrongValue
from acceptance.loads.mismatch import describe_elements

_PIECE = 1 << 24  # elements drawn at a time, to keep memory use low
_DIGEST_PIECE = 1 << 22
# An odd constant of SplitMix64, as a signed number.
_WEIGHT = -7046029254386353131


@dataclass(frozen=True, slots=True)
class Operands:
    """Both operands of every shape of a format, as flat memory of the format's type."""

    dtype: Dtype
    a: Tensor
    b: Tensor

    def product(self, shape: Shape, result: Tensor) -> Callable[[], None]:
        """A function that queues one product of this shape into `result` (m x n)."""
        a, b = self.views(shape)
        return multiplication(self.dtype, a, b, result)

    def views(self, shape: Shape) -> tuple[Tensor, Tensor]:
        """The operands as matrices: m x k and k x n."""
        a = self.a[: shape.m * shape.k].view(shape.m, shape.k)
        flat = self.b[: shape.k * shape.n]
        # The libraries require the second operand of one-byte formats in column order.
        b = (
            flat.view(shape.n, shape.k).t()
            if self.dtype.operand_bytes == 1
            else flat.view(shape.k, shape.n)
        )
        return a, b

    def digests(self) -> tuple[str, str]:
        """A digest of 64 bits for each operand, over its bits and their places."""
        return digest(self.a), digest(self.b)


def operands(
    dtype: Dtype, shapes: tuple[Shape, ...], kind: str, take: Callable[[int], Tensor]
) -> Operands:
    """Operands of this `kind` (normal or whole).

    `take` allocates their memory, by number of bytes.
    """
    taken, _ = formats(dtype)
    parts = [take(size).view(taken) for size in operand_bytes(dtype, shapes)]
    deepest = max(shape.k for shape in shapes)
    for order, part in enumerate(parts):
        seed = 1000 * list(DTYPES).index(dtype.short) + order + (500 if kind == "whole" else 0)
        random = torch.Generator(part.device).manual_seed(seed)
        for begin in range(0, part.numel(), _PIECE):
            piece = part[begin : begin + _PIECE]
            piece.copy_(_draw(dtype, kind, piece.numel(), deepest, random))
    return Operands(dtype, parts[0], parts[1])


def _draw(dtype: Dtype, kind: str, count: int, deepest: int, random: Any) -> Tensor:
    if kind == "whole":
        largest = dtype.largest(deepest)
        return torch.randint(
            -largest, largest + 1, (count,), device=random.device, generator=random
        )
    return drawn(dtype, (count,), random)


def digest(memory: Tensor) -> str:
    """A digest of 64 bits of a whole buffer.

    The sum of its 64-bit words, each times an odd weight of its place, so a change of one word
    always changes it. The buffer's size is a multiple of eight bytes.
    """
    flat = memory.view(-1).view(torch.uint8).view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for begin in range(0, flat.numel(), _DIGEST_PIECE):
        piece = flat[begin : begin + _DIGEST_PIECE]
        places = torch.arange(begin, begin + piece.numel(), dtype=torch.int64, device=flat.device)
        weights = places.mul(_WEIGHT).bitwise_xor_(places >> 7).bitwise_or_(1)
        total += piece.mul(weights).sum()
    return f"{int(total) & (2**64 - 1):016x}"


# Time for the float64 products of one result, after those of the sampled rows: enough for all rows
# where float64 is fast. A GeForce has time for the sampled ones and a few blocks.
REFERENCE_S = 0.5
_ROWS = 256

ProofResult = tuple[WrongReference | None, str]


def first_proof(
    operands: Operands, shape: Shape, kind: ReferenceKind, result: Tensor, make: Any
) -> ProofResult:
    """Make a product into `result` by `make()` and check it.

    Returns a finding, or None where the product is right, and a sentence. `kind` is normal or
    whole.
    """
    spoil(result)
    make()
    dtype = operands.dtype
    if dtype.short == "f64" or dtype.exact_sums(kind):
        a, b = operands.views(shape)
        return judge_product(Product(dtype, a, b, result, lambda: None), kind)
    return _by_float64(operands, shape, kind, result)


def _by_float64(
    operands: Operands, shape: Shape, kind: ReferenceKind, result: Tensor
) -> ProofResult:
    a, b = operands.views(shape)
    wide = b.to(torch.float64)
    own, share = operands.dtype.bound(shape.k)
    if kind == "whole":
        # a library may round parts before it adds them, which rounds once more
        own, share = 2 * own, 0.0
    squares = wide.square() if share else None
    blocks = [list(range(row, min(row + _ROWS, shape.m))) for row in range(0, shape.m, _ROWS)]
    done: set[int] = set()
    elements = 0
    largest = worst = 0.0
    listed: list[WrongValue] = []
    # First a row of each of 64 bands, so that no band goes unseen where time is short.
    left = [sampled_rows(shape.m), *blocks]
    began: float | None = None
    while left:
        before_s = time.monotonic()
        rows = left.pop(0)
        part = _in_float64(a, rows)
        exact = part @ wide
        allowed = exact.abs().mul_(own)
        if squares is not None:
            allowed += (part.square() @ squares).sqrt_().mul_(share)
        got = _in_float64(result, rows)
        error = (got - exact).abs_()
        wrong = ~(error <= allowed)  # also true where the error is NaN
        here = int(wrong.sum())
        if here:  # those of a row that was looked at before are counted
            wrong[[place for place, row in enumerate(rows) if row in done]] = False
            here = int(wrong.sum())
        elements += here
        done.update(rows)
        largest = max(largest, float(error.max()))
        if share or own:
            worst = max(worst, float((error / allowed.clamp_(min=1e-300)).max()))
        if here:
            listed += wrong_values(wrong, exact, got, LISTED - len(listed), rows)
        now_s = time.monotonic()
        # The sampled rows are not counted: they come first, while the library initializes.
        spent_s = now_s - began if began is not None else 0.0
        room = int((REFERENCE_S - spent_s) / (now_s - before_s)) if spent_s else len(left)
        began = now_s if began is None else began
        # Where time is short, as many blocks as fit into it, spread evenly over the rest.
        if room < len(left):
            left = (
                [left[(2 * n + 1) * len(left) // (2 * room)] for n in range(room)]
                if room > 0
                else []
            )
    strange = odd(result)
    text = f"{len(done)} of {shape.m} rows in float64, largest error {largest:.3g}"
    text += f", at most {worst:.3g} of what is allowed" if share or own else ", none is allowed"
    if not elements and not any(strange.values()):
        return None, text
    finding = WrongReference(
        component=OWN,
        dtype=operands.dtype.short,
        check=kind,
        rows=len(done),
        elements=elements,
        **strange,
        first=tuple(listed),
    )
    return finding, text


def _in_float64(matrix: Tensor, rows: list[int]) -> Tensor:
    """These rows; one by one where they do not follow each other, as one byte has no gathering."""
    return (
        matrix[rows[0] : rows[-1] + 1].to(torch.float64)
        if rows[-1] - rows[0] + 1 == len(rows)
        else torch.stack([matrix[row].to(torch.float64) for row in rows])
    )


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
                finding, text = first_proof(
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
