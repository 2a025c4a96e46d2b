"""The watch over the GPUs during the power load: instantaneous power, and whether it must end.

    python -m acceptance.watch.power_watch --leash FILE --gpu gpu0=0000:01:00.0 --gpu ...

It reads the instantaneous power (field 186 of NVML) and the clock of each GPU a hundred times a
second, and ten times a second what `loads.pulse.watchdog` wants to know. While all is well it keeps
the watchdog fresh; else it pulls it, and says why as its last line. It never changes a limit or a
clock. A library that hangs leaves the watchdog alone, which ends the load too.

Every line is one JSON object, a `Line` here. It ends on SIGTERM, and where the load
has dropped the watchdog.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from acceptance.core import parts
from acceptance.core.clock_reasons import HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE
from acceptance.core.message import Message
from acceptance.core.parts import Component, parse
from acceptance.journal import clock
from acceptance.loads.pulse.watchdog import Holder, Sampled, reason_to_stop
from acceptance.observe import gpu_traits, nvml_call
from acceptance.observe import nvml as nvml_library
from acceptance.watch.targets import AttachedGpu, WatchTarget, attach
from acceptance.wording.errors import WordedError

INSTANT = (186, 0)  # nvml.h, NVML_FI_DEV_POWER_INSTANT, in mW
PERIOD_S = 0.01
SAFETY_S = 0.1
LINE_S = 1.0  # samples are written so often
KEPT = 3  # samples of safety
HELD = (POWER_BRAKE, HW_SLOWDOWN, HW_THERMAL)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Samples of one GPU: times in seconds since boot, watts and MHz, one where the power changed.

    `reasons` are those of HELD that were active, each with its time. `stop` is why the watchdog was
    pulled; `ready` says that the watch has begun. `limit_w` is the power limit.
    """

    gpu: Component | None = None
    at: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    clock_mhz: tuple[float, ...] = ()
    reasons: tuple[tuple[float, str], ...] = ()
    limit_w: float | None = None
    ready: bool = False
    stop: Message | None = None


@dataclass(slots=True)
class _Watched:
    """One GPU, and its samples since the last line."""

    gpu: AttachedGpu
    at: list[float] = field(default_factory=list)
    power_w: list[float] = field(default_factory=list)
    clock_mhz: list[float] = field(default_factory=list)
    reasons: list[tuple[float, str]] = field(default_factory=list)
    last_w: float = math.nan
    safety: deque[tuple[float, dict[str, float]]] = field(
        default_factory=lambda: deque(maxlen=KEPT)
    )

    def power(self, nvml: Any) -> None:
        """One sample of power and clock, where the power has changed."""
        handle = self.gpu.handle
        milliwatts = nvml_call.available_fields(nvml, handle, [INSTANT]).get(INSTANT)
        if milliwatts is None:  # Turing and older know the average alone
            milliwatts = nvml_call.ask_or_none(nvml, "nvmlDeviceGetPowerUsage", handle)
        if milliwatts is None or milliwatts == self.last_w:
            return
        self.last_w = milliwatts
        mhz = nvml_call.ask_or_none(nvml, "nvmlDeviceGetClockInfo", self.gpu.handle, gpu_traits.SM)
        self.at.append(round(clock.boot_s(), 4))
        self.power_w.append(round(milliwatts / 1e3, 1))
        self.clock_mhz.append(float(mhz or 0))

    def look(self) -> None:
        """One sample for safety."""
        assert self.gpu.sampler is not None
        found = self.gpu.sampler.read()
        now_s = clock.boot_s()
        self.safety.append((now_s, found))
        self.reasons += [(round(now_s, 4), name) for name in HELD if found.get(name)]

    def line(self, limit_w: float | None) -> Line:
        """The samples since the last line."""
        found = Line(
            self.gpu.known.name,
            tuple(self.at),
            tuple(self.power_w),
            tuple(self.clock_mhz),
            tuple(self.reasons),
            limit_w,
        )
        for kept in (self.at, self.power_w, self.clock_mhz, self.reasons):
            kept.clear()
        return found


def encode(line: Line) -> str:
    """One line of the watch."""
    return msgspec.json.encode(line, enc_hook=parts.encode).decode()


def decode(text: str) -> Line:
    """A line of the watch. Raises msgspec.DecodeError, ValidationError among them, for no such."""
    return msgspec.json.decode(text, type=Line, dec_hook=parts.decode)


def watch(nvml: Any, gpus: Sequence[AttachedGpu], holder: Holder, over: threading.Event) -> None:
    """Watch until `over` is set, or until the load must end."""
    every = [_Watched(gpu) for gpu in gpus if gpu.sampler is not None]
    limits = {
        one.gpu.known.name: nvml_call.ask_or_none(
            nvml, "nvmlDeviceGetEnforcedPowerLimit", one.gpu.handle
        )
        for one in every
    }
    lost = {gpu.known.name for gpu in gpus if gpu.sampler is None}
    looked_s = told_s = -math.inf
    holder.take()
    print(encode(Line(ready=True)), flush=True)
    with ThreadPoolExecutor(max(1, len(every))) as pool:
        while not over.is_set():
            begin_s = time.monotonic()
            slow = begin_s - looked_s >= SAFETY_S
            answers = pool.map(functools.partial(_round, nvml, slow=slow), every)
            for one, answered in zip(every, answers, strict=True):
                if not answered:
                    lost.add(one.gpu.known.name)
            if slow:
                looked_s = begin_s
                reason = _reason(every, lost)
                if reason is not None:
                    holder.pull()
                    _tell(every, limits)
                    print(encode(Line(stop=reason)), flush=True)
                    return
                if not holder.keep():
                    break
            if begin_s - told_s >= LINE_S:
                told_s = begin_s
                _tell(every, limits)
            over.wait(max(0.0, begin_s + PERIOD_S - time.monotonic()))
    _tell(every, limits)


def _round(nvml: Any, one: _Watched, *, slow: bool) -> bool:
    """One round at a GPU; whether it answered."""
    try:
        one.power(nvml)
        if slow:
            one.look()
    except nvml.NVMLError as refusal:
        return refusal.value not in nvml_call.LOST
    return True


def _reason(every: Sequence[_Watched], lost: set[Component]) -> Message | None:
    now_s = clock.boot_s()
    samples: dict[Component, list[Sampled]] = {
        one.gpu.known.name: [Sampled(found, now_s - at_s) for at_s, found in one.safety]
        for one in every
    }
    samples |= {gpu: [] for gpu in lost}
    return reason_to_stop(samples)


def _tell(every: Sequence[_Watched], limits: dict[Component, Any]) -> None:
    for one in every:
        milliwatts = limits[one.gpu.known.name]
        print(encode(one.line(None if milliwatts is None else milliwatts / 1e3)), flush=True)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="power_watch", description="Watch GPUs under pulses.")
    parser.add_argument("--leash", dest="watchdog", type=Path, required=True)
    parser.add_argument("--gpu", action="append", required=True, help="NAME=PCI_ADDRESS")
    return parser


def argv(python: str, watchdog: Path, gpus: Sequence[tuple[Component, str]]) -> tuple[str, ...]:
    """The command line that watches these GPUs, each with its PCI address."""
    named = [word for name, place in gpus for word in ("--gpu", f"{name}={place}")]
    return (python, "-m", "acceptance.watch.power_watch", "--leash", str(watchdog), *named)


def main(given: Sequence[str] | None = None, nvml: Any = None) -> int:
    """The program. `nvml` is the binding, for tests."""
    options = arguments().parse_args(given)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    targets = [
        WatchTarget(parse(name), None, place)
        for name, _, place in (one.partition("=") for one in options.gpu)
    ]
    nvml = nvml_library.binding() if nvml is None else nvml
    try:
        nvml.nvmlInit()
        watch(nvml, attach(nvml, targets), Holder(options.watchdog), over)
    except (nvml.NVMLError, WordedError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        with contextlib.suppress(Exception):
            nvml.nvmlShutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
