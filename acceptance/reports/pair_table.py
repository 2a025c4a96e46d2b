"""The table of paths between GPUs, as page and terminal show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.judgement import Judgement
from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.diagnosis import peer_paths
from acceptance.diagnosis.peer_paths import CONTRADICTIONS, PeerPath
from acceptance.diagnosis.transports import pair_links
from acceptance.journal.run import Run
from acceptance.machine.gpu import gpus
from acceptance.reports import languages

CHECK = "link.peers"
TRANSPORT = "transport_faults"
UNKNOWN = "-"
MOST_LINES = 8  # on the terminal; the page has them all


@dataclass(frozen=True, slots=True)
class PairRow:
    """One path as text.

    `slots` are the PCI addresses of the two cards, `driver` is what the driver says of peer access,
    `rates` the cells of `RATES`, `transport` how collectives went, `errors` what the links counted
    in the run. `bad` says that something of the path is wrong, `verdict` what.
    """

    path: str
    joined: str
    driver: str
    slots: tuple[str, str]
    rates: tuple[str, ...]
    transport: str
    errors: str
    verdict: str
    bad: bool


# The rates of a row, in the order of its cells.
RATES = (
    "copy_d2d_write",
    "copy_d2d_read",
    "p2p_write",
    "p2p_staged",
    "collective_send_receive",
    "collective_send_receive_p2p_off",
)


def heads(language: Language) -> tuple[str, ...]:
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


def rows(run: Run, language: Language) -> tuple[PairRow, ...]:
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
) -> PairRow:
    wrong = own is not None and any(one.kind == "fail" for one in own.findings)
    links, told = path.links, own.value if own is not None else None
    driver = UNKNOWN if links.p2p_read is None else links.p2p_read
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
    return PairRow(
        str(path.pair),
        path.joined,
        driver,
        slots,
        tuple(number(path.rates[name]) if name in path.rates else UNKNOWN for name in RATES),
        UNKNOWN if note is None else languages.said(note, language),
        UNKNOWN if path.errors is None else number(path.errors),
        verdict,
        wrong or bool(path.failed),
    )


def lines(run: Run, language: Language) -> tuple[str, ...]:
    """The paths on which something is wrong, a line each; the first of very many."""
    bad = [row for row in rows(run, language) if row.bad]
    found = []
    for row in bad[:MOST_LINES]:
        rates = language.listed(
            f"{head} {rate}"
            for head, rate in zip(heads(language), row.rates, strict=True)
            if rate != UNKNOWN
        )
        told = language("no rate")
        if rates:
            told = language("{rates} GB/s", rates=rates)
        where = language(", ").join((" -> ".join(row.slots), row.joined, row.driver))
        label = language("{label}: {text}", label=language.noted(row.path, where), text=told)
        found.append(language("{label}: {text}", label=label, text=row.verdict))
    if len(bad) > MOST_LINES:
        more = len(bad) - MOST_LINES
        found.append(language.ngettext("{n} more path", "{n} more paths", more))
    return tuple(found)
