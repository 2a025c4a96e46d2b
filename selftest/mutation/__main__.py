"""`python -m selftest.mutation`: mutate what decides, and say which mutations no test noticed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from selftest.mutation import campaign, equivalents, score
from selftest.mutation.runner import Job
from selftest.mutation.subjects import NOT_YET, SUBJECTS

ROOT = Path(__file__).resolve().parents[2]
RECORD = "mutation.json"
LIST = Path(__file__).with_name("equivalents.toml")


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every mutation was noticed or is on the reviewed list, 1 when one was not, 2 when
    nothing can be said.
    """
    options = _options(argv)

    def chosen(path: str) -> bool:
        if options.held and path in NOT_YET:
            return False
        return not options.only or any(only in path for only in options.only)

    jobs: list[Job | campaign.TableJob] = [
        *campaign.in_code(ROOT, [one for one in SUBJECTS if chosen(one.path)]),
        *campaign.in_tables(ROOT, chosen),
    ]
    if not jobs:
        print(f"nothing of {', '.join(options.only)} is mutated", file=sys.stderr)
        return 2
    found = [campaign.key(job) for job in jobs]
    if options.again:
        missed = score.missed_before(options.again / RECORD)
        jobs = [job for job in jobs if campaign.key(job) in missed]
    if options.sample is not None:
        jobs = score.sample(jobs, options.sample, campaign.key)
    try:
        known = equivalents.read(LIST)
        with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as folder:
            scratch = Path(folder)
            code = [job for job in jobs if isinstance(job, Job)]
            tables = [job for job in jobs if isinstance(job, campaign.TableJob)]
            results = campaign.try_code(ROOT, scratch, code, known, options.jobs)
            results += campaign.try_tables(ROOT, scratch, tables, known, options.jobs)
    except (campaign.NotGreen, equivalents.ListError) as error:
        print(error, file=sys.stderr)
        return 2
    stale = known.stale(found, {path for path, _, _ in found})
    table = score.Score(tuple(results))
    print("\n".join(table.lines()))
    for entry in stale:
        print(
            f"stale: {entry.path}: {entry.line}: {entry.change}: no mutation is like this any more"
        )
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / RECORD).write_text(
            json.dumps(table.to_json_object(), indent=1) + "\n", encoding="utf-8"
        )
    return 1 if table.missed or table.wrong or stale else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m selftest.mutation", description=__doc__)
    many = parser.add_mutually_exclusive_group()
    many.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="so many, drawn from everything; always the same ones",
    )
    many.add_argument("--all", action="store_true", help="every mutation (the default)")
    parser.add_argument(
        "--held",
        action="store_true",
        help="all but the modules that have not been mutated whole yet",
    )
    parser.add_argument(
        "--only", action="append", metavar="PATH", help="modules and tables whose path holds this"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at a time")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"where {RECORD} goes")
    parser.add_argument(
        "--again",
        type=Path,
        metavar="FOLDER",
        help=f"only what nobody noticed by the {RECORD} there",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
