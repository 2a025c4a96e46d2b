"""A change of what an event weighs takes two: the table and the book of `severities.toml`."""

from __future__ import annotations

import tomllib

from cases import each
from severity_book import BOOK, problems

from acceptance import resources
from acceptance.observe.event import RANK
from acceptance.tools.read import kernel_log as read_kernel_log

FOLDER = resources.locate("events")
LINES = tomllib.loads(BOOK.read_text(encoding="utf-8"))["kernel"]


def test_the_tables_weigh_events_as_the_book_does() -> None:
    assert list(problems(FOLDER)) == []


@each("line", LINES)
def test_each_message_of_the_kernel_comes_to_its_weight(line: dict[str, object]) -> None:
    (event,) = read_kernel_log.events(f"[   12.345678] {line['line']}\n")
    assert (event.severity, event.hardware) == (line["severity"], line["hardware"])
    assert event.severity in RANK
