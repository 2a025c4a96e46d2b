"""Changes since the baseline: parts missing, replaced, moved or added, and facts that differ.

A pure function of both runs and of the rules in the plan. A fact that one of the two runs lacks is
no change; one that tonight's lacks is noted. A change that somebody has made to the machine is a
warning on the first night, and a note once a night has reported it.

Rules for changes of the machine: `fixtures/changes.toml`, read strictly.

The rules of a run are part of its plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from acceptance import resources
from acceptance.baseline.facts import NETWORK, Parts, facts_of, kind_of, match
from acceptance.core.finding import Finding
from acceptance.core.limit import GIB
from acceptance.core.machine_facts import (
    ChangeBook,
    ChangeRule,
    FactChange,
    KnownChange,
    MachineFacts,
    PartChange,
    PartKind,
)
from acceptance.core.message import (
    NO_VALUES,
    Listed,
    Message,
    Quantity,
    SetupError,
    Term,
    Values,
    english,
    known,
)
from acceptance.core.parts import ITSELF, Component, Named
from acceptance.core.record import Entry
from acceptance.core.verdict import BaselineChanges

ChangeSeverity = Literal["fail", "warn", "note"]
_ORDER: tuple[ChangeSeverity, ...] = ("fail", "warn", "note")
CHANGES = "inventory."  # prefix of the events of changes
_SWITCH = ("off", "on")  # off counts as lower
_NAMED_BY_SLOT = "dimm"
_MOST = 5  # names in a line; the journal has them all


@dataclass(frozen=True, slots=True)
class MachineChange:
    """One difference from the baseline.

    `event` selects its causes. `component` is the name in tonight's run, None if no part of
    tonight's is meant. `known` is what later nights need to know of it; None if it is reported in
    the same way every night.
    """

    kind: ChangeSeverity
    event: str
    component: Component | None
    code: str
    values: Values
    known: KnownChange | None = None

    @property
    def message(self) -> Message:
        """The change by itself, its component among the values."""
        about = {"component": str(self.component)} if self.component is not None else {}
        return Message(self.code, {**about, **self.values})


def compare(baseline: MachineFacts | None, entries: Sequence[Entry]) -> BaselineChanges:
    """Compare the machine of a run with the baseline in its plan."""
    if baseline is None:
        return BaselineChanges()
    tonight = facts_of(entries)
    if tonight is None:
        return BaselineChanges(
            (
                Finding(
                    "error",
                    "run",
                    english(
                        "no_inventory",
                        "this run holds no inventory, so the machine's parts could not be "
                        "compared with the baseline: run it again",
                    ),
                ),
            )
        )
    found = machine_changes(baseline, tonight)
    findings = tuple(
        Finding(
            change.kind,
            "run",
            change.code,
            change.values,
            component=change.component,
            event=change.event,
        )
        for change in found
        if change.kind != "note"
    )
    notes = tuple(change.message for change in found if change.kind == "note")
    return BaselineChanges(findings, notes, tuple(change.known for change in found if change.known))


def machine_changes(baseline: MachineFacts, tonight: MachineFacts) -> tuple[MachineChange, ...]:
    """All changes since the baseline, failures first.

    The rules are those of `baseline`; without rules nothing is compared.
    """
    if baseline.book is None:
        return ()
    pair = _Pair(baseline, tonight, baseline.book)
    found = chain(pair.parts(), pair.facts(), pair.incomparable_facts(), pair.unknown_facts())
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.kind)))


def _size(told: str) -> float | None:
    """A fact as a number, to find which of two is lower; None if it is not a number."""
    try:
        size = float(_SWITCH.index(told)) if told in _SWITCH else float(told)
    except ValueError:
        return None
    return size if math.isfinite(size) else None


class _Pair:
    """A baseline and tonight's run, with the parts of one matched to those of the other."""

    def __init__(self, baseline: MachineFacts, tonight: MachineFacts, book: ChangeBook) -> None:
        self._book = book
        self._then_day = baseline.utc[:10]
        self._tonight = tonight.utc[:10]
        self._known = {(one.part, one.what, one.now): one.since for one in baseline.known}
        self._then, self._now = Parts(baseline, book.counted), Parts(tonight, book.counted)
        shared = self._then.macs() & self._now.macs()
        first = self._then.identities | self._then.links(shared)
        later = self._now.identities | self._now.links(shared)
        matching = match(first, later, self._now.names)
        # tonight's names by the names in the baseline
        self._names = {matching.name(part): part for part in self._now.names}
        # Another network card in the same place appears as a changed MAC address, which an
        # administrator may have set as well: not as a replaced part.
        self._replaced = {
            one.component: one for one in matching.replaced if kind_of(one.component) != NETWORK
        }

    def parts(self) -> Iterator[MachineChange]:
        """Parts that are missing, replaced, moved or added."""
        for part in self._then.names:
            now = self._names.get(part)
            if now is None:
                # otherwise the name belongs to another part by now
                free = part if part not in self._now.names else None
                told = Message(
                    english(
                        "part_missing",
                        "{part} is missing: it was there when the baseline was recorded "
                        "({date})[; reported since {since}]; basis: {basis}",
                    ),
                    {"part": self._then.describe(part)},
                )
                yield from self._part("missing", part, free, told)
            elif one := self._replaced.get(part):
                told = Message(
                    english(
                        "part_replaced",
                        "{component} is another part: {before} when the baseline was recorded "
                        "({date}), {now} now[; reported since {since}]; basis: {basis}",
                    ),
                    {"before": one.before, "now": one.after},
                )
                yield from self._part("replaced", part, now, told)
            elif moved := self._moved(part, now):
                yield from self._part("moved", part, now, moved, self._now.place(now) or str(now))
        for name, part in self._names.items():
            if name not in self._then.names:
                told = Message(
                    english(
                        "part_added",
                        "{part} was not there when the baseline was recorded ({date})[; reported "
                        "since {since}]; basis: {basis}",
                    ),
                    {"part": self._now.describe(part)},
                )
                yield from self._part("added", part, part, told)

    def _part(
        self,
        change: PartChange,
        part: Component,
        component: Component | None,
        told: Message,
        now: str = "",
    ) -> Iterator[MachineChange]:
        kind = kind_of(part)
        rule = self._book.of_part(kind, change)
        both = kind in self._then.looked & self._now.looked
        if rule is not None and (both or change == "unread"):
            yield from self._change(rule, component, told, (part, change, now))

    def _change(
        self,
        rule: ChangeRule,
        component: Component | None,
        told: Message,
        key: tuple[Component, str, str],
    ) -> Iterator[MachineChange]:
        """The change as its rule grades it.

        `key` identifies it: the part's name in the baseline, what happened to it, and its present
        value.
        """
        if rule.means == "nothing":
            return
        remembered = rule.dated or rule.afterwards is not None
        since = self._known.get(key) if remembered else None
        means = rule.afterwards if rule.afterwards is not None and since else rule.means
        more = known(date=self._then_day, since=since or None, basis=Term(rule.basis))
        later = KnownChange(*key, since or self._tonight) if remembered else None
        yield MachineChange(means, rule.event, component, told.code, {**told.values, **more}, later)

    def _moved(self, part: Component, now: Component) -> Message | None:
        """The part's former and present place, if the slot differs.

        A slot's own name is compared first: bus numbers change when a card is added.
        """
        if kind_of(part) == _NAMED_BY_SLOT:
            before = {"before": self._then.describe(part), "now": str(now)}
            return (
                Message(
                    english(
                        "slot_changed",
                        "{before} when the baseline was recorded ({date}) is {now} now[; reported "
                        "since {since}]; basis: {basis}",
                    ),
                    before,
                )
                if part != now
                else None
            )
        slots = self._then.fact(part, "slot"), self._now.fact(now, "slot")
        addresses = self._then.fact(part, "pci_address"), self._now.fact(now, "pci_address")
        same_slot = None not in slots and len(set(slots)) == 1
        if same_slot or None in addresses or len(set(addresses)) == 1:
            return None
        places = {"before": f"{self._then.place(part)}", "now": f"{self._now.place(now)}"}
        identity = f"{self._now.identities.get(now)}"
        return Message(
            english(
                "part_moved",
                "{component} ({identity}): at {before} when the baseline was recorded ({date}), "
                "at {now} now[; reported since {since}]; basis: {basis}",
            ),
            {"identity": identity, **places},
        )

    def _compared(self) -> Iterator[tuple[Component, str, str]]:
        """The baseline's facts that can be compared with tonight's: (part, fact, text).

        Facts of a replaced part cannot.
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
        self, then: Component, part: Component, name: str, before: str, after: str
    ) -> Iterator[MachineChange]:
        directions, share = _direction(before, after)
        rule = self._book.of_fact(kind_of(part), name, *directions)
        if rule is not None and not share <= rule.within and not self._apart(rule, then, part):
            values = {
                "fact": Term(rule.facts[name]),
                "before": _shown(rule, name, before),
                "now": _shown(rule, name, after),
            }
            told = Message(
                english(
                    "machine_fact_changed",
                    "{fact}: {before} when the baseline was recorded ({date}), {now} now[; "
                    "reported since {since}]; basis: {basis}",
                )
                if part == ITSELF
                else english(
                    "fact_changed",
                    "{fact} of {component}: {before} when the baseline was recorded ({date}), "
                    "{now} now[; reported since {since}]; basis: {basis}",
                ),
                values,
            )
            yield from self._change(
                rule, None if part == ITSELF else part, told, (then, name, after)
            )

    def _apart(self, rule: ChangeRule, then: Component, part: Component) -> bool:
        """Whether the fact that this one depends on is another one, or unknown."""
        if rule.given is None:
            return False
        before, now = self._then.fact(then, rule.given), self._now.fact(part, rule.given)
        return before is None or before != now

    def incomparable_facts(self) -> Iterator[MachineChange]:
        """Facts that differ and say nothing, because what they depend on is another one."""
        found: dict[str, list[tuple[Component, Component, Term | Message]]] = {}
        for then, name, before in self._compared():
            part = self._names.get(then, then)
            after = self._now.fact(part, name)
            rule = self._book.of_fact(kind_of(part), name, "differs")
            if rule is None or rule.given is None or after is None or after == before:
                continue
            if self._apart(rule, then, part):
                found.setdefault(rule.given, []).append((then, part, _about(rule, part, name)))
        for given, parts in found.items():
            then, part, _ = parts[0]
            versions = known(before=self._then.fact(then, given), now=self._now.fact(part, given))
            yield self._untold(
                english(
                    "facts_incomparable",
                    "not compared with the baseline ({date}), because it was made with other "
                    "versions[ ({before})][, now {now}]: {facts}",
                ),
                [about for _, _, about in parts],
                versions,
            )

    def unknown_facts(self) -> Iterator[MachineChange]:
        """Kinds of parts and facts that the baseline has and tonight's run lacks.

        Whether they changed is unknown.
        """
        for kind in sorted(self._then.looked - self._now.looked):
            yield from self._part(
                "unread",
                Named(kind),
                None,
                Message(
                    english(
                        "parts_unread",
                        "the parts of kind {kind} could not be read in this run, and could when "
                        "the baseline was recorded ({date})[; reported since {since}]; basis: "
                        "{basis}",
                    ),
                    {"kind": kind},
                ),
            )
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
            yield self._untold(
                english(
                    "facts_unread",
                    "not reported in this run, so not compared with the baseline ({date}): {facts}",
                ),
                missing,
            )

    def _untold(
        self, code: str, facts: Sequence[Term | Message], versions: Values = NO_VALUES
    ) -> MachineChange:
        """The note that nothing is known of these facts."""
        values = {"facts": Listed.first(facts, _MOST), "date": self._then_day, **versions}
        return MachineChange("note", "inventory.untold", None, code, values)


def _about(rule: ChangeRule, part: Component, name: str) -> Term | Message:
    fact = Term(rule.facts[name])
    return (
        fact
        if part == ITSELF
        else Message(english("fact_of", "{fact} of {part}"), {"fact": fact, "part": str(part)})
    )


def _direction(before: str, after: str) -> tuple[tuple[FactChange, ...], float]:
    """The kinds of change, and by what share of the earlier value.

    A text that is not a number counts as lower too: it never counts as better.
    """
    a, b = _size(before), _size(after)
    if a is None or b is None:
        return ("differs", "lower"), math.inf
    if a == b:  # one number written in two ways; as versions they differ
        return ("differs",), math.inf
    return ("differs", "lower" if b < a else "higher"), abs(b - a) / abs(a) if a else math.inf


def _shown(rule: ChangeRule, name: str, text: str) -> str | Quantity:
    """A fact for people: bytes as GiB, and numbers without a trailing `.0`.

    Texts compared as such, versions for instance, stay as they are.
    """
    size = _size(text)
    if size is not None and name.endswith("_bytes"):
        return Quantity(size / GIB, "GiB")
    return text if rule.change == "differs" else text.removesuffix(".0")


_OF_FACTS: tuple[FactChange, ...] = ("differs", "lower", "higher")
# Changes without a value of their own, so that tonight's cannot be distinguished from last night's.
_NAMELESS: tuple[PartChange, ...] = (
    "missing",
    "added",
    "replaced",
    "unread",
)
_PARTS: tuple[PartKind, ...] = ("gpu", "dimm", "disk", "net")


def _problems(book: ChangeBook) -> Iterator[str]:
    """Errors that types cannot express.

    Examples are a fact without a rule for each direction, and a part whose loss means nothing.
    """
    for rule in book.change:
        if bool(rule.facts) != (rule.change in _OF_FACTS):
            yield (
                f"a rule for what is {rule.change} "
                f"{'names facts' if rule.facts else 'names no fact'} ({rule.basis})"
            )
        if rule.within and rule.change not in ("lower", "higher"):
            yield f"within is for what is lower or higher ({rule.basis})"
        if rule.afterwards and (rule.means != "warn" or rule.change in _NAMELESS):
            yield (
                "afterwards is for a warning about a fact, or about a part that is moved "
                f"({rule.basis})"
            )
    for kind, fact in dict.fromkeys(
        (kind, fact) for rule in book.change for kind in rule.of for fact in rule.facts
    ):
        directions = [book.of_fact(kind, fact, "lower"), book.of_fact(kind, fact, "higher")]
        if book.of_fact(kind, fact, "differs") is None and None in directions:
            yield (
                f"{fact} of {kind} needs a rule for `differs`, or one for `lower` and one for "
                "`higher`"
            )
    for rule in book.change:
        for kind in rule.of if rule.given is not None else ():
            if book.of_fact(kind, str(rule.given), "differs") is None:
                yield f"{rule.given}, on which facts of {kind} depend, needs a rule ({rule.basis})"
        if rule.given is not None and rule.change != "differs":
            yield f"given is for what differs ({rule.basis})"
        if rule.dated and (not rule.facts or rule.afterwards):
            yield f"dated is for a fact that is told in the same way every night ({rule.basis})"
    for kind in _PARTS:
        if None in (
            book.of_part(kind, "missing"),
            book.of_part(kind, "added"),
            book.of_part(kind, "unread"),
        ):
            yield (
                f"{kind} needs a rule for a part that is missing, one for a part that was "
                "added, "
                "and one for parts that are unread"
            )


def read(path: Path) -> ChangeBook:
    """The rules of a file.

    Raises SetupError if anything is wrong, and for a fact without a rule for each change.
    """
    book = resources.read(path, ChangeBook)
    for problem in _problems(book):
        raise SetupError(f"{path.name}: {problem}")
    return book
