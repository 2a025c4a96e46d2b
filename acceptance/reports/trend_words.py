"""The words of a trend report for page and terminal: heads, cells, and changes of era."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.history import wear
from acceptance.history.trend import Changes, TrendDirection, TrendNight, TrendReport, TrendRow
from acceptance.history.wear import Wear
from acceptance.reports.text import size

NONE = "-"  # an empty cell
LOAD = "load "  # prefix of an era's fact that is a load's seconds
_DATE = 10  # characters of a time that are its date


def opening(report: TrendReport, language: Language = ENGLISH) -> list[str]:
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
        lines.append(verdicts(report, language))
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


def verdicts(report: TrendReport, language: Language = ENGLISH) -> str:
    """The verdicts of the shown nights, counted."""
    order = {"PASS": 0, "FAIL": 1, "UNJUDGED": 2}
    nights = sorted(
        report.shown,
        key=lambda night: (order[night.verdict], night.postponed, night.apart == "partial"),
    )
    found = Counter(_verdict(night, language) for night in nights)
    return language(", ").join(f"{count} {way}" for way, count in found.items())


def _verdict(night: TrendNight, language: Language) -> str:
    """The verdict of a night, and whether its run was partial."""
    if night.postponed and night.verdict == "UNJUDGED":
        return language("skipped, the machine was in use")
    if night.apart == "partial":
        return language("{verdict} ({scope})", verdict=night.verdict, scope=language("partial"))
    return night.verdict


def arrow(trend: TrendDirection | None, *, plain: bool) -> str:
    """A trend as one sign; `plain` is for a terminal that cannot draw arrows."""
    if trend is None:
        return NONE
    drawn: dict[TrendDirection, str] = (
        {"up": "^", "down": "v", "level": "="} if plain else {"up": "↑", "down": "↓", "level": "→"}
    )
    return drawn[trend]


def head(language: Language = ENGLISH) -> tuple[str, ...]:
    """The column heads for `cells`."""
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


def cells(row: TrendRow, *, plain: bool) -> tuple[str, ...]:
    """One series as cells."""
    summary = row.summary
    values = (summary.median, summary.deviation, summary.last)
    median, deviation, last = (NONE if value is None else number(value) for value in values)
    trend = arrow(summary.trend if row.comparable else None, plain=plain)
    outside = str(summary.outside) if summary.outside else ""
    return (
        row.course.measurement,
        str(row.course.component),
        row.course.unit,
        str(summary.nights),
        median,
        deviation,
        last,
        trend,
        outside,
    )


def share(row: TrendRow) -> str:
    """The change of the last nights against those before, as a share if possible."""
    summary = row.summary
    if summary.change is None or summary.before is None:
        return NONE
    return (
        f"{100 * summary.change / abs(summary.before):+.1f} %"
        if summary.before
        else f"{summary.change:+g}"
    )


def wear_lines(report: TrendReport, language: Language = ENGLISH) -> list[str]:
    """How long each disk lasts at the pace of the nights, where they tell it."""
    return [_wear(row, found, language) for row, found in wear.paces(report.rows)]


def _wear(row: TrendRow, found: Wear, language: Language) -> str:
    course = row.course
    values = {
        "disk": language.noted(str(course.component), course.serial)
        if course.serial
        else str(course.component),
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


def changed(changes: Changes, language: Language = ENGLISH) -> str:
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
    for name, held in folders:
        yield language("removed {name} ({size})", name=name, size=size(held))
    if nights:
        yield language.ngettext(
            "the values of {n} night were removed from the history",
            "the values of {n} nights were removed from the history",
            nights,
        )
    if not folders and not nights:
        yield language("nothing to remove")
    yield language("the runs that stay hold {size}", size=size(left))
