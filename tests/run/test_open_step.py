"""At which step of a power load the machine went down, as the next start says it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import journals
import pytest
from cases import each
from runs import machine_root, write_segment

from acceptance.core.evidence import AnyBody, PartBegan, ToolRan
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message
from acceptance.core.parts import CPU, GPUS, MEMORY, Component, Gpu
from acceptance.core.record import CheckEnded, CheckStarted, Note, RunClosed, SessionEnded
from acceptance.journal import clock, reader, segment
from acceptance.loads.power_step import Kind, Step
from acceptance.loads.protocol import Output
from acceptance.reports import languages
from acceptance.run import open_step, unfinished
from acceptance.session import load_events
from acceptance.session.programs import Programs
from acceptance.session.stage import Part
from acceptance.wording import words

CHINESE = languages.language("zh-CN")
CHECK = "power.pulses"
PLANNED = journals.check(CHECK)
WHOLE = journals.bodies(journals.plan(PLANNED))
BEGUN = next(n for n, body in enumerate(WHOLE) if isinstance(body, CheckStarted)) + 1
TWO = (Gpu(0), Gpu(1))
SHOWN = {GPUS: TWO}
POWER, CPUS, RAM = (
    PartBegan(CHECK, component, f"logs/{CHECK}-{number}.log")
    for number, component in enumerate((GPUS, CPU, MEMORY), start=1)
)
CAUSES = (
    "likely causes, the most likely first, and what to try: (1) the power supply cannot bear the "
    "change: lower the power limit of every GPU (sudo nvidia-smi -pl WATTS), and if the machine "
    "then stays up, the supply is too weak; (2) a power cable is loose or worn: press every plug "
    "in until it locks, and try other cables; (3) one cable feeds two plugs: give each plug a "
    "cable of its own from the supply; (4) a connector is not all the way in, or burnt: pull each "
    "off, look at its pins, and press it in again; (5) a riser gives the slot too little power: "
    "put the GPU into the slot itself; (6) the wall socket, its circuit or a power strip gives "
    "way: try another circuit with nothing else on it"
)


def square(hertz: float, count: int = 2) -> Step:
    return Step("square", TWO[:count], 9.0, hertz)


def journalled(say: Callable[[Output], None]) -> list[AnyBody]:
    """What is journalled of the lines that a load prints."""
    written: list[AnyBody] = []
    stream = io.StringIO()
    say(Output(stream))
    heard = load_events.listener([GPUS], written.append, lambda: 0.0, SHOWN)
    for line in stream.getvalue().splitlines():
        heard(0, line)
    return written


def begins(step: Step) -> list[AnyBody]:
    return journalled(lambda output: output.step_begins(step, 1.0))


def ends(step: Step) -> list[AnyBody]:
    return journalled(lambda output: output.step_ended(step, edges=36, right=70, wrong=0))


def ran(part: PartBegan) -> ToolRan:
    return ToolRan(CHECK, ("load",), 0, 9.0, part.log)


def next_start(folder: Path, during: list[AnyBody], boot: str = "boot-2") -> RunClosed:
    """How the next start closes a run whose journal stops after these records of the check."""
    before = machine_root(folder / "before", boot="boot-1")
    (folder / "now/proc").mkdir(parents=True)
    now = machine_root(folder / "now", boot=boot)
    path = folder / "reports/run-1/journal.jsonl"
    write_segment(path, [*WHOLE[:BEGUN], *during], before)
    (told,) = unfinished.close_all(folder / "reports", None, now)
    (closed,) = (
        entry.body
        for entry in reader.read(path.parent).entries
        if isinstance(entry.body, RunClosed)
    )
    assert words.text(closed.detail) in words.message(told)
    found = json.loads((path.parent / "verdict.json").read_text())
    assert found["verdict"] == "UNJUDGED"
    return closed


def detail(folder: Path, during: list[AnyBody], language: Language = ENGLISH) -> str:
    return words.text(next_start(folder, during).detail, language)


def test_the_machine_went_down(tmp_path: Path) -> None:
    steps = [*begins(square(1.0)), *ends(square(1.0)), *begins(square(2.0))]
    assert detail(tmp_path, [POWER, CPUS, *steps]) == (
        "the machine was restarted before it came to its end; power.pulses was running; "
        "the machine went down at 2 Hz on 2 GPUs (gpu0, gpu1) with the processors loaded; "
        "the last step that it survived: 1 Hz on 2 GPUs (gpu0, gpu1); " + CAUSES
    )


def test_it_is_said_in_chinese(tmp_path: Path) -> None:
    found = detail(tmp_path, [POWER, CPUS, RAM, *begins(square(2.0, 1))], CHINESE)
    down = "机器在以下阶段宕机：1 个 GPU（gpu0）上 2 Hz 的方波，同时处理器和内存也在满载"  # noqa: RUF001
    assert down in found
    assert found.index("电源承受不住") < found.index("供电线") < found.index("墙上插座")


@each(
    "kind, said",
    [
        ("cold", "went down at a cold step from idle to full load on 2 GPUs (gpu0, gpu1); likely"),
        ("ramp", "went down at a ramp from idle to full load on 2 GPUs (gpu0, gpu1); likely"),
        ("square", "went down at 5 Hz on 2 GPUs (gpu0, gpu1); likely"),
        ("anti_phase", "went down at 5 Hz in anti-phase on 2 GPUs (gpu0, gpu1); likely"),
    ],
)
def test_a_reboot_in_each_kind_of_step(tmp_path: Path, kind: Kind, said: str) -> None:
    step = Step(kind, TWO, 9.0, 5.0 if kind in ("square", "anti_phase") else None)
    assert said in detail(tmp_path, [POWER, *begins(step)])


@each(
    "during, said",
    [
        ([POWER, CPUS], "gpu1) with the processors loaded;"),
        ([POWER, RAM], "gpu1) with the RAM loaded;"),
        ([RAM, POWER, CPUS], "gpu1) with the processors and the RAM loaded;"),
        ([RAM, ran(RAM), POWER, CPUS], "gpu1) with the processors loaded;"),
        ([CPUS, ran(CPUS), POWER], "gpu1); likely causes"),
    ],
)
def test_what_else_was_under_load(tmp_path: Path, during: list[AnyBody], said: str) -> None:
    assert said in detail(tmp_path, [*during, *begins(square(2.0))])


def test_the_harness_alone_was_killed(tmp_path: Path) -> None:
    """Nothing went down, so no cable is to blame."""
    closed = next_start(tmp_path, [POWER, CPUS, *begins(square(2.0))], boot="boot-1")
    assert words.text(closed.detail) == (
        "the harness was killed, or could not write any more; power.pulses was running; "
        "the power step was 2 Hz on 2 GPUs (gpu0, gpu1) with the processors loaded"
    )


@each(
    "during",
    [
        [],
        [POWER],
        [POWER, *begins(square(2.0)), *ends(square(2.0))],
        [POWER, *begins(square(2.0)), ran(POWER)],
        [POWER, *begins(square(2.0)), CheckEnded(CHECK, "error", "it died", 9.0)],
        [POWER, *begins(square(2.0)), SessionEnded("load", False, "was killed", 9.0)],
        [POWER, Note("power_step_begins")],
        [POWER, Note(Message("power_step_begins"), progress=True)],  # of another version
        [POWER, Note(Message("power_step_ended"), progress=True)],
    ],
)
def test_no_step_was_open(tmp_path: Path, during: list[AnyBody]) -> None:
    assert open_step.read(journals.entries([*WHOLE[:BEGUN], *during])) is None
    found = detail(tmp_path, during)
    assert "went down" not in found
    assert "likely causes" not in found


def test_a_step_of_an_earlier_check_was_not_survived_in_this_one() -> None:
    earlier = [POWER, *begins(square(1.0)), *ends(square(1.0))]
    later = [CheckStarted("power.ladder"), *begins(square(2.0, 1))]
    found = open_step.read(journals.entries([*WHOLE[:BEGUN], *earlier, *later]))
    assert (found.survived, found.beside) == (None, frozenset[Component]())


def test_the_record_is_on_the_disk_before_the_step_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that says its step a second before, and a journal on a real disk."""
    synced: list[float] = []
    fsync = os.fsync

    def timed(file: int) -> None:
        fsync(file)
        synced.append(clock.boot_s())

    monkeypatch.setattr(segment.os, "fsync", timed)
    begins_s = clock.boot_s() + 60.0
    stream = io.StringIO()
    Output(stream).step_begins(square(2.0), begins_s)
    (tmp_path / "logs").mkdir()
    with segment.Writer(tmp_path / "journal-load.jsonl") as writer:
        programs = Programs(PLANNED, tmp_path / "logs", writer.write)
        script = f"print({stream.getvalue()!r}, end='', flush=True)"
        programs.run_stage(
            [Part(GPUS, (sys.executable, "-c", script))],
            on_line=load_events.listener([GPUS], writer.write, shown=SHOWN),
        )
        # the head, the part and the step; how the program ended may wait
        assert len(synced) == 3
        assert synced[-1] < begins_s
    found = segment.read_segment(tmp_path / "journal-load.jsonl").entries
    assert [type(entry.body) for entry in found] == [PartBegan, Note, ToolRan]
    assert found[1].boot_s <= synced[-1]
