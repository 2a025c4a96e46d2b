"""Random windows of a memory-mapped token file, as a training loader reads them.

    python -m acceptance.loads storage_memmap folder=DIR component=disk:nvme0n1
        bytes=1073741824 seconds=8

A file of `bytes` is written with 16-bit tokens that follow from a seed, and flushed. Then windows
of 1025 tokens (1024 and the next one, as a step of a context of 1024 needs them) at random tokens
are copied out of a read-only shared mapping, in four arms of a quarter of `seconds` each:

- `cold`: before each round of windows the page cache of the file is emptied, which mincore(2)
  shows, and the file is mapped anew. The kernel reads ahead around each page that is missing: a
  round has so few windows that this brings in at most an eighth of the file, else it does not
  count;
- `cold_random`: the same with MADV_RANDOM, which switches that off;
- `warm`, `warm_random`: the same with the whole file in the page cache. A round in which this
  process read from the disk does not count.

A rate is copied tokens / seconds of the copying, of all rounds of the arm together. Each window is
compared with the computed tokens after its round. In the cold arms the kernel's count of bytes that
this process read from disks must be at least the pages that the windows lie on.

A worker does all that: a page that the disk cannot give ends a process that touches it (SIGBUS).
The parent then reads the same place by pread(2) to learn the error.
"""

from __future__ import annotations

import faulthandler
import mmap
import resource
import struct
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from acceptance.core.message import english
from acceptance.core.parts import Component
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.ranks import RankLost, Ranks
from acceptance.loads.storage.contract import (
    ARMS,
    MEMMAP,
    MEMMAP_COLUMNS,
    MEMMAP_READINGS,
    Memmap,
)
from acceptance.loads.storage.job import LISTED, Job, read_bytes, require_cold
from acceptance.loads.storage.scratch_file import ScratchFile, StorageError, failed

if TYPE_CHECKING:  # numpy is loaded by the worker only
    from acceptance.loads.storage.tokens import Content, Places, Tokens

WINDOW = 1025  # tokens
TURN = 1
_NOWHERE = -1
_SHARE = 8  # a cold round may bring in this part of the file
_FIRST, _MOST = 4, 512  # windows of a round
_LOST = 20  # warm rounds that may have read from the disk, and do not count
_GRACE = 600.0  # seconds for the writing, beyond the time of the arms


@dataclass(frozen=True, slots=True)
class Reader:
    """The worker."""

    component: Component

    def prepare(self) -> None:
        """A SIGBUS that ends it is the parent's to tell: no traceback, no core."""
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass(slots=True)
class Tally:
    """One arm: its windows, how long each took, and the bytes from disk."""

    seconds: list[float] = field(default_factory=list)
    asked: int = 0
    counted: int = 0

    @property
    def rate(self) -> float:
        """Million tokens a second."""
        return WINDOW * len(self.seconds) / sum(self.seconds) / 1e6

    def microseconds(self, share: float) -> float:
        """The time that this share of the windows did not exceed."""
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))] * 1e6


def next_round(windows: int, counted: int, size: int) -> tuple[int, bool]:
    """Windows of the next cold round, and whether this one of `windows` counts.

    `counted` bytes of a file of `size` bytes came from the disk in it.
    """
    if counted > size // _SHARE:
        return max(windows // 2, 1), windows == 1
    return min(2 * windows, _MOST) if 2 * counted <= size // _SHARE else windows, True


def new_place() -> mmap.mmap:
    """Memory that worker and parent share: the token that the worker is reading, or -1."""
    place = mmap.mmap(-1, mmap.PAGESIZE)
    struct.pack_into("q", place, 0, _NOWHERE)
    return place


def gather(mapping: mmap.mmap, starts: Places, got: Tokens, place: mmap.mmap) -> list[float]:
    """Copy the windows out of the mapping; the seconds of each.

    `place` holds the token that is being read, for those who learn of a SIGBUS.
    """
    import numpy as np

    tokens = np.frombuffer(mapping, dtype="<u2")
    took = []
    for row, start in enumerate(starts.tolist()):
        struct.pack_into("q", place, 0, start)
        began = time.perf_counter()
        got[row] = tokens[start : start + WINDOW]
        took.append(time.perf_counter() - began)
    struct.pack_into("q", place, 0, _NOWHERE)
    return took


def pages(starts: Places) -> int:
    """The pages that the windows lie on."""
    import numpy as np

    first, last = 2 * starts // mmap.PAGESIZE, (2 * (starts + WINDOW) - 1) // mmap.PAGESIZE
    return int(np.unique(np.concatenate([first, last])).size)


def wrong_windows(
    component: Component, content: Content, file: str, number: int, starts: Places, got: Tokens
) -> list[Miscompare]:
    """The wrong windows of a round, whole words of the file with the tokens around put right."""
    import numpy as np

    from acceptance.loads.copy.pattern import fault
    from acceptance.loads.storage.tokens import PER_WORD, WORD, wrong_file

    found: list[Miscompare] = []
    for row in np.flatnonzero((content.windows(starts, WINDOW) != got).any(axis=1)):
        shift = int(starts[row]) % PER_WORD
        begin = int(starts[row]) // PER_WORD * WORD
        due = content.words(begin, -(-(shift + WINDOW) // PER_WORD))
        have = due.copy()
        have.view(np.uint16)[shift : shift + WINDOW] = got[row]
        if (wrong := fault(due, have)) is not None:
            found.append(wrong_file(component, "memmap", file, number, content, begin, wrong))
    return found


def work(
    ask: Memmap, job: Job, file: ScratchFile, place: mmap.mmap, connection: Connection
) -> None:
    """The worker's whole sequence: write the file, and take the arms in turn.

    It sends each wrong window, each arm's tally, and how many windows were wrong; or its trouble.
    """
    try:
        _measure(ask, job, file, place, connection)
    except StorageError as error:
        connection.send(("trouble", error))


def _measure(
    ask: Memmap, job: Job, file: ScratchFile, place: mmap.mmap, connection: Connection
) -> None:
    import numpy as np

    from acceptance.loads.storage.tokens import (
        BLOCK,
        TOKEN,
        Content,
        damage,
        read_whole,
        write_whole,
    )

    content = Content(job.seed, TURN)
    draw = np.random.default_rng(job.seed)
    write_whole(file, content)
    hit = file.size // BLOCK // 2 * BLOCK  # where a fault is made
    damage(file, content, ask.inject, hit, 0)
    room = np.empty((_MOST, WINDOW), dtype=np.uint16)
    tallies, wrong, number, lost = [], 0, 0, 0
    for arm in ARMS:
        warm, tally = arm.startswith("warm"), Tally()
        count = _MOST if warm else _FIRST
        if warm:
            read_whole(file)
        until = time.monotonic() + ask.seconds / len(ARMS)
        while not tally.seconds or time.monotonic() < until:
            got = room[:count]
            starts = draw.integers(0, file.size // TOKEN - WINDOW, count, endpoint=True)
            if number == 0:
                starts[0] = hit // TOKEN
            if not warm:
                file.drop()
            mapping = file.map(random=arm.endswith("random"))
            if number == 0 and ask.inject == "short":
                file.shorten(hit)
            got.fill(0)
            before = read_bytes()
            took = gather(mapping, starts, got, place)
            counted = read_bytes() - before
            del mapping
            if number == 0 and ask.inject == "flight":
                got[0, 0] ^= 1 << 5
            if not warm:
                require_cold(file.name, pages(starts) * mmap.PAGESIZE, counted)
            for one in wrong_windows(ask.disk, content, file.name, number, starts, got):
                wrong += 1
                if wrong <= LISTED:
                    connection.send(("miscompare", one))
            number += 1
            if not warm:
                count, counts = next_round(count, counted, file.size)
            elif counted:  # other work took pages of the file: they are brought in again
                lost += 1
                if lost > _LOST:
                    share = f"{file.resident():.1%}"
                    raise StorageError(
                        english(
                            "storage_not_in_memory",
                            "only {share} of {file} stayed in the page cache: too little memory "
                            "is free for a warm rate (`free -h`)",
                        ),
                        file=file.name,
                        share=share,
                    )
                read_whole(file)
                counts = False
            else:
                counts = True
            if counts:
                tally.seconds += took
                tally.asked += got.nbytes
                tally.counted += counted
        tallies.append(tally)
    connection.send(("done", (tallies, wrong)))


def lost(file: ScratchFile, place: mmap.mmap, error: RankLost) -> Exception:
    """Why the worker was lost: the trouble of the window that it was reading, if it was."""
    (start,) = struct.unpack_from("q", place)
    if start == _NOWHERE:
        return error
    offset = 2 * start
    try:
        file.read_into(offset, memoryview(bytearray(2 * WINDOW)))
    except StorageError as found:
        return found
    return failed("map", file.name, "SIGBUS", offset)


def measure(ask: Memmap, job: Job) -> None:
    """The whole load."""
    place = new_place()

    def told(_reader: Reader, said: Any) -> None:
        if isinstance(said, StorageError):
            raise said
        job.output.miscompare(said)

    with ScratchFile.create(job.folder, MEMMAP, ask.bytes // mmap.PAGESIZE * mmap.PAGESIZE) as file:
        reader = Reader(ask.disk)

        def body(_reader: Reader, connection: Connection) -> None:
            work(ask, job, file, place, connection)

        try:
            with Ranks((reader,), body) as ranks:
                tallies, wrong = ranks.collect("done", ask.seconds + _GRACE, told)[reader]
        except RankLost as error:
            raise lost(file, place, error) from None
    rates = [tally.rate for tally in tallies]
    for (name, unit), value in zip(MEMMAP_READINGS.items(), (*rates, wrong), strict=True):
        job.output.reading(name, unit, ask.disk, value)
    job.output.table(
        MEMMAP,
        MEMMAP_COLUMNS,
        [
            (
                arm,
                len(tally.seconds),
                tally.rate,
                tally.asked,
                tally.counted,
                tally.microseconds(0.5),
                tally.microseconds(0.99),
            )
            for arm, tally in zip(ARMS, tallies, strict=True)
        ],
    )
