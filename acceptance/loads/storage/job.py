"""What all storage loads share: their folder and wrong blocks, memory, and reads from the disk.

`read_bytes` of /proc/self/io counts what reads of this process fetched from the storage layer
(proc_pid_io(5)): data out of the page cache, of a tmpfs or of an overlay's memory adds nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.limit import GIB
from acceptance.core.message import Quantity, english
from acceptance.loads.miscompare import WrongFile
from acceptance.loads.protocol import Output
from acceptance.loads.storage.scratch_file import StorageError

LISTED = 64  # wrong blocks that a load reports; it counts all
_READ = re.compile(r"(?m)^read_bytes: (\d+)$", re.ASCII)
SEED_BITS = 20  # as in `tokens`, which loads numpy


@dataclass(slots=True)
class Job:
    """A running load: the descriptor of its folder, the seed of its files, its output, and how many
    blocks were wrong.
    """

    folder: int
    seed: int
    output: Output
    wrong: int = 0

    def count(self, wrong: WrongFile) -> None:
        """Count a wrong block, and report it where it is among the first."""
        self.wrong += 1
        if self.wrong <= LISTED:
            self.output.miscompare(wrong)


def require_memory(needed: int, available: int) -> None:
    """Raise StorageError where buffers of `needed` bytes take over half of the free memory."""
    if 2 * needed > available:
        raise StorageError(
            english(
                "storage_no_memory",
                "its buffers need {needed}, more than half of the {available} of memory that are "
                "available",
            ),
            needed=Quantity(needed / GIB, "GiB"),
            available=Quantity(available / GIB, "GiB"),
        )


def read_bytes(root: Path = Path("/")) -> int:
    """The bytes read from disks until now. Raises StorageError where the kernel does not say."""
    path = root / "proc/self/io"
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeError):
        text = ""
    if (found := _READ.search(text)) is None:
        raise StorageError(
            english(
                "storage_reads_uncounted",
                "{file} has no line `read_bytes`: the kernel does not say what was read from the "
                "disk",
            ),
            file=str(path),
        )
    return int(found[1])


def require_cold(file: str, asked: int, counted: int) -> None:
    """Raise StorageError where less came from the disk than was read: it is no disk's rate."""
    if counted < asked:
        raise StorageError(
            english(
                "storage_not_from_disk",
                "{asked} bytes of {file} were read, and only {counted} came from the disk by the "
                "kernel's count: a cache gave the rest",
            ),
            file=file,
            asked=asked,
            counted=counted,
        )
