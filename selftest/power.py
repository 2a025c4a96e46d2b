"""A power cut, as far as it can be had without one: every process dies at once, and what had not
been brought to the disk is lost.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from acceptance.journal import reader
from acceptance.process import reaper

# Records that are brought to the disk with the next one that is not of these: see
# acceptance.journal.segment.
LAZY = ("measured", "table", "skipped", "tool-ran", "observed")
SYNCED_S = 1.0  # telemetry reaches the disk once a second


class _Body(msgspec.Struct):
    record: str


class _Line(msgspec.Struct):
    boot_s: float
    body: _Body


def off(pid: int, left: Callable[[], Mapping[int, str]], containers: Iterable[Any]) -> None:
    """Kill a harness with all that it has started.

    It is stopped first, so that it sees nothing of the others' end.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for one in containers:
        with contextlib.suppress(Exception):
            one.kill()
    for _ in range(3):  # what was being forked is seen at the second look
        for number in {*reaper.descendants(pid), *left(), pid} - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


def lose(folder: Path, chance: random.Random) -> None:
    """Cut each segment anywhere behind what is known to have reached the disk, in the middle of
    a line as well. Of a sealed run all is there.
    """
    if any(b'"record":"sealed"' in path.read_bytes() for path in folder.glob("*.jsonl")):
        return
    for path in sorted(folder.glob("*.jsonl")):
        data = path.read_bytes()
        kept = on_disk(data, telemetry=path.name in (reader.TELEMETRY, reader.GPU_TELEMETRY))
        with path.open("r+b") as file:
            file.truncate(chance.randint(kept, len(data)))


def on_disk(data: bytes, *, telemetry: bool) -> int:
    """How many bytes of a segment had been brought to the disk for certain."""
    lines = data.split(b"\n")[:-1]
    if not lines:
        return 0
    size = kept = len(lines[0]) + 1  # its head
    found = [msgspec.json.decode(line, type=_Line) for line in lines[1:]]
    for line, record in zip(lines[1:], found, strict=True):
        size += len(line) + 1
        lazy = record.body.record in LAZY or (
            telemetry and record.boot_s > found[-1].boot_s - SYNCED_S
        )
        kept = kept if lazy else size
    return kept
