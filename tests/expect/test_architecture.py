"""What cards without a sheet are held to: how it is read, whose it is, and that every model with
a sheet would pass it too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from known import known
from published import CARDS, MORE, SUSTAINED
from refusal import refusal

from acceptance import resources
from acceptance.core.dtype import PEAKS, native_dtypes
from acceptance.core.message import SetupError
from acceptance.expect import architecture, sheet
from acceptance.expect.architecture import Architecture, find
from acceptance.expect.sheet import Sheet
from acceptance.wording import words

FOLDER = resources.locate("models")
KNOWN = architecture.read(FOLDER / "architectures.toml")
SHEETS = {one.name: one for one in sheet.read_all(FOLDER)}
# A partner's card has a higher clock than the sheet says, and NVML then tells that.
BOOST = 1.25


def of(one: Sheet) -> Architecture:
    return known(find(KNOWN, one.compute_capability, one.nvml_names[0]))


def peak(one: Sheet, dtype: str, clock_mhz: float) -> float:
    """TFLOP/s by the architecture."""
    return one.sm * clock_mhz * of(one).operations[dtype] / 1e6


def test_every_compute_capability_that_we_claim_is_there() -> None:
    assert {one.compute_capability for one in KNOWN if one.brand is None} == {
        *("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0")
    }


@each("one", SHEETS.values(), told=lambda one: one.name)
def test_it_gives_the_published_peaks_of_the_sheets(one: Sheet) -> None:
    assert one.cuda_cores == one.sm * of(one).cores
    for dtype in native_dtypes(one.compute_capability):
        key = next(
            (
                key
                for key in PEAKS[dtype]
                if getattr(one.peak, key) is not None and not one.exempt.get(key)
            ),
            None,
        )
        if key is None or (
            one.name == "L40" and dtype != "f32"
        ):  # its tensor rates are published as half
            continue
        assert getattr(one.peak, key) == pytest.approx(peak(one, dtype, one.boost_mhz), rel=0.15), (
            dtype
        )


@each(
    "name, dtype, value",
    [
        *((name, key, value) for name, found in CARDS.items() for key, value in found.items()),
        *MORE,
        *SUSTAINED,
    ],
)
def test_no_healthy_card_of_a_known_model_would_fail(name: str, dtype: str, value: float) -> None:
    """Were its sheet not there: also at the highest clock that NVML names."""
    one = SHEETS[name]
    if dtype == "copy":
        assert value > 1.05 * of(one).copy * one.memory.bandwidth_gbs
        return
    if dtype not in of(one).short:
        assert dtype in of(one).unlimited
        return
    highest = one.nvml_max_sm_mhz or (BOOST if "GeForce" in name else 1.0) * one.boost_mhz
    shares = of(one).sustained if (name, dtype, value) in SUSTAINED else of(one).short
    assert value > 1.05 * shares[dtype] * peak(one, dtype, highest)


@each(
    "capability, model, brand",
    [
        ("8.9", "NVIDIA GeForce RTX 4080 SUPER", "GeForce"),
        ("8.9", "GeForce RTX 4080", "GeForce"),
        ("8.9", "NVIDIA RTX 5000 Ada Generation", None),
        ("8.9", None, None),
        ("9.0", "NVIDIA H20-3e", "H20"),
        ("9.0", "NVIDIA H200", None),
        ("9.0", "NVIDIA GH200 144G HBM3e", None),
    ],
)
def test_a_brand_goes_before_the_others(
    capability: str, model: str | None, brand: str | None
) -> None:
    for order in (KNOWN, KNOWN[::-1]):
        found = known(find(order, capability, model))
        assert (found.compute_capability, found.brand) == (capability, brand)
        told = f"{brand} cards of {found.name}" if brand else found.name
        assert (str(found), words.text(found.told)) == (told, told)


@each("capability", ["6.1", "8.7", "11.0", "12.1", "13.0"])
def test_an_architecture_that_is_not_known_is_not_guessed(capability: str) -> None:
    assert find(KNOWN, capability, "NVIDIA GeForce RTX 6090") is None
    assert find(KNOWN, None, "NVIDIA GeForce RTX 4080") is None


GOOD = """\
[[architecture]]
name = "Volta"
compute_capability = "7.0"
cores = 64
operations = { f64 = 64, f32 = 128, f16 = 1024 }
short = { f32 = 0.6, f16 = 0.5 }
sustained = { f32 = 0.5, f16 = 0.4 }
copy = 0.6
source = "a source"
basis = "a basis"
unlimited.f64 = "a reason"
"""


@each(
    "old, new, told",
    [
        ("f64 = 64, ", "", "operations must name f16, f32, f64"),
        ("f16 = 1024", "f16 = 1024, i8 = 1", "operations must name f16, f32, f64"),
        ("f16 = 0.5", "f64 = 0.5", "short and sustained must name the same formats"),
        ("f64 = 64", "f64 = 0", "- at `$.architecture[0].operations[...]`"),
        (
            'unlimited.f64 = "a reason"\n',
            "",
            "must stand either in short and sustained or in unlimited",
        ),
        (
            "unlimited.f64",
            "unlimited.f32",
            "must stand either in short and sustained or in unlimited",
        ),
        ("f16 = 0.4", "f16 = 0.5", "short.f16 must be above sustained.f16"),
        ("f16 = 0.5", "f16 = 1.5", "- at `$.architecture[0].short[...]`"),
        ("copy = 0.6", "copy = 0", "- at `$.architecture[0].copy`"),
        ("copy = 0.6", "copy = 0.6\ncopies = 1", "unknown field `copies`"),
        ('basis = "a basis"', 'basis = ""', "- at `$.architecture[0].basis`"),
        ("[[architecture]]", GOOD + "[[architecture]]", "Volta (7.0): stands twice"),
        ("[[architecture]]", "[[architecture]", "Expected"),
        (GOOD, "architecture = []", "- at `$.architecture`"),
    ],
)
def test_a_wrong_file_names_file_and_entry(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "a.toml").write_text(GOOD, encoding="utf-8")
    assert [one.name for one in architecture.read(tmp_path / "a.toml")] == ["Volta"]
    wrong = GOOD.replace(old, new)
    assert told in refusal(architecture.read, tmp_path / "a.toml", wrong, SetupError)


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"^a.toml: "):
        architecture.read(tmp_path / "a.toml")
    assert refusal(architecture.read, tmp_path / "a.toml", "\ud800", SetupError)
