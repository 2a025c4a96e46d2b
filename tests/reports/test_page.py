from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import journals
import pages
import pytest
import samples
import translated
from cases import each
from pages import page, words

from acceptance.core.evidence import ToolRan
from acceptance.core.parts import Core, Gpu
from acceptance.journal.samples import GpuReadings, GpuSample, TimedSample
from acceptance.journal.segment import JournalError
from acceptance.reports.page import render
from acceptance.reports.page.sections import SECTIONS, Content, Section
from acceptance.wording.words import of as said

ALLOWED = {
    *("a", "article", "body", "br", "caption", "code", "dd", "desc", "details", "div", "dl", "dt"),
    *("figcaption", "figure", "h1", "h2", "h3", "h4", "head", "header", "html", "li", "main"),
    *("meta", "nav", "ol", "p", "path", "rect", "section", "span", "strong", "summary", "style"),
    *("svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "tspan", "ul"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "id", "href", "scope", "style"),
    *("rowspan", "colspan", "role", "aria-label", "aria-labelledby", "aria-hidden", "tabindex"),
    *("viewbox", "preserveaspectratio", "d", "x", "y", "dx", "rx", "width", "height"),
}


def assert_inert(text: str) -> None:
    pages.assert_inert(text, ALLOWED, ATTRIBUTES)


def test_the_verdict_comes_first_and_every_reason_is_there() -> None:
    found = samples.mixed()
    shown = render.render(samples.seen(found))
    assert_inert(shown)
    tree = page(shown)
    assert [element.tag for element in tree.find("body")] == ["header", "main"]
    first = next(element for element in tree.find("body").iter() if (element.text or "").strip())
    assert (first.tag, first.text, first.get("class")) == ("h1", "FAIL", "FAIL")
    header = words(tree.find("body/header"))
    origin = words(tree.get_element_by_id("provenance").getparent())
    assert [section.get("aria-labelledby") for section in tree.iterfind(".//main/section")] == [
        *("overview", "failed", "unjudged", "warned", "waived", "machine", "measurements"),
        *("events", "untold", "provenance"),
    ]
    cards = " ".join(words(card) for card in tree.find_class("card"))
    for finding in found.verdict.of_kind("error", "skip", "waived"):
        assert " ".join(said(finding).split()) in cards
    for where, expected in (
        (header, "1 subject waived whole: storage"),
        (header, "box · 2026-01-01 00:00:00 UTC"),
        (header, "profile smoke"),
        (origin, "scope full"),
        (origin, "self-test of this build unknown"),
        *(
            (words(tree), text)
            for text in (
                *("reseat it", "NVRM: Xid 79", "faults that need heat", "stale waiver, "),
                *("journal-load.jsonl ends in half a line", "the kernel log was not followed"),
            )
        ),
    ):
        assert expected in where


def test_a_violation_says_what_was_expected_measured_and_what_to_do() -> None:
    tree = page(render.render(samples.seen(samples.mixed())))
    card = next(one for one in tree.find_class("card") if "gpu_count" in words(one))
    for expected in (
        *("machine · gpu.present", "gpu_count 0 = 1 1 too low (-100.0 %)"),
        *("basis: declared (class default)", samples.LOOKED.splitlines()[0]),
        *("Likely causes, the most likely first", "How to tell:", "Next", "For the vendor"),
    ):
        assert expected in words(card)
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
    logs = ("logs/a-1.log", "logs/b[c] d.log", "../logs/x", "/etc/passwd", "logs/../../x")
    ran = [ToolRan("link.copy", ("tool",), 0, 1.0, log) for log in (*logs, "http://x/logs/y")]
    tree = page(render.render(samples.run([*journals.bodies(journals.plan()), *ran])))
    links = [link.get("href") for link in tree.iterfind(".//table//a")]
    assert links == ["logs/a-1.log", "logs/b%5Bc%5D%20d.log"]


def test_a_reader_without_eyes_finds_the_way() -> None:
    tree = page(render.render(samples.seen(samples.mixed())))
    assert tree.get("lang") == "en"
    assert re.fullmatch("FAIL: gpu0 .* · rigproof · box", tree.findtext(".//title") or "")
    levels = [int(element.tag[1]) for element in tree.iter("h1", "h2", "h3", "h4")]
    assert (levels[0], levels.count(1)) == (1, 1)
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
        assert {"aria-hidden", "aria-label", "aria-labelledby"} & set(picture.attrib)


def test_the_language_of_the_page_is_that_of_its_sentences() -> None:
    found = samples.mixed()
    language = translated.language(
        {"What failed": "WHAT FAILED IN OTHER WORDS", "{n} cores": "{n} CORES"}, "en"
    )
    tree = page(render.render(samples.seen(found), language=language))
    assert tree.get("lang") == language.code
    assert tree.get_element_by_id("failed").text == "WHAT FAILED IN OTHER WORDS"
    assert "64 CORES" in words(tree)


LITTLE = {
    "disks": [{"name": "sda"}],
    "links": [{"name": "eth0", "speed_mbps": 10000}],
    "pci": [{"address": "0000:01:00.0", "is_display": True}],
    "nvml": {"devices": [{"name": "NVIDIA H200"}]},
    "places": {"0000:01:00.0": {"numa_node": 0}},
}
MATRIX = [("", "gpu0", "gpu1"), ("gpu0", "X", "NV4"), ("gpu1", "NV4", "X")]


@each(
    "inventory, matrix, texts",
    [
        (
            samples.INVENTORY,
            (),
            [
                "processor EPYC 9554, 1 socket, 64 cores, 128 threads",
                "memory 24 GiB",
                "module 32 GiB DDR5 at 4800 MT/s PART, A1",
                "module size unknown, B1",
                "modules not read: no rights",
                "disk nvme0n1 model not shown, 1000 GB, nvme",
                "network eth0 up, 10000 Mbit/s, mlx5",
                "network eth1 down, no driver",
                "gpu0 · NVIDIA H200 PCI address 0000:01:00.0 kernel driver none memory 141 GiB "
                "power limit 700 W ECC on "
                "NVLink 1 of 2 active serial number 77 UUID GPU-1 VBIOS 96.00",
                "NVML 1 · model unknown NVML says: GPU is lost",
                "BIOS 1",
            ],
        ),
        (
            LITTLE,
            (),
            [
                "processor model not shown",
                "disk sda model not shown",
                "network eth0 10000 Mbit/s, no driver",
                "gpu0 · model unknown PCI address 0000:01:00.0 kernel driver none",
                "NVML · NVIDIA H200",
            ],
        ),
        (samples.INVENTORY, MATRIX, ["gpu0 gpu1 gpu0 X NV4 gpu1 NV4 X"]),
    ],
    told=["what was captured", "little", "the ways between GPUs"],
)
def test_the_machine_is_told_without_what_was_not_captured(
    inventory: dict[str, Any], matrix: Sequence[tuple[str, ...]], texts: list[str]
) -> None:
    told = words(page(render.render(samples.seen(samples.passing(), inventory, matrix))))
    assert [text for text in texts if text not in told] == []
    assert "None" not in told


def test_a_page_without_an_inventory_is_a_page_that_runs_and_fetches_nothing() -> None:
    tree = page(render.render(samples.passing()))
    assert (tree.find_class("gpu"), list(tree.iter("figure"))) == ([], [])
    (policy,) = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
    made = journals.plan(
        *(
            journals.check(f"cpu.c{n}", *(journals.due("rate", Core(k)) for k in range(200)))
            for n in range(10)
        )
    )
    assert len(render.render(samples.run(journals.bodies(made)))) < 800_000, "of many cores"


def test_samples_that_cannot_be_read_are_said_and_take_nothing_else_away() -> None:
    def broken() -> Iterator[TimedSample]:
        for seq, power_w in enumerate((100.0, 300.0)):
            yield TimedSample(
                seq, 101.0 + seq, GpuSample(GpuReadings(power_w=power_w), component=Gpu(0))
            )
        raise JournalError("telemetry-gpu.jsonl, line 4: is no sample")

    tree = page(render.render(dataclasses.replace(samples.passing(), samples=broken)))
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
    for rule in (
        *("color-scheme: light dark", "@media print"),
        "@media screen and (prefers-color-scheme: dark)",
    ):
        assert rule in style
    behind = [
        *(
            (one, ground)
            for one in ("fg", "soft", "pass", "fail", "unjudged", "link")
            for ground in ("bg", "card")
        ),
        *(("weak", f"h{level}") for level in range(4)),
        *(("strong", "h4"), ("strong", "h5"), ("fg", "code")),
    ]
    light, dark = (
        dict(re.findall(r"--([a-z\d]+): (#[\da-f]{6})", block))
        for block in re.findall(r":root \{[^}]*\}", style)
    )
    for theme in (light, dark):
        for text, ground in behind:
            low, high = sorted((_rgb(theme[text]), _rgb(theme[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


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
