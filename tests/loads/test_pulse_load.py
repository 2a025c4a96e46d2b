"""The power load as the program it is, on GPUs of clockwork."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pulse_program
import pytest
from cases import each
from load_program import ROOT, forked, whole

from acceptance.core.parts import GPUS, Gpu
from acceptance.loads import asks, power_step
from acceptance.loads.__main__ import parsed
from acceptance.loads.miscompare import WrongRepeat
from acceptance.loads.protocol import StepBegins, StepEnded, decode
from acceptance.loads.pulse.contract import Ask
from acceptance.loads.pulse.selection import due
from acceptance.loads.pulse.watchdog import STOPPED, UNWATCHED, Holder, Watchdog

HERE = Path(__file__).parent
EVERY_KIND = ("square,1,5", "square,1,500", "cold,0.6,,1", "ramp,1", "anti_phase,1,2")


def program(steps: str, *more: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: one for name, one in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return forked(
        *("-m", "pulse_program", "gpus=2", f"steps={steps}", *more),
        environ={**environment, "FAKE_PULSE": fault, "FAKE_REST": "0.5"},
    )


def ask(steps: str) -> Ask:
    found = parsed(["pulse", "gpus=2", f"steps={steps}"])
    assert isinstance(found, Ask)
    return found


def test_every_kind_of_step_is_made_with_all_of_its_edges_and_no_wrong_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(power_step, "COLD_S", pulse_program.COLD_S)
    done = program("/".join(EVERY_KIND))
    output = whole(done)
    assert output.miscompares == ()
    assert output.parameters["uuids"] == ["GPU-0", "GPU-1"]
    assert output.parameters["watched"] is False
    assert {(one.name, one.component): one.value for one in output.readings} == {
        ("power_miscompares", Gpu(0)): 0,
        ("power_miscompares", Gpu(1)): 0,
        ("power_steps", GPUS): 1,
    }
    (table,) = output.tables
    assert [row[4] for row in table.rows] == [20, 2000, 2, 22, 8]
    # a busy machine may miss one
    assert all(0.9 * float(row[4]) <= float(row[5]) <= float(row[4]) for row in table.rows)
    assert all(row[8] == 0 and float(row[7]) > 0 for row in table.rows)
    # by their own clocks: the last one's moved 5 us, and each alignment may be wrong by 0.5 us
    assert [(row[0], row[9]) for row in table.rows if row[9] != "-"] == [("square", 7.0)]
    lines = [decode(line) for line in done.stdout.splitlines()]
    begun = [one.step for one in lines if isinstance(one, StepBegins)]
    ended = [one.step for one in lines if isinstance(one, StepEnded)]
    assert begun == ended == list(ask("/".join(EVERY_KIND)).power_steps())


def test_a_step_is_told_a_second_before_it_begins() -> None:
    started = subprocess.Popen(
        [sys.executable, str(HERE / "pulse_program.py"), "gpus=1", "steps=square,1,2"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{HERE}", "FAKE_PULSE": ""},
    )
    assert started.stdout is not None
    with started:
        for line in started.stdout:
            if isinstance(said := decode(line), StepBegins):
                assert said.begins_s - time.clock_gettime(time.CLOCK_BOOTTIME) > 0.5
    assert started.returncode == 0


@each("more, fault", [((), "wrong"), (("inject=element",), "")])
def test_a_wrong_product_is_counted_on_its_gpu(more: tuple[str, ...], fault: str) -> None:
    output = whole(program("square,1,5", *more, fault=fault))
    assert output.injected == ("element" if more else None)
    (wrong,) = output.miscompares
    assert isinstance(wrong, WrongRepeat)
    assert (wrong.component, wrong.after) == (Gpu(1), "square 5 Hz")
    assert more or wrong.elements == 7
    found = {one.component: one.value for one in output.readings}
    assert (found[Gpu(0)], found[Gpu(1)]) == (0, 1)


@each(
    "fault, steps, said",
    [
        ("die", "square,1,5", r"^pulse: the worker on gpu1 was ended by signal 9"),
        ("slow", "square,1,5", r"edges of the step square,1,5,2 "),
        # the other GPU made all of its own
        ("busy", "square,2,5", r"edges of the step square,2,5,2 gpu1 made 1"),
        # a wave with work for a moment is not made
        ("brief", "square,2,1", r"of the 4 edges of the step square,2,1,2 gpu\d made 2$"),
    ],
)
def test_a_load_that_fails_says_so_in_one_sentence(fault: str, steps: str, said: str) -> None:
    done = program(steps, fault=fault)
    assert done.returncode == 1
    assert re.search(said, done.stderr.splitlines()[-1]), done.stderr
    assert '"end"' not in done.stdout


def test_an_ask_has_every_step_that_can_be_due() -> None:
    for extent in ("short", "whole"):
        for own in due(extent, 8).values():  # type: ignore[arg-type]  # both of them
            ask = Ask(gpus=8, steps=own, watchdog="/run/power: a watchdog")
            assert asks.of_argv(asks.argv("python", ask)) == ask
            typed = "/".join(ask.parameters()["steps"])
            again = parsed(["pulse", "gpus=8", f"steps={typed}", f"leash={ask.watchdog}"])
            assert isinstance(again, Ask)
            assert again.power_steps() == ask.power_steps()


# --- the watchdog ---


def test_a_watchdog_is_fresh_pulled_old_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "watchdog"
    watchdog, holder = Watchdog(place), Holder(place)
    assert Watchdog(None).reason() is None
    assert watchdog.reason() == UNWATCHED
    watchdog.wait(0.1)
    holder.take()
    watchdog.wait(9.0)
    assert holder.keep()
    now_s = time.time()
    for step_s in (0.0, 7200.0, -7200.0):  # it holds while the wall clock is set
        monkeypatch.setattr(time, "time", lambda step_s=step_s: now_s + step_s)
        assert watchdog.reason() is None
    monkeypatch.undo()
    os.utime(place, (time.monotonic() - 4.0,) * 2)
    assert watchdog.reason() == UNWATCHED
    os.utime(place, (time.monotonic() + 4.0,) * 2)
    assert watchdog.reason() == UNWATCHED
    holder.pull()
    assert watchdog.reason() == STOPPED
    watchdog.drop()
    Watchdog(None).drop()
    assert not holder.keep()
    assert watchdog.reason() == UNWATCHED


@pytest.mark.parametrize("pulled", [True, False])
def test_a_load_ends_with_the_step_at_which_its_watchdog_is_pulled(
    tmp_path: Path, pulled: bool
) -> None:
    place = tmp_path / "watchdog"
    holder = Holder(place)
    holder.take()  # and never kept
    if pulled:
        holder.pull()
    began = time.monotonic()
    output = whole(program("square,19,5/cold,9", f"leash={place}"))
    assert time.monotonic() - began < 19.0
    assert {one.name: one.value for one in output.readings if one.component == GPUS} == {
        "power_steps": 0.0
    }
    assert any((STOPPED if pulled else UNWATCHED) in note for note in output.notes)
    assert not place.exists()
