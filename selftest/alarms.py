"""False alarms: clean runs of the machines that ship, drawn with their noise, of which every one
must be a PASS.

Pure.
"""

from __future__ import annotations

import random
from collections import Counter

from acceptance.core.verdict import Verdict
from selftest.drawn_runs import draw, judged, machines
from selftest.row import FalseAlarms

TOLD = 3  # reasons that are told of a machine, the most frequent first


def false_alarms(runs: int, seed: int) -> tuple[FalseAlarms, ...]:
    """So many clean runs, shared among the machines, by machine; half of each
    as root, half as a plain user.
    """
    every = machines()
    found = []
    for place, machine in enumerate(every):
        share = runs // len(every) + (place < runs % len(every))
        dice = random.Random(f"{seed} {machine.name}")
        alarms, remarked, reasons = 0, 0, Counter[str]()
        for number in range(share):
            verdict = judged(machine, draw(machine, dice), as_root=number % 2 == 0)
            if verdict.verdict != "PASS":
                alarms += 1
                reasons.update({_reason(verdict)})
            elif verdict.of_kind("warn"):
                remarked += 1
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(TOLD))
        found.append(FalseAlarms(machine.name, share, alarms, told, remarked))
    return tuple(found)


def _reason(verdict: Verdict) -> str:
    """The first words of what kept a run from passing, the measurement by itself, without the
    figure of the day.
    """
    first = verdict.of_kind("fail", "error", "skip")[0]
    return f"{first.kind}: {first.measurement or first.code}"
