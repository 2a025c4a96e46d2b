"""Peaks: the highest possible value by the GPU's model sheet or its link, drawn beside a bar.

Never guessed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.dtype import burn_name, gemm_names
from acceptance.core.language import Language
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.expect import limit_book, sheet
from acceptance.expect.sheet import LOCAL_COPY, Sheet
from acceptance.machine import pcie
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.wording import words


@dataclass(frozen=True, slots=True)
class Peak:
    """A value in the measurement's unit, and its source."""

    value: float
    source: str


Peaks = Mapping[tuple[str, Component], Peak]  # by measurement and component


def peaks(inventory: Inventory, sheets: Sequence[Sheet], language: Language) -> Peaks:
    """The known peaks of every GPU of an inventory; an unknown peak is absent."""
    return dict(_all(inventory, sheets, language))


def _all(
    inventory: Inventory, sheets: Sequence[Sheet], language: Language
) -> Iterator[tuple[tuple[str, Component], Peak]]:
    for gpu in gpus(inventory):
        own = sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model)
        if own is not None:
            for measurement, value in _of_sheet(own):
                yield (
                    (measurement, gpu.name),
                    Peak(value, words.message(own.origin, language)),
                )
        rate = _link(gpu)
        if rate is not None:
            found = Peak(rate[0], words.message(rate[1], language))
            yield from (((copy, gpu.name), found) for copy in limit_book.names("link"))
        limit = gpu.traits.power_limit_w if gpu.traits is not None else None
        if limit is not None:
            yield ("gpu_power", gpu.name), Peak(limit, language("power limit of the card"))


def _of_sheet(own: Sheet) -> Iterator[tuple[str, float]]:
    for dtype, peak in own.peak.by_dtype().items():
        yield from ((name, peak) for name in (*gemm_names(dtype), burn_name(dtype)))
    yield LOCAL_COPY, own.memory.bandwidth_gbs


def _link(gpu: Gpu) -> tuple[float, Message] | None:
    """The one-way data rate of card and slot together in GB/s, and its source."""
    generation, width = gpu.link_generation, gpu.link_width
    if generation is None or width is None or (gpu.traits and gpu.traits.virtualised):
        return None
    return pcie.data_rate(generation, width)
