"""What an error number says of the disk: the one table for programs of others and for our loads.

A disk under test is at fault only where the kernel itself says so. The block layer gives its
reasons as numbers (block/blk-core.c, `blk_errors`): ENODATA is a medium error, EREMOTEIO the
target, ENOLINK the transport, EILSEQ protection information, ENODEV a device that is offline.
EUCLEAN and EBADMSG are EFSCORRUPTED and EFSBADCRC of ext4, XFS and btrfs; ENXIO is a device that
is gone, ESTALE a file that its server lost.

Every other number proves no fault of a disk: those of the set-up say so themselves, and the rest
says nothing of it. None is ever a pass.
"""

from __future__ import annotations

import errno
import os
from enum import IntEnum


class Operation(IntEnum):
    """What failed, as far as it is known; a later one is all that the earlier ones are."""

    ANY = 0  # any system call
    FILE = 1  # of a file or a disk: it was opened, made, extended
    DATA = 2  # data of an open file: it was read, written, flushed
    DATA_TO_WRITE = 3  # data of a file that was open for writing


# From which operation on a number proves a fault.
_PROOF: dict[int, Operation] = {
    errno.EIO: Operation.ANY,
    errno.EREMOTEIO: Operation.ANY,
    errno.EUCLEAN: Operation.ANY,
    # Semaphores, sockets, message queues and attributes of files answer so too.
    errno.ENODATA: Operation.FILE,
    errno.ENOLINK: Operation.FILE,
    errno.EBADMSG: Operation.FILE,
    errno.EILSEQ: Operation.FILE,
    errno.ETIMEDOUT: Operation.FILE,
    errno.ESTALE: Operation.FILE,
    # A device file without a driver cannot be opened.
    errno.ENODEV: Operation.DATA,
    errno.ENXIO: Operation.DATA,
    # A file system that was mounted read-only lets nobody open a file for writing: the kernel took
    # it away later, after errors (`errors=remount-ro`).
    errno.EROFS: Operation.DATA_TO_WRITE,
}
# Refusals and shortages: the machine is as it was set up, whatever the operation was.
_SET_UP = frozenset(
    {
        *(errno.EPERM, errno.EACCES, errno.EROFS, errno.EBUSY, errno.ETXTBSY),
        *(errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE),
        *(errno.EINTR, errno.EAGAIN, errno.ENOSYS, errno.EOPNOTSUPP),
        *(errno.ENODEV, errno.ENXIO, errno.ENOMEDIUM, errno.EMEDIUMTYPE),
    }
)
_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


def is_fault(number: int, operation: Operation) -> bool:
    """Whether the disk is at fault if this operation failed with this number of errno."""
    return number in _PROOF and operation >= _PROOF[number]


def is_set_up(number: int) -> bool:
    """Whether the number is a refusal or a shortage, wherever it does not prove a fault."""
    return number in _SET_UP


def number_of(words: str) -> int | None:
    """The number of errno that the C library words so; None if there is none."""
    return _NUMBERS.get(words)
