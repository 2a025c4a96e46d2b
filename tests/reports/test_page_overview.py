"""The top of the page and its picture: the figures of each GPU beside its equals, and a line for
each other part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import hostile
import journals
import pages
import samples
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from test_page import assert_inert
from thoroughness import some

from acceptance.core.evidence import Table
from acceptance.core.finding import Waiver
from acceptance.core.limit import Limit
from acceptance.core.parts import CPU, MACHINE, MEMORY, Component, Gpu, Pair, Part, Socket
from acceptance.core.record import Body, CheckEnded, Measured, RunClosed
from acceptance.expect import gpu_limits
from acceptance.journal.run import Run
from acceptance.journal.samples import GpuReadings, GpuSample, TimedSample
from acceptance.loads.burn.contract import LAP_COLUMNS, LAP_ROWS, LAPS
from acceptance.reports import languages
from acceptance.reports.page import overview_svg, render

H100, RTX = ("10de:2330", "NVIDIA H100 80GB HBM3"), ("10de:2684", "NVIDIA GeForce RTX 4090")
Values = Mapping[tuple[str, Component], float | None]
UNITS = {"gemm": "TFLOP/s", "burn": "TFLOP/s", "copy": "GB/s", "p2p": "GB/s", "vram": "GB/s"}
SECONDS = ("power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown", "power_brake", "hw_slowdown")


OWN = {"gpu_temperature": "degC", "gpu_power": "W", "cpu_temperature": "degC"}
OWN |= {"gpu_link_gen": "count", "gpu_link_width": "count", "memory_tested": "GiB"}
OWN |= dict.fromkeys((f"gpu_{name}" for name in SECONDS), "s")
COUNTS = ("_miscompares", "_differ", "_errors", "_failures", "_blocks", "gpu_count")


def unit(measurement: str) -> str:
    if measurement.endswith(COUNTS):
        return "count"
    return OWN.get(measurement) or UNITS.get(measurement.split("_")[0], "GB/s")


def inventory(cards: Sequence[tuple[str, str]], **more: Any) -> dict[str, Any]:
    """A machine with these GPUs, and what `more` says."""
    addresses = [f"0000:{number + 1:02x}:00.0" for number in range(len(cards))]
    return {
        **samples.INVENTORY,
        "pci": [
            {"address": address, "device_id": card[0], "is_display": True, "driver": "nvidia"}
            for address, card in zip(addresses, cards, strict=True)
        ],
        "nvml": {
            "devices": [
                {"index": number, "name": card[1], "pci_address": address, "memory_bytes": 80 << 30}
                for number, (address, card) in enumerate(zip(addresses, cards, strict=True))
            ]
        },
        **more,
    }


def run(
    values: Values,
    cards: Sequence[tuple[str, str]] = (H100,),
    limits: Mapping[tuple[str, Component], Limit] | None = None,
    tables: Sequence[Table] = (),
    **more: Any,
) -> Run:
    """A run of such a machine that measured these values; None was due and not measured."""
    made = journals.plan(
        journals.check(
            "one.check",
            *(journals.due(*key, unit(key[0]), (limits or {}).get(key)) for key in values),
        )
    )
    bodies: list[Body] = []
    for body in journals.bodies(made, {key: 1.0 if v is None else v for key, v in values.items()}):
        if isinstance(body, Measured) and values[body.measurement, body.component] is None:
            continue
        bodies += [*tables, body] if isinstance(body, CheckEnded) else [body]
    return samples.seen(samples.run(bodies), inventory(cards, **more))


def shown(found: Run, lang: str = "en") -> Any:
    text = render.render(found, gpu_limits.sheets(), languages.language(lang))
    assert_inert(text)
    return pages.page(text).get_element_by_id("overview").getparent()


def readings(found: Run, gpu: int = 0, lang: str = "en") -> dict[str, str]:
    """The lines of a GPU's card by their name."""
    card = shown(found, lang).find_class("gpu")[gpu]
    return {
        pages.words(one.find("dt")): " | ".join(pages.words(part) for part in one.iterfind("dd"))
        for one in card.find_class("reading")
    }


def of(name: str, *values: float) -> dict[tuple[str, Component], float | None]:
    return {(name, Gpu(number)): value for number, value in enumerate(values)}


def test_the_figures_that_builders_compare() -> None:
    both = (H100, H100)
    a, b = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))
    values = (
        of("gemm_f8", 1288.0, 1300.0)
        | of("gemm_bf16", 680.0, 700.0)
        | of("copy_own_d2d", 3017.0, 3017.0)
        | of("copy_h2d", 52.24, 50.0)
        | of("copy_d2h", 55.0, 55.0)
        | of("gpu_link_gen", 5.0, 5.0)
        | of("gpu_link_width", 16.0, 16.0)
        | {("copy_d2d_write", a): 390.0, ("copy_d2d_write", b): 380.0}
        | of("gpu_temperature", 78.0, 68.0)
        | of("gpu_power", 709.168, 715.0)
        | of("gpu_power_cap", 199.15, 0.0)
        | of("gemm_bf16_miscompares", 0.0, 0.0)
        | of("vram_miscompares", 0.0, 0.0)
    )
    row = ("0", "bf16", 1.0, 17_000.0, 1.0, 0.0, 1.0)
    laps = Table("one.check", Gpu(0), LAPS, LAP_COLUMNS, (row, row))
    found = run(values, both, tables=[laps])
    assert readings(found) == {
        "FP8 rate": "1288 TFLOP/s | 65 % of peak | -0.9 %",
        "BF16 rate": "680 TFLOP/s | 69 % of peak | -2.9 %",
        "memory copy": "3017 GB/s | 90 % of peak | +0.0 %",
        "host link": "52.2 / 55.0 GB/s | PCIe gen 5 x16 | +4.5 %",
        "peer link": "390 GB/s | +2.6 %",
        "hottest": "78 \u00b0C, 709 W | held back: power limit 3 min | +10 \u00b0C",
        "results": "no error | 2 comparisons, 34,000 burn products",
    }
    assert readings(found, 1)["hottest"] == (
        "68 \u00b0C, 715 W | nothing held the clock back | -10 \u00b0C"
    )
    assert readings(found, 1)["results"] == "no error | 2 comparisons"
    top = shown(found)
    assert top.find("h2").text == "2 x NVIDIA H100 80GB HBM3, 80 GiB"
    assert pages.words(top).count("Rates are of sustained matrix products") == 1
    assert readings(found, lang="zh-CN")["主机链路"] == "52.2 / 55.0 GB/s | PCIe 5.0 x16 | +4.5 %"


def states(found: Run) -> list[str]:
    """What is noted of each GPU."""
    return [pages.words(one) for one in shown(found).find_class("state")]


def test_what_was_not_measured_is_said_and_never_guessed() -> None:
    assert readings(
        run({("gemm_bf16", Gpu(0)): None, ("gemm_bf16_miscompares", Gpu(0)): None})
    ) == {
        "BF16 rate": "not measured ? error",
        "memory copy": "not measured",
        "host link": "not measured",
        "peer link": "one GPU",
        "hottest": "not measured",
        "results": "not measured ? error",
    }
    two = run(of("gemm_f16", 50.0), (H100, H100))
    assert {readings(two, 1)[name] for name in ("FP16 rate", "peer link")} == {"not measured"}
    assert states(two) == ["✓ nothing to note", "? not measured"]
    found = run({("vram_miscompares", Gpu(0)): 0.0, ("gemm_f8_miscompares", Gpu(0)): None})
    assert readings(found)["results"] == "no error ? error | 1 comparison, 1 not made (one.check)"
    assert states(found) == ["? 1 value not judged"], "a part is no whole"
    halves = {("cpu_gemm_miscompares_f64", CPU): 0.0, ("stress_ng_failures", CPU): None}
    assert "128 threads: no error, 1 not made" in pages.words(shown(run(halves)))
    alone = shown(run({("cpu_gemm_f64", CPU): 1.0}, ()))
    assert (alone.find("h2").text, alone.find_class("gpu")) == ("No GPU", [])
    assert "Rates are of" not in pages.words(alone)


LOST = {"index": 0, "pci_address": "0000:01:00.0", "error": "NVML says: GPU is lost"}


def test_what_is_noted_of_a_gpu() -> None:
    assert states(samples.seen(samples.mixed(), inventory((H100,)))) == ["✗ 1 failure"], "an event"
    lost = shown(run(of("gpu_answers", 0.0), nvml={"devices": [LOST]}))
    assert LOST["error"] in pages.words(lost.find_class("gpu")[0])
    low = Limit("TFLOP/s", "a basis", low=600.0)
    waiver = Waiver(reason="known", measurement="gemm_bf16", component="gpu0", worst=400.0)
    check = journals.check("one.check", journals.due("gemm_bf16", Gpu(0), "TFLOP/s", low))
    bodies = journals.bodies(journals.plan(check, waivers=[waiver]), of("gemm_bf16", 500.0))
    found = samples.seen(samples.run(bodies), inventory((H100,)))
    assert readings(found)["BF16 rate"].startswith("500 TFLOP/s ~ waived")
    assert states(found) == ["~ 1 value waived"]


def test_a_gpu_is_held_beside_its_equals_alone() -> None:
    cards = (H100, H100, H100, RTX)
    found = run(of("gemm_bf16", 700.0, 690.0, 350.0, 150.0), cards)
    spots = [readings(found, gpu)["BF16 rate"].split(" | ")[2:] for gpu in range(4)]
    assert spots == [["+34.6 %"], ["+31.4 %"], ["-49.6 %"], []]
    bars = [one.find("rect") for one in shown(found).find_class("strip")]
    ends = [(float(one.get("x")), float(one.get("width"))) for one in bars]
    assert ends == [(50.0, 50.0), (50.0, 50.0), (0.0, 50.0)], "never beyond the strip"
    assert shown(found).find("h2").text == (
        "3 x NVIDIA H100 80GB HBM3, 80 GiB; 1 x NVIDIA GeForce RTX 4090, 80 GiB"
    )


def test_a_failure_is_told_in_words_on_its_gpu_and_its_line() -> None:
    floor = {
        ("gemm_bf16", Gpu(1)): Limit("TFLOP/s", "a basis", low=600.0),
        ("bandwidth_test_h2d", Gpu(1)): Limit("GB/s", "a basis", low=40.0),
        ("nvlink_active", Gpu(1)): Limit("GB/s", "a basis", low=18.0),
        ("gemm_f8", Gpu(0)): Limit("TFLOP/s", "a basis", low=100.0, warn_low=1300.0),
    }
    values = (
        of("gemm_bf16", 700.0, 500.0)
        | of("gemm_f8", 1200.0, 1300.0)
        | of("copy_h2d", 50.0, 50.0)
        | of("copy_d2h", 50.0, 50.0)
        | of("bandwidth_test_h2d", 50.0, 30.0)
        | of("nvlink_active", 18.0, 17.0)
    )
    found = run(values, (H100, H100), floor)
    assert states(found) == ["! 1 warning", "✗ 3 failures"]
    for gpu, name, start in (
        (1, "BF16 rate", "500 TFLOP/s ✗ fail"),
        (1, "host link", "50.0 / 50.0 GB/s ✗ fail"),
        (1, "peer link", "not measured ✗ fail"),
        (0, "FP8 rate", "1200 TFLOP/s ! warn"),
        (0, "host link", "50.0 / 50.0 GB/s"),
    ):
        assert readings(found, gpu)[name].startswith(start)
    assert "✗" not in readings(found)["host link"]


NEXT_BEST = of("vram_copy", 3000.0) | of("copy_own_h2d", 25.0) | of("copy_own_d2h", 26.0)
PAIRS = [Pair(Gpu(a), Gpu(b)) for a in range(3) for b in range(3) if a != b]
WRITES: Values = {("p2p_write", pair): 300.0 for pair in PAIRS}
HELD: Values = {(f"gpu_{name}", Gpu(0)): 5.0 for name in SECONDS}
WRONG: Values = {
    ("gemm_f8_miscompares", Gpu(0)): 2.0,
    ("gpu_burn_errors_tensor", Gpu(0)): 3.0,
    ("burn_peer_miscompares", Pair(Gpu(0), Gpu(1))): 1.0,
    ("burn_peer_miscompares", Pair(Gpu(1), Gpu(0))): 7.0,
}
LAP = ("0", "bf16", 1.0, 5.0, 1.0, 0.0, 1.0)
CUT = (
    Table("one.check", Gpu(0), LAPS, LAP_COLUMNS, (LAP,) * LAP_ROWS),
    Table("one.check", Gpu(0), LAPS, ("other",), ((1.0,),)),
)


@each(
    "values, cards, tables, name, text",
    [
        (
            {**of("gemm_bf16", 700.0), ("burn_bf16", Gpu(0)): None},
            1,
            (),
            "BF16 rate",
            "700 TFLOP/s | 71 % of peak",
        ),
        (NEXT_BEST, 1, (), "memory copy", "3000 GB/s | 89 % of peak"),
        (NEXT_BEST, 1, (), "host link", "25.0 / 26.0 GB/s"),
        (
            {**of("copy_h2d", 25.0), ("copy_d2h", Gpu(0)): None},
            1,
            (),
            "host link",
            "25.0 / - GB/s ? error",
        ),
        (
            {("p2p_staged", pair): 20.0 for pair in PAIRS},
            3,
            (),
            "peer link",
            "20 GB/s | through host memory: no peer access | +0.0 %",
        ),
        (
            {**WRITES, ("p2p_write", Pair(Gpu(0), Gpu(2))): 100.0},
            3,
            (),
            "peer link",
            "200 GB/s | lowest 100 GB/s | -33.3 %",
        ),
        (
            {**of("gpu_power", 300.0), **HELD},
            1,
            (),
            "hottest",
            "300 W | held back: power limit 5 s, heat (driver) 5 s, heat (hardware) 5 s, "
            "power brake 5 s, hardware slowdown 5 s",
        ),
        (of("gpu_power", 300.0), 1, (), "hottest", "300 W"),
        (WRONG, 2, (), "results", "6 errors | 3 comparisons"),
        (of("vram_miscompares", 0.0), 1, CUT, "results", "no error | 1 comparison"),
    ],
    told=[
        "a rate that was not measured elsewhere leaves a sound one unmarked",
        "the next best measurement of a kind is shown for all",
        "of both ways too",
        "one way alone",
        "peers without access",
        "the slowest of several peers",
        "all that held the clock back is named",
        "nothing is said where it was not measured",
        "wrong results are counted over all comparisons",
        "a table of laps that was cut counts nothing",
    ],
)
def test_one_line_of_a_card(
    values: Values, cards: int, tables: tuple[Table, ...], name: str, text: str
) -> None:
    assert readings(run(values, (H100,) * cards, tables=tables))[name] == text


@each(
    "values, names",
    [
        ({"gemm_f32": 20.0, "gemm_f16": 90.0, "gemm_f64": 900.0}, ["FP16 rate", "BF16 rate"]),
        ({"gemm_bf16": 500.0, "gemm_f16": 400.0}, ["BF16 rate", "memory copy"]),
    ],
)
def test_the_best_rate_is_that_of_the_card(values: dict[str, float], names: list[str]) -> None:
    found = run({(name, Gpu(0)): value for name, value in values.items()})
    assert list(readings(found))[:2] == names


@each("held", ["reason_sw_power_cap", "reason_hw_thermal", None])
def test_samples_tell_the_heat_of_a_run_that_broke_off(held: str | None) -> None:
    found = run({("gpu_temperature", Gpu(0)): None})
    reading = GpuReadings(temperature_c=83.0, power_w=447.0, **({held: 1.0} if held else {}))
    last = TimedSample(0, found.first.boot_s + 1.0, GpuSample(reading, component=Gpu(0)))
    sampled = dataclasses.replace(found, samples=lambda: iter([last]))
    told = {
        "reason_sw_power_cap": "held back: power limit",
        "reason_hw_thermal": "held back: heat or hardware",
        None: "nothing held the clock back",
    }
    assert readings(sampled)["hottest"] == f"83 \u00b0C, 447 W ? error | {told[held]}"


def test_a_line_for_each_other_part() -> None:
    disks = [
        {"name": f"sd{letter}", "model": "DISK", "size_bytes": size, "kind": "ssd"}
        for letter, size in (("a", 10**12), ("b", 10**12), ("c", 318 * 10**6))
    ]
    values: Values = {
        ("cpu_gemm_f64", CPU): 1322.0,
        ("cpu_temperature", CPU): 71.04,
        ("stress_ng_failures", CPU): 0.0,
        ("memory_copy", MEMORY): 78.72,
        ("memory_tested", MEMORY): 128.0,
        ("stressapptest_errors", MEMORY): 1.0,
        ("memory_random_miscompares", Socket(0)): 1.0,
        ("storage_write", Part("disk", "sdc")): 1.9,
        ("storage_read", Part("disk", "sdc")): 1.2,
        ("storage_wrong_blocks", Part("disk", "sdc")): 0.0,
    }
    facts = shown(run(values, disks=disks)).find_class("facts")[0]
    names, texts = ([pages.words(one) for one in facts.iterfind(tag)] for tag in ("dt", "dd"))
    assert dict(zip(names, texts, strict=True)) == {
        "processor": "EPYC 9554, 1 socket, 64 cores, 128 threads: FP64 1322 GFLOP/s, "
        "hottest 71 \u00b0C, no error",
        "memory": "24 GiB: copies 78.72 GB/s, 128 GiB tested, 2 errors",
        "disks sda, sdb": "DISK, 1000 GB, ssd: not measured",
        "disk sdc": "DISK, 318 MB, ssd: write 1.9 GB/s, read 1.2 GB/s, no error",
    }


@each(
    "due_gpus, found, expected",
    [(3.0, 1.0, "; 2 GPUs missing"), (1.0, 1.0, ""), (1.0, 2.0, ""), (1e300, 1.0, "")],
)
def test_a_missing_gpu_is_named_above_the_cards(
    due_gpus: float, found: float, expected: str
) -> None:
    key = ("gpu_count", MACHINE)
    limit = Limit("count", "declared", low=due_gpus, high=due_gpus)
    top = shown(run({key: found}, limits={key: limit}))
    assert top.find("h2").text == f"NVIDIA H100 80GB HBM3, 80 GiB{expected}"


def test_absurd_values_break_nothing() -> None:
    most = 1e300
    values = (
        of("gemm_bf16", most, 1.0)
        | of("gpu_temperature", most, 1.0)
        | of("gpu_power_cap", most, most)
        | of("vram_miscompares", most, -most)
        | {("copy_d2d_write", Pair(Gpu(0), Gpu(1))): -most}
    )
    found = run(values, (H100, H100))
    assert all(len(text) < 120 for text in readings(found).values())
    overview_svg.draw(found, gpu_limits.sheets())


# --- the picture ---

ALLOWED = {"svg", "title", "style", "rect", "text"}
ATTRIBUTES = {"width", "height", "viewBox", "lang", "role", "aria-labelledby", "id", "class"}
ATTRIBUTES |= {"x", "y", "rx", "font-size"}


def picture(found: Run, lang: str = "en") -> etree._Element:
    """The picture as XML; it can run and fetch nothing, and no text leaves it."""
    text = overview_svg.draw(found, gpu_limits.sheets(), languages.language(lang))
    assert not hostile.HARMFUL.search(text)
    root = etree.fromstring(text.encode("utf-8"))
    assert {etree.QName(one).localname for one in root.iter()} <= ALLOWED
    assert {str(name) for one in root.iter() for name in one.attrib} <= ATTRIBUTES
    width, height = float(root.get("width")), float(root.get("height"))
    for one in root.iterfind(".//{*}text"):
        x, size = float(one.get("x")), float(one.get("font-size"))
        long = overview_svg.text_width(one.text or "", size)
        left, right = (x - long, x) if "end" in one.get("class") else (x, x + long)
        assert left > 0, one.text
        assert right < width + 1, one.text
        assert float(one.get("y")) < height
    return root


def said(root: etree._Element) -> str:
    return " ".join(one.text or "" for one in root.iterfind(".//{*}text"))


@each("count", [0, 1, 3, 16])
def test_a_picture_has_the_machine_the_verdict_and_every_card(count: int) -> None:
    rates = of("gemm_bf16", *map(float, range(count)))
    found = run({("cpu_gemm_f64", CPU): 1.0} | rates, (H100,) * count)
    sealed = dataclasses.replace(found, seal=dataclasses.replace(found.seal, digest="ab" * 32))
    text, chinese = said(picture(sealed)), said(picture(found, "zh-CN"))
    for expected in ("PASS", "box · 2026-01-01 00:00:00 UTC", f"evidence {'ab' * 32}", "EPYC"):
        assert expected in text
    assert all(f"gpu{gpu} " in text for gpu in range(count))
    assert text.count(" TFLOP/s") == count
    assert ("box" in chinese, "GPU 互连" in chinese) == (True, count > 0)


def test_a_picture_names_the_first_findings_and_counts_the_rest() -> None:
    limits = {(f"copy_{number}", Gpu(0)): Limit("GB/s", "a basis", low=9.0) for number in range(5)}
    text = said(picture(run(dict.fromkeys(limits, 1.0), limits=limits)))
    assert "✗ copy_0 on gpu0: measured 1 GB/s" in text
    assert "2 more findings" in text
    detail = "the machine was restarted before it came to its end"
    closed = RunClosed("link.copy", True, {}, detail)
    for found, told in (
        (run({("copy_h2d", Gpu(0)): None}), "? copy_h2d"),
        (samples.run([*journals.bodies(journals.plan())[:-1], closed]), detail),
        (samples.passing(), "PASS"),
    ):
        assert told in said(picture(found))


@each("text", some([hostile.EVERYTHING, "x" * 5_000, "<b>&amp;", "显" * 400], 2))
def test_text_from_outside_stays_text_in_a_picture(text: str) -> None:
    picture(samples.run(hostile.attack(text)))
    picture(run(of("gemm_bf16", 1.0, 2.0), ((H100[0], text),) * 2))


@given(text=st.text(max_size=300), width=st.integers(20, 400), most=st.integers(1, 4))
def test_lines_are_no_longer_than_their_place(text: str, width: int, most: int) -> None:
    lines = overview_svg.wrapped(text, width, 12, most)
    assert len(lines) <= most
    assert all(overview_svg.text_width(line, 12) <= max(width, 24) for line in lines)
    if not any(line.endswith("…") for line in lines):
        assert "".join("".join(lines).split()) == "".join(overview_svg.one_line(text).split())
