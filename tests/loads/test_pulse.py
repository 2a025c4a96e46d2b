"""The power load's steps: which are due, their edges, and when the load stops by itself."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import examples
from worded import worded

from acceptance.core import parts
from acceptance.core.parts import CPU, Component, Gpu
from acceptance.loads.miscompare import UnusableLine
from acceptance.loads.power_step import COLD_S, WAVES, Kind, Step
from acceptance.loads.pulse import selection, watchdog
from acceptance.loads.pulse.contract import REST_S
from acceptance.loads.pulse.device import Alignment, Answer, Drift, aligned, apart_ns, drift
from acceptance.loads.pulse.edges import STAIRS, Edge, edges, within_kernel
from acceptance.loads.pulse.selection import PROFILES, Extent, due, extent, in_job, ladder
from acceptance.loads.pulse.watchdog import MARGIN_C, READINGS, SILENT_S, Sampled, reason_to_stop

ROOT = Path(__file__).resolve().parents[2]
TWO = (Gpu(0), Gpu(1))


def gpus(count: int) -> tuple[Component, ...]:
    return tuple(map(Gpu, range(count)))


@st.composite
def steps(draw: st.DrawFn) -> Step:
    kind: Kind = draw(st.sampled_from(("cold", "square", "anti_phase", "ramp")))
    hertz = draw(st.floats(0.1, 1000.0)) if kind in WAVES else None
    least_s = COLD_S + 0.1 if hertz is None else 1 / hertz
    seconds = draw(st.floats(least_s, 60.0 if hertz is None else min(600.0, 2000 / hertz)))
    return Step(kind, gpus(draw(st.integers(2, 8))), seconds, hertz)


# --- edges ---


@given(steps())
@settings(max_examples=examples(200))
def test_edges_of_any_step(step: Step) -> None:
    found = list(edges(step))
    assert [edge.at_s for edge in found] == sorted(edge.at_s for edge in found)
    assert all(0.0 <= edge.at_s <= step.seconds + 1e-8 for edge in found)
    assert {edge.gpu for edge in found} == set(step.gpus)
    for gpu in step.gpus:
        own = [edge for edge in found if edge.gpu == gpu]
        assert own[-1].level == 0.0
        assert all(edge.level == 1.0 or step.kind == "ramp" for edge in own[:-1:2])
        if step.kind != "ramp":  # they alternate
            assert [edge.level for edge in own] == [1.0, 0.0] * (len(own) // 2)
        times = [edge.at_s for edge in own]
        assert len(set(times)) == len(times)


def works(step: Step, gpu: Component) -> tuple[list[float], list[float]]:
    """When a GPU begins to work, and when it ends."""
    own = [edge for edge in edges(step) if edge.gpu == gpu]
    return [edge.at_s for edge in own if edge.level], [edge.at_s for edge in own if not edge.level]


@given(steps().filter(lambda step: step.kind in WAVES))
@settings(max_examples=examples(200))
def test_half_of_the_time_to_one_half_wave(step: Step) -> None:
    assert step.hertz is not None
    half_s = 0.5 / step.hertz
    for gpu in step.gpus:
        begins, ends = works(step, gpu)
        busy_s = math.fsum(ends) - math.fsum(begins)
        assert abs(busy_s - step.seconds / 2) <= half_s * 1.01
        assert all(
            math.isclose(end - begin, half_s, rel_tol=1e-6, abs_tol=1e-9)
            for begin, end in zip(begins, ends, strict=True)
        )


@given(steps().filter(lambda step: step.kind in WAVES))
@settings(max_examples=examples(200))
def test_phases(step: Step) -> None:
    """In phase all have every edge at one moment; in anti-phase one half works while one rests."""
    first, second = (works(step, gpu) for gpu in step.gpus[:2])
    for gpu, own in zip(step.gpus[2:], itertools.cycle((first, second)), strict=False):
        assert works(step, gpu) == own
    if step.kind == "square":
        assert first == second
    else:
        assert second[0] == first[1][: len(second[0])]  # it begins where the other ends
        busy = [*zip(*first, strict=True), *zip(*second, strict=True)]
        assert all(one[1] == then[0] for one, then in itertools.pairwise(sorted(busy)))


def test_edges_by_hand() -> None:
    assert list(edges(Step("square", TWO, 1.0, 1.0))) == [
        *(Edge(0.0, Gpu(0), 1.0), Edge(0.0, Gpu(1), 1.0)),
        *(Edge(0.5, Gpu(0), 0.0), Edge(0.5, Gpu(1), 0.0)),
    ]
    assert list(edges(Step("anti_phase", TWO, 1.5, 1.0))) == [
        *(Edge(0.0, Gpu(0), 1.0), Edge(0.5, Gpu(0), 0.0), Edge(0.5, Gpu(1), 1.0)),
        *(Edge(1.0, Gpu(0), 1.0), Edge(1.0, Gpu(1), 0.0), Edge(1.5, Gpu(0), 0.0)),
    ]
    assert list(edges(Step("cold", (Gpu(3),), 8.0))) == [
        *(Edge(5.0, Gpu(3), 1.0), Edge(8.0, Gpu(3), 0.0)),
    ]
    ramp = list(edges(Step("ramp", (Gpu(0),), 5.0)))
    assert len(ramp) == STAIRS + 1
    assert [edge.level for edge in ramp[:-1]] == [stair / 10 for stair in range(1, 11)]
    assert [edge.at_s for edge in ramp] == [stair / 2 for stair in range(11)]


def test_a_wave_of_fifteen_seconds_has_its_edges() -> None:
    for hertz, commanded in [(0.5, 16), (1.0, 30), (20.0, 600), (1000.0, 30_000)]:
        assert sum(1 for _ in edges(Step("square", (Gpu(0),), 15.0, hertz))) == commanded


def test_who_makes_the_edges() -> None:
    told = {hertz: within_kernel(Step("square", TWO, 15.0, hertz)) for hertz in selection.WHOLE_HZ}
    assert [hertz for hertz, kernel in told.items() if kernel] == [200.0, 500.0, 1000.0]
    assert not within_kernel(Step("cold", TWO, 15.0))


# --- clocks ---


@each(
    "answers, ahead_ns, error_ns",
    [
        ([(100, 1150, 200)], 1000, 51),
        ([(100, 1150, 200), (300, 1305, 310), (400, 1000, 500)], 1000, 6),  # the quickest one
        ([(1000, 105, 1010)], -900, 6),
    ],
)
def test_a_clock_is_aligned_by_its_quickest_answer(
    answers: list[Answer], ahead_ns: int, error_ns: int
) -> None:
    assert aligned(answers) == Alignment(ahead_ns, error_ns)


@each(
    "drifts, apart",
    [
        ([], None),
        ([Drift(-5, 5)], None),
        ([Drift(-5, 5), Drift(-5, 5)], 10),
        ([Drift(95, 105), Drift(-5, 5)], 110),
        ([Drift(-5, 5), Drift(-105, -95), Drift(20, 30)], 135),
        ([Drift(-50, 50), Drift(-1, 1)], 51),  # no clock is apart from itself
        ([Drift(-100, 50), Drift(-1, 1)], 101),
        ([Drift(-1, 1), Drift(-50, 50), Drift(-2, 2)], 52),
    ],
)
def test_how_far_clocks_may_be_apart(drifts: list[Drift], apart: int | None) -> None:
    assert apart_ns(drifts) == apart


nanoseconds = st.integers(0, 10**6)


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), nanoseconds, nanoseconds), min_size=2))
@settings(max_examples=examples(200))
def test_clocks_are_never_farther_apart_than_is_said(
    moved: list[tuple[int, int, int]],
) -> None:
    """Each answer comes some time after the question and some time before it is there."""
    found = [
        drift(
            aligned([(0, asked, asked + answered)]),
            aligned([(10**9, 10**9 + asked + own, 10**9 + asked + answered)]),
        )
        for own, asked, answered in moved
    ]
    told = apart_ns(found)
    assert told is not None
    true = [own for own, _, _ in moved]
    assert max(true) - min(true) <= told


# --- a step ---


@each(
    "kind, of, seconds, hertz, code",
    [
        ("cold", (), 8.0, None, "load_step_gpus"),
        ("square", (), 8.0, 1.0, "load_step_gpus"),
        ("square", (Gpu(0), Gpu(0)), 8.0, 1.0, "load_step_gpus"),
        ("square", (Gpu(0), CPU), 8.0, 1.0, "load_step_gpus"),
        ("square", gpus(65), 8.0, 1.0, "load_step_gpus"),
        ("anti_phase", (Gpu(0),), 8.0, 1.0, "load_step_gpus"),
        ("square", TWO, 8.0, None, "load_step_hertz"),
        ("ramp", TWO, 8.0, 1.0, "load_step_hertz"),
        ("square", TWO, 8.0, math.nan, "load_step_hertz"),
        ("square", TWO, 8.0, 0.0, "load_step_hertz"),
        ("square", TWO, 8.0, 1000.5, "load_step_hertz"),
        ("square", TWO, 1.99, 0.5, "load_step_seconds"),
        ("cold", TWO, COLD_S, None, "load_step_seconds"),
        ("ramp", TWO, 0.9, None, "load_step_seconds"),
        ("ramp", TWO, math.nan, None, "load_step_seconds"),
        ("ramp", TWO, 600.5, None, "load_step_seconds"),
    ],
)
def test_what_is_no_step(
    kind: Kind, of: tuple[Component, ...], seconds: float, hertz: float | None, code: str
) -> None:
    with pytest.raises(UnusableLine) as caught:
        Step(kind, of, seconds, hertz)
    assert caught.value.message.code == code


@given(steps())
@settings(max_examples=examples(50))
def test_a_step_is_read_as_it_was_written(step: Step) -> None:
    written = msgspec.json.encode(step, enc_hook=parts.encode)
    assert msgspec.json.decode(written, type=Step, dec_hook=parts.decode) == step


# --- what is due ---


@each("count", range(1, 17))
def test_accept_takes_forty_seconds_at_most(count: int) -> None:
    short = due("short", count)
    assert selection.total_s(short) <= 40.0
    found = [(step.kind, step.hertz) for steps in short.values() for step in steps]
    assert found == [("cold", None), ("square", 1.0), ("square", 2.0), ("square", 5.0)]
    assert all(step.gpus is None for steps in short.values() for step in steps)


@each("count", range(1, 17))
def test_the_whole(count: int) -> None:
    whole = due("whole", count)
    assert list(whole) == ["power.ladder", "power.step", "power.pulses"]
    every = [step for steps in whole.values() for step in steps]
    assert all(step.seconds == 15.0 for step in every)
    assert selection.total_s(whole) == len(every) * (15.0 + REST_S)
    assert [step.kind for step in whole["power.step"]] == ["ramp", "cold"]
    control, waves = [], list(whole["power.pulses"])
    while waves[0].kind == "anti_phase":
        control.append(waves.pop(0))
    assert len(control) == (count > 1)
    assert [step.hertz for step in waves] == [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert all(step.kind == "square" for step in waves)
    for steps in (whole["power.step"], whole["power.pulses"]):
        assert all(step.gpus is None for step in steps)


@each(
    "count, rungs",
    [
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 3]),
        (4, [1, 2, 4]),
        (7, [1, 2, 4, 7]),
        (8, [1, 2, 4, 8]),
        (10, [1, 2, 4, 8, 10]),
    ],
)
def test_the_ladder(count: int, rungs: list[int]) -> None:
    assert [step.gpus for step in ladder(count)] == rungs
    assert {(step.kind, step.hertz) for step in ladder(count)} == {("square", 2.0)}


@each(
    "profile, asked, job, told",
    [
        ("smoke", False, None, None),
        ("smoke", True, None, None),
        ("nightly", False, None, None),
        ("nightly", True, "SLURM_JOB_ID", None),
        ("accept", False, None, "short"),
        ("accept", True, None, "whole"),
        ("accept", False, "SLURM_JOB_ID", None),
        ("accept", True, "SLURM_JOB_ID", "whole"),
        ("soak", False, None, "whole"),
        ("soak", False, "SLURM_JOB_ID", None),
        ("soak", True, "PBS_JOBID", "whole"),
    ],
)
def test_what_a_profile_runs(
    profile: str, asked: bool, job: str | None, told: Extent | None
) -> None:
    assert extent(profile, asked=asked, job=job) == told


def test_every_profile_is_decided_about() -> None:
    assert PROFILES.keys() == tomllib.loads((ROOT / "fixtures/profiles.toml").read_text()).keys()
    with pytest.raises(KeyError):
        extent("weekly", asked=True, job=None)


def test_a_job_is_known_by_its_variable() -> None:
    assert in_job({}) is None
    assert in_job({"PATH": "/bin", "SLURM_JOB_ID": ""}) is None
    for name in selection.JOBS:
        assert in_job({"PATH": "/bin", name: "7"}) == name


# --- safety ---

SOUND = {**dict.fromkeys(READINGS, 0.0), watchdog.MARGIN: 20.0}


def sampled(*readings: Mapping[str, float], age_s: float = 0.1) -> list[Sampled]:
    return [Sampled(one, age_s) for one in readings]


def told(own: list[Sampled]) -> str | None:
    """Why a load on two GPUs stops of which the second one is so."""
    found = reason_to_stop({Gpu(0): sampled(SOUND, SOUND), Gpu(1): own})
    assert found == reason_to_stop({Gpu(1): own, Gpu(0): sampled(SOUND, SOUND)})
    if found is not None:
        assert "gpu1" in worded(found)
    return None if found is None else found.code


@each(
    "own, code",
    [
        (sampled(SOUND, SOUND), None),
        (sampled(SOUND), None),
        ([], "power_gpu_lost"),
        (sampled(SOUND, age_s=SILENT_S), None),
        (sampled(SOUND, age_s=SILENT_S + 0.1), "power_gpu_lost"),
        (sampled(SOUND, age_s=math.nan), "power_gpu_lost"),
        (sampled(SOUND, age_s=-99.0), "power_gpu_lost"),
        (sampled({**SOUND, "reason_hw_power_brake": 1.0}), "power_brake_pulled"),
        (sampled({**SOUND, "reason_hw_slowdown": 1.0}), None),
        (sampled({**SOUND, "reason_hw_slowdown": 1.0}, SOUND), None),
        (sampled(*[{**SOUND, "reason_hw_slowdown": 1.0}] * 2), "power_slowed_down"),
        (sampled({**SOUND, "reason_hw_thermal": 1.0}), None),
        (sampled(*[{**SOUND, "reason_hw_thermal": 1.0}] * 2), "power_held_by_heat"),
        (sampled(*[{**SOUND, "reason_sw_thermal": 1.0}] * 2), "power_held_by_heat"),
        (sampled(*[{**SOUND, "reason_sw_power_cap": 1.0}] * 2), None),
        (sampled({**SOUND, watchdog.MARGIN: MARGIN_C}), None),
        (sampled({**SOUND, watchdog.MARGIN: MARGIN_C - 0.1}), "power_too_hot"),
        (sampled({**SOUND, watchdog.MARGIN: -4.0}), "power_too_hot"),
        (sampled({**SOUND, watchdog.MARGIN: math.nan}), "power_gpu_unread"),
        *(
            (sampled(SOUND, {key: SOUND[key] for key in SOUND if key != name}), "power_gpu_unread")
            for name in READINGS
        ),
    ],
)
def test_when_it_stops(own: list[Sampled], code: str | None) -> None:
    assert told(own) == code


def test_a_margin_that_the_burn_passes_does_not_end_the_power_load() -> None:
    family = tomllib.loads((ROOT / "fixtures/measurements/watch.toml").read_text())
    (own,) = [one for one in family["measurement"] if "gpu_temperature_margin" in one["names"]]
    assert own["limit"]["low"] == MARGIN_C
