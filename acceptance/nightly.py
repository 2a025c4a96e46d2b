"""A night: the machine is left alone while somebody is using it, and such a night is a run of its own, on which nothing was run.

Where somebody comes in its middle, the supervisor gives it up, and it counts as one of those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from acceptance import journal, lock, outputs
from acceptance.deadline import Deadline
from acceptance.judge.language import ENGLISH, Language
from acceptance.judge.record import Postponed, RunEnded
from acceptance.judge.verdict import Verdict
from acceptance.observe import idleness, nvml
from acceptance.observe.inventory import gpus
from acceptance.observe.nvml import NvmlAnswer
from acceptance.opening import opening
from acceptance.place import Host
from acceptance.preparation import Prepared
from acceptance.profile import Nights
from acceptance.supervisor import IN_USE

SKIPPED = 4  # the exit code of a night on which the machine was in use


def _probe() -> NvmlAnswer:
    return nvml.probe(deadline=Deadline.after(nvml.PROBE_S))


def users(
    prepared: Prepared,
    nights: Nights,
    probe: Callable[[], NvmlAnswer] = _probe,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Who is using the GPUs that the plan tests, at the first of several looks that finds somebody; empty where all are idle.

    The first look is the one at the inventory. A library that cannot be asked names nobody: the checks tell of it.
    """
    due = tuple(gpu for gpu in gpus(prepared.inventory) if gpu.name in prepared.plan.gpus)
    found = idleness.users(prepared.inventory.nvml, due, nights.idle_use)
    for _ in range(nights.looks - 1 if due else 0):
        if found:
            break
        sleep(nights.apart_s)
        found = idleness.users(probe(), due, nights.idle_use)
    return found


def held(error: lock.Busy) -> str:
    """That another rigproof run has the machine, and for how long as far as clocks tell, as a reason to leave it alone."""
    if error.held_s < 0:
        return f"{error}; for how long cannot be told, because the clock was set back meanwhile"
    return f"{error}; it has had it for {error.held_s / 3600:.1f} h"


def postpone(prepared: Prepared, run_dir: Path, skipped: Postponed, language: Language = ENGLISH) -> Verdict:
    """Write down that nothing was run, as a run. Raises JournalError when it cannot be written."""
    with journal.Writer(run_dir / journal.SUPERVISOR, prepared.options.root) as writer:
        for body in opening(prepared, Host(), run_dir):
            writer.write(body)
        writer.write(skipped)
        writer.write(RunEnded(False, IN_USE))
    return outputs.write(run_dir, language)
