"""CSV of a batch, for an integrator's order: a machine a row, worst first, as RFC 4180 says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from acceptance.core.limit import number
from acceptance.fleet.report import FleetReport, key_rates
from acceptance.history.export import cell
from acceptance.reports.text import one_line
from acceptance.wording import words

HEAD = (
    *("machine", "verdict", "reason", "run_id", "began", "profile", "signer", "gpu_model", "gpus"),
    *("gpu_serials", "nvidia_driver", "gpu_vbios", "bios_version", "kernel", "rigproof", "sha256"),
    *("limits", "limits_digest", "machine_file", "caveats", "accepted"),
)


def render(report: FleetReport) -> bytes:
    """The content of the file, in UTF-8.

    An empty cell is a value that is not known. Rates are the lowest of the machine's components; a
    rate that no machine has is left out. `sha256` is of the machine's verdict.json.
    """
    text = io.StringIO()
    csv.writer(text).writerows(_rows(report))
    return text.getvalue().encode("utf-8")


def _rows(report: FleetReport) -> Iterator[list[object]]:
    rates = list(key_rates(report.values))
    yield [*HEAD, *(f"{rate.measurement} ({rate.unit})" for rate in rates)]
    for row in report.due:
        facts = dict(row.groups)
        cells: dict[str, str | None] = {
            **facts,
            "machine": row.machine,
            "verdict": row.verdict,
            "reason": words.text(report.reasons.get(row.machine, "")),
            "run_id": row.run_id,
            "began": row.began.isoformat() if row.began else None,
            "profile": row.profile,
            "signer": row.signer,
            "gpu_serials": " ".join(row.parts),
            "sha256": row.sha256,
            "caveats": "; ".join(row.caveats),
            "accepted": "; ".join(words.message(one.message) for one in row.accepted),
        }
        measured = (rate.lowest.get(row.machine) for rate in rates)
        yield [
            *(cell(one_line(cells.get(key) or "")) for key in HEAD),
            *("" if value is None else number(value) for value in measured),
        ]
