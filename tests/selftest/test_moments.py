"""Whether a fault was put in at its moment: by the run's journal, however late we noticed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from runs import machine_root

from acceptance.core.message import Message
from acceptance.core.record import Body, CheckEnded, CheckStarted, Note
from acceptance.journal import reader, segment
from selftest import stage
from selftest.fault import Reboot

LOAD, OTHER = "cpu.stress_ng", "burn.gpu_burn[tensor]"


def step(code: str) -> Note:
    return Note(Message("power_step_begins", {"step": Message(code, {"gpus": "gpu0"})}))


def journal(folder: Path, bodies: Sequence[Body]) -> list[float]:
    """A run with these records; when each was written."""
    folder.mkdir()
    with segment.Writer(folder / reader.SUPERVISOR, machine_root(folder / "root")) as writer:
        for body in bodies:
            writer.write(body)
    return [entry.boot_s for entry in reader.read(folder).entries]


def test_a_fault_that_came_after_its_check_had_ended_proves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    began_s, ended_s, _ = journal(
        run, [CheckStarted(LOAD), CheckEnded(LOAD, "pass", "", 1.0), CheckStarted(OTHER)]
    )
    stage.require_running(run, (LOAD,), began_s)
    stage.require_running(run, (LOAD,), ended_s)
    stage.require_running(run, (OTHER,), ended_s + 1)
    with pytest.raises(stage.EndedBefore, match=r"cpu.stress_ng ended 1.5 s before"):
        stage.require_running(run, (OTHER, LOAD), ended_s + 1.5)


@pytest.mark.parametrize(
    ("bodies", "reboot", "began"),
    [
        ([], Reboot(step="cold"), None),
        ([CheckStarted(LOAD)], Reboot(step="cold"), None),
        ([CheckStarted(LOAD), step("step_cold")], Reboot(step="step_cold"), 1),
        ([CheckStarted(LOAD), step("step_cold"), step("other")], Reboot(step="step_cold"), None),
        ([CheckStarted(LOAD)], Reboot(during=(LOAD, OTHER)), None),
        ([CheckStarted(LOAD), CheckStarted(OTHER)], Reboot(during=(OTHER,)), 1),
        ([CheckStarted(LOAD), CheckEnded(LOAD, "pass", "", 1.0)], Reboot(during=(LOAD,)), None),
    ],
)
def test_the_machine_goes_down_at_one_moment(
    tmp_path: Path, bodies: list[Body], reboot: Reboot, began: int | None
) -> None:
    written = journal(tmp_path / "run", bodies)
    assert stage.began_s(tmp_path / "run", reboot) == (None if began is None else written[began])


def test_before_there_is_a_journal_nothing_is_under_way(tmp_path: Path) -> None:
    assert stage.began_s(tmp_path, Reboot(step="cold")) is None
