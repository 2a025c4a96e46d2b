"""Reads what the links of the GPUs move, in a thread of the sampler, for the live view."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from acceptance.core.parts import Component
from acceptance.journal import clock
from acceptance.observe.gpu_throughput import Throughput
from acceptance.watch.targets import AttachedGpu

# NVML measures PCIe while it is asked: 20 ms for each direction of each GPU, in which its answers
# to the samples may wait. So GPUs are asked one after the other, never at the same time, and no
# oftener than somebody can read it; without a live view they are not asked at all. Copies are
# measured meanwhile: of a GPU's time 40 ms in 2 s, in which it reads counters of its own.
PERIOD_S = 2.0


class LinkWatch:
    """A thread that reads each GPU in turn until `over` is set; `take` gives what is new."""

    def __init__(
        self,
        nvml: Any,
        gpus: Sequence[AttachedGpu],
        over: threading.Event,
        period_s: float = PERIOD_S,
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
            for name, reader in self._readers.items():
                if self._over.is_set():
                    return
                self._new[name] = reader.read(clock.boot_s())
            if self._over.wait(self._period_s):
                return

    def take(self, name: Component) -> dict[str, float]:
        """The rates of a GPU that were not taken before; empty where there are none."""
        return self._new.pop(name, {})
