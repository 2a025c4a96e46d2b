"""The table of paths between GPUs, as page and terminal show it."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.core.verdict import Judgement
from acceptance.diagnosis import peer_paths
from acceptance.diagnosis.peer_paths import CONTRADICTIONS, PeerPath
from acceptance.diagnosis.transports import pair_links
from acceptance.journal.run import Run
from acceptance.machine.gpu import gpus
from acceptance.reports import languages
from acceptance.reports.report import NONE, Row, Table

CHECK = "link.peers"
TRANSPORT = "transport_faults"
MOST_LINES = 8  # on the terminal; the page has them all


# The rates of a row, in the order of its cells.
RATES = (
    "copy_d2d_write",
    "copy_d2d_read",
    "p2p_write",
    "p2p_staged",
    "collective_send_receive",
    "collective_send_receive_p2p_off",
)


def table(run: Run, language: Language) -> Table:
    """Every path with all that the run says of it."""
    head = (
        language("path"),
        language("joined by"),
        language("peer access by the driver"),
        *_rates(language),
        language("way of NCCL"),
        language("link errors"),
        language("verdict"),
    )
    return Table(rows(run, language), head, (*range(3, 9), 10), -1)


def _rates(language: Language) -> tuple[str, ...]:
    """The head over each rate of a row."""
    return (
        language("write"),
        language("read"),
        language("P2P on"),
        language("P2P off"),
        language("NCCL"),
        language("NCCL, P2P off"),
    )


def judged(run: Run) -> Iterator[Judgement]:
    """Everything that the run judged."""
    return (one for check in run.verdict.checks for one in check.judged)


def rows(run: Run, language: Language) -> tuple[Row, ...]:
    """Every path between two GPUs of the test; none where the run did not owe that."""
    if all(check.id != CHECK for check in run.plan.checks):
        return ()
    due = gpus(run.inventory, run.plan.gpus)
    links = pair_links(run.inventory, due, ())
    places = {gpu.name: gpu.pci_address for gpu in due}
    found = {(one.due.measurement, one.due.component): one for one in judged(run)}
    return tuple(
        _row(
            path,
            (places[path.pair.first], places[path.pair.second]),
            found.get((CONTRADICTIONS, path.pair)),
            found.get((TRANSPORT, path.pair)),
            language,
        )
        for path in peer_paths.paths(links, due, judged(run))
    )


def _row(
    path: PeerPath,
    slots: tuple[str, str],
    own: Judgement | None,
    transport: Judgement | None,
    language: Language,
) -> Row:
    wrong = own is not None and any(one.kind == "fail" for one in own.findings)
    links, told = path.links, own.value if own is not None else None
    driver = NONE if links.p2p_read is None else links.p2p_read
    if links.p2p_write not in (None, links.p2p_read):
        driver = f"{driver} / {links.p2p_write}"
    if wrong:
        verdict = language("sources contradict each other")
    elif path.failed:
        verdict = language("outside its limit: {names}", names=language.listed(path.failed))
    elif told is None:
        verdict = language("not compared")
    else:
        verdict = language("sound")
    note = transport.note if transport is not None else None
    cells = (
        str(path.pair),
        path.joined,
        driver,
        *(number(path.rates[name]) if name in path.rates else NONE for name in RATES),
        NONE if note is None else languages.said(note, language),
        NONE if path.errors is None else number(path.errors),
        verdict,
    )
    return Row(cells, "bad" if wrong or path.failed else "", {0: " -> ".join(slots)})


def lines(run: Run, language: Language) -> tuple[str, ...]:
    """The paths on which something is wrong, a line each; the first of very many."""
    bad = [row for row in rows(run, language) if row.tone == "bad"]
    found = []
    for row in bad[:MOST_LINES]:
        path, joined, driver, *rates, _way, _errors, verdict = row.cells
        named = zip(_rates(language), rates, strict=True)
        told = language.listed(f"{head} {rate}" for head, rate in named if rate != NONE)
        text = language("{rates} GB/s", rates=told) if told else language("no rate")
        where = language(", ").join((row.below[0], joined, driver))
        label = language("{label}: {text}", label=language.noted(path, where), text=text)
        found.append(language("{label}: {text}", label=label, text=verdict))
    if len(bad) > MOST_LINES:
        more = len(bad) - MOST_LINES
        found.append(language.ngettext("{n} more path", "{n} more paths", more))
    return tuple(found)
