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


def plots(looks: list[TimedSample]) -> list[tuple[curves.Plot, ...]]:
    """What is drawn of each GPU."""
    return [one.plots for one in curves.curves(timeline.timeline(100.0, looks))]


def test_all_gpus_are_drawn_on_one_scale_with_their_extremes_told() -> None:
    looks = [look(100.0 + n, Gpu(n % 2), power_w=100.0 + n, temperature_c=40.0) for n in range(40)]
    (heat, power), (_, other) = plots(looks)
    assert (heat.metric, power.metric) == ("temperature_c", "power_w")
    assert (power.bottom, power.top, power.least, power.most) == ("0", "150", "100", "138")
    assert (other.bottom, other.top, other.least, other.most) == ("0", "150", "101", "139")
    assert power.lines[0].startswith("M0 33.3L")
    gap = [look(100.0 + 0.2 * n, power_w=100.0) for n in (*range(50), *range(100, 150))]
    found, one = track(gap)
    assert [len(part) > 1 for part in stretches(one.cells["power_w"], found.width_s)] == [True] * 2
    ((drawn,),) = plots(gap)
    assert len(drawn.lines) == 2, "a gap is a gap"
    for value, bands in ((100.0, ()), (50.0, ("M0 0L0 50Z",))):  # where samples differ
        ((drawn,),) = plots([look(100.0, power_w=100.0), look(100.1, power_w=value)])
        assert drawn.bands == bands
    # samples of the machine itself and of before the beginning do no harm
    odd = [look(150.0, None, power_w=1.0), look(90.0, "gpu1", power_w=5.0)]
    tracks = timeline.timeline(100.0, odd).tracks
    assert {name: set(one.cells["power_w"]) for name, one in tracks.items()} == {"gpu1": {0}}


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
