"""The report of the observed machine: a row for each part, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.language import ENGLISH, Language
from acceptance.machine.inventory import Inventory
from acceptance.reports.page import machine
from acceptance.reports.report import Line, Report, Row, Section, Table
from acceptance.wording import words


def report(inventory: Inventory, language: Language = ENGLISH) -> Report:
    """The parts as they were observed, and the next command."""
    rows = (*machine.parts(inventory, language), *_gpus(inventory, language))
    write = language(
        "{label}: {text}", label=language("next"), text="rigproof inventory --write FILE"
    )
    then = language("It drafts a machine file from this; with --json all that was read is printed.")
    parts = (Table([*map(Row, rows)], mark=-1), Line(write, exact=True), Line(then))
    return Report(language("The machine as found"), (Section("", parts),))


def _gpus(inventory: Inventory, language: Language) -> Iterator[tuple[str, str]]:
    cards = list(machine.gpu_cards(inventory, language))
    for card in cards:
        facts = [f"{label} {text}" for label, text in card.facts]
        trouble = [card.trouble] if card.trouble else []
        model = card.model or language("model not shown")
        yield card.name, language(", ").join([model, *trouble, *facts])
    if not cards:
        yield language("GPUs"), language("none found")
    if inventory.nvml.error is not None:
        yield "NVML", words.text(inventory.nvml.error, language)
