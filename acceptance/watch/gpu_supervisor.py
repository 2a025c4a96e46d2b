"""The supervisor's side of the watch over the GPUs: starts, monitors and ends the child process."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.message import Message, Text, english, known
from acceptance.core.parts import Component
from acceptance.core.record import Event
from acceptance.journal import reader, segment
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramResult, RunningProgram
from acceptance.process.deadline import Deadline
from acceptance.watch import gpu_sampler
from acceptance.watch.gpu_sampler import SamplerContext
from acceptance.watch.targets import WatchTarget
from acceptance.wording.errors import said

CONTEXT = "gpu-watch.json"
# Without persistence mode the driver first initialises every GPU, one after the other.
START_S = 60.0
SILENT_S = 5.0
_FOREVER_S = 10 * 365 * 86400.0  # the child ends on a signal


def _now() -> float:
    return time.monotonic()


def argv(context: Path) -> tuple[str, ...]:
    """The command line of the child. Pure."""
    return (sys.executable, "-m", "acceptance.watch.gpu_sampler", str(context))


def due_targets(inventory: Inventory, names: Sequence[Component]) -> tuple[WatchTarget, ...]:
    """The named GPUs that NVML listed and that answered before the run; checks report the others.

    Pure.
    """
    return tuple(
        WatchTarget(gpu.name, gpu.uuid, gpu.pci_address)
        for gpu in gpus(inventory, names)
        if gpu.device is not None and gpu.device.error is None
    )


def _said(done: ProgramResult) -> Text:
    """What the child said of its end; its last lines where it died before."""
    try:
        why: Text = msgspec.json.decode(done.stdout, type=Text)
    except msgspec.DecodeError:
        return done.last_lines(2)
    return why


class SamplerProcess:
    """The child process that watches these GPUs; without GPUs none is started.

    Never raises into the run: after `stop`, `failure` describes what went wrong. Create it in the
    main thread. `kernel_log` says whether the kernel log is followed, `throughput` whether somebody
    watches what the links move.
    """

    def __init__(
        self,
        run_dir: Path,
        root: Path,
        watched: Sequence[WatchTarget],
        *,
        kernel_log: bool,
        throughput: bool = False,
    ) -> None:
        self.failure: Message | None = None
        self._run_dir = run_dir
        self._running: RunningProgram | None = None
        self._silent: Message | None = None
        self._touched: int | None = None
        self._heard_s = _now()
        if not watched:
            return
        context = run_dir / CONTEXT
        try:
            settings = SamplerContext(
                str(run_dir), str(root), tuple(watched), kernel_log, throughput=throughput
            )
            regular_file.write(context, msgspec.json.encode(settings, enc_hook=parts.encode))
            self._running = command.start(
                argv(context),
                deadline=Deadline.after(_FOREVER_S),
                log=run_dir / "logs" / "gpu-watch.log",
                cwd=Path(__file__).resolve().parents[2],  # so that a checkout can be imported too
            )
        except (CommandError, OSError) as error:
            self.failure = Message(
                english(
                    "gpu_watch_not_started", "the watch over the GPUs could not be started: {why}"
                ),
                {"why": said(error)},
            )

    def check_alive(self) -> None:
        """Check that the child still writes. If it has ended, `stop` finds out why."""
        running = self._running
        if running is None or running.poll():
            return
        now = _now()
        touched = self._mark()
        if touched != self._touched:
            self._touched, self._heard_s = touched, now
        limit_s = SILENT_S if touched is not None else START_S
        if now - self._heard_s >= limit_s and self._silent is None:
            self._silent = Message(
                english(
                    "gpu_watch_hung",
                    "the watch over the GPUs hung: no sample of any GPU for {seconds} s",
                ),
                {"seconds": f"{limit_s:.0f}"},
            )

    def _mark(self) -> int | None:
        """A value that changes with every round of the child; None before its first."""
        try:
            return (self._run_dir / reader.GPU_TELEMETRY).stat().st_mtime_ns
        except OSError:
            return None

    def stop(self) -> None:
        """End the child within seconds, even if it hangs, and set `failure`."""
        if self._running is None:
            return
        self.check_alive()
        ended = self._running.poll()
        self._running.stop()
        done = self._running.wait()
        self._running = None
        if ended:
            values = known(how=done.describe(), last=_said(done) or None)
            self.failure = Message(
                english(
                    "gpu_watch_ended", "the watch over the GPUs {how}, before the run did[: {last}]"
                ),
                values,
            )
        elif self._silent is not None and not self._a_gpu_was_lost():
            self.failure = self._silent

    def _a_gpu_was_lost(self) -> bool:
        """Whether the child reported a lost GPU: a finding that explains its silence."""
        try:
            entries = segment.read_segment(self._run_dir / gpu_sampler.EVENTS).entries
        except segment.JournalError:
            return False
        return any(
            isinstance(entry.body, Event) and entry.body.kind == gpu_sampler.LOST_KIND
            for entry in entries
        )
