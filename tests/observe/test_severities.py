"""What an event weighs: by its source, and by the lines that the kernel writes."""

from __future__ import annotations

import tomllib

from cases import each
from event_lint import BOOK, problems

from acceptance import resources
from acceptance.observe import kernel_log
from acceptance.observe.event import RANK, table
from acceptance.observe.kernel_line import kernel_lines
from acceptance.tools.read import kernel_log as read_kernel_log

FOLDER = resources.locate("events")
LINES = tomllib.loads(BOOK.read_text(encoding="utf-8"))["kernel"]


def test_the_tables_weigh_events_as_their_sources_do() -> None:
    assert list(problems(FOLDER)) == []


@each("line", LINES)
def test_each_message_of_the_kernel_comes_to_its_weight(line: dict[str, object]) -> None:
    (event,) = read_kernel_log.events(f"[   12.345678] {line['line']}\n")
    severity = line.get("elsewhere", line["severity"])
    assert (event.severity, event.hardware) == (severity, line["hardware"])
    assert event.severity in RANK


@each("line", LINES)
def test_a_message_after_one_without_a_stamp_is_not_glued_to_it(line: dict[str, object]) -> None:
    xid = "NVRM: Xid (PCI:0000:01:00): 13, pid=9, name=a.out, Graphics SM Warp Exception"
    events = read_kernel_log.events(f"{xid}\n{str(line['line']).strip()}\n")
    assert len(events) == 2
    assert events[0].code == 13


@each("line", LINES)
@each("stamp", ["2026-11-20T10:11:12.123456789Z ", "Nov 20 10:11:12 ", "Nov 20 10:11:12 kernel: "])
def test_a_message_after_a_time_alone_is_the_kernels(line: dict[str, object], stamp: str) -> None:
    assert len(read_kernel_log.events(f"{stamp}{str(line['line']).strip()}\n")) == 1


MESSAGES = table("kernel")["message"]
WITH_CAPTURE = [message for message in MESSAGES if "harmless" in message]


def test_every_message_names_its_source() -> None:
    assert [message["pattern"] for message in MESSAGES if not message.get("source")] == []


@each("message", WITH_CAPTURE)
def test_what_sound_machines_print_is_no_fault(message: dict[str, str]) -> None:
    assert message["from"]
    assert read_kernel_log.parse(message["harmless"]).outcome == "pass"


def test_a_message_that_sound_machines_print_has_their_text_beside_it() -> None:
    weighed = [one for one in MESSAGES if "elsewhere" in one]
    assert [one["pattern"] for one in weighed if "harmless" not in one] == []


@each("message", [message for message in MESSAGES if "elsewhere" in message])
def test_its_capture_holds_the_message_or_one_of_its_kind(message: dict[str, str]) -> None:
    kinds = {event.kind for event in kernel_log.events_of(kernel_lines(message["harmless"]))}
    assert message["code"] == "smmu" or message["kind"] in kinds
