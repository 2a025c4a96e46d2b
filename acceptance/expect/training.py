"""Floors of training: the least share of a card's own matrix product, from its model's sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.expect import sheet
from acceptance.expect.compute import ComputeFacts
from acceptance.expect.limit_book import Override
from acceptance.expect.sheet import Sheet


def training_limits(cards: Sequence[ComputeFacts], sheets: Sequence[Sheet]) -> Iterator[Override]:
    """The floors of each card's layers and steps; nothing for a card whose sheet has none."""
    for card in cards:
        own = sheet.find(sheets, pci_id=card.device_id, nvml_name=card.model)
        if own is None:
            continue
        for row in own.share:
            yield Override(row.measurement, own.origin, row.limit(), card.name)
