"""One pass over a memory: sweeps by our kernels and copies inside it, queued together, timed as
one, and judged by one record.

Sizes and places are in words of 8 bytes from the beginning of the tested memory. Standard library
only.
"""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.loads.vram.words import Words

WORD = 8  # bytes
TILE = 2048  # words, 16 KiB: what a block of threads takes at a time


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every word of a part of the memory is compared (`reads`), then overwritten (`writes`); one of
    the two may be missing.

    The word at a place is that of the number place + `shift`. `begin` is a multiple of a tile and
    `shift` of two words. With a `stripe`, of every two stripes of 2**stripe tiles only one is
    visited, the first (`role` 0) or the second (1), and what is left after the last whole pair of
    stripes is not visited. `descending` goes from the last tile to the first.
    """

    reads: Words | None
    writes: Words | None
    begin: int
    count: int
    shift: int = 0
    stripe: int | None = None
    role: int = 0
    descending: bool = False

    @property
    def kernel(self) -> str:
        """Its name in `kernels/vram.cu`."""
        words = self.reads or self.writes
        if words is None or (self.writes or words).family != words.family:
            raise ValueError("a sweep reads or writes words of one family")
        return f"{'fill' if self.reads is None else 'verify' if self.writes is None else 'turn'}_{words.family}"

    @property
    def tiles(self) -> int:
        """How many it visits."""
        whole = self.count // TILE
        return whole if self.stripe is None else whole >> self.stripe + 1 << self.stripe

    @property
    def rest(self) -> int:
        """Words after the last whole tile that it visits too."""
        return self.count % TILE if self.stripe is None else 0

    @property
    def words(self) -> int:
        """How many it visits."""
        return self.tiles * TILE + self.rest

    @property
    def moved(self) -> int:
        """Bytes that it reads and writes."""
        return self.words * WORD * ((self.reads is not None) + (self.writes is not None))


@dataclass(frozen=True, slots=True)
class Copy:
    """`words` words from one place to another, by CUDA's own copy; the two do not overlap."""

    source: int
    target: int
    words: int

    @property
    def moved(self) -> int:
        """Bytes that it reads and writes."""
        return 2 * self.words * WORD


@dataclass(frozen=True, slots=True)
class Spin:
    """A GPU that does not come back, for a quarter of an hour or more (for `--inject hang`)."""

    moved = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """What is queued together, in this order; then the memory is left alone for
    `rest_s` seconds.
    """

    works: tuple[Sweep | Copy | Spin, ...]
    rest_s: float = 0.0

    @property
    def moved(self) -> int:
        """Bytes that it reads and writes."""
        return sum(work.moved for work in self.works)

    @property
    def words(self) -> int:
        """Words that our kernels must have written or compared: what they count
        themselves must be this.
        """
        return sum(work.words for work in self.works if isinstance(work, Sweep))

    @property
    def reads(self) -> Words | None:
        """The words that the first sweep which compares expects."""
        return next(
            (work.reads for work in self.works if isinstance(work, Sweep) and work.reads), None
        )
