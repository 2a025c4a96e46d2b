"""The catalogue of patterns.

A pattern is a sequence of passes over the whole memory, a function of its size and of the round.
Rounds differ by their seeds, so a long test is no repetition. On a GPU, "ascending" and
"descending" are the order of the tiles; some thousands of threads run at once, so within some
megabytes there is no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from acceptance.loads.vram import contract
from acceptance.loads.vram.passes import ALL, TILE, WORD, Copy, Pass, Sweep, Words, seed_of

STEPS = 8  # steps of a walking bit in a round: after eight rounds each cell has had it in each bit
# Stretches of equal bits of every power of two up to 32 bits, and all bits equal: each bit differs
# at least once from each other bit of its word.
BACKGROUNDS = (*(ALL // ((1 << width) + 1) for width in (1, 2, 4, 8, 16, 32)), 0)
# repeats of the neighbours; an even number, so that the words are unchanged at the end
REPEATS = 16
# By round, in powers of two of a tile: 16 KiB, 256 KiB, 4 MiB, 64 KiB, 1 MiB, 16 MiB.
STRIPES = (
    0,
    4,
    8,
    2,
    6,
    10,
)
# The memory in which neighbours are repeated at a time. Half of it is written, and no L2 cache so
# far (128 MiB at most) can hold that.
WINDOW = (512 << 20) // WORD
BLOCKS = 64  # blocks of each half that are moved

Pattern = Callable[[int, int], Iterator[Pass]]


class _Whole:
    """Passes over all of a memory."""

    def __init__(self, words: int) -> None:
        self.words = words

    def fill(self, writes: Words) -> Pass:
        return Pass((Sweep(None, writes, 0, self.words),))

    def verify(self, reads: Words, *, descending: bool = False) -> Pass:
        return Pass((Sweep(reads, None, 0, self.words, descending=descending),))

    def turn(
        self, reads: Words, writes: Words, *, descending: bool = False, rest_s: float = 0.0
    ) -> Pass:
        return Pass((Sweep(reads, writes, 0, self.words, descending=descending),), rest_s)


def own_address(words: int, _round: int) -> Iterator[Pass]:
    """Every word holds its own number, then the inverse."""
    whole, number = _Whole(words), Words("number")
    yield whole.fill(number)
    yield whole.turn(number, number.inverse())
    yield whole.verify(number.inverse(), descending=True)


def walking_bits(words: int, turn: int) -> Iterator[Pass]:
    """One bit of 64 walks through the words and from step to step, first a one, then a zero."""
    whole = _Whole(words)
    steps = [
        Words("walk", (step * STEPS + turn) % 64, mask)
        for mask in (0, ALL)
        for step in range(STEPS)
    ]
    yield whole.fill(steps[0])
    for now, then in pairwise(steps):
        yield whole.turn(now, then)
    yield whole.verify(steps[-1])


def moving_inversions(words: int, turn: int) -> Iterator[Pass]:
    """For each background: ascending to its inverse, descending back, ascending to the next one."""
    whole, first = _Whole(words), turn % len(BACKGROUNDS)
    steps = [Words("constant", 0, mask) for mask in BACKGROUNDS[first:] + BACKGROUNDS[:first]]
    yield whole.fill(steps[0])
    for place, now in enumerate(steps):
        yield whole.turn(now, now.inverse())
        yield whole.turn(now.inverse(), now, descending=True)
        yield whole.turn(now, steps[place + 1]) if place + 1 < len(steps) else whole.verify(now)


def random_inverse(words: int, turn: int) -> Iterator[Pass]:
    """Random words, then their inverse."""
    whole, now = _Whole(words), Words("random", seed_of(4 * turn + 1))
    yield whole.fill(now)
    yield whole.turn(now, now.inverse())
    yield whole.verify(now.inverse(), descending=True)


def march_c(words: int, turn: int) -> Iterator[Pass]:
    """March C-: w0; up r0 w1; up r1 w0; down r0 w1; down r1 w0; r0.

    The 0 is a background, which changes from round to round.
    """
    whole, zero = _Whole(words), Words("constant", 0, BACKGROUNDS[turn % len(BACKGROUNDS) - 1])
    one = zero.inverse()
    yield whole.fill(zero)
    for descending in (False, True):
        yield whole.turn(zero, one, descending=descending)
        yield whole.turn(one, zero, descending=descending)
    yield whole.verify(zero)


def block_move(words: int, turn: int) -> Iterator[Pass]:
    """Copy random words of the lower half to the upper half, verify and invert them, copy back.

    The blocks are copied in reverse order. Each half is 64 blocks of whole tiles: up to 2 MiB at
    the end of the memory are left out.
    """
    blocks = min(BLOCKS, words // TILE // 2)
    size = words // TILE // 2 // blocks * TILE
    now = Words("random", seed_of(4 * turn + 2))
    pairs = [(block * size, (2 * blocks - 1 - block) * size) for block in range(blocks)]
    yield Pass((Sweep(None, now, 0, blocks * size),))
    yield Pass(tuple(Copy(low, high, size) for low, high in pairs))
    yield Pass(tuple(Sweep(now, now.inverse(), high, size, low - high) for low, high in pairs))
    yield Pass(tuple(Copy(high, low, size) for low, high in pairs))
    yield Pass((Sweep(now.inverse(), None, 0, blocks * size),))


def neighbours(words: int, turn: int) -> Iterator[Pass]:
    """Stripes of random words: every other stripe is read and overwritten 16 times.

    Then all are verified, and the other stripes have their turn. Up to two stripes at the end of
    the memory are left out of the repeats.
    """
    whole, now = _Whole(words), Words("random", seed_of(4 * turn + 3))
    stripe = min(STRIPES[turn % len(STRIPES)], (words // TILE).bit_length() - 2)
    windows = max(1, words // WINDOW)
    parts = [
        (place * WINDOW, WINDOW if place + 1 < windows else words - place * WINDOW)
        for place in range(windows)
    ]
    yield whole.fill(now)
    for role in (0, 1):
        yield Pass(
            tuple(
                Sweep(*pair, begin, count, stripe=stripe, role=role)
                for begin, count in parts
                for _ in range(REPEATS // 2)
                for pair in ((now, now.inverse()), (now.inverse(), now))
            )
        )
        yield whole.verify(now)


def retention(words: int, rest_s: float) -> Iterator[Pass]:
    """Random words, then their inverse, each left alone for `rest_s` seconds, then verified."""
    whole, now = _Whole(words), Words("random", seed_of(0))
    (sweep,) = whole.fill(now).works
    yield Pass((sweep,), rest_s)
    yield whole.turn(now, now.inverse(), rest_s=rest_s)
    yield whole.verify(now.inverse())


*_EVERY_ROUND, RETENTION = contract.PATTERNS  # retention: once in a run, after the first round
PATTERNS: dict[str, Pattern] = dict(
    zip(
        _EVERY_ROUND,
        (
            own_address,
            walking_bits,
            moving_inversions,
            random_inverse,
            march_c,
            block_move,
            neighbours,
        ),
        strict=True,
    )
)


def rest_s(seconds: float) -> float:
    """The length of each of the two pauses of `retention`: a twentieth of the time, 1 to 5 s."""
    return min(max(seconds / 20, 1.0), 5.0)
