"""The checks of the power load: what they record of its output, its watch and what is beside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import suite_box
from cases import each
from gpu_machine import device, machine
from load_texts import printed
from power_printed import watch_printed
from sound_loads import BEGIN_S

from acceptance.core.clock_reasons import HW_SLOWDOWN, POWER_BRAKE
from acceptance.core.message import Message, after_fault, not_permitted
from acceptance.core.parts import CPU, GPUS, MACHINE, MEMORY, Gpu
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Measured, Skipped
from acceptance.loads import asks
from acceptance.loads.pulse import selection
from acceptance.loads.pulse.contract import PREPARED_S, REST_S, Ask, Step
from acceptance.loads.pulse.watchdog import TAKEN_S
from acceptance.machine.gpu import gpus
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.run import replay_session
from acceptance.run.replay_session import RecordedPrograms, ReplayFixtures
from acceptance.session.check import Check
from acceptance.session.context import SessionContext
from acceptance.session.loads import Part
from acceptance.session.programs import Programs
from acceptance.session.tools import Outputs
from acceptance.suites import power
from acceptance.suites.fixtures import power as power_fixtures
from acceptance.suites.fixtures.power import PowerRun, of_power, read_watch, watch_s
from acceptance.tools import stress_ng
from acceptance.tools.reading import ToolOutput
from acceptance.watch.power_watch import Line, encode
from acceptance.wording import words

SEEN = machine(device(0), device(1))
DUE = gpus(SEEN)
ASK = Ask(gpus=2, steps=(Step("square", 2.0, 1.0), Step("cold", 8.0)), watchdog="/run/watchdog")
BESIDE = ("nice", "-n", "10", *stress_ng.argv("/usr/bin/stress-ng", seconds=9, workers=2))
UUIDS = [str(gpu.uuid) for gpu in DUE]
ABOUT = {"uuids": UUIDS}
WATCH = ("python", "--gpu", "gpu0=0000:01:00.0", "--gpu", "gpu1=0000:02:00.0")
SOUND = ToolOutput("stress-ng", "pass", "fine")
WRONG = ToolOutput("stress-ng", "fail", "wrong")
FINE = Outputs({CPU: SOUND})


def done(text: str, code: int = 0) -> ProgramResult:
    return ProgramResult(asks.argv("python", ASK), code, text, "", 50.0)


def ran(
    load: str | None = None, watch: str | None = None, code: int = 0, host: Outputs = FINE
) -> PowerRun:
    text = printed(ASK, ABOUT) if load is None else load
    seen = watch_printed(WATCH) if watch is None else watch
    return of_power(done(text, code), done(seen), DUE, host)


def stopped(stop: Message | None, host: Outputs = FINE) -> PowerRun:
    """The load ended before its second step."""
    return ran(printed(ASK, ABOUT, made=1), watch_printed(WATCH, stop=stop), host=host)


@functools.cache
def planned() -> PlannedCheck:
    loads = {f"power_{name}": 30.0 for name in ("step", "pulses", "ladder")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", {**suite_box.LOADS_S, **loads})
        plan = suite_box.planned(SEEN, [one.name for one in DUE], ("power.step",), "d")
    (check,) = plan.checks
    return check


def judge(found: PowerRun) -> list[Any]:
    """Everything that `power.step` writes of a run, and what it raises at the end."""
    written: list[Any] = []

    def table(component: Any, name: str, columns: Any, rows: Any) -> None:
        written.append((str(component), name, len(rows)))

    check = Check(planned(), (), written.append)
    for step in (lambda: power.test_step(lambda _name: found, DUE, table, check), check.conclude):
        try:
            step()
        except Exception as error:  # noqa: BLE001 - what a session would see
            written.append(error)
    return written


def values(written: Sequence[Any]) -> dict[tuple[str, str], float | None]:
    return {
        (one.measurement.removeprefix("power_step_"), str(one.component)): one.value
        for one in written
        if isinstance(one, Measured)
    }


def ends(written: Sequence[Any]) -> list[str]:
    return [type(one).__name__ for one in written if isinstance(one, Exception)]


def test_a_sound_machine_has_every_value_and_its_tables() -> None:
    written = judge(ran())
    assert values(written) == {
        ("made", "gpus"): 1.0,
        ("miscompares", "gpu0"): 0.0,
        ("miscompares", "gpu1"): 0.0,
        ("slowdowns", "gpu0"): 0.0,
        ("slowdowns", "gpu1"): 0.0,
        ("excursion", "gpu0"): pytest.approx(900 / 700),  # what came before the steps is not theirs
        ("excursion", "gpu1"): pytest.approx(900 / 700),
        ("excursion_ratio", "gpu0"): 1.0,
        ("excursion_ratio", "gpu1"): 1.0,
        ("host_failures", "machine"): 0.0,
    }
    assert [one for one in written if isinstance(one, tuple)] == [
        ("gpus", "power_steps", 2),
        ("gpu0", "power_train", 2),
        ("gpu1", "power_train", 2),
    ]
    assert ends(written) == []


@each(
    "reasons, count",
    [
        ([(BEGIN_S + 1.0, HW_SLOWDOWN)], 0),  # one alone
        ([(BEGIN_S + 1.0, HW_SLOWDOWN), (BEGIN_S + 1.1, HW_SLOWDOWN)], 1),
        ([(BEGIN_S + 1.0, HW_SLOWDOWN), (BEGIN_S + 2.0, HW_SLOWDOWN)], 0),
        ([(BEGIN_S + 1.0, POWER_BRAKE)], 1),
        ([(BEGIN_S - 9.0, POWER_BRAKE)], 0),  # before the steps
        ([(BEGIN_S + 99.0, POWER_BRAKE)], 0),  # after them
    ],
)
def test_slowdowns_count_within_the_steps(reasons: list[tuple[float, str]], count: int) -> None:
    found = ran(watch=watch_printed(WATCH, reasons=reasons))
    assert {gpu: one.slowdowns for gpu, one in found.during().items()} == {Gpu(0): 0, Gpu(1): count}


WRONG_RESULT = (
    '{"miscompare": {"component": "gpu1", "dtype": "bf16", "check": "repeat", "after": '
    '"square 1 Hz", "seconds": 101.0, "elements": 7, "nan": 0, "first": []}}\n'
)
BEGIN = "".join(printed(ASK, ABOUT).splitlines(keepends=True)[:2])
BRAKE = Message("power_brake_pulled", {"gpu": "gpu0"})
GONE = {"gpu": "gpu0"}
MADE, HOST = ("made", "gpus"), ("host_failures", "machine")
DIED = Outputs(failed={CPU: ValueError("it died")})
UNPROVED = ["ErrorInLines", "Incomplete"]


def seen_by_watch(**how: Any) -> str:
    return watch_printed(WATCH, **how)


@each(
    "found, told, raised",
    [
        (
            ran(printed(ASK, ABOUT, bad=3)),
            *({("miscompares", "gpu1"): 3.0, ("miscompares", "gpu0"): 0.0}, ["Violation"]),
        ),
        # Wrong results of a load that died still count.
        (
            ran(BEGIN + WRONG_RESULT, code=1),
            *({("miscompares", "gpu1"): 1.0}, ["ErrorInLines", "Violation"]),
        ),
        (
            ran(watch=seen_by_watch(reasons=[(BEGIN_S + 1.0, POWER_BRAKE)])),
            *({("slowdowns", "gpu1"): 1.0}, ["Violation"]),
        ),
        # A load that was stopped: by a fault, because a GPU cannot be read, or by no watch.
        (stopped(BRAKE), {MADE: 0.5}, ["Violation"]),
        (stopped(Message("power_gpu_lost", GONE)), {MADE: 0.5}, ["Violation"]),
        (stopped(Message("power_gpu_unread", GONE)), {MADE: None}, UNPROVED),
        (stopped(None), {MADE: None}, UNPROVED),
        # Whatever became of the parts beside it.
        (stopped(BRAKE, DIED), {MADE: 0.5}, ["ErrorInLines", "Violation"]),
        # A lost GPU takes the load with it.
        (
            ran(BEGIN, seen_by_watch(stop=Message("power_gpu_lost", {"gpu": "gpu1"})), 1),
            *({MADE: 0.0}, ["ErrorInLines", "Violation"]),
        ),
        (
            ran(BEGIN, seen_by_watch(stop=Message("power_gpu_unread", {"gpu": "gpu1"})), 1),
            *({MADE: None}, UNPROVED),
        ),
        (ran(BEGIN, code=1), {MADE: None}, UNPROVED),
        # Power that is not told is no excursion, and a watch that died proved nothing.
        (
            ran(watch=encode(Line(ready=True)) + "\nTraceback: a library hangs"),
            *({("excursion", "gpu0"): "skip"}, ["Incomplete"]),
        ),
        (
            of_power(done(printed(ASK, ABOUT)), done(watch_printed(WATCH), -9), DUE, FINE),
            *({MADE: 1.0}, ["ErrorInLines"]),
        ),
        # Processors and RAM beside the steps.
        (ran(host=Outputs({CPU: WRONG})), {HOST: 1.0}, ["Violation"]),
        (ran(host=DIED), {HOST: None}, UNPROVED),
        (ran(host=Outputs(skipped={CPU: not_permitted("x")})), {HOST: "skip"}, []),
    ],
)
def test_what_is_no_pass(
    found: PowerRun, told: dict[tuple[str, str], float | str | None], raised: list[str]
) -> None:
    written = judge(found)
    skips = (one for one in written if isinstance(one, Skipped))
    names = {(str(one.measurement)[len("power_step_") :], str(one.component)) for one in skips}
    known = {**values(written), **dict.fromkeys(names, "skip")}
    assert {name: known.get(name) for name in told} == told
    assert ends(written) == raised


def test_the_watch_lasts_longer_than_a_load_that_starts_slowly() -> None:
    for extent in ("short", "whole"):
        for steps in selection.due(extent, 2).values():  # type: ignore[arg-type]
            load_s = sum(REST_S + step.seconds for step in steps)
            assert watch_s(steps) > PREPARED_S + TAKEN_S + load_s


@pytest.mark.parametrize(("made", "proves"), [(0, True), (1, False)])
def test_logs_of_what_was_ended_with_the_load_are_no_trouble(
    monkeypatch: pytest.MonkeyPatch, made: int, proves: bool
) -> None:
    monkeypatch.setattr(suite_box, "LOADS_S", {**suite_box.LOADS_S, "power_step": 30.0})
    plan = suite_box.planned(SEEN, [one.name for one in DUE], ("power.step",), "d")
    context = SessionContext(mode="run", root="/", plan=plan, inventory=SEEN)
    ended: list[ProgramResult] = []

    class Parts(RecordedPrograms):
        def find(self, program: str, _package: str | None = None) -> str:
            if program == "stressapptest":
                super().find(program)
            return program

        def run_stage(self, stage: Sequence[Part], **_how: object) -> tuple[ProgramResult, ...]:
            load, watch, beside = (part.argv for part in stage)
            ask: Any = asks.of_argv(load)
            ended.append(replace(done(printed(ask, ABOUT, made=made)), argv=load))
            ended.append(replace(done(watch_printed(WATCH, stop=BRAKE)), argv=watch))
            ended.append(ProgramResult(beside, -15, "", "", 3.0, timed_out=True))
            return tuple(ended)

    class Fixtures(ReplayFixtures):
        @pytest.fixture
        def programs(self, planned: PlannedCheck) -> RecordedPrograms:
            self.running = Parts(planned, ())
            return self.running

    replay_session.read(context, {"power.step": ()}, Fixtures)
    assert len(ended) == 3
    again = replay_session.read(context, {"power.step": ended})["power.step"]
    assert (again.trouble is None) == proves
    assert "power_step_host_failures" not in {one.measurement for one in again.measured}


CUT = after_fault(Message("ended_with_power_load"))
MISSING = not_permitted("install stress-ng")


@each(
    "host, count",
    [
        (Outputs(skipped={CPU: CUT, MEMORY: CUT}), None),
        (Outputs({MEMORY: SOUND}, skipped={CPU: CUT}), None),
        (Outputs({CPU: SOUND}, skipped={MEMORY: CUT}), None),
        (Outputs(skipped={CPU: MISSING, MEMORY: CUT}), None),
        (Outputs({CPU: WRONG}, skipped={MEMORY: CUT}), 1.0),
    ],
)
def test_what_was_ended_with_the_load_proves_no_pass_and_no_failure_but_one_it_found(
    host: Outputs, count: float | None
) -> None:
    written = judge(stopped(BRAKE, host))
    assert values(written).get(("host_failures", str(MACHINE))) == count
    skips = [words.text(one.reason) for one in written if isinstance(one, Skipped)]
    assert [one.startswith("the power load stopped early") for one in skips] == (
        [True] if count is None else []
    )
    assert ends(written) == ["Violation"]


class Stage:
    """Stands for the programs of the check: what came of the load, and of what is beside it."""

    find = Programs.find

    def __init__(self, folder: Path, load: ProgramResult, *beside: ProgramResult) -> None:
        self.folder = folder
        self._results = (load, done(watch_printed(WATCH)), *beside)

    def run_stage(
        self, parts: Sequence[Part], *, on_line: object, whole: Callable[[ProgramResult], bool]
    ) -> tuple[ProgramResult, ...]:
        assert whole is power_fixtures.ran_whole
        load, watch, *_ = parts
        ask = asks.of_argv(load.argv)
        assert isinstance(ask, Ask)
        assert ask.watchdog in watch.argv
        assert load.component == GPUS
        assert load.env["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS)
        return self._results


@pytest.mark.parametrize(
    ("made", "code", "late", "host_late", "cut"),
    [
        (1, 0, False, True, True),
        (2, 1, False, True, True),  # it died
        (1, 0, False, False, False),  # the host's program died by itself
        (2, 0, False, True, False),  # it ran out of its own time
        (1, 0, True, True, False),  # the time of the check was over
    ],
)
def test_only_what_was_ended_with_the_load_is_excused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: int,
    code: int,
    late: bool,
    host_late: bool,
    cut: bool,
) -> None:
    monkeypatch.setattr(command, "find", lambda program, _package=None: f"/usr/bin/{program}")
    load = replace(done(printed(ASK, ABOUT, made=made), code), timed_out=late)
    beside = ProgramResult(BESIDE, -15, "stress-ng: info: [1] x", "", 3.0, host_late)
    run: Callable[[str], PowerRun] = power_fixtures.power_run.__wrapped__(  # type: ignore[attr-defined]
        Stage(tmp_path, load, beside, beside),
        DUE,
        {"power_step": 9.0},
        1.0,
        SEEN,
        lambda _shown: None,
    )
    found = run("power.step")
    assert set(found.host.skipped) == ({CPU, MEMORY} if cut else set())
    assert set(found.host.failed) == (set() if cut else {CPU, MEMORY})


def test_a_watch_that_was_cut_short_is_read_so_far() -> None:
    found = read_watch(watch_printed(WATCH)[:-10])
    assert found.began
    assert list(found.gpus) == [Gpu(0)]
