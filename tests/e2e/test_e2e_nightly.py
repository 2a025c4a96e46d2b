"""Nights as a timer starts them: started twice, killed, given up, and in other time zones."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import fakes
import pytest
from gpu_box import ACCEPT, Document, GpuBox
from rig import BUSY, Rig

from acceptance.core.parts import Gpu
from acceptance.core.record import ForeignProcess
from acceptance.history import nights as history_nights
from acceptance.history.night import Night

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]
ONLY = "gpu,cpu.stress_ng,kernel_log.during_run"


def nightly(rig: Rig, *more: str, only: str | None = ONLY) -> list[str]:
    """The arguments of `rigproof nightly` on a machine without GPUs."""
    return ["nightly", *rig.argv(*more, only=only)[1:]]


def nights(rig: Rig) -> list[tuple[str, str, bool]]:
    """What the history holds: folder, verdict, and whether the night was put off."""
    return [(str(one.folder), one.verdict, one.postponed) for one in recorded(rig)]


def recorded(rig: Rig) -> tuple[Night, ...]:
    (folder,) = rig.out.glob("history/*")
    return history_nights.read(rig.out, folder.name)[0]


@pytest.fixture
def tools(rig: Rig) -> Rig:
    for tool in ("stress-ng", "stressapptest"):
        fakes.write(rig.fakes, tool, "healthy")
    return rig


def test_two_that_start_together_are_one_night(tools: Rig) -> None:
    rig, before = tools, tools.runs()
    fakes.write(rig.fakes, "stress-ng", "waits")
    (rig.work / "second").write_text("/an/earlier/run\n")
    first = rig.start(nightly(rig, "--run-dir-file", "first"))
    folder = rig.started_run(before)
    second = rig.start(nightly(rig, "--run-dir-file", "second"), wait=False)
    out, err = second.communicate(timeout=60)
    (rig.fakes / "go").touch()
    assert (second.returncode, err) == (4, "")
    assert f"skipped: {BUSY}" in out
    assert first.wait(100) == 0
    assert nights(rig) == [(folder.name, "PASS", 0)]
    assert Path((rig.work / "first").read_text().rstrip("\n")) == folder
    assert not (rig.work / "second").exists()


def test_a_night_that_was_killed_is_closed_and_remembered_once(tools: Rig) -> None:
    rig, before = tools, tools.runs()
    fakes.write(rig.fakes, "stress-ng", "hangs")
    started = rig.start(nightly(rig))
    killed = rig.started_run(before)
    rig.reached(killed, "cpu.stress_ng")
    started.send_signal(signal.SIGKILL)
    started.wait(20)
    fakes.write(rig.fakes, "stress-ng", "healthy")
    done = [rig.run(nightly(rig)) for _ in range(2)]
    assert [one.code for one in done] == [0, 0]
    assert "was never finished" in done[0].out
    names = [str(one.path.name) for one in done if one.path]
    assert nights(rig) == [
        (killed.name, "UNJUDGED", 0),
        (names[0], "PASS", 0),
        (names[1], "PASS", 0),
    ]


def test_a_clock_set_back_and_another_time_zone_lose_and_double_nothing(tools: Rig) -> None:
    rig = tools
    for zone in ("Pacific/Kiritimati", "America/Anchorage", "Europe/Helsinki"):
        assert rig.run(nightly(rig), variables={"TZ": zone}).code == 0
    assert len({folder for folder, _, _ in nights(rig)}) == 3
    exported = rig.run(["history", "gpu_count", "--out", str(rig.out), "--export", "jsonl"])
    assert exported.code == 0
    rows = [json.loads(line) for line in exported.out.splitlines()]
    assert [row["run_id"] for row in rows] == [folder for folder, _, _ in nights(rig)]


def comes_later(document: Document) -> None:
    """Somebody begins to compute on the second GPU some seconds after the watch began."""
    train = {"pid": 4194300, "name": "train", "memory_bytes": 5 << 30}
    for gpu in document["gpus"]:
        gpu["utilisation_percent"] = 0  # nobody is there when the night begins
    document["timeline"] = [{"after_s": 6.0, "gpu": 1, "set": {"compute_processes": [train]}}]


def test_a_night_is_given_up_when_somebody_comes(rig: Rig, library: Path) -> None:
    box = GpuBox(rig, library, "2x4090", edit=comes_later)
    argv = [
        "nightly",
        *rig.argv(*ACCEPT, "--most-skipped", "2", only="gpu,burn", burn=60, machine=False)[1:],
    ]
    began = time.monotonic()
    first = rig.run(argv, program=box.program)
    assert first.code == 4
    assert time.monotonic() - began < 45.0, "the burn was not waited for"
    assert first.verdict["skipped"]["in_a_row"] == 1
    assert re.search(
        r"the night was given up after \d+ s .*gpu1: train \(process 4194300",
        first.texts("unjudged"),
    )
    assert {one["outcome"] for one in first.verdict["checks"]} == {"skip"}
    (seen, *_) = first.bodies(ForeignProcess)
    assert (seen.component, seen.pid) == (Gpu(1), 4194300)
    assert nights(rig) == [(first.path.name if first.path else None, "UNJUDGED", 1)]
    assert [one.figures for one in recorded(rig)] == [()]
