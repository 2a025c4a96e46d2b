"""The top of a run's page as one picture to post. Pure.

Lengths are in pixels. A text that is too long for its place is cut.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.language import ENGLISH, Language
from acceptance.diagnosis.gravity import by_gravity
from acceptance.expect import measurements
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.reports import closing, explanation, summary
from acceptance.reports.page import overview, render, run_log
from acceptance.reports.page.gpu_figures import GpuFigures, Reading
from acceptance.reports.page.overview import Overview
from acceptance.reports.page.sections import PageRun, page_run
from acceptance.reports.text import one_line, quoted_code
from acceptance.wording import words

MARGIN, GAP, PAD = 32, 12, 12
COLUMNS, CARD = 4, 275  # cards beside each other, and the width of one of several
LEAST = 626  # of the whole picture
MOST_FINDINGS = 3
_MOST_LINES = 5  # of one text below the cards; of a finding two
_HEAD = 34  # of a card
_LINE, _SMALL = 18, 15  # from one line to the next
_STRIP, _SPOT = 58, 122  # a strip, and with its text
# The mean width of a letter as a share of the size of its font; of a Chinese one.
_NARROW, _WIDE = 0.56, 1.0
_SIGNS = {"pass": "\u2713", "fail": "\u2717", "error": "?", "skip": "?", "warn": "!", "waived": "~"}


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; `kind` are its classes, `size` that of its font."""

    x: float
    y: float
    text: str
    size: float = 13
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `kind` are its classes."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class _Drawing:
    texts: list[Label]
    boxes: list[Box]


def draw(run: Run, sheets: Sequence[Sheet] = (), language: Language = ENGLISH) -> str:
    """The picture as SVG."""
    page = page_run(run, sheets, language)
    found = overview.overview(run, sheets, page.seen, language) or Overview("", (), (), "")
    columns = min(COLUMNS, len(found.gpus))
    width = max(LEAST, 2 * MARGIN + columns * (CARD + GAP) - GAP)
    drawing = _Drawing([], [])
    bottom = _head(drawing, page, found, width)
    bottom = _cards(drawing, found.gpus, CARD if columns > 1 else LEAST - 2 * MARGIN, bottom)
    bottom = _rest(drawing, page, found, width, bottom)
    about = overview.about(run, page.seconds, language)
    return render.template("overview.svg.j2").render(
        language=language,
        title=" · ".join((*_title(run, language), *about)),
        width=width,
        height=math.ceil(bottom + MARGIN / 2),
        texts=drawing.texts,
        boxes=drawing.boxes,
    )


def _title(run: Run, language: Language) -> Iterator[str]:
    first = explanation.of_run(run, language)
    yield run.verdict.verdict
    if first is not None:
        yield first.text


def text_width(text: str, size: float) -> float:
    """About how wide a text is."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (wide * _WIDE + (len(text) - wide) * _NARROW)


def wrapped(text: str, width: float, size: float, most: int) -> list[str]:
    """A text in lines of that width, cut after the last of `most`."""
    lines: list[str] = []
    rest = quoted_code(one_line(text))  # before a line ends within code
    while rest and len(lines) < most:
        length = len(rest)
        while length > 1 and text_width(rest[:length], size) > width:
            length -= max(1, int((text_width(rest[:length], size) - width) / size / 2))
        if length < len(rest) and len(lines) + 1 == most:
            lines.append(rest[: max(1, length - 1)].rstrip() + "\u2026")
            break
        space = rest.rfind(" ", 0, length + 1) if length < len(rest) else -1
        length = space if space > 0.6 * length else length  # Chinese breaks anywhere
        lines.append(rest[:length].rstrip())
        rest = rest[length:].lstrip()
    return lines


def _head(drawing: _Drawing, page: PageRun, found: Overview, width: float) -> float:
    """The verdict, the counts, the machine and its cards; returns where they end."""
    run, language, room = page.run, page.language, width - 2 * MARGIN
    word = run.verdict.verdict
    drawing.texts.append(Label(MARGIN, 62, word, 40, f"strong {word}"))
    drawing.texts.append(Label(width - MARGIN, 62, "rigproof", 18, "strong end soft"))
    y = 90.0
    counts = summary.counts(run.verdict, language)
    first = explanation.of_run(run, language)
    said = first.line(language).replace("`", "") if first else ""
    outcome = language("; ").join((*summary.paperwork(run, first, language), counts))
    about = " · ".join(overview.about(run, page.seconds, language))
    for text, size, kind in (
        (said, 18, f"strong {word}"),
        (outcome, 15, "strong"),
        (about, 13, "soft"),
        (found.models, 18, "strong"),
    ):
        for line in wrapped(text, room, size, _MOST_LINES if text is said else 2):
            drawing.texts.append(Label(MARGIN, y, line, size, kind))
            y += size + 7
        y += 8 if kind == "soft" else 0
    return y - 10


def _cards(drawing: _Drawing, cards: Sequence[GpuFigures], wide: float, top: float) -> float:
    """The cards of all GPUs, their lines at one height; returns where they end."""
    room = wide - 2 * PAD
    notes = [[_notes(one, room) for one in card.readings] for card in cards]
    lines = [max(map(len, row)) for row in zip(*notes, strict=True)]
    heights = [_LINE + _SMALL * count + 7 for count in lines]
    height = _HEAD + sum(heights) + 4
    for place, card in enumerate(cards):
        x = MARGIN + place % COLUMNS * (wide + GAP)
        y = top + place // COLUMNS * (height + GAP)
        right = x + wide - PAD
        drawing.boxes.append(Box(x, y, wide, height, "card"))
        drawing.texts.append(Label(x + PAD, y + 22, card.name, 15, "strong"))
        state = f"{_SIGNS[card.mark]} {card.state}"
        drawing.texts.append(Label(right, y + 22, state, 12, f"strong end {card.mark}"))
        y += _HEAD
        for one, note, tall in zip(card.readings, notes[place], heights, strict=True):
            _reading(drawing, one, note, Box(x + PAD, y, room, 1, "rule"))
            y += tall
    rows = math.ceil(len(cards) / COLUMNS)
    return top + rows * (height + GAP) if cards else top


def _notes(one: Reading, room: float) -> list[str]:
    """The lines below a value; at least one where there is a strip."""
    return wrapped(one.more, room - (_SPOT if one.spot else 0), 11, 2) or ([""] if one.spot else [])


def _reading(drawing: _Drawing, one: Reading, note: Sequence[str], rule: Box) -> None:
    """A line of a card below its rule."""
    x, y, width = rule.x, rule.y, rule.width
    drawing.boxes.append(rule)
    sign = f" {_SIGNS[one.mark]}" if one.mark else ""
    drawing.texts.append(Label(x, y + 16, one.label, 13, "soft"))
    value = Label(x + width, y + 16, f"{one.value}{sign}", 13, f"strong end {one.mark}".rstrip())
    drawing.texts.append(value)
    y += 16 + _SMALL
    for number, line in enumerate(note):
        drawing.texts.append(Label(x, y + number * _SMALL, line, 11, "soft"))
    if one.spot:
        left = x + width - _SPOT + 4
        begin, wide = (round(part * _STRIP / 100, 1) for part in one.spot.bar)
        drawing.boxes.append(Box(left, y - 8, _STRIP, 8, "track"))
        kind = f"bar {one.mark}".rstrip()
        drawing.boxes.append(Box(left + begin, y - 6.5, wide, 5, kind))
        drawing.boxes.append(Box(left + _STRIP / 2 - 0.5, y - 9, 1, 10, "mark"))
        drawing.texts.append(Label(x + width, y, one.spot.text, 11, "end"))


def _rest(drawing: _Drawing, page: PageRun, found: Overview, width: float, top: float) -> float:
    """The other parts, the first findings, how it was measured, and where it came from."""
    room, y = width - 2 * MARGIN, top + 8.0
    for text, size, kind in _lines(page, found):
        y += size + 6
        for line in wrapped(text, room, size, 2 if kind in _SIGNS else _MOST_LINES):
            drawing.texts.append(Label(MARGIN, y, line, size, kind))
            y += size + 3
        y -= size + 3
    return y


def _lines(page: PageRun, found: Overview) -> Iterator[tuple[str, float, str]]:
    run, _ = page.run, page.language
    if closed := run_log.interruption(run.entries):
        told = _.sentences((_("The run broke off."), words.text(closed.detail, _)))
        yield told, 13, "error"
    kind = "fail" if run.verdict.of_kind("fail") else "error"
    findings = by_gravity(
        run.verdict.of_kind(*(("fail",) if kind == "fail" else ("error", "skip"))),
        measurements.shipped().by_name,
    )
    texts = [
        text for entry in closing.entries(findings, page.places, _) for _checks, text in entry.lines
    ]
    for text in texts[:MOST_FINDINGS]:
        yield f"{_SIGNS[kind]} {text}", 13, kind
    if (more := len(texts) - MOST_FINDINGS) > 0:
        yield _.ngettext("{n} more finding", "{n} more findings", more), 13, "soft"
    for name, text in found.lines:
        yield _("{label}: {text}", label=name, text=text), 13, ""
    if found.method:
        yield found.method, 11, "soft"
    known = summary.provenance(run, _)
    version = known.get("rigproof")
    yield (
        " · ".join(filter(None, (version and f"rigproof {version}", run.verdict.run_id))),
        11,
        "soft",
    )
    evidence = known.get("evidence") or _("not sealed")
    yield _("evidence {digest}", digest=evidence), 11, "soft"
