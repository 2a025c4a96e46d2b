"""The GPUs' memory, filled and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from acceptance.core.component import Component
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check
from acceptance.suites.fixtures.burn_evidence import Heats, count_readings
from acceptance.suites.fixtures.gpu_loads import GpuLoads

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]


@pytest.mark.session("gpu-load")
# One round of all patterns runs however short the time: on large memory at a low rate it takes
# longer.
@pytest.mark.costs(6.5, load="vram", slack=315.0)
@pytest.mark.measures(
    "vram_miscompares", "vram_tested", "vram_rate", "vram_copy", "vram_copy_ratio"
)
def test_patterns(
    vram_run: Callable[[], GpuLoads],
    due_gpus: tuple[Gpu, ...],
    gpu_heat: Heats,
    table: WriteTable,
    check: Check,
) -> None:
    """Patterns over the memory of all GPUs at once, every word read back and compared.

    Measured: words that came back wrong, how much of the memory was tested, the rate of a copy
    inside it before and after, and that of the passes against it. Not measured: the part that
    driver and library keep for themselves, and memory under the heat of products, which the burn
    fills.
    """
    loads = vram_run()
    serials = uuids(due_gpus)
    counts, notes = count_readings(loads, "vram_miscompares", gpu_heat)
    check("vram_miscompares", counts, notes=notes, serials=serials)
    for name in ("vram_tested", "vram_rate", "vram_copy"):
        check(name, loads.values(name), serials=serials)
    check.ratio("vram_copy_ratio", serials=serials)
    for gpu, output in loads.outputs.items():
        for one in output.tables:
            table(gpu, one.name, one.columns, one.rows)
    loads.raise_failed()
