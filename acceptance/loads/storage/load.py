"""The storage loads from their first line to their last; the modules say what each does.

    python -m acceptance.loads storage_memmap folder=DIR component=disk:nvme0n1 bytes=1073741824
        seconds=8

Trouble is a line of its own, after the operation that the disk failed where it is one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from acceptance.loads.card import gpu_identity
from acceptance.loads.miscompare import FailedFile
from acceptance.loads.protocol import Output
from acceptance.loads.storage.contract import Canary, Checkpoint, Feed, Memmap
from acceptance.loads.storage.job import SEED_BITS, Job
from acceptance.loads.storage.scratch_file import StorageError, open_folder

AnyOnDisk = Memmap | Feed | Checkpoint | Canary


def run(ask: AnyOnDisk, output: Output) -> None:
    """Run the whole load. Raises LoadError, and OSError."""
    about: dict[str, Any] = gpu_identity() if isinstance(ask, Feed) and ask.gpu else {}
    seed = 1 + secrets.randbelow((1 << SEED_BITS) - 1)
    output.hello(ask.load, {**ask.parameters(), "seed": seed, **about})
    try:
        folder = open_folder(Path(ask.folder))
        try:
            _measure(ask, Job(folder, seed, output))
        finally:
            os.close(folder)
    except StorageError as error:
        if (fault := error.fault) is not None:
            output.miscompare(
                FailedFile(
                    component=ask.disk,
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


def _measure(ask: AnyOnDisk, job: Job) -> None:
    match ask:
        case Memmap():  # its worker loads numpy, and is forked from a parent without it
            from acceptance.loads.storage import memmap

            memmap.measure(ask, job)
        case Feed():
            from acceptance.loads.storage import feed

            feed.measure(ask, job)
        case Checkpoint():
            from acceptance.loads.storage import checkpoint

            checkpoint.measure(ask, job)
        case Canary():
            from acceptance.loads.storage import canary

            canary.measure(ask, job)
