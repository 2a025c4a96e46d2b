"""A rigproof that is disturbed: on a described machine or in containers, with a lock and a boot of
its own.

It runs in a mount namespace, where files of ours lie over the machine's: its lock (so that nobody
else's start closes what is left here), and the id of the boot after a simulated restart. Making one
needs root.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import fake_driver
import fakes
from gpu_box import GpuBox
from rig import Rig, still_proc
from run_left import Run

from acceptance.journal import clock
from acceptance.station import preflight
from acceptance.station.container_args import LABEL
from acceptance.station.docker import ENGINE_ERRORS
from selftest import trial

StationName = Literal["host", "docker"]
MACHINE = "2x4090"
# What there is on both sides of a load, the load, and what is watched beside it.
# Of the watch what a run of seconds can tell: links are looked at under longer load.
ONLY = {
    "host": (
        "gpu.present,watch.sampled,watch.heat,watch.counters,cpu.stress_ng,cpu.gemm[f64],"
        "kernel_log.during_run"
    ),
    "docker": "cpu.stress_ng,kernel_log.during_run",
}
# an environment variable: whatever a start leaves running carries it, in a run or before one
MARK = "SELFTEST_START"
RESTARTED_S = 90.0  # how long the machine has been up when rigproof is started after a restart
ENDS_S = 400.0
MOUNTS = """
set -e
home=$1; boot=$2; shift 2
mount --bind "$home/lock" /run/lock
for file in "$home"/proc/*; do mount --bind "$file" "/proc/${file##*/}"; done
[ "$boot" = - ] || mount --bind "$boot" /proc/sys/kernel/random/boot_id
exec "$@"
"""


@dataclass
class Started:
    """A rigproof that was started, and what is asked about it."""

    process: subprocess.Popen[str]
    mark: str
    before: set[Path]
    began: float

    def left(self) -> dict[int, str]:
        """Its processes, but for those in a container."""
        mark, found = f"{MARK}={self.mark}".encode(), {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it ended while we looked
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found[int(entry.name)] = (
                            (entry / "cmdline")
                            .read_bytes()
                            .replace(b"\0", b" ")
                            .decode(errors="replace")
                        )
        return found


@dataclass
class Scene:
    """One rig of its own, and how rigproof is started in it."""

    rig: Rig
    station: StationName
    only: str = ""
    library: Path | None = None
    boot_id: str = ""
    _box: GpuBox | None = None
    _time: tuple[str, ...] = ()
    _client: Any = field(default=None)

    def __post_init__(self) -> None:
        self.only = self.only or ONLY[self.station]
        (self.rig.home / "lock").mkdir()
        still_proc(self.rig.home)
        if self.station == "host":
            library = self.library or fake_driver.build(self.rig.home / "library")
            self._box = GpuBox(self.rig, library, MACHINE)
            fakes.write(self.rig.fakes, "stress-ng", "healthy")
        else:
            found = preflight.engine()
            assert found.engine is not None, found.why
            self._client = found.engine.client

    def restart(self) -> None:
        """From now on it is another boot of the machine, whose clock has begun again where the
        kernel can do that.
        """
        self.boot_id = str(uuid.uuid4())
        self._time = ("--time", "--boottime", f"{RESTARTED_S - clock.boot_s():.0f}")
        # Scenes are played in threads, and `command` is for the main one alone.
        tried = subprocess.run(["unshare", *self._time, "true"], capture_output=True, timeout=10.0)
        if tried.returncode != 0:
            self._time = ()

    def same_boot(self) -> None:
        """The machine's own boot again: a container shows no other one."""
        self.boot_id, self._time = "", ()

    def argv(self, only: str = "") -> list[str]:
        """The arguments of `rigproof accept`."""
        machine = self._box is None
        return self.rig.argv("--station", self.station, only=only or self.only, machine=machine)

    def start(self, arguments: Sequence[str]) -> Started:
        """Start rigproof in its namespace."""
        boot = "-"
        if self.boot_id:
            file = self.rig.home / "boot_id"
            file.write_text(f"{self.boot_id}\n", encoding="ascii")
            boot = str(file)
        own = (
            [str(Path(sys.executable).with_name("rigproof"))]
            if self._box is None
            else self._box.program
        )
        inside = ["sh", "-c", MOUNTS, "sh", str(self.rig.home), boot, *own]
        mark, before, began = uuid.uuid4().hex, self.rig.runs(), time.monotonic()
        process = self.rig.start(
            arguments,
            variables={MARK: mark},
            program=["unshare", "--mount", *self._time, *inside],
            wait=False,
        )
        return Started(process, mark, before, began)

    def finish(self, started: Started) -> Run:
        """Wait for its end, for long: other faults may be played beside it."""
        out, err = started.process.communicate(timeout=ENDS_S)
        made = sorted(self.rig.runs() - started.before)
        assert len(made) <= 1, f"one start has made several runs: {made}"
        return Run(
            started.process.returncode,
            out,
            err,
            time.monotonic() - started.began,
            made[0] if made else None,
        )

    def run(self, arguments: Sequence[str]) -> Run:
        """Start it and wait for its end."""
        return self.finish(self.start(arguments))

    def undisturbed(self, hear: Callable[[str, str], None] = lambda out, err: None) -> Run:
        """A run that nobody disturbs; `hear` gets what each start says.

        Where the faults played beside it left its load too little of the processors, it is made
        once more.
        """
        run = self.run(self.argv())
        hear(run.out, run.err)
        if run.code == 3 and run.folder is not None and _starved(run):
            run = self.run(self.argv())
            hear(run.out, run.err)
        return run

    def containers(self, run_id: str) -> list[Any]:
        """The containers of a run that are there, in whatever state."""
        if self._client is None:
            return []
        found: list[Any] = self._client.containers.list(
            all=True, filters={"label": f"{LABEL}={run_id}"}, ignore_removed=True
        )
        return found

    def running(self, run_id: str) -> list[Any]:
        """Those of them in which something runs."""
        return [one for one in self.containers(run_id) if one.status == "running"]

    def clear(self) -> None:
        """End what is left, and remove its containers."""
        self.rig.clear()
        for folder in self.rig.runs():
            for one in self.containers(folder.name):
                with contextlib.suppress(*ENGINE_ERRORS):
                    one.remove(force=True, v=True)


def _starved(run: Run) -> bool:
    """Whether nothing is amiss but that a load ran for less than its time."""
    lines = run.texts("unjudged").splitlines()
    return bool(lines) and all(trial.STARVED.search(line) for line in lines)


def why_no_pass(run: Run) -> str:
    """What a run says of why it does not pass."""
    if run.folder is None:
        return run.err
    return f"{run.texts('violations')}\n{run.texts('unjudged')}\n{run.err}".strip()
