"""How long a run took."""

from __future__ import annotations

import journals
import pytest
from msgspec.structs import replace

from acceptance.core import duration
from acceptance.core.record import Note, RunClosed, RunStarted


def test_a_run_lasts_until_the_last_that_was_written_before_the_restart() -> None:
    *bodies, _ = journals.bodies(journals.plan())
    (closed,) = journals.entries([RunClosed("link.copy", True, {}, "restarted")])
    entries = [*journals.entries(bodies), replace(closed, boot=1, boot_s=9_000.0)]
    assert duration.seconds(entries) == len(bodies) - 1
    assert duration.seconds([*entries[:-1], replace(closed, boot_s=9_000.0)]) == len(bodies) - 1


def test_a_run_in_the_first_second_of_a_boot() -> None:
    entries = journals.entries(journals.bodies(journals.plan()), start_s=0.0, step_s=0.0625)
    assert duration.seconds(entries) == (len(entries) - 1) * 0.0625 < 1.0


@pytest.mark.parametrize("utc", ["no time", "2020-01-01T00:00:00.000Z"])
def test_the_wall_clock_may_go_wrong(utc: str) -> None:
    entries = journals.entries(journals.bodies(journals.plan()))
    wrong = [*entries[:-1], replace(entries[-1], utc=utc)]
    assert duration.seconds(wrong) == duration.seconds(entries) == len(entries) - 1


def test_what_never_began_lasted_no_time_that_is_known() -> None:
    assert duration.seconds(journals.entries([Note("x")])) is None
    assert duration.first_record(()) is None
    (_, first) = journals.entries([Note("x"), journals.bodies(journals.plan())[0]])
    found = duration.first_record([first])
    assert found is first
    assert isinstance(first.body, RunStarted)
