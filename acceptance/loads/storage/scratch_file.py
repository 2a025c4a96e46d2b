"""A file of our own in a folder of our own: made, flushed, dropped from the page cache, removed.

No other file is ever opened: a file is created exclusively under the descriptor of the folder, and
neither the folder nor the file may be a symbolic link. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from acceptance.core import disk_error
from acceptance.core.message import Coded, english
from acceptance.loads.program import LoadError

Operation = Literal["open", "create", "reserve", "write", "flush", "rename", "read", "map"]

# What failed, by the operation: a file of ours is open for writing before it is written.
_FAILED: Mapping[str, disk_error.Operation] = dict.fromkeys(
    ("open", "create", "reserve"), disk_error.Operation.FILE
) | dict.fromkeys(("write", "flush", "rename", "read", "map"), disk_error.Operation.DATA_TO_WRITE)
SHORT = "short"  # the name of no error: the file ends before what was written to it
_DROPS = 50  # attempts: pages that another processor has in hand are dropped a moment later
_DROP_S = 0.01
_LOWEST_BIT = bytes(flag & 1 for flag in range(256))  # mincore(2) reserves the others


class StorageError(Coded, LoadError):
    """The load cannot go on, with the reason. `fault` is an error that the disk answers for."""

    fault: DiskFault | None = None


@dataclass(frozen=True, slots=True)
class DiskFault:
    """An operation on a file that failed by the disk: its error's name, and where it was."""

    operation: Operation
    file: str
    error: str
    offset: int | None


def refused(
    error: OSError, operation: Operation, file: str, offset: int | None = None
) -> StorageError:
    """What an error of the kernel says of this operation."""
    number = error.errno or 0
    name = errno.errorcode.get(number, str(number))
    if disk_error.is_fault(number, _FAILED[operation]):
        return failed(operation, file, name, offset)
    match number:
        case errno.ENOSPC | errno.EDQUOT:
            code = english(
                "storage_full",
                "{operation} of {file} ended with {error}: the filesystem is full; free some room "
                "or name another `scratch` in the machine file",
            )
        case errno.EROFS:
            code = english(
                "storage_read_only",
                "{operation} of {file} ended with {error}: the filesystem is mounted read-only; "
                "name another `scratch` in the machine file, or mount it for writing",
            )
        case errno.ENOENT:
            code = english(
                "storage_missing", "{operation} of {file} ended with {error}: it is not there"
            )
        case errno.EACCES | errno.EPERM:
            code = english(
                "storage_denied",
                "{operation} of {file} ended with {error}: this user may not; see the owner and "
                "the mode of the folder",
            )
        case errno.EEXIST:
            code = english(
                "storage_exists",
                "{operation} of {file} ended with {error}: something of that name is there, and "
                "is left as it is",
            )
        case errno.ELOOP | errno.ENOTDIR:
            code = english(
                "storage_no_folder",
                "{operation} of {file} ended with {error}: it is a symbolic link or no folder; "
                "name the folder itself",
            )
        case _:
            code = english(
                "storage_refused",
                "{operation} of {file} ended with {error}: the kernel or the filesystem does not "
                "do that here",
            )
    return StorageError(code, operation=operation, file=file, error=name)


def failed(operation: Operation, file: str, error: str, offset: int | None) -> StorageError:
    """An operation that the disk failed."""
    found = StorageError(
        "storage_disk_failed", operation=operation, file=file, error=error, offset=offset
    )
    found.fault = DiskFault(operation, file, error, offset)
    return found


@contextmanager
def guard(operation: Operation, file: str, offset: int | None = None) -> Iterator[None]:
    """Turn an OSError of the block into its StorageError."""
    try:
        yield
    except OSError as error:
        raise refused(error, operation, file, offset) from None


def open_folder(path: Path) -> int:
    """The descriptor of the folder; a symbolic link is refused."""
    with guard("open", str(path)):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def flush_folder(folder: int, name: str) -> None:
    """Make the names in the folder reach the disk."""
    with guard("flush", name):
        os.fsync(folder)


def remove(folder: int, name: str) -> None:
    """Remove a file of ours that may be there, also on a filesystem that fails."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


class ScratchFile:
    """An open file of ours, of `size` bytes; the `with` block closes and removes it."""

    def __init__(self, folder: int, name: str, descriptor: int, size: int) -> None:
        self.folder, self.name, self.descriptor, self.size = folder, name, descriptor, size
        self.kept = False

    @classmethod
    def create(cls, folder: int, name: str, size: int) -> ScratchFile:
        """Create it where no such name is, and reserve its room.

        Raises StorageError; then there is no file.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with guard("create", name):
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        made = cls(folder, name, descriptor, size)
        try:
            with guard("reserve", name):
                os.posix_fallocate(descriptor, 0, size)
        except StorageError:
            made.close()
            raise
        return made

    @classmethod
    def open(cls, folder: int, name: str) -> ScratchFile:
        """Open one of an earlier run for reading; it stays.

        Raises StorageError where it is not there or is no regular file of this user.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with guard("open", name):
            descriptor = os.open(name, flags, dir_fd=folder)
        about = os.fstat(descriptor)
        made = cls(folder, name, descriptor, about.st_size)
        made.kept = True
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            made.close()
            raise StorageError(
                english(
                    "storage_not_ours", "{file} is no plain file of this user: it is left as it is"
                ),
                file=name,
            )
        return made

    def __enter__(self) -> ScratchFile:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and remove it where it is not kept."""
        os.close(self.descriptor)
        if not self.kept:
            remove(self.folder, self.name)

    def write(self, offset: int, data: memoryview) -> None:
        """Write all bytes at this place."""
        done = 0
        while done < len(data):
            with guard("write", self.name, offset + done):
                done += os.pwrite(self.descriptor, data[done:], offset + done)

    def flush(self) -> None:
        """Return when the kernel says that all is on the disk."""
        with guard("flush", self.name):
            os.fsync(self.descriptor)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the buffer from this place; a file that ends before is a fault of the disk."""
        done = 0
        while done < len(buffer):
            with guard("read", self.name, offset + done):
                got = os.preadv(self.descriptor, [buffer[done:]], offset + done)
            if got == 0:
                raise failed("read", self.name, SHORT, offset + done)
            done += got

    def shorten(self, size: int) -> None:
        """Cut its end off, for `inject=short`."""
        os.ftruncate(self.descriptor, size)

    def rename(self, name: str) -> None:
        """Give it this name in the same folder, in the place of what has it."""
        with guard("rename", self.name):
            os.rename(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        self.name = name

    def map(self, *, random: bool) -> mmap.mmap:
        """Its read-only mapping, with or without the advice that reads will be random."""
        with guard("map", self.name):
            there = os.fstat(self.descriptor).st_size
        if there < self.size:
            raise failed("map", self.name, SHORT, there)
        with guard("map", self.name):
            mapping = mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ)
            if random:
                mapping.madvise(mmap.MADV_RANDOM)
        return mapping

    def resident(self) -> float:
        """The share of its pages that lie in the page cache, by mincore(2)."""
        return _resident(self.descriptor, self.size, self.name)

    def drop(self) -> None:
        """Empty the page cache of this file, and of nothing else.

        Raises StorageError where pages stay.
        """
        self.flush()
        for _ in range(_DROPS):
            with guard("flush", self.name):
                os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            if not (left := self.resident()):
                return
            time.sleep(_DROP_S)
        raise StorageError(
            english(
                "storage_cached",
                "{share} of {file} stays in the page cache after it was dropped: reading it would "
                "not read the disk (is it on a RAM disk, or does another program use it?)",
            ),
            file=self.name,
            share=f"{left:.1%}",
        )


def _resident(descriptor: int, size: int, name: str) -> float:
    """The resident share of the pages, of a mapping of their own that reads none of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    length = ctypes.c_size_t(size)
    address = libc.mmap(
        None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, ctypes.c_longlong(0)
    )
    if address == ctypes.c_void_p(-1).value:
        raise refused(OSError(ctypes.get_errno(), "mmap"), "map", name)
    pages = -(-size // mmap.PAGESIZE)
    flags = (ctypes.c_ubyte * pages)()
    got = libc.mincore(ctypes.c_void_p(address), length, flags)
    number = ctypes.get_errno()
    libc.munmap(ctypes.c_void_p(address), length)
    if got != 0:
        raise refused(OSError(number, "mincore"), "map", name)
    return bytes(flags).translate(_LOWEST_BIT).count(1) / pages
