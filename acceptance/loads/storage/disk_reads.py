"""What this process read from disks, by the kernel's own count, beside what it asked for.

`read_bytes` of /proc/self/io counts what reads of this process fetched from the storage layer
(proc_pid_io(5)): data out of the page cache, of a tmpfs or of an overlay's memory adds nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from acceptance.loads.storage.scratch_file import StorageError

_READ = re.compile(r"(?m)^read_bytes: (\d+)$", re.ASCII)


def read_bytes(root: Path = Path("/")) -> int:
    """The bytes read from disks until now. Raises StorageError where the kernel does not say."""
    path = root / "proc/self/io"
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeError):
        text = ""
    if (found := _READ.search(text)) is None:
        raise StorageError("storage_reads_uncounted", file=str(path))
    return int(found[1])


def require_cold(file: str, asked: int, counted: int) -> None:
    """Raise StorageError where less came from the disk than was read: it is no disk's rate."""
    if counted < asked:
        raise StorageError("storage_not_from_disk", file=file, asked=asked, counted=counted)
