"""The first records of a run: the plan, the provenance, and the observed machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.evidence import AnyBody
from acceptance.core.plan import LimitSet
from acceptance.core.record import RunStarted
from acceptance.journal import clock, provenance
from acceptance.machine import declared_facts
from acceptance.machine.machine_file import Machine
from acceptance.run import selftest_record
from acceptance.run.planning import PreparedRun
from acceptance.station.base import Station


def header_records(prepared: PreparedRun, station: Station, run_dir: Path) -> Iterator[AnyBody]:
    """The first records of a run's journal."""
    options, plan = prepared.options, prepared.plan
    facts = provenance.gather(
        plan.digest,
        station=station.name,
        machine_file=str(options.machine_file) if options.machine_file else None,
        **_declared(prepared.machine),
        boot_id=clock.boot_id(options.root),
        user="root" if os.geteuid() == 0 else "unprivileged",
        **_limits(prepared.limits),
        site_checks=plan.site.folder if plan.site else None,
        site_checks_digest=plan.site.digest if plan.site else None,
        **station.provenance,
    )
    machine_id = clock.machine_id(options.root)
    selftest = selftest_record.last_selftest(run_dir.parent, plan.digest, machine_id)
    yield RunStarted(
        run_dir.name,
        plan,
        facts,
        machine_id,
        selftest,
        prepared.limits,
        declared_facts.declared(prepared.machine),
    )
    yield from (*station.notes, *prepared.notes)
    yield prepared.observed()
    yield from prepared.scratches


def _limits(limits: LimitSet | None) -> dict[str, str | None]:
    """The version of the limits, their digest, and the sheets of the site with theirs."""
    if limits is None:
        return {}
    sheets = [f"{one.file} sha256:{one.sha256}" for one in limits.sheets]
    return {
        "limits": limits.version,
        "limits_digest": limits.digest,
        "site_sheets": ", ".join(sheets) or None,
    }


def _declared(machine: Machine | None) -> dict[str, str | None]:
    """The machine file's name for the machine, its order and asset tag, and its power supply."""
    if machine is None:
        return {}
    return {
        "machine": machine.name,
        "order_number": machine.order.number,
        "asset_tag": machine.order.asset_tag,
        "psu_watts": str(machine.psu.watts) if machine.psu.watts else None,
    }
