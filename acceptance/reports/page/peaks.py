"""Peaks: the highest possible value by the GPU's model sheet or its link, drawn beside a bar.

Never guessed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acceptance.core.dtype import PEAKS, burn_name, gemm_names
from acceptance.core.language import Language
from acceptance.expect import sheet
from acceptance.expect.gpu import COPIES
from acceptance.expect.sheet import LOCAL_COPY, Sheet
from acceptance.machine import pcie, recorded_inventory


@dataclass(frozen=True, slots=True)
class Peak:
    """A value in the measurement's unit, and its source."""

    value: float
    source: str


Peaks = Mapping[tuple[str, str], Peak]  # by measurement and component


def peaks(inventory: Mapping[str, Any], sheets: Sequence[Sheet], language: Language) -> Peaks:
    """The known peaks of every GPU of an inventory; an unknown peak is absent."""
    return dict(_all(inventory, sheets, language))


def _all(
    inventory: Mapping[str, Any], sheets: Sequence[Sheet], language: Language
) -> Iterator[tuple[tuple[str, str], Peak]]:
    for gpu in recorded_inventory.recorded_gpus(inventory):
        own = sheet.find(sheets, pci_id=gpu.function["device_id"], nvml_name=gpu.device.get("name"))
        if own is not None:
            for measurement, value in _of_sheet(own):
                yield (
                    (measurement, gpu.name),
                    Peak(value, language("sheet of {model}", model=own.name)),
                )
        traits = recorded_inventory.table(gpu.device, "traits")
        rate = _link(gpu.function, traits)
        if rate is not None:
            yield from (((copy, gpu.name), Peak(*rate)) for copy in COPIES)
        limit = traits.get("power_limit_w")
        if limit is not None:
            yield ("gpu_power", gpu.name), Peak(limit, language("power limit of the card"))


def _of_sheet(own: Sheet) -> Iterator[tuple[str, float]]:
    for dtype, keys in PEAKS.items():
        known = [value for key in keys if (value := getattr(own.peak, key)) is not None]
        if known:
            yield from ((name, known[0]) for name in (*gemm_names(dtype), burn_name(dtype)))
    yield LOCAL_COPY, own.memory.bandwidth_gbs


def _link(function: Mapping[str, Any], traits: Mapping[str, Any]) -> tuple[float, str] | None:
    """The one-way data rate of card and slot together in GB/s, and its source."""
    slot = pcie.generation(function.get("slot_max_link_speed_gts"))
    generation = pcie.link_maximum("", pcie.generation(function.get("max_link_speed_gts")), slot)
    width = pcie.link_maximum(
        "", function.get("max_link_width"), function.get("slot_max_link_width")
    )
    if generation is None or width is None or traits.get("virtualised"):
        return None
    return pcie.data_rate(generation.value, width.value)
