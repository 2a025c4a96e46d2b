"""A comparison on the terminal: what is worse first, and the closing line last."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.history.comparison import (
    REPORTED_KINDS,
    Comparison,
    ComparisonRow,
    DifferenceKind,
    OutcomeChange,
)
from acceptance.reports import comparison_words as words
from acceptance.reports import grid
from acceptance.reports.terminal import Terminal

_STYLE: dict[DifferenceKind, str] = {
    "worse": "bold red",
    "lost": "bold red",
    "better": "green",
    "gained": "green",
}


def show(
    comparison: Comparison,
    screen: Terminal,
    *,
    everything: bool = False,
    language: Language = ENGLISH,
) -> None:
    """Print a comparison; `everything` also shows the rows within the noise."""
    _grid(screen, [("", row) for row in words.heads(comparison, language)], right=5)
    for line in words.headlines(comparison, language):
        screen.say(line)
    for line in words.opening(comparison, language):
        screen.say(line, "bold yellow")
    letters = [words.letter(place) for place in range(len(comparison.runs))]
    if comparison.outcomes:
        screen.say("")
        screen.say(language("Outcomes that are not the same"), "bold")
        head = ["", language("check"), *letters]
        _grid(screen, [_outcome(one, language) for one in comparison.outcomes], head=head, right=9)
    rows = comparison.rows if everything else comparison.of_kind(*REPORTED_KINDS)
    if rows:
        screen.say("")
        clause = (
            language("All measurements")
            if everything
            else language("Measurements outside the noise")
        )
        screen.say(clause, "bold")
        names = [language("measurement"), language("component"), language("unit")]
        head = ["", *names, *letters, language("noise")]
        _grid(screen, [_row(row, language) for row in rows], head=head, right=4)
        for line in words.bases(comparison, language):
            screen.say(language("noise of {line}", line=line), indent=2)
    if comparison.differences:
        screen.say("")
        screen.say(language("What the runs do not have in common"), "bold")
        cells = [
            ("", (str(one.component), one.name, *(text or words.NONE for text in one.values)))
            for one in comparison.differences
        ]
        _grid(screen, cells, head=["", "", *letters], right=99)
    screen.say("")
    screen.say(
        words.rest(comparison, language)
        if everything
        else language("{rest} (--all shows them)", rest=words.rest(comparison, language))
    )
    style = "red" if comparison.worse else "green"
    if comparison.proves_nothing:
        style = "yellow"
    screen.say(words.closing(comparison, language), f"bold {style}")


def _grid(
    screen: Terminal,
    rows: Sequence[tuple[str, Sequence[str]]],
    *,
    right: int,
    head: Sequence[str] = (),
) -> None:
    grid.show(screen.console, rows, head=head, right=right, watched=screen.watched)


def _outcome(change: OutcomeChange, language: Language) -> tuple[str, Sequence[str]]:
    style = _STYLE.get(change.kind, "")
    name = change.check or language("the whole run")
    return style, (
        words.kind_word(change.kind, language),
        name,
        *(text or words.NONE for text in change.outcomes),
    )


def _row(row: ComparisonRow, language: Language) -> tuple[str, Sequence[str]]:
    mark = words.kind_word(row.kind, language)
    cells = (
        mark,
        row.measurement,
        str(row.component),
        row.unit,
        *words.values(row, language),
        words.allowed(row, language),
    )
    return _STYLE.get(row.kind, ""), cells
