"""The report of a machine's nights: what changed most, then every measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.parts import Component
from acceptance.history import wear
from acceptance.history.night import Night
from acceptance.history.trend import Changes, TrendDirection, TrendReport, TrendRow
from acceptance.history.wear import Wear
from acceptance.reports.page import trends
from acceptance.reports.report import (
    NONE,
    Figure,
    Line,
    Plots,
    Report,
    Row,
    Section,
    Table,
)
from acceptance.reports.text import size

LOAD = "load "  # prefix of an era's fact that is a load's seconds
_DATE = 10  # characters of a time that are its date


def report(
    found: TrendReport,
    language: Language = ENGLISH,
    *,
    one: bool = False,
    plain: bool = False,
    drawn: bool = True,
) -> Report:
    """The report of a machine's nights.

    `one` says that a measurement was named: what changed most is left out then. `plain` is for a
    terminal that cannot draw arrows. Plots are `drawn` for a page.
    """
    first, *more = _opening(found, language)
    sections = [Section("", (Line(first), *(Line(text, "soft") for text in more)))]
    names = Counter(map(_name, found.rows))
    replaced = {name for name, count in names.items() if count > 1}

    def table(rows: Iterable[TrendRow], *more: str) -> Table:
        cells = [_row(row, replaced, language, plain=plain, change=bool(more)) for row in rows]
        return Table(cells, (*_head(language), *more, language("values")), range(3, 11), 8)

    if found.rows and not one:
        if changed := found.largest_changes():
            title = language("What changed most: the last week beside the nights before")
            sections.append(Section(title, (table(changed, language("change")),)))
        elif found.can_tell():
            text = language("Nothing changed by more than noise in the last week.")
            sections.append(Section("", (Line(text, "good"),)))
        else:
            text = language("There are too few nights to tell what changed.")
            sections.append(Section("", (Line(text),)))
    if worn := wear_lines(found, language):
        sections.append(Section(language("Wear of disks"), [*map(Line, worn)]))
    if found.rows:
        named = language("Nights of the named measurements")
        dates = [night.utc[:_DATE] for night in found.shown] or [""]
        plots = Plots(
            table(found.rows),
            [*_figures(found, language)] if drawn else (),
            table(filter(_is_constant, found.rows)),
            trends.width(len(found.shown)),
            (dates[0], dates[-1]),
            [*_eras(found, language)] if one else (),
        )
        sections.append(Section(named if one else language("All measurements"), (plots,)))
    return Report(language("Nights of a machine"), sections)


def _name(row: TrendRow) -> tuple[str, str, Component]:
    return row.series.check, row.series.measurement, row.series.component


def _eras(found: TrendReport, language: Language) -> Iterator[str]:
    """Where another era begins, of every series."""
    for row in found.rows:
        for place, changes in row.began:
            yield language(
                "{where}: another era from {run} on: {changes}",
                where=f"{row.series.measurement} {row.series.component}",
                run=row.series.points[place].run_id,
                changes=_era(changes, language),
            )


def _figures(found: TrendReport, language: Language) -> Iterator[Figure]:
    """The plots of all series that changed, or are no count."""
    places = {night.run_id: place for place, night in enumerate(found.shown)}
    for row in found.rows:
        if not _is_constant(row):
            series, told = row.series, row.summary
            about = language.ngettext(
                "median {median} {unit}, MAD {mad}; last {last}; {n} night, {outside} outside",
                "median {median} {unit}, MAD {mad}; last {last}; {n} nights, {outside} outside",
                told.nights,
                median=_number(told.median),
                unit=series.unit,
                mad=_number(told.deviation),
                last=_number(told.last),
                outside=told.outside,
            )
            notes = [
                f"{series.points[place].run_id}: {_era(changes, language)}"
                for place, changes in row.began
            ]
            name = f"{series.measurement} {series.component}"
            plot = trends.draw(row, places)
            yield Figure(series.check, name, series.serial or "", about, plot, notes)


def _is_constant(row: TrendRow) -> bool:
    """Whether a row is a count that was the same on every night, which needs no plot.

    A value that was outside, or broke a limit, is drawn.
    """
    points = row.series.points
    values = {value for point in points for value in (point.value, point.again)} - {None}
    same = row.series.unit == "count" and len(values) == 1
    return same and all(point.held and not point.outside for point in points)


def _number(value: float | None) -> str:
    return NONE if value is None else number(value)


def _opening(report: TrendReport, language: Language) -> list[str]:
    """The opening lines: the machine, its nights, and their verdicts."""
    lines = [
        language(
            "machine {id}: {nights} recorded",
            id=report.machine_id,
            nights=_nights(report.recorded, language),
        )
    ]
    if report.shown:
        first, last = report.shown[0], report.shown[-1]
        dates = {"first": first.utc[:_DATE], "last": last.utc[:_DATE]}
        if report.recorded > len(report.shown):
            shown = _nights(len(report.shown), language)
            lines.append(
                language("showing the last {nights}, from {first} to {last}", nights=shown, **dates)
            )
        else:
            lines.append(language("from {first} to {last}", **dates))
        lines.append(_verdicts(report, language))
        verdict = _verdict(last, language)
        if report.headline is not None:
            verdict = language("{label}: {text}", label=verdict, text=report.headline)
        lines.append(language("the last run: {run}: {verdict}", run=last.run_id, verdict=verdict))
    if report.baseline:
        lines.append(language("accepted as the baseline: {run}", run=report.baseline))
    if report.others:
        machines = language.listed(report.others)
        lines.append(
            language(
                "other machines with a history here: {machines} (--machine-id shows one)",
                machines=machines,
            )
        )
    return lines


def _nights(count: int, language: Language) -> str:
    return language.ngettext("{n} night", "{n} nights", count)


def _verdicts(report: TrendReport, language: Language) -> str:
    """The verdicts of the shown nights, counted."""
    order = {"PASS": 0, "FAIL": 1, "UNJUDGED": 2}
    nights = sorted(
        report.shown,
        key=lambda night: (order[night.verdict], night.postponed, night.apart == "partial"),
    )
    found = Counter(_verdict(night, language) for night in nights)
    return language(", ").join(f"{count} {way}" for way, count in found.items())


def _verdict(night: Night, language: Language) -> str:
    """The verdict of a night, and whether its run was partial."""
    if night.postponed and night.verdict == "UNJUDGED":
        return language("skipped, the machine was in use")
    if night.apart == "partial":
        return language("{verdict} ({scope})", verdict=night.verdict, scope=language("partial"))
    return night.verdict


def _arrow(trend: TrendDirection | None, *, plain: bool) -> str:
    """A trend as one sign; `plain` is for a terminal that cannot draw arrows."""
    signs = dict(zip(("up", "down", "level", None), "^v=-" if plain else "↑↓→-", strict=True))
    return signs[trend]


def _head(language: Language) -> tuple[str, ...]:
    return (
        language("measurement"),
        language("component"),
        language("unit"),
        language("nights"),
        language("median"),
        "MAD",
        language("last"),
        language("trend"),
        language("outside"),
    )


def _row(
    row: TrendRow,
    replaced: Container[object],
    language: Language,
    *,
    plain: bool,
    change: bool,
) -> Row:
    """One series as a row; with `change`, that of the last week too.

    A replaced part has a series of its own, and is identified by its serial number.
    """
    found, series = row.summary, row.series
    where = str(series.component)
    if _name(row) in replaced and series.serial:
        where = language.noted(where, series.serial)
    cells = (
        series.measurement,
        where,
        series.unit,
        str(found.nights),
        *map(_number, (found.median, found.deviation, found.last)),
        _arrow(found.trend if row.comparable else None, plain=plain),
        str(found.outside or ""),
        *((_share(row),) if change else ()),
    )
    values = [point.value for point in series.points]
    return Row(cells, "other" if found.outside else "", values=values)


def _share(row: TrendRow) -> str:
    """The change of the last nights against those before, as a share if possible."""
    found = row.summary
    if found.change is None or found.before is None:
        return NONE
    if not found.before:
        return f"{found.change:+g}"
    return f"{100 * found.change / abs(found.before):+.1f} %"


def wear_lines(report: TrendReport, language: Language = ENGLISH) -> list[str]:
    """How long each disk lasts at the pace of the nights, where they tell it."""
    return [_wear(row, found, language) for row, found in wear.paces(report.rows)]


def _wear(row: TrendRow, found: Wear, language: Language) -> str:
    series = row.series
    values = {
        "disk": language.noted(str(series.component), series.serial)
        if series.serial
        else str(series.component),
        "used": number(round(100 * found.used, 1)),
        "days": f"{found.days:.0f}",
        "least": f"{found.least_years:.3g}",
    }
    if found.used >= 1.0:
        return language(
            "{disk}: {used} % of its rated life used: the maker promises nothing beyond 100 %",
            **values,
        )
    if found.years is None:
        return language(
            "{disk}: {used} % of its rated life used, nothing counted in these {days} days: more "
            "than {least} years left at this pace",
            **values,
        )
    return language(
        "{disk}: {used} % of its rated life used, {pace} % a year at the pace of these {days} "
        "days: about {years} years left, at least {least}",
        pace=f"{100 * found.per_year:.3g}",
        years=f"{found.years:.3g}",
        **values,
    )


def _era(changes: Changes, language: Language) -> str:
    """The differences between two eras in words."""
    return language("; ").join(
        _changed(name, before, after, language) for name, before, after in changes
    )


def _changed(name: str, before: str | None, after: str | None, language: Language) -> str:
    words = {
        "driver": language("driver"),
        "image": language("image"),
        "image_versions": language("versions in the image"),
        "profile": language("profile"),
        "station": language("station"),
    }
    load = name.removeprefix(LOAD)
    what = words.get(name, language("time of {load}", load=load) if load != name else name)
    text = f"{before or NONE} -> {after or NONE}"
    return language("{label}: {text}", label=what, text=text)


def prune_lines(
    folders: Sequence[tuple[str, int]], nights: int, left: int, language: Language = ENGLISH
) -> Iterator[str]:
    """What was removed: folders of runs with their bytes, and the values of old nights.

    The last line is the size of the remaining runs.
    """
    yield from (
        language("removed {name} ({size})", name=name, size=size(held)) for name, held in folders
    )
    if nights:
        yield language.ngettext(
            "the values of {n} night were removed from the history",
            "the values of {n} nights were removed from the history",
            nights,
        )
    if not folders and not nights:
        yield language("nothing to remove")
    yield language("the runs that stay hold {size}", size=size(left))
