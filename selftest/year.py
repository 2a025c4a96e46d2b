"""Simulated years: on which night each fault is found, and how often a sound machine is told of;
run as a program it prints the tables.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

from selftest.drawn_nights import YEAR
from selftest.drift_trials import BOARD, LOOKED_FOR, ONE, Detected, Quiet, detect, quiet
from selftest.row import FalseAlarms, Sensitivity

SEED = 1


def rows(
    years: int, draws: int, seed: int, jobs: int = 1
) -> tuple[tuple[FalseAlarms, ...], tuple[Sensitivity, ...]]:
    """The same as rows of the self-test's tables."""
    sound = quiet(ONE, years, seed, jobs)
    told = "; ".join(sound.failed[:1])
    alarms = FalseAlarms(
        f"simulated nights of {years} machine-years",
        years * YEAR,
        len(sound.failed),
        told,
        sound.remarked,
    )
    found = tuple(
        Sensitivity(f"from night to night: {one.fault.what}", *_found(one, draws), "its own nights")
        for one in detect(draws, seed, jobs)
    )
    return (alarms,), found


def _found(one: Detected, draws: int) -> tuple[str, str]:
    """When a fault is found, and in how many machines it is not."""
    if one.fault.era:
        return (
            "is not to be told",
            f"told in {draws - one.failed.count(None)} of {draws} as a failure",
        )
    wanted, how = (one.failed, "fails on") if one.fault.fails else (one.remarked, "warned of on")
    return f"{how} {_when(wanted)}", f"{wanted.count(None)} of {draws} machines"


def _when(nights: Sequence[int | None]) -> str:
    known = [night + 1 for night in nights if night is not None]
    if not known:
        return "never"
    middle, last = statistics.median_high(known), max(known)
    return f"night {middle}" if middle == last else f"night {middle}, at the latest {last}"


def markdown(
    years: int, boards: int, draws: int, seed: int, jobs: int, *, as_cards: bool = False
) -> str:
    """The tables of the page."""
    sound = [
        quiet(name, count, seed, jobs, as_cards=as_cards)
        for name, count in ((ONE, years), (BOARD, boards))
        if count
    ]
    tables = [list(_quiet_table(sound))] if sound else []
    if draws:
        tables.append(list(_detected_table(detect(draws, seed, jobs, as_cards=as_cards), draws)))
    return "\n\n".join("\n".join(table) for table in tables)


def _quiet_table(sound: Sequence[Quiet]) -> Iterator[str]:
    yield (
        "| machine | figures judged a night | machine-years | of them with a failure | failures "
        "a year | nights with a warning a year |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for one in sound:
        each = len(one.failed) / one.years, one.remarked / one.years
        yield (
            f"| {one.machine} | {one.figures} | {one.years} | {one.failed_years} | "
            f"{each[0]:.2f} "
            f"| {each[1]:.1f} |"
        )
    for one in sound:
        words = ", ".join(f"{count} x {word}" for word, count in one.words.most_common())
        yield f"\n{one.machine}: {words or 'nothing was said'}."
        yield from (f"- {text}" for text in one.failed[:3])


def _detected_table(found: Sequence[Detected], draws: int) -> Iterator[str]:
    yield (
        f"| fault ({draws} machines each) | warned | failed | not failed within {LOOKED_FOR} "
        "nights |"
    )
    yield "| --- | --- | --- | --- |"
    for one in found:
        missed = one.failed.count(None)
        wanted = (
            f"{missed} of {draws}"
            if one.fault.fails
            else "all, as it should be"
            if missed == draws
            else f"{missed} of {draws}"
        )
        yield f"| {one.fault.what} | {_when(one.remarked)} | {_when(one.failed)} | {wanted} |"


def main(argv: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(
        prog="selftest.year", description="Simulate nights, and show what they find."
    )
    parser.add_argument(
        "--years", type=int, default=4, help="sound years of a machine with one GPU"
    )
    parser.add_argument("--boards", type=int, default=0, help="sound years of a machine with eight")
    parser.add_argument("--draws", type=int, default=5, help="machines for each fault")
    parser.add_argument("--seed", type=int, default=SEED, help="where the dice begin")
    parser.add_argument(
        "--as-cards", action="store_true", help="one card's nights differ as much as cards do"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side"
    )
    given = parser.parse_args(argv)
    began = time.monotonic()
    tables = markdown(
        given.years, given.boards, given.draws, given.seed, given.jobs, as_cards=given.as_cards
    )
    sys.stdout.write(tables + "\n")
    sys.stderr.write(f"{time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
