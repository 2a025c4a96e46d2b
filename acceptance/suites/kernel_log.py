"""Hardware events in the kernel log, before the run and during it.

The supervisor follows the log as well and ties each event to the check that was running; these
checks read it independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from acceptance.core.message import Message, Text, english
from acceptance.core.parts import SYSTEM
from acceptance.core.record import HARMFUL, Event
from acceptance.observe import kernel_log, kmsg
from acceptance.observe.event import KernelEvent, PartKind, kind_of, weigh
from acceptance.session.check import Check, CheckSkipped
from acceptance.wording.errors import NotMeasurable, WordedError


def records(root: Path) -> list[kmsg.KmsgRecord]:
    """Every message that the kernel log still has.

    The check is skipped, with the cure, where the log may not be read.
    """
    try:
        with kmsg.Kmsg(root, since="boot") as log:
            found: list[kmsg.KmsgRecord] = []
            while fresh := log.read_new():
                found += fresh
            return found
    except NotMeasurable as error:
        raise CheckSkipped(error.gap) from error


def faults(events: tuple[KernelEvent, ...]) -> list[Text]:
    """One text for each event that proves a hardware fault, storms of corrected errors included."""
    harmful = (event for event in events if event.hardware and event.severity in HARMFUL)
    return [*kernel_log.storms(events), *_lines(harmful)]


def _lines(events: Iterable[KernelEvent]) -> list[Message]:
    return [
        Message(
            english("kernel_fault", "{event}: {text}"),
            {"event": f"{event.kind} {event.code}", "text": event.text},
        )
        for event in events
    ]


@pytest.mark.session("host-before")
@pytest.mark.costs(0.2)
@pytest.mark.measures("kernel_faults_before")
def test_since_boot(
    root: Path,
    tested_parts: Mapping[str, PartKind],
    report_event: Callable[[Event], None],
    check: Check,
) -> None:
    """Hardware faults that the kernel logged before the run: Xid, AER, MCE, EDAC and similar.

    Measured: the messages that the kernel log still has. Older ones that were overwritten are not
    seen; the note says from when the log reaches. What sound machines log too while they start (a
    SATA port or a PCIe link that does not come up, an access that the IOMMU refused) is a warning
    where it names a part under test, else it stands in the note.
    """
    found = records(root)
    events = weigh(kernel_log.events_of(kmsg.as_lines(found)), {}, in_run=False)
    seen = faults(events)
    mild = [one for one in events if one.elsewhere and one.severity == "warning"]
    of_tested = [one for one in mild if kind_of(one, tested_parts) in one.parts]
    for event in {(one.kind, one.code, one.component): one for one in of_tested}.values():
        report_event(event.to_record(None))
    warned = _lines(one for one in mild if one not in of_tested)
    since = (
        Message(
            english("messages_since", "messages since {seconds} s after boot"),
            {"seconds": f"{found[0].seconds_since_boot:.0f}"},
        )
        if found
        else Message(english("log_empty", "the log is empty"))
    )
    note = Message("note", {"text": (since, *seen[:3], *warned[:3])})
    check.single("kernel_faults_before", SYSTEM, len(seen), note=note)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.2)
@pytest.mark.measures("kernel_faults_during")
def test_during_run(
    root: Path,
    kernel_log_after: int | None,
    tested_parts: Mapping[str, PartKind],
    check: Check,
) -> None:
    """Hardware faults that the kernel logged while this run loaded the machine.

    Measured: every message since the run began. Where some were overwritten, or the log cannot be
    read any more, the check proves nothing, and ends in an error that says so.
    """
    if kernel_log_after is None:
        records(root)  # skips where it may not be read now either
        raise WordedError(
            english("log_unread_at_start", "the kernel log could not be read when the run began")
        )
    try:
        found = records(root)
    except CheckSkipped as skip:
        raise WordedError(
            "reading_lost", what="kernel_faults_during", why=skip.gap.reason
        ) from skip
    if found and found[0].sequence > kernel_log_after + 1:
        raise WordedError(
            english(
                "log_overwritten",
                "the kernel overwrote messages of this run: enlarge its buffer with the boot "
                "option log_buf_len=4M",
            )
        )
    lines = kmsg.as_lines(record for record in found if record.sequence > kernel_log_after)
    seen = faults(weigh(kernel_log.events_of(lines), tested_parts, in_run=True))
    note = Message("clauses", {"why": tuple(seen[:3])}) if seen else None
    check.single("kernel_faults_during", SYSTEM, len(seen), note=note)
