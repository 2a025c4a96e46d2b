"""The names of clock event reasons: a second book of those that no sound machine shows."""

from __future__ import annotations

from acceptance.core import clock_reasons


def test_heat_and_hardware_that_asks_to_be_spared() -> None:
    assert sorted(clock_reasons.HEAT_OR_HARDWARE) == [
        "reason_hw_power_brake",
        "reason_hw_slowdown",
        "reason_hw_thermal",
        "reason_sw_thermal",
    ]
