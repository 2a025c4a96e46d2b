"""What changed since the baseline: parts missing, replaced, moved or added, and facts that differ.

A pure function of both runs and of the rules in the plan. What one of the two did not tell is no
change; what tonight's did not is said. What somebody has done to the machine is a warning on the
first night, and a note once a night has told of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from acceptance.core.finding import Finding
from acceptance.core.limit import GIB, quantity
from acceptance.core.record import Entry
from acceptance.history import facts as history_facts
from acceptance.history.baseline_facts import KnownChange, MachineFacts
from acceptance.history.change_rules import ChangeBook, ChangeRule, FactChange, PartChange
from acceptance.history.facts import NETWORK, Parts, kind_of
from acceptance.history.matching import match

ChangeSeverity = Literal["fail", "warn", "note"]
_ORDER: tuple[ChangeSeverity, ...] = ("fail", "warn", "note")
CHANGES = "inventory."  # how the events of changes begin
_SWITCH = ("off", "on")  # off is the lower
_NAMED_BY_SLOT = "dimm"
NO_INVENTORY = (
    "this run holds no inventory, so the machine's parts could not be held against "
    "the baseline: "
    "run it again"
)
_MOST = 5  # names in a line: the journal has them all


@dataclass(frozen=True, slots=True)
class MachineChange:
    """One thing that is not as it was.

    `event` is by which its causes are found; `component` as tonight's run names it, None where no
    part of tonight's is meant. `known` is what later nights are to know of it; None for what is
    told in one way every night.
    """

    kind: ChangeSeverity
    event: str
    component: str | None
    text: str
    known: KnownChange | None = None


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """A run compared with the baseline of its machine: findings of the run as a whole (fail, warn,
    error), and notes that decide nothing.

    `known` is what the next night is to know of it; None where this run could not be held against
    anything.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    known: tuple[KnownChange, ...] | None = None


def compare_with_baseline(baseline: MachineFacts, entries: Sequence[Entry]) -> BaselineComparison:
    """Compare a run with the baseline in its plan."""
    tonight = history_facts.facts_of(entries)
    if tonight is None:
        return BaselineComparison((Finding("error", "run", NO_INVENTORY),), ())
    found = machine_changes(baseline, tonight)
    findings = tuple(
        Finding(change.kind, "run", change.text, component=change.component, event=change.event)
        for change in found
        if change.kind != "note"
    )
    notes = tuple(change.text for change in found if change.kind == "note")
    return BaselineComparison(
        findings, notes, tuple(change.known for change in found if change.known)
    )


def machine_changes(baseline: MachineFacts, tonight: MachineFacts) -> tuple[MachineChange, ...]:
    """Everything that changed since, failures first.

    The rules are those of `baseline`; without any nothing is compared.
    """
    if baseline.book is None:
        return ()
    pair = _Pair(baseline, tonight, baseline.book)
    found = chain(pair.parts(), pair.facts(), pair.unknown_facts())
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.kind)))


def _size(told: str) -> float | None:
    """A fact as a number, for the question which of two is lower; None for what is none."""
    try:
        size = float(_SWITCH.index(told)) if told in _SWITCH else float(told)
    except ValueError:
        return None
    return size if math.isfinite(size) else None


class _Pair:
    """A baseline and tonight's run, with the parts of one matched to those of the other."""

    def __init__(self, baseline: MachineFacts, tonight: MachineFacts, book: ChangeBook) -> None:
        self._book = book
        self._when = f"when the baseline was recorded ({baseline.utc[:10]})"
        self._tonight = tonight.utc[:10]
        self._known = {(one.part, one.what, one.now): one.since for one in baseline.known}
        self._then, self._now = Parts(baseline, book.counted), Parts(tonight, book.counted)
        shared = self._then.macs() & self._now.macs()
        first = self._then.identities | self._then.links(shared)
        later = self._now.identities | self._now.links(shared)
        matching = match(first, later, self._now.names)
        self._names = {
            matching.name(part): part for part in self._now.names
        }  # tonight's by the names that they had
        # Another network card in the same place is told by its address, which an administrator may
        # give as well.
        self._replaced = {
            one.component: one for one in matching.replaced if kind_of(one.component) != NETWORK
        }

    def parts(self) -> Iterator[MachineChange]:
        """Parts that are missing, replaced, moved, or were added."""
        for part in self._then.names:
            now = self._names.get(part)
            if now is None:
                free = (
                    part if part not in self._now.names else None
                )  # or else it is the name of another part by now
                yield from self._part(
                    "missing",
                    part,
                    free,
                    f"{self._then.describe(part)} is missing: it was there {self._when}",
                )
            elif one := self._replaced.get(part):
                text = f"{now} is another part: {one.before} {self._when}, {one.after} now"
                yield from self._part("replaced", part, now, text)
            elif moved := self._moved(part, now):
                yield from self._part("moved", part, now, moved, self._now.place(now) or now)
        for name, part in self._names.items():
            if name not in self._then.names:
                yield from self._part(
                    "added", part, part, f"{self._now.describe(part)} was not there {self._when}"
                )

    def _part(
        self, change: PartChange, part: str, component: str | None, text: str, now: str = ""
    ) -> Iterator[MachineChange]:
        kind = kind_of(part)
        rule = self._book.of_part(kind, change)
        both = kind in self._then.looked & self._now.looked
        if rule is not None and (both or change == "unread"):
            yield from self._change(rule, component, text, (part, change, now))

    def _change(
        self, rule: ChangeRule, component: str | None, text: str, key: tuple[str, str, str]
    ) -> Iterator[MachineChange]:
        """What a rule makes of a change.

        `key` tells it from others: the part as it was named, what became of it, and what it is now.
        """
        if rule.means == "nothing":
            return
        basis = f"basis: {rule.basis}"
        if rule.afterwards is None:
            yield MachineChange(rule.means, rule.event, component, f"{text}; {basis}")
        elif since := self._known.get(key):
            yield MachineChange(
                rule.afterwards,
                rule.event,
                component,
                f"{text}; told of since {since}; {basis}",
                KnownChange(*key, since),
            )
        else:
            yield MachineChange(
                rule.means,
                rule.event,
                component,
                f"{text}; {basis}",
                KnownChange(*key, self._tonight),
            )

    def _moved(self, part: str, now: str) -> str | None:
        """Where a part was and is, where that is another slot.

        Bus numbers change when a card is added: a slot's own name goes first.
        """
        if kind_of(part) == _NAMED_BY_SLOT:
            return f"{self._then.describe(part)} {self._when} is {now} now" if part != now else None
        slots = self._then.fact(part, "slot"), self._now.fact(now, "slot")
        addresses = self._then.fact(part, "pci_address"), self._now.fact(now, "pci_address")
        same_slot = None not in slots and len(set(slots)) == 1
        if same_slot or None in addresses or len(set(addresses)) == 1:
            return None
        return (
            f"{now} ({self._now.identities.get(now)}): at {self._then.place(part)} "
            f"{self._when}, "
            f"at {self._now.place(now)} now"
        )

    def _compared(self) -> Iterator[tuple[str, str, str]]:
        """The facts that can be held against tonight's: (part as it was named, fact, what was told
        of it).

        Of another part nothing can.
        """
        for (part, name), before in self._then.facts.items():
            if part not in self._replaced and (part in self._names or part not in self._then.names):
                yield part, name, before

    def facts(self) -> Iterator[MachineChange]:
        """Facts that changed."""
        for part, name, before in self._compared():
            now = self._names.get(part, part)
            after = self._now.fact(now, name)
            if after is not None and after != before:
                yield from self._fact(part, now, name, before, after)

    def _fact(
        self, then: str, part: str, name: str, before: str, after: str
    ) -> Iterator[MachineChange]:
        directions, share = _direction(before, after)
        rule = self._book.of_fact(kind_of(part), name, *directions)
        if rule is not None and not share <= rule.within:
            shown = [_fact_text(rule, name, text) for text in (before, after)]
            text = f"{_about(rule, part, name)}: {shown[0]} {self._when}, {shown[1]} now"
            yield from self._change(rule, part or None, text, (then, name, after))

    def unknown_facts(self) -> Iterator[MachineChange]:
        """What was told then and is not now: nobody knows whether it changed."""
        for kind in sorted(self._then.looked - self._now.looked):
            text = f"the parts of kind {kind} could not be read in this run, and could {self._when}"
            yield from self._part("unread", kind, None, text)
        missing = []
        for part, name, _ in self._compared():
            now = self._names.get(part, part)
            rule = self._book.of_fact(kind_of(part), name, "differs", "lower")
            if (
                rule is not None
                and rule.means in ("fail", "warn")
                and self._now.fact(now, name) is None
            ):
                missing.append(_about(rule, now, name))
        if missing:
            rest = f" and {len(missing) - _MOST} more" if len(missing) > _MOST else ""
            named = ", ".join(missing[:_MOST])
            text = (
                f"not told in this run, so not held against what it was {self._when}: {named}{rest}"
            )
            yield MachineChange("note", "inventory.untold", None, text)


def _about(rule: ChangeRule, part: str, name: str) -> str:
    return f"{rule.facts[name]} of {part}" if part else rule.facts[name]


def _direction(before: str, after: str) -> tuple[tuple[FactChange, ...], float]:
    """Which changes this is, and by what share of the earlier value.

    What is no number is never taken for a better one.
    """
    a, b = _size(before), _size(after)
    if a is None or b is None:
        return ("differs", "lower"), math.inf
    if a == b:  # two ways to write one number; as a version they are two
        return ("differs",), math.inf
    return ("differs", "lower" if b < a else "higher"), abs(b - a) / abs(a) if a else math.inf


def _fact_text(rule: ChangeRule, name: str, text: str) -> str:
    """A fact for people: bytes as GiB, `700.0` of something that is counted as 700, while `1.0`
    of a version is just that.
    """
    size = _size(text)
    if size is not None and name.endswith("_bytes"):
        return quantity(size / GIB, "GiB")
    return text if rule.change == "differs" else text.removesuffix(".0")
