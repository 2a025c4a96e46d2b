"""The report of tests between two nodes: what is bad, what is not known, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.fleet.pair_tests import Judged, PairLimits, PairTest, Slow
from acceptance.fleet.views.sentences import TONES
from acceptance.reports.report import Line, Report, Section
from acceptance.wording import words


def why_bad(test: PairTest, judged: Judged, language: Language) -> Iterator[Line]:
    """Why a pair did not pass."""
    yield Line(language("{first} and {second}: bad", **test.pair._asdict()), "bad")
    for node, half in zip(test.pair, test.halves, strict=True):
        wrong = language.ngettext("{n} wrong element", "{n} wrong elements", half.wrong)
        why = None if half.reason is None else words.text(half.reason, language)
        for text in filter(None, (wrong if half.wrong else None, why)):
            yield Line(language("{label}: {text}", label=node, text=text))
    yield from _slow(judged.slow.get(test.pair, ()), language)


def _slow(found: tuple[Slow, ...], language: Language) -> Iterator[Line]:
    for slow in found:
        drop, limit = (f"{100 * share:.0f}" for share in (slow.drop, slow.threshold))
        yield Line(
            language(
                "{rate}: {value} GB/s, {drop} % below the other pairs ({usual} GB/s); limit "
                "{limit} %",
                rate=slow.rate,
                value=number(slow.value),
                usual=number(slow.usual),
                drop=drop,
                limit=limit,
            )
        )


def report(judged: Judged, limits: PairLimits, language: Language) -> Report:
    """What is bad, what is not known, and the closing line."""
    nodes = language.ngettext("{n} node", "{n} nodes", len(judged.nodes))
    tests = language.ngettext("{n} test", "{n} tests", len(judged.tests))
    text = language("{verdict}: {nodes}, {tests}", verdict=judged.verdict, nodes=nodes, tests=tests)
    found = (Section("", [*_lines(judged, limits, language)]),)
    return Report(text, found, Line(text, TONES[judged.verdict]))


def _lines(judged: Judged, limits: PairLimits, _: Language) -> Iterator[Line]:
    blame = judged.blame
    bad = (
        *(_("bad node: {node}", node=node) for node in judged.bad),
        *(_("bad link: {first} - {second}", **pair._asdict()) for pair in blame.links),
    )
    yield from (Line(text, "bad") for text in bad)
    unknown = (
        *(
            _("not judged: {node}: its program never reached another node's", node=node)
            for node in judged.unreached
        ),
        *(
            _("{first} or {second} or their link is bad", **pair._asdict())
            for pair in blame.unattributed
        ),
        *(_("not tested: {node}", node=node) for node in blame.untested),
    )
    yield from (Line(text, "other") for text in unknown)
    for pair, found in judged.apart.items():
        text = _("{first} and {second} are slower than another pair", **pair._asdict())
        yield Line(text, "other")
        yield from _slow(found, _)
    for rate, threshold in judged.too_wide.items():
        text = _(
            "{rate}: the pairs differ too much to judge it: limit by their spread {limit} %, "
            "at most {most} %",
            rate=rate,
            limit=f"{100 * threshold:.0f}",
            most=f"{100 * limits.ceiling.share:.0f}",
        )
        yield Line(text, "other")
    if not judged.compared:
        yield Line(_("no other pair to compare rates with: only the results were verified"))
