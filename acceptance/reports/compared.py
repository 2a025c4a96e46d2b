"""A journal as a run to compare: its verdict, its parts by serial number or UUID, what it ran on and with, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from acceptance.journal import Journal
from acceptance.judge.circumstances import circumstances
from acceptance.judge.comparison import Run
from acceptance.judge.record import Observed, RunStarted
from acceptance.judge.verdict import Verdict, fold
from acceptance.reports.places import Places, places

_PARTS = ("gpu", "disk:", "dimm:", "net:")


def run(found: Journal, name: str) -> Run:
    """A run under the name by which it is told from the others. Raises UnreadableRun where nothing can be judged."""
    verdict = fold(found.entries)
    start = next(entry.body for entry in found.entries if isinstance(entry.body, RunStarted))
    inventory = next((entry.body.inventory for entry in found.entries if isinstance(entry.body, Observed)), {})
    where = places(found)
    gpus = {place.uuid: component for component, place in where.found.items() if place.uuid and component[:3] == "gpu"}
    cpu = inventory.get("cpu")
    return Run(
        name,
        verdict,
        start.machine_id,
        virtual=isinstance(cpu, Mapping) and cpu.get("virtualised") is True,
        identities=_identities(verdict, where),
        facts=circumstances(
            verdict.provenance,
            inventory,
            gpus,
            profile=verdict.profile,
            scope=verdict.scope,
        ),
        seconds=_seconds(found),
    )


def _identities(verdict: Verdict, where: Places) -> dict[str, str]:
    """The UUID or serial number of every component that tells one: as measured, else as the inventory has it."""
    found = {}
    for component, place in where.found.items():
        told = place.uuid or place.serial
        if told and component.startswith(_PARTS):  # and not under its address, or the kernel's name, a second time
            found[component] = told
    for check in verdict.checks:
        for judged in check.judged:
            if judged.serial:
                found[judged.due.component] = judged.serial
    return found


def _seconds(found: Journal) -> float | None:
    """From the first record to the last, by the wall clock; None where that went backwards or cannot be read."""
    try:
        first, last = (datetime.fromisoformat(found.entries[place].utc) for place in (0, -1))
        seconds = (last - first).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None
