"""A card that draws less than its equals while its fans run higher, from telemetry of the burn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from gpu_machine import TRAITS, device, machine
from suite_box import Said, ask, planned
from test_thermal_suite import NAMES, SPANS, history

from acceptance.core import clock_reasons
from acceptance.core.parts import Gpu
from acceptance.expect import components
from acceptance.machine.gpu import gpus
from acceptance.suites import thermal

SOUND = {"power_w": 445.0, "fan": 0.55, "power_limit_w": 450.0}
SICK = {"power_w": 372.0, "fan": 0.78, "power_limit_w": 450.0}
SHORT = "burn_power_short"


def cards(count: int, fan: bool | None = True) -> Any:
    return machine(*(device(index, traits=replace(TRAITS, fan=fan)) for index in range(count)))


def look(last: Mapping[str, float | None], second: Mapping[str, float] = SOUND) -> Said:
    seen = cards(3)
    values: list[Mapping[str, float | None]] = [SOUND, second, {**SOUND, **last}]
    return ask(
        planned(seen, NAMES, ("thermal.steady",), "d"),
        "thermal.steady",
        thermal.test_steady,
        gpu_history={
            # power that never changes was not measured
            name: history(
                name,
                lambda after, own=own: {
                    **own,
                    "power_w": own["power_w"] + round(after * 5) % 3 / 10,
                },
            )
            for name, own in zip(NAMES, values, strict=True)
        },
        due_gpus=gpus(seen),
        load_spans=SPANS,
        load_outcomes={name: "pass" for name, _, _ in SPANS},
        load_tables=(),
        siblings={"RTX": NAMES},
        table=lambda *_: None,
    )


def test_a_card_that_draws_less_and_cools_more_is_named() -> None:
    said = look(SICK)
    assert said.outcome == "fail"
    assert said.measured(SHORT) == {Gpu(0): 0.0, Gpu(1): 0.0, Gpu(2): 1.0}
    drawn = "draws 372 W beside 445 W of its equals, fans at 78 % beside 55 %"
    assert said.notes(SHORT) == {"gpu2": f"slot 0000:03:00.0: {drawn}"}


@pytest.mark.parametrize(
    "last",
    [
        {},
        {"power_w": 420.0, "fan": 0.78},  # 25 W, but not 6 %
        {"power_w": 372.0},  # its fans run as its equals'
        {**SICK, "power_limit_w": 380.0},  # a lower limit explains it
        {**SICK, clock_reasons.SW_THERMAL: 1.0},  # heat explains it
    ],
)
def test_what_is_no_sign_of_a_connector(last: Mapping[str, float]) -> None:
    said = look(last)
    assert said.measured(SHORT) == dict.fromkeys(NAMES, 0.0)
    assert SHORT not in said.message


def test_without_a_limit_the_power_of_equals_counts() -> None:
    assert look({**SICK, "power_limit_w": None}).measured(SHORT)[Gpu(2)] == 1.0


def test_a_fan_that_fell_silent_is_an_error() -> None:
    said = look({"fan": None})
    assert said.outcome == "error"
    assert "fan" in said.message


@pytest.mark.parametrize(
    ("count", "fan", "due"), [(3, True, 3), (2, True, 0), (1, True, 0), (4, None, 0)]
)
def test_due_with_three_cards_that_tell_their_fans(count: int, fan: bool | None, due: int) -> None:
    names = tuple(Gpu(index) for index in range(count))
    found = components.resolve(None, cards(count, fan), frozenset(), names)
    assert len(found["gpu-fan-with-peers"]) == due
