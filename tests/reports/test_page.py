from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator

import journals
import pages
import pytest
import samples
import translated
from cases import each
from pages import page, words
from test_junit import HOSTILE
from thoroughness import some

from acceptance.core.evidence import ToolRan
from acceptance.core.parts import Core, Gpu
from acceptance.journal.samples import GpuReadings, GpuSample, TimedSample
from acceptance.journal.segment import JournalError
from acceptance.reports.page import render
from acceptance.reports.page.sections import SECTIONS, Content, Section
from acceptance.wording.words import of as said

ALLOWED = {
    "a",
    "article",
    "body",
    "br",
    "caption",
    "code",
    "dd",
    "desc",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "head",
    "header",
    "html",
    "li",
    "main",
    "meta",
    "nav",
    "ol",
    "p",
    "path",
    "rect",
    "section",
    "span",
    "strong",
    "summary",
    "style",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "title",
    "tr",
    "tspan",
    "ul",
}
ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "class",
    "id",
    "href",
    "scope",
    "rowspan",
    "colspan",
    "role",
    "aria-label",
    "aria-labelledby",
    "aria-hidden",
    "tabindex",
    "style",
    "viewbox",
    "preserveaspectratio",
    "d",
    "x",
    "y",
    "dx",
    "rx",
    "width",
    "height",
}


def assert_inert(text: str) -> None:
    pages.assert_inert(text, ALLOWED, ATTRIBUTES)


@each("text", some(HOSTILE, 4))
def test_hostile_text_is_inert(text: str) -> None:
    shown = render.render(samples.hostile(text))
    assert_inert(shown)
    shown.encode("utf-8")
    assert len(shown) < 400_000
    assert page(shown).find(".//h1").text == "FAIL"


def test_hostile_inventory_is_inert() -> None:
    found = samples.passing()
    inventory = {
        "cpu": {"model": HOSTILE[0], "sockets": None, "cores": None, "threads": None},
        "memory": {"total_bytes": 1, "dimms": None, "dimms_unread": HOSTILE[1]},
        "disks": [{"name": HOSTILE[0], "model": HOSTILE[2], "size_bytes": 1, "kind": None}],
        "links": [{"name": HOSTILE[0], "up": True, "speed_mbps": 1, "driver": HOSTILE[1]}],
        "pci": [],
        "nvml": {
            "devices": [
                {
                    **dict.fromkeys(
                        ("uuid", "name", "pci_address", "serial", "vbios", "error"), HOSTILE[0]
                    ),
                    **{"index": 0, "memory_bytes": 1, "traits": {}, "links": []},
                }
            ]
        },
        "board": dict.fromkeys(
            ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver"), HOSTILE[0]
        ),
    }
    shown = render.render(
        samples.seen(found, inventory, [("", HOSTILE[0]), (HOSTILE[1], HOSTILE[2])])
    )
    assert_inert(shown)
    assert "alert(1)" in words(page(shown))


def test_the_verdict_comes_first_and_every_reason_is_there() -> None:
    found = samples.mixed()
    shown = render.render(samples.seen(found))
    assert_inert(shown)
    tree = page(shown)
    assert [element.tag for element in tree.find("body")] == ["header", "main"]
    first = next(element for element in tree.find("body").iter() if (element.text or "").strip())
    assert (first.tag, first.text, first.get("class")) == ("h1", "FAIL", "FAIL")
    header = words(tree.find("body/header"))
    assert "1 subject waived whole: storage" in header
    assert "box · 2026-01-01 00:00:00 UTC" in header
    assert "profile smoke" in header
    origin = words(tree.get_element_by_id("provenance").getparent())
    assert "scope full" in origin
    assert "self-test of this build unknown" in origin
    assert [section.get("aria-labelledby") for section in tree.iterfind(".//main/section")] == [
        "overview",
        "failed",
        "unjudged",
        "warned",
        "waived",
        "machine",
        "measurements",
        "events",
        "untold",
        "provenance",
    ]
    cards = " ".join(words(card) for card in tree.find_class("card"))
    for finding in found.verdict.of_kind("error", "skip", "waived"):
        assert " ".join(said(finding).split()) in cards
    text = words(tree)
    for expected in (
        "reseat it",
        "NVRM: Xid 79",
        "stale waiver, not needed in this run: bandwidth on memory: never needed",
        "journal-load.jsonl ends in half a line",
        "the kernel log was not followed",
        "faults that need heat",
    ):
        assert expected in text


def test_a_violation_says_what_was_expected_measured_and_what_to_do() -> None:
    tree = page(render.render(samples.seen(samples.mixed())))
    card = next(one for one in tree.find_class("card") if "gpu_count" in words(one))
    text = words(card)
    assert "machine · gpu.present" in text
    assert "gpu_count 0 = 1 1 too low (-100.0 %)" in text
    assert "basis: declared (class default)" in text
    for expected in (
        "PCI bus: no NVIDIA device -> reseat the card",
        "Likely causes, the most likely first",
        "How to tell:",
        "Next",
        "For the vendor",
    ):
        assert expected in text
    assert [cell.get("scope") for cell in card.iter("th")] == ["col"] * 4 + ["row"]


def test_every_measurement_is_told_with_its_limit_and_basis() -> None:
    tree = page(render.render(samples.mixed()))
    rows = {words(row) for row in tree.iterfind(".//section[@class='checks']//tr")}
    assert "memory SN1 11 GB/s ! warn" in rows
    assert "machine 0 ✗ fail" in rows
    assert "disk_faults disk:vda not measured (waived) ! waived <= 0" in rows
    assert {"core:0 30 GFLOP/s", "core:1 31 GFLOP/s", "core:2 32 GFLOP/s"} <= rows
    told = words(tree.find_class("checks")[0])
    assert "bandwidth >= 10 GB/s" in told
    assert "half of the peak (class default)" in told
    assert "python -m load" in words(tree)


def test_a_log_is_linked_beside_the_page_and_nowhere_else() -> None:
    made = journals.plan()
    ran = [
        ToolRan("link.copy", ("tool",), 0, 1.0, log)
        for log in (
            "logs/a-1.log",
            "logs/b[c] d.log",
            "../logs/x",
            "/etc/passwd",
            "logs/../../x",
            "http://x/logs/y",
        )
    ]
    tree = page(render.render(samples.run([*journals.bodies(made), *ran])))
    links = [link.get("href") for link in tree.iterfind(".//table//a")]
    assert links == ["logs/a-1.log", "logs/b%5Bc%5D%20d.log"]


def test_a_reader_without_eyes_finds_the_way() -> None:
    tree = page(render.render(samples.seen(samples.mixed())))
    assert tree.get("lang") == "en"
    assert (tree.findtext(".//title") or "").endswith(" · rigproof · box")
    assert (tree.findtext(".//title") or "").startswith("FAIL: gpu0 ")
    levels = [int(element.tag[1]) for element in tree.iter("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for region in tree.find_class("scroll"):
        assert (region.get("role"), region.get("tabindex")) == ("region", "0")
        assert region.get("aria-label")
    assert all(cell.get("scope") for cell in tree.iter("th"))
    names = {element.get("id") for element in tree.iter() if element.get("id")}
    for element in tree.iter():
        assert set(element.get("aria-labelledby", "").split()) <= names
        assert not element.get("href", "").startswith("#") or element.get("href")[1:] in names
    for picture in tree.iter("svg"):
        told = (
            picture.get("aria-hidden") == "true"
            or picture.get("aria-label")
            or picture.get("aria-labelledby")
        )
        assert told


def test_the_language_of_the_page_is_that_of_its_sentences() -> None:
    found = samples.mixed()
    language = translated.language(
        {"What failed": "WHAT FAILED IN OTHER WORDS", "{n} cores": "{n} CORES"}, "en"
    )
    tree = page(render.render(samples.seen(found), language=language))
    assert tree.get("lang") == language.code
    assert tree.get_element_by_id("failed").text == "WHAT FAILED IN OTHER WORDS"
    assert "64 CORES" in words(tree)


def test_light_dark_and_paper() -> None:
    style = page(render.render(samples.passing())).findtext(".//style")
    assert "color-scheme: light dark" in style
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert "@media print" in style


def test_the_machine_is_told_without_what_was_not_captured() -> None:
    text = words(page(render.render(samples.seen(samples.passing()))))
    for expected in (
        "processor EPYC 9554, 1 socket, 64 cores, 128 threads",
        "memory 24 GiB",
        "module 32 GiB DDR5 at 4800 MT/s PART, A1",
        "module size unknown, B1",
        "modules not read: no rights",
        "disk nvme0n1 model not shown, 1000 GB, nvme",
        "network eth0 up, 10000 Mbit/s, mlx5",
        "network eth1 down, no driver",
        "gpu0 · NVIDIA H200 PCI address 0000:01:00.0 kernel driver none memory 141 GiB power "
        "limit 700 W ECC on "
        "NVLink 1 of 2 active serial number 77 UUID GPU-1 VBIOS 96.00",
        "NVML 1 · model unknown NVML says: GPU is lost",
        "BIOS 1",
    ):
        assert expected in text
    assert "None" not in text


def test_of_an_inventory_that_holds_little_the_page_shows_that() -> None:
    little = {
        "disks": [{"name": "sda"}],
        "links": [{"name": "eth0", "speed_mbps": 10000}],
        "pci": [{"address": "0000:01:00.0", "is_display": True}],
        "nvml": {"devices": [{"name": "NVIDIA H200"}]},
        "places": {"0000:01:00.0": {"numa_node": 0}},
    }
    text = words(page(render.render(samples.seen(samples.passing(), little))))
    for expected in (
        "processor model not shown",
        "disk sda model not shown",
        "network eth0 10000 Mbit/s, no driver",
        "gpu0 · model unknown PCI address 0000:01:00.0 kernel driver none",
        "NVML · NVIDIA H200",
    ):
        assert expected in text
    assert "None" not in text


def test_the_ways_between_gpus_are_a_table() -> None:
    found = samples.passing()
    matrix = [("", "gpu0", "gpu1"), ("gpu0", "X", "NV4"), ("gpu1", "NV4", "X")]
    shown = words(page(render.render(samples.seen(found, matrix=matrix))))
    assert "gpu0 gpu1 gpu0 X NV4 gpu1 NV4 X" in shown
    assert "Ways between" not in render.render(samples.seen(found))


def test_a_page_without_an_inventory_is_a_page() -> None:
    tree = page(render.render(samples.passing()))
    assert not tree.find_class("gpu")
    assert not list(tree.iter("figure"))


def test_nothing_may_be_run_or_fetched() -> None:
    found = samples.passing()
    (policy,) = page(render.render(found)).xpath(
        "//meta[@http-equiv='Content-Security-Policy']/@content"
    )
    assert (
        policy
        == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )


def test_samples_that_cannot_be_read_are_said_and_take_nothing_else_away() -> None:
    found = samples.passing()

    def broken() -> Iterator[TimedSample]:
        yield TimedSample(0, 101.0, GpuSample(GpuReadings(power_w=100.0), component=Gpu(0)))
        yield TimedSample(1, 102.0, GpuSample(GpuReadings(power_w=300.0), component=Gpu(0)))
        raise JournalError("telemetry-gpu.jsonl, line 4: is no sample")

    tree = page(render.render(dataclasses.replace(found, samples=broken)))
    assert "telemetry-gpu.jsonl, line 4: is no sample" in words(tree)
    assert [words(one).startswith("gpu0") for one in tree.iter("figure")] == [True]
    assert "power: 100 to 300 W" in words(tree)


def test_a_run_lasts_until_its_last_sample() -> None:
    """A machine that restarted in the middle of a check was sampled to the end."""
    found = samples.passing()
    last = TimedSample(0, found.first.boot_s + 3600.0, GpuSample(GpuReadings(), component=Gpu(0)))
    assert "60 min" not in words(page(render.render(found)).find("body/header"))
    sampled = dataclasses.replace(found, samples=lambda: iter([last]))
    assert "60 min" in words(page(render.render(sampled)).find("body/header"))


def _rgb(colour: str) -> float:
    """Relative luminance, as WCAG 2 reckons it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_stands_out_from_what_is_behind_it_in_light_and_dark() -> None:
    style = page(render.render(samples.passing())).findtext(".//style")
    themes = [
        dict(re.findall(r"--([a-z\d]+): (#[\da-f]{6})", block))
        for block in re.findall(r":root \{[^}]*\}", style)
    ]
    assert len(themes) == 2
    for theme in themes:
        behind = [
            *(
                (one, ground)
                for one in ("fg", "soft", "pass", "fail", "unjudged", "link")
                for ground in ("bg", "card")
            )
        ]
        behind += [("weak", f"h{level}") for level in range(4)] + [
            ("strong", "h4"),
            ("strong", "h5"),
            ("fg", "code"),
        ]
        for text, ground in behind:
            light, dark = sorted((_rgb(theme[text]), _rgb(theme[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_a_page_of_a_large_machine_stays_small() -> None:
    made = journals.plan(
        *(
            journals.check(f"cpu.c{n}", *(journals.due("rate", Core(k)) for k in range(200)))
            for n in range(10)
        )
    )
    assert len(render.render(samples.run(journals.bodies(made)))) < 800_000


def test_a_section_is_one_entry_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it shows and its line in the contents follow; one that has nothing to show is left
    out.
    """
    spare = Section("spare", "cards.html.j2", lambda _: Content("What is spare", {"found": []}))
    empty = Section("empty", "cards.html.j2", lambda _: None)
    monkeypatch.setattr(render, "SECTIONS", (spare, empty, *SECTIONS))
    tree = page(render.render(samples.passing()))
    listed = [(link.get("href"), link.text) for link in tree.xpath("//nav//a")]
    assert listed[:2] == [
        ("#spare", "What is spare"),
        ("#machine", "The machine as found"),
    ]
    shown = [part.get("aria-labelledby") for part in tree.xpath("//main/section")]
    assert shown == ["spare", "machine", "measurements", "untold", "provenance"]
    assert [f"#{id_}" for id_ in shown] == [address for address, _ in listed]
