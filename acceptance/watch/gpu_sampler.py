"""The watch over the GPUs: a program that reads NVML five times a second, and its Xid events.

    python -m acceptance.watch.gpu_sampler CONTEXT.json

It is a child of the supervisor, because the library of a faulty driver may hang or crash. Samples
go to `telemetry-gpu.jsonl`, which is created once every GPU has been found; events and foreign
processes go to `journal-gpu.jsonl`. The file of samples is touched after every round in which a GPU
answered, even without a new sample, so that the parent sees that its child does not hang. The
program ends on SIGTERM, with everything flushed, and exits with 0. It exits with 1 when it cannot
watch every GPU in its context, and says why on standard error, and as JSON on standard output.

Reads what the links of the GPUs move, in a thread of the sampler, for the live view.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.evidence import Refused
from acceptance.core.message import Message, Text, Values, english
from acceptance.core.parts import Component, parse
from acceptance.core.record import Event
from acceptance.journal import clock, reader, segment
from acceptance.observe import driver_events
from acceptance.observe import nvml as nvml_library
from acceptance.observe.gpu_events import XidListener
from acceptance.observe.gpu_sample import Sampler
from acceptance.observe.gpu_throughput import Throughput
from acceptance.observe.nvml_call import LOST, RESET_REQUIRED
from acceptance.observe.sensors import SampleThinner
from acceptance.watch.event_log import EventLog, suspicion
from acceptance.watch.gpu_users import GpuUsers
from acceptance.watch.targets import AttachedGpu, WatchTarget, attach
from acceptance.wording.errors import WordedError, said

# NVML measures PCIe while it is asked: 20 ms for each direction of each GPU, in which its answers
# to the samples may wait. So GPUs are asked one after the other, never at the same time, and no
# oftener than somebody can read it; without a live view they are not asked at all. Copies are
# measured meanwhile: of a GPU's time 40 ms in 2 s, in which it reads counters of its own.
LINK_PERIOD_S = 2.0


class LinkWatch:
    """A thread that reads each GPU in turn until `over` is set; `take` gives what is new."""

    def __init__(
        self,
        nvml: Any,
        gpus: Sequence[AttachedGpu],
        over: threading.Event,
        period_s: float = LINK_PERIOD_S,
    ) -> None:
        self._over, self._period_s = over, period_s
        self._readers = {
            one.known.name: Throughput(nvml, one.handle, one.sampler.links)
            for one in gpus
            if one.sampler is not None
        }
        self._new: dict[Component, dict[str, float]] = {}
        # A driver that hangs holds this thread for ever: it must not keep the program alive.
        threading.Thread(target=self._run, name="rigproof-links", daemon=True).start()

    def _run(self) -> None:
        while True:
            for name, link in self._readers.items():
                if self._over.is_set():
                    return
                self._new[name] = link.read(clock.boot_s())
            if self._over.wait(self._period_s):
                return

    def take(self, name: Component) -> dict[str, float]:
        """The rates of a GPU that were not taken before; empty where there are none."""
        return self._new.pop(name, {})


EVENTS = "journal-gpu.jsonl"
PERIOD_S = 0.2
# Counters change seldom and cost more to read. Samples are flushed to disk at the same interval.
SLOW_S = 1.0
# A GPU that refuses every reading for this long no longer answers, whatever error NVML reports.
SILENT_S = 3.0
LOST_KIND = "gpu-lost"
_LOST_MEANING = "The GPU no longer answers its driver."
_LOST_ACTION = (
    "Power the machine off and on, reseat the card and its power cables; if it comes back, "
    "replace the GPU."
)
_RESET_ACTION = (
    "Reset the GPU (nvidia-smi --gpu-reset) or reboot; if it comes back, replace the GPU."
)


class SamplerContext(msgspec.Struct, frozen=True):
    """Input of the program, as a JSON file. `root` is where the kernel's clocks are read.

    `kernel_log` says whether the kernel log is followed during the run; if not, NVML is the only
    source of Xid errors. `throughput` says whether somebody watches what the links move.
    """

    run_dir: str
    root: str
    gpus: tuple[WatchTarget, ...]
    kernel_log: bool
    period_s: float = PERIOD_S
    throughput: bool = False


@dataclass(slots=True)
class _Gpu:
    """A GPU under watch. `answered_s` is the time of its last reading, in seconds since boot."""

    known: WatchTarget
    handle: Any
    sampler: Sampler
    thinning: SampleThinner
    answered_s: float
    errors: dict[str, str] = field(default_factory=dict)


class GpuWatch:
    """The watch itself; `sample` reads every GPU once.

    Raises JournalError when its segments cannot be written.

    `kernel_log` is as in SamplerContext. `users` looks for foreign processes once a second. `links`
    reads what the links move, where somebody watches it.
    """

    def __init__(
        self,
        nvml: Any,
        gpus: Sequence[AttachedGpu],
        samples: segment.Writer,
        events: EventLog,
        *,
        kernel_log: bool,
        users: GpuUsers,
        links: LinkWatch | None = None,
    ) -> None:
        # imported late, because the supervisor imports this module too
        from concurrent.futures import ThreadPoolExecutor

        self._nvml = nvml
        self._samples = samples
        self._events = events
        self._slow_s = float("-inf")
        self._pool = ThreadPoolExecutor(max(1, len(gpus)))
        self._listener = XidListener(nvml)
        self._kernel_log = kernel_log
        self._users = users
        self._links = links
        self._unsubscribed: set[str] = set()
        self._targets = tuple(one.known for one in gpus)
        self._names = {one.known.pci_address: one.known.name for one in gpus}
        self._gpus: list[_Gpu] = []
        for one in gpus:
            if one.sampler is None:
                self._report_lost(one.known, one.refusal)
            else:
                now = clock.boot_s()
                thinning = SampleThinner(samples.write, now, one.known.name)
                self._gpus.append(_Gpu(one.known, one.handle, one.sampler, thinning, now))
        self._listen()

    def sample(self) -> bool:
        """Journal NVML's new events, and read every GPU once.

        Returns whether a GPU answered; true if no GPU is left.
        """
        slow = clock.boot_s() - self._slow_s >= SLOW_S
        self._poll_xids()
        answered = not self._gpus
        # In parallel: under load a GPU takes some milliseconds to answer, and eight GPUs one after
        # the other would take most of a period.
        gpus = list(self._gpus)
        for gpu, answer in zip(
            gpus, self._pool.map(lambda gpu: self._read(gpu, slow), gpus), strict=True
        ):
            if isinstance(answer, dict):
                gpu.answered_s = clock.boot_s()
                self._keep_errors(gpu)
                if self._links is not None:
                    answer.update(self._links.take(gpu.known.name))
                gpu.thinning.put(gpu.answered_s, answer)
                answered = True
            elif answer.value in LOST or clock.boot_s() - gpu.answered_s >= SILENT_S:
                self._give_up(gpu, answer)
        if slow:
            self._users.poll({gpu.known.name: gpu.handle for gpu in self._gpus}, self._pool)
            self._samples.sync()
            self._slow_s = clock.boot_s()
        return answered

    def _read(self, gpu: _Gpu, counters: bool) -> Any:
        """Readings of the GPU, or the binding's error."""
        try:
            return gpu.sampler.read(counters=counters)
        except self._nvml.NVMLError as refusal:
            return refusal

    def end(self) -> None:
        """Write the pending samples."""
        self._pool.shutdown()
        self._poll_xids()
        for gpu in self._gpus:
            gpu.thinning.flush(clock.boot_s())
        self._samples.sync()

    def _keep_errors(self, gpu: _Gpu) -> None:
        """Journal the errors of readings that had none before."""
        new = {one: why for one, why in gpu.sampler.errors.items() if one not in gpu.errors}
        if new:
            gpu.errors |= new
            self._samples.write(Refused(gpu.known.name, new))

    def _give_up(self, gpu: _Gpu, refusal: Any) -> None:
        self._gpus.remove(gpu)
        gpu.thinning.flush(clock.boot_s())
        self._poll_xids()
        self._report_lost(gpu.known, refusal)
        self._listen()

    def _listen(self) -> None:
        self._listener.listen({gpu.known.pci_address: gpu.handle for gpu in self._gpus})

    def _poll_xids(self) -> None:
        for code, address in self._listener.poll():
            severity, meaning, action, catalog = driver_events.xid(code)
            said = f"NVML: Xid {code}{f' on {address}' if address else ''}"
            where, now = parse(address) if address else None, clock.boot_s()
            self._events.event(
                Event(
                    "xid",
                    severity,
                    said,
                    meaning,
                    action,
                    code,
                    where,
                    now,
                    source="nvml",
                    catalog=catalog,
                    suspicion=suspicion("xid", code, where, said, self._targets),
                )
            )
        for address, why in self._listener.unsubscribed.items():
            if address not in self._unsubscribed:
                self._unsubscribed.add(address)
                self._note_unsubscribed(self._names[address], why)

    def _note_unsubscribed(self, name: Component, why: Text) -> None:
        values: Values = {"gpu": str(name), "why": why}
        if self._kernel_log:
            self._events.note(
                Message(
                    english(
                        "xids_of_kernel_log_alone",
                        "NVML tells no Xid events of {gpu} ({why}): those of the kernel log count "
                        "alone",
                    ),
                    values,
                )
            )
        else:
            self._events.note(
                Message(
                    english(
                        "xids_unheard",
                        "nobody listened for Xid errors of {gpu}: run as root, or `sudo sysctl "
                        "kernel.dmesg_restrict=0`; NVML tells no Xid events of {gpu} ({why})",
                    ),
                    values,
                ),
                trouble=True,
            )

    def _report_lost(self, gpu: WatchTarget, refusal: Any) -> None:
        action = _RESET_ACTION if refusal.value == RESET_REQUIRED else _LOST_ACTION
        said = f"NVML says of {gpu.name}: {refusal}"
        now = clock.boot_s()
        self._events.event(
            Event(
                LOST_KIND,
                "fatal",
                said,
                _LOST_MEANING,
                action,
                "nvml",
                parse(gpu.pci_address),
                now,
                source="nvml",
            )
        )


def run(nvml: Any, context: SamplerContext, over: threading.Event) -> None:
    """Watch until `over` is set.

    Raises WordedError, and the binding's NVMLError where NVML cannot be used at all.
    """
    nvml.nvmlInit()
    found = attach(nvml, context.gpus)
    run_dir, root = Path(context.run_dir), Path(context.root)
    path = run_dir / reader.GPU_TELEMETRY
    with (
        contextlib.closing(EventLog(run_dir / EVENTS, root)) as events,
        segment.Writer(path, root) as samples,
    ):
        users = GpuUsers(nvml, run_dir.name, root, events.put)
        links = LinkWatch(nvml, found, over) if context.throughput else None
        watch = GpuWatch(
            nvml, found, samples, events, kernel_log=context.kernel_log, users=users, links=links
        )
        moment = time.monotonic()
        while not over.is_set():
            if watch.sample():
                os.utime(path)
            # samples missed during a slow round are not made up for
            moment = max(moment + context.period_s, time.monotonic())
            over.wait(moment - time.monotonic())
        watch.end()


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[threading.Event]:
    """An event that is set when a signal asks the program to end."""
    over = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        over.set()

    before = {
        number: signal.signal(number, end)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    }
    try:
        yield over
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str], nvml: Any = None) -> int:
    """Run the program; the module describes its exit status. `nvml` is the binding, for tests."""
    context = msgspec.json.decode(
        regular_file.read(Path(arguments[0]), regular_file.SEGMENT_BYTES),
        type=SamplerContext,
        dec_hook=parts.decode,
    )
    nvml = nvml_library.binding() if nvml is None else nvml
    with _ended_by_signal() as over:
        try:
            run(nvml, context, over)
        except nvml.NVMLError as refusal:
            return _end(WordedError("nvml_says", error=str(refusal)))
        except (WordedError, ValueError, OSError) as error:
            return _end(error)
    return 0


def _end(error: Exception) -> int:
    print(error, file=sys.stderr)
    print(msgspec.json.encode(said(error)).decode())
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
