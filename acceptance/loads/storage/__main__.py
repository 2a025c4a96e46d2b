"""The storage loads by their names; the modules say what each does.

    python -m acceptance.loads.storage memmap|feed|checkpoint|kept-write|kept-read ...

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when it could not,
with a line that says the trouble and no end line; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from acceptance.loads.card import gpu_identity
from acceptance.loads.program import exit_load
from acceptance.loads.storage import job as storage_job
from acceptance.loads.storage import memmap


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="storage", description="Write and read files on a disk, and verify what was read."
    )
    loads = parser.add_subparsers(dest="load", required=True)
    for name in ("memmap", "feed", "checkpoint", "kept-write", "kept-read"):
        one = loads.add_parser(name)
        inject = ("flight",) if name == "kept-read" else tuple(storage_job.KINDS)
        storage_job.add_arguments(one, inject, timed=name in ("memmap", "feed"))
        if name == "feed":
            one.add_argument("--gpu", action="store_true", help="on to the first GPU")
        if name.startswith("kept"):
            one.add_argument("--machine", required=True, help="the id of this machine")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The program; the module's docstring lists its exit statuses."""
    options = arguments().parse_args(argv)
    if options.load == "memmap":  # its worker loads numpy, and is forked from a parent without it
        return storage_job.run(memmap.NAME, options, memmap.measure)
    from acceptance.loads.storage import checkpoint, feed, kept

    match options.load:
        case "feed":
            return storage_job.run(
                feed.NAME,
                options,
                lambda job: feed.measure(job, gpu=options.gpu),
                gpu_identity if options.gpu else dict,
            )
        case "checkpoint":
            return storage_job.run(checkpoint.NAME, options, checkpoint.measure)
        case "kept-write":
            return storage_job.run(
                kept.NAME,
                options,
                lambda job: kept.write(job, options.machine),
                lambda: {"machine": options.machine},
            )
        case _:
            return storage_job.run(
                kept.NAME,
                options,
                lambda job: kept.read(job, options.machine),
                lambda: {"machine": options.machine},
            )


if __name__ == "__main__":
    exit_load(main())
