"""How fast a GPU must compute: by its sheet, else by its architecture, else not judged, and each
time it says why.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from cases import each
from known import known

from acceptance import resources
from acceptance.core.dtype import DTYPES, gemm_names, native_dtypes
from acceptance.core.limit import Limit
from acceptance.expect import architecture, sheet
from acceptance.expect.compute import (
    ComputeFacts,
    burn_overrides,
    compute_limits,
    pattern_overrides,
)
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.wording import words

FOLDER = resources.locate("models")
SHEETS = sheet.read_all(FOLDER)
KNOWN = architecture.read(FOLDER / "architectures.toml")

RTX_4080 = ComputeFacts(
    "gpu0", "NVIDIA GeForce RTX 4080", "10de:2704", "8.9", 9728, 3105.0, 11201.0, 256
)
RTX_4090 = ComputeFacts(
    "gpu1", "NVIDIA GeForce RTX 4090", "10de:2684", "8.9", 16384, 3105.0, 10501.0, 384
)
H200 = ComputeFacts("gpu0", "NVIDIA H200", "10de:2335", "9.0", 16896, 1980.0, 3201.0, 6016)
V100 = ComputeFacts("gpu0", "Tesla V100-SXM2-16GB", "10de:1db1", "7.0", 5120, 1530.0, 877.0, 4096)


def book(*cards: ComputeFacts) -> LimitBook:
    entries = tuple(compute_limits(cards, SHEETS, KNOWN))
    named = [(entry.measurement, entry.component) for entry in entries]
    assert len(set(named)) == len(named)
    assert all(
        (entry.limit is None) != (entry.unlimited is None) and entry.origin for entry in entries
    )
    return LimitBook(entries)


def entry(found: LimitBook, measurement: str, component: str = "gpu0") -> Override:
    held = found.find(measurement, component)
    assert held is not None, measurement
    return held


def held(found: LimitBook, measurement: str, component: str = "gpu0") -> Limit:
    one = entry(found, measurement, component)
    assert one.limit is not None, one.unlimited
    return one.limit


def unheld(found: LimitBook, measurement: str, component: str = "gpu0") -> str:
    one = entry(found, measurement, component)
    assert one.unlimited is not None, one.limit
    return words.text(one.unlimited)


def test_a_card_with_a_sheet_is_held_to_it() -> None:
    """The H200 in a VM, as measured."""
    found = book(H200)
    hot = {"f64": 53.6, "f32": 51.2, "tf32": 344, "f16": 637, "bf16": 664, "f8": 1213, "i8": 869}
    assert tuple(hot) == DTYPES
    for dtype, value in hot.items():
        assert held(found, f"gemm_{dtype}").grade(value) == "pass"
        assert words.text(entry(found, f"gemm_{dtype}").origin) == "sheet of H200 SXM 141GB"
    short, copy = held(found, "gemm_bf16_short"), held(found, "copy_own_d2d")
    assert [short.grade(value) for value in (814, 600)] == ["pass", "fail"]
    assert [copy.grade(value) for value in (4299, 4299 / 2)] == ["pass", "fail"]
    assert held(found, "vram_copy") == held(found, "copy_own_d2d")


def test_mixed_models_are_each_held_to_their_own() -> None:
    found = book(RTX_4080, RTX_4090)
    assert words.text(entry(found, "gemm_f16", "gpu1").origin) == "sheet of GeForce RTX 4090"
    assert (
        words.text(entry(found, "gemm_f16", "gpu0").origin) == "architecture: GeForce cards of Ada"
    )
    assert {one.component for one in found.entries} == {"gpu0", "gpu1"}


def test_a_card_without_a_sheet_is_held_to_its_architecture() -> None:
    limit = held(book(RTX_4080), "gemm_f16_short")
    assert limit.unit == "TFLOP/s"
    assert limit.low == pytest.approx(0.45 * 76 * 3105 * 512 / 1e6)
    told = (
        "0.45 x 120.8 TFLOP/s = 0.45 x 76 multiprocessors x 3105 MHz x 512 operations a clock "
        "(GeForce cards of Ada; "
    )
    assert words.text(limit.basis).startswith(told)
    assert "a healthy 4090 gives" in words.text(limit.basis)
    hot = held(book(RTX_4080), "gemm_f16")
    assert hot.low == pytest.approx(0.35 * 76 * 3105 * 512 / 1e6)
    copied = held(book(RTX_4080), "copy_own_d2d")
    assert (copied.unit, copied.low) == ("GB/s", pytest.approx(0.65 * 2 * 11.201 * 256 / 8))
    assert words.text(copied.basis).startswith(
        "0.65 x 717 GB/s = 0.65 x 2 x 11201 MHz x 256 bit / 8 (GeForce cards of Ada; "
    )


def test_formats_that_a_card_does_not_have_are_not_due() -> None:
    names = {one.measurement for one in book(V100).entries}
    own = ("f64", "f32", "f16")
    products = {name for dtype in own for name in (*gemm_names(dtype), f"burn_{dtype}")}
    assert names == {"copy_own_d2d", "vram_copy", *products}


# --- the burn: the same products, every one verified ---


@pytest.mark.usefixtures("shares")
@each("dtype", DTYPES)
def test_the_burn_is_held_to_98_hundredths_of_the_floor_of_products(dtype: str) -> None:
    found = book(H200)
    alone, burn = held(found, f"gemm_{dtype}"), held(found, f"burn_{dtype}")
    assert alone.low is not None
    assert burn.low == pytest.approx(0.98 * alone.low)
    assert burn.warn_low == (
        None if alone.warn_low is None else pytest.approx(0.98 * alone.warn_low)
    )
    assert (burn.unit, words.text(entry(found, f"burn_{dtype}").origin)) == (
        "TFLOP/s",
        "sheet of H200 SXM 141GB",
    )
    assert words.text(burn.basis).startswith(
        f"as gemm_{dtype}, where every result verified costs at most 2 %: 0.98 x "
    )
    assert words.text(burn.basis).endswith(words.text(alone.basis))


@pytest.mark.parametrize("card", [RTX_4080, replace(RTX_4080, cuda_cores=None)])
def test_where_products_have_no_floor_the_burn_has_none_for_the_same_reason(
    card: ComputeFacts,
) -> None:
    found = book(card)
    for dtype in DTYPES:
        alone, burn = entry(found, f"gemm_{dtype}"), entry(found, f"burn_{dtype}")
        assert (alone.limit is None) == (burn.limit is None)
        assert (burn.unlimited, burn.component, burn.origin) == (
            alone.unlimited,
            alone.component,
            alone.origin,
        )


@pytest.mark.usefixtures("shares")
def test_a_remark_below_the_floor_of_products_is_one_of_the_burn_too() -> None:
    (burn,) = burn_overrides(
        Override(
            "gemm_bf16",
            "o",
            Limit("TFLOP/s", "its twin gave 700", low=600.0, warn_low=650.0),
            "gpu1",
        )
    )
    assert (known(burn.limit).low, known(burn.limit).warn_low, burn.component) == (
        588.0,
        637.0,
        "gpu1",
    )
    assert [known(burn.limit).grade(value) for value in (587.0, 588.0, 636.0, 637.0)] == [
        "fail",
        "warn",
        "warn",
        "pass",
    ]


def test_the_copy_beside_the_patterns_has_the_floor_of_copies_alone() -> None:
    floor = Limit("GB/s", "declared", low=3000.0)
    copy = Override("copy_own_d2d", "tower.toml", floor, own=True)
    assert list(pattern_overrides(copy)) == [Override("vram_copy", "tower.toml", floor)]
    for other in ("gemm_bf16", "copy_h2d"):
        assert list(pattern_overrides(replace(copy, measurement=other))) == []


def test_what_is_no_floor_of_sustained_products_says_nothing_of_the_burn() -> None:
    floor = Limit("TFLOP/s", "b", low=10.0)
    assert list(burn_overrides(Override("gemm_bf16_short", "o", floor))) == []
    assert list(burn_overrides(Override("gemm_bf16_ratio", "o", floor))) == []
    assert list(burn_overrides(Override("gemm_bf16", "o", Limit("TFLOP/s", "b", high=10.0)))) == []


@each(
    "card, dtype, told",
    [
        (RTX_4080, "f64", "float64 runs at a 32nd or less of float32's rate"),
        (replace(RTX_4090, name="gpu0"), "f64", "float64 runs at a 32nd or less of float32's rate"),
        (
            replace(H200, model="NVIDIA H800", device_id="10de:2324"),
            "f64",
            "sold with float64 cut to a fiftieth",
        ),
        (
            ComputeFacts(
                "gpu0", "NVIDIA B300 SXM6 AC", "10de:3182", "10.3", 18944, 2032.0, 3996.0, 8192
            ),
            "i8",
            "gives up most",
        ),
        (
            replace(RTX_4080, cuda_cores=None),
            "f16",
            "does not tell how many cores NVIDIA GeForce RTX 4080 has",
        ),
        (replace(RTX_4080, max_sm_clock_mhz=None), "bf16", "or its highest clock"),
    ],
)
def test_what_no_floor_can_be_told_of_says_why(card: ComputeFacts, dtype: str, told: str) -> None:
    for name in gemm_names(dtype):
        assert re.search(
            rf"{told}.*a \[\[limit]] in the machine file judges it all the same$",
            unheld(book(card), name),
        )


def test_memory_whose_clock_or_width_is_not_told_is_not_judged() -> None:
    for card in (
        replace(RTX_4080, max_memory_clock_mhz=None),
        replace(RTX_4080, memory_bus_bits=None),
    ):
        assert "the clock or the width of NVIDIA GeForce RTX 4080's memory" in unheld(
            book(card), "copy_own_d2d"
        )


def test_an_architecture_newer_than_ours_is_measured_and_not_judged() -> None:
    found = book(replace(RTX_4080, model="NVIDIA GeForce RTX 6090", compute_capability="13.0"))
    assert {one.measurement for one in found.entries} == {
        "copy_own_d2d",
        "vram_copy",
        *(name for dtype in DTYPES for name in (*gemm_names(dtype), f"burn_{dtype}")),
    }
    for one in found.entries:
        assert "no architecture of compute capability 13.0 is known" in unheld(
            found, one.measurement
        )


def test_a_card_of_which_nothing_is_known_is_measured_and_not_judged() -> None:
    found = book(ComputeFacts("gpu0", None, "10de:ffff", None, None, None, None, None))
    assert len(found.entries) == 3 * len(DTYPES) + 2
    told = (
        "neither driver nor model sheets tell the compute capability of 10de:ffff with PCI id "
        "10de:ffff"
    )
    for one in found.entries:
        assert unheld(found, one.measurement).startswith(told)


def test_a_sheet_stands_for_a_compute_capability_that_the_driver_does_not_tell() -> None:
    found = book(replace(V100, compute_capability=None, cuda_cores=None))
    assert {words.text(one.origin) for one in found.entries} == {"sheet of V100 SXM2 16GB"}
    assert len(found.entries) == 11


@each("capability", [one.compute_capability for one in KNOWN if one.brand is None])
@each("model", ["NVIDIA GeForce RTX 0000", "NVIDIA H20-3e", "NVIDIA Z9", None])
def test_each_floor_of_an_architecture_can_fail(capability: str, model: str | None) -> None:
    found = book(ComputeFacts("gpu0", model, "10de:ffff", capability, 6912, 1410.0, 1215.0, 5120))
    assert {one.measurement for one in found.entries} == {
        "copy_own_d2d",
        "vram_copy",
        *(
            name
            for dtype in native_dtypes(capability)
            for name in (*gemm_names(dtype), f"burn_{dtype}")
        ),
    }
    for one in found.entries:
        if one.limit is not None:
            assert one.limit.low is not None
            assert one.limit.low > 0
            assert one.limit.grade(one.limit.low) == "pass"
            assert one.limit.grade(math.nextafter(one.limit.low, 0)) == "fail"
