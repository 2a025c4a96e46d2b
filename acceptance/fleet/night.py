"""A night of a fleet: the word on each machine, and the table of what was measured. Pure."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from acceptance.core import plain_text
from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Text, english, known
from acceptance.core.verdict import WORDS, VerdictWord, worst_word
from acceptance.fleet import ending
from acceptance.fleet.acceptances import Acceptance
from acceptance.fleet.ending import Proof
from acceptance.fleet.identity import Identities, Later, MachineRun, identify
from acceptance.fleet.verdicts import (
    COPYING,
    Collection,
    MachineVerdict,
    NotPassed,
    Series,
    Trouble,
    night_of,
    quoted,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAMES = 8  # in a sentence; a view with room has all


class Accepted(NamedTuple):
    """The FAIL of a run that was accepted: by whom, when and why."""

    run: str
    by: str
    at: str
    reason: str

    @property
    def message(self) -> Message:
        """In a sentence."""
        return Message("fleet_accepted", self._asdict())


@dataclass(frozen=True, slots=True)
class Standing:
    """What the fleet says of one machine.

    `verdict` is the word of the verdict that counts, UNJUDGED at best where that cannot be trusted.
    `reason` says why it is not PASS. `missing` says that there is no fresh verdict. `newest` is the
    verdict that counts, None where there is none or where it is in doubt which one counts. `proved`
    says that it is PASS or FAIL by a fresh verdict that is not in doubt; any other machine is to be
    tested (again). `failed` is the verdict that makes the machine FAIL, in doubt or not. `ended`
    has the runs of its FAILs that do not stand any more, with what ended each: a run, or the file
    of an acceptance. `accepted` are the acceptances that a FAIL was ended by. `kept` is the row of
    a FAIL that stands and whose verdict is not there any more.
    """

    machine: str
    verdict: VerdictWord
    reason: Text | None
    missing: bool
    newest: MachineVerdict | None
    proved: bool = False
    failed: MachineVerdict | None = None
    ended: Mapping[str, str] = field(default_factory=dict, hash=False)
    accepted: tuple[Accepted, ...] = ()
    kept: Row | None = None

    @property
    def row(self) -> Row:
        """The machine in a table, without a reason."""
        if self.newest is None:
            return _bare(self, None, missing=self.missing)
        return replace(_row(self, self.newest, self.verdict, None), missing=self.missing)


class Fleet:
    """What the machines that are due make of a fleet, and what could not be read of it."""

    __slots__ = ()
    due: Sequence[Standing | Row]
    troubles: Sequence[object]

    def count(self, word: VerdictWord) -> int:
        """How many due machines have this verdict."""
        return sum(one.verdict == word for one in self.due)

    @property
    def verdict(self) -> VerdictWord:
        """The word on the fleet: PASS only where each due machine has it and all was read."""
        word = worst_word(one.verdict for one in self.due)
        return worst_word((word, "UNJUDGED")) if self.troubles or not self.due else word

    @property
    def not_passed(self) -> float:
        """The share of due machines that did not pass; 1 where none is due."""
        return 1 - self.count("PASS") / len(self.due) if self.due else 1.0


@dataclass(frozen=True, slots=True)
class Judged(Fleet):
    """A fleet at one moment: the machines that are due, those that are not, and the troubles.

    The due ones without a fresh verdict come first, then FAIL, UNJUDGED, PASS; by name. `remarks`
    say what was taken for one machine, or for several.
    """

    due: tuple[Standing, ...]
    others: tuple[Standing, ...]
    troubles: tuple[Trouble, ...]
    remarks: tuple[Message, ...] = ()


def order(one: Standing | Row) -> tuple[bool, int, str]:
    """Sorts machines: those without a fresh verdict first, then the worst, then by name."""
    return not one.missing, -WORDS.index(one.verdict), one.machine


def judge(
    found: Collection,
    due: Names[str] | None,
    now: datetime,
    fresh: timedelta,
    *,
    signed: bool = False,
    kept: Mapping[str, Row] | None = None,
) -> Judged:
    """The word on each machine; `due` names those that are due, None all that are there.

    A verdict is fresh for this long after its run began. With `signed`, an unsigned one does not
    count. A FAIL stays a FAIL whatever is in doubt. `kept` are the last rows of kept nights: a FAIL
    among them whose verdict is not there any more stands until somebody accepts it, since nothing
    shows what failed.
    """
    troubles = ((one.machine, one.message) for one in found.troubles if one.machine is not None)
    wrong = grouped(chain(troubles, _shared(found.verdicts)))
    identities = identify(
        one.identity(began, passed=one.proves(signed=signed) == "PASS" and not one.is_ahead(now))
        for held in found.verdicts.values()
        for began, one in _dated(held)
    )
    histories = {
        name: History.of(found, name, now, (kept or {}).get(name), signed=signed)
        for name in dict.fromkeys([*(due or ()), *found.verdicts])
    }
    names = list(histories)
    standings = _under_other_names(
        [
            _with_history(
                _standing(
                    history,
                    wrong.get(name, ()),
                    now,
                    fresh,
                    identities,
                    histories,
                    signed=signed,
                ),
                history,
            )
            for name, history in histories.items()
        ],
        histories,
        identities,
    )
    standings.sort(key=order)
    chosen = set(names if due is None else due)
    return Judged(
        tuple(one for one in standings if one.machine in chosen),
        tuple(one for one in standings if one.machine not in chosen),
        found.troubles,
        (
            *copies(identities),
            *_replaced(found, identities, now - fresh),
            *limits(
                (one.machine, one.newest.groups)
                for one in standings
                if one.machine in chosen and one.newest is not None
            ),
        ),
    )


def copies(identities: Identities) -> Iterator[Message]:
    """The machine ids and board serials that machines of several names have."""
    for (what, text), names in sorted(identities.copied.items()):
        if len(names) > 1:
            machines = Listed.first(names, NAMES)
            code = (
                english(
                    "fleet_copied_id",
                    "machine id {id} is on several machines ({machines}), so it does not identify "
                    "them: give each an id of its own (`rm /etc/machine-id; "
                    "systemd-machine-id-setup`)",
                )
                if what == "machine_id"
                else english(
                    "fleet_copied_serial",
                    "board serial {id} is on several machines ({machines}), so it does not "
                    "identify them",
                )
            )
            yield Message(code, {"id": plain_text.quote(text), "machines": machines})


def limits(judged: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[Message]:
    """That machines were judged by different limits: which of them not by the most frequent ones.

    `judged` are the machines with the provenance of the verdict that counts. One without limits in
    it is of an older rigproof, and says nothing.
    """
    by = grouped(
        ((facts["limits"], facts["limits_digest"]), machine)
        for machine, facts in judged
        if "limits" in facts and "limits_digest" in facts
    )
    if len(by) < 2:
        return
    usual = max(sorted(by), key=lambda key: len(by[key]))
    for (version, digest), machines in sorted(by.items()):
        if (version, digest) != usual:
            names = Listed.first(sorted(machines), NAMES)
            yield Message(
                english(
                    "fleet_other_limits",
                    "{machines}: judged by the limits {limits}, and {count} of the other machines "
                    "by {usual}: their verdicts do not mean the same; install one version and the "
                    "same sheets everywhere (`limits` in verdict.json)",
                ),
                {
                    "machines": names,
                    "limits": plain_text.quote(f"{version} {digest[:12]}"),
                    "usual": plain_text.quote(f"{usual[0]} {usual[1][:12]}"),
                    "count": len(by[usual]),
                },
            )


def _replaced(found: Collection, identities: Identities, since: datetime) -> Iterator[Message]:
    """The machines that have had other GPUs since this time."""
    for name, held in found.verdicts.items():
        runs = [one.identity(began) for began, one in _dated(held) if began >= since]
        for one, other in pairwise(runs):
            if identities.replaced(one, other):
                runs_of = {"machine": name, "run": one.run_id, "other": other.run_id}
                yield Message(
                    english(
                        "fleet_replaced",
                        "{machine}: all GPUs of run {other} are others than those of run {run}, "
                        "so it counts as one machine whose GPUs were replaced",
                    ),
                    runs_of,
                )


def of_another(later: Later, gpus: Names[str]) -> Message:
    """Why a verdict of these GPUs does not count: what a later run under another name says."""
    other = later.run
    values = {"other": other.name, "run": other.run_id}
    if later.kind == "run":
        return Message(
            english(
                "fleet_shared",
                "{other} has the very same verdict, which is of one machine at most: look at who "
                "copied it",
            ),
            {"other": other.name},
        )
    if later.kind == "gpu":
        moved = Listed(tuple(sorted(map(plain_text.quote, other.gpus & frozenset(gpus)))))
        return Message(
            english(
                "fleet_gpu_elsewhere",
                "{other} had {gpus} of this verdict later (run {run}), so the machine is not what "
                "was tested: test it again",
            ),
            {**values, "gpus": moved},
        )
    code = (
        english(
            "fleet_two_names",
            "this machine was tested later under the name {other} (run {run}) and counts there, "
            "so nothing is known of a machine of this name: give the machine one name",
        )
        if later.kind == "machine"
        else english(
            "fleet_perhaps_two_names",
            "{other} was tested later (run {run}) with the same machine id or board serial and "
            "other GPUs, and may be this machine under another name: give each machine an id of "
            "its own (`rm /etc/machine-id; systemd-machine-id-setup`), then test both again",
        )
    )
    return Message(code, values)


def _shared(verdicts: Mapping[str, Sequence[MachineVerdict]]) -> Iterator[tuple[str, Message]]:
    """Machines that have the very file of another one, which can be of one of them at most."""
    owners = grouped((one.sha256, name) for name, held in verdicts.items() for one in held)
    for names in owners.values():
        for name in names if len(names) > 1 else ():
            other = next(one for one in names if one != name)
            yield name, Message("fleet_shared", {"other": other})


@dataclass(frozen=True, slots=True)
class Open:
    """A FAIL that stands; `passed` is the last PASS after it, and `why` it does not end it."""

    failed: MachineVerdict
    passed: MachineVerdict | None = None
    why: Message | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The verdicts of one machine in order, and which FAILs of it stand.

    `accepted` has the acceptance of each run whose FAIL was accepted. `dated` are the verdicts with
    the beginnings of their runs; `usable` those that are not of a clock that is ahead. `open` are
    the FAILs that stand, `ended` those that do not, each with what ended it.
    """

    machine: str
    verdicts: Sequence[MachineVerdict]
    accepted: Mapping[str, tuple[str, Acceptance]]
    dated: Sequence[tuple[datetime, MachineVerdict]]
    usable: Sequence[MachineVerdict]
    open: Sequence[Open]
    ended: Mapping[str, str]
    proofs: Mapping[str, Proof]
    signed: bool
    kept: Row | None = None

    @staticmethod
    def of(
        found: Collection, name: str, now: datetime, kept: Row | None, *, signed: bool
    ) -> History:
        """What is known of a machine; `kept` is its last row in kept nights."""
        held = found.verdicts.get(name, ())
        accepted = {
            run: (file, one)
            for file, one in found.acceptances.get(name, {}).items()
            for run in one.runs
        }
        dated = _dated(held)
        usable = [one for _, one in dated if not one.is_ahead(now)]
        standing: list[Open] = []
        ended: dict[str, str] = {}
        for one in usable:
            if one.verdict == "FAIL":
                standing.append(Open(one))
            elif one.proves(signed=signed) == "PASS":
                tried = [(each, end_by(each.failed, one, found.proofs)) for each in standing]
                ended |= {each.failed.run_id: one.run_id for each, why in tried if why is None}
                standing = [replace(each, passed=one, why=why) for each, why in tried if why]
        runs = {one.failed.run_id for one in standing}
        by_name = {run: file for run, (file, _) in accepted.items() if run not in ended}
        lost = kept if kept is not None and _is_lost(kept, held, by_name) else None
        return History(
            name,
            held,
            {run: told for run, told in accepted.items() if run in runs or run not in ended},
            dated,
            usable,
            [one for one in standing if one.failed.run_id not in accepted],
            {**ended, **by_name},
            found.proofs,
            signed,
            lost,
        )

    @property
    def counts(self) -> MachineVerdict | None:
        """The verdict that counts: the newest FAIL that stands, else the newest of all."""
        if self.open:
            return self.open[-1].failed
        return self.usable[-1] if self.usable else None

    def word(self, one: MachineVerdict) -> VerdictWord:
        """The word of a verdict, which is no FAIL any more once that was accepted."""
        return "UNJUDGED" if one.run_id in self.accepted else one.verdict


def _is_lost(kept: Row, held: Sequence[MachineVerdict], accepted: Names[str]) -> bool:
    """Whether a kept FAIL has no verdict any more that shows what failed."""
    run = kept.run_id
    known = run is None or run in accepted or any(one.run_id == run for one in held)
    return kept.verdict == "FAIL" and not known


def end_by(
    failed: MachineVerdict, passed: MachineVerdict, proofs: Mapping[str, Proof]
) -> Message | None:
    """Why a PASS does not end a FAIL; None where it does."""
    proof = proofs.get(passed.sha256)
    if failed.failed is None or proof is None:
        return Message("end_pass_unknown")
    return ending.obstacle(failed.failed, proof, passed.baseline)


def _with_history(one: Standing, history: History) -> Standing:
    """What was ended, beside what stands; and a FAIL that only a kept night knows."""
    accepted = tuple(
        Accepted(run, told.by, f"{told.at:%Y-%m-%d %H:%M}", told.reason)
        for run, (_, told) in sorted(history.accepted.items())
    )
    found = replace(one, ended=history.ended, accepted=accepted)
    lost = history.kept
    if lost is None or found.verdict == "FAIL":
        return found
    reason = Message(
        english(
            "fleet_fail_lost",
            "run {run} failed[ ({reason})], and its verdict is not in the folder any more: put it "
            "back, or accept the FAIL by `rigproof fleet accept`",
        ),
        known(run=lost.run_id, reason=lost.reason),
    )
    return replace(found, verdict="FAIL", reason=reason, newest=None, proved=False, kept=lost)


def _under_other_names(
    standings: Iterable[Standing], histories: Mapping[str, History], identities: Identities
) -> list[Standing]:
    """The standings, with each FAIL that stands also under the later names of its machine."""
    found = {one.machine: one for one in standings}
    for name, history in histories.items():
        later = _later(history, identities)
        if later is None or later.kind != "machine" or not history.open:
            continue
        other = found[later.run.name]
        gone = {
            one.failed.run_id: by
            for one in history.open
            if (by := _ended_under(one, histories[other.machine])) is not None
        }
        other = replace(other, ended={**other.ended, **gone})
        found[other.machine] = other
        standing = [one for one in history.open if one.failed.run_id not in other.ended]
        if standing and other.verdict != "FAIL":
            failed = standing[-1].failed
            values = {"other": name, "run": failed.run_id, "reason": failed.reason or ""}
            reason = Message(
                english(
                    "fleet_fail_of_other_name",
                    "{other}, an earlier name of this machine, failed in run {run}, and no PASS "
                    "ended that: {reason}",
                ),
                values,
            )
            found[other.machine] = replace(
                other, verdict="FAIL", reason=reason, newest=failed, proved=False, failed=failed
            )
    return list(found.values())


def _later(history: History, identities: Identities) -> Later | None:
    if not history.usable:
        return None
    newest, began = history.usable[-1], history.usable[-1].began
    return None if began is None else identities.later(newest.identity(began))


def _ended_under(one: Open, other: History) -> str | None:
    """The run of a PASS of its machine under a later name, which ended a FAIL; None without one."""
    return next(
        (
            passed.run_id
            for passed in other.usable
            if passed.began is not None
            and one.failed.began is not None
            and passed.began > one.failed.began
            and passed.proves(signed=other.signed) == "PASS"
            and end_by(one.failed, passed, other.proofs) is None
        ),
        None,
    )


def _standing(
    history: History,
    wrong: Sequence[Message],
    now: datetime,
    fresh: timedelta,
    identities: Identities,
    histories: Mapping[str, History],
    *,
    signed: bool,
) -> Standing:
    name, verdicts, moments = history.machine, history.verdicts, history.dated
    if not verdicts:
        why = wrong[0] if wrong else Message(english("fleet_missing", "there is no verdict"))
        return Standing(name, "UNJUDGED", why, True, None)
    undated = [one for one in verdicts if one.began is None]
    dated = [one for _, one in moments]
    ahead = [one for one in dated if one.is_ahead(now)]
    counts = history.counts

    def doubted(reason: Message, *others: MachineVerdict) -> Standing:
        """No verdict is to be trusted: those that may count can only make the machine FAIL."""
        may_count = (*others, counts)
        failed = [one for one in may_count if one is not None and history.word(one) == "FAIL"]
        if not failed:
            return Standing(name, "UNJUDGED", reason, False, None)
        return Standing(name, "FAIL", reason, False, None, failed=failed[-1])

    if wrong:
        return doubted(wrong[0], *undated, *ahead)
    if undated:
        values = {"run": plain_text.quote(undated[0].run_id)}
        return doubted(
            Message(
                english(
                    "fleet_no_date",
                    "run {run} does not tell when it began, so its verdict does not count",
                ),
                values,
            ),
            *undated,
            *ahead,
        )
    if ahead or counts is None:
        return doubted(
            Message(
                english(
                    "fleet_ahead",
                    "run {run} began later than its verdict was written or read: correct the "
                    "machine's clock, then test it again",
                ),
                {"run": ahead[0].run_id},
            ),
            *ahead,
        )
    newest = dated[-1]
    recent = [one for one in dated if one.is_fresh(now, fresh)]
    if pair := _two_machines(moments, identities, now - fresh):
        values = {"path": quoted(pair[0].path), "other": quoted(pair[1].path)}
        return doubted(
            Message(
                english(
                    "fleet_two_machines",
                    "two machines have this name, those of {path} and of {other}: give each a "
                    "name of its own",
                ),
                values,
            ),
            *recent,
        )
    if later := [one for one in recent if one.written > newest.written + COPYING]:
        values = {"run": later[-1].run_id, "other": newest.run_id}
        return doubted(
            Message(
                english(
                    "fleet_out_of_order",
                    "run {run} was written after {other}, and is dated before it: correct the "
                    "machine's clock, then test it again",
                ),
                values,
            ),
            *later,
        )
    word = history.word(counts)
    if not recent and word != "FAIL":
        hours = round((now - moments[-1][0]) / timedelta(hours=1))
        reason = Message(
            english("fleet_stale", "no fresh verdict: the newest run, {run}, began {hours} h ago"),
            {"run": newest.run_id, "hours": hours},
        )
        return Standing(name, "UNJUDGED", reason, True, None)
    if elsewhere := identities.later(newest.identity(moments[-1][0])):
        reason = of_another(elsewhere, newest.parts)
        other = histories[elsewhere.run.name]
        ended = elsewhere.kind == "machine" and elsewhere.run.passed
        if ended and all(_ended_under(one, other) is not None for one in history.open):
            return Standing(name, "UNJUDGED", reason, False, None)
        return doubted(reason)
    if signed and counts.signer is None:
        return doubted(
            Message(
                english("fleet_unsigned", "the verdict is unsigned: sign the run (`rigproof sign`)")
            )
        )
    if counts.partial and counts.verdict == "PASS":
        values = {"run": counts.run_id}
        return Standing(
            name,
            "UNJUDGED",
            Message(
                english(
                    "fleet_partial", "run {run} is partial, which is no acceptance of the machine"
                ),
                values,
            ),
            False,
            counts,
        )
    if word != counts.verdict:
        reason = Message(
            english(
                "fleet_accepted_untested",
                "the FAIL of {run} was accepted, and there is no newer PASS: test it again",
            ),
            {"run": counts.run_id},
        )
        return Standing(name, "UNJUDGED", reason, False, counts)
    proved = word != "UNJUDGED" and counts.is_fresh(now, fresh)
    failed = counts if word == "FAIL" else None
    return Standing(name, word, _why(history, counts), not recent, counts, proved, failed)


def _why(history: History, counts: MachineVerdict) -> Text | None:
    """Why a machine is no PASS; of a FAIL also why a later PASS does not end it."""
    return why_open(history.open[-1]) if history.open else counts.reason


def why_open(one: Open) -> Text:
    """What failed, and why a later PASS does not end it."""
    reason = one.failed.reason or Message(
        english("fleet_fail_untold", "run {run} failed, and what failed is not known"),
        {"run": one.failed.run_id},
    )
    if one.passed is None or one.why is None:
        return reason
    values = {"reason": reason, "run": one.passed.run_id, "why": one.why}
    return Message(
        english(
            "fleet_not_ended",
            "{reason}; the later PASS of {run} ({profile}) does not end it: {why}",
        ),
        {**values, "profile": one.passed.profile or ""},
    )


def _dated(verdicts: Iterable[MachineVerdict]) -> list[tuple[datetime, MachineVerdict]]:
    """Verdicts with the beginnings of their runs, the oldest first."""
    return sorted(
        ((one.began, one) for one in verdicts if one.began is not None),
        key=lambda one: (one[0], one[1].run_id),
    )


def _two_machines(
    dated: Sequence[tuple[datetime, MachineVerdict]], identities: Identities, since: datetime
) -> tuple[MachineVerdict, MachineVerdict] | None:
    """Two verdicts since this time that are not of one machine, the older first."""
    recent = [(one, one.identity(began)) for began, one in dated if began >= since]
    for (one, run), (other, next_run) in pairwise(recent):
        if identities.differ(run, next_run):
            return one, other
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """A machine in the table of a night.

    `run_id` and `began` are None where no verdict counts; `missing` where there is no fresh one and
    nothing was wrong with what was read. `signer` is None of an unsigned verdict. `checks`,
    `not_passed` and `parts` are those of the verdict that counts, None and empty without one.
    `caveats` are what that does not cover. `ended` are the runs of the machine's FAILs that do not
    stand any more, and `accepted` those that somebody accepted.
    """

    machine: str
    verdict: VerdictWord
    reason: str | None = None
    run_id: str | None = None
    began: datetime | None = None
    profile: str | None = None
    signer: str | None = None
    sha256: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
    missing: bool = False
    checks: int | None = None
    not_passed: tuple[tuple[str, NotPassed], ...] = ()
    parts: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    @property
    def proof(self) -> Message:
        """What its verdict was given by: profile, machine file, and what it does not cover."""
        values = known(
            profile=self.profile or "",
            file=dict(self.groups).get("machine_file"),
            caveats="; ".join(self.caveats) or None,
        )
        return Message(english("fleet_pass_of", "{profile}[ under {file}][ ({caveats})]"), values)

    def identity(self, began: datetime) -> MachineRun:
        """What it says of which machine it is of; `began` is its own.

        How long the run took is not kept. A run that is UNJUDGED may have been partial.
        """
        groups = dict(self.groups)
        return MachineRun(
            self.machine,
            self.run_id or "",
            began,
            began,
            groups.get("machine_id"),
            groups.get("board_serial"),
            frozenset(self.parts),
            self.verdict != "UNJUDGED",
            self.verdict == "PASS",
        )


@dataclass(frozen=True, slots=True)
class NightTable:
    """What was measured in one night.

    `values` has a row for each machine and a column for each series, both sorted; NaN where a
    machine did not measure it. `troubles` has what could not be read, by the fleet's folder, as
    pairs of machine and sentence: each folder that was read last for this night, None where that is
    not known.
    """

    rows: tuple[Row, ...]
    series: tuple[Series, ...]
    values: NDArray[np.float64]
    troubles: Mapping[str, tuple[tuple[str | None, str], ...]] | None = None


def tables(
    found: Collection, judged: Judged, reasons: Mapping[str, str], now: datetime
) -> dict[str, NightTable]:
    """The tables of the nights that the verdicts are of, by the evening's date.

    `reasons` has the words of why a machine did not pass. A machine without a verdict that counts
    has a row without values in the night of `now`, and so has one with a FAIL that stands from an
    earlier night: whoever reads the last nights alone sees it. Of several runs of one night that of
    `stands` counts.
    """
    tonight = night_of(now)
    nights: dict[str, dict[str, tuple[Row, MachineVerdict | None]]] = {}
    wrong = {trouble.machine for trouble in found.troubles}
    for standing in (*judged.due, *judged.others):
        name, newest = standing.machine, standing.newest
        if newest is None:
            missing = standing.missing and name not in wrong
            row = _bare(standing, reasons.get(name), missing=missing)
            nights.setdefault(tonight, {})[name] = row, None
        if newest is None and not standing.missing:
            continue
        later = False  # than the verdict that counts: such a run proves nothing
        for began, one in _dated(found.verdicts.get(name, ())):
            word = "UNJUDGED" if later else one.proves(signed=False)
            if one is newest:
                word, later = standing.verdict, True
            reason = reasons.get(name) if one is newest else one.reason
            kept = nights.setdefault(night_of(began), {})
            row = _row(standing, one, word, reason)
            if name not in kept or not stands(kept[name][0], row):
                kept[name] = row, one
        if newest is not None and newest.verdict == standing.verdict == "FAIL":
            kept = nights.setdefault(tonight, {})
            if name not in kept or kept[name][0].run_id != newest.run_id:
                kept[name] = _row(standing, newest, "FAIL", reasons.get(name)), None
    return {
        night: _table(list(held.values()), found.series) for night, held in sorted(nights.items())
    }


def with_troubles(
    nights: Mapping[str, NightTable], found: Collection, texts: Sequence[str], now: datetime
) -> dict[str, NightTable]:
    """The nights of a collection with what could not be read, in the words of `texts`.

    It is kept in the last night, that of `now` where there is none.
    """
    kept: dict[str, list[tuple[str | None, str]]] = {folder: [] for folder in found.folders}
    for one, text in zip(found.troubles, texts, strict=True):
        kept[one.folder].append((one.machine, text))
    last = max(nights, default=night_of(now))
    table = nights[last] if nights else _table((), found.series)
    troubles = {folder: tuple(held) for folder, held in kept.items()}
    return {**nights, last: replace(table, troubles=troubles)}


def _row(standing: Standing, one: MachineVerdict, word: VerdictWord, reason: str | None) -> Row:
    return Row(
        standing.machine,
        word,
        reason,
        one.run_id,
        one.began,
        one.profile,
        one.signer,
        one.sha256,
        tuple(sorted(one.groups.items())),
        checks=one.checks,
        not_passed=one.not_passed,
        parts=tuple(sorted(one.parts)),
        caveats=one.caveats,
        ended=tuple(sorted(standing.ended)),
        accepted=standing.accepted,
    )


def _bare(standing: Standing, reason: str | None, *, missing: bool) -> Row:
    """The row of a machine without a verdict that counts, or with one that is only in a night."""
    ended, accepted = tuple(sorted(standing.ended)), standing.accepted
    if standing.kept is not None:
        return replace(standing.kept, ended=ended, accepted=accepted)
    return Row(
        standing.machine,
        standing.verdict,
        reason,
        missing=missing,
        ended=ended,
        accepted=accepted,
    )


def newest_table(standings: Iterable[Standing], series: Sequence[Series]) -> NightTable:
    """The table of the verdicts that count now, whatever night their runs began in.

    The rows have no reasons: the standings have them.
    """
    return _table([(one.row, one.newest) for one in standings], series)


def _table(
    held: Sequence[tuple[Row, MachineVerdict | None]], series: Sequence[Series]
) -> NightTable:
    import numpy as np  # not at the top: every run reads its machine's folder, and makes no table

    held = sorted(held, key=lambda one: one[0].machine)
    used = np.zeros(len(series), bool)
    for _, verdict in held:
        if verdict is not None:
            used[verdict.places] = True
    columns = sorted(np.flatnonzero(used).tolist(), key=lambda place: series[place])
    where = np.zeros(len(series), np.int64)
    where[columns] = np.arange(len(columns))
    values = np.full((len(held), len(columns)), np.nan)
    for number, (_, verdict) in enumerate(held):
        if verdict is not None:
            values[number, where[verdict.places]] = verdict.values
    return NightTable(
        tuple(row for row, _ in held), tuple(series[place] for place in columns), values
    )


def merge(old: NightTable, new: NightTable) -> NightTable:
    """One table of two collections, of one night or two: the verdict that counts, nothing lost.

    A row without a run takes no values away from the one that is there: where it is in doubt it
    makes the verdict worse, and where the verdict was only missing it changes nothing. Of a folder
    that was read again, what could not be read before may be readable by now.
    """
    import numpy as np  # as above

    before = {row.machine: place for place, row in enumerate(old.rows)}
    after = {row.machine: place for place, row in enumerate(new.rows)}
    series = tuple(sorted({*old.series, *new.series}))
    column = {one: place for place, one in enumerate(series)}
    of_old = [column[one] for one in old.series]
    of_new = [column[one] for one in new.series]
    names = sorted({*before, *after})
    rows: list[Row] = []
    values = np.full((len(names), len(series)), np.nan)
    for number, name in enumerate(names):
        if name not in before:
            row = new.rows[after[name]]
        elif name not in after:
            row = old.rows[before[name]]
        else:
            row = _kept(old.rows[before[name]], new.rows[after[name]])
        rows.append(row)
        if name in after and row is new.rows[after[name]]:
            values[number, of_new] = new.values[after[name]]
        else:
            values[number, of_old] = old.values[before[name]]
    return NightTable(tuple(rows), series, values, merge_troubles(old, new))


def merge_troubles(
    old: NightTable, new: NightTable
) -> Mapping[str, tuple[tuple[str | None, str], ...]] | None:
    """What could not be read, by folder as it was read last; None where neither table knows."""
    if old.troubles is None or new.troubles is None:
        return new.troubles if old.troubles is None else old.troubles
    return {**old.troubles, **new.troubles}


def stands(was: Row, newer: Row) -> bool:
    """Whether a row counts although the machine has a newer one: its FAIL was not ended."""
    return was.verdict == "FAIL" and newer.verdict != "FAIL" and was.run_id not in newer.ended


def _kept(was: Row, now: Row) -> Row:
    """The row of a machine that is in two tables."""
    if was.began is None:
        return now
    if was.verdict == "FAIL" and was.run_id in now.ended:
        return now
    if now.began is not None:
        older, newer = (was, now) if now.began >= was.began else (now, was)
        return older if stands(older, newer) else newer
    word = was.verdict if now.missing else worst_word((was.verdict, now.verdict))
    return was if word == was.verdict else replace(was, verdict=word, reason=now.reason)
