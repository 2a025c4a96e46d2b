"""A run sealed again, as whoever holds its folder can."""

from __future__ import annotations

import hashlib
from pathlib import Path

from acceptance.core.evidence import Sealed, SealedFile
from acceptance.journal import reader, seal, segment


def anew(run_dir: Path) -> None:
    """Seal the run again; the last record of its supervisor was a seal."""
    path = run_dir / reader.SUPERVISOR
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    last(path)


def last(path: Path) -> None:
    """Write a seal of the run after the last record of this segment."""
    found = segment.read_segment(path)
    assert found.head is not None
    evidence = seal.evidence(path.parent).items()
    files = tuple(_sealed(name, one.read_bytes()) for name, one in evidence)
    body = Sealed(seal.digest_of(found.head.run_id, found.head.machine_id, files), files)
    entry = found.entries[-1]
    line = segment.SegmentLine(entry.seq + 1, entry.boot_s + 1.0, entry.utc, body)
    path.write_bytes(path.read_bytes() + segment.encoded(line) + b"\n")


def _sealed(name: str, data: bytes) -> SealedFile:
    return SealedFile(name, data.count(b"\n"), hashlib.sha256(data).hexdigest())
