"""What is still to be written of likely causes: `python -m selftest.causes` lists it.

Causes whose text names a measurement or an event of ours and that have no condition; conditions on
what there is not, or that confirm a text about something else; and faults that do not say which
cause must be shown first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from acceptance.core.advice import Advice, Condition, LikelyCause
from acceptance.diagnosis.causes import RULES
from acceptance.reports import advice
from acceptance.reports.advice import AdviceBook
from selftest.fault import Expect, Named, read

_CODE = re.compile(r"`([^`]+)`")
# Events as people write them, with their kind.
_EVENTS = {
    r"\bXids?\b": "xid",
    r"\bSXids?\b": "sxid",
    r"\bAER\b": "aer",
    r"\bEDAC\b": "edac",
    r"\b(MCEs?|machine checks?)\b": "mce",
}
# The event that a finding begins with: its kind, and its code or what follows in its place.
_EVENT = re.compile(r"([a-z]+(?:-[a-z]+)*) ([\w-]+)")


def names(text: str, known: Collection[str]) -> tuple[str, ...]:
    """The measurements of ours that a text names, then the kinds of events.

    A measurement stands in backticks, also as a pattern: `gemm_*`, `burn_<format>_miscompares`, or
    the end of a name (`_p2p_off`).
    """
    found = [one for one in _CODE.findall(text) if any(_is(one, name) for name in known)]
    return (*found, *(kind for words, kind in _EVENTS.items() if re.search(words, text)))


def _is(written: str, name: str) -> bool:
    pattern = re.sub(r"<\w+>", "*", written)
    if pattern.startswith("_"):
        pattern = f"*{pattern}"
    return re.search(r"[a-z]", pattern) is not None and fnmatchcase(name, pattern)


def entries(book: AdviceBook) -> Iterator[tuple[str, Advice]]:
    """Each advice once, by the first measurement or event that it is for."""
    first: dict[Advice, str] = {}
    for name, one in (*book.measurements.items(), *book.by_event.items(), *book.by_kind.items()):
        for told in (one, *one.instead):
            first.setdefault(told, name)
    return ((name, one) for one, name in first.items())


def without_condition(book: AdviceBook) -> Iterator[str]:
    """Each cause whose text names a measurement or an event, and that has no condition."""
    for name, cause in _causes(book):
        named = names(f"{cause.what} {cause.tell}", book.measurements)
        if named and not cause.conditions:
            yield f"{name}: {cause.what}: {', '.join(named)}"


def of_nothing(book: AdviceBook) -> Iterator[str]:
    """Each condition on a measurement, an event or a rule that there is not."""
    for name, cause in _causes(book):
        for condition in cause.conditions:
            lacking = [one for one in condition.measurements if not _any(one, book.measurements)]
            lacking += [one for one in condition.events if book.of_event(one) is None]
            if condition.rule is not None and condition.rule not in RULES:
                lacking.append(condition.rule)
            yield from (f"{name}: {cause.what}: {one}" for one in lacking)


def _any(pattern: str, known: Iterable[str]) -> bool:
    return any(fnmatchcase(one, pattern) for one in known)


def about_another(book: AdviceBook) -> Iterator[str]:
    """Each cause that is shown as measured by a text about something that was not looked at.

    That is its `tell`, where there is no `seen`, and no condition is a rule.
    """
    for name, cause in _causes(book):
        conditions = cause.conditions
        confirms = conditions and all(one.settles != "excludes" for one in conditions)
        if not confirms or cause.seen or any(one.rule for one in conditions):
            continue
        named = names(cause.tell, book.measurements)
        if not any(_about(one, condition, book) for one in named for condition in conditions):
            yield f"{name}: {cause.what}: {cause.tell}"


def _about(written: str, condition: Condition, book: AdviceBook) -> bool:
    """Whether a condition is about a measurement or event that a text names."""
    if written in {one.partition(".")[0] for one in condition.events}:
        return True
    of = [one for one in book.measurements if _is(written, one)]
    return any(_any(pattern, of) for pattern in condition.measurements)


def _causes(book: AdviceBook) -> Iterator[tuple[str, LikelyCause]]:
    return ((name, cause) for name, entry in entries(book) for cause in entry.causes)


def without_cause(faults: Iterable[Named], book: AdviceBook) -> Iterator[str]:
    """Each [[expect]] of a finding that has causes, which does not say which of them comes first.

    That is a failure, or an error that is an event.
    """
    for named in faults:
        for expect in named.fault.expect:
            of_event = expect.outcome == "error" and _of_event(expect, book) is not None
            if (expect.outcome == "fail" or of_event) and expect.cause is None:
                yield f"{_file(named)}: {expect.name or expect.check}: {expect.says}"


def not_offered(faults: Iterable[Named], book: AdviceBook) -> Iterator[str]:
    """Each `cause` of an [[expect]] that the advice for its finding does not have."""
    for named in faults:
        for expect in named.fault.expect:
            if expect.cause and expect.cause not in _offered(expect, book):
                yield f"{_file(named)}: {expect.name or expect.check}: {expect.cause}"


def _offered(expect: Expect, book: AdviceBook) -> frozenset[str]:
    """The causes of the advice for the finding whose first words are awaited.

    All that there are, where it does not begin with a measurement or an event.
    """
    own = [one for name, one in book.measurements.items() if re.match(rf"{name}\b", expect.says)]
    own += [other for one in own for other in one.instead]
    own += book.by_kind.values() if own else ()
    of_event = _of_event(expect, book)
    if of_event is not None:
        own.append(of_event)
    entries_ = own or book.entries()
    return frozenset(cause.what for entry in entries_ for cause in entry.causes)


def _of_event(expect: Expect, book: AdviceBook) -> Advice | None:
    """The advice for the event whose name the awaited words begin with."""
    begins = _EVENT.match(expect.says)
    return begins and book.of_event(f"{begins[1]}.{begins[2]}")


def _file(named: Named) -> str:
    return f"{named.family.replace(' ', '-')}/{named.name}.toml"


def main() -> int:
    """Print the lists; the exit status is 1 where one has a line."""
    book, faults = advice.shipped(), read()
    lists = {
        "causes that name a measurement or an event, without a condition": without_condition(book),
        "conditions on what there is not": of_nothing(book),
        "measured, by a text about something else (give `seen`)": about_another(book),
        "[[expect]] without the `cause` that comes first": without_cause(faults, book),
        "a `cause` that the finding's advice does not have": not_offered(faults, book),
    }
    count = 0
    for title, found in lists.items():
        lines = tuple(found)
        count += len(lines)
        print("\n  ".join((f"{len(lines)} {title}", *lines)))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
