"""report.html: one file, offline, without scripts.

The verdict and the reasons for it come first, then the machine and all measurements.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import jinja2
from markupsafe import Markup

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import quantity
from acceptance.core.record import Table
from acceptance.core.spans import CheckSpans
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.journal.samples import TimedSample
from acceptance.journal.segment import JournalError
from acceptance.reports import drift_words, summary, templating
from acceptance.reports import text as reports_text
from acceptance.reports.locations import find_locations
from acceptance.reports.page import (
    bars,
    cards,
    curves,
    heat,
    machine,
    peaks,
    run_log,
    tables,
    timeline,
    topology,
)
from acceptance.reports.text import one_line

MOST_ROWS = 60  # of one table; the journal has all


def with_code(text: str) -> Markup:
    """A sentence of the catalogue, with text between backticks as code."""
    pieces = enumerate(one_line(text).split("`"))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else piece for place, piece in pieces
    )


@functools.cache  # reading the templates takes longer than filling them in
def _environment() -> jinja2.Environment:
    environment = templating.environment("acceptance.reports.page")
    environment.filters.update(duration=reports_text.duration, coded=with_code)
    environment.globals.update(quantity=quantity, WIDTH=topology.WIDTH, MOST_ROWS=MOST_ROWS)
    return environment


def load() -> None:
    """Read all templates now, so that a later update of rigproof does not mix versions."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def _readable(samples: Iterable[TimedSample], damage: list[str]) -> Iterator[TimedSample]:
    """The samples up to the first that cannot be read.

    The damage is reported: a view of the rest is worth more than none.
    """
    try:
        yield from samples
    except JournalError as error:
        damage.append(f"{error}")


def _words(language: Language) -> dict[str, str]:
    """The words for outcomes, marks of values, and severities."""
    return {
        "pass": language("pass"),
        "fail": language("fail"),
        "error": language("error"),
        "skip": language("skip"),
        "warn": language("warn"),
        "waived": language("waived"),
        "fatal": language("fatal"),
        "warning": language("warning"),
        "info": language("info"),
    }


def render(run: Run, sheets: Sequence[Sheet] = (), language: Language = ENGLISH) -> str:
    """The page as HTML; `sheets` are the model sheets, for the peaks of bars."""
    verdict, inventory = run.verdict, run.observed.inventory
    damage: list[str] = []
    seen = timeline.timeline(run.first.boot_s, _readable(run.samples(), damage), run.seconds)
    known = peaks.peaks(inventory, sheets, language)
    judged, where = cards.by_key(verdict), find_locations(run.observed)
    identities = frozenset(
        name for place in where.found.values() for name in (place.serial, place.uuid) if name
    )

    def told_of(*kinds: str) -> list[cards.FindingCard]:
        return list(cards.cards(verdict.of_kind(*kinds), judged, where, language))

    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            _=language,
            language=language,
            words=_words(language),
            verdict=verdict,
            plan=run.plan,
            closing=summary.closing_line(verdict, language),
            host=verdict.provenance.get("host", language("this machine")),
            began=run_log.moment(run.first.utc),
            seconds=max(run.seconds, seen.ended_s - run.first.boot_s),
            broke_off=run_log.interruption(run.entries),
            failed=told_of("fail"),
            unjudged=told_of("error", "skip"),
            warned=told_of("warn"),
            waived=told_of("waived"),
            parts=list(machine.parts(inventory, language)),
            changed=[drift_words.translate(text, language) for text in verdict.changed],
            gpus=list(machine.gpu_cards(inventory, language)),
            picture=topology.picture(inventory, run.observed.matrix, language),
            ways=heat.way_matrix(run.observed.matrix),
            groups=[
                (check, list(bars.groups(check, known, identities, language)))
                for check in verdict.checks
            ],
            curves=list(curves.curves(seen)),
            cells=curves.cells(seen),
            sampled_s=curves.cells(seen) * seen.width_s,
            cell_s=seen.width_s,
            phases=curves.phases(CheckSpans(run.entries).spans, seen, run.first.boot),
            tables=tables.text_tables(
                entry.body for entry in run.entries if isinstance(entry.body, Table)
            ),
            events=list(run_log.events(run)),
            notes=[*verdict.notes, *run.torn, *damage],
            programs=list(run_log.programs(run.entries)),
        )
    )
