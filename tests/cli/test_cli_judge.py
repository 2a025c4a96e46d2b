"""`judge --from-logs`: what it says, and its exit code."""

from __future__ import annotations

from pathlib import Path

import journals
import msgspec
import pytest
from command import Call, printed
from gpu_machine import machine
from msgspec.structs import replace
from runs import machine_root, unpacked, write_segment

from acceptance.core import parts
from acceptance.core.evidence import AnyBody, Observed, ToolRan
from acceptance.core.parts import MEMORY
from acceptance.core.record import CheckEnded
from acceptance.journal import reader
from acceptance.tools import stressapptest

RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures/recordings"
RECORDED = RECORDINGS / "stressapptest/pass_1.0.6.txt"
TRAINED = RECORDINGS / "h100/runs/2xh100-host-train"
COPY, NAME = "stressapptest_copy", "memory.stressapptest"
VALUE = 53.61474994176  # GB/s, as the log has it
PLAN = replace(
    journals.plan(journals.check(NAME, journals.due(COPY, MEMORY, limit=None))),
    loads_s={"stressapptest": 4.0},
    memory_gib=200 / 1024,
)
ARGV = stressapptest.argv("/opt/stressapptest", megabytes=200, seconds=4, threads=2)
RAN = ToolRan(NAME, ARGV, 0, 100.0, "logs/a.log")
SEEN = Observed(msgspec.to_builtins(machine(), enc_hook=parts.encode, str_keys=True))


def run(folder: Path, value: float) -> Path:
    """A run whose journal has this value; its log is a recorded one."""
    first, *others = journals.bodies(PLAN, {(COPY, MEMORY): value})
    bodies: list[AnyBody] = [first, SEEN]
    for body in others:
        bodies += [RAN, body] if isinstance(body, CheckEnded) else [body]
    run_dir = folder / "run"
    (run_dir / "logs").mkdir(parents=True)
    (run_dir / "logs/a.log").write_text(RECORDED.read_text())
    (run_dir / "logs/a.log.err").touch()
    write_segment(run_dir / reader.SUPERVISOR, bodies, machine_root(folder / "root"), seals=True)
    return run_dir


@pytest.mark.parametrize(("value", "code"), [(VALUE, 0), (9999.0, 3)])
def test_a_difference_proves_nothing(tmp_path: Path, call: Call, value: float, code: int) -> None:
    out = printed(call("judge", str(run(tmp_path, value)), "--from-logs"), code)
    told = f"{NAME}: the journal has {COPY} = 9999 on memory, but its log has {VALUE:.9g}\n"
    assert out.startswith(f"{told if code else ''}1 of 1 values were compared with the logs")
    assert bool(code) == out.endswith("\nUNJUDGED: the logs do not prove this PASS (see above)\n")
    chinese = call("judge", str(tmp_path / "run"), "--from-logs", "--lang", "zh-CN")[1]
    assert "1 个值中有 1 个与程序的输出作了对照" in chinese


def test_the_logs_of_a_training_on_gpus_tell_what_its_journal_has(
    tmp_path: Path,
    call: Call,
) -> None:
    run_dir = unpacked(TRAINED, tmp_path / "run")
    out = printed(call("judge", str(run_dir), "--from-logs"))
    assert out.startswith("103 of 112 values were compared with the logs")
    log = run_dir / "logs/train.step-2.log"
    log.write_text(log.read_text().replace('"value": 318.83387663217275', '"value": 318.83412'))
    out = printed(call("judge", str(run_dir), "--from-logs"), 3)
    assert "train.step: the journal has step_gpt2 = 318.833877 on gpu1, but its log has" in out
