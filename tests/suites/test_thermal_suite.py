"""The check of heat under full load, over telemetry that is written line by
line, with its real limits.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from gpu_machine import device, machine
from suite_box import Said, ask, planned
from thoroughness import ALL

from acceptance.core.evidence import Table
from acceptance.core.parts import Component
from acceptance.core.parts import Gpu as GpuName
from acceptance.core.plan import Plan
from acceptance.core.record import Measured, Outcome
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.observe.gpu_sample import REASONS
from acceptance.suites import thermal

BEGIN, SECONDS = 1000.0, 240.0
# Samples a second: the watch takes five, and what is asked here takes time by their number.
RATE = 5 if ALL else 1
SPANS = (("link.p2p", 900.0, 930.0), ("together.burn", BEGIN - 5.0, BEGIN + SECONDS + 5.0))
NAMES = (GpuName(0), GpuName(1), GpuName(2))
Change = Callable[[float], Mapping[str, float | None]]


def healthy(after: float) -> dict[str, float]:
    """A GPU that burns from 0 to SECONDS; `after` is seconds since then."""
    busy = 0.0 <= after <= SECONDS
    return {
        "utilisation": float(busy),
        "temperature_c": float(round(70.0 - 30.0 * 2.7 ** -(max(after, 0.0) / 15.0))),
        "temperature_margin_c": 17.0,
        "sm_clock_mhz": 1980.0 if after < 100.0 else 1950.0,
        "power_w": (690.0 if busy else 90.0) + round(after * 5) % 3 / 10,
        "pcie_replays": 3.0,
        "nvlink_replays": 1.0,
        "nvlink_crc_errors": 0.0,
        **dict.fromkeys(REASONS, 0.0),
    }


def unchanged(_after: float) -> Mapping[str, float | None]:
    return {}


def always(**values: float | None) -> Change:
    return lambda _after: values


def history(name: str, change: Change) -> GpuHistory:
    points = []
    for step in range(int((SECONDS + 120.0) * RATE)):
        after = round(step / RATE - 60.0, 3)
        values = {
            name: value
            for name, value in {**healthy(after), **change(after)}.items()
            if value is not None
        }
        points.append(HistoryPoint(BEGIN + after, values))
    return GpuHistory(name, tuple(points))


@functools.cache
def box() -> tuple[Inventory, tuple[Gpu, ...], Plan]:
    seen = machine(*(device(index) for index in range(3)))
    return seen, gpus(seen), planned(seen, NAMES, ("thermal.steady",), "d")


@functools.cache
def sound() -> GpuHistory:
    return history(GpuName(0), unchanged)


class Seen:
    """What the check says of three GPUs of which the last is changed, and what it wrote."""

    def __init__(
        self,
        *changes: Change,
        spans: Any = SPANS,
        missing: tuple[str, ...] = (),
        tables: tuple[Table, ...] = (),
        burn: Outcome = "pass",
    ) -> None:
        histories = {
            name: GpuHistory(name, sound().points) for name in NAMES if name not in missing
        }
        for change in changes:
            histories[GpuName(2)] = history(GpuName(2), change)
        self.tables: dict[str, tuple[tuple[float | str, ...], ...]] = {}

        def table(
            component: str,
            name: str,
            columns: tuple[str, ...],
            rows: tuple[tuple[float | str, ...], ...],
        ) -> None:
            assert (name, len(columns)) == ("burn_steady", len(rows[0]))
            self.tables[component] = rows

        _, due, made = box()
        self.said: Said = ask(
            made,
            "thermal.steady",
            thermal.test_steady,
            gpu_history=histories,
            due_gpus=due,
            load_spans=spans,
            load_outcomes={name: burn for name, _, _ in spans},
            load_tables=tables,
            siblings={"H200": NAMES},
            table=table,
        )

    def note(self, measurement: str, component: Component = GpuName(2)) -> str | None:
        return self.said.notes(measurement).get(str(component))


def test_a_machine_that_comes_to_rest() -> None:
    seen = Seen()
    assert (seen.said.outcome, seen.said.message) == ("pass", "")
    assert set(seen.said.measured("burn_settled")) == set(NAMES)
    settled = seen.said.measured("burn_settled")[GpuName(2)]
    assert settled is not None
    assert 30.0 < settled < 50.0
    assert seen.said.measured("burn_clock_kept") == pytest.approx(dict.fromkeys(NAMES, 1950 / 1980))
    assert seen.said.measured("burn_temperature_spread") == dict.fromkeys(NAMES, 0.0)
    assert seen.said.measured("burn_errors_new") == dict.fromkeys(NAMES, 0.0)
    assert len(seen.tables[GpuName(2)]) == 24
    slot = box()[1][2].pci_address
    assert seen.note("burn_settled") == f"slot {slot}: 70 degC at the end, 17 degC below its limit"
    assert (
        seen.note("burn_clock_kept")
        == f"slot {slot}: 1980 MHz in the first quarter, 1950 MHz in the last"
    )
    assert seen.note("burn_errors_new") is None


def test_a_burn_that_ended_in_an_error_proves_nothing_of_heat() -> None:
    assert Seen(burn="fail").said.outcome == "pass"
    said = Seen(burn="error").said
    assert (said.outcome, said.written) == ("error", ())
    assert said.message.startswith("together.burn ended in error")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda after: {"power_w": 21.5}, "the power of gpu2 was not measured: it stood at 21.5 W"),
        (
            lambda after: {"sm_clock_mhz": 345.0},
            "the clock of gpu2 was not measured: at most 345 MHz of 3105 MHz",
        ),
        (lambda after: {"sm_clock_mhz": 700.0}, None),
    ],
)
def test_telemetry_of_an_idle_card_proves_nothing_of_cooling(
    change: Change, told: str | None
) -> None:
    said = Seen(change).said
    assert said.outcome == ("error" if told else "pass")
    assert (told or "") in said.message
    assert set(said.measured("burn_settled")) == ({GpuName(0), GpuName(1)} if told else set(NAMES))


@pytest.mark.parametrize(
    ("change", "measurement", "values", "note"),
    [
        (  # held back by heat
            lambda after: {"sm_clock_mhz": 1200.0, "reason_sw_thermal": 1.0} if after > 120 else {},
            *("burn_clock_kept", [1950 / 1980, 1950 / 1980, 1200 / 1980]),
            "likely: too little cooling",
        ),
        (  # hotter than its equals
            lambda after: {"temperature_c": healthy(after)["temperature_c"] + 18.0},
            *("burn_temperature_spread", [-9.0, -9.0, 18.0]),
            "88 degC, its equals 70 degC; likely: the slot between two others",
        ),
        (  # a link that sends packets again
            lambda after: {"pcie_replays": 3.0 + max(0.0, min(200.0, after)) // 2 + (after > 250)},
            *("burn_errors_new", [0.0, 0.0, 100.0], "0 before, 100 within, 1 after the burn"),
        ),
        (  # NVLinks that make errors
            lambda after: {
                "nvlink_replays": 1.0 + 60.0 * (after > 50.0),
                "nvlink_crc_errors": 50.0 * (after > 99.0),
            },
            *("burn_nvlink_errors_new", [0.0, 0.0, 110.0]),
            "0 before, 110 within, 0 after the burn",
        ),
    ],
    ids=["heat", "hotter", "replays", "nvlink"],
)
def test_a_card_that_is_not_as_its_equals(
    change: Change, measurement: str, values: list[float], note: str
) -> None:
    seen = Seen(change)
    assert seen.said.outcome == "fail"
    assert f"{measurement} on gpu2: measured " in seen.said.message
    assert [*seen.said.measured(measurement).values()] == pytest.approx(values)
    assert note in str(seen.note(measurement))


def test_not_every_driver_tells_all_errors_of_nvlinks() -> None:
    few = Seen(always(nvlink_crc_errors=None)).said
    assert few.measured("burn_nvlink_errors_new") == dict.fromkeys(NAMES, 0.0)


def laps(
    gpu: str, turn_s: float, *, count: int = 2, formats: tuple[str, ...] = ("f64", "bf16")
) -> Table:
    """What a load told of its turns."""
    order = [(float(lap), name) for lap in range(count) for name in formats]
    rows = [
        (*one, BEGIN + place * turn_s, BEGIN + (place + 1) * turn_s)
        for place, one in enumerate(order)
    ]
    return Table(
        "together.burn", gpu, "burn_laps", ("lap", "format", "from s", "to s"), tuple(rows)
    )


def test_formats_are_compared_with_themselves_where_laps_are_known() -> None:
    def change(after: float) -> Mapping[str, float | None]:
        bf16 = after % 120.0 > 60.0
        return {"sm_clock_mhz": 1400.0 if bf16 else 1980.0 if after < 100.0 else 1970.0}

    seen = Seen(change, tables=(laps(GpuName(2), 60.0),))
    assert seen.said.outcome == "pass"
    slot = box()[1][2].pci_address
    assert seen.said.measured("burn_clock_kept")[GpuName(2)] == pytest.approx(1970 / 1980)
    assert (
        seen.note("burn_clock_kept")
        == f"slot {slot}: f64: 1980 MHz in the first lap, 1970 MHz in the last"
    )
    assert seen.said.measured("burn_settled")[GpuName(2)] == 60.0
    assert (
        seen.note("burn_settled")
        == f"slot {slot}: 70 degC in the last lap, 17 degC below its limit"
    )
    assert "in the first quarter" in str(seen.note("burn_clock_kept", GpuName(0)))


def test_a_format_that_loses_its_clock_is_a_failure_with_its_causes() -> None:
    def change(after: float) -> Mapping[str, float | None]:
        return {"sm_clock_mhz": 1500.0, "reason_sw_power_cap": 1.0} if after > 180.0 else {}

    seen = Seen(change, tables=tuple(laps(name, 60.0) for name in NAMES))
    assert seen.said.outcome == "fail"
    assert "burn_clock_kept on gpu2" in seen.said.message
    assert re.search("bf16: .*likely: its power limit", str(seen.note("burn_clock_kept")))


def test_a_short_burn_with_laps_is_no_error() -> None:
    """Seven formats of a second and a half, twice."""
    formats = ("f64", "f32", "tf32", "f16", "bf16", "f8", "i8")
    short = (("together.burn", BEGIN - 1.0, BEGIN + 22.0),)
    tables = (laps(GpuName(2), 1.5, formats=formats),)
    seen = Seen(
        lambda after: {"utilisation": float(0.0 <= after <= 21.0)}, spans=short, tables=tables
    )
    assert seen.said.outcome == "pass"
    assert seen.said.measured("burn_clock_kept")[GpuName(2)] == 1.0
    assert str(seen.note("burn_settled")).endswith(
        "; only 21 s under load, which tells little of heat"
    )


def test_a_card_that_still_warms_is_recorded() -> None:
    seen = Seen(lambda after: {"temperature_c": 30.0 + after / 4.0})
    assert seen.said.measured("burn_settled")[GpuName(2)] == pytest.approx(SECONDS, abs=0.5)
    assert "still warming" in str(seen.note("burn_settled"))


def test_a_short_burn_is_measured_and_says_that_it_was_short() -> None:
    short = (("together.burn", BEGIN + 10.0, BEGIN + 31.0),)
    seen = Seen(spans=short)
    assert set(seen.said.measured("burn_settled")) == set(NAMES)
    assert str(seen.note("burn_settled")).endswith(
        "; only 21 s under load, which tells little of heat"
    )
    assert "only 21 s under load" in str(seen.note("burn_clock_kept"))


# --- what cannot be told ---


@pytest.mark.parametrize("spans", [(), (("link.p2p", 900.0, 930.0),)])
def test_without_the_burn_nothing_is_known(spans: Any) -> None:
    said = Seen(spans=spans).said
    assert said.outcome == "error"
    assert "together.burn did not come to its end in this run" in said.message
    assert said.written == ()


@pytest.mark.parametrize(
    ("change", "told", "kept"),
    [
        (
            always(utilisation=0.0),
            "gpu2 was never in full use while it was to burn",
            {"burn_errors_new"},
        ),
        (
            always(temperature_c=None),
            "temperature_c of gpu2 was never sampled",
            {"burn_clock_kept", "burn_errors_new"},
        ),
        (
            always(sm_clock_mhz=None),
            "sm_clock_mhz of gpu2 was never sampled",
            {"burn_settled", "burn_temperature_spread"},
        ),
        (
            always(pcie_replays=None),
            "pcie_replays of gpu2 was never sampled",
            {"burn_settled", "burn_clock_kept"},
        ),
        (
            always(nvlink_replays=None),
            "nvlink_replays of gpu2 was never sampled",
            {"burn_settled", "burn_errors_new"},
        ),
    ],
    ids=["idle", "temperature", "clock", "counter", "nvlink"],
)
def test_what_cannot_be_told_is_an_error_and_the_rest_is_journalled(
    change: Change, told: str, kept: set[str]
) -> None:
    said = Seen(change).said
    assert said.outcome == "error"
    assert told in said.message
    names = {
        body.measurement
        for body in said.written
        if isinstance(body, Measured) and body.component == GpuName(2)
    }
    assert kept <= names
    for name in ("burn_settled", "burn_clock_kept", "burn_errors_new"):
        assert {GpuName(0), GpuName(1)} <= set(said.measured(name))


EARLY = Table(
    *("together.burn", GpuName(2), "burn_laps", ("lap", "format", "from s", "to s")),
    ((0.0, "f64", 1.0, 2.0), (1.0, "f64", 2.0, 3.0)),
)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"missing": (GpuName(2),)}, "gpu2: no telemetry was recorded"),
        ({"tables": (EARLY,)}, "sm_clock_mhz of gpu2 was sampled too seldom in full use"),
    ],
)
def test_without_samples_of_its_turns_a_gpu_is_not_measured(how: Any, told: str) -> None:
    said = Seen(**how).said
    assert said.outcome == "error"
    assert told in said.message
    assert set(said.measured("burn_clock_kept")) == {GpuName(0), GpuName(1)}
