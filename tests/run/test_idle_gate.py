"""A night: who is using the machine, and what is written down where somebody is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import journals
import junitparser
import pytest
from gpu_machine import SOMEBODY, TRAITS, answer, device, machine
from msgspec.structs import replace as changed
from worded import worded

from acceptance.core.evidence import Observed, Sealed
from acceptance.core.parts import Gpu
from acceptance.core.record import Postponed, RunEnded, RunStarted
from acceptance.journal import reader
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuProcess, Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe.nvml import failed_answer
from acceptance.run import idle_gate, supervisor
from acceptance.run.idle_gate import describe_gpu_users
from acceptance.run.planning import PreparedRun
from acceptance.run.profile import IdlePolicy
from acceptance.station.options import Options

NIGHTS = IdlePolicy(
    niceness=10, idle_use=0.1, looks=3, apart_s=2.0, most_skipped=7, together_s=1200.0
)
IDLE = device(0, traits=replace(TRAITS, utilisation=0.0))
AT_WORK = device(0, traits=replace(TRAITS, utilisation=0.9))
NAMED = device(0, traits=replace(TRAITS, compute_processes=(SOMEBODY,)))


def prepared(inventory: Inventory) -> PreparedRun:
    plan = changed(
        journals.plan(journals.check(), journals.check("a.after", session="host-after")),
        gpus=(Gpu(0),),
    )
    return PreparedRun(Options(profile="nightly"), None, inventory, plan, "a summary")


class Looks:
    """Gives one answer after the other, and keeps how long was waited before each."""

    def __init__(self, *devices: NvmlDevice) -> None:
        self.waited: list[float] = []
        self._answers: Iterator[NvmlAnswer] = iter([answer([one]) for one in devices])

    def probe(self) -> NvmlAnswer:
        return next(self._answers)

    def users(self, first: Inventory) -> tuple[str, ...]:
        return idle_gate.find_users(prepared(first), NIGHTS, self.probe, self.waited.append)


def test_an_idle_machine_is_looked_at_as_often_as_the_profile_says() -> None:
    looks = Looks(IDLE, IDLE)
    assert looks.users(machine(IDLE)) == ()
    assert looks.waited == [2.0, 2.0]


@pytest.mark.parametrize(
    ("first", "later", "waited"), [(NAMED, (), 0), (IDLE, (NAMED,), 1), (IDLE, (IDLE, NAMED), 2)]
)
def test_somebody_is_found_at_whichever_look(
    first: NvmlDevice, later: tuple[NvmlDevice, ...], waited: int
) -> None:
    looks = Looks(*later)
    assert worded(looks.users(machine(first))) == (
        "gpu0: python3 (process 4711, 1.5 GiB) computes on it",
    )
    assert len(looks.waited) == waited


def test_a_machine_without_gpus_is_not_looked_at_again() -> None:
    looks = Looks()
    assert looks.users(machine()) == ()
    assert looks.waited == []


def test_a_skipped_night_is_a_run_of_its_own(tmp_path: Path) -> None:
    reasons = ("gpu0: <b>train</b>\x1b[31m (process 12) computes on it",)
    run_dir = supervisor.new_run_dir(tmp_path)
    night = idle_gate.postpone(prepared(machine(AT_WORK)), run_dir, Postponed(reasons, 1, 7))
    verdict = night.verdict
    assert (verdict.verdict, verdict.exit_code) == ("UNJUDGED", 3)
    kinds = [type(entry.body) for entry in reader.read(run_dir).entries]
    assert kinds == [RunStarted, Observed, Postponed, RunEnded, Sealed]
    told = json.loads((run_dir / "verdict.json").read_bytes())
    (row,) = told["unjudged"]
    assert row["text"].startswith(
        "the machine is in use, so nothing was run (1 in a row, 7 are a failure): gpu0: "
    )
    suite = next(iter(junitparser.JUnitXml.fromstring((run_dir / "junit.xml").read_bytes())))
    assert (suite.tests, suite.skipped, suite.errors, suite.failures) == (2, 2, 0, 0)
    for case in suite:
        assert "the machine is in use" in case.result[0].message
    page = (run_dir / "report.html").read_text()
    assert "the machine is in use" in page
    assert "<b>train" not in page


def test_the_last_night_of_too_many_fails(tmp_path: Path) -> None:
    run_dir = supervisor.new_run_dir(tmp_path)
    skipped = Postponed(("gpu0: somebody",), 7, 7)
    verdict = idle_gate.postpone(prepared(machine(AT_WORK)), run_dir, skipped).verdict
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    suite = next(iter(junitparser.JUnitXml.fromstring((run_dir / "junit.xml").read_bytes())))
    assert (suite.tests, suite.skipped, suite.errors, suite.failures) == (3, 2, 0, 1)


DESKTOP = GpuProcess(900, "Xwayland", None)
NOBODY_TELLS = (
    "gpu0: its driver tells neither which processes compute on it nor how much it is in use"
)


def told(*devices: NvmlDevice) -> tuple[str, ...]:
    seen = machine(*devices)
    return describe_gpu_users(seen.nvml, gpus(seen), 0.1)


def one(**traits: Any) -> tuple[str, ...]:
    return told(device(0, traits=replace(TRAITS, **traits)))


@pytest.mark.parametrize("use", [None, 0.0, 0.1])
def test_a_gpu_on_which_nobody_computes_is_idle(use: float | None) -> None:
    assert one(utilisation=use) == ()


def test_a_process_is_named() -> None:
    assert worded(one(compute_processes=(SOMEBODY,), utilisation=0.99)) == (
        "gpu0: python3 (process 4711, 1.5 GiB) computes on it",
    )


def test_a_desktop_is_no_user_as_long_as_it_draws_little() -> None:
    drawing: dict[str, Any] = {
        "display_active": True,
        "compute_processes": (DESKTOP,),
        "graphics_processes": (DESKTOP,),
    }
    assert one(**drawing, utilisation=0.05) == ()
    assert worded(one(**drawing, utilisation=0.5)) == (
        "gpu0: 50% in use by a process that the driver does not name",
    )


@pytest.mark.parametrize("use", [0.11, 1.0])
@pytest.mark.parametrize("processes", [None, ()])
def test_use_by_nobody_that_is_named(processes: tuple[GpuProcess, ...] | None, use: float) -> None:
    (sentence,) = one(compute_processes=processes, utilisation=use)
    assert worded(sentence) == f"gpu0: {use:.0%} in use by a process that the driver does not name"


def test_a_gpu_of_which_nothing_is_told_is_not_known_to_be_idle() -> None:
    assert worded(one(compute_processes=None, utilisation=None)) == (NOBODY_TELLS,)
    assert one(compute_processes=None, utilisation=0.0) == ()


def test_only_gpus_that_are_tested_and_answer_have_users() -> None:
    busy = device(1, traits=replace(TRAITS, compute_processes=(SOMEBODY,)))
    seen = machine(device(0), busy)
    assert describe_gpu_users(seen.nvml, gpus(seen)[:1], 0.1) == ()
    assert worded(describe_gpu_users(seen.nvml, gpus(seen), 0.1)) == (
        "gpu1: python3 (process 4711, 1.5 GiB) computes on it",
    )
    assert describe_gpu_users(failed_answer("no library"), gpus(seen), 0.1) == ()
    assert describe_gpu_users(answer([device(0, traits=None)]), gpus(seen), 0.1) == ()
