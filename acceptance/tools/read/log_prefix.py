"""Removes the prefixes that container runtimes, log collectors and launchers add to every line.

Known: the runtime interface of Kubernetes (`2026-01-02T03:04:05.6Z stdout F `), timestamps alone,
journald and syslog with the program's number, `docker compose`, `kubectl logs --prefix`, `srun
--label`, `mpirun --tag-output`, `pdsh`, GitHub's runs, and the comments of a script; also several
in a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_END = r"(?:[ \t]|$)"
# Fewer lines than this may begin alike by chance.
_FEWEST = 3
# `kubectl logs --prefix --timestamps` of a compose service: never more than three in a row.
_NESTED = 3


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of prefix.

    `pattern` has a group `source` if the prefix names one; it must be the same in all lines.

    `everywhere`: the form is so plain that every line must have it, except a first line with the
    command.
    """

    pattern: re.Pattern[str]
    everywhere: bool = False


_KINDS = (
    _Kind(re.compile(rf"\s*{_TIME} (?:stdout|stderr) (?P<tag>[FP]){_END}")),
    _Kind(re.compile(rf"(?P<source>[^\t]+\t[^\t]+)\t(?=\ufeff?{_TIME}{_END})\ufeff?")),
    # systemd logs messages about a unit before and after those of the unit itself.
    _Kind(
        re.compile(
            rf"\s*(?:{_TIME}|{_SYSLOG}) (?P<source>[\w.-]+ (?!systemd\[)[\w.@-]+\[\d+\]):{_END}"
        )
    ),
    _Kind(re.compile(rf"\s*(?:\[{_TIME}\]|{_TIME}|{_SYSLOG}){_END}")),
    _Kind(re.compile(rf"\s*(?P<source>\[pod/[\w./-]+\]){_END}")),
    _Kind(re.compile(rf"\s*(?P<source>\w[\w.-]*) *\|{_END}")),
    _Kind(re.compile(r"\s*(?P<source>\[\d+,\d+\])<std(?:out|err)>: ?")),
    _Kind(re.compile(rf"\s*(?P<source>\d+):{_END}")),
    # A host name has a digit here, because words such as `Device:` begin the lines of some
    # programs.
    _Kind(re.compile(rf"(?P<source>[A-Za-z][A-Za-z_.-]*\d[\w.-]*):{_END}"), everywhere=True),
    # Pasted into a script as a comment.
    _Kind(re.compile(rf"(?:#|//){_END}")),
)


def strip_prefixes(lines: Sequence[str]) -> list[str]:
    """The lines without their prefixes.

    A kind of prefix is removed only if all lines between the first and the last one with it have
    it. Lines of another source leave the text unchanged, so that none is skipped. A line that the
    runtime split (`P`) is joined again.
    """
    left = list(lines)
    for _ in range(_NESTED):
        freed = next((freed for kind in _KINDS if (freed := _freed(left, kind)) is not None), None)
        if freed is None:
            break
        left = freed
    return left


def _freed(lines: Sequence[str], kind: _Kind) -> list[str] | None:
    """The lines without prefixes of this kind; None if they have none."""
    matches = [kind.pattern.match(line) for line in lines]
    places = [place for place, match in enumerate(matches) if match]
    if not places or len({match.groupdict().get("source") for match in matches if match}) > 1:
        return None
    first, last = places[0], places[-1]
    inked = [place for place, line in enumerate(lines) if line.strip()]
    outside = [place for place in inked if not first <= place <= last]
    if any(not matches[place] for place in inked if first <= place <= last):
        return None
    if outside and (len(places) < _FEWEST or (kind.everywhere and outside != inked[:1])):
        return None
    freed: list[str] = []
    joins = False
    for line, match in zip(lines, matches, strict=True):
        rest = line[match.end() :] if match else line
        if joins:
            freed[-1] += rest
        else:
            freed.append(rest)
        joins = match is not None and match.groupdict().get("tag") == "P"
    return freed if any(line.strip() for line in freed) else None
