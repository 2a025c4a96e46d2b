"""One pass over a memory: sweeps by our kernels, and copies inside it.

They are queued together, timed as one, and judged by one record. Sizes and places are in words of 8
bytes from the beginning of the tested memory. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.loads.vram.words import Words

WORD = 8  # bytes
TILE = 2048  # words, 16 KiB: the unit of work of a block of threads


@dataclass(frozen=True, slots=True)
class Sweep:
    """Compares every word of a part of the memory (`reads`), then overwrites it (`writes`).

    One of the two may be None. The word at a place is that of the number place + `shift`. `begin`
    is a multiple of a tile and `shift` of two words. With a `stripe`, only one of every two stripes
    of 2**stripe tiles is visited, the first (`role` 0) or the second (1); the rest after the last
    whole pair of stripes is not visited. `descending` goes from the last tile to the first.
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
        """The name of its kernel in `kernels/vram.cu`."""
        words = self.reads or self.writes
        if words is None or (self.writes or words).family != words.family:
            raise ValueError("a sweep reads or writes words of one family")
        kind = "fill" if self.reads is None else "verify" if self.writes is None else "turn"
        return f"{kind}_{words.family}"

    @property
    def tiles(self) -> int:
        """Number of tiles visited."""
        whole = self.count // TILE
        return whole if self.stripe is None else whole >> self.stripe + 1 << self.stripe

    @property
    def rest(self) -> int:
        """Number of words visited after the last whole tile."""
        return self.count % TILE if self.stripe is None else 0

    @property
    def words(self) -> int:
        """Number of words visited."""
        return self.tiles * TILE + self.rest

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.words * WORD * ((self.reads is not None) + (self.writes is not None))


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of `words` words by CUDA's own copy; source and target do not overlap."""

    source: int
    target: int
    words: int

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return 2 * self.words * WORD


@dataclass(frozen=True, slots=True)
class Spin:
    """A GPU that does not answer for a quarter of an hour or more, for `--inject hang`."""

    moved = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """Work queued together, in this order, and a pause of `rest_s` seconds after it."""

    works: tuple[Sweep | Copy | Spin, ...]
    rest_s: float = 0.0

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return sum(work.moved for work in self.works)

    @property
    def words(self) -> int:
        """Number of words that our kernels must write or compare.

        The kernels' own count must equal it.
        """
        return sum(work.words for work in self.works if isinstance(work, Sweep))

    @property
    def reads(self) -> Words | None:
        """The words that the first comparing sweep expects."""
        return next(
            (work.reads for work in self.works if isinstance(work, Sweep) and work.reads), None
        )
