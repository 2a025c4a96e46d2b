"""The sealed file: written by one run and read by later ones, to find rot at rest.

    python -m acceptance.loads storage_kept way=write folder=DIR component=disk:nvme0n1
        bytes=1073741824 machine=ID

The file `sealed` of `bytes` in all begins with a header: a line with its length and digest, and a
JSON object with version, seed, bytes of content, machine id, and the BLAKE2b digest of each piece
of 1 MiB. The content follows from the seed. A new one is written after the old one is gone, is
flushed, gets its name, and is read back at once as later runs read it.

Reading empties the page cache of the file, reads it whole, and holds every piece against its
digest; of a piece that differs every block of 4 KiB is compared with the computed words. A header
that does not fit its own digest is a wrong block at offset 0. The kernel's count of bytes from
disks must be at least what was read. A file of another machine or version is no evidence: an error.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from acceptance.core.message import english
from acceptance.core.strict import Strict, Text
from acceptance.loads.miscompare import WrongFile
from acceptance.loads.storage.contract import KEPT_ERRORS, Canary
from acceptance.loads.storage.job import Job, read_bytes, require_cold
from acceptance.loads.storage.scratch_file import ScratchFile, StorageError, flush_folder, remove
from acceptance.loads.storage.tokens import (
    BLOCK,
    PIECE,
    SEED_BITS,
    WORD,
    Content,
    damage,
    faults,
    flip,
    pieces,
    wrong_file,
)

FILE = "sealed"
_MAKING = "sealed.tmp"
VERSION = 1
TURN = 1
_MARK = b"rigproof sealed file"
_FIRST = re.compile(rb"rigproof sealed file (\d{1,9}) ([0-9a-f]{32})\n")
_LINE = 128  # bytes of the first line, with what fills it
_DIGEST = 16  # bytes

Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]


class Header(Strict, frozen=True):
    """What the file says of itself."""

    version: int
    seed: Annotated[int, Meta(ge=1, lt=1 << SEED_BITS)]
    bytes: Annotated[int, Meta(ge=BLOCK, multiple_of=BLOCK)]
    machine: Text
    digests: tuple[Digest, ...]

    @property
    def content(self) -> Content:
        """What follows it."""
        return Content(self.seed, TURN)


def digest(data: memoryview | bytes) -> str:
    """The digest of a piece."""
    return hashlib.blake2b(data, digest_size=_DIGEST).hexdigest()


def header_bytes(size: int) -> int:
    """The room of the header of a file of `size` bytes in all: whole blocks."""
    # 35 bytes a digest with its quotes and comma; the machine id and the rest fit a block.
    room = _LINE + BLOCK + 35 * -(-size // PIECE)
    return -(-room // BLOCK) * BLOCK


def encode(header: Header, room: int) -> bytes:
    """The header as it lies in the file. Raises ValueError where it has no room."""
    body = msgspec.json.encode(header)
    first = b"%s %d %s\n" % (_MARK, len(body), digest(body).encode())
    made = first.ljust(_LINE, b"\n") + body
    if len(made) > room:
        raise ValueError(f"the header has {len(made)} bytes, more than the {room} of its room")
    return made.ljust(room, b"\n")


class BrokenHeader(Exception):
    """The header does not fit its own digest: what it should have, and what it has."""


def decode(data: bytes, name: str) -> Header:
    """The header at the beginning of a file.

    Raises StorageError where it is none of ours, and BrokenHeader where it was.
    """
    if (first := _FIRST.match(data)) is None:
        raise StorageError(
            english("kept_unknown", "{file} is no sealed file of this version of rigproof"),
            file=name,
        )
    body = data[_LINE : _LINE + int(first[1])]
    if (got := digest(body)) != first[2].decode():
        raise BrokenHeader(first[2].decode(), got)
    try:
        header = msgspec.json.decode(body, type=Header)
    except msgspec.MsgspecError:
        raise StorageError("kept_unknown", file=name) from None
    if header.version != VERSION or len(header.digests) != -(-header.bytes // PIECE):
        raise StorageError("kept_unknown", file=name)
    return header


def measure(ask: Canary, job: Job) -> None:
    """The whole load."""
    if ask.way == "write":
        _write(ask, job)
        return
    with ScratchFile.open(job.folder, FILE) as file:
        _verify(ask, job, file)


def _write(ask: Canary, job: Job) -> None:
    """Write the sealed file in the place of an earlier one, and read it back."""
    for earlier in (FILE, _MAKING):  # only one of them has room
        remove(job.folder, earlier)
    size = ask.bytes // BLOCK * BLOCK
    room = header_bytes(size)
    content = Content(job.seed, TURN)
    with ScratchFile.create(job.folder, _MAKING, size) as file:
        digests = []
        for offset, part in pieces(size - room):
            data = content.words(offset, part // WORD).data.cast("B")
            file.write(room + offset, data)
            digests.append(digest(data))
        header = Header(VERSION, job.seed, size - room, ask.machine, tuple(digests))
        file.write(0, memoryview(encode(header, room)))
        file.flush()
        hit = (size - room) // BLOCK // 2 * BLOCK
        damage(file, content, ask.inject, hit, room)
        if ask.inject == "short":
            file.shorten(room + hit)
        file.rename(FILE)
        flush_folder(job.folder, FILE)
        _verify(ask, job, file)
        file.kept = ask.inject is None


def _verify(ask: Canary, job: Job, file: ScratchFile) -> None:
    if not file.size:
        raise StorageError("kept_unknown", file=file.name)
    room = header_bytes(ask.bytes // BLOCK * BLOCK)
    file.drop()
    before = read_bytes()
    head = bytearray(room)
    file.read_into(0, memoryview(head))
    try:
        header = decode(bytes(head), file.name)
    except BrokenHeader as broken:
        want, got = (int(one, 16) for one in broken.args)
        job.output.miscompare(
            WrongFile(
                component=ask.disk,
                check="kept",
                file=file.name,
                number=0,
                block=0,
                offset=0,
                words=1,
                unwritten=0,
                want=f"{want:032x}",
                got=f"{got:032x}",
                xor=f"{want ^ got:032x}",
            )
        )
        job.output.note("the header does not fit its digest: what follows it was not read")
        job.output.reading(KEPT_ERRORS, "count", ask.disk, 1)
        return
    if header.machine != ask.machine:
        raise StorageError(
            english("kept_of_another", "{file} is the sealed file of another machine, {machine}"),
            file=file.name,
            machine=header.machine,
        )
    if header_bytes(room + header.bytes) != room:
        raise StorageError(
            english("kept_other_size", "{file} has {bytes} bytes, another size than is due"),
            file=file.name,
            bytes=room + header.bytes,
        )
    _compare_blocks(ask, job, file, header, room)
    counted = read_bytes() - before
    require_cold(file.name, room + header.bytes, counted)
    job.output.note(
        f"{room + header.bytes} bytes read and compared; the kernel counts {counted} bytes from "
        "the disk"
    )
    job.output.reading(KEPT_ERRORS, "count", ask.disk, job.wrong)


def _compare_blocks(ask: Canary, job: Job, file: ScratchFile, header: Header, room: int) -> None:
    got = np.empty(PIECE // WORD, dtype=np.uint64)
    for (offset, size), due in zip(pieces(header.bytes), header.digests, strict=True):
        words = got[: size // WORD]
        words.fill(0)
        file.read_into(room + offset, words.data.cast("B"))
        if offset == 0 and ask.inject == "flight":
            flip(words, 1)
        if digest(words.data.cast("B")) != due:
            for place, found in faults(header.content, offset, words):
                one = wrong_file(ask.disk, "kept", file.name, 0, header.content, place, found)
                at, of = one.offset + room, one.of_offset
                moved = None if of is None else of + room
                job.count(
                    msgspec.structs.replace(one, offset=at, block=at // BLOCK, of_offset=moved)
                )
