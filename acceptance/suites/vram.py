"""The GPUs' memory, filled and read back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from acceptance.loads.vram.contract import Ask
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check
from acceptance.session.loads import Loads, alone
from acceptance.suites.fixtures.burn_evidence import Heats, diagnosed


@pytest.mark.session("gpu-load")
# One round of all patterns runs however short the time: on large memory at a low rate it takes
# longer.
@pytest.mark.costs(6.5, load="vram", slack=315.0)
@pytest.mark.measures(
    "vram_miscompares", "vram_tested", "vram_rate", "vram_copy", "vram_copy_ratio"
)
def test_patterns(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    load_s: Mapping[str, float],
    gpu_heat: Heats,
    check: Check,
) -> None:
    """Patterns over the memory of all GPUs at once, every word read back and compared.

    Measured: words that came back wrong, how much of the memory was tested, the rate of a copy
    inside it before and after, and that of the passes against it. Not measured: the part that
    driver and library keep for themselves, and memory under the heat of products, which the burn
    fills.
    """
    results = loads.run(lambda _: Ask(seconds=load_s["vram"]), on=alone(due_gpus))
    check.all(
        results,
        note=lambda gpu, wrong: diagnosed(gpu, wrong, gpu_heat).told,
        serials=uuids(due_gpus),
    )
