"""What proves a power load: each step that was made is in its table, and its time has passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cases import each
from load_texts import printed, refusal
from wrong_results import REPEATED

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.pulse.contract import Ask, Step

ASK = Ask(gpus=2, steps=(Step("square", 2.0, 1.0), Step("cold", 8.0)), watchdog="/run/watchdog")
OWN = {"uuids": ["GPU-1", "GPU-2"]}


def code(found: str | LoadOutput, ran_s: float = 11.5) -> str:
    """Why it proves nothing, after the shortest run; "" where it is proof."""
    return refusal(ASK, found, OWN, ran_s)


def text(**more: Any) -> str:
    return printed(ASK, OWN, **more)


def test_a_whole_run_and_one_that_was_stopped_are_proof() -> None:
    assert code(text()) == ""
    assert code(text(made=1), 2.5) == ""
    assert code(text(made=0), 0.0) == ""


def test_the_first_line_has_the_steps_as_they_are_typed() -> None:
    assert parse(text()).parameters == {
        "gpus": 2,
        "steps": ["square,2,1,2", "cold,8,,2"],
        "watched": True,
        **OWN,
    }


@each(
    "old, new, why",
    [
        ('"square,2,1,2"', '"square,2,2,2"', "load_parameter"),
        ('"watched": true', '"watched": false', "load_parameter"),
        ('"GPU-2"', '"GPU-3"', "load_parameter"),
        ('"gpus": 2', '"gpus": 2, "inject": "element"', "load_fault_injected"),
        ('"gpu1", "value"', '"gpu2", "value"', "load_unmeasured"),
        *(('"value": 1.0', f'"value": {more}', "load_steps_differ") for more in ("2.0", "1e308")),
        ('"value": 1.0', '"value": 0.5', ""),  # stopped after its last edge
        ('"value": 1.0', '"value": 0.0', "load_steps_differ"),
        ('"value": 1.0', '"value": 0.9', "load_steps_differ"),
        ('[["square", 2, 1.0', '[["square", 2, 2.0', "load_steps_differ"),
        ('["cold", 2, "-", 8.0', '["ramp", 2, "-", 8.0', "load_steps_differ"),
        ('["cold", 2, "-", 8.0', '["cold", 1, "-", 8.0', "load_steps_differ"),
        ('"apart us"', '"apart ms"', "load_columns"),
        ('"power_steps", "columns"', '"steps", "columns"', "load_without_table"),
    ],
)
def test_what_was_printed_is_what_was_asked(old: str, new: str, why: str) -> None:
    assert old in text()
    assert code(text().replace(old, new, 1)) == why


@each("made, ran_s", [(2, 11.4), (1, 2.4)])
def test_steps_take_their_time(made: int, ran_s: float) -> None:
    assert code(text(made=made), ran_s) == "load_ended_early"


def test_wrong_results_are_counted() -> None:
    wrong = (read({**REPEATED, "component": "gpu1"}),)
    assert code(replace(parse(text(bad=1)), miscompares=wrong)) == ""
    assert code(replace(parse(text()), miscompares=wrong)) == "load_uncounted"


def test_a_step_without_gpus_is_on_all() -> None:
    (wave, cold) = ASK.power_steps()
    assert wave.gpus == cold.gpus == (Gpu(0), Gpu(1))
