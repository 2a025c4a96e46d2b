"""How long a run took, which check was running at a moment, and what was noted meanwhile."""

from __future__ import annotations

import journals
import pytest
from cases import each
from journals import entries
from msgspec.structs import replace

from acceptance.core.notes import run_notes
from acceptance.core.record import CheckEnded, CheckStarted, Entry, Note, RunClosed, RunStarted
from acceptance.core.spans import CheckSpans, first_record, load_progress, run_seconds

# At 100 s, 101 s ...
ONE_THEN_TWO = entries(
    [
        CheckStarted("a.one"),
        Note("half proved", progress=True),
        Note("all proved", progress=True),
        CheckEnded("a.one", "pass", "", 1.0),
        Note("between"),
        CheckStarted("a.two"),
        Note("two began", progress=True),
    ]
)


@each(
    "moment, check",
    [
        (99.9, None),
        (100.0, "a.one"),
        (103.0, "a.one"),
        (103.1, None),
        (105.0, "a.two"),
        (10_000.0, "a.two"),  # it never ended
    ],
)
def test_a_check_runs_from_its_first_moment_to_its_last(moment: float, check: str | None) -> None:
    assert CheckSpans(ONE_THEN_TWO).at(ONE_THEN_TWO[0].boot, moment) == ((check,) if check else ())


def test_what_happened_after_a_restart_belongs_to_no_check_before_it() -> None:
    assert CheckSpans(ONE_THEN_TWO).at(ONE_THEN_TWO[0].boot + 1, 101.0) == ()


def test_a_record_belongs_to_the_check_of_its_moment() -> None:
    """Of the moment that it tells of, where that is not when it was written."""
    spans, last = CheckSpans(ONE_THEN_TWO), ONE_THEN_TWO[-1]
    assert spans.of(last) == "a.two"
    assert spans.of(last, 101.0) == "a.one"
    assert spans.of(last, 104.0) is None


def test_an_end_without_a_beginning_is_no_span() -> None:
    assert CheckSpans(entries([CheckEnded("a.one", "pass", "", 1.0)])).spans == []


def test_of_what_a_check_proved_the_last_word_holds() -> None:
    assert load_progress(ONE_THEN_TWO, CheckSpans(ONE_THEN_TWO)) == {
        "a.one": "all proved",
        "a.two": "two began",
    }


def test_notes_are_in_order_with_one_word_of_progress_a_check_and_no_trouble() -> None:
    found: list[Entry] = [
        *ONE_THEN_TWO,
        replace(ONE_THEN_TWO[-1], body=Note("a segment is missing", trouble=True)),
    ]
    told = [note.values["text"] for note in run_notes(found)]
    assert told == ["all proved", "between", "two began"]


def test_a_run_lasts_until_the_last_that_was_written_before_the_restart() -> None:
    *bodies, _ = journals.bodies(journals.plan())
    (closed,) = journals.entries([RunClosed("link.copy", True, {}, "restarted")])
    entries = [*journals.entries(bodies), replace(closed, boot=1, boot_s=9_000.0)]
    assert run_seconds(entries) == len(bodies) - 1
    assert run_seconds([*entries[:-1], replace(closed, boot_s=9_000.0)]) == len(bodies) - 1


def test_a_run_in_the_first_second_of_a_boot() -> None:
    entries = journals.entries(journals.bodies(journals.plan()), start_s=0.0, step_s=0.0625)
    assert run_seconds(entries) == (len(entries) - 1) * 0.0625 < 1.0


@pytest.mark.parametrize("utc", ["no time", "2020-01-01T00:00:00.000Z"])
def test_the_wall_clock_may_go_wrong(utc: str) -> None:
    entries = journals.entries(journals.bodies(journals.plan()))
    wrong = [*entries[:-1], replace(entries[-1], utc=utc)]
    assert run_seconds(wrong) == run_seconds(entries) == len(entries) - 1


def test_what_never_began_lasted_no_time_that_is_known() -> None:
    assert run_seconds(journals.entries([Note("x")])) is None
    assert first_record(()) is None
    (_, first) = journals.entries([Note("x"), journals.bodies(journals.plan())[0]])
    assert first_record([first]) is first
    assert isinstance(first.body, RunStarted)
