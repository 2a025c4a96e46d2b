"""A machine's nights on the terminal: what changed most first, then every measurement."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.history.trend import TrendReport, TrendRow
from acceptance.reports import grid, sparkline
from acceptance.reports import trend_words as words
from acceptance.reports.glyphs import ASCII
from acceptance.reports.terminal import Terminal

WIDTH = 30  # letters of a sparkline, if there is room
_OTHERS = 90  # columns of everything else
_LEAST = 8  # letters of the shortest useful sparkline


def show(
    report: TrendReport, screen: Terminal, language: Language = ENGLISH, *, one: bool = False
) -> None:
    """Print the nights of a machine.

    `one` says that a measurement was named; the list of what changed most is then left out.
    """
    for line in words.opening(report, language):
        screen.say(line)
    if not one and report.rows:
        changed = report.largest_changes()
        screen.say("")
        if changed:
            screen.say(
                language("What changed most: the last week beside the nights before"), "bold"
            )
            _grid(screen, changed, language, moved=True)
        elif report.can_tell():
            screen.say(
                language("Nothing changed by more than noise in the last week."), "bold green"
            )
        else:
            screen.say(language("There are too few nights to tell what changed."))
    if worn := words.wear_lines(report, language):
        screen.say("")
        screen.say(language("Wear of disks"), "bold")
        for line in worn:
            screen.say(line)
    if report.rows:
        screen.say("")
        screen.say(
            language("All measurements")
            if not one
            else language("Nights of the named measurements"),
            "bold",
        )
        _grid(screen, report.rows, language, moved=False)
    for row in report.rows if one else ():
        for place, changes in row.began:
            point = row.course.points[place]
            where = f"{row.course.measurement} {row.course.component}"
            text = words.changed(changes, language)
            screen.say(
                language(
                    "{where}: another era from {run} on: {changes}",
                    where=where,
                    run=point.run_id,
                    changes=text,
                )
            )


def _grid(screen: Terminal, rows: Sequence[TrendRow], language: Language, *, moved: bool) -> None:
    plain = screen.signs is ASCII
    # A replaced part has a series of its own, and is identified by its serial number.
    names = [(row.course.check, row.course.measurement, row.course.component) for row in rows]
    replaced = (
        {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    )
    head = [*words.head(language), *([language("change")] if moved else []), language("values")]
    width = max(_LEAST, min(WIDTH, screen.console.width - _OTHERS)) if screen.watched else WIDTH
    cells = []
    for row, name in zip(rows, names, strict=True):
        values = [point.value for point in row.course.points]
        drawn = sparkline.line(values, width, plain=plain)
        texts = list(words.cells(row, plain=plain))
        if name in replaced and row.course.serial:
            texts[1] = language.noted(texts[1], row.course.serial)
        style = "yellow" if row.summary.outside else ""
        cells.append((style, (*texts, *([words.share(row)] if moved else []), drawn)))
    grid.show(screen.console, cells, head=head, right=3, watched=screen.watched)
