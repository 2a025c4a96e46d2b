"""What changed, in another language: of every sentence that the judge forms nothing is left in
English but names, numbers and a basis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import hostile
import machine_facts
import msgspec
from cases import each
from hypothesis import given
from machine_facts import born, dimm, link, machine, ruled

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH
from acceptance.core.machine_facts import KnownChange
from acceptance.core.past import (
    Bounds,
    CounterReference,
    FirstNights,
    Level,
    NoiseGrowth,
    Past,
    Slope,
)
from acceptance.machine import changes
from acceptance.reports import drift_words, languages
from acceptance.reports.headline import headline

CHINESE = languages.language("zh-CN")
LEVEL = Level(150.0, 28, 1.25, 4.5, Bounds(low=145.0))
BASELINE = FirstNights(152.0, 28, 20000.0, Bounds(low=146.0), baseline=True)
PASTS = {
    "step": Past(True, 4, 14, level=LEVEL),
    "two nights": Past(True, 4, 14, before=True, level=LEVEL),
    "strayed": Past(True, 4, 14, off=3, level=LEVEL),
    "either side": Past(
        False,
        4,
        14,
        level=msgspec.structs.replace(LEVEL, bounds=Bounds(145.0, 155.0), deviation=0.0),
    ),
    "baseline": Past(True, 4, 14, level=LEVEL, first=BASELINE, rebased=True),
    "baseline alone": Past(True, 4, 14, first=msgspec.structs.replace(BASELINE, nights=1)),
    "one night after it": Past(True, 4, 14, first=msgspec.structs.replace(BASELINE, nights=2)),
    "first nights": Past(True, 4, 14, first=msgspec.structs.replace(BASELINE, baseline=False)),
    "few nights": Past(
        True, 4, 14, few=msgspec.structs.replace(BASELINE, nights=2, baseline=False)
    ),
    "slope": Past(
        True, 4, 14, level=LEVEL, slope=Slope(150.0, 140.0, 60.5, 120, Bounds(low=147.0))
    ),
    "noise": Past(True, 4, 14, level=LEVEL, grown=NoiseGrowth(1.0, 4.5, 28)),
    "ceiling": Past(
        True,
        4,
        14,
        level=msgspec.structs.replace(LEVEL, middle=50.0, bounds=Bounds(high=60.0)),
    ),
    "counter": Past(
        True, 4, 14, counter=CounterReference(3.0, 1.0, 10.0, "ten a day", 20.0, repeats=True)
    ),
    "counter again": Past(
        True,
        4,
        14,
        before=True,
        counter=CounterReference(3.0, 2.5, 10.0, "ten a day", repeats=True),
    ),
    "counter strayed": Past(
        True, 4, 14, off=3, counter=CounterReference(3.0, 2.5, 10.0, "ten a day", repeats=True)
    ),
    "counter set back": Past(True, 4, 14, counter=CounterReference(300.0, 2.5, 10.0, "ten a day")),
}
FORMS = re.sub(r"\{\w+\}", "", " ".join(drift_words._FORM_WORDS))
LABELS = {name for rule in machine_facts.BOOK.change for name in rule.facts.values()}
AS_THEY_ARE = {"memory", "on"}  # a component, and a switch
OURS = {*re.findall(r"[a-z]{2,}", FORMS), *(name for name in LABELS if CHINESE(name) != name)}


def english(told: str) -> set[str]:
    """The words of ours that are still English, but for what a rule rests on."""
    return {
        word for word in OURS if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", told, re.ASCII)
    }


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


@each("again", [None, 149.0, 120.0])
@each("name", PASTS)
def test_nothing_of_a_drift_is_left_in_english(name: str, again: float | None) -> None:
    found = PASTS[name].judge("copy_h2d on gpu0", "GB/s", 120.0, again).findings
    assert found
    for one in found:
        finding = Finding(
            one.kind, "link.copy", one.text, "copy_h2d", "gpu0", event=f"drift.{one.what}"
        )
        told = headline(finding, CHINESE)
        assert english(told.replace("ten a day", "")) == set(), told
        assert numbers(told) == numbers(one.text) or "1 night" in one.text or "second" in one.text
        assert told.startswith("gpu0 的 copy_h2d：")  # noqa: RUF001
        assert headline(finding) == one.text


def test_a_step_in_chinese() -> None:
    (one,) = PASTS["step"].judge("copy_h2d on gpu0", "GB/s", 120.0, 121.0).findings
    assert drift_words.translate(one.text, CHINESE) == (
        "gpu0 的 copy_h2d：测得 120 GB/s，再测一遍为 121 GB/s："  # noqa: RUF001
        "比此前 28 夜的中位数 150 GB/s 低 20 %，"  # noqa: RUF001
        "界限 >= 145 GB/s；"  # noqa: RUF001
        "第一夜：再有这样一夜就是失败；依据：28 夜的中位数 150 GB/s，一个偏差 1.25 GB/s，"  # noqa: RUF001
        "允许 4.5 个"
    )


def test_what_is_no_number_in_chinese() -> None:
    (one,) = PASTS["step"].judge("copy_h2d on gpu0", "GB/s", float("nan")).findings
    assert english(drift_words.translate(one.text, CHINESE)) == set()


def altered() -> Iterator[dict[str, Any]]:
    """Machines on which one thing or more is another."""
    for name in machine()["board"]:
        yield machine() | {"board": machine()["board"] | {name: "other"}}
    for name, value in (
        ("sockets", 1),
        ("cores", 1),
        ("threads", 1),
        ("model", "other"),
        ("governor", "other"),
    ):
        yield machine() | {"cpu": machine()["cpu"] | {name: value}}
    memory = machine()["memory"]
    for more in (
        {"total_bytes": 1 << 30},
        {"ecc": "None"},
        {"dimms": None},
        {"dimms": [dimm("A1")]},
        {"dimms": [dimm("A1", serial="D-B1"), dimm("B1", serial="D-A1")]},
        {"dimms": [dimm("A1", configured_mts=4000), dimm("B1", size_bytes=1 << 30)]},
        {"dimms": [dimm("A1", part_number="X", kind="Y"), dimm("B1")]},
    ):
        yield machine() | {"memory": memory | more}
    for changed in (
        {"speed_mbps": 1000},
        {"up": False},
        {"pcie_width": 1},
        {"pcie_speed_gts": 2.5},
        {"driver": "x"},
    ):
        yield machine() | {"links": [link(**changed)]}
    yield machine() | {"links": [link(mac="b8:00:00:00:00:02")]}
    yield machine() | {"disks": []}
    yield machine() | {
        "disks": [
            machine_facts.disk(firmware="2", size_bytes=1),
            machine_facts.disk("nvme1n1", model="other"),
        ]
    }
    yield machine(1)
    yield machine(3)
    plain = machine()
    one, two = plain["nvml"]["devices"]
    one["pci_address"], two["pci_address"] = two["pci_address"], one["pci_address"]
    yield plain
    plain = machine()
    first, second = plain["nvml"]["devices"]
    first |= {"uuid": "GPU-9"}
    second |= {"vbios": "9", "memory_bytes": 1 << 30, "links": []}
    second["traits"] |= {
        "cuda_cores": 1,
        "max_link_gen_here": 1,
        "max_link_width_here": 1,
        "power_limit_w": 1.0,
    }
    second["traits"] |= {"mig_enabled": True, "ecc_enabled": False}
    yield plain
    yield machine() | {"board": dict.fromkeys(machine()["board"])}


def test_nothing_of_a_changed_machine_is_left_in_english() -> None:
    forms: set[str] = set()
    for plain in altered():
        then = ruled(born(machine(), gpu_link_gen=5.0, gpu_link_width=16.0, nvlink_speed=25.0))
        for birth in (
            then,
            msgspec.structs.replace(
                then, known=(KnownChange("", "kernel", "other", "2025-12-24"),)
            ),
        ):
            found = changes.machine_changes(
                birth, born(plain, gpu_link_gen=1.0, gpu_link_width=1.0, nvlink_speed=12.0)
            )
            assert found
            for one in found:
                told = drift_words.translate(one.text, CHINESE)
                clauses, mark, basis = told.partition("；依据：")  # noqa: RUF001
                assert english(clauses) - AS_THEY_ARE == set(), told
                assert not mark or one.text.endswith(
                    f"; basis: {basis}"
                )  # what a rule rests on is English everywhere
                forms.add(one.event)
    assert {
        "inventory.missing",
        "inventory.replaced",
        "inventory.moved",
        "inventory.untold",
    } < forms


def test_a_fact_by_its_name_and_its_component_by_its_own() -> None:
    text = (
        "RAM of memory: 4 GiB when the baseline was recorded (2026-01-01), 2 GiB now; basis: a "
        "module of it is gone"
    )
    assert drift_words.translate(text, CHINESE) == (
        "memory 的 内存容量：记录基线时（2026-01-01）是 4 GiB，"  # noqa: RUF001
        "现在是 2 GiB；依据：a module of it is gone"  # noqa: RUF001
    )


@each("text", ["", "; ", "kernel", "x of y", "a; b; c", "basis: ", "{name} on {where}", "x" * 2001])
def test_what_has_no_form_of_ours_stays_as_it_is(text: str) -> None:
    assert drift_words.translate(text, CHINESE) == text


def test_a_text_that_is_made_of_ours_again_and_again_comes_to_an_end() -> None:
    text = "basis: " * 280
    assert drift_words.translate(text, CHINESE).count("依据：") == 4  # noqa: RUF001
    hard = "a below b, bound " * 110
    assert drift_words.translate(hard, CHINESE)


def test_english_is_left_alone() -> None:
    assert drift_words.translate("basis: x", ENGLISH) == "basis: x"


@each(
    "event, ours",
    [("drift.step", True), ("inventory.moved", True), ("xid.79", False), ("drifted", False)],
)
def test_whose_sentences_these_are(event: str, ours: bool) -> None:
    assert drift_words.is_drift_event(event) is ours


@given(hostile.texts)
def test_text_from_outside_is_handed_on_as_it_came(text: str) -> None:
    whole = f"kernel: {text} when the baseline was recorded (2026-01-01), 6.13 now; basis: why"
    told = drift_words.translate(whole, CHINESE)
    assert told == whole or text in told
