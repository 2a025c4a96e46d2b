from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.parts import Gpu
from acceptance.core.spans import CheckSpan
from acceptance.journal.samples import GpuReadings, GpuSample, TimedSample
from acceptance.reports.page import curves, timeline
from acceptance.reports.page.timeline import MAX_CELLS, Timeline, Track, stretches


def look(
    boot_s: float, gpu: str | None = "gpu0", span_s: float = 0.0, **values: float
) -> TimedSample:
    return TimedSample(0, boot_s, GpuSample(GpuReadings(**values), span_s, component=gpu))


def track(looks: list[TimedSample], expected_s: float = 0.0) -> tuple[Timeline, Track]:
    found = timeline.timeline(100.0, looks, expected_s)
    return found, found.tracks["gpu0"]


@given(
    st.lists(st.floats(0.0, 900.0, width=32), min_size=1, max_size=300),
    st.floats(0.05, 400.0),
    st.floats(0.0, 5e4),
)
def test_no_extreme_is_lost_and_the_number_of_cells_is_bounded(
    values: list[float], step_s: float, expected_s: float
) -> None:
    found, one = track(
        [look(100.0 + step_s * n, power_w=value) for n, value in enumerate(values)], expected_s
    )
    cells = one.cells["power_w"]
    assert min(cell.least for cell in cells.values()) == min(values)
    assert max(cell.most for cell in cells.values()) == max(values)
    assert sum(cell.count for cell in cells.values()) == len(values)
    assert sum(cell.total for cell in cells.values()) == pytest.approx(sum(values), abs=1e-6)
    assert 0 <= min(cells) <= max(cells) < MAX_CELLS
    assert found.ended_s == 100.0 + step_s * (len(values) - 1)


def test_what_was_expected_saves_work_and_changes_nothing_else() -> None:
    looks = [look(100.0 + 0.2 * n, power_w=float(n % 7)) for n in range(5_000)]
    short, long = track(looks)[0], track(looks, 999.8)[0]
    assert short.width_s == long.width_s == 4.0
    assert short.tracks == long.tracks


def test_a_sample_of_a_span_stands_in_every_cell_that_it_tells_of() -> None:
    body = GpuSample(
        GpuReadings(power_w=50.0),
        10.0,
        GpuReadings(power_w=20.0),
        GpuReadings(power_w=90.0),
        "gpu0",
    )
    _, one = track([TimedSample(0, 110.0, body)], 400.0)
    assert set(one.cells["power_w"]) == set(range(11))
    assert {(cell.least, cell.mean, cell.most) for cell in one.cells["power_w"].values()} == {
        (20.0, 50.0, 90.0)
    }


def test_a_clock_held_back_for_a_moment_is_seen() -> None:
    looks = [
        look(
            100.0 + n,
            power_w=1.0,
            reason_hw_thermal=float(n == 7),
            reason_sw_power_cap=float(n == 3),
        )
        for n in range(20)
    ]
    spans = [
        TimedSample(
            0,
            140.0,
            GpuSample(
                GpuReadings(power_w=1.0), 10.0, None, GpuReadings(reason_sw_thermal=1.0), "gpu0"
            ),
        )
    ]
    _, one = track([*looks, *spans], 400.0)
    assert one.capped == {3}
    assert one.slowed == {7, *range(30, 41)}


def test_samples_of_the_machine_itself_and_of_before_the_beginning_do_no_harm() -> None:
    found = timeline.timeline(
        100.0, [look(150.0, None, power_w=1.0), look(90.0, "gpu1", power_w=5.0)]
    )
    assert set(found.tracks) == {"gpu1"}
    assert set(found.tracks["gpu1"].cells["power_w"]) == {0}


def test_a_gap_is_a_gap() -> None:
    looks = [look(100.0 + 0.2 * n, power_w=100.0) for n in (*range(50), *range(100, 150))]
    found, one = track(looks)
    assert [len(stretch) > 1 for stretch in stretches(one.cells["power_w"], found.width_s)] == [
        True,
        True,
    ]
    (drawn,) = curves.curves(found)
    assert len(drawn.plots[0].lines) == 2


def test_all_gpus_are_drawn_on_one_scale_with_their_extremes_told() -> None:
    looks = [look(100.0 + n, Gpu(n % 2), power_w=100.0 + n, temperature_c=40.0) for n in range(40)]
    first, second = curves.curves(timeline.timeline(100.0, looks))
    assert [plot.metric for plot in first.plots] == ["temperature_c", "power_w"]
    power, other = first.plots[1], second.plots[1]
    assert (power.bottom, power.top, power.least, power.most) == ("0", "150", "100", "138")
    assert (other.bottom, other.top, other.least, other.most) == ("0", "150", "101", "139")
    assert power.lines[0].startswith("M0 33.3L")


def test_a_band_is_drawn_where_samples_differ() -> None:
    steady, moved = (
        curves.curves(timeline.timeline(0.0, [look(0.0, power_w=100.0), look(0.1, power_w=value)]))
        for value in (100.0, 50.0)
    )
    assert next(steady).plots[0].bands == ()
    assert next(moved).plots[0].bands == ("M0 0L0 50Z",)


def test_the_phases_are_the_checks_that_ran_while_samples_were_taken() -> None:
    found = timeline.timeline(100.0, [look(100.0 + n, power_w=1.0) for n in range(101)], 101.0)
    spans = [
        CheckSpan("a.long", 0, 100.0, 150.0),
        CheckSpan("b.beside", 0, 110.0, 140.0),
        CheckSpan("a.short", 0, 150.0, 150.5),
        CheckSpan("a.open", 0, 151.0, float("inf")),
        CheckSpan("a.later", 1, 100.0, 200.0),
        CheckSpan("a.before", 0, 10.0, 90.0),
    ]
    phases = curves.phases(spans, found)
    assert [(phase.check, phase.label, phase.row) for phase in phases] == [
        ("a.long", "1", 0),
        ("b.beside", "2", 1),
        ("a.short", "", 0),
        ("a.open", "3", 0),
    ]
    assert phases[0].left == 0.0
    widths = [phase.width for phase in phases if not phase.row]
    assert sum(widths) == pytest.approx(99.5, abs=0.5)
    assert list(curves.curves(timeline.timeline(0.0, []))) == []
