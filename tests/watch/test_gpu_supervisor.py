from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from known import known
from machine_tree import NO_DMI, Programs, Tree, completed
from raising import raising
from runs import machine_root, until, write_segment
from worded import worded

from acceptance.core.message import Message
from acceptance.core.parts import Function, Gpu
from acceptance.core.record import Event, Note
from acceptance.journal import reader
from acceptance.machine.inventory import NvmlAnswer, NvmlDevice
from acceptance.observe.inventory import observe
from acceptance.process import command
from acceptance.watch import gpu_sampler, gpu_supervisor
from acceptance.watch.gpu_supervisor import SamplerProcess
from acceptance.watch.targets import WatchTarget

GPU = (WatchTarget(Gpu(0), "GPU-0", "0000:01:00.0"),)
LOST = Event(
    "gpu-lost",
    "fatal",
    "text",
    "meaning",
    "action",
    "nvml",
    Function("0000:01:00.0"),
    source="nvml",
)
Child = Callable[..., SamplerProcess]
SAMPLES = "open('telemetry-gpu.jsonl', 'w').close()"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "run/logs").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def child(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """Starts a child that runs this text instead of the watch, in the run's folder."""

    def start(text: str) -> SamplerProcess:
        told = f"import os, sys, time\nos.chdir({str(run_dir)!r})\n{text}"
        monkeypatch.setattr(gpu_supervisor, "argv", lambda _: (sys.executable, "-c", told))
        return SamplerProcess(run_dir, machine_root(run_dir / "root"), GPU, kernel_log=False)

    return start


def failure(one: SamplerProcess) -> str:
    """Why the watch failed, after its child has ended by itself."""
    until(known(one._running).poll, "the child ends")
    one.check_alive()
    one.stop()
    return str(worded(known(one.failure)))


def at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(gpu_supervisor, "_now", lambda: seconds)


def test_no_gpu_is_no_child(run_dir: Path) -> None:
    child = SamplerProcess(run_dir, Path("/"), (), kernel_log=True)
    child.check_alive()
    child.stop()
    assert (child.failure, list(run_dir.iterdir())) == (None, [run_dir / "logs"])


@pytest.mark.parametrize("throughput", [False, True])
def test_what_the_child_is_told(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, throughput: bool
) -> None:
    monkeypatch.setattr(gpu_supervisor, "argv", lambda _: (sys.executable, "-c", ""))
    SamplerProcess(run_dir, Path("/"), GPU, kernel_log=False, throughput=throughput).stop()
    told = json.loads((run_dir / gpu_supervisor.CONTEXT).read_text())
    assert (told["run_dir"], told["kernel_log"]) == (str(run_dir), False)
    assert told["throughput"] is throughput


def test_the_command_line() -> None:
    assert gpu_supervisor.argv(Path("/run/gpu-watch.json"))[1:] == (
        "-m",
        "acceptance.watch.gpu_sampler",
        "/run/gpu-watch.json",
    )


def test_a_child_that_lives_until_it_is_ended(run_dir: Path, child: Child) -> None:
    one = child(f"{SAMPLES}\ntime.sleep(60)")
    until((run_dir / reader.GPU_TELEMETRY).exists, "the child begins")
    one.check_alive()
    one.stop()
    assert one.failure is None
    one.stop()


@pytest.mark.parametrize(
    ("text", "ended", "last"),
    [
        (
            "sys.exit('gpu0 cannot be watched')",
            "ended with exit code 1",
            "before the run did: gpu0 cannot be watched",
        ),
        ("os.kill(os.getpid(), 9)", "was ended by signal 9", "before the run did"),
    ],
)
def test_a_child_that_dies_says_why(child: Child, text: str, ended: str, last: str) -> None:
    said = failure(child(text))
    assert said.startswith(f"the watch over the GPUs {ended} after ")
    assert said.endswith(last)


def test_a_child_that_says_why_is_told_in_the_readers_language(child: Child) -> None:
    why = Message("nvml_says", {"error": "Driver Not Loaded"})
    one = child(f"print({msgspec.json.encode(why).decode()!r}); sys.exit('NVML says: the same')")
    assert failure(one)
    assert known(one.failure).values["last"] == why


def test_a_child_that_cannot_be_started(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(command, "start", raising(command.CommandError("no more processes")))
    one = SamplerProcess(run_dir, Path("/"), GPU, kernel_log=True)
    one.stop()
    could_not = "the watch over the GPUs could not be started: "
    assert worded(one.failure) == f"{could_not}no more processes"
    bare = SamplerProcess(run_dir / "missing", Path("/"), GPU, kernel_log=True)
    assert could_not in worded(known(bare.failure)), "a folder that takes no context"


def test_silence_is_a_hang(run_dir: Path, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 100.0)
    one = child("time.sleep(60)")
    for seconds, text in ((100.0, ""), (104.9, None), (104.9, "more"), (109.9, None)):
        at(monkeypatch, seconds)
        if text is not None:
            (run_dir / reader.GPU_TELEMETRY).write_text(text)
        one.check_alive()
    (run_dir / reader.GPU_TELEMETRY).write_text("too late")
    one.check_alive()
    one.stop()
    assert worded(one.failure) == "the watch over the GPUs hung: no sample of any GPU for 5 s"


def test_a_child_that_never_begins(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 100.0)
    one = child("time.sleep(60)")
    at(monkeypatch, 159.9)
    one.check_alive()
    at(monkeypatch, 160.0)
    one.stop()
    assert worded(one.failure) == "the watch over the GPUs hung: no sample of any GPU for 60 s"


@pytest.mark.parametrize(
    ("told", "failure"),
    [([LOST], None), ([Note("x")], "the watch over the GPUs hung: no sample of any GPU for 60 s")],
)
def test_a_lost_gpu_explains_silence(
    told: list[Any],
    failure: str | None,
    run_dir: Path,
    child: Child,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at(monkeypatch, 0.0)
    one = child("time.sleep(60)")
    write_segment(run_dir / gpu_sampler.EVENTS, told, machine_root(run_dir / "root"))
    at(monkeypatch, 70.0)
    one.check_alive()
    one.stop()
    assert worded(one.failure) == failure


def test_the_watch_itself_on_a_machine_without_a_driver(run_dir: Path) -> None:
    """The real child: it starts from a checkout, and says in one sentence why
    it cannot watch this GPU.
    """
    one = SamplerProcess(
        run_dir,
        machine_root(run_dir / "root"),
        (WatchTarget(Gpu(0), "GPU-none", "0fff:ff:1f.0"),),
        kernel_log=True,
    )
    said = failure(one)
    assert "before the run did: " in said
    assert "Traceback" not in said


def test_due_are_the_named_gpus_that_answer_nvml(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.cpus([[0]])
    tree.memory()
    for bus in (1, 2, 3, 4):
        tree.gpu(bus)

    def known(index: int, bus: int, error: str | None = None) -> NvmlDevice:
        return NvmlDevice(
            index, f"GPU-{index}", "RTX", f"0000:0{bus}:00.0", None, None, 1, error, None
        )

    devices = (known(0, 1), known(1, 2, "NVML says: GPU is lost"), known(2, 4))
    answer = gpu_supervisor.msgspec.json.encode(
        NvmlAnswer("570", "12.8", devices, None, None)
    ).decode()
    inventory = observe(
        tree.root, run=Programs(nvml=completed(answer), dmidecode=completed(*NO_DMI))
    )
    every = (Gpu(0), Gpu(1), Gpu(2), Gpu(3))
    assert gpu_supervisor.due_targets(inventory, every) == (
        WatchTarget(Gpu(0), "GPU-0", "0000:01:00.0"),
        WatchTarget(Gpu(3), "GPU-2", "0000:04:00.0"),
    )
    assert gpu_supervisor.due_targets(inventory, (Gpu(1), Gpu(2))) == ()
