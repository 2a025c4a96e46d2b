"""The capacity card on a terminal."""

from __future__ import annotations

from acceptance.core.language import Language
from acceptance.reports import grid
from acceptance.reports.capacity.card import Card, Line, heads, rows
from acceptance.reports.capacity.figures import Figures
from acceptance.reports.lines import HANG
from acceptance.reports.terminal import Terminal


def show(card: Card, figures: Figures, screen: Terminal, language: Language, *, why: bool) -> None:
    """Print the answer, what was asked, the table of memory, and every line.

    With `why`, each line has its formula, inputs, source and assumptions.
    """
    screen.say(card.answer, "bold")
    screen.say(language("machine: {what}", what=card.machine))
    screen.say(language("training: {what}", what=card.asked))
    if card.memory:
        table = [("", row) for row in rows(card, figures.memory, language)]
        grid.show(screen.console, table, head=heads(language), right=1, watched=screen.watched)
    for line in card.lines:
        screen.say(language("{label}: {text}", label=line.title, text=line.text))
        if why:
            _why(line, screen, language)
    screen.say_all(card.besides)
    if not why:
        screen.say(language("`--why` shows formulas, inputs, sources and assumptions"))


def _why(line: Line, screen: Terminal, language: Language) -> None:
    told = language("; ").join(
        language.noted(f"{one.symbol} = {one.text}", one.origin) for one in line.inputs
    )
    for text in (
        language("{label}: {text}", label=line.formula, text=told),
        language("source: {source}; assumes: {what}", source=line.source, what=line.assumes),
    ):
        screen.say(text, indent=HANG)
