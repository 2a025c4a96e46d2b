from __future__ import annotations

import journals
import msgspec

from acceptance.session import context


def test_the_test_engine_gives_up_after_the_programs() -> None:
    planned = journals.check(seconds=100.0)
    assert (context.programs_s(planned), context.check_limit_s(planned)) == (155.0, 185.0)
    slack = msgspec.structs.replace(planned, slack_s=120.0)
    assert (context.programs_s(slack), context.check_limit_s(slack)) == (275.0, 305.0)


def test_a_usual_time_limits_nothing() -> None:
    planned = journals.check(seconds=100.0)
    quick = msgspec.structs.replace(planned, usual_s=10.0)
    assert context.programs_s(quick) == context.programs_s(planned)
    assert context.check_limit_s(quick) == context.check_limit_s(planned)
