"""What all storage loads share: their arguments, their first line, and what they say of trouble."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from acceptance.core.component import Component
from acceptance.core.limit import GIB
from acceptance.core.message import Quantity
from acceptance.core.parts import Part, parse
from acceptance.loads.cpu.memory_bandwidth import ArraysError
from acceptance.loads.miscompare import FailedFile
from acceptance.loads.program import run_guarded, seconds
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import RankLost
from acceptance.loads.storage.scratch_file import StorageError, open_folder

Kind = Literal["rest", "stale", "elsewhere", "short", "flight"]
# The faults of `--inject`: what sits wrong on the disk, or comes wrong from it.
KINDS: dict[Kind, str] = {
    "rest": "one bit of the file is inverted after it was written",
    "stale": "a block holds what an earlier file had there, as where a write was lost",
    "elsewhere": "a block holds another block of the file, as where a write went astray",
    "short": "the end of the file is missing",
    "flight": "one bit of what was read is inverted; the file is right",
}
LEAST = 1 << 18  # bytes: enough for several windows, blocks and shards
_SEED_BITS = 20  # as in `tokens`, which loads numpy


@dataclass(frozen=True, slots=True)
class Job:
    """A running load: the folder it works in, its limits, and its output.

    `seconds` are those for which it reads; 0 for a load that ends with its work.
    """

    folder: int
    component: Component
    bytes: int
    seconds: float
    inject: Kind | None
    seed: int
    output: Output


def require_memory(needed: int, available: int) -> None:
    """Raise StorageError where buffers of `needed` bytes take over half of the free memory."""
    if 2 * needed > available:
        raise StorageError(
            "storage_no_memory",
            needed=Quantity(needed / GIB, "GiB"),
            available=Quantity(available / GIB, "GiB"),
        )


def amount(text: str) -> int:
    """A number of bytes that a file of a load can have.

    Raises argparse.ArgumentTypeError for anything else.
    """
    if not re.fullmatch(r"\d{1,12}", text, re.ASCII) or int(text) < LEAST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes from {LEAST} on")
    return int(text)


def disk(text: str) -> Component:
    """The disk that the figures belong to. Raises argparse.ArgumentTypeError for another part."""
    found = parse(text)
    if not isinstance(found, Part) or found.kind != "disk":
        raise argparse.ArgumentTypeError(f"{text!r} is no disk, such as disk:nvme0n1")
    return found


def add_arguments(parser: argparse.ArgumentParser, inject: Sequence[Kind], *, timed: bool) -> None:
    """The arguments of a storage load; a `timed` one reads for so many seconds."""
    parser.add_argument(
        "--folder", required=True, type=Path, help="an empty folder of ours on the disk"
    )
    parser.add_argument(
        "--component", required=True, type=disk, help="the disk under it: disk:nvme0n1"
    )
    parser.add_argument(
        "--bytes", required=True, type=amount, help="the most that lies on the disk at a time"
    )
    if timed:
        parser.add_argument("--seconds", required=True, type=seconds, help="how long it reads")
    parser.add_argument(
        "--inject",
        choices=inject,
        help="a fault on purpose, after which the run never passes: "
        + "; ".join(f"{kind}: {KINDS[kind]}" for kind in inject),
    )


def run(
    name: str,
    options: argparse.Namespace,
    work: Callable[[Job], None],
    parameters: Callable[[], Mapping[str, Any]] = dict,
) -> int:
    """Say the first line, do the work, say the end; the exit status as of `run_guarded`.

    `parameters` gives those that only this load has, after what it raises can be reported.
    Trouble is a line of its own, after the operation that the disk failed where it is one.
    """
    output = Output(sys.stdout)

    def guarded() -> None:
        seed = 1 + secrets.randbelow((1 << _SEED_BITS) - 1)
        said: dict[str, Any] = {
            **({"seconds": options.seconds} if "seconds" in options else {}),
            "bytes": options.bytes,
            "component": str(options.component),
            "seed": seed,
            **parameters(),
        }
        if options.inject is not None:
            said["inject"] = options.inject
        output.hello(name, said)
        try:
            folder = open_folder(options.folder)
            try:
                job = Job(
                    folder,
                    options.component,
                    options.bytes,
                    getattr(options, "seconds", 0.0),
                    options.inject,
                    seed,
                    output,
                )
                work(job)
            finally:
                os.close(folder)
        except StorageError as error:
            if (fault := error.fault) is not None:
                output.miscompare(
                    FailedFile(
                        component=options.component,
                        check="file",
                        operation=fault.operation,
                        file=fault.file,
                        error=fault.error,
                        offset=fault.offset,
                    )
                )
            output.trouble(error.message)
            raise
        output.end()

    return run_guarded(name, guarded, errors=(StorageError, RankLost, ArraysError, OSError))
