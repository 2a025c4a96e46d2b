"""Export a machine's history: as a trend report, or row by row as CSV or JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from acceptance.history import folder, night_file, queries, trend
from acceptance.history.night import Night
from acceptance.history.noise import NoiseBook
from acceptance.history.trend import TrendReport, TrendSeries

NIGHTS = 120  # four months: as many as a person can survey at a glance
COLUMNS = (
    "run_id",
    "utc",
    "verdict",
    "profile",
    "apart",
    "era",
    "check",
    "measurement",
    "component",
    "serial",
    "unit",
    "value",
    "again",
    "outside",
    "unsteady",
    "failed",
)
_AT_ONCE = 1000  # rows written at once
# a spreadsheet takes a text that begins with one of these for a formula
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    *"＝＋－＠",  # noqa: RUF001 - the wide forms, which some languages' versions take as well
)


def other_machines(out: Path, machine_id: str) -> tuple[str, ...]:
    """Other machines with a history in the same folder."""
    own = folder.folder(out, machine_id)
    places = (out / folder.FOLDER).glob("*/*")
    kinds = (night_file.FOLDER, folder.DATABASE)
    found = {place.parent for place in places if place.name in kinds}
    return tuple(sorted(place.name for place in found if place != own))


def trend_report(
    nights: Sequence[Night],
    out: Path,
    machine_id: str,
    book: NoiseBook,
    *,
    measurement: str | None = None,
    component: str | None = None,
    last: int | None = NIGHTS,
    baseline_value: Callable[[TrendSeries], float | None] = lambda _: None,
    baseline: str | None = None,
) -> TrendReport:
    """The last nights, with the series that match.

    `baseline_value` gives a series' value in the baseline.
    """
    latest = nights[-last:] if last else nights
    eras = tuple(dict.fromkeys(one.era for one in latest))
    facts = {number: dict(era.facts) for number, era in enumerate(eras)}
    found = queries.trend_series(latest, eras, measurement, component)
    virtual = any(one.virtual for one in latest)
    rows = tuple(
        trend.row(one, book, virtual=virtual, facts=facts, baseline=baseline_value(one))
        for one in found
    )
    return TrendReport(
        machine_id, len(nights), tuple(latest), rows, other_machines(out, machine_id), baseline
    )


def export_rows(
    nights: Sequence[Night],
    form: str,
    measurement: str | None = None,
    component: str | None = None,
    last: int | None = None,
) -> Iterator[bytes]:
    """Every measurement as a line of CSV (RFC 4180, with a head) or JSON, series by series.

    Yields many lines at a time.
    """
    rows = queries.rows(nights[-last:] if last else nights, measurement, component)
    if form == "csv":
        yield _csv([COLUMNS])
    while some := list(islice(rows, _AT_ONCE)):
        if form == "csv":
            yield _csv(tuple(map(cell, row)) for row in some)
        else:
            yield b"".join(
                msgspec.json.encode(dict(zip(COLUMNS, row, strict=True))) + b"\n" for row in some
            )


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8")


def cell(value: object) -> object:
    """A value as a cell of CSV that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return int(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
