"""Lifetime counters of the machine's parts, compared with the nights before.

A total proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acceptance.machine.gpu import Gpu, uuids
from acceptance.machine.inventory import GpuCounters
from acceptance.session.check import Check

_TOTALS: dict[str, Callable[[GpuCounters], int | None]] = {
    "gpu_ecc_corrected_total": lambda found: found.ecc_corrected_total,
    "gpu_remapped_corrected": lambda found: found.remapped_corrected,
    "gpu_pcie_replays_total": lambda found: found.pcie_replays,
}


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_ecc_corrected_total", "gpu_remapped_corrected", "gpu_pcie_replays_total")
def test_counted(due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """What each GPU has counted in all: corrected memory errors and repaired rows of its life, PCIe
    packets sent again.

    Measured: the driver's counters; those of the memory are kept on the card, PCIe replays count
    since the driver was loaded. A total proves nothing by itself: its growth from night to night is
    judged.
    """
    serials = uuids(due_gpus)
    for measurement, read in _TOTALS.items():
        due = check.components(measurement)
        values = {
            gpu.name: read(gpu.counters)
            for gpu in due_gpus
            if gpu.name in due and gpu.counters is not None
        }
        known = {name: float(value) for name, value in values.items() if value is not None}
        check(measurement, known, serials=serials)
