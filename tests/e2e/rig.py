"""Drives the real `rigproof` as a user does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from run_left import Run

from acceptance.core.record import CheckStarted
from acceptance.journal import segment
from acceptance.process import orphans
from acceptance.run import lock

BUSY = "another rigproof run has this machine"
MACHINE = """\
schema = 1
name = "test"
gpus = 0

[[waiver]]
skip = "kernel_log"
reason = "an unprivileged user may not read it"
"""
Found = TypeVar("Found")


def wait_for(what: Callable[[], Found | None], seconds: float = 40.0) -> Found:
    """Look again and again until there is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came within {seconds} s")


def machine_is_free() -> bool:
    """Whether no run of somebody else's holds the lock."""
    try:
        with lock.MachineLock():
            return True
    except lock.MachineBusy:
        return False


def still_proc(root: Path) -> Sequence[str]:
    """Describe below `root` how much the machine has to do, as it is now and with nothing beside
    it; the files, to be laid over those of /proc: a played run knows no load of the machine's own.
    """
    files = ("stat", "meminfo", "loadavg")
    (root / "proc").mkdir(parents=True, exist_ok=True)
    for name in files:
        text = Path("/proc", name).read_text(encoding="ascii")
        if name == "loadavg":
            text = f"0.00 0.00 0.00 {text.split(maxsplit=3)[3]}"
        (root / "proc" / name).write_text(text, encoding="ascii")
    return [f"proc/{name}" for name in files]


@dataclass
class Rig:
    """One test's corner: a folder of fakes that goes before PATH, a machine
    file, an output folder.
    """

    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fakes = self.home / "fakes"
        self.out = self.home / "out"
        self.work = self.home / "work"
        for folder in (self.fakes, self.work):
            folder.mkdir()
        self.machine = self.home / "machine.toml"
        self.machine.write_text(MACHINE, encoding="utf-8")
        self.variables = {
            "PATH": os.pathsep.join([str(self.fakes), os.environ.get("PATH", os.defpath)])
        }

    def argv(
        self, *more: str, only: str | None = None, burn: int | None = 1, machine: bool = True
    ) -> list[str]:
        """The arguments of `rigproof accept`."""
        argv = ["accept", "--profile", "smoke", "--station", "host", "--out", str(self.out)]
        argv += ["--machine", str(self.machine)] if machine else []
        argv += ["--only", only] if only else []
        argv += ["--burn", str(burn)] if burn else []
        return [*argv, *more]

    def start(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        program: Sequence[str] | None = None,
        prepare: Callable[[], None] | None = None,
        wait: bool = True,
    ) -> subprocess.Popen[str]:
        """Start rigproof, when nobody else has the machine.

        `prepare` runs in the child before it becomes rigproof.
        """
        if wait:
            wait_for(machine_is_free, 100.0)

        def child() -> None:
            signal.signal(
                signal.SIGINT, signal.default_int_handler
            )  # a background job of a shell has it ignored
            if prepare:
                prepare()

        started = subprocess.Popen(
            [*(program or [str(Path(sys.executable).with_name("rigproof"))]), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=self.work,
            env={**os.environ, **self.variables, **(variables or {})},
            preexec_fn=child,  # noqa: PLW1509 - no thread of ours runs at this moment
        )
        self.started.append(started)
        return started

    def clear(self) -> None:
        """End what a test that failed has left running."""
        for started in self.started:
            started.kill()
            started.communicate()

    def finish(
        self,
        started: subprocess.Popen[str],
        before: set[Path],
        began: float,
        seconds: float = 270.0,
    ) -> Run:
        """Wait for it to end, no longer than so many seconds."""
        out, err = started.communicate(timeout=seconds)
        made = sorted(self.runs() - before)
        assert len(made) <= 1
        return Run(
            started.returncode, out, err, time.monotonic() - began, made[0] if made else None
        )

    def run(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        program: Sequence[str] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Run:
        """Run rigproof to its end. Where somebody else's run has the machine, wait for it."""
        for _ in range(60):
            before, began = self.runs(), time.monotonic()
            started = self.start(arguments, variables=variables, program=program, prepare=prepare)
            done = self.finish(started, before, began)
            if BUSY not in done.err:
                return done
            time.sleep(2.0)
        raise AssertionError("the machine was never free")

    def accept(
        self, *more: str, only: str | None = None, burn: int | None = 1, machine: bool = True
    ) -> Run:
        """`rigproof accept` to its end."""
        return self.run(self.argv(*more, only=only, burn=burn, machine=machine))

    def runs(self) -> set[Path]:
        """The run folders that are there."""
        return {path.parent for path in self.out.glob("*/logs") if not path.parent.is_symlink()}

    def started_run(self, before: set[Path]) -> Path:
        """The folder of the run that begins now."""
        return wait_for(lambda: next(iter(self.runs() - before), None))

    def reached(self, folder: Path, check: str, seconds: float = 40.0) -> None:
        """Wait until this check has begun, and no longer than anything runs."""

        def begun() -> bool:
            over = all(one.poll() is not None for one in self.started)
            for file in folder.glob("journal-*.jsonl"):
                bodies = [entry.body for entry in segment.read_segment(file).entries]
                if any(isinstance(body, CheckStarted) and body.check == check for body in bodies):
                    return True
            assert not over, f"{check} never began"
            return False

        wait_for(begun, seconds)


def processes(run_id: str, *words: str, without: str = "reaper.py") -> list[int]:
    """Process ids of a run whose command line holds all of these words, the oldest first."""
    found = []
    for pid in sorted(orphans.find(run_id)):
        with contextlib.suppress(OSError):
            line = (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .decode(errors="replace")
                .replace("\0", " ")
            )
            if all(word in line for word in words) and not (without and without in line):
                found.append(pid)
    return found
