"""The first records of a run: the plan, the provenance, and the observed machine.

The score of the last self-test of this build on this machine, for the reports of every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.evidence import AnyBody
from acceptance.core.message import Message, english, known
from acceptance.core.plan import LimitSet
from acceptance.core.record import RunStarted
from acceptance.journal import clock, provenance
from acceptance.machine import declared_facts
from acceptance.machine.machine_file import Machine
from acceptance.run.planning import PreparedRun
from acceptance.station.base import Station

NAME = "selftest.json"


class SelftestRecord(msgspec.Struct, frozen=True):
    """The result of a self-test, stored beside the runs: time, build, machine and score."""

    utc: str
    package_digest: str
    machine_id: str
    caught: int
    faults: int
    alarms: int
    clean_runs: int
    kind: str  # "short" or "long", or the selected parts

    @property
    def score(self) -> Message:
        """The score in one line."""
        missed = self.faults - self.caught
        score = known(
            caught=self.caught,
            faults=self.faults,
            missed=missed or None,
            alarms=self.alarms,
            clean=self.clean_runs,
        )
        return Message(
            english(
                "selftest_score",
                "{utc} ({kind}): {caught} of {faults} faults caught[ ({missed} MISSED)], {alarms} "
                "false alarms in {clean} clean runs",
            ),
            {"utc": self.utc, "kind": self.kind, **score},
        )


def last_selftest(out: Path, package_digest: str, machine_id: str) -> Message:
    """The score of the last self-test, for the reports, or that there is none.

    There is none where this build was not tested on this machine. An unreadable record counts as
    none: it proves nothing, and the run does not depend on it.
    """
    path = out / NAME
    try:
        record = msgspec.json.decode(
            regular_file.read(path, regular_file.SMALL_RECORD), type=SelftestRecord
        )
    except FileNotFoundError:
        return Message(
            english(
                "selftest_never",
                "not run on this machine with this build: `make selftest` in a checkout shows "
                "what it catches[; the last one here, of another build or machine, was {last}]",
            )
        )
    except (OSError, ValueError) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else Message(english("it_is_damaged", "it is damaged"))
        )
        return Message(
            english(
                "selftest_unreadable",
                "its record {path} cannot be read[ ({reason})]: run `make selftest` in a checkout "
                "again",
            ),
            known(path=str(path), reason=reason),
        )
    return (
        Message("selftest_never", {"last": record.utc})
        if (record.package_digest, record.machine_id) != (package_digest, machine_id)
        else record.score
    )


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
    selftest = last_selftest(run_dir.parent, plan.digest, machine_id)
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
