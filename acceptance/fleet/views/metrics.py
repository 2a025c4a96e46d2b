"""Metrics of a fleet in Prometheus' text format, reduced: the full ones of one machine are 5,600.

A machine has its verdict, when it was tested, whether that is too long ago, its GPUs, a few rates,
and its outliers. Names and labels are as in `notify.textfile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from acceptance.core.verdict import VerdictWord
from acceptance.fleet.report import FleetReport, flagged, key_rates
from acceptance.reports import exposition
from acceptance.reports.exposition import Metric, metric


def render(report: FleetReport) -> bytes:
    """The content of the file."""
    return exposition.render(_metrics(report))


def _metrics(report: FleetReport) -> Iterator[Metric]:
    yield metric(
        "rigproof_fleet_report_timestamp_seconds",
        "When the fleet was judged last.",
        report.now.timestamp(),
    )
    yield Metric(
        "rigproof_fleet_machines",
        "How many machines that are due have each verdict.",
        tuple(({"verdict": word}, float(report.count(word))) for word in get_args(VerdictWord)),
    )
    yield metric(
        "rigproof_fleet_troubles",
        "How much of what lay in the folders could not be read.",
        len(report.troubles),
    )
    yield Metric(
        "rigproof_fleet_machine_verdict",
        "1 for the verdict of each machine that is due.",
        tuple(({"machine": row.machine, "verdict": row.verdict}, 1.0) for row in report.due),
    )
    yield Metric(
        "rigproof_fleet_machine_missing",
        "1 for a machine that is due and has no fresh verdict, else 0.",
        tuple(({"machine": row.machine}, float(row.missing)) for row in report.due),
    )
    yield Metric(
        "rigproof_fleet_machine_run_started_timestamp_seconds",
        "When the newest run of the machine began, one that is not fresh included.",
        tuple(
            ({"machine": row.machine}, report.last[row.machine].timestamp())
            for row in report.due
            if row.machine in report.last
        ),
    )
    yield Metric(
        "rigproof_fleet_pass_info",
        "What the PASS of a machine was given by, and what it does not cover.",
        tuple(
            (
                {
                    "machine": row.machine,
                    "profile": row.profile or "",
                    "machine_file": dict(row.groups).get("machine_file", ""),
                    "caveats": "; ".join(row.caveats),
                },
                1.0,
            )
            for row in report.due
            if row.verdict == "PASS"
        ),
    )
    yield Metric(
        "rigproof_fleet_accepted_fails",
        "How many FAILs of a machine were ended by somebody who accepted them.",
        tuple(
            ({"machine": row.machine}, float(len(row.accepted)))
            for row in report.due
            if row.accepted
        ),
    )
    yield Metric(
        "rigproof_fleet_gpu_info",
        "The GPUs of each machine, by the serial number or UUID that its verdict names.",
        tuple(
            ({"machine": row.machine, "serial": serial}, 1.0)
            for row in report.due
            for serial in row.parts
        ),
    )
    yield Metric(
        "rigproof_fleet_rate",
        "A few rates of each machine, the lowest of its components, in the unit of the label.",
        tuple(
            (
                {"machine": machine, "measurement": rate.measurement, "unit": rate.unit},
                value,
            )
            for rate in key_rates(report.values)
            for machine, value in rate.lowest.items()
        ),
    )
    yield Metric(
        "rigproof_fleet_outlier_drop",
        "How much worse than equal machines a flagged one is, as a share of what is usual.",
        tuple(
            (
                {
                    "machine": machine,
                    "measurement": measurement,
                    "component": str(one.component),
                },
                one.drop,
            )
            for (machine, measurement), one in sorted(flagged(report).items())
        ),
    )
