"""The headline of a run: the failure and the part, the same in every view."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import journals
import samples
from cases import each
from hostile import FRAGMENTS, HARMFUL
from known import known

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Quantity, Range
from acceptance.core.parts import CPU, MACHINE, Function, Gpu, parse
from acceptance.diagnosis.causes import Evidence
from acceptance.expect import measurements
from acceptance.journal.run import Run
from acceptance.notify import textfile
from acceptance.reports import explanation, junit, languages, summary, verdict_json
from acceptance.reports.explanation import Headline
from acceptance.reports.locations import Location, Locations
from acceptance.reports.page import overview_svg, render
from acceptance.wording import words

CHINESE = languages.choose("zh-CN", {})
BASIS = "a basis that no headline has"
PLACES = Locations({Gpu(0): Location(address="0000:01:00.0", serial="1320", uuid="GPU-7")})


def of(finding: Finding, places: Locations = PLACES) -> Headline:
    return known(explanation.of_findings([finding], places))


def hot(**more: Any) -> Finding:
    values = {
        "measured": Quantity(5.9, "s"),
        "limit": Range("s", high=0.0),
        "basis": BASIS,
    }
    about = {"measurement": "gpu_sw_thermal_slowdown", "component": Gpu(0), **more}
    return Finding(
        "fail", "watch.throttling", "outside_limit", about.pop("values", values), **about
    )


ADDRESS = Function("0000:01:00.0")
KERNEL = Locations(
    {Gpu(0): Location(serial="1320")}, measured=Evidence(functions={ADDRESS: Gpu(0)})
)
FALLEN = Finding("fail", "run", "event_on", {"event": "xid 79"}, component=ADDRESS, event="xid.79")
NOVEL = Finding(
    "fail",
    "cpu.gemm",
    "event_on",
    {"event": "novel", "meaning": "a novelty"},
    component=CPU,
    action=("reseat it",),
    event="novel",
)
LONG = f"it began so {'x' * 5000} and ended with the cure: install it"
IMPOSSIBLE = {
    "measured": Quantity(441.7, "GB/s"),
    "possible": Quantity(64.28, "GB/s"),
    "basis": BASIS,
}
DURING = Message("during_checks", {"checks": Listed(("together.burn", "vram.patterns"))})
UNMEASURED = Finding(
    "error", "together.burn", "not_measured", measurement="burn_bf16", component=Gpu(0)
)
ACCEPT = "rigproof accept"


@each(
    "finding, places, text, about",
    [
        (
            hot(),
            PLACES,
            r"gpu0 \(serial number 1320\) or its memory reached .* in watch.throttling "
            r"\(gpu_sw_thermal_slowdown 5.9 s, limit <= 0 s\)",
            {"part": "gpu0", "kind": "fail", "check": "watch.throttling", "more": 0},
        ),
        (
            hot(),
            PLACES,
            ".*",
            {"next": "nvidia-smi -i 0000:01:00.0 -q -d TEMPERATURE,PERFORMANCE"},
        ),
        (
            hot(note=DURING),
            PLACES,
            r".* in together.burn, vram.patterns \(.*",
            {"check": "watch.throttling"},  # that check is red
        ),
        (hot(), Locations({Gpu(0): Location(uuid="GPU-7")}), r"gpu0 \(GPU-7\) or .*", {}),
        (hot(), Locations(), "gpu0 or .*", {}),
        (
            FALLEN,
            KERNEL,
            r"gpu0 \(serial number 1320\) fell off the bus \(xid 79\)",
            {"part": "gpu0", "check": "run"},
        ),
        (
            hot(measurement="burn_f16_miscompares", note=None),
            PLACES,
            r"gpu0 \(serial number 1320\) computed a wrong result in watch.throttling \(.*",
            {},
        ),
        (
            hot(measurement="gpu_ecc_uncorrected_new"),
            PLACES,
            r"gpu0 \(serial number 1320\) in watch.throttling: the GPU's .*",
            {},
        ),
        (hot(component=MACHINE), PLACES, "watch.throttling: .*", {"part": None}),
        (
            hot(measurement="rack_fan_speed"),
            PLACES,
            r"gpu0 \(serial number 1320\) in watch.throttling: rack_fan_speed 5.9 s, limit <= 0 s",
            {"cause": None, "next": None, "action": None},
        ),
        (NOVEL, PLACES, ".*", {"next": None, "action": "reseat it"}),
        (
            UNMEASURED,
            PLACES,
            ".*together.burn: burn_bf16 on gpu0 was not measured",
            {"next": f"{ACCEPT} --only together.burn", "cause": None},
        ),
        *(
            (Finding(kind, check, "nothing_planned"), PLACES, ".*", {"next": ACCEPT})
            for kind, check in (("error", "run"), ("skip", "a check; reboot"))
        ),
        (
            Finding("error", "cpu.gemm", "ended", {"text": LONG}),
            PLACES,
            "cpu.gemm: it began so .{,300} and ended with the cure: install it",
            {},
        ),
        *(
            (
                Finding("error", "run", "run_closed", {"text": text}),
                PLACES,
                words.message(Message("no_reason")),
                {},
            )
            for text in ("", " \n\t")
        ),
        (
            Finding("error", "c", "implausible", IMPOSSIBLE, "copy_own_h2d", Gpu(0)),
            PLACES,
            r"((?! \.\.\. ).)*64\.28.*",
            {},
        ),
    ],
)
def test_a_headline(
    finding: Finding, places: Locations, text: str, about: dict[str, object]
) -> None:
    found = of(finding, places)
    assert re.fullmatch(text, found.text), found.text
    assert {name: getattr(found, name) for name in about} == about
    assert BASIS not in found.text + found.to_do()
    assert (found.action or "") in found.to_do()
    # Of a failure, causes and commands stand above it.
    line = found.text if finding.kind == "fail" else f"{found.text}; next: `{found.next}`"
    assert found.line() == (line if found.next else found.text)


@each("language", [ENGLISH, CHINESE])
def test_of_every_measurement_it_is_short_enough_to_paste(language: Language) -> None:
    for name, one in measurements.shipped().by_name.items():
        values = {"measured": Quantity(1234.5, one.unit), "limit": Range(one.unit, high=0.0)}
        finding = hot(measurement=name, values=values)
        text = known(explanation.of_findings([finding], PLACES, language)).text
        assert (len(text) <= 240, text[-1] in ".\u3002") == (True, False), text


@each("text", FRAGMENTS)
def test_a_strangers_text_stays_one_harmless_line(text: str) -> None:
    places = Locations({Gpu(0): Location(serial=text, uuid=text)})
    for finding in (
        hot(),
        Finding("error", text, "ended", {"text": text}, component=Gpu(0)),
        Finding("error", "cpu.gemm", "ended", {"text": text}),
        Finding("fail", "cpu.gemm", "event", {"event": text}, event="novel"),
    ):
        for language in (ENGLISH, CHINESE):
            found = known(explanation.of_findings([finding], places, language))
            for told in (found.text, found.line(language), found.to_do(language)):
                assert not HARMFUL.search(told)
                assert ("\n" in told, len(told) < 900) == (False, True)


def test_a_pass_has_none() -> None:
    run = samples.passing(journals.check())
    assert explanation.of_run(run) is None
    assert explanation.of_findings([], PLACES) is None
    assert "headline" not in json.loads(verdict_json.render(run))
    assert verdict_json.head(verdict_json.read(verdict_json.render(run))) is None
    assert summary.closing_line(run) == "PASS: 1 passed"


def views(run: Run) -> dict[str, str]:
    suite = ElementTree.fromstring(junit.render(run))[0]
    return {
        "page": render.render(run),
        "picture": overview_svg.draw(run),
        "closing": summary.closing_line(run),
        "junit": " ".join(one.get("value", "") for one in suite[0]),
        "message": " ".join(one.get("message", "") for one in suite.iter("failure")),
        "verdict.json": verdict_json.render(run).decode(),
        "metrics": textfile.run_metrics(run).decode(),
    }


def test_every_view_has_the_failure_and_the_part() -> None:
    run = samples.mixed()
    first = known(explanation.of_run(run))
    assert (first.part, first.more) == ("gpu0", 1), "a lost GPU, before what was missing then"
    start = first.text[:25]
    assert {name for name, text in views(run).items() if start not in text} == set()
    line, chinese = summary.closing_line(run), summary.closing_line(run, CHINESE)
    assert line == f"FAIL: {first.text} (1 more failure): {summary.counts(run.verdict)}"
    assert chinese.startswith("FAIL\uff1a")
    assert chinese.endswith(summary.counts(run.verdict, CHINESE))
    file = verdict_json.read(verdict_json.render(run))
    head = known(verdict_json.head(file))
    assert head is file.headline
    assert (head.text, head.to_do, head.closing) == (first.text, first.to_do(), line)
    assert (head.component, head.check, head.more) == (first.part, first.check, first.more)
    why = "the journal is empty: run again"
    unread = json.loads(verdict_json.unreadable("run-1", why))["headline"]
    assert (unread["text"], unread["closing"]) == (why, f"UNJUDGED: {why}")
    disk = parse("disk:nvme0n1")
    due = journals.due("storage_read", disk, "GB/s", Limit("GB/s", "sheet", 5.0))
    plan = journals.plan(journals.check("storage.read", due))
    slow = samples.run(journals.bodies(plan, {("storage_read", disk): 1.0}))
    told = known(explanation.of_run(slow))
    assert told.part == "disk:nvme0n1"
    assert ", in storage.read (storage_read 1 GB/s" in told.text, "after a clause, apart"
