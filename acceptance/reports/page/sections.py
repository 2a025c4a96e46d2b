"""The sections of a run's page, in order: a template each, and a function that fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.language import Language
from acceptance.core.message import Message
from acceptance.core.spans import CheckSpans
from acceptance.core.verdict import Judgement
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.journal.samples import TimedSample
from acceptance.journal.segment import JournalError
from acceptance.reports import languages, pair_table, summary, verified_load
from acceptance.reports.capacity import card, figures
from acceptance.reports.capacity import report as capacity_report
from acceptance.reports.capacity.figures import Question
from acceptance.reports.locations import Locations, find_locations
from acceptance.reports.page import (
    bars,
    cards,
    curves,
    heat,
    machine,
    overview,
    run_log,
    storage,
    tables,
    timeline,
    topology,
    training,
)
from acceptance.reports.page.cards import MeasurementKey
from acceptance.reports.page.timeline import Timeline
from acceptance.reports.report import Line, Picture
from acceptance.wording import words


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run, with the language of its page and what several sections share.

    `sheets` are the model sheets. `seen` are the GPUs' samples over time; `damage` says why they
    end early, if they do.
    """

    run: Run
    language: Language
    sheets: Sequence[Sheet]
    seen: Timeline
    damage: tuple[Message, ...]
    places: Locations
    judged: Mapping[MeasurementKey, Judgement]

    @property
    def seconds(self) -> float:
        """How long the run went on by its records and its samples."""
        return max(self.run.seconds, self.seen.ended_s - self.run.first.boot_s)


@dataclass(frozen=True, slots=True)
class Content:
    """What one section of a page shows: its title, and the values of its template by name."""

    title: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page.

    `id` is its anchor. `content` gives what it shows, None where it has nothing to show: it is left
    out then. `listed` says whether the contents at the top of the page have it.
    """

    id: str
    template: str
    content: Callable[[PageRun], Content | None]
    listed: bool = True


def page_run(run: Run, sheets: Sequence[Sheet], language: Language) -> PageRun:
    """A run as its sections take it."""
    damage: list[Message] = []
    seen = timeline.timeline(run.first.boot_s, _readable(run.samples(), damage), run.seconds)
    places, judged = find_locations(run), cards.by_key(run.verdict)
    return PageRun(run, language, sheets, seen, tuple(damage), places, judged)


def _readable(samples: Iterable[TimedSample], damage: list[Message]) -> Iterator[TimedSample]:
    """The samples up to the first that cannot be read.

    The damage is reported: a view of the rest is worth more than none.
    """
    try:
        yield from samples
    except JournalError as error:
        damage.append(error.message)


def _cards(page: PageRun, title: str, *kinds: str) -> Content | None:
    findings = page.run.verdict.of_kind(*kinds)
    found = list(cards.cards(findings, page.judged, page.places, page.language))
    return Content(title, {"found": found}) if found else None


def top(page: PageRun) -> Content | None:
    """The figures of each GPU that builders compare, and a line for each other part."""
    found = overview.overview(page.run, page.sheets, page.seen, page.language)
    return Content(found.models, {"top": found}) if found else None


def failed(page: PageRun) -> Content | None:
    """Every failure."""
    return _cards(page, page.language("What failed"), "fail")


def unjudged(page: PageRun) -> Content | None:
    """Errors, and skips that nobody waived."""
    return _cards(page, page.language("What could not be judged"), "error", "skip")


def warned(page: PageRun) -> Content | None:
    """Every warning."""
    return _cards(page, page.language("Warnings"), "warn")


def waived(page: PageRun) -> Content | None:
    """What a waiver accepted."""
    return _cards(page, page.language("Waived"), "waived")


def machine_as_found(page: PageRun) -> Content:
    """The machine's parts, what changed since the baseline, and the topology."""
    language, inventory = page.language, page.run.inventory
    matrix = page.run.matrix
    values = {
        "parts": [
            *machine.fittings(inventory, language),
            *(
                (language("filesystem of {path}", path=one.path), storage.told(one, language))
                for one in storage.scratches(page.run)
            ),
        ],
        "changed": [words.message(one, language) for one in page.run.verdict.changed],
        "gpus": list(machine.gpu_cards(inventory, language)),
        "picture": topology.picture(inventory, matrix, language),
        "ways": heat.way_matrix(matrix),
    }
    return Content(language("The machine as found"), values)


def measurements(page: PageRun) -> Content:
    """Every measurement of every check beside its limit."""
    known = bars.peaks(page.run.inventory, page.sheets, page.language)
    identities = frozenset(
        name for place in page.places.found.values() for name in (place.serial, place.uuid) if name
    )
    groups = [
        (check, list(bars.groups(check, known, identities, page.language)))
        for check in page.run.verdict.checks
    ]
    return Content(page.language("Everything measured"), {"groups": groups})


def pairs(page: PageRun) -> Content | None:
    """What the run says of each path between two GPUs, as one table with its heat maps."""
    language, found = page.language, pair_table.table(page.run, page.language)
    if not found.rows:
        return None
    judged = list(pair_table.judged(page.run))
    maps = [
        (name, heat.pairs(one for one in judged if one.due.measurement == name))
        for name in ("p2p_write", "collective_send_receive")
    ]
    about = language(
        "Each row is one direction. Rates in GB/s: write and read by nvbandwidth, P2P on and off "
        "by p2pBandwidthLatencyTest, NCCL as it comes and with P2P off."
    )
    picture = Picture("pair_maps.html.j2", {"maps": [one for one in maps if one[1] is not None]})
    return Content(language("Paths between GPUs"), {"parts": (Line(about, "soft"), picture, found)})


def telemetry(page: PageRun) -> Content | None:
    """The GPUs' temperature, power and clock over the run."""
    run, seen = page.run, page.seen
    drawn = list(curves.curves(seen))
    if not drawn:
        return None
    values = {
        "curves": drawn,
        "cells": curves.cells(seen),
        "sampled_s": curves.cells(seen) * seen.width_s,
        "cell_s": seen.width_s,
        "phases": curves.phases(CheckSpans(run.entries).spans, seen, run.first.boot),
        "broke_off": run_log.interruption(run.entries),
    }
    return Content(page.language("Over time"), values)


def pulses(page: PageRun) -> Content | None:
    """Power and clock in the first wave of the power steps."""
    drawn = [
        (one, one.step and words.message(one.step, page.language))
        for one in curves.waves(page.run.entries)
    ]
    return Content(page.language("Power steps"), {"waves": drawn}) if drawn else None


def tested_filesystems(page: PageRun) -> Content | None:
    """What was written to the tested filesystems and read from them, and how fast."""
    found = list(storage.filesystems(page.run, page.language))
    return Content(page.language("Storage"), {"filesystems": found}) if found else None


def trained(page: PageRun) -> Content | None:
    """Layers, steps, digests and parallel training."""
    run, language = page.run, page.language
    recorded = training.tables(run)
    values = {
        "rates": list(training.rates(run)),
        "digests": list(training.digests(recorded, language)),
        "parallel": training.parallel(recorded, language),
        "grids": list(training.grids(recorded, language)),
        "TOP": training.TOP,
        "one": round(100 - 100 / training.TOP, 1),
    }
    shown = any(values[name] for name in ("rates", "digests", "parallel", "grids"))
    return Content(language("Training"), values) if shown else None


def capacity(page: PageRun) -> Content | None:
    """What the machine trains, for a model that stands as an example."""
    found = figures.measured(page.run, page.sheets)
    if not found.gpus or not (found.product or found.step):
        return None
    made = card.card(found, Question(), page.language)
    other = page.language(
        "For another model type `rigproof capacity RUN --parameters 13B --tokens 1T` (`--help` "
        "lists all options)."
    )
    parts = capacity_report.parts(made, found.memory, page.language, why=True)
    return Content(page.language("What this machine trains"), {"parts": [*parts, Line(other)]})


def text_tables(page: PageRun) -> Content | None:
    """The tables that the checks recorded, but for those that are drawn."""
    recorded = (entry.body for entry in page.run.entries if isinstance(entry.body, Table))
    drawn = {curves.TABLE, *(storage.DRAWN if storage.scratches(page.run) else ())}
    found = tables.text_tables(
        (one for one in recorded if one.name not in drawn and not training.is_drawn(one)),
        page.language,
    )
    return Content(page.language("Tables"), {"parts": found}) if found else None


def events(page: PageRun) -> Content | None:
    """What the kernel and the driver reported during the run."""
    found = [
        (one, languages.said(one.event.meaning, page.language)) for one in run_log.events(page.run)
    ]
    title = page.language("What the machine reported by itself")
    return Content(title, {"events": found}) if found else None


def untold(page: PageRun) -> Content:
    """What the run cannot tell, its notes, and the waivers."""
    run = page.run
    values = {
        "plan": run.plan,
        "cannot_detect": [languages.said(one, page.language) for one in run.plan.cannot_detect],
        "not_tested": [words.text(one, page.language) for one in run.plan.not_tested],
        "notes": [
            *(words.message(one, page.language) for one in (*run.notes, *run.torn, *page.damage)),
        ],
        "stale_waivers": [
            words.message(one, page.language) for one in summary.stale_waivers(run.verdict)
        ],
    }
    return Content(page.language("What this run cannot tell"), values)


def provenance(page: PageRun) -> Content:
    """What was tested, versions, host, image, and the programs that were run."""
    values = {
        "verdict": page.run.verdict,
        "shortened": summary.reductions(page.run.verdict.shortened, page.language),
        "verified": list(verified_load.lines(page.run, page.language)),
        "provenance": summary.provenance(page.run, page.language),
        "spoken": page.run.seal.spoken,
        "programs": list(run_log.programs(page.run.entries)),
    }
    return Content(page.language("Where this came from"), values)


SECTIONS = (
    Section("overview", "overview.html.j2", top, listed=False),
    Section("failed", "cards.html.j2", failed),
    Section("unjudged", "cards.html.j2", unjudged),
    Section("warned", "cards.html.j2", warned, listed=False),
    Section("waived", "cards.html.j2", waived, listed=False),
    Section("capacity", "parts_section.html.j2", capacity),
    Section("machine", "machine.html.j2", machine_as_found),
    Section("pairs", "parts_section.html.j2", pairs),
    Section("measurements", "measurements.html.j2", measurements),
    Section("telemetry", "telemetry.html.j2", telemetry),
    Section("train", "power_pulses.html.j2", pulses),
    Section("training", "training.html.j2", trained),
    Section("storage", "storage.html.j2", tested_filesystems),
    Section("tables", "parts_section.html.j2", text_tables),
    Section("events", "events.html.j2", events, listed=False),
    Section("untold", "untold.html.j2", untold),
    Section("provenance", "provenance.html.j2", provenance),
)
