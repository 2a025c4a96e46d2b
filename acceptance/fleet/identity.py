"""Which runs are of one machine. Pure.

A machine has a machine id (of its disk), a board serial (where root read it) and GPUs, and any of
them may be replaced. Two runs that have one of the three in common are of one machine, unless the
id or serial is known to be on several machines: a disk or image that was copied, or a maker that
gives all boards one serial. It is known where two runs have it and no GPU in common, and

- one began before the other had ended, or less than 10 minutes after: nobody replaces all GPUs of
  a machine in that time;
- the GPUs of the first come back after those of the second: the first machine is still there;
- of a machine id: the two boards have serials, and these differ;
- or a third run with it has other GPUs again, and the three have three names within a day.

Otherwise the GPUs were replaced. A partial run may leave GPUs out, so that it tells of no other
machine. Clocks are those of the machines.

Two names of one machine need more, since a PASS under the later name ends a FAIL under the earlier
one: a GPU in common, and the id or serial too; or exactly the same GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from acceptance.core.grouping import grouped

SWAP = timedelta(minutes=10)
DAY = timedelta(days=1)

# What a later run under another name says of a run: it is that very run; the same machine; a
# machine that has one of its GPUs by now; or it has the same machine id or board serial and other
# GPUs, so that it may be the same machine.
Kind = Literal["run", "machine", "gpu", "unknown"]
_KINDS: tuple[Kind, ...] = ("run", "machine", "gpu", "unknown")


class Key(NamedTuple):
    """A machine id or a board serial."""

    what: Literal["machine_id", "board_serial"]
    text: str


@dataclass(frozen=True, slots=True)
class MachineRun:
    """What a run says of the identity of its machine, which has this name.

    `ended` is the earliest time at which it can have ended. `complete` says that no GPU of the
    machine is left out, `passed` that the run counts as a PASS of the whole machine.
    """

    name: str
    run_id: str
    began: datetime
    ended: datetime
    machine_id: str | None
    board_serial: str | None
    gpus: frozenset[str]
    complete: bool
    passed: bool

    @property
    def order(self) -> tuple[datetime, str]:
        """Sorts runs by time."""
        return self.began, self.run_id

    @property
    def keys(self) -> list[Key]:
        """Its machine id and its board serial, as far as they are known."""
        found = []
        if self.machine_id:
            found.append(Key("machine_id", self.machine_id))
        if self.board_serial:
            found.append(Key("board_serial", self.board_serial))
        return found


class Later(NamedTuple):
    """A later run under another name, and what it says of the run before."""

    kind: Kind
    run: MachineRun


@dataclass(frozen=True, slots=True)
class Identities:
    """The runs of a fleet by what identifies their machines.

    `copied` has the ids and serials that are on several machines, with the names of these.
    """

    copied: Mapping[Key, tuple[str, ...]]
    newest: Mapping[Key | str, Mapping[str, MachineRun]]

    def same(self, one: MachineRun, other: MachineRun) -> bool:
        """Whether two runs are of one machine."""
        return bool(one.gpus & other.gpus or self._common(one, other))

    def differ(self, one: MachineRun, other: MachineRun) -> bool:
        """Whether two runs are of two machines, by what both of them tell."""
        comparable = (one.machine_id and other.machine_id) or (one.gpus and other.gpus)
        return bool(comparable) and not self.same(one, other)

    def _common(self, one: MachineRun, other: MachineRun) -> set[Key]:
        return {key for key in {*one.keys} & {*other.keys} if key not in self.copied}

    def replaced(self, one: MachineRun, other: MachineRun) -> bool:
        """Whether the machine of these two runs has other GPUs in one than in the other."""
        return self.same(one, other) and _other_gpus(one, other)

    def later(self, run: MachineRun) -> Later | None:
        """The gravest that a later run under another name says of a run, the newest of such."""
        found = [
            Later(self._kind(run, other), other)
            for key in _parts(run)
            if key not in self.copied
            for name, other in self.newest.get(key, {}).items()
            if name != run.name and other.order >= run.order
        ]
        found.sort(key=lambda one: one.run.order, reverse=True)
        return min(found, key=lambda one: _KINDS.index(one.kind), default=None)

    def _kind(self, run: MachineRun, other: MachineRun) -> Kind:
        if other.run_id == run.run_id:
            return "run"
        if not run.gpus & other.gpus:
            return "unknown"  # a disk and a board's serial may both be those of many machines
        if self._common(run, other) or (run.complete and run.gpus == other.gpus):
            return "machine"
        return "gpu"


def _parts(run: MachineRun) -> list[Key | str]:
    return [*run.keys, *run.gpus]


def identify(runs: Iterable[MachineRun]) -> Identities:
    """The identities that some runs tell of."""
    ordered = sorted(runs, key=lambda one: one.order)
    by_key = grouped((key, run) for run in ordered for key in run.keys)
    newest: dict[Key | str, dict[str, MachineRun]] = {}
    for run in ordered:
        for part in _parts(run):
            newest.setdefault(part, {})[run.name] = run
    copied = {
        key: tuple(sorted({run.name for run in held}))
        for key, held in by_key.items()
        if _is_copied(key, held)
    }
    return Identities(copied, newest)


@dataclass
class _Period:
    """Consecutive runs with one id or serial, each of which has a GPU of the others."""

    began: datetime
    ended: datetime
    gpus: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)  # the serials of an id, the ids of a serial

    def add(self, run: MachineRun, what: str) -> None:
        """Add the next run."""
        self.ended = max(self.ended, run.ended)
        self.gpus |= run.gpus
        self.names.add(run.name)
        other = run.board_serial if what == "machine_id" else run.machine_id
        if other:
            self.others.add(other)

    def differs(self, other: _Period) -> bool:
        """Whether what is known beside the id or serial is not the same."""
        return bool(self.others and other.others) and not self.others & other.others


def _is_copied(key: Key, runs: Sequence[MachineRun]) -> bool:
    """Whether an id or serial is on several machines; the runs are those that have it, in order."""
    periods: list[_Period] = []
    for run in runs:
        if not run.complete or not run.gpus:
            continue
        if not periods or not periods[-1].gpus & run.gpus:
            if any(period.gpus & run.gpus for period in periods):
                return True  # GPUs that came back
            periods.append(_Period(run.began, run.ended))
        periods[-1].add(run, key.what)
        if _are_several(key, periods):
            return True
    return False


def _are_several(key: Key, periods: Sequence[_Period]) -> bool:
    """Whether the last periods, which have no GPU in common, are of several machines."""
    if len(periods) < 2:
        return False
    *_, one, two = periods
    if two.began < one.ended + SWAP:
        return True
    if key.what == "machine_id" and one.differs(two):
        return True
    if len(periods) < 3:
        return False
    first = periods[-3]
    return (
        two.began - first.ended <= DAY
        and len(first.names | one.names | two.names) > 2
        and not (first.others & one.others or one.others & two.others)
    )


def _other_gpus(one: MachineRun, other: MachineRun) -> bool:
    complete = one.complete and other.complete
    return complete and bool(one.gpus and other.gpus) and not one.gpus & other.gpus
