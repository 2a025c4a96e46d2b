"""The capacity card on a terminal."""

from __future__ import annotations

from acceptance.core.language import Language
from acceptance.reports import grid
from acceptance.reports.capacity.card import Card, Line, heads, rows
from acceptance.reports.capacity.figures import Figures
from acceptance.reports.lines import HANG
from acceptance.reports.terminal import Terminal


def show(card: Card, figures: Figures, screen: Terminal, language: Language) -> None:
    """Print the machine, the asked training, the table of memory, every line, and what binds."""
    screen.say(language("What this machine trains"), "bold")
    screen.say(card.machine)
    screen.say(language("training: {what}", what=card.asked))
    if card.memory:
        table = [("", row) for row in rows(card, figures.memory, language)]
        grid.show(screen.console, table, head=heads(language), right=1, watched=screen.watched)
    for line in card.lines:
        _line(line, screen, language)
    screen.say_all(card.besides)
    screen.say(card.binds, "bold")


def _line(line: Line, screen: Terminal, language: Language) -> None:
    screen.say(language("{label}: {text}", label=line.title, text=line.text))
    told = language("; ").join(f"{one.symbol} = {one.text} ({one.origin})" for one in line.inputs)
    for text in (
        language("{label}: {text}", label=line.formula, text=told),
        language("source: {source}; assumes: {what}", source=line.source, what=line.assumes),
    ):
        screen.say(text, indent=HANG)
