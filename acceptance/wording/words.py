"""Word findings and messages in the reader's language, by the catalogues of fixtures/locale.

The English stands in the code (`english`) and in data files; `make messages` collects it by code,
and other languages translate that. A part of a wording in square brackets is left out where a value
in it is not there. A sentence within another is `{name:lower}`, which begins it with a small
letter. What comes back is for printing: nobody takes it apart.

Values and bounds with their units, as people read them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import assert_never

from acceptance import resources
from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import Limit, number
from acceptance.core.message import (
    Listed,
    Message,
    Quantity,
    Range,
    Term,
    Text,
    Texts,
    Value,
    Values,
    english,
    known,
)
from acceptance.wording import drift


def quantity(value: float, unit: str, *, exact: bool = False) -> str:
    """A value with its unit; counts and ratios have none. `exact` is not rounded."""
    shown = repr(value) if exact else number(value)
    return shown if unit in ("count", "ratio") else f"{shown} {unit}"


def span(low: float | None, high: float | None, unit: str) -> str:
    """Bounds in words, at least one of which is given: `>= 5 W`."""
    if low is None or high is None:
        return f"<= {quantity(high or 0.0, unit)}" if low is None else f">= {quantity(low, unit)}"
    return f"= {quantity(low, unit)}" if low == high else f"{number(low)} .. {quantity(high, unit)}"


def limit_text(limit: Limit) -> str:
    """The bounds that decide."""
    return span(limit.low, limit.high, limit.unit)


FILE = "locale/en/sentences.json"
NOTE_INLINE = 100
_WRONG_RESULT = ("wrong_result_at", "wrong_result_unread")
_PART = re.compile(r"\[([^\[\]]+)\]")
_MANY = 2  # stands for a fraction of things, which takes the form of many


class _Filled(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        if format_spec == "lower":
            text = str(value)
            return text[:1].lower() + text[1:]
        return str(super().format_field(value, format_spec))


_FILLED = _Filled()


@functools.cache
def sentences() -> Mapping[str, tuple[str, ...]]:
    """The English of every code, and the form for many things after it. Raises SetupError."""
    return resources.read(resources.locate(FILE), dict[str, tuple[str, ...]])


def of(finding: Finding, language: Language = ENGLISH, shown: str | None = None) -> str:
    """A finding's own line. Its texts are untrusted: the caller must pass it through `one_line`.

    `shown` replaces the name of its component. A code of another version, or one without a value of
    its wording, is shown with its values.

    Raises SetupError.
    """
    about = {"measurement": finding.measurement, "component": shown or finding.component}
    named = {name: str(value) for name, value in about.items() if value is not None}
    told = _worded(finding.code, values(finding), named, language)
    for one in other_checks(finding):
        told = message(
            Message(english("aside", "{text} ({aside})"), {"text": told, "aside": one}), language
        )
    return told


def other_checks(finding: Finding) -> Iterator[Message]:
    """What other findings of the same fault say, or which one counts it."""
    too = finding.values.get("too")
    yield from (one for one in (too if isinstance(too, tuple) else ()) if isinstance(one, Message))
    if finding.duplicate_of is not None:
        if finding.duplicate_of == finding.check:
            yield Message(
                english(
                    "same_fault_here",
                    "the same fault as another failure of this check, which counts it",
                )
            )
        else:
            yield Message(
                english("same_fault_as", "the same fault as in {check}, which counts it"),
                {"check": finding.duplicate_of},
            )
    elif finding.also_in and "beside" not in finding.values:  # which names them itself
        yield Message(
            english("seen_by_too", "seen by {checks} too"), {"checks": Listed(finding.also_in)}
        )


def action(finding: Finding, language: Language = ENGLISH) -> str | None:
    """What an event asks for; None for any other finding. Otherwise as `of`."""
    if not finding.action:
        return None
    first, *catalog = finding.action
    about: Values = {"action": Term(first)}
    if not catalog:
        return message(Message(english("action", "{action}"), about), language)
    return message(
        Message(
            english("action_of_catalog", "{action} NVIDIA's catalog: {catalog}."),
            {**about, "catalog": _then(catalog)},
        ),
        language,
    )


def _then(steps: Sequence[str]) -> Value:
    """Steps one after the other."""
    first, *rest = steps
    return (
        Message(english("then", "{first}, then {next}"), {"first": first, "next": _then(rest)})
        if rest
        else first
    )


def as_message(finding: Finding) -> Message:
    """A finding's own line as a message, which may stand in another one."""
    where = None if finding.component is None else str(finding.component)
    about = known(measurement=finding.measurement, component=where)
    return Message(finding.code, {**values(finding), **about})


def values(finding: Finding) -> Values:
    """What a finding's wording is filled with, by name; a brief note stands in the line."""
    found = finding.values if finding.drift is None else drift.values(finding.drift)
    if finding.also_in:
        found = {**found, "also_in": Listed(finding.also_in)}
    if finding.duplicate_of is not None:
        found = {**found, "counted_in": finding.duplicate_of}
    inline = not _is_wrong_result(finding.note) and note_beside(finding) is None
    return {**found, "note": finding.note} if inline and finding.note else found


def note_beside(finding: Finding) -> Text | None:
    """The note of a finding where it would hide the value and its limit in the line."""
    if _is_wrong_result(finding.note):  # the first one may stand in the line already
        return None if "first" in finding.values else finding.note
    told = text(finding.note or "")
    return finding.note if "\n" in told or len(told) > NOTE_INLINE else None


def _is_wrong_result(note: Text | None) -> bool:
    return isinstance(note, Message) and note.code in _WRONG_RESULT


def message(told: Message, language: Language = ENGLISH) -> str:
    """A message by itself; otherwise as `of`."""
    return _worded(told.code, told.values, {}, language)


def text(told: Texts, language: Language = ENGLISH) -> str:
    """A message in words, or somebody else's text as it is; otherwise as `of`."""
    if isinstance(told, tuple):
        return "\n".join(text(one, language) for one in told)
    return told if isinstance(told, str) else message(told, language)


def lines(told: Texts, language: Language = ENGLISH) -> list[str]:
    """The lines of `text`, for those who lay them out one below another; otherwise as `of`."""
    return text(told, language).splitlines()


def measured(told: Quantity) -> str:
    """A value with its unit."""
    return quantity(told.value, told.unit, exact=told.exact)


def _worded(code: str, values: Values, about: dict[str, str], language: Language) -> str:
    shown = about | {name: _shown(value, about, language) for name, value in values.items()}
    try:
        form = _form(code, values.get("n"), language)
        whole = _PART.sub(lambda part: part[1] if _names(part[1]) <= shown.keys() else "", form)
        return _FILLED.vformat(whole, (), shown)
    except LookupError:  # a journal of another version: its report is still made
        return ": ".join([code, *shown.values()])


def _names(form: str) -> set[str]:
    """The names of the values in a wording."""
    return {name for _, name, _, _ in Formatter().parse(form) if name is not None}


def _form(code: str, count: Value | None, language: Language) -> str:
    """The wording of a code, in the form for so many things. Raises LookupError if it has none."""
    forms = sentences()[code]
    if isinstance(count, int | float):
        many = int(count) if count == int(count) else _MANY
        return language.translations.npgettext(code, forms[0], forms[-1], many)
    return language.translations.pgettext(code, forms[0])


def _shown(value: Value, about: dict[str, str], language: Language) -> str:
    match value:
        case str():
            return value
        case int() | float():
            return number(value)
        case Quantity():
            return measured(value)
        case Range():
            return span(value.low, value.high, value.unit)
        case Term():
            return language.text(value.text)
        case Message():  # on one line, whatever it quotes
            return " ".join(_worded(value.code, value.values, about, language).split())
        case Listed():
            return _listed(value, about, language)
        case tuple():
            return _clauses([_shown(one, about, language) for one in value], language)
        case _:
            assert_never(value)


def _listed(names: Listed, about: dict[str, str], language: Language) -> str:
    if not names.items:
        return ""
    told, *others = (_shown(one, about, language) for one in names.items)
    for one in others:
        told = _form(english("and_name", "{first}, {next}"), None, language).format(
            first=told, next=one
        )
    if names.left_out:
        told = _form("and_more", None, language).format(names=told, more=names.left_out)
    return told


def _clauses(told: list[str], language: Language) -> str:
    """Clauses one after the other."""
    form = _form(english("and_clause", "{first}; {next}"), None, language)
    return functools.reduce(lambda first, one: form.format(first=first, next=one), told or [""])
