"""Translate sentences about drift and changes since the baseline.

The sentences of `core.past` and `machine.changes` are made in English when a run is
judged, and recorded so. Here each clause is recognized by its form and translated. Numbers, names
and the basis of a rule stay as they are, and so does a clause of an unknown form.
"""

from __future__ import annotations

import functools
import re

from acceptance.core.finding import DRIFT
from acceptance.core.language import ENGLISH, N_, Language
from acceptance.machine.changes import CHANGES

# characters; a longer text quotes text from outside and is not translated
_LONGEST = 2_000
_DEEPEST = 4  # a phrase in a clause in a sentence
# Patterns of these fields in a form; any other field matches a few words.
_FIELDS = {
    "nights": r"\d{1,6} nights?",
    "number": r"[\d.]{1,12}",
    "date": r".{0,10}",
    "factor": r"[\d.]{1,12}",
    "told": r".+",
}
_ANY = r".{1,300}?"

# The first form that fits is used.
_FORM_WORDS = (
    N_("basis: {told}"),
    N_("{name} on {where} is no finite number that could be held against its past"),
    N_("{name} on {where}: its noise has grown: {told}"),
    N_("{name} on {where}: measured {value}: {told}"),
    N_("{value}, {again} at the second look"),
    N_("its level went from {before} to {now} within {number} days ({nights}), bound {bound}"),
    N_("{much} below {before}, bound {bound}"),
    N_("{much} above {before}, bound {bound}"),
    N_("grew by {much} within {days}, set back from {before}, allowed {bound}"),
    N_("grew by {much} within {days}, from {before}, allowed {bound}"),
    N_("{bound}, fails above {most}"),
    N_("the median of {nights} before, {value}"),
    N_("the baseline of {date}, {value}"),
    N_("the baseline of {date} and {nights} after it, {value}"),
    N_("the first {nights} from {date} on, {value}"),
    N_("nothing tells whether this is for the worse"),
    N_("the second night running"),
    N_("{nights} of the last {number} strayed, this one included"),
    N_("{nights} of the last {number} strayed"),
    N_("the second look was within"),
    N_("the first night: another one like it, and it fails"),
    N_("too few nights came before for more than a warning"),
    N_("one deviation of the last {nights} is {now}, and was {before} before"),
    N_("median of {nights} {value}, one deviation {much}, {factor} of it allowed"),
    N_("median of {nights} {value}"),
    N_("baseline of {date} and {nights} after it {value}"),
    N_("baseline of {date} {value}"),
    N_("first {nights} from {date} on {value}"),
    N_("re-based: the baseline was taken with another image, station or driver"),
    N_("{number} nights"),
    N_("1 night"),
    N_("{number} days"),
    N_("1 day"),
    N_("{part} is missing: it was there when the baseline was recorded ({date})"),
    N_("{part} is another part: {before} when the baseline was recorded ({date}), {now} now"),
    N_("{part} was not there when the baseline was recorded ({date})"),
    N_(
        "the parts of kind {kind} could not be read in this run, and could when the baseline was "
        "recorded ({date})"
    ),
    N_(
        "not told in this run, so not held against what it was when the baseline was recorded "
        "({date}): {facts}"
    ),
    N_("{part}: at {before} when the baseline was recorded ({date}), at {now} now"),
    N_("{facts}: {before} when the baseline was recorded ({date}), {now} now"),
    N_("{part} when the baseline was recorded ({date}) is {now} now"),
    N_("told of since {date}"),
)
_MORE = re.compile(r"(?P<names>.+) and (?P<number>\d+) more", re.DOTALL)


def is_drift_event(event: str) -> bool:
    """Whether a finding with this event is about drift or a change since the baseline."""
    return event.startswith((f"{DRIFT}.", CHANGES))


def translate(text: str, language: Language) -> str:
    """A sentence about a change in this language.

    The text is untrusted: the caller must pass it through `one_line`.
    """
    if language is ENGLISH or len(text) > _LONGEST:
        return text
    words, *clauses = text.split("; ")
    words = _phrase(words, language, _DEEPEST)
    for clause in clauses:
        now = _phrase(clause, language, _DEEPEST)
        words = (
            language("{told}; {clause}", told=words, clause=now)
            if now != clause
            else f"{words}; {clause}"
        )
    return words


def _phrase(text: str, language: Language, deep: int) -> str:
    """A clause or phrase, translated; unchanged if its form is unknown."""
    found = next(
        ((form, match) for form, pattern in _patterns() if (match := pattern.fullmatch(text))), None
    )
    if found is None or not deep:
        return text
    form, match = found
    parts = match.groupdict()
    return language(
        form,
        **{
            name: _facts(part, language) if name == "facts" else _phrase(part, language, deep - 1)
            for name, part in parts.items()
        },
    )


def _facts(text: str, language: Language) -> str:
    """A list of facts, `VBIOS of gpu0, kernel and 2 more`, with the names of `changes.toml`."""
    more = _MORE.fullmatch(text)
    named = ", ".join(_fact(one, language) for one in (more["names"] if more else text).split(", "))
    return (
        language("{names} and {number} more", names=named, number=more["number"]) if more else named
    )


def _fact(text: str, language: Language) -> str:
    if text in language.texts:
        return language.text(text)
    name, mark, where = text.rpartition(" of ")
    return language("{what} of {where}", what=language.text(name), where=where) if mark else text


@functools.cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((form, _pattern(form)) for form in _FORM_WORDS)


def _pattern(form: str) -> re.Pattern[str]:
    literals = re.split(r"\{(\w+)\}", form)
    parts = [
        f"(?P<{part}>{_FIELDS.get(part, _ANY)})" if index % 2 else re.escape(part)
        for index, part in enumerate(literals)
    ]
    return re.compile("".join(parts), re.DOTALL)
