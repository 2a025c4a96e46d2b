from __future__ import annotations

import itertools

import journals
import pytest
import samples
from lxml import html as lxml_html
from test_junit import HOSTILE

from acceptance.judge.verdict import fold
from acceptance.reports import html
from acceptance.reports.places import NOWHERE
from acceptance.reports.teaching import labelled

ALLOWED = {
    "a", "body", "code", "div", "h1", "h2", "h3", "head", "header", "html", "li", "main", "meta", "p", "section", "strong", "style",
    "table", "tbody", "td", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "name", "content", "class", "scope", "rowspan", "role", "aria-label", "tabindex",
}  # fmt: skip


def page(text: str) -> lxml_html.HtmlElement:
    return lxml_html.document_fromstring(text)


def words(element: lxml_html.HtmlElement) -> str:
    return " ".join(" ".join(element.xpath(".//text()[not(parent::style)]")).split())


def assert_inert(text: str) -> None:
    for element in page(text).iter():
        assert element.tag in ALLOWED
        assert set(element.attrib) <= ATTRIBUTES
    assert not any(word in text for word in ("url(", "@import", "src=", "href=", "javascript:"))
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_inert(text: str) -> None:
    verdict, found = samples.hostile(text)
    shown = html.render(verdict, found, {})
    assert_inert(shown)
    shown.encode("utf-8")
    assert len(shown) < 400_000
    assert page(shown).find(".//h1").text == "FAIL"


def test_hostile_inventory_is_inert() -> None:
    verdict, found = samples.passing()
    inventory = {
        "cpu": {"model": HOSTILE[0], "sockets": None, "cores": None, "threads": None},
        "memory": {"total_bytes": 1, "dimms": None, "dimms_unread": HOSTILE[1]},
        "disks": [{"name": HOSTILE[0], "model": HOSTILE[2], "size_bytes": 1, "kind": None}],
        "links": [{"name": HOSTILE[0], "up": True, "speed_mbps": 1, "driver": HOSTILE[1]}],
        "pci": [],
        "nvml": {
            "devices": [
                {
                    **dict.fromkeys(("uuid", "name", "pci_address", "serial", "vbios", "error"), HOSTILE[0]),
                    **{"index": 0, "memory_bytes": 1, "traits": {}, "links": []},
                }
            ]
        },
        "board": dict.fromkeys(("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver"), HOSTILE[0]),
    }
    shown = html.render(verdict, found, inventory, [("", HOSTILE[0]), (HOSTILE[1], HOSTILE[2])])
    assert_inert(shown)
    assert "alert(1)" in words(page(shown))


def test_the_verdict_comes_first_and_every_reason_is_there() -> None:
    verdict, found = samples.mixed()
    shown = html.render(verdict, found, samples.INVENTORY)
    assert_inert(shown)
    tree = page(shown)
    assert [element.tag for element in tree.find("body")] == ["header", "main"]
    first = next(element for element in tree.find("body").iter() if (element.text or "").strip())
    assert (first.tag, first.text, first.get("class")) == ("h1", "FAIL", "FAIL")
    cards = {words(card) for card in tree.find_class("card")}
    assert len(cards) == len(verdict.of_kind("fail", "error", "skip", "warn", "waived"))
    (card,) = (card for card in cards if card.startswith("gpu.present"))
    assert "PCI bus: no NVIDIA device -> reseat the card kernel driver: not loaded -> the card first " in card
    taught = [f"{label.capitalize()}: {text}" for label, text in labelled(verdict.of_kind("fail")[0], NOWHERE)]
    assert card.endswith(" ".join(taught))
    assert "Likely cause 1: the card is not fully in its slot" in card
    for finding in verdict.of_kind("fail", "error", "skip", "warn", "waived"):
        said = " ".join(finding.text.replace("; basis:", " basis:").split())
        assert any(said in card for card in cards)
    text = words(tree)
    for expected in (
        "What to do: reseat it",
        "NVRM: Xid 79",
        "stale waiver, not needed in this run: bandwidth on memory: never needed",
    ):
        assert expected in text
    for expected in (
        "journal-load.jsonl ends in half a line",
        "the kernel log was not followed",
        "faults that need heat",
    ):
        assert expected in text


def test_every_measurement_is_in_the_table() -> None:
    verdict, found = samples.mixed()
    tree = page(html.render(verdict, found, {}))
    table = tree.find_class("figures")[0]
    rows = [words(row) for row in table.iterfind("tbody/tr")]
    assert len(rows) == sum(len(check.due) for check in samples.mixed_plan().checks)
    assert (
        "memory.bandwidth title of memory.bandwidth pass 3 s bandwidth memory SN1 11 GB/s >= 10 GB/s half of the peak (class default)"
        in rows
    )
    marked = {words(cell): cell.get("class") for cell in table.iterfind(".//td") if "number " in cell.get("class", "")}
    assert marked["11 GB/s"] == "number warn"
    assert marked["not measured (waived)"] == "number waived"
    assert [cell.get("scope") for cell in table.iterfind("thead/tr/th")] == ["col"] * 7
    assert [cell.get("scope") for cell in table.iterfind("tbody/tr/th")] == ["rowgroup"] * 7
    assert "python -m load" in words(tree)


def test_a_reader_without_eyes_finds_the_way() -> None:
    verdict, found = samples.mixed()
    tree = page(html.render(verdict, found, samples.INVENTORY))
    assert tree.get("lang") == "en"
    assert tree.findtext(".//title") == "FAIL · rigproof · box"
    levels = [int(element.tag[1]) for element in tree.iter("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for region in tree.find_class("scroll"):
        assert (region.get("role"), region.get("tabindex")) == ("region", "0")
        assert region.get("aria-label")
    assert all(cell.get("scope") for cell in tree.iter("th"))


def test_light_dark_and_paper() -> None:
    verdict, found = samples.passing()
    style = page(html.render(verdict, found, {})).findtext(".//style")
    assert "color-scheme: light dark" in style
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert "@media print" in style


def test_the_machine_is_told_without_what_was_not_captured() -> None:
    verdict, found = samples.passing()
    text = words(page(html.render(verdict, found, samples.INVENTORY)))
    for expected in (
        "processor EPYC 9554, 1 socket, 64 cores, 128 threads",
        "memory 24 GiB",
        "module A1 32 GiB DDR5 at 4800 MT/s PART",
        "module B1 size not told",
        "modules not read: no rights",
        "disk nvme0n1 model not shown, 1000 GB, nvme",
        "network eth0 up, 10000 Mbit/s, mlx5",
        "network eth1 down, no driver",
        "GPU 0000:01:00.0 NVIDIA H200, 141 GiB, GPU-1, serial 77, VBIOS 96.00, power limit 700 W, ECC on, 1 of 2 NVLinks active",
        "GPU 1 model not told, NVML says: GPU is lost",
        "PCI 0000:01:00.0 10de:2684, driver none",
        "bios version 1",
    ):
        assert expected in text
    assert "None" not in text


def test_the_ways_between_gpus_are_a_table() -> None:
    verdict, found = samples.passing()
    matrix = [("", "gpu0", "gpu1"), ("gpu0", "X", "NV4"), ("gpu1", "NV4", "X")]
    assert "gpu0 gpu1 gpu0 X NV4 gpu1 NV4 X" in words(page(html.render(verdict, found, samples.INVENTORY, matrix)))
    assert "Ways between" not in html.render(verdict, found, samples.INVENTORY)


def test_a_page_of_a_large_machine_stays_small() -> None:
    made = journals.plan(
        *(journals.check(f"cpu.c{n}", *(journals.due("rate", f"core:{k}") for k in range(200))) for n in range(10))
    )
    found = samples.journal(journals.bodies(made))
    assert len(html.render(fold(found.entries), found, {})) < 800_000
