"""What a GPU moves over its links at this moment, for people who watch a run.

Nothing of it is judged: the loads measure rates, and NVML gives only a glimpse of 20 ms of PCIe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from acceptance.expect.sensor_range import THROUGHPUT
from acceptance.observe import nvml_call
from acceptance.observe.nvml_call import Field

# Gigabytes a second, by direction as the GPU sees it: tx is what it sends.
PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX = THROUGHPUT
# nvml.h, nvmlPcieUtilCounter_t. The answer is in KB/s, over the 20 ms that the call takes.
_PCIE = {PCIE_TX: 0, PCIE_RX: 1}
# nvml.h, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _RX: what was moved, in KiB; the scope is the
# number of a link, or all ones for all of them.
_NVLINK = {NVLINK_TX: 138, NVLINK_RX: 139}
_ALL_LINKS = 0xFFFFFFFF


@dataclass(slots=True)
class Throughput:
    """Reads one GPU; `links` are its active NVLinks.

    `read` takes 40 ms, because NVML measures PCIe while it is asked, one direction after the other.
    """

    nvml: Any
    handle: Any
    links: tuple[int, ...]
    _moved: dict[str, tuple[float, float]] = field(default_factory=dict)  # at, in KiB

    def read(self, now_s: float) -> dict[str, float]:
        """The rates by their names in THROUGHPUT; what NVML does not offer is absent.

        NVLink is the mean since the call before. Never raises: whether the GPU is lost is seen by
        its samples.
        """
        return dict((*self._pcie(), *self._nvlink(now_s)))

    def _pcie(self) -> Iterator[tuple[str, float]]:
        for name, counter in _PCIE.items():
            try:
                told = nvml_call.ask(self.nvml, "nvmlDeviceGetPcieThroughput", self.handle, counter)
            except self.nvml.NVMLError:
                continue
            if told is not None:
                yield name, told / 1e6

    def _nvlink(self, now_s: float) -> Iterator[tuple[str, float]]:
        if not self.links:  # a GPU without links may answer 0, which nobody measured
            return
        wanted: list[Field] = [
            (number, scope) for number in _NVLINK.values() for scope in (_ALL_LINKS, *self.links)
        ]
        try:
            values = nvml_call.fields(self.nvml, self.handle, wanted, raising=frozenset())
        except (self.nvml.NVMLError, ValueError):  # a type of value that nvml.h does not have yet
            return
        for name, number in _NVLINK.items():
            moved = _sum(values, number, self.links)
            before = self._moved.pop(name, None)
            if moved is None:
                continue
            self._moved[name] = (now_s, moved)
            # a counter that fell was reset
            if before is not None and now_s > before[0] and moved >= before[1]:
                yield name, (moved - before[1]) * 1024 / 1e9 / (now_s - before[0])


def _sum(values: dict[Field, float], number: int, links: tuple[int, ...]) -> float | None:
    """A counter of all links: as NVML sums it, else the sum where every link answered."""
    whole = values.get((number, _ALL_LINKS))
    if whole is not None:
        return whole
    each = [values.get((number, link)) for link in links]
    return None if None in each else sum(one for one in each if one is not None)
