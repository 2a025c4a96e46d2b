"""Nights for tests: made up in memory, and runs in folders from which they can be made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import journals
from msgspec.structs import replace
from runs import machine_root

from acceptance.core.evidence import Observed
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import Body, RunStarted
from acceptance.history import night_file, nights, queries
from acceptance.history.night import Era, Night, NightMeasurement, PartMeasurement, SeriesKey
from acceptance.history.reference_builder import NightValue
from acceptance.journal import clock, reader, run_folder, seal, segment

MACHINE = "machine-1"
ERA = Era((("driver", "580.1"), ("profile", "nightly"), ("station", "host")))
COPY = SeriesKey("link.copy", "copy_h2d", Gpu(0), "GB/s", "GPU-a")
FIRST_DAY = 20_000.0


def night(number: int = 0, value: float | None = 50.0, **changed: object) -> Night:
    """The night of this number, a day after the one before it; with one figure,
    if not told otherwise. `measured` are others, by their series.
    """
    measured = changed.pop("measured", {COPY: NightMeasurement(value)})
    assert isinstance(measured, Mapping)
    made = Night(
        run_id=f"run-{number:05}",
        machine_id=MACHINE,
        utc="2026-01-01T00:00:00.000Z",
        day=FIRST_DAY + number,
        seconds=90.0,
        profile="nightly",
        scope="full",
        verdict="PASS",
        virtual=False,
        postponed=False,
        apart=None,
        era=ERA,
        series=tuple(measured),
        figures=tuple(measured.values()),
        number=number,
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def values(made: Night) -> dict[SeriesKey, NightMeasurement]:
    """The measurements of a night."""
    return dict(zip(made.series, made.figures, strict=True))


def record(out: Path, *made: Night) -> None:
    """Write nights of this machine, or of that of the first one, into its history."""
    night_file.write(out, made[0].machine_id, made)


def recorded(out: Path) -> tuple[Night, ...]:
    """What the history holds; every file can be read."""
    found, unread = nights.read(out, MACHINE)
    assert unread == {}
    return found


def seen(
    recorded: Sequence[Night], after: int = 0, *, era: Era | None = ERA
) -> dict[PartMeasurement, tuple[NightValue, ...]]:
    """What tonight is held against of an era's nights after this one, as many
    as the shipped rules read.
    """
    return queries.night_values(recorded, era, after=after, first=28, last=200)


def write_run(
    out: Path,
    run_id: str,
    values: Mapping[tuple[str, str], float] | None = None,
    *,
    plan: Plan | None = None,
    machine: str = MACHINE,
    closed: bool = True,
    boot: str = "boot-1",
) -> Path:
    """A run in its folder, written by the real writer; with a verdict if it is `closed`.

    Its times are those of the moment.
    """
    root = machine_root(out.parent / f"root-{machine}-{boot}", boot=boot, machine=machine)
    records: list[Body] = journals.bodies(plan or journals.plan(profile="nightly"), values)
    start = records[0]
    assert isinstance(start, RunStarted)
    records[0] = RunStarted(run_id, start.plan, {"host": "box", "station": "host"}, machine)
    records.insert(1, Observed({"board": {"nvidia_driver": "580.1"}}))
    folder = out / run_id
    folder.mkdir(parents=True)
    with segment.Writer(folder / reader.SUPERVISOR, root) as writer:
        for record in records:
            writer.write(record)
        seal.write(writer)
    if closed:
        (folder / run_folder.VERDICT).write_text("{}")
    assert clock.machine_id(root) == machine
    return folder
