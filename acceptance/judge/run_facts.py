"""A journal's records as a run to hold others against: its verdict, its parts by UUID or serial number, what it ran on and with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.judge import duration, shown
from acceptance.judge.circumstances import circumstances
from acceptance.judge.comparison import Run
from acceptance.judge.record import Entry, RunStarted
from acceptance.judge.verdict import Verdict, fold


def of(entries: Sequence[Entry], name: str) -> Run:
    """A run under the name by which it is told from others. Raises UnreadableRun where nothing can be judged."""
    verdict = fold(entries)
    start = next(entry.body for entry in entries if isinstance(entry.body, RunStarted))
    inventory = shown.observed(entries).inventory
    return Run(
        name,
        verdict,
        start.machine_id,
        virtual=shown.table(inventory, "cpu").get("virtualised") is True,
        identities=shown.identities(inventory) | _measured(verdict),
        facts=circumstances(verdict.provenance, inventory, profile=verdict.profile, scope=verdict.scope),
        seconds=duration.seconds(entries),
    )


def _measured(verdict: Verdict) -> dict[str, str]:
    """The identities that were measured, by component: they go before what the inventory has."""
    judged = (one for check in verdict.checks for one in check.judged)
    return {one.due.component: one.serial for one in judged if one.serial}
