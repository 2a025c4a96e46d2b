"""Flips single bits in the training run of `digest_load`, and sees which are found.

    python -m acceptance.loads.train.digest_trials --trials 10

It is no load of a check, but measures what the digests find. Into the run of each format it makes
so many faults of each kind, one at a time. It prints what became of each, and a row for each kind:
tried, found, masked (no bit of loss, weights and moments at the end differs) and missed.

Exit status: 0; 1 when one was missed, or when the GPU or torch cannot be used or fails, with one
sentence on standard error; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from acceptance.loads.miscompare import DigestFormat
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.train import digest_load, digest_log
from acceptance.loads.train.digest_contract import Ask, FaultKind
from acceptance.loads.train.digest_worker import FAULT_KINDS, Training, draw


@dataclass(slots=True)
class Tally:
    """What became of the faults of one kind in one format.

    `masked` left no trace: losses, weights and moments at the end had the bits of the run without
    a fault, compared one by one. `missed` left one, and the digests were the same. Of the `found`,
    `named` were called one bit.
    """

    kind: FaultKind
    format: DigestFormat
    tried: int = 0
    found: int = 0
    masked: int = 0
    missed: int = 0
    named: int = 0


def trials(
    formats: Sequence[DigestFormat],
    training: Training,
    count: int,
    seed: int,
    report: Callable[[str], None] = lambda _line: None,
) -> list[Tally]:
    """Make `count` faults of each kind in each format, and see which are found."""
    tallies: list[Tally] = []
    for dtype in formats:
        tensors, steps = training.tensors, training.steps
        right = digest_log.from_numbers(tensors, steps, training.run(dtype, None))
        training.remember()
        for place, kind in product(range(count), FAULT_KINDS):
            tally = next((one for one in tallies if (one.kind, one.format) == (kind, dtype)), None)
            if tally is None:
                tallies.append(tally := Tally(kind, dtype))
            fault = draw(kind, steps, random.Random(f"{seed} {dtype} {kind} {place}"))
            numbers = training.run(dtype, fault)
            other = digest_log.difference(right, digest_log.from_numbers(tensors, steps, numbers))
            tally.tried += 1
            if other is not None:
                tally.found += 1
                tally.named += other.kind == "bit"
                what = f"found: step {other.step}, {other.part} {other.tensor}, {other.kind}"
            elif training.as_remembered():
                tally.masked += 1
                what = "masked"
            else:
                tally.missed += 1
                what = "MISSED"
            report(f"{dtype} {kind} step {fault.step}: {what}")
    return tallies


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="digest_trials", description="Flip bits in a training run, and see which are found."
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for tests: a tiny model"
    )
    parser.add_argument(
        "--inject-seed", type=int, default=0, help="chooses where (default %(default)s)"
    )
    parser.add_argument(
        "--trials", type=_count, required=True, help="faults of each kind in each format"
    )
    return parser


def try_faults(
    options: argparse.Namespace,
    say: Callable[[str], None] = print,
    make: digest_load.Make = digest_load.training,
    identify: Callable[[str], dict[str, Any]] = digest_load.identity,
) -> int:
    """Make the faults and print what became of them; 1 where one was missed."""
    formats = digest_load.formats_of(identify(options.device))
    training = make(options.device)
    tallies = trials(formats, training, options.trials, options.inject_seed, say)
    say("kind format tried found masked missed named-one-bit")
    for one in tallies:
        counts = one.tried, one.found, one.masked, one.missed, one.named
        say(f"{one.kind} {one.format} {' '.join(map(str, counts))}")
    return int(any(one.missed for one in tallies))


def main(argv: Sequence[str] | None = None) -> int:
    """The program; the module's docstring lists its exit statuses."""
    options, status = arguments().parse_args(argv), 0

    def work() -> None:
        nonlocal status
        status = try_faults(options)

    return run_guarded("digest_trials", work, Ask.CLEARED) or status


if __name__ == "__main__":
    exit_load(main())
