"""The closing block of a run: findings grouped into entries, with causes and the next command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core.finding import Finding
from acceptance.core.language import Language
from acceptance.core.message import Quantity, Range
from acceptance.core.parts import ITSELF, Component, parse
from acceptance.machine import waiver_lines
from acceptance.reports import explanation
from acceptance.reports.locations import Locations
from acceptance.wording import words

_MOST_NAMES = 16
_NUMBERED = re.compile(r"([a-z]+)([0-9]+)")


@dataclass(frozen=True, slots=True)
class ClosingEntry:
    """One entry of the closing block.

    `lines` are pairs of check ids and a text; `below` is the text below them, `waiver` the lines to
    paste into a machine file, where a message recommends that.
    """

    lines: tuple[tuple[tuple[str, ...], str], ...]
    below: tuple[str, ...]
    waiver: tuple[str, ...] = ()


@dataclass(slots=True)
class _Same:
    """Findings of several components or checks that are the same but for what was measured."""

    first: Finding
    told: list[Finding]
    checks: list[str]
    components: list[Component]
    measured: list[Quantity]

    def text(self, named: Mapping[Component, str], language: Language) -> str:
        """The line; `named` has the names to show for components known by their address."""
        shown = names([named.get(one, str(one)) for one in self.components], language)
        finding = self.first
        if self.measured and len(self.components) > 1:
            values = {**finding.values, "measured": _between(self.measured)}
            finding = replace(finding, values=values)
        return words.of(finding, language, shown or None)


def _between(measured: Iterable[Quantity]) -> Quantity | Range:
    """The lowest and the highest of several values; one value where they are shown as one."""
    low, *_, high = sorted(measured, key=lambda one: one.value) * 2
    alike = words.measured(low) == words.measured(high)
    return low if alike else Range(low.unit, low.value, high.value)


def names(components: Iterable[str], language: Language) -> str:
    """The names of several components in short: `gpu0 to gpu7`, `gpu0, gpu2`.

    Of very many, the first are listed.
    """
    found = list(dict.fromkeys(components))
    parts = [_NUMBERED.fullmatch(one) for one in found]
    numbers = [int(part[2]) for part in parts if part]
    alike = len(numbers) == len(found) > 2 and len({part[1] for part in parts if part}) == 1
    if alike and sorted(numbers) == list(range(min(numbers), max(numbers) + 1)):
        first, last = min(found, key=_number), max(found, key=_number)
        return language("{first} to {last}", first=first, last=last)
    shown = language.listed(found[:_MOST_NAMES])
    rest = len(found) - _MOST_NAMES
    return language("{names} and {number} more", names=shown, number=rest) if rest > 0 else shown


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def entries(
    findings: Iterable[Finding], places: Locations, language: Language
) -> Iterator[ClosingEntry]:
    """The findings of one kind as entries.

    What several components or checks share is one line, and shared causes are given once.
    """
    same: dict[str, _Same] = {}
    named = {
        parse(one.address): language.noted(str(name), one.address)
        for name, one in places.found.items()
        if one.address and str(name) != one.address
    }
    for told in findings:
        checks = [told.check, *told.also_in]
        finding = replace(told, values=words.values(told), drift=None, also_in=())
        own = finding.component
        rest = {name: value for name, value in finding.values.items() if name != "measured"}
        kept = rest if own else finding.values
        what = replace(finding, check="", component=own and ITSELF, values=kept)
        group = same.setdefault(repr(what), _Same(finding, [], [], [], []))
        group.told.append(told)
        group.checks += checks
        group.components += [own] if own and own not in group.components else []
        if isinstance(value := finding.values.get("measured"), Quantity):
            group.measured.append(value)
    # Groups with the same explanation share it; a group of several components gets its general
    # form.
    groups = list(same.values())
    by_index: dict[int, _Same] = {index: group for index, group in enumerate(groups)}
    marked = [replace(group.first, check=str(index)) for index, group in by_index.items()]
    for found, below in explanation.group_findings(marked, places, language):
        members = [by_index[int(finding.check)] for finding in found]
        several = len(members) == 1 and len(members[0].components) > 1
        lines = tuple(
            (tuple(dict.fromkeys(one.checks)), one.text(named, language)) for one in members
        )
        yield ClosingEntry(
            lines,
            explanation.details(members[0].first, places.nowhere(), language) if several else below,
            waiver_lines.recommended(one for member in members for one in member.told),
        )
