"""The report of the capacity card."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.language import Language
from acceptance.reports.capacity.amounts import amount, count
from acceptance.reports.capacity.card import Card, MemoryRow
from acceptance.reports.capacity.card import Line as CardLine
from acceptance.reports.report import Answer, Line, Part, Row, Table


def parts(card: Card, memory: float | None, language: Language, *, why: bool) -> Iterator[Part]:
    """The answer, what was asked, the table of memory, and every line.

    `memory` is that of each GPU. With `why`, each line has its formula, inputs, source and
    assumptions.
    """
    yield Line(card.answer, "strong")
    yield Line(language("machine: {what}", what=card.machine))
    yield Line(language("training: {what}", what=card.asked))
    yield from map(Line, card.besides)
    if card.memory:
        rows = [_row(row, memory, language) for row in card.memory]
        yield Table(rows, _head(language), range(1, 8), -1, language("Memory"))
    for line in card.lines:
        yield Answer(line.title, line.text, tuple(_why(line, language)) if why else ())


def _row(row: MemoryRow, memory: float | None, language: Language) -> Row:
    if memory is None or row.checkpointed > memory:
        fits = language("no")
    else:
        fits = language("with checkpointing") if row.kept > memory else language("yes")
    sizes = (amount(size, "B", language) for size in (row.states, row.kept, row.checkpointed))
    largest = (row.bytes_a_parameter, row.largest, row.largest_lean)
    name = f"ZeRO-{row.stage}" if row.stage else language("none")
    return Row((name, *(count(one, language) for one in largest), *sizes, fits))


def _head(language: Language) -> tuple[str, ...]:
    return (
        language("sharding"),
        language("bytes a parameter on each GPU"),
        language("largest model"),
        language("largest at 12 bytes"),
        language("the requested model on each GPU"),
        language("with activations"),
        language("with checkpointing"),
        language("fits"),
    )


def _why(line: CardLine, language: Language) -> Iterator[str]:
    known = language("; ").join(
        language.noted(f"{one.symbol} = {one.text}", one.origin) for one in line.inputs
    )
    yield language("{label}: {text}", label=f"`{line.formula}`", text=known)
    yield language("source: {source}; assumes: {what}", source=line.source, what=line.assumes)
