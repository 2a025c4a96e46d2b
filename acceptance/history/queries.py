"""Questions to a machine's nights: values for the reference, series for the trend, skipped nights.

Pure. `nights` are in the order of recording, whatever the clock said.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from acceptance.core.grouping import grouped
from acceptance.core.machine_facts import KnownChange
from acceptance.history.night import Era, Night, NightMeasurement, PartMeasurement, SeriesKey
from acceptance.history.reference_builder import NightValue
from acceptance.history.trend import TrendPoint, TrendSeries


def night_values(
    nights: Sequence[Night],
    era: Era | None,
    *,
    after: int = 0,
    first: int,
    last: int,
    only: Collection[str] | None = None,
) -> dict[PartMeasurement, tuple[NightValue, ...]]:
    """The nights with which tonight's values may be compared, by part, oldest first.

    Only the `first` and the `last` nights of this era are read; without an era, those of all
    nights, for measurements that do not depend on one. `only` names the measurements needed.

    `after` is the number of nights up to the accepted run's: these are left out, whatever the clock
    said. Also left out are nights whose evidence is not whole, nights that were partial, cut off,
    postponed or salvaged, nights on which somebody else used the GPUs, and runs in an image of the
    user's own. A value outside its past, or that broke its limit, is included and marked: it is
    needed to detect two consecutive nights, and the code that computes a level leaves it out.
    Values within their limits count whatever the night's verdict was: another part's fault does not
    concern them.
    """
    held = [one for one in nights[after:] if one.comparable and era in (None, one.era)]
    needed = [*held[:first], *held[first:][-last:]]
    found: dict[PartMeasurement, dict[int, NightValue]] = {}
    place = {one.run_id: number for number, one in enumerate(needed)}
    for series, measured in _measurements(
        needed, lambda series: only is None or series.measurement in only
    ):
        values = found.setdefault(series.part, {})
        for night, one in measured:
            if one.value is not None:
                values[place[night.run_id]] = NightValue(
                    night.day, one.value, one.again, one.outside, one.unsteady, one.failed
                )
    # nights of a part in another slot are a series of their own
    return {
        part: tuple(value for _, value in sorted(values.items(), key=lambda item: item[0]))
        for part, values in found.items()
        if values
    }


def count_until(nights: Sequence[Night], run_id: str) -> int | None:
    """The number of nights up to a run's, with it; None if it is not recorded."""
    return next(
        (number for number, one in enumerate(nights, start=1) if one.run_id == run_id), None
    )


def last_until(nights: Sequence[Night], day: float) -> int:
    """The number of nights up to the last one that began by `day`; 0 if none did.

    `day` is in days since 1970-01-01. A night whose clock was wrong is outvoted by the others: the
    split is where most clocks agree.
    """
    most = votes = found = 0
    for number, one in enumerate(nights, start=1):
        votes += 1 if one.day <= day else -1
        if votes >= most:
            most, found = votes, number
    return found


def trend_series(
    nights: Sequence[Night],
    eras: Sequence[Era],
    measurement: str | None = None,
    component: str | None = None,
) -> tuple[TrendSeries, ...]:
    """Every measurement's series over these nights; its points have the places of their `eras`.

    `measurement` and `component` are shell patterns. A measurement whose part was replaced has a
    series for each part.
    """
    place = {era: number for number, era in enumerate(eras)}
    known = {one.run_id: (place[one.era], one.comparable) for one in nights}
    found = []
    for series, measured in _measurements(nights, _named(measurement, component)):
        points = []
        for night, one in measured:
            if one.value is not None:
                era, held = known[night.run_id]
                points.append(
                    TrendPoint(
                        night.run_id,
                        night.day,
                        one.value,
                        one.again,
                        one.outside,
                        one.unsteady,
                        held and not one.failed,
                        era,
                    )
                )
        if points:
            found.append(TrendSeries(*series, tuple(points)))
    return tuple(found)


def rows(
    nights: Sequence[Night], measurement: str | None = None, component: str | None = None
) -> Iterator[tuple[object, ...]]:
    """Every measurement with its night, series by series, oldest night first.

    Measurements without a value are included. Columns: run, time (UTC), verdict, profile, why later
    nights are not compared with it (None if they are), era, check, measurement, component, serial,
    unit, value, repeat, outside, unsteady, failed.
    """
    keys = {one.era: one.era.key for one in nights}
    for series, measured in _measurements(nights, _named(measurement, component)):
        for night, one in measured:
            yield (
                *(night.run_id, night.utc, night.verdict, night.profile, night.apart),
                *(keys[night.era], series.check, series.measurement, str(series.component)),
                *(series.serial, series.unit),
                *(one.value, one.again, one.outside, one.unsteady, one.failed),
            )


def skipped_in_a_row(nights: Sequence[Night]) -> int:
    """How many runs since the last whole one found the machine in use and were postponed.

    A run on a part of the machine, or one that was cut off, is no night in place of these.
    """
    count = 0
    for one in reversed(nights):
        if not one.postponed and one.apart not in ("partial", "interrupted"):
            break
        count += one.postponed
    return count


def known_changes(nights: Sequence[Night], birth: str) -> tuple[KnownChange, ...]:
    """The changes since the baseline that the last night has reported.

    `birth` is the id of the baseline's run; empty if that night was compared with another baseline.
    Runs that were partial or cut off, or whose evidence is not whole, do not count.
    """
    for one in reversed(nights):
        if (
            one.reported is not None
            and not one.postponed
            and one.apart in (None, "in-use", "own-image")
        ):
            return one.reported.known if one.reported.birth == birth else ()
    return ()


def _named(measurement: str | None, component: str | None) -> Callable[[SeriesKey], bool]:
    """Whether a series has these names, or its own fit these shell patterns."""

    def fits(name: str, pattern: str | None) -> bool:
        return pattern in (None, name) or fnmatch.fnmatchcase(name, str(pattern))

    return lambda series: (
        fits(series.measurement, measurement) and fits(str(series.component), component)
    )


def _measurements(
    nights: Sequence[Night], wanted: Callable[[SeriesKey], bool]
) -> Iterator[tuple[SeriesKey, Iterable[tuple[Night, NightMeasurement]]]]:
    """The measurements of each wanted series with their nights, in the order of the nights."""
    # Nights that measured the same share one tuple of series, and are read by column.
    groups = grouped((id(night.series), night) for night in nights)
    found = grouped(
        (series, zip(group, column, strict=True))
        for group in groups.values()
        for series, *column in zip(group[0].series, *(one.figures for one in group), strict=True)
        if wanted(series)
    )
    place = {one.run_id: number for number, one in enumerate(nights)}
    for series, some in found.items():
        measured = chain.from_iterable(some)
        yield (
            series,
            measured if len(some) == 1 else sorted(measured, key=lambda one: place[one[0].run_id]),
        )
