"""The closing block of a run: findings grouped into entries, with causes and the next command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core.finding import Finding
from acceptance.core.language import Language
from acceptance.reports import explanation
from acceptance.reports.headline import headline
from acceptance.reports.locations import NO_LOCATIONS, Locations

_MOST_NAMES = 16
# Characters of a component's name. A longer one is not a machine's, and is not searched for in
# texts.
_LONGEST = 4_000
# Placeholders for the component's name and the measured value while texts are compared.
_WHOSE, _VALUE = "\0", "\1"
# Replaces the placeholder characters in a text from outside.
_UNMARKED = str.maketrans(dict.fromkeys((_WHOSE, _VALUE), "\ufffd"))
_MEASURED = re.compile(r"measured (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
_NUMBERED = re.compile(r"([a-z]+)([0-9]+)")


@dataclass(frozen=True, slots=True)
class ClosingEntry:
    """One entry of the closing block.

    `lines` are pairs of check ids and a text; `below` is the text below them.
    """

    lines: tuple[tuple[tuple[str, ...], str], ...]
    below: tuple[str, ...]


@dataclass(slots=True)
class _Same:
    """Findings with the same text for several components or checks."""

    first: Finding
    checks: list[str]
    components: list[str]
    values: list[str]

    def text(self, named: Mapping[str, str], language: Language) -> str:
        """The line; `named` has the names to show for components known by their address."""
        own = self.first.component
        if own is None or len(self.components) < 2:
            text = headline(self.first, language)
            return text if own is None else text.replace(own, named.get(own, own))
        text = headline(replace(self.first, text=_with_marks(self.first.text, own)), language)
        whose = names([named.get(one, one) for one in self.components], language).translate(
            _UNMARKED
        )
        text = text.replace(_WHOSE, whose, 1).replace(_WHOSE, language("each"))
        ends = sorted(dict.fromkeys(self.values), key=float)
        return text.replace(_VALUE, f"{ends[0]} .. {ends[-1]}" if len(ends) > 1 else "".join(ends))


def _with_marks(text: str, component: str) -> str:
    """The text with placeholders for its component's name and the measured value.

    Components with the same trouble get the same text.
    """
    text, component = text.translate(_UNMARKED), component.translate(_UNMARKED)
    if len(component) > _LONGEST:
        return text
    named = re.sub(rf"(?<![\w>-]){re.escape(component)}(?![\w-])", _WHOSE, text)
    return _MEASURED.sub(f"measured {_VALUE}", named)


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
    shown = ", ".join(found[:_MOST_NAMES])
    rest = len(found) - _MOST_NAMES
    return language("{names} and {number} more", names=shown, number=rest) if rest > 0 else shown


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def entries(
    findings: Iterable[Finding], places: Locations, language: Language
) -> Iterator[ClosingEntry]:
    """The findings of one kind as entries.

    A text that several components or checks share is one line, and shared causes are given once.
    """
    same: dict[object, _Same] = {}
    named = {
        one.address: f"{name} ({one.address})"
        for name, one in places.found.items()
        if one.address and name != one.address
    }
    for finding in findings:
        own = finding.component
        text = _with_marks(finding.text, own) if own else finding.text
        key = (own is None, replace(finding, check="", text=text, component=None))
        group = same.setdefault(key, _Same(finding, [], [], []))
        group.checks.append(finding.check)
        group.components += [own] if own and own not in group.components else []
        group.values += _MEASURED.findall(finding.text)
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
            explanation.details(members[0].first, NO_LOCATIONS, language) if several else below,
        )
