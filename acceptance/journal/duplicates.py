"""Findings of one fault that several checks see: the first counts, the others point to it. Pure.

Every check keeps its findings and its outcome: a duplicate is only not listed a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from acceptance.core.finding import Finding
from acceptance.core.message import Message, Quantity, Range, english, known
from acceptance.core.parts import GPUS, Component, Gpu, Part
from acceptance.core.record import HARMFUL, Event
from acceptance.core.verdict import Verdict
from acceptance.expect import measurements

RUN = "run"
# The check of the kernel's log reads again what the watch saw at its moment.
KERNEL_FAULTS = "kernel_faults_during"
# An operation of a storage test that its disk failed, and what the kernel says of a disk.
_DISK_FAILED, _OF_DISK = "storage_failed", "disk."
# A measurement that says nothing more of a component of which one of these failed.
_FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "gpu_in_nvml": ("gpu_answers", "gpu_driver_bound"),
    "gpu_pci_id_differs": ("gpu_model_differs",),
    "network_rate_share": ("network_port_lost",),
    "parallel_disagreements": ("parallel_miscompares",),
}
# How many parts there are, and which of the declared ones is there.
_NUMBERS: Mapping[str, str] = {"dimm_count": "dimm_present"}
# NVML's slowdown by hardware is set as long as one of its two reasons is.
_SLOWDOWN = "gpu_hw_slowdown"
_SLOWDOWN_REASONS = ("gpu_hw_thermal_slowdown", "gpu_power_brake")

# A finding's check (or the run), and its number there.
_Place = tuple[str, int]
_Places = Mapping[_Place, Finding]


def mark(
    verdict: Verdict, events: Sequence[Event], functions: Mapping[Component, Component]
) -> Verdict:
    """The verdict, of each fault one finding that counts.

    `events` are those of the whole run; `functions` gives the GPU by its PCI function, and all GPUs
    by a bridge above several.
    """
    every = {(RUN, number): finding for number, finding in enumerate(verdict.findings)}
    for check in verdict.checks:
        every |= {(check.id, number): finding for number, finding in enumerate(check.findings)}
    places = {place: finding for place, finding in every.items() if finding.kind == "fail"}
    after = frozenset(check.id for check in verdict.checks if check.session == "host-after")
    originals: dict[_Place, list[_Place]] = {}
    for place in places:
        originals[place] = [
            *_beside(place, places),
            *_of_events(place, places, events, functions),
            *_of_disk(place, places),
            *_measured_again(place, places, after),
            *_follows(place, places),
            *_missing(place, places),
        ]
    marked = dict(every)
    for place, found in originals.items():
        for first in [one for one in found if not originals[one]]:
            marked[first] = _pointing(marked[first], places[place])
            if marked[place].duplicate_of is None:
                marked[place] = replace(marked[place], duplicate_of=first[0])
    checks = tuple(
        replace(
            check,
            findings=tuple(marked[check.id, number] for number in range(len(check.findings))),
        )
        for check in verdict.checks
    )
    whole = tuple(marked[RUN, number] for number in range(len(verdict.findings)))
    return replace(verdict, checks=checks, findings=whole)


def _pointing(first: Finding, again: Finding) -> Finding:
    """The finding that counts, with the check of another one of the same fault.

    What that one measured is lost to nobody who reads the first alone, if it is another thing.
    """
    names, values = first.also_in, first.values
    if again.check not in (first.check, *names):
        names = (*names, again.check)
    measured = again.values.get("measured")
    new = again.measurement not in (first.measurement, KERNEL_FAULTS)
    if new and isinstance(measured, Quantity):
        about = known(
            measurement=again.measurement,
            component=str(again.component),
            measured=measured,
            note=again.note if again.note != first.note else None,
        )
        before = values.get("too", ())
        assert isinstance(before, tuple)
        values = {
            **values,
            "too": (
                *before,
                Message(
                    english(
                        "measured_too", "{measurement} on {component} is {measured} too[: {note}]"
                    ),
                    about,
                ),
            ),
        }
    return replace(first, also_in=names, values=values)


def _beside(place: _Place, places: _Places) -> Iterator[_Place]:
    """The same event at the first of the checks that ran side by side."""
    finding = places[place]
    if "beside" not in finding.values:
        return
    own = replace(finding, check="")
    first = next(other for other, one in places.items() if replace(one, check="") == own)
    if first != place:
        yield first


def _of_events(
    place: _Place,
    places: _Places,
    events: Sequence[Event],
    functions: Mapping[Component, Component],
) -> Iterator[_Place]:
    """The failures of the kernel's messages that a count made after the run has once more.

    None where it counts more of them than the watch saw.
    """
    finding = places[place]
    measured = finding.values.get("measured")
    entry = measurements.shipped().get(finding.measurement or "")
    kinds = frozenset(entry.events if entry is not None else ())
    whole = finding.measurement == KERNEL_FAULTS
    if not isinstance(measured, Quantity):
        return

    def is_of(part: Component | None) -> bool:
        named = None if part is None else functions.get(part, part)
        of_gpus = isinstance(finding.component, Gpu) or finding.component == GPUS
        return not of_gpus or named == finding.component

    seen = [
        one.text
        for one in events
        if one.source == "kernel-log" and one.hardware and one.severity in HARMFUL
        if whole or (kinds & {one.kind, f"{one.kind}.{one.code}"} and is_of(one.component))
    ]
    if not seen or measured.value > len(seen):
        return
    for other, one in places.items():
        if one.event is not None and one.quote in seen and (whole or is_of(one.component)):
            yield other


def _of_disk(place: _Place, places: _Places) -> Iterator[_Place]:
    """What the kernel said of a disk, or of its controller, in the check whose operation failed."""
    finding = places[place]
    disk = finding.component
    if finding.measurement != _DISK_FAILED or not isinstance(disk, Part):
        return
    for other, one in places.items():
        of_disk = (one.event or "").startswith(_OF_DISK)
        if of_disk and other[0] == place[0] and one.component is not None:
            part = re.escape(str(one.component))
            if re.fullmatch(rf"{part}(n[0-9]+)?", disk.name):
                yield other
                return


def _measured_again(place: _Place, places: _Places, after: frozenset[str]) -> Iterator[_Place]:
    """The same value of a component, out of the same limit, before the load or during it."""
    finding = places[place]
    if place[0] not in after or finding.measurement is None:
        return
    for other, one in places.items():
        if other[0] not in after and _same_value(one, finding):
            yield other
            return


def _same_value(one: Finding, other: Finding) -> bool:
    def judged(finding: Finding) -> tuple[object, ...]:
        named = finding.code, finding.measurement, finding.component
        return (*named, finding.values.get("measured"), finding.note)

    return judged(one) == judged(other)  # a note that says another thing is of another fault


def _follows(place: _Place, places: _Places) -> Iterator[_Place]:
    """The failures of the same component from which this one follows."""
    finding = places[place]
    if finding.measurement is None:
        return
    names = _FOLLOWS.get(finding.measurement, ())
    slowed = finding.measurement == _SLOWDOWN
    found = [
        (other, one)
        for other, one in places.items()
        if one.component == finding.component
        and one.measurement in (_SLOWDOWN_REASONS if slowed else names)
    ]
    if slowed and sum(_amount(one) for _, one in found) < _amount(finding):
        return
    yield from (other for other, _ in found[:1])


def _missing(place: _Place, places: _Places) -> Iterator[_Place]:
    """The missing parts, where a number of parts is short by no more than these."""
    finding = places[place]
    limit = finding.values.get("limit")
    name = _NUMBERS.get(finding.measurement or "")
    if name is None or not isinstance(limit, Range) or limit.low is None:
        return
    parts = [other for other, one in places.items() if one.measurement == name]
    if 0 < limit.low - _amount(finding) <= len(parts):
        yield from parts


def _amount(finding: Finding) -> float:
    measured = finding.values.get("measured")
    return measured.value if isinstance(measured, Quantity) else 0.0
