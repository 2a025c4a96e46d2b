"""Events in the messages of the kernel log."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any

from acceptance.core.parts import Component, parse
from acceptance.observe import aer_events, memory_events, unknown_line
from acceptance.observe.driver_events import NvidiaReader
from acceptance.observe.event import RANK, KernelEvent, clean, pci_function, table
from acceptance.observe.kernel_line import LONGEST, KernelLine

CUT = "cut"  # event code: a line was too long to be read as a whole
_FRACTION = re.compile(r"(?<=\d)[.,]\d+")


@cache
def _messages() -> tuple[tuple[re.Pattern[str], dict[str, Any]], ...]:
    return tuple((re.compile(entry["pattern"]), entry) for entry in table("kernel")["message"])


def _component(name: str) -> Component | None:
    return (pci_function(name) or parse(name)) if name else None


@dataclass(slots=True)
class _Resolutions:
    """Finds later messages that take an earlier one back: a link that came up after all."""

    lines: Sequence[KernelLine]
    _last: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)

    def after(self, index: int, entry: Mapping[str, Any], groups: Mapping[str, str]) -> bool:
        """Whether a message after `index` matches the entry's `resolution`, on the same part."""
        if "resolution" not in entry:
            return False
        pattern = re.compile(entry["resolution"])
        if pattern.pattern not in self._last:
            matches = ((at, pattern.search(line.text)) for at, line in enumerate(self.lines))
            self._last[pattern.pattern] = {
                match.groups(): at for at, match in matches if match and not self.lines[at].foreign
            }
        key = tuple(groups[name] for name in pattern.groupindex)
        return self._last[pattern.pattern].get(key, -1) > index


def _one_line(index: int, resolutions: _Resolutions) -> KernelEvent | None:
    """The event of a message of one line (fixtures/events/kernel.toml), or None."""
    line = resolutions.lines[index]
    # `Missed ` is journald's report of lost messages
    if line.foreign and not line.text.startswith("Missed "):
        return None
    text = line.text.strip()
    for pattern, entry in _messages():
        if match := pattern.search(text):
            groups = {name: value or "" for name, value in match.groupdict().items()}
            return KernelEvent(
                entry["kind"],
                entry["code"].format(**groups),
                _component(entry.get("component", "").format(**groups)),
                entry["severity"],
                line.time,
                clean(text),
                entry["meaning"],
                entry["action"],
                hardware=entry["hardware"],
                parts=tuple(entry.get("parts", ())),
                elsewhere=entry.get("elsewhere"),
                resolved=resolutions.after(index, entry, groups),
            )
    return None


def _cut(line: KernelLine) -> KernelEvent:
    """The event for a line longer than any kernel message: text at the cuts was not recognised."""
    meaning = (
        f"A line has more than {LONGEST} characters, and no message of the kernel is so "
        "long: it "
        "was read in pieces."
    )
    action = "Read the log again as the kernel gives it (`dmesg`), one message a line."
    return KernelEvent(
        "lost",
        CUT,
        None,
        "warning",
        line.time,
        clean(line.text[:LONGEST]),
        meaning,
        action,
        hardware=False,
    )


def _once_a_page(events: Sequence[KernelEvent]) -> tuple[KernelEvent, ...]:
    """The events, with only the most severe one for each lost page of memory."""
    pages: dict[int | str | None, KernelEvent] = {}
    for event in events:
        if event.kind == "memory-failure":
            pages[event.code] = max(
                pages.get(event.code, event), event, key=lambda each: RANK[each.severity]
            )
    return tuple(
        event for event in events if event.kind != "memory-failure" or event is pages[event.code]
    )


def events_of(lines: Sequence[KernelLine]) -> tuple[KernelEvent, ...]:
    """Known events in kernel messages, in the order of the log, before `weigh`.

    A report of several messages is joined only within one call: pass a batch, not single messages.
    """
    return _once_a_page([event for _, event in _known(lines)])


def all_events_of(lines: Sequence[KernelLine]) -> tuple[KernelEvent, ...]:
    """The known events, and one of kind `unknown` for each message of the hardware without any."""
    known = _known(lines)
    unknown = [
        (at, unknown_line.event(lines[at]))
        for at in _silent(lines, known)
        if unknown_line.counts(lines[at])
    ]
    return _once_a_page([event for _, event in sorted([*known, *unknown], key=itemgetter(0))])


def read(lines: Sequence[KernelLine]) -> tuple[tuple[KernelEvent, ...], tuple[KernelLine, ...]]:
    """The known events, as `events_of` gives them, and the messages from which none came."""
    known = _known(lines)
    silent = tuple(lines[at] for at in _silent(lines, known))
    return _once_a_page([event for _, event in known]), silent


def _silent(lines: Sequence[KernelLine], known: Sequence[tuple[int, KernelEvent]]) -> list[int]:
    spoken = {index for index, _ in known}
    return [index for index in range(len(lines)) if index not in spoken]


def _known(lines: Sequence[KernelLine]) -> list[tuple[int, KernelEvent]]:
    """The known events with the number of their message, in the order of the log."""
    nvidia = NvidiaReader(lines)
    hardware = memory_events.HardwareErrorReader(lines)
    resolutions = _Resolutions(lines)
    found: list[tuple[int, KernelEvent]] = []
    for index, line in enumerate(lines):
        events = nvidia.read(index) or aer_events.read(lines, index) or hardware.read(index)
        if not events and (event := memory_events.edac(lines, index)):
            events = [event]
        if not events and (event := _one_line(index, resolutions)):
            events = [event]
        found += [(index, event) for event in events]
        if line.cut and not line.foreign:
            found.append((index, _cut(line)))
    found += hardware.unexplained(found)
    return sorted(found, key=itemgetter(0))


def storms(events: Iterable[KernelEvent]) -> tuple[str, ...]:
    """Components whose link corrected too many errors, one sentence each.

    Limit and basis: `storm` in fixtures/events/kernel.toml. Wall times are compared as text, to the
    second: two events in the same second are at most one second apart.
    """
    limit, within = table("kernel")["storm"]["count"], table("kernel")["storm"]["seconds"]
    times: dict[Component, list[float | str]] = defaultdict(list)
    for event in events:
        if (
            event.kind == "aer"
            and event.code == "corrected"
            and event.component
            and event.time is not None
        ):
            times[event.component].append(event.time)
    found = []
    for component, stamps in times.items():
        seconds = sorted(stamp for stamp in stamps if isinstance(stamp, float))
        words = Counter(_FRACTION.sub("", stamp) for stamp in stamps if isinstance(stamp, str))
        crowded = any(
            last - first <= within
            for first, last in zip(seconds, seconds[limit - 1 :], strict=False)
        )
        if crowded or any(count >= limit for count in words.values()):
            found.append(
                f"{component} corrected {limit} or more PCIe errors within {within:g} s: the "
                "link is not sound"
            )
    return tuple(found)
