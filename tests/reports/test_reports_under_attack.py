"""Every report, with hostile text in every place of a run that text from outside can stand in.

What a report may do to its reader is held against a twin: the same run with harmless text of as
many lines in the same place. The same elements, the same attributes, as many lines; and no
character that steers a terminal or hides from the eye. RIGPROOF_ATTACKS=N in the environment tries
N times as many texts.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import hostile
import jenkins_schema
import msgspec
import pytest
import samples
from cases import each
from drawn import Watched
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml import html as lxml_html
from rich.console import Console
from thoroughness import ALL, some

from acceptance.core.evidence import Observed
from acceptance.core.language import ENGLISH
from acceptance.core.message import Listed, Message, Quantity
from acceptance.core.parts import Gpu
from acceptance.core.record import Body, Measured, Note, RunStarted
from acceptance.expect import gpu_limits
from acceptance.reports import junit, verdict_json
from acceptance.reports.dashboard import Dashboard
from acceptance.reports.gauges import Gauges
from acceptance.reports.margins import Margins
from acceptance.reports.page import render
from acceptance.reports.progress import RunProgress
from acceptance.reports.terminal import Terminal
from acceptance.reports.text import UNICODE

many = settings(
    max_examples=20 * hostile.ATTACKS if ALL or hostile.ATTACKS > 1 else 4,
    deadline=None,
    derandomize=hostile.ATTACKS == 1,
    suppress_health_check=list(HealthCheck),
)
everywhere: str | None = None


def on_screen(bodies: Sequence[Body], *, watched: bool = False) -> str:
    """All that a run prints: the plan, each record, and the closing block."""
    out = Watched() if watched else StringIO()
    environment = {"TERM": "xterm-256color", "COLUMNS": "100"}
    terminal = Terminal(
        Console(file=out, highlight=False, _environ=environment, force_terminal=watched or None)
    )
    found = samples.run(bodies)
    plan = next(body for body in bodies if isinstance(body, RunStarted)).plan
    seen = next(body for body in bodies if isinstance(body, Observed))
    terminal.table("\n".join("  ".join(row) for row in seen.matrix))
    terminal.plan(plan, "a minute", details=True)
    terminal.start(plan)
    for entry in found.entries:
        terminal.entry(entry)
    terminal.stop()
    terminal.verdict(found, [f"/runs/{found.verdict.run_id}/report.html"])
    return out.getvalue()


def elements(root: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """A tree's elements in order, each with those of its attributes that hold
    no text from outside.
    """
    for element in root.iter():
        kept = ("class", "scope", "role", "tabindex", "type", "rowspan")
        yield (
            str(element.tag),
            {name: element.get(name) if name in kept else "" for name in element.attrib},
        )


def assert_valid_junit(data: bytes, twin: bytes) -> None:
    assert jenkins_schema.faults(data) == []
    root = etree.fromstring(data)
    assert list(elements(root)) == list(elements(etree.fromstring(twin)))
    assert not hostile.HARMFUL.search(data.decode("utf-8"))
    for element in root.iter():
        assert all(len(value) < 2_100 for value in element.attrib.values())
        assert all(
            len(name) < 256 for name in (element.get("name", ""), element.get("classname", ""))
        )
    attached = re.findall(r"\[\[ATTACHMENT\|.*", "\n".join(root.itertext()))
    assert all(
        re.fullmatch(r"\[\[ATTACHMENT\|/runs/run-1/((?!\]\]|\.\.).)*\]\]", line)
        for line in attached
    ), attached


def assert_inert_page(text: str, twin: str) -> None:
    """Text from outside becomes no element; what it has between backticks stands as code."""
    shown, meant = (
        [one for one in elements(lxml_html.document_fromstring(page)) if one[0] != "code"]
        for page in (text, twin)
    )
    assert shown == meant
    assert not hostile.HARMFUL.search(text)
    text.encode("utf-8")


def assert_calm_screen(text: str, twin: str) -> None:
    assert not hostile.HARMFUL.search(text)
    lines = text.split("\n")
    assert len(lines) == len(twin.split("\n"))
    assert all(len(line) < 2_600 for line in lines)


def assert_kept(data: bytes, twin: bytes) -> None:
    """verdict.json: JSON in UTF-8 of the same shape, with nothing in it that a
    screen would obey.
    """

    def shape(value: object) -> object:
        if isinstance(value, dict):
            return [shape(one) for one in value.values()]
        return [shape(one) for one in value] if isinstance(value, list) else type(value)

    assert shape(json.loads(data.decode("utf-8"))) == shape(json.loads(twin))
    assert not hostile.HARMFUL.search(data.decode("utf-8"))


def views(text: str, place: str | None) -> tuple[bytes, str, str, bytes]:
    """junit.xml, report.html, all that is printed, and verdict.json."""
    bodies = hostile.attack(text, place)
    found = samples.run(bodies)
    page = render.render(samples.with_samples(found), gpu_limits.sheets())
    return junit.render(found), page, on_screen(bodies), verdict_json.render(found)


twins = functools.lru_cache(maxsize=512)(views)


def assert_unharmed(text: str, place: str | None) -> None:
    xml, shown, printed, content = views(text, place)
    # With a letter after it, as the mark stands after the text: a line that is begun is a line.
    twin = twins(hostile.twin(f"{text}."), place)
    assert_valid_junit(xml, twin[0])
    assert_inert_page(shown, twin[1])
    assert_calm_screen(printed, twin[2])
    assert_kept(content, twin[3])


def test_every_place_of_every_record_is_attacked() -> None:
    assert hostile.places_by_type() <= set(hostile.PLACES)
    assert len(hostile.PLACES) > 80


# A pattern of components is attacked alone; each other place is attacked with all as well.
@each("place", [everywhere, "run-started.plan.waivers[].component", *some(hostile.FREE, 8)])
def test_no_place_carries_harm(place: str | None) -> None:
    assert_unharmed(hostile.EVERYTHING, place)


@many
@given(hostile.texts, st.sampled_from([everywhere, *hostile.FREE]))
def test_no_text_does_harm(text: str, place: str | None) -> None:
    assert_unharmed(text, place)


@each("text", some(hostile.FRAGMENTS))
def test_each_text_is_harmless_in_all_places_at_once(text: str) -> None:
    assert_unharmed(text, everywhere)


@each("place", sorted(hostile.REFUSED))
def test_what_no_record_may_hold_is_refused_on_reading(place: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        hostile.attack("x", place)


@each("flood", some(list(hostile.FLOODS), 2))
def test_megabytes_in_every_place_make_no_megabytes_of_report(flood: str) -> None:
    """Of some 200 texts each."""
    data, shown, printed, _ = views(hostile.FLOODS[flood][:100_000], everywhere)
    assert jenkins_schema.faults(data) == []
    assert (len(data) < 2_000_000, len(shown.encode()) < 2_000_000) == (True, True)
    assert len(printed.encode()) < 1_000_000


@each(
    "place",
    some(
        ["measured.note", "check-ended.message", "event.text", "note.text", "run-ended.detail"], 2
    ),
)
def test_megabytes_in_one_place_add_little(place: str) -> None:
    plain, *floods = (
        [len(view) for view in views(text, place)]
        for text in ("plain", hostile.FLOODS["letters"], hostile.FLOODS["lines"])
    )
    for flooded in floods:
        more = [after - before for before, after in zip(plain, flooded, strict=True)]
        assert max(more[:3]) < 50_000  # verdict.json is for programs, and holds all


def test_what_a_reader_can_see_survives() -> None:
    text = "a]]>b <b> & \U0001d558 \"both\" 'quotes' {{ 7*7 }} [bold]x[/] %s"
    said = f"{text}attackgpu7: no check of this plan loads it"
    data, shown, printed, content = views(text, "run-started.plan.gaps[]")
    failure = etree.fromstring(data).find(".//testcase[@name='the whole run']/failure")
    assert said in failure.text
    assert said in "".join(lxml_html.document_fromstring(shown).itertext())
    assert f"UNJUDGED run: {said}\n" in printed
    assert said in {row["text"] for row in json.loads(content)["unjudged"]}


# Our own colours and those of the bar (rich keeps a style in the depth of the terminal it first
# drew it for), and what the moving line needs: the cursor hidden, up, shown, a line wiped, a
# carriage return.
OWN = re.compile(
    r"\x1b\[(0|1|2|3[0-79]|9[0-7]|1;3[0-79]|38;5;\d+|38;2;\d+;\d+;\d+)m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r",
)


@pytest.mark.parametrize("text", [hostile.EVERYTHING, "a\n" * 5_000], ids=["everything", "lines"])
def test_a_coloured_terminal_gets_our_own_sequences_alone(text: str) -> None:
    shown = on_screen(hostile.attack(text, everywhere), watched=True)
    assert "\x1b[1;31m" in shown
    assert not hostile.HARMFUL.search(OWN.sub("", shown))
    assert shown.count("\n") < 6_000


@each(
    "text",
    [hostile.EVERYTHING, *hostile.FLOODS.values()],
    told=lambda text: repr(text[:60]),
)
def test_the_moving_line_shows_the_name_of_a_check_as_one_line_of_text(text: str) -> None:
    plan = samples.mixed_plan()
    remaining = RunProgress(plan)
    remaining.started(f"{text}{hostile.MARK}")
    out = Watched()
    console = Console(file=out, width=200, force_terminal=True, _environ={"TERM": "xterm-256color"})
    gauges = Gauges((Gpu(0),), {})
    rate = {"format": text, "rate": Quantity(3.0, "TFLOP/s")}
    formats = Listed((Message("burn_lap_format", rate),))
    lap = Message("burn_lap", {"gpu": "gpu0", "lap": 1, "laps": 2, "formats": formats})
    gauges.entry(samples.entry(Note(Message("note", {"text": (lap,)}), progress=True)))
    gauges.entry(samples.entry(Measured("a", text, Gpu(0), "GB/s", 1.0)))
    console.print(Dashboard(remaining, gauges, Margins(plan), ENGLISH, UNICODE))
    shown = OWN.sub("", out.getvalue())
    assert not hostile.HARMFUL.search(shown)
    assert [line.strip()[:4] for line in shown.splitlines()][-3:] == ["GPU ", "gpu0", "0 of"]
    assert max(len(line) for line in shown.splitlines()) <= 200
