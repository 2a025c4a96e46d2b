"""The headline of a run: the failure and the part, the same in every view."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import journals
import samples
from cases import each
from hostile import FRAGMENTS, HARMFUL
from known import known

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Quantity, Range
from acceptance.core.parts import CPU, MACHINE, Function, Gpu, parse
from acceptance.diagnosis.causes import Evidence
from acceptance.expect import measurements
from acceptance.journal.run import Run
from acceptance.notify import textfile
from acceptance.reports import headline, junit, languages, summary, verdict_json
from acceptance.reports.headline import Headline
from acceptance.reports.locations import NO_LOCATIONS, Location, Locations
from acceptance.reports.page import overview_svg, render
from acceptance.wording import words

CHINESE = languages.choose("zh-CN", {})
PLACES = Locations({Gpu(0): Location(address="0000:01:00.0", serial="1320", uuid="GPU-7")})


def of(finding: Finding, places: Locations = PLACES) -> Headline:
    return known(headline.of_findings([finding], places))


def hot(**more: Any) -> Finding:
    values = {
        "measured": Quantity(5.9, "s"),
        "limit": Range("s", high=0.0),
        "basis": "a basis that no headline has",
    }
    about = {"measurement": "gpu_sw_thermal_slowdown", "component": Gpu(0), **more}
    return Finding(
        "fail", "watch.throttling", "outside_limit", about.pop("values", values), **about
    )


def test_a_failure_names_the_part_what_is_printed_on_it_and_the_check() -> None:
    found = of(hot())
    assert (found.kind, found.check, found.part, found.more) == (
        "fail",
        "watch.throttling",
        "gpu0",
        0,
    )
    assert found.text.startswith("gpu0 (serial number 1320) or its memory reached ")
    assert found.text.endswith(" in watch.throttling (gpu_sw_thermal_slowdown 5.9 s, limit <= 0 s)")
    assert "a basis" not in found.to_do()
    assert found.cause
    assert found.next == "nvidia-smi -i 0000:01:00.0 -q -d TEMPERATURE,PERFORMANCE"
    assert found.line() == found.text, "of a failure, causes and commands stand above it"


def test_it_happened_in_the_check_that_loaded_the_part() -> None:
    during = Message("during_checks", {"checks": Listed(("together.burn", "vram.patterns"))})
    found = of(hot(note=during))
    assert " in together.burn, vram.patterns (" in found.text
    assert found.check == "watch.throttling", "that check is red"


def test_without_a_serial_number_the_uuid_stands_for_it() -> None:
    assert of(hot(), Locations({Gpu(0): Location(uuid="GPU-7")})).text.startswith(
        "gpu0 (GPU-7) or "
    )
    assert of(hot(), NO_LOCATIONS).text.startswith("gpu0 or ")


def test_an_address_of_the_kernel_is_the_part_that_it_belongs_to() -> None:
    address = Function("0000:01:00.0")
    places = Locations(
        {Gpu(0): Location(serial="1320")}, measured=Evidence(functions={address: Gpu(0)})
    )
    event = Finding(
        "fail", "run", "event_on", {"event": "xid 79"}, component=address, event="xid.79"
    )
    found = of(event, places)
    assert (found.part, found.check) == ("gpu0", "run")
    assert found.text == "gpu0 (serial number 1320) fell off the bus (xid 79)"


def test_it_says_what_is_seen_and_not_what_it_means() -> None:
    wrong = hot(measurement="burn_f16_miscompares", note=None)
    assert of(wrong).text.startswith(
        "gpu0 (serial number 1320) computed a wrong result in watch.throttling ("
    )
    memory = hot(measurement="gpu_ecc_uncorrected_new")
    assert of(memory).text.startswith("gpu0 (serial number 1320) in watch.throttling: the GPU's ")


def test_of_every_measurement_it_is_short_enough_to_paste() -> None:
    for name, one in measurements.shipped().by_name.items():
        values = {"measured": Quantity(1234.5, one.unit), "limit": Range(one.unit, high=0.0)}
        for language in (ENGLISH, CHINESE):
            found = known(
                headline.of_findings([hot(measurement=name, values=values)], PLACES, language)
            )
            assert len(found.text) <= 240, found.text
            assert found.text[-1] not in ".。"


def test_the_whole_machine_is_no_part() -> None:
    found = of(hot(component=MACHINE))
    assert found.part is None
    assert found.text.startswith("watch.throttling: ")


def test_a_measurement_without_advice_has_its_value() -> None:
    found = of(hot(measurement="rack_fan_speed"))
    assert (
        found.text
        == "gpu0 (serial number 1320) in watch.throttling: rack_fan_speed 5.9 s, limit <= 0 s"
    )
    assert (found.cause, found.next, found.action) == (None, None, None)
    assert found.to_do() == found.text


def test_an_event_that_only_asks_for_something_says_so() -> None:
    event = Finding(
        "fail",
        "cpu.gemm",
        "event_on",
        {"event": "novel", "meaning": "a novelty"},
        component=CPU,
        action=("reseat it",),
        event="novel",
    )
    found = of(event)
    assert (found.next, found.action) == (None, "reseat it")
    assert "reseat it" in found.to_do()


def test_unjudged_says_what_was_not_measured_and_what_to_type() -> None:
    finding = Finding(
        "error", "together.burn", "not_measured", measurement="burn_bf16", component=Gpu(0)
    )
    found = of(finding)
    assert found.text.endswith("together.burn: burn_bf16 on gpu0 was not measured")
    assert (found.next, found.cause) == ("rigproof accept --only together.burn", None)
    assert found.line() == f"{found.text}; next: `{found.next}`"
    assert of(Finding("error", "run", "nothing_planned")).next == "rigproof accept"
    assert of(Finding("skip", "a check; reboot", "nothing_planned")).next == "rigproof accept"


def test_a_long_error_keeps_its_beginning_and_its_end() -> None:
    text = f"it began so {'x' * 5000} and ended with the cure: install it"
    found = of(Finding("error", "cpu.gemm", "ended", {"text": text}))
    assert found.text.startswith("cpu.gemm: it began so ")
    assert found.text.endswith(" and ended with the cure: install it")
    assert len(found.text) < 300


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
            found = known(headline.of_findings([finding], places, language))
            for told in (found.text, found.line(language), found.to_do(language)):
                assert not HARMFUL.search(told)
                assert "\n" not in told
                assert len(told) < 900


@each("text", ["", " \n\t"])
def test_a_run_closed_without_a_reason_says_so(text: str) -> None:
    found = of(Finding("error", "run", "run_closed", {"text": text}))
    assert found.text == words.message(Message("no_reason"))


def test_a_pass_has_none() -> None:
    run = samples.passing(journals.check())
    assert headline.of_run(run) is None
    assert headline.of_findings([], PLACES) is None
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
    first = known(headline.of_run(run))
    assert (first.part, first.more) == ("gpu0", 1), "a lost GPU, before what was missing then"
    start = first.text[:25]
    assert {name for name, text in views(run).items() if start not in text} == set()


def test_the_closing_line_begins_with_the_word_and_ends_with_the_counts() -> None:
    run = samples.mixed()
    first = known(headline.of_run(run))
    line = summary.closing_line(run)
    assert line == f"FAIL: {first.text} (1 more failure): {summary.counts(run.verdict)}"
    told = summary.closing_line(run, CHINESE)
    assert told.startswith("FAIL\uff1a")
    assert told.endswith(summary.counts(run.verdict, CHINESE))


def test_the_file_has_it() -> None:
    run = samples.mixed()
    first = known(headline.of_run(run))
    file = verdict_json.read(verdict_json.render(run))
    head = known(verdict_json.head(file))
    assert head is file.headline
    assert (head.text, head.to_do, head.closing) == (
        first.text,
        first.to_do(),
        summary.closing_line(run),
    )
    assert (head.component, head.check, head.more) == (first.part, first.check, first.more)


def test_a_run_that_cannot_be_read_says_why() -> None:
    content = json.loads(verdict_json.unreadable("run-1", "the journal is empty: run again"))
    assert content["headline"]["text"] == "the journal is empty: run again"
    assert content["headline"]["closing"] == "UNJUDGED: the journal is empty: run again"


def test_a_slow_disk_is_named_too() -> None:
    due = journals.due("storage_read", parse("disk:nvme0n1"), "GB/s", Limit("GB/s", "sheet", 5.0))
    run = samples.run(
        journals.bodies(
            journals.plan(journals.check("storage.read", due)),
            {("storage_read", parse("disk:nvme0n1")): 1.0},
        )
    )
    first = known(headline.of_run(run))
    assert first.part == "disk:nvme0n1"
    assert ", in storage.read (storage_read 1 GB/s" in first.text, "after a clause, apart"


def test_what_cannot_be_is_said_without_its_basis() -> None:
    values = {
        "measured": Quantity(441.7, "GB/s"),
        "possible": Quantity(64.28, "GB/s"),
        "basis": "a basis that no headline has",
    }
    told = of(Finding("error", "c", "implausible", values, "copy_own_h2d", Gpu(0)))
    assert "64.28" in told.text
    assert "a basis" not in told.text
    assert " ... " not in told.text
