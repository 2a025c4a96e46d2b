"""Lifetime counters of the machine's parts, compared with the nights before.

A total proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import GpuCounters
from acceptance.session.check import Check
from acceptance.suites.fixtures import gpu_health

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
    gpu_health.count(_TOTALS, due_gpus, check)
