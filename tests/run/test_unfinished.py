from __future__ import annotations

import io
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import journals
import pytest
from cases import each
from raising import raising
from runs import machine_root, until, write_segment
from worded import worded

from acceptance.core.evidence import AnyBody, PartBegan, Sample, Scratch, ToolRan
from acceptance.core.message import Message, Text
from acceptance.core.parts import CPU, GPUS, MEMORY, Component, Gpu, Part
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Note,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
)
from acceptance.journal import clock, reader, segment
from acceptance.loads.power_step import Kind, Step
from acceptance.loads.protocol import Output
from acceptance.process import orphans
from acceptance.run import unfinished
from acceptance.session import load_events, loads
from acceptance.session.programs import Programs
from acceptance.wording import words

WHOLE = journals.bodies(journals.plan())
MEASURED = next(number for number, body in enumerate(WHOLE) if isinstance(body, CheckEnded))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The machine after another start of it, unless a test says otherwise."""
    (tmp_path / "now/proc").mkdir(parents=True)
    return machine_root(tmp_path / "now", boot="boot-2")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The machine as it was when the earlier run began."""
    return machine_root(tmp_path / "before", boot="boot-1")


def begin(
    out: Path, root: Path, records: Sequence[AnyBody], name: str = "run-1", *, seals: bool = False
) -> Path:
    return write_segment(out / name / "journal.jsonl", records, root, seals=seals).parent


def verdict(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / "verdict.json").read_text())
    return found


def closed(run_dir: Path) -> RunClosed:
    """The one record of its closing."""
    entries = reader.read(run_dir).entries
    (body,) = (entry.body for entry in entries if isinstance(entry.body, RunClosed))
    return body


def close_all(out: Path, root: Path | None = None) -> list[str]:
    """What the next start says of the runs before it."""
    found: list[str] = worded(unfinished.close_all(out, None, *([root] if root else [])))
    return found


def test_killed_before_its_plan(out: Path, before: Path, root: Path) -> None:
    run_dir = begin(out, before, [])
    (said,) = close_all(out, root)
    assert "(run-1) was ended before its plan was written: nothing was measured in it" in said
    assert verdict(run_dir)["verdict"] == "UNJUDGED"
    assert close_all(out, root) == []


@pytest.mark.parametrize("content", [b"", b'{"rigproof_jour'])
def test_killed_before_it_had_written_a_line(out: Path, root: Path, content: bytes) -> None:
    (out / "run-1").mkdir(parents=True)
    (out / "run-1/journal.jsonl").write_bytes(content)
    assert len(close_all(out, root)) == 1
    assert verdict(out / "run-1")["verdict"] == "UNJUDGED"


def test_killed_in_the_middle_of_a_check(out: Path, before: Path) -> None:
    run_dir = begin(out, before, WHOLE[:MEASURED])
    write_segment(
        run_dir / "telemetry.jsonl",
        [Sample({"cpu_temperature_c": 50.0 + i}) for i in range(3)],
        before,
    )
    (said,) = close_all(out, before)
    why = said.partition("an earlier run (run-1) was never finished: ")[2]
    assert why.startswith("the harness was killed")
    last = {"cpu_temperature_c": 52.0}
    assert worded(closed(run_dir)) == RunClosed(("link.copy",), False, last, why)
    found = verdict(run_dir)
    assert found["verdict"] == "UNJUDGED"
    assert "link.copy was running" in json.dumps(found["unjudged"])
    assert all((run_dir / name).is_file() for name in ("junit.xml", "report.html"))
    # Nothing that was journalled is lost.
    assert [entry.body for entry in reader.read(run_dir).entries][:MEASURED] == WHOLE[:MEASURED]
    assert close_all(out, before) == []


def test_what_the_gpus_showed_last_is_told(out: Path, before: Path) -> None:
    run_dir = begin(out, before, WHOLE[:MEASURED])
    last = {"temperature_c": 91.4, "power_w": 699.6, "sm_clock_mhz": 1980.0}
    samples: list[Body] = [
        Sample({"temperature_c": 60.0, "power_w": 500.0}, component=Gpu(0)),
        Sample({"reason_hw_slowdown": 1.0}, component=Gpu(1)),
        Note("not a sample"),
        Sample({**last, "fan": 0.5}, component=Gpu(0)),
    ]
    write_segment(run_dir / "telemetry.jsonl", [Sample({"cpu_temperature_c": 52.0})], before)
    tear(write_segment(run_dir / "telemetry-gpu.jsonl", samples, before))
    (said,) = close_all(out, before)
    assert said.endswith("link.copy was running; gpu0 was last seen at 91 degC, 700 W, 1980 MHz")
    of_gpu = {f"gpu0 {name}": value for name, value in last.items()}
    assert closed(run_dir).last_telemetry == {"cpu_temperature_c": 52.0, **of_gpu}


def tear(segment: Path) -> None:
    """Half a line more, as a power cut leaves it."""
    with segment.open("ab") as file:
        file.write(b'{"seq":4,"bo')


@pytest.mark.parametrize("attempt", ["none", "began", "cut off"])
def test_a_machine_that_restarted(out: Path, before: Path, root: Path, attempt: str) -> None:
    """Also where an earlier start was killed while it closed the run: its head is of the boot that
    it was closed in, which must not hide the restart.
    """
    run_dir = begin(out, before, WHOLE[:MEASURED])
    tear(run_dir / "journal.jsonl")
    if attempt != "none":
        records = [RunClosed(None, False, {}, "x")] * (attempt == "cut off")
        file = write_segment(run_dir / "journal-closed-1.jsonl", records, root)
        file.write_bytes(file.read_bytes()[: -5 if records else None])
    (said,) = close_all(out, root)
    assert said.endswith("was restarted before it came to its end; link.copy was running")
    found = closed(run_dir)
    assert (found.rebooted, found.running, found.last_telemetry) == (True, ("link.copy",), {})
    assert verdict(run_dir)["verdict"] == "UNJUDGED"
    assert "ends in half a line" in json.dumps(verdict(run_dir)["notes"])


DIED = SessionEnded("load", False, "was ended by signal 9", 3.0)
STOPPED = RunEnded(False, "stopped by SIGINT")
WRITTEN = "had ended without its reports: they were written now"


@each(
    "records, seals, why, running, earned",
    [
        (WHOLE[: MEASURED + 1], False, "no check was running", [()], "UNJUDGED"),
        (WHOLE[:-1], False, "no check was running", [()], "UNJUDGED"),
        ([*WHOLE[:MEASURED], DIED], False, "no check was running", [()], "UNJUDGED"),
        (WHOLE, True, WRITTEN, [], "PASS"),
        ([*WHOLE[:-1], STOPPED], True, WRITTEN, [], "UNJUDGED"),
    ],
    told=[
        "killed after its check",
        "killed before its end",
        "a check does not run on when its session has died",
        "one that had ended gets the verdict it had earned",
        "one that had been stopped stays unjudged",
    ],
)
def test_killed_when_no_check_was_running(
    tmp_path: Path,
    before: Path,
    root: Path,
    records: list[Body],
    seals: bool,
    why: str,
    running: list[tuple[str, ...]],
    earned: str,
) -> None:
    run_dir = begin(tmp_path, before, records, seals=seals)
    assert unfinished.is_closed(reader.read(run_dir)) is seals
    (said,) = close_all(tmp_path, root)
    assert said.endswith(why)
    assert [closed(run_dir).running for _ in running] == running
    assert verdict(run_dir)["verdict"] == earned
    assert unfinished.is_closed(reader.read(run_dir))


@each("length", range(1, len(WHOLE)))
def test_an_unfinished_run_never_passes(
    tmp_path: Path, before: Path, root: Path, length: int
) -> None:
    run_dir = begin(tmp_path, before, WHOLE[:length])
    assert len(close_all(tmp_path, root)) == 1
    assert verdict(run_dir)["verdict"] == "UNJUDGED"


# --- closing that was interrupted ---


def test_killed_after_the_closing_record(out: Path, before: Path, root: Path) -> None:
    run_dir = begin(out, before, WHOLE[:MEASURED])
    record = RunClosed("link.copy", False, {}, "as it was told")
    write_segment(run_dir / "journal-closed-1.jsonl", [record], root)
    assert close_all(out, root) == ["an earlier run (run-1) was never finished: as it was told"]
    assert (closed(run_dir), verdict(run_dir)["verdict"]) == (record, "UNJUDGED")


def test_what_it_left_on_the_tested_disk_is_removed(
    tmp_path: Path, out: Path, before: Path, root: Path
) -> None:
    data = tmp_path / "data"
    (data / ".rigproof/run-run-1").mkdir(parents=True)
    (data / ".rigproof").chmod(0o700)
    (data / ".rigproof/run-run-1/file").write_bytes(b"x")
    owner = f"rigproof\n{clock.machine_id(root)}\n{os.geteuid()}\n"
    (data / ".rigproof/owner").write_text(owner)
    (data / "users").write_text("precious")
    part = Part("disk", "sda")
    sizes = {"free_bytes": 9, "write_bytes": 8, "kept_bytes": 1, "sealed_bytes": 0}
    place = Scratch(str(data), part, "/", "ext4", "/dev/sda1", ("sda",), (), keep=True, **sizes)
    run_dir = begin(out, before, [WHOLE[0], place, *WHOLE[1:MEASURED]])
    (said,) = close_all(out, root)
    assert f"{data}/.rigproof: removed what an earlier run left there (run-run-1, " in said
    assert [entry.name for entry in data.iterdir()] == ["users"]
    assert verdict(run_dir)["verdict"] == "UNJUDGED"


# --- what is not closed ---


def test_the_run_of_another_machine_is_left_alone(tmp_path: Path, out: Path, root: Path) -> None:
    other = machine_root(tmp_path / "other", machine="machine-2")
    begin(out, other, [RunStarted("run-1", WHOLE[0].plan, {}, "machine-2"), *WHOLE[1:MEASURED]])
    begin(out, other, [], "just beginning")
    assert close_all(out, root) == []
    assert sorted(path.name for path in out.glob("*/*")) == ["journal.jsonl", "journal.jsonl"]


def test_a_folder_that_cannot_be_written(
    out: Path, before: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = begin(out, before, WHOLE[:MEASURED])
    monkeypatch.setattr(os, "access", lambda path, mode: path != run_dir)
    (said,) = close_all(out, root)
    assert f"({run_dir}) was never finished, and its folder cannot be written" in said
    assert [path.name for path in run_dir.iterdir()] == ["journal.jsonl"]


def test_a_journal_that_is_damaged_is_told_and_left(out: Path, before: Path, root: Path) -> None:
    damaged, doubled = begin(out, before, WHOLE), begin(out, before, [WHOLE[0]] * 2, "run-2")
    path = damaged / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], b"rubbish", *lines[4:]]))
    begin(out, before, WHOLE[:3], "run-3")
    first, second, third = close_all(out, root)
    assert f"(run-1) cannot be closed: {path}, line 4: is no record" in first
    assert "cannot be closed: the journal holds 2 beginnings" in second
    assert "run-3" in third
    assert [one.name for one in damaged.iterdir()] == ["journal.jsonl"]
    assert not (doubled / "verdict.json").exists()


@pytest.mark.parametrize("name", ["journal.jsonl", "journal-x.jsonl", "telemetry-gpu.jsonl"])
def test_a_run_with_a_named_pipe_holds_up_no_later_one(
    out: Path, before: Path, root: Path, name: str
) -> None:
    run_dir = begin(out, before, WHOLE)
    (run_dir / name).unlink(missing_ok=True)
    os.mkfifo(run_dir / name)
    begin(out, before, WHOLE[:3], "run-2")
    said = close_all(out, root)
    assert "run-2" in said[-1]
    reason = f"{run_dir / name}: cannot be read (it is a named pipe, not a file)"
    if name == "journal.jsonl":
        assert f"cannot be closed: {reason}" in said[0]
    else:
        assert any(reason in one["text"] for one in verdict(run_dir)["unjudged"])


def test_a_journal_with_two_beginnings_is_told_and_left(
    out: Path, before: Path, root: Path
) -> None:
    run_dir = begin(out, before, [WHOLE[0], WHOLE[0], WHOLE[-1]])
    assert "cannot be closed: the journal holds 2 beginnings" in worded(
        unfinished.close_all(out, None, root)[0]
    )
    assert not (run_dir / "verdict.json").exists()


def test_a_full_disk_is_told(
    out: Path, before: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = begin(out, before, WHOLE[:MEASURED])
    monkeypatch.setattr(os, "write", lambda _file, data: len(data) // 2)
    (said,) = close_all(out, root)
    assert re.search("cannot be closed.*No space left on device", said)
    monkeypatch.undo()
    assert not (run_dir / "verdict.json").exists()
    assert "never finished" in close_all(out, root)[0]  # the next start finds room


# --- which runs there are ---


def test_runs_are_found_in_the_output_folder_and_by_the_lock(
    tmp_path: Path, out: Path, before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, done = (begin(out, before, WHOLE, f"run-{number}") for number in (1, 2, 3))
    (done / "verdict.json").write_text("{}")
    (out / "latest").symlink_to("run-2")
    (out / "notes").mkdir()
    elsewhere = begin(tmp_path / "elsewhere", before, WHOLE)
    assert list(unfinished.candidates(out, elsewhere)) == [first, second, elsewhere]
    for last in (second, out / "latest", done, tmp_path / "nowhere", Path("nul\0")):
        assert list(unfinished.candidates(out, last)) == [first, second]
    assert list(unfinished.candidates(tmp_path / "nowhere", None)) == []
    monkeypatch.chdir(tmp_path)  # the same folder by another name
    by_name = [Path("reports/run-1"), Path("reports/run-2")]
    assert list(unfinished.candidates(Path("reports"), first)) == by_name
    # the lock cannot send us to another user's folder
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert list(unfinished.candidates(tmp_path / "nowhere", elsewhere)) == []
    monkeypatch.setattr(Path, "is_file", raising(PermissionError(13, "Permission denied")))
    assert list(unfinished.candidates(out, first)) == []


# --- with real processes ---

WRITER = """
import itertools, sys
from pathlib import Path
from acceptance.core.record import Note
from acceptance.journal.segment import Writer
import journals
with Writer(Path(sys.argv[1]) / "journal.jsonl") as writer:
    writer.write(journals.bodies(journals.plan())[0])
    for number in itertools.count():
        writer.write(Note(f"{number} " + "x" * (number % 5000)))
        print(number, flush=True)
"""


def test_a_harness_that_is_killed_while_it_writes(out: Path) -> None:
    run_dir, run_id = out / "run-1", secrets.token_hex(8)
    run_dir.mkdir(parents=True)
    start = f"plan())[0].__class__({run_id!r}, journals.plan(), {{}}, {clock.machine_id()!r})"
    argv = [sys.executable, "-c", WRITER.replace("plan())[0]", start), str(run_dir)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        subprocess.Popen(["sleep", "600"], env={**os.environ, "RIGPROOF_RUN": run_id}) as stray,
        subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment) as process,
    ):
        for _ in range(50):
            process.stdout.readline()
        process.kill()
        written = 50 + len(process.stdout.read().splitlines())
        (said,) = close_all(out)
        until(lambda: stray.poll() is not None, "what had escaped is gone")
    assert "the harness was killed, or could not write any more; no check was running" in said
    notes = [entry.body for entry in reader.read(run_dir).entries if isinstance(entry.body, Note)]
    assert len(notes) >= written
    assert (orphans.find(run_id), verdict(run_dir)["verdict"]) == ({}, "UNJUDGED")


CHECK = "power.pulses"
PLANNED = journals.check(CHECK)
POWERED = journals.bodies(journals.plan(PLANNED))
BEGUN = next(n for n, body in enumerate(POWERED) if isinstance(body, CheckStarted)) + 1
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


def next_start(folder: Path, during: list[AnyBody], boot: str = "boot-2") -> Text:
    """How the next start closes a run whose journal stops after these records of the check."""
    before = machine_root(folder / "before", boot="boot-1")
    (folder / "now/proc").mkdir(parents=True)
    now = machine_root(folder / "now", boot=boot)
    run_dir = begin(folder / "reports", before, [*POWERED[:BEGUN], *during])
    (said,) = close_all(folder / "reports", now)
    assert words.text(closed(run_dir).detail) in said
    assert verdict(run_dir)["verdict"] == "UNJUDGED"
    return closed(run_dir).detail


def detail(folder: Path, during: list[AnyBody], boot: str = "boot-2") -> str:
    return words.text(next_start(folder, during, boot))


def test_the_machine_went_down(tmp_path: Path) -> None:
    steps = [*begins(square(1.0)), *ends(square(1.0)), *begins(square(2.0))]
    assert detail(tmp_path, [POWER, CPUS, *steps]) == (
        "the machine was restarted before it came to its end; power.pulses was running; "
        "the machine went down at 2 Hz on 2 GPUs (gpu0, gpu1) with the processors loaded; "
        "the last step that it survived: 1 Hz on 2 GPUs (gpu0, gpu1); " + CAUSES
    )


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
    assert detail(tmp_path, [POWER, CPUS, *begins(square(2.0))], boot="boot-1") == (
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
    assert unfinished.read(journals.entries([*POWERED[:BEGUN], *during])) is None
    found = detail(tmp_path, during)
    assert "went down" not in found
    assert "likely causes" not in found


def test_a_step_of_an_earlier_check_was_not_survived_in_this_one() -> None:
    earlier = [POWER, *begins(square(1.0)), *ends(square(1.0))]
    later = [CheckStarted("power.ladder"), *begins(square(2.0, 1))]
    found = unfinished.read(journals.entries([*POWERED[:BEGUN], *earlier, *later]))
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
            [loads.Part(GPUS, (sys.executable, "-c", script))],
            on_line=load_events.listener([GPUS], writer.write, shown=SHOWN),
        )
        # the head, the part and the step; how the program ended may wait
        assert len(synced) == 3
        assert synced[-1] < begins_s
    found = segment.read_segment(tmp_path / "journal-load.jsonl").entries
    assert [type(entry.body) for entry in found] == [PartBegan, Note, ToolRan]
    assert found[1].boot_s <= synced[-1]
