"""Which check was running at a moment, and what was noted meanwhile."""

from __future__ import annotations

from cases import each
from journals import entries
from msgspec.structs import replace

from acceptance.core.record import CheckEnded, CheckStarted, Entry, Note
from acceptance.core.spans import CheckSpans, load_progress, run_notes

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
    assert CheckSpans(ONE_THEN_TWO).at(ONE_THEN_TWO[0].boot, moment) == check


def test_what_happened_after_a_restart_belongs_to_no_check_before_it() -> None:
    assert CheckSpans(ONE_THEN_TWO).at(ONE_THEN_TWO[0].boot + 1, 101.0) is None


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
    assert run_notes(found, CheckSpans(found)) == ("all proved", "between", "two began")
