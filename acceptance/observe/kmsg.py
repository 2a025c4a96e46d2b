"""/dev/kmsg: the kernel's messages, read as they arrive.

Read only; each read(2) returns one record (Documentation/ABI/testing/dev-kmsg).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from acceptance.core.message import Unmeasured, english
from acceptance.observe.kernel_line import KernelLine, pieces, unescape
from acceptance.wording.errors import NotMeasurable, WordedError

# The kernel refuses (EINVAL) a buffer that is smaller than the record. PRINTK_MESSAGE_MAX is 2048,
# and escaping may quadruple it.
_BUFFER = 16384
# A kernel that logs faster than we read must not block the caller; the next call reads the rest.
_BATCH = 10_000
_RECORD = re.compile(
    r"^(?P<priority>\d{1,5}),(?P<sequence>\d{1,19}),(?P<usec>\d{1,18}),[^;]*;(?P<text>.*)$"
)


@dataclass(frozen=True, slots=True)
class KmsgRecord:
    """One message: sequence number, seconds since boot, syslog level, and unescaped text.

    The level is 0 (emergency) to 7 (debug); None where a program wrote the message, not the kernel.
    """

    sequence: int
    seconds_since_boot: float
    level: int | None
    text: str


def parse_records(text: str) -> tuple[KmsgRecord, ...]:
    """The records of raw kmsg text.

    The ` KEY=value` lines after a record describe its device and are left out.

    Raises WordedError, with the line, for any other line.
    """
    found = []
    for line in text.split("\n"):
        if line == "" or line.startswith(" "):
            continue
        match = _RECORD.match(line)
        if match is None:
            raise WordedError(
                english("no_kmsg_record", "not a kmsg record: {line}"), line=repr(line[:160])
            )
        found.append(
            KmsgRecord(
                int(match["sequence"]),
                int(match["usec"]) / 1e6,
                _level(int(match["priority"])),
                unescape(match["text"]),
            )
        )
    return tuple(found)


def _level(priority: int) -> int | None:
    """The level in a priority of the kernel; of programs it has another facility than 0."""
    facility, level = divmod(priority, 8)
    return None if facility else level


def as_lines(records: Iterable[KmsgRecord]) -> tuple[KernelLine, ...]:
    """The records in the form that `kernel_log.events_of` takes."""
    return tuple(
        part
        for record in records
        for text in record.text.split("\n")
        if text.strip()
        for part in pieces(
            KernelLine(text, record.seconds_since_boot, stamped=True, level=record.level)
        )
    )


def gap(sequences: Sequence[int], after: int | None) -> bool:
    """Whether records are missing before or between these; the kernel numbers them without gaps.

    `after` is the number of the last record that was read, or None.
    """
    expected = after
    for sequence in sequences:
        if expected is not None and sequence != expected + 1:
            return True
        expected = sequence
    return False


class Kmsg:
    """The kernel's log, read without waiting. A context manager.

    `since` is "boot" (everything that the kernel still holds) or "now" (only new messages). `lost`
    turns True and stays True when records were overwritten before they were read, including those
    older than the oldest one left; then the absence of a message proves nothing. Raises
    NotMeasurable when the log cannot be opened or read.
    """

    def __init__(self, root: Path = Path("/"), *, since: Literal["boot", "now"] = "boot") -> None:
        self.lost = False
        self._path = root / "dev/kmsg"
        self._rest = b""
        # The first record of a boot has number 0.
        self._last: int | None = -1 if since == "boot" else None
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise self._unreadable(error) from error
        if since == "now":
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def read_new(self) -> list[KmsgRecord]:
        """All records since the last call, oldest first.

        Does not wait, and returns at most 10,000 records.
        """
        data = self._rest
        for _ in range(_BATCH):
            try:
                chunk = os.read(self._descriptor, _BUFFER)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    break
                # EPIPE: overwritten; the next read returns the oldest record left
                if error.errno != errno.EPIPE:
                    raise self._unreadable(error) from error
                self.lost = True
                continue
            if chunk == b"":
                break
            data += chunk
        whole, _, self._rest = data.rpartition(b"\n")
        try:
            records = parse_records(whole.decode("utf-8", errors="replace"))
        except WordedError as error:
            raise NotMeasurable(
                english(
                    "kernel_log_unknown",
                    "{path} holds what rigproof cannot read ({why}): please report it",
                ),
                Unmeasured.NO_ANSWER,
                path=str(self._path),
                why=error.message,
            ) from error
        self.lost = self.lost or gap([record.sequence for record in records], self._last)
        if records:
            self._last = records[-1].sequence
        return list(records)

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _unreadable(self, error: OSError) -> NotMeasurable:
        why = Unmeasured.NOT_PERMITTED
        if error.errno in (errno.EACCES, errno.EPERM):
            code = english(
                "kernel_log_forbidden",
                "{path} cannot be read ({why}): run rigproof as root, or let everyone read it "
                "with `sudo sysctl kernel.dmesg_restrict=0`",
            )
        elif error.errno == errno.ENOENT:  # every kernel has a log: this container was not given it
            code = english(
                "kernel_log_absent",
                "{path} cannot be read ({why}): in a container, read it on the host",
            )
        else:
            code = english(
                "kernel_log_unread",
                "{path} cannot be read ({why}): read it with `dmesg` to see what is wrong",
            )
            why = Unmeasured.NO_ANSWER
        return NotMeasurable(code, why, path=str(self._path), why=error.strerror)
