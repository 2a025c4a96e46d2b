"""A finding's own line in a language; names, numbers and the basis stay as they are."""

from __future__ import annotations

import re

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.reports import drift_words

# As `core.judgement` writes it. The note in it may hold anything, so the limit is searched from the
# end.
_MEASURED = re.compile(
    (
        r"(?P<what>\S+) on (?P<where>\S+): measured (?P<value>.+), limit (?P<limit>[^;]+); "
        r"basis: (?P<basis>.*)"
    ),
    re.DOTALL,
)
# A value above its ceiling.
_IMPLAUSIBLE = re.compile(
    r"(?P<what>\S+) on (?P<where>\S+): measured (?P<value>.+), and no more than (?P<most>.+) is "
    r"possible: it proves nothing, "
    r"measure it again with another tool; basis: (?P<basis>.*)",
    re.DOTALL,
)


def headline(finding: Finding, language: Language = ENGLISH) -> str:
    """The line; unchanged in English, and if its form is unknown.

    The text is untrusted: the caller must pass it through `one_line`.
    """
    text = finding.text
    if language is ENGLISH:
        return text
    if finding.event is not None and drift_words.is_drift_event(finding.event):
        return drift_words.translate(text, language)
    if finding.event is not None:
        head, mark, meaning = text.partition(": ")
        return f"{head}{mark}{language.text(meaning)}"
    if match := _IMPLAUSIBLE.fullmatch(text):
        return language(
            "{what} on {where}: measured {value}, and no more than {most} is possible: it proves "
            "nothing, "
            "measure it again with another tool; basis: {basis}",
            **{name: match[name] for name in ("what", "where", "value", "most", "basis")},
        )
    match = _MEASURED.fullmatch(text)
    if match is None:
        return text
    what = {name: match[name] for name in ("what", "where", "value", "limit", "basis")}
    return language("{what} on {where}: measured {value}, limit {limit}; basis: {basis}", **what)
