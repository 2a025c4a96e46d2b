"""All digests of one training run, their text, and where two runs first differ. Pure.

The bits of every tensor are stamped (`Stamp`): after each step the loss and every gradient, after
the last one every weight and both moments of AdamW. Gradients stand in the order in which the
backward pass makes them, so that the first stamp that differs is near the first wrong number. (A
matrix that embedding and head share is done last.)

The text of a run:

    tensors NAME NAME ...
    STEP PART STAMP STAMP ...

A row of each loss has one stamp, any other row one for each tensor. A stamp is the digest and the
sum, sixteen hexadecimal digits each; behind `!` follows how many elements are not finite, if any.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from acceptance.loads.miscompare import DifferingRun, DigestDifference, DigestFormat, DigestPart
from acceptance.loads.program import LoadError

_MODULUS = 1 << 64
STATE: tuple[DigestPart, ...] = ("weight", "first_moment", "second_moment")
LOSS = "loss"  # in the place of a tensor's name
_PARTS: tuple[DigestPart, ...] = get_args(DigestPart)
_STAMP = re.compile(r"([0-9a-f]{16})([0-9a-f]{16})(?:!([1-9][0-9]{0,17}))?")
# The parts of a block in the order of the backward pass.
_OF_BLOCK = (
    "feed_forward.down",
    "feed_forward.up",
    "second",
    "attention.out",
    "attention.value",
    "attention.key",
    "attention.query",
    "first",
)


class Stamp(NamedTuple):
    """The bits of a tensor: their digest, their plain sum, and the elements that are not finite.

    `digest` is the sum of all words, each times an odd number of its place, modulo 2**64; `total`
    the sum of the words modulo 2**64. A word is the bits of an element as a signed number.
    """

    digest: int
    total: int
    not_finite: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Stamp:
        """A stamp from signed numbers of 64 bits."""
        digest, total, not_finite = numbers
        return cls(digest % _MODULUS, total % _MODULUS, not_finite)

    def __str__(self) -> str:
        more = f"!{self.not_finite}" if self.not_finite else ""
        return f"{self.digest:016x}{self.total:016x}{more}"


class Row(NamedTuple):
    """The stamps of one part at one step."""

    step: int
    part: DigestPart
    stamps: tuple[Stamp, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first stamp in which two runs differ, how, and how many differ in all."""

    step: int
    part: DigestPart
    tensor: str
    kind: DigestDifference
    bit: int | None
    digests: int


@dataclass(frozen=True, slots=True)
class RunDigests:
    """The stamps of one run; the names of its tensors are in the order of the stamps."""

    tensors: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def steps(self) -> int:
        """The steps of the run."""
        return sum(row.part == "loss" for row in self.rows)

    def summary(self, *parts: DigestPart) -> str:
        """Sixteen hexadecimal digits of all stamps of these parts."""
        found = " ".join(
            str(stamp) for row in self.rows if row.part in parts for stamp in row.stamps
        )
        return hashlib.sha256(found.encode()).hexdigest()[:16]

    @property
    def summaries(self) -> tuple[str, str, str]:
        """The digests of all losses, of all gradients, and of weights and moments at the end."""
        return self.summary("loss"), self.summary("gradient"), self.summary(*STATE)

    def text(self) -> str:
        """The text of the log."""
        lines = [f"tensors {' '.join(self.tensors)}"]
        lines += [f"{row.step} {row.part} {' '.join(map(str, row.stamps))}" for row in self.rows]
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class TrainingVersions:
    """What the bits of a training run depend on, beside the GPU's own soundness and the driver."""

    gpu: str
    multiprocessors: int
    library: str
    cublas: str
    recipe: int


@dataclass(frozen=True, slots=True)
class TrainingRuns:
    """The first run of each format on one GPU, and the repeats that differed from it."""

    versions: TrainingVersions
    first: Mapping[DigestFormat, RunDigests]
    repeats: int
    differing: tuple[DifferingRun, ...]

    def differing_in(self, dtype: DigestFormat) -> int:
        """How many repeats in this format had other bits than the first run."""
        return sum(one.format == dtype for one in self.differing)


def gpt_tensors(layers: int) -> tuple[str, ...]:
    """The names of a GPT's parameters in the order in which the backward pass is done with them."""
    blocks = [
        f"blocks.{block}.{part}.{kind}"
        for block in reversed(range(layers))
        for part in _OF_BLOCK
        for kind in ("weight", "bias")
    ]
    return ("norm.weight", "norm.bias", *blocks, "positions", "tokens.weight")


def due_rows(steps: int, tensors: int) -> Iterator[tuple[int, DigestPart, int]]:
    """The rows of a run of so many steps: step, part, and number of stamps."""
    for step in range(steps):
        yield step, "loss", 1
        yield step, "gradient", tensors
    for part in STATE:
        yield steps - 1, part, tensors


def from_numbers(
    tensors: Sequence[str], steps: int, numbers: Sequence[Sequence[int]]
) -> RunDigests:
    """The digests of a run from its stamps as numbers, in the order of `due_rows`.

    Raises ValueError for another number of stamps.
    """
    left = iter(numbers)
    rows = tuple(
        Row(step, part, tuple(Stamp.of(next(left)) for _ in range(count)))
        for step, part, count in _checked(len(numbers), steps, len(tensors))
    )
    return RunDigests(tuple(tensors), rows)


def _checked(count: int, steps: int, tensors: int) -> list[tuple[int, DigestPart, int]]:
    rows = list(due_rows(steps, tensors))
    due = sum(stamps for _, _, stamps in rows)
    if count != due:
        raise ValueError(f"{count} stamps instead of {due}")
    return rows


def parse(text: str) -> RunDigests:
    """The run whose log this is.

    Raises LoadError, quoting the line, for anything that `RunDigests.text` does not write.
    """
    first, *lines = text.removesuffix("\n").split("\n")
    word, *tensors = first.split(" ")
    if word != "tensors" or not tensors or "" in tensors or len(set(tensors)) != len(tensors):
        raise LoadError(f"no names of tensors: {first[:120]!r}")
    rows = tuple(_row(line) for line in lines)
    steps = sum(row.part == "loss" for row in rows)
    told = [(row.step, row.part, len(row.stamps)) for row in rows]
    if not steps or told != list(due_rows(steps, len(tensors))):
        raise LoadError(f"the rows are not those of {steps} steps of {len(tensors)} tensors")
    return RunDigests(tuple(tensors), rows)


def _row(line: str) -> Row:
    number, _, rest = line.partition(" ")
    part, _, stamps = rest.partition(" ")
    known = next((one for one in _PARTS if one == part), None)
    if known is None or not re.fullmatch(r"0|[1-9][0-9]{0,5}", number, re.ASCII):
        raise LoadError(f"no row: {line[:120]!r}")
    return Row(int(number), known, tuple(_stamp(one, line) for one in stamps.split(" ")))


def _stamp(text: str, line: str) -> Stamp:
    found = _STAMP.fullmatch(text)
    if found is None:
        raise LoadError(f"no stamp: {text[:60]!r} in {line[:60]!r}")
    digest, total, not_finite = found.groups()
    return Stamp(int(digest, 16), int(total, 16), int(not_finite or 0))


def difference(one: RunDigests, other: RunDigests) -> Difference | None:
    """Where two runs first differ, and how; None where all their bits are the same.

    Raises ValueError for runs of other tensors, or of another number of steps.
    """
    if one.tensors != other.tensors or one.steps != other.steps:
        raise ValueError("the runs are not of the same tensors and steps")
    differing = [
        (row, name, a, b)
        for row, beside in zip(one.rows, other.rows, strict=True)
        for name, a, b in zip(
            (LOSS,) if row.part == "loss" else one.tensors, row.stamps, beside.stamps, strict=True
        )
        if a != b
    ]
    if not differing:
        return None
    row, name, a, b = differing[0]
    kind, bit = _kind(a, b, alone=row.part != "loss")
    return Difference(row.step, row.part, name, kind, bit, len(differing))


def _kind(one: Stamp, other: Stamp, *, alone: bool) -> tuple[DigestDifference, int | None]:
    """How two stamps of one tensor differ.

    One flipped bit changes the sum by that power of two. A loss (not `alone`) is made of all
    elements: its own bits say nothing of how many were wrong.
    """
    if one.not_finite != other.not_finite:
        return "not_finite", None
    change = (other.total - one.total) % _MODULUS
    size = min(change, _MODULUS - change)
    return (
        ("bit", size.bit_length() - 1)
        if alone and size and not size & (size - 1) and size.bit_length() <= 32
        else ("several", None)
    )
