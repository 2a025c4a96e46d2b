"""What the fold makes of what loads told while they ran: an event that fails, told once, and
what was proved until a stop.
"""

from __future__ import annotations

from collections.abc import Sequence

import journals
import pytest

from acceptance.core.fold import fold
from acceptance.core.notes import run_notes
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.core.record import (
    Body,
    CheckEnded,
    Entry,
    Event,
    Measured,
    Note,
    RunClosed,
    RunEnded,
    SessionEnded,
)
from acceptance.core.verdict import Verdict
from acceptance.wording import words

BURN = "together.burn"
PATH = Pair(Gpu(0), Gpu(1))
DUES = tuple(
    journals.due(
        f"burn_{name}_miscompares", component, "count", journals.NONE_ALLOWED, waivable=False
    )
    for name, component in (
        ("bf16", Gpu(0)),
        ("f64", Gpu(0)),
        ("copy", Gpu(0)),
        ("peer", PATH),
        ("bf16", Gpu(1)),
    )
)
PLAN = journals.plan(
    journals.check(BURN, *DUES), journals.check("watch.counters", session="host-after")
)


def told(code: str = "bf16", component: Component = Gpu(0), source: str = "load") -> Event:
    return Event(
        "miscompare",
        "fatal",
        "{...}",
        f"{component} gave a wrong result",
        "look",
        code,
        component,
        None,
        source=source,
    )


def lap(number: int) -> Note:
    return Note(f"gpu0: lap {number} of 9", progress=True)


def run(
    during: Sequence[Body],
    *,
    wrong: dict[tuple[str, Component], float] | None = None,
    ends: bool = True,
) -> Verdict:
    return fold(recorded(during, wrong=wrong, ends=ends))


def recorded(
    during: Sequence[Body],
    *,
    wrong: dict[tuple[str, Component], float] | None = None,
    ends: bool = True,
    after: Sequence[Body] = (),
) -> list[Entry]:
    """A journal in which these records come up within the burn; it is stopped
    there unless it `ends`.
    """
    whole = journals.bodies(PLAN, wrong)
    place = next(
        n for n, body in enumerate(whole) if isinstance(body, Measured) and body.check == BURN
    )
    if ends:
        return journals.entries([*whole[:place], *during, *whole[place:], *after])
    stop: list[Body] = [
        SessionEnded("load", False, "was stopped", 9.0),
        RunEnded(False, "stopped by SIGINT"),
    ]
    return journals.entries([*whole[:place], *during, *(after or stop)])


def failures(verdict: Verdict) -> list[tuple[str, str | None, Component | None]]:
    return [
        (finding.check, finding.measurement, finding.component)
        for finding in verdict.of_kind("fail")
    ]


def notes(entries: Sequence[Entry]) -> list[str]:
    return list(map(words.message, run_notes(entries)))


def test_a_healthy_burn() -> None:
    assert run([lap(1)]).verdict == "PASS"


def test_what_was_told_fails_though_the_burn_was_stopped() -> None:
    verdict = run([told(), lap(1)], ends=False)
    assert verdict.verdict == "FAIL"
    assert failures(verdict) == [(BURN, None, Gpu(0))]
    (finding,) = verdict.of_kind("fail")
    assert words.of(finding) == "miscompare bf16 on gpu0: gpu0 gave a wrong result"
    assert finding.quote == "{...}"
    assert finding.action == ("look",)


def test_what_was_told_fails_though_the_harness_was_killed() -> None:
    """The next start closes the run, after a reboot too."""
    closed = RunClosed(BURN, True, {}, "the machine was restarted before it came to its end")
    verdict = fold(recorded([told(), lap(3)], ends=False, after=[closed]))
    assert verdict.verdict == "FAIL"
    assert failures(verdict) == [(BURN, None, Gpu(0))]
    texts = [words.of(finding) for finding in verdict.of_kind("error")]
    assert "did not finish: proved until then: gpu0: lap 3 of 9" in texts


@pytest.mark.parametrize(
    ("code", "component", "measurement"),
    [
        ("bf16", Gpu(0), "burn_bf16_miscompares"),
        ("f64", Gpu(0), "burn_f64_miscompares"),
        ("copy", Gpu(0), "burn_copy_miscompares"),
        ("peer", PATH, "burn_peer_miscompares"),
    ],
)
def test_what_the_check_counts_is_not_told_twice(
    code: str, component: Component, measurement: str
) -> None:
    verdict = run([told(code, component)], wrong={(measurement, component): 7.0})
    assert failures(verdict) == [(BURN, measurement, component)]
    assert verdict.verdict == "FAIL"
    assert [check.events for check in verdict.checks if check.id == BURN] == [
        (told(code, component),)
    ]


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        (told(), {}),  # the load told of one, and counted none
        (told("f64"), {("burn_bf16_miscompares", Gpu(0)): 7.0}),
        (told("bf16", Gpu(1)), {("burn_bf16_miscompares", Gpu(0)): 7.0}),
        (told("16"), {("burn_bf16_miscompares", Gpu(0)): 7.0}),
        (told("miscompares"), {}),
        (told(source="kernel-log"), {("burn_bf16_miscompares", Gpu(0)): 7.0}),
    ],
)
def test_what_the_check_does_not_count_is_told_beside_it(
    event: Event, wrong: dict[tuple[str, Component], float]
) -> None:
    verdict = run([event], wrong=wrong)
    assert verdict.verdict == "FAIL"
    assert (BURN, None, event.component) in failures(verdict)
    assert len(failures(verdict)) == 1 + len(wrong)


def test_without_a_wrong_result_a_stop_leaves_it_unjudged_and_says_what_was_proved() -> None:
    verdict = run([lap(1), lap(2), lap(3)], ends=False)
    assert verdict.verdict == "UNJUDGED"
    texts = [words.of(finding) for finding in verdict.of_kind("error") if finding.check == BURN]
    assert texts == ["did not finish: stopped by SIGINT; proved until then: gpu0: lap 3 of 9"]


def test_of_laps_the_last_word_is_told() -> None:
    during = [Note("before"), lap(1), Note("between"), lap(2), lap(3)]
    assert notes(recorded(during, after=[Note("after")])) == [
        "before",
        "between",
        "gpu0: lap 3 of 9",
        "after",
    ]


def test_laps_of_two_checks_are_told_of_each() -> None:
    made = journals.plan(journals.check("vram.patterns"), journals.check(BURN))
    bodies = journals.bodies(made)
    places = [n for n, body in enumerate(bodies) if isinstance(body, CheckEnded)]
    found: list[Body] = [
        *bodies[: places[0]],
        lap(1),
        lap(2),
        *bodies[places[0] : places[1]],
        lap(5),
        *bodies[places[1] :],
    ]
    assert notes(journals.entries(found)) == ["gpu0: lap 2 of 9", "gpu0: lap 5 of 9"]


def test_an_event_with_its_own_moment_goes_to_the_check_of_that_moment() -> None:
    bodies = journals.bodies(PLAN)
    entries: list[Entry] = journals.entries(bodies)
    begun = next(entry.boot_s for entry in entries if getattr(entry.body, "check", None) == BURN)
    late = Event("miscompare", "fatal", "t", "m", "a", "bf16", Gpu(0), begun + 0.5, source="load")
    verdict = fold(journals.entries([*bodies[:-1], late, bodies[-1]]))
    assert failures(verdict) == [(BURN, None, Gpu(0))]
