"""Clean runs played like those with a fault.

Whatever such a run says against its machine is a false alarm.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor, as_completed

from selftest import trial
from selftest.catalogue import Say, Theatre, corner
from selftest.clean_runs import healthy, parts, runs
from selftest.fault import Named
from selftest.row import FalseAlarms


def play(theatre: Theatre, count: int, jobs: int, say: Say) -> FalseAlarms:
    """So many clean runs of described machines, and those of disks and network cards, through the
    whole harness.
    """
    again = itertools.cycle(runs(2 * len(healthy())))
    # Each with the first run of its kind, by whose name it is frozen.
    wanted = [*zip(runs(count), again, strict=False), *((one, one) for one in parts())]
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_play, theatre, *one) for one in wanted]
        for number, done in enumerate(as_completed(waiting), start=1):
            name, wrong = done.result()
            say(f"clean run {number} of {len(wanted)}: {name}: {wrong or 'no alarm'}")
    told = [f"{name}: {wrong}" for name, wrong in (one.result() for one in waiting) if wrong]
    return FalseAlarms("whole runs of described machines", len(wanted), len(told), "; ".join(told))


def _play(theatre: Theatre, named: Named, first: Named) -> tuple[str, str]:
    """The name of a clean run, and what it said against its machine, or otherwise than the first
    of its kind: nothing, or a sentence.
    """
    with corner(theatre, named) as stage:
        run, _ = stage.play()
        wrong = trial.whole(named.fault, run) or theatre.heard(first, run)
    return named.name, wrong
