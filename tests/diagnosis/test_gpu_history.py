"""The telemetry of a GPU, reduced: raw samples, thinned ones, and what neither
of them can prove.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.evidence import Sample
from acceptance.core.parts import Gpu
from acceptance.core.record import Body, Entry, Note
from acceptance.diagnosis.gpu_history import (
    GAP_S,
    MOMENT_S,
    PERIOD_S,
    Collector,
    GpuHistory,
    HistoryPoint,
    NotMeasured,
    histories,
    running_at,
)
from acceptance.observe.sensors import SampleThinner


def raw(
    *values: float | None, name: str = "x", begin: float = 100.0, step: float = 1.0
) -> list[HistoryPoint]:
    """Samples a step apart; None is one without the reading."""
    return [
        HistoryPoint(begin + step * number, {"other": 1.0} if value is None else {name: value})
        for number, value in enumerate(values)
    ]


def span(
    boot_s: float, low: float, mean: float, high: float, *, span_s: float = 10.0, name: str = "x"
) -> HistoryPoint:
    return HistoryPoint(boot_s, {name: mean}, span_s, {name: low}, {name: high})


def history(*points: HistoryPoint) -> GpuHistory:
    return GpuHistory("gpu0", points)


def thinned(
    samples: Iterable[tuple[float, dict[str, float]]], *, whole_s: float = 0.0
) -> GpuHistory:
    """The samples (moment, values) as the watch's own thinning writes them."""
    points: list[HistoryPoint] = []
    moment = 0.0

    def keep(one: Sample) -> None:
        points.append(HistoryPoint(moment, one.values, one.span_s, one.low, one.high))

    thinning: SampleThinner | None = None
    for moment, values in samples:
        thinning = thinning or SampleThinner(keep, moment, whole_s=whole_s)
        thinning.put(moment, values)
    assert thinning is not None
    thinning.flush(moment)
    return history(*points)


REDUCTIONS: tuple[Callable[[GpuHistory, str], object], ...] = (
    GpuHistory.maximum,
    GpuHistory.minimum,
    GpuHistory.growth,
    GpuHistory.seconds,
    GpuHistory.moments,
    GpuHistory.under_load,
)


# --- readings that cannot be used ---


@each("reduce", REDUCTIONS)
@each(
    "points, told",
    [
        ([], "x of gpu0 was never sampled"),
        (raw(None, None), "x of gpu0 was never sampled"),
        (raw(1.0, math.nan, 1.0), "x of gpu0 has a sample that is no finite number"),
        (raw(1.0, math.inf, 1.0), "x of gpu0 has a sample that is no finite number"),
        (
            [*raw(1.0, 1.0), span(112.0, -math.inf, 1.0, 1.0)],
            "x of gpu0 has a sample that is no finite number",
        ),
        (
            [*raw(1.0, 1.0), span(112.0, 1.0, 1.0, math.nan)],
            "x of gpu0 has a sample that is no finite number",
        ),
        (raw(*[1.0] * 3, *[None] * 6), "x of gpu0 fell silent for more than 5 s"),
        (raw(*[None] * 7, *[1.0] * 3), "x of gpu0 fell silent for more than 5 s"),
        (raw(1.0, *[None] * 6, 1.0), "x of gpu0 fell silent for more than 5 s"),
        (
            [*raw(1.0, 1.0), span(112.0, 0.0, 0.0, 0.0, name="other")],
            "x of gpu0 fell silent for more than 5 s",
        ),
    ],
)
def test_a_reading_that_is_not_there_throughout_is_no_figure(
    reduce: Callable[[GpuHistory, str], object], points: list[HistoryPoint], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        reduce(history(*points), "x")


def test_a_reading_that_is_told_once_a_second_is_there_throughout() -> None:
    often = [
        HistoryPoint(100.0 + PERIOD_S * n, {"x": 1.0} if n % 5 == 0 else {"other": 1.0})
        for n in range(60)
    ]
    assert history(*often).maximum("x") == 1.0
    assert history(*raw(*[1.0, *[None] * 5] * 3)).maximum("x") == 1.0


def test_rates_for_the_live_view_are_no_readings() -> None:
    """They stand in few samples and end early, and no reading has fallen silent for that."""
    entries = []
    for number in range(100):
        rates = {"pcie_tx_gb_s": 12.5} if number < 10 else {}
        spread = dict.fromkeys(rates, 1.0) or None
        body = Sample({"temperature_c": 60.0, **rates}, 0.0, spread, spread, Gpu(0))
        entries.append(Entry(number, number / 5, "", body))
    found = histories(entries)[Gpu(0)]
    assert found.vanished() == {}
    assert not found.offers("pcie_tx_gb_s")
    assert found.maximum("temperature_c") == 60.0


# --- readings that are there part of the time ---

CHECKS = (("link.one", 100.0, 109.9), ("burn.two", 110.0, 119.9))


def patched(missing: Iterable[int], name: str = "power_w") -> GpuHistory:
    """Two checks of 50 samples each; those of these numbers lack the reading."""
    lost = frozenset(missing)
    points = tuple(
        HistoryPoint(100.0 + PERIOD_S * n, {"fan": 0.3} if n in lost else {"fan": 0.3, name: 1.0})
        for n in range(100)
    )
    return GpuHistory("gpu0", points, checks=CHECKS)


SHORT = (("c", 110.0, 110.5),)


@each(
    "missing, checks, measured",
    [
        (range(50, 55), CHECKS, True),  # one in ten of its check
        (range(50, 56), CHECKS, False),
        (range(51, 100, 2), CHECKS, False),
        (range(0, 100, 10), CHECKS, True),
        (range(0, 100, 5), CHECKS, False),
        # a short check may miss a sample
        ([51], SHORT, True),
        ([50, 51], SHORT, False),
        (range(0, 50, 2), CHECKS[1:], True),  # what is missing between checks was owed to none
    ],
)
def test_a_reading_that_lacks_more_than_one_sample_in_ten_of_a_check(
    missing: Iterable[int], checks: tuple[tuple[str, float, float], ...], measured: bool
) -> None:
    found = replace(patched(missing), checks=checks)
    if measured:
        assert found.maximum("power_w") == 1.0
        assert found.vanished() == {}
        return
    with pytest.raises(NotMeasured) as caught:
        found.maximum("power_w")
    assert caught.value.message.code == "too_many_missing"
    assert found.vanished() == {"power_w": caught.value.message}
    assert found.offers("power_w")


def test_which_check_it_was_is_told() -> None:
    with pytest.raises(NotMeasured) as caught:
        patched(range(50, 75)).minimum("power_w")
    values = caught.value.message.values
    assert (values["check"], values["share"], values["most"]) == ("burn.two", "50", "10")
    assert "outside" not in values


def test_a_reading_of_once_a_second_is_owed_once_a_second() -> None:
    points = tuple(
        HistoryPoint(
            100.0 + PERIOD_S * n,
            {"fan": 0.3} | ({"pcie_replays": 1.0, "ecc_enabled": 1.0} if n % 5 == 0 else {}),
        )
        for n in range(100)
    )
    assert GpuHistory("gpu0", points, checks=CHECKS).maximum("pcie_replays") == 1.0
    half = tuple(
        replace(point, values={"fan": 0.3, "ecc_enabled": 1.0}) if number % 10 == 0 else point
        for number, point in enumerate(points)
    )
    with pytest.raises(NotMeasured):
        GpuHistory("gpu0", half, checks=CHECKS).maximum("pcie_replays")


def test_spans_count_by_the_part_that_a_check_has_of_them() -> None:
    """After the first hour a sample stands for ten seconds."""
    found = [span(110.0 + 10 * n, 1.0, 1.0, 1.0, name="power_w") for n in range(20)]
    for place in (3, 10):
        lost = span(found[place].boot_s, 1.0, 1.0, 1.0, name="fan")
        found[place] = replace(lost, partly={"power_w": 1.0})
    whole = (("soak.one", 100.0, 300.0),)
    assert GpuHistory("gpu0", tuple(found), checks=whole).maximum("power_w") == 1.0
    with pytest.raises(NotMeasured):
        GpuHistory("gpu0", tuple(found), checks=(("soak.one", 120.0, 200.0),)).maximum("power_w")
    # Half a second of the span at its edge is no tenth of a check.
    edge = (("soak.one", 139.5, 180.0),)
    assert GpuHistory("gpu0", tuple(found), checks=edge).maximum("power_w") == 1.0


@each(
    "low, high, told",
    [
        (0.0, 64.0, "too_many_missing"),  # half of these ten seconds, or one sample of them
        (64.0, 255.0, "too_many_missing"),
        (0.0, 0.0, "fell_silent"),  # no sample of them was in range
    ],
)
def test_spans_with_values_out_of_range(low: float, high: float, told: str) -> None:
    def history_of(*wrong: int) -> GpuHistory:
        collector = Collector()
        for number in range(30):
            least, most = (low, high) if number in wrong else (60.0, 64.0)
            body = Sample(
                {"temperature_c": (least + most) / 2},
                10.0,
                {"temperature_c": least},
                {"temperature_c": most},
                "gpu0",
            )
            collector.add(Entry(number, 10.0 + 10.0 * number, "", body))
        return collector.histories((("soak", 0.0, 300.0),))["gpu0"]

    with pytest.raises(NotMeasured) as caught:
        history_of(*range(10, 14)).maximum("temperature_c")
    assert caught.value.message.code == told
    if told == "too_many_missing":
        assert history_of(10, 20, 21).maximum("temperature_c") == 64.0


@each(
    "mean, low, high, judged",
    [
        (62.7, 0.0, 64.0, True),  # one of fifty samples
        (57.6, 0.0, 64.0, False),  # five to six
        (63.9, 60.0, 255.0, True),
        (76.0, 60.0, 255.0, False),
        (62.0, 0.0, 255.0, False),
        (63.0, 0.0, math.nan, False),
    ],
)
def test_one_sample_out_of_range_in_a_short_check_after_the_first_hour(
    mean: float, low: float, high: float, judged: bool
) -> None:
    """The mean of a span tells how many of its samples can be out of range."""
    collector = Collector()
    for number in range(20):
        steady = {"temperature_c": 60.0}, {"temperature_c": 64.0}
        extremes = ({"temperature_c": low}, {"temperature_c": high}) if number == 10 else steady
        body = Sample({"temperature_c": mean if number == 10 else 62.0}, 10.0, *extremes, "gpu0")
        collector.add(Entry(number, 4010.0 + 10.0 * number, "", body))
    found = collector.histories((("soak.one", 4080.0, 4140.0),))["gpu0"]
    if judged:
        assert found.maximum("temperature_c") == 64.0
        return
    with pytest.raises(NotMeasured) as caught:
        found.maximum("temperature_c")
    assert caught.value.message.code == "too_many_missing"


@each("impossible", [0.0, -128.0, 32767.0])
def test_values_out_of_range_are_missing_from_a_check(impossible: float) -> None:
    collector = Collector()
    for number in range(100):
        wrong = number >= 50 and number % 2
        body = Sample({"temperature_c": impossible if wrong else 64.0}, component="gpu0")
        collector.add(Entry(number, 100.0 + PERIOD_S * number, "", body))
    with pytest.raises(NotMeasured) as caught:
        collector.histories(CHECKS)["gpu0"].maximum("temperature_c")
    values = caught.value.message.values
    assert (values["check"], values["share"]) == ("burn.two", "50")
    assert values["outside"] == collector.histories()["gpu0"].outside["temperature_c"].message


def test_what_is_offered() -> None:
    assert history(*raw(None, 1.0)).offers("x")
    assert not history(*raw(None)).offers("x")


# --- extremes and counters ---


def test_extremes_of_samples_and_of_spans() -> None:
    found = history(*raw(3.0, 2.0, 4.0), span(112.0, 1.0, 3.0, 9.0))
    assert (found.minimum("x"), found.maximum("x")) == (1.0, 9.0)
    assert (
        history(*raw(3.0, 2.0, 4.0)).minimum("x"),
        history(*raw(3.0, 2.0, 4.0)).maximum("x"),
    ) == (2.0, 4.0)


@each(
    "points, grown",
    [
        (raw(5.0, 5.0, 5.0), 0.0),
        (raw(5.0, None, 6.0, 9.0), 4.0),
        ([*raw(5.0), span(110.0, 5.0, 6.0, 7.0), span(120.0, 7.0, 7.0, 8.0)], 3.0),
        (
            [span(110.0, 5.0, 6.0, 7.0), span(120.0, 7.0, 7.0, 7.0)],
            2.0,
        ),  # what grew within the first counts
    ],
)
def test_growth(points: list[HistoryPoint], grown: float) -> None:
    assert history(*points).growth("x") == grown


@each(
    "points, told",
    [
        (raw(5.0), "has one sample: growth needs two"),
        (raw(5.0, 6.0, 0.0, 7.0), "fell: the counter was reset"),
        (raw(5.0, 0.0), "fell: the counter was reset"),
        # Within a span, the last one too: what was 5 all the time became 0, and 3 were counted
        # since.
        ([*raw(5.0), span(110.0, 0.0, 4.0, 5.0)], "fell: the counter was reset"),
        (
            [*raw(5.0), span(110.0, 0.0, 4.0, 5.0), span(120.0, 3.0, 3.0, 3.0)],
            "fell: the counter was reset",
        ),
        (
            [*raw(5.0), span(110.0, 5.0, 5.0, 6.0), span(120.0, 5.0, 6.0, 6.0)],
            "fell: the counter was reset",
        ),
    ],
)
def test_growth_that_is_not_known(points: list[HistoryPoint], told: str) -> None:
    with pytest.raises(ValueError, match=f"^x of gpu0 {told}"):
        history(*points).growth("x")


# --- how long a flag was up ---


@each(
    "points, seconds",
    [
        (raw(0.0, 0.0, 0.0), 0.0),
        (raw(0.0, 1.0, 0.0), 1.0),
        (raw(1.0, 1.0, 0.0), 2.0),
        (raw(0.0, 1.0, 1.0, step=PERIOD_S), PERIOD_S + MOMENT_S),
        (raw(0.0, 1.0), MOMENT_S),  # seen in the last sample of all
        (raw(1.0), 0.001),
        (raw(1.0, 0.0, step=60.0), 5.0),  # nothing is known of a minute without samples
        (raw(1.0, 0.0, step=-1.0), MOMENT_S),  # a clock that went back
        ([span(110.0, 0.0, 0.0, 0.0), span(120.0, 0.0, 0.0, 0.0)], 0.0),
        ([span(110.0, 1.0, 1.0, 1.0), span(120.2, 1.0, 1.0, 1.0)], 20.2),
        ([span(110.0, 0.0, 0.02, 1.0), span(120.2, 0.0, 0.0, 0.0)], 0.02 * 10.2),
        # A sample before a span holds until the span begins, not until it is written.
        ([*raw(0.0, 1.0, step=PERIOD_S), span(110.4, 0.0, 0.0, 0.0, span_s=10.0)], PERIOD_S),
        ([span(110.0, 0.0, 1e-9, 1.0)], MOMENT_S),
    ],
)
def test_seconds(points: list[HistoryPoint], seconds: float) -> None:
    assert history(*points).seconds("x") == pytest.approx(seconds)


@given(st.lists(st.booleans(), min_size=2, max_size=200), st.integers(0, 40))
def test_thinning_changes_no_time(flags: list[bool], whole: int) -> None:
    samples = [(100.0 + PERIOD_S * number, {"x": float(flag)}) for number, flag in enumerate(flags)]
    plain = history(*(HistoryPoint(moment, values) for moment, values in samples)).seconds("x")
    thin = thinned(samples, whole_s=whole * PERIOD_S).seconds("x")
    assert (thin > 0.0) == (plain > 0.0) == any(flags)
    # Each span gives the time between two samples to all of its samples alike.
    assert thin == pytest.approx(plain, abs=PERIOD_S * (2 + len(flags) / 50))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=200), st.integers(0, 40))
def test_thinning_loses_no_count_and_no_reset(steps: list[int], whole: int) -> None:
    counts = [sum(steps[: number + 1]) for number in range(len(steps))]
    samples = [
        (100.0 + PERIOD_S * number, {"x": float(count)}) for number, count in enumerate(counts)
    ]
    found = thinned(samples, whole_s=whole * PERIOD_S)
    if len(found.points) > 1:
        assert found.growth("x") == counts[-1] - counts[0]
        again = [(moment + PERIOD_S * len(samples), {"x": -1.0}) for moment, _ in samples]
        with pytest.raises(ValueError, match="fell"):
            thinned([*samples, *again], whole_s=whole * PERIOD_S).growth("x")


def test_the_checks_in_which_a_flag_was_up() -> None:
    found = history(
        *raw(0.0, 1.0, 0.0, 1.0, 0.0), span(120.0, 0.0, 0.1, 1.0), span(130.0, 0.0, 0.0, 0.0)
    )
    assert found.moments("x") == ((101.0, 101.0), (103.0, 103.0), (110.0, 120.0))
    spans = [
        ("a", 90.0, 100.9),
        ("b", 101.0, 102.0),
        ("c", 103.5, 110.5),
        ("d", 119.9, 125.0),
        ("e", 121.0, 130.0),
    ]
    assert running_at(found.moments("x"), spans) == ("b", "c", "d")
    assert running_at(found.moments("x"), [("b", 101.0, 102.0), ("b", 103.0, 104.0)]) == ("b",)
    assert running_at((), spans) == ()


# --- under load ---


def loaded(
    *stretches: tuple[float, float, float], begin: float = 100.0
) -> list[tuple[float, dict[str, float]]]:
    """Samples of stretches (seconds, use, reading), one after the other."""
    found: list[tuple[float, dict[str, float]]] = []
    for seconds, use, reading in stretches:
        for _ in range(round(seconds / PERIOD_S)):
            found.append((begin + PERIOD_S * len(found), {"utilisation": use, "x": reading}))
    return found


def plain(samples: Iterable[tuple[float, dict[str, float]]]) -> GpuHistory:
    return history(*(HistoryPoint(moment, values) for moment, values in samples))


@each(
    "stretches, least",
    [
        ([(10, 1.0, 4)], 4.0),
        ([(10, 0.0, 1), (10, 1.0, 4), (10, 0.0, 1)], 4.0),  # down only when idle
        ([(10, 0.0, 1), (2, 1.0, 1), (10, 1.0, 4)], 4.0),  # still down in the first two seconds
        ([(10, 0.0, 1), (2.4, 1.0, 1), (10, 1.0, 4)], 1.0),
        (
            [(10, 1.0, 4), (1, 1.0, 1), (10, 0.0, 1)],
            4.0,
        ),  # use is told late: the last second may be idle already
        ([(10, 1.0, 4), (1.4, 1.0, 1), (10, 0.0, 1)], 1.0),
        ([(10, 1.0, 4), (0.2, 1.0, 3), (10, 1.0, 4)], 3.0),  # a moment in the middle counts
        ([(5, 1.0, 4), (0.2, 0.5, 1), (5, 1.0, 4)], 4.0),
        ([(10, 0.9, 4), (10, 0.89, 1)], 4.0),
    ],
)
def test_under_load(stretches: list[tuple[float, float, float]], least: float) -> None:
    assert plain(loaded(*stretches)).under_load("x") == least


@each(
    "samples",
    [
        loaded((10, 0.0, 4)),
        loaded((10, 0.89, 4)),
        loaded((2.8, 1.0, 4), (10, 0.0, 4)),
        loaded((2, 1.0, 4), (0.2, 0.0, 4), (2, 1.0, 4), (0.2, 0.0, 4)),
        [
            (moment, {"x": values["x"]}) for moment, values in loaded((10, 1.0, 4))
        ],  # use is not told
        [
            (100.0 + 6.0 * number, {"utilisation": 1.0, "x": 4.0}) for number in range(9)
        ],  # nothing between them
    ],
)
def test_a_gpu_that_never_was_in_full_use(samples: list[tuple[float, dict[str, float]]]) -> None:
    with pytest.raises(ValueError, match="gpu0 was never in full use while x was sampled"):
        plain(samples).under_load("x")


def test_full_use_while_the_reading_was_absent_says_nothing_of_it() -> None:
    samples = [
        (moment, {"utilisation": values["utilisation"]} if values["utilisation"] else values)
        for moment, values in loaded((2, 0.0, 4), (4, 1.0, 4), (2, 0.0, 4))
    ]
    with pytest.raises(ValueError, match="was never in full use while x was sampled"):
        plain(samples).under_load("x")


@each("low_at, least", [(101.0, 4.0), (102.0, 1.0), (109.0, 1.0), (110.0, 4.0)])
def test_the_edges_of_full_use(low_at: float, least: float) -> None:
    """From the end of its second second to a second before its last sample, both included."""
    samples = [
        (moment, {"utilisation": 1.0, "x": 1.0 if moment == low_at else 4.0})
        for moment in map(float, range(100, 111))
    ]
    assert plain(samples).under_load("x") == least


def test_samples_that_are_as_far_apart_as_may_be_still_follow_upon_each_other() -> None:
    samples = [(100.0 + GAP_S * number, {"utilisation": 1.0, "x": 4.0}) for number in range(4)]
    assert plain(samples).under_load("x") == 4.0


def test_under_load_of_spans() -> None:
    begins = [(10, 0.0, 1), (1, 1.0, 1), (60, 1.0, 4), (10, 0.0, 1)]
    assert thinned(loaded(*begins)).under_load("x") == 4.0
    # The first span of full use holds the seconds in which the link came up; the next ones count.
    assert (
        thinned(loaded((10.2, 0.0, 1), (1, 1.0, 1), (60, 1.0, 4), (10, 0.0, 1))).under_load("x")
        == 4.0
    )
    assert (
        thinned(loaded((10, 0.0, 1), (30, 1.0, 4), (0.2, 1.0, 3), (30, 1.0, 4))).under_load("x")
        == 3.0
    )
    with pytest.raises(ValueError, match="never in full use"):
        thinned(loaded((10, 0.0, 1), (9, 1.0, 4), (10, 0.0, 1))).under_load("x")


# --- gaps ---


@each(
    "points, longest",
    [
        ([], 20.0),
        (raw(*[1.0] * 21), 1.0),
        (raw(*[1.0] * 41, begin=90.0), 1.0),
        (raw(*[1.0] * 11), 10.0),  # it ended in the middle
        (raw(*[1.0] * 11, begin=110.0), 10.0),  # it began in the middle
        ([*raw(*[1.0] * 6), *raw(*[1.0] * 6, begin=112.0), *raw(1.0, begin=120.0)], 7.0),
        (raw(1.0, 1.0, begin=90.0, step=40.0), 20.0),  # samples before and after, none within
        ([span(110.0, 1.0, 1.0, 1.0), span(120.2, 1.0, 1.0, 1.0)], 0.2),
        (
            [span(105.0, 1.0, 1.0, 1.0), span(115.2, 1.0, 1.0, 1.0), span(125.4, 1.0, 1.0, 1.0)],
            0.2,
        ),  # over both ends
        ([span(110.0, 1.0, 1.0, 1.0)], 10.0),
        ([span(130.0, 1.0, 1.0, 1.0, span_s=10.0)], 20.0),
        ([span(130.0, 1.0, 1.0, 1.0, span_s=40.0)], 0.0),
    ],
)
def test_the_longest_gap_between_two_moments(points: list[HistoryPoint], longest: float) -> None:
    assert history(*points).longest_gap(100.0, 120.0) == pytest.approx(longest)


@given(st.integers(0, 100), st.integers(1, 400), st.integers(0, 400))
def test_samples_without_a_gap_have_none_however_thinned(
    begin: int, lasts: int, whole: int
) -> None:
    samples = [(100.0 + PERIOD_S * number, {"x": 1.0}) for number in range(begin + lasts + 1)]
    found = thinned(samples, whole_s=whole * PERIOD_S)
    gap = found.longest_gap(100.0 + PERIOD_S * begin, 100.0 + PERIOD_S * (begin + lasts))
    assert gap == pytest.approx(PERIOD_S if gap else 0.0)


@each(
    "points, period",
    [
        (raw(*[1.0] * 5, step=PERIOD_S), PERIOD_S),
        (
            [
                *raw(*[1.0] * 5, step=PERIOD_S),
                span(200.0, 1.0, 1.0, 1.0),
                span(210.0, 1.0, 1.0, 1.0),
            ],
            PERIOD_S,
        ),
        ([*raw(1.0, 1.0, 1.0, step=PERIOD_S), *raw(1.0, 1.0, begin=160.0)], 1.0),
    ],
)
def test_the_usual_period(points: list[HistoryPoint], period: float) -> None:
    assert history(*points).period() == pytest.approx(period)


@each("points", [[], raw(1.0), [*raw(1.0), span(200.0, 1.0, 1.0, 1.0)]])
def test_a_period_needs_two_samples(points: list[HistoryPoint]) -> None:
    with pytest.raises(ValueError, match="gpu0 has fewer than two samples"):
        history(*points).period()


@each(
    "points, step",
    [
        ([], None),
        (raw(1.0), None),
        (raw(*[1.0] * 21), 1.0),
        ([*raw(*[1.0] * 20), *raw(1.0, begin=124.0)], 1.0),  # one step of twenty is long
        ([*raw(*[1.0] * 19), *raw(1.0, begin=123.0)], 5.0),  # one of nineteen
        ([*raw(*[1.0] * 20), *raw(1.0, 1.0, begin=160.0)], 1.0),  # beyond the load
        ([*raw(1.0, 1.0), span(112.0, 1.0, 1.0, 1.0), span(122.0, 1.0, 1.0, 1.0)], 1.0),
    ],
)
def test_the_step_that_nearly_all_keep_to(points: list[HistoryPoint], step: float | None) -> None:
    assert history(*points).slow_step(100.0, 150.0) == step


# --- from the journal ---


def test_histories_by_gpu() -> None:
    bodies: list[Body] = [
        Sample({"x": 1.0}, component="gpu0"),
        Sample({"cpu_temperature_c": 40.0}),
        Sample({"x": 2.0}, component="gpu1"),
        Note("something else"),
        Sample({"x": 3.0}, 10.0, {"x": 2.0}, {"x": 4.0}, "gpu0"),
    ]
    entries = [Entry(number, 100.0 + number, "", body) for number, body in enumerate(bodies)]
    assert histories(entries) == {
        "gpu0": GpuHistory("gpu0", (HistoryPoint(100.0, {"x": 1.0}), span(104.0, 2.0, 3.0, 4.0))),
        "gpu1": GpuHistory("gpu1", (HistoryPoint(102.0, {"x": 2.0}),)),
    }
    assert histories([]) == {}


@pytest.mark.parametrize(
    ("low", "kept"), [({"power_w": 90.0}, True), ({}, True), ({"power_w": -1.0}, False)]
)
def test_a_span_is_kept_while_its_extremes_are_in_range(low: dict[str, float], kept: bool) -> None:
    body = Sample({"power_w": 100.0}, 10.0, low, {"power_w": 110.0}, "gpu0")
    found = histories([Entry(1, 100.0, "", body)])["gpu0"]
    assert ("power_w" in found.points[0].values) is kept
    assert ("power_w" in found.outside) is not kept


def test_a_step_that_ends_with_the_last_moment_counts() -> None:
    points = (*raw(1.0, 1.0, begin=100.0, step=10.0), *raw(1.0, begin=150.0))
    assert history(*points).slow_step(100.0, 150.0) == 40.0


def test_a_check_runs_in_its_first_and_in_its_last_moment() -> None:
    spans = [("c.one", 100.0, 110.0)]
    assert running_at([(90.0, 100.0)], spans) == running_at([(110.0, 120.0)], spans) == ("c.one",)
    assert running_at([(90.0, 99.9), (110.1, 120.0)], spans) == ()
