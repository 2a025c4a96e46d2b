"""How long the checks of a plan usually take on this machine, from the journals of its runs.

Nothing here limits a check: a time limit rests on the calculated time alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from acceptance.core.plan import LimitSet, Plan, PlannedCheck, Session
from acceptance.core.record import CheckEnded, CheckStarted, Entry, RunStarted
from acceptance.core.spans import first_record, run_seconds
from acceptance.history.night import ExclusionReason, Night
from acceptance.journal import reader
from acceptance.journal.segment import JournalError

RECENT = 5  # the median of at most so many runs is usual
LEAST = 2  # fewer runs do not show what is usual
# Free RAM, and with it the calculated time, differs a little from run to run.
NEAR = 0.05
# Values of such runs are not compared with others, but their checks took their usual time.
_TIMED: tuple[ExclusionReason | None, ...] = (None, "partial", "own-image")


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How long one run and its checks took.

    `gpus` is the number of tested GPUs. `planned` are its checks by id, `took` the seconds of those
    that ended as pass or fail. `overhead_s` is how many seconds no check ran. `limits`
    is what its limits came from, None of an older rigproof.
    """

    station: str
    gpus: int
    planned: Mapping[str, PlannedCheck]
    took: Mapping[str, float]
    overhead_s: float
    limits: LimitSet | None = None

    @property
    def sessions(self) -> set[Session]:
        """The sessions that it had."""
        return {check.session for check in self.planned.values()}

    def comparable(self, check: PlannedCheck) -> bool:
        """Whether a check ended here that was planned in the same session, with the same loads."""
        then = self.planned.get(check.id)
        if then is None or check.id not in self.took or then.session != check.session:
            return False
        return abs(then.seconds - check.seconds) <= NEAR * check.seconds


def times_of(entries: Sequence[Entry]) -> RunTimes | None:
    """The times of a run that ended; None where the journal does not say how it began.

    Of a check that was repeated, the first time counts.
    """
    first, seconds = first_record(entries), run_seconds(entries)
    if first is None or seconds is None or not isinstance(first.body, RunStarted):
        return None
    plan, ended = first.body.plan, dict[str, CheckEnded]()
    for entry in entries:
        if isinstance(entry.body, CheckEnded):
            ended.setdefault(entry.body.check, entry.body)
    return RunTimes(
        first.body.provenance.get("station", ""),
        len(plan.gpus),
        {check.id: check for check in plan.checks},
        {name: one.seconds for name, one in ended.items() if one.outcome in {"pass", "fail"}},
        seconds - _checked_s(entries),
        first.body.limits,
    )


def _checked_s(entries: Sequence[Entry]) -> float:
    """Seconds in which at least one check ran."""
    running, total_s = set[str](), 0.0
    for entry, after in pairwise(entries):
        if isinstance(entry.body, CheckStarted):
            running.add(entry.body.check)
        elif isinstance(entry.body, CheckEnded):
            running.discard(entry.body.check)
        total_s += after.boot_s - entry.boot_s if running else 0.0
    return total_s


def recent(nights: Sequence[Night], out: Path, profile: str) -> tuple[RunTimes, ...]:
    """The times of the last runs whose folders are in `out`, of this profile and of others.

    They are in the order of recording, newest first. A journal that cannot be read is left out.
    """
    usable = [
        one
        for one in reversed(nights)
        if one.apart in _TIMED
        and not one.postponed
        and one.folder is not None
        and (out / one.folder).is_dir()
    ]
    same = [one.run_id for one in usable if one.profile == profile]
    others = [one.run_id for one in usable if one.profile != profile]
    wanted = {*same[:RECENT], *others[:RECENT]}
    found = (_read(out / str(one.folder)) for one in usable if one.run_id in wanted)
    return tuple(one for one in found if one is not None)


def _read(folder: Path) -> RunTimes | None:
    try:
        return times_of(reader.read(folder).entries)
    except JournalError:
        return None


def with_usual_times(plan: Plan, runs: Sequence[RunTimes], station: str) -> Plan:
    """The plan with the usual times of its checks and of the rest of the run.

    `runs` are this machine's earlier ones, newest first. Only those at this station with as many
    GPUs count, and of these for each check only the comparable ones.
    """
    like = [run for run in runs if (run.station, run.gpus) == (station, len(plan.gpus))]
    known: list[list[float]] = []
    checks: list[PlannedCheck] = []
    for check in plan.checks:
        took = [run.took[check.id] for run in like if run.comparable(check)][:RECENT]
        known.append(took)
        checks.append(replace(check, usual_s=_usual(took)))
    sessions = {check.session for check in plan.checks}
    rest = _usual([run.overhead_s for run in like if run.sessions == sessions][:RECENT])
    return replace(
        plan,
        checks=tuple(checks),
        overhead_s=plan.overhead_s if rest is None else rest,
        timed_runs=max((len(took) for took in known if len(took) >= LEAST), default=0),
    )


def _usual(seconds: Sequence[float]) -> float | None:
    """The median; None where too few are known."""
    return statistics.median(seconds) if len(seconds) >= LEAST else None
