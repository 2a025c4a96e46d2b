"""One errno means the same in every text and for every load of ours."""

from __future__ import annotations

import errno
import os

import pytest
from cases import each

from acceptance.core import disk_error
from acceptance.core.disk_error import Operation
from acceptance.loads.storage import scratch_file
from acceptance.tools import fio, stress_ng, stressapptest

ALWAYS = ("EIO", "EREMOTEIO", "EUCLEAN")
OF_FILES = ("ENODATA", "ENOLINK", "EBADMSG", "EILSEQ", "ETIMEDOUT", "ESTALE")
OF_DATA = ("ENODEV", "ENXIO")
NEVER = (
    *("EPERM", "EACCES", "EBUSY", "ENOSPC", "EDQUOT", "ENOMEM", "EMFILE", "EINVAL", "ENOENT"),
    *("EMEDIUMTYPE", "ENOMEDIUM", "EOPNOTSUPP", "ENOSYS", "EINTR", "EAGAIN", "ELOOP"),
)


def from_operation(name: str) -> Operation | None:
    """The first operation with which an error proves a fault; None without any."""
    number = getattr(errno, name)
    found = [operation for operation in Operation if disk_error.is_fault(number, operation)]
    assert found == [one for one in Operation if found and one >= found[0]]
    return found[0] if found else None


def test_what_each_errno_proves() -> None:
    due = (
        dict.fromkeys(ALWAYS, Operation.ANY)
        | dict.fromkeys(OF_FILES, Operation.FILE)
        | dict.fromkeys(OF_DATA, Operation.DATA)
        | {"EROFS": Operation.DATA_TO_WRITE}
    )
    assert {name: from_operation(name) for name in due} == due
    assert {name: from_operation(name) for name in errno.errorcode.values() if name not in due} == {
        name: None for name in errno.errorcode.values() if name not in due
    }


def test_words_of_the_c_library() -> None:
    assert disk_error.number_of("Read-only file system") == errno.EROFS
    assert disk_error.number_of("Success") is None


SAT = "Process Error: Unable to submit async read on disk /dev/sda (thread 0). Error {}, {}\n"


@each("name", [*ALWAYS, *OF_FILES, *OF_DATA, *NEVER])
def test_every_reader_says_the_same_of_data_that_were_not_read(name: str) -> None:
    number = getattr(errno, name)
    words = os.strerror(number)
    outcome = "fail" if name in (*ALWAYS, *OF_FILES, *OF_DATA) else "error"
    for text in (
        f"fio: io_u error on file /x: {words}: read offset=0, buflen=4096\n",
        f"fio: pid=7, err={number}/file:io_u.c:1876, func=io_u error, error={words}\n",
    ):
        assert fio.parse(text).outcome == outcome, text
    line = f"stress-ng: fail:  [7] hdd: read failed, errno={number} ({words})\n"
    assert stress_ng.parse(line).outcome == outcome
    if name != "EINTR":  # the reader of stressapptest takes what a signal interrupted for a stop
        assert stressapptest.parse(SAT.format(number, words)).outcome == outcome
    own = scratch_file.refused(OSError(number, words), "read", "file")
    assert (own.fault is not None) == (outcome == "fail")


@each("name", [*OF_DATA, "EROFS", *NEVER])
def test_what_cannot_be_opened_proves_no_fault(name: str) -> None:
    number = getattr(errno, name)
    words = os.strerror(number)
    line = f"fio: pid=0, err={number}/file:filesetup.c:224, func=open(/x), error={words}\n"
    more = f"fio: io_u error on file /x: {words}: write offset=0, buflen=4096\n"
    for text in (line, line + more, more + line):
        assert fio.parse(text).outcome == "error"
    line = f"stress-ng: fail:  [7] hdd: open /x failed, errno={number} ({words})\n"
    assert stress_ng.parse(line).outcome == "error"
    assert scratch_file.refused(OSError(number, words), "create", "file").fault is None


@each("name", [*ALWAYS, *OF_FILES])
def test_what_the_kernel_says_of_a_file_that_it_cannot_open_is_a_fault(name: str) -> None:
    number = getattr(errno, name)
    line = f"fio: pid=0, err={number}/file:filesetup.c:224, func=open(/x), error=x\n"
    assert fio.parse(line).outcome == "fail"
    assert scratch_file.refused(OSError(number, "x"), "open", "file").fault is not None


def test_a_file_system_that_was_mounted_read_only() -> None:
    mounted = (
        "fio: pid=0, err=30/file:filesetup.c:224, func=write, error=Read-only file system\n"
        "fio: io_u error on file /x: Read-only file system: read offset=0, buflen=4096\n"
    )
    assert fio.parse(mounted).outcome == "error"
    alone = mounted.splitlines(keepends=True)[1]
    assert fio.parse(alone).outcome == "error"
    # a file that was open for writing: the kernel took it away
    assert fio.parse(alone.replace("read offset", "write offset")).outcome == "fail"
    assert fio.parse(mounted.replace("read offset", "write offset")).outcome == "error"
    line = "stress-ng: fail:  [7] hdd: write failed, errno=30 (Read-only file system)\n"
    assert stress_ng.parse(line).outcome == "error"
    for operation, fault in (("create", False), ("reserve", False), ("write", True)):
        refused = scratch_file.refused(OSError(errno.EROFS, "x"), operation, "file")
        assert (refused.fault is not None) == fault


@pytest.mark.parametrize("number", [110, 61])
def test_a_system_call_of_no_file_is_no_disk(number: int) -> None:
    assert not disk_error.is_fault(number, Operation.ANY)
    assert not disk_error.is_set_up(number)
    assert disk_error.is_set_up(errno.ENODEV)
