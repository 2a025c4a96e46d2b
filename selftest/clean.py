"""Clean runs: whole machines without a fault, played like those with one.

Whatever such a run says against them is a false alarm.
"""

from __future__ import annotations

import itertools
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed

import fake_driver

from selftest import trial
from selftest.catalogue import Say, Theatre, corner
from selftest.fault import Fault, Named
from selftest.row import FalseAlarms

CHECKS = "gpu,link.[!c]*,burn,watch,kernel_log"  # collectives need torch, on the host too


def healthy() -> tuple[str, ...]:
    """The described machines that a right harness finds healthy, by the index of fixtures/nvml."""
    listed = tomllib.loads((fake_driver.DESCRIPTIONS / "INDEX.toml").read_text(encoding="utf-8"))[
        "machine"
    ]
    return tuple(
        one["path"].removesuffix(".json") for one in listed if one["expect"].startswith("healthy")
    )


def runs(count: int) -> tuple[Named, ...]:
    """So many clean runs: each healthy machine in turn, first in a container, where its only
    stain is the named image, then in place.
    """
    names = healthy()
    found = []
    for number, name in enumerate(itertools.islice(itertools.cycle(names), count)):
        docker = number // len(names) % 2 == 0
        fault = Fault(
            "nothing",
            (),
            3 if docker else 0,
            machine=name,
            only=CHECKS,
            burn=2.0,
            station="docker" if docker else "host",
        )
        found.append(Named("harness", f"clean-{number + 1}-{name}", fault))
    return tuple(found)


def play(theatre: Theatre, count: int, jobs: int, say: Say) -> FalseAlarms:
    """So many clean runs through the whole harness."""
    wanted = runs(count)
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_play, theatre, named) for named in wanted]
        for number, done in enumerate(as_completed(waiting), start=1):
            name, wrong = done.result()
            say(f"clean run {number} of {count}: {name}: {wrong or 'no alarm'}")
    told = [f"{name}: {wrong}" for name, wrong in (one.result() for one in waiting) if wrong]
    return FalseAlarms("whole runs of described machines", len(wanted), len(told), "; ".join(told))


def _play(theatre: Theatre, named: Named) -> tuple[str, str]:
    """The name of a clean run, and what it said against its machine: nothing, or a sentence."""
    with corner(theatre, named) as stage:
        run, _ = stage.play()
        wrong = trial.whole(named.fault, run) or theatre.heard(named, run)
    return named.name, wrong
