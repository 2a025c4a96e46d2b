"""The first records of a run: the plan, the provenance, and the observed machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.record import Body, RunStarted
from acceptance.journal import clock, provenance
from acceptance.run import selftest_record
from acceptance.run.planning import PreparedRun
from acceptance.station.base import Station


def header_records(prepared: PreparedRun, station: Station, run_dir: Path) -> Iterator[Body]:
    """The first records of a run's journal."""
    options, plan = prepared.options, prepared.plan
    facts = provenance.gather(
        station=station.name,
        machine_file=str(options.machine_file) if options.machine_file else None,
        machine=prepared.machine.name if prepared.machine else None,
        boot_id=clock.boot_id(options.root),
        user="root" if os.geteuid() == 0 else "unprivileged",
        selftest=selftest_record.selftest_sentence(
            run_dir.parent, plan.digest, clock.machine_id(options.root)
        ),
        **station.provenance,
    )
    yield RunStarted(run_dir.name, plan, facts, clock.machine_id(options.root))
    yield from (*station.notes, *prepared.notes)
    yield prepared.observed()
