"""Slips of the pen in a GPU or disk sheet: its figures against each other, when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from msgspec.structs import replace
from refusal import assert_raises, raised

from acceptance import resources
from acceptance.core.message import SetupError, UserError
from acceptance.expect import disk_sheet, gpu_limits, sheet, sheet_figures, site_sheets
from acceptance.expect.disk_sheet import DiskSheet
from acceptance.expect.sheet import Sheet
from acceptance.expect.site_sheets import SiteSheetError

FOLDER = resources.locate("models")
SHEETS = sheet.read_all(FOLDER)
BY_NAME = {one.name: one for one in SHEETS}
DISKS = disk_sheet.shipped()


def card(name: str = "geforce-rtx-4090") -> str:
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def drive(name: str = "samsung-990-pro") -> str:
    return (resources.locate("disks") / f"{name}.toml").read_text(encoding="utf-8")


def place(found: sheet.Problem | None) -> tuple[str | int, ...] | None:
    return found[0] if found is not None else None


@each("one", SHEETS, told=lambda one: one.name)
def test_every_shipped_gpu_sheet_agrees_with_itself(one: Sheet) -> None:
    assert sheet_figures.problem(one) is None
    assert sheet_figures.unchecked(one) == ()


@each("one", DISKS, told=lambda one: one.name)
def test_every_shipped_disk_sheet_agrees_with_itself(one: DiskSheet) -> None:
    assert sheet_figures.disk_problem(one) is None


@each("one", SHEETS, told=lambda one: one.name)
def test_a_peak_of_twice_or_of_ten_times_is_refused_and_one_below_is_not(one: Sheet) -> None:
    for key in one.peak.__struct_fields__:
        peak = getattr(one.peak, key)
        possible = key not in one.exempt  # a capped one may be further off
        for factor in (2, 10, 1000) if peak is not None and possible else ():
            if factor == 2 and (one.half_rate or key == "fp64"):
                continue  # float64 may be that of the tensor cores, and a half rate the whole
            slipped = replace(one, peak=replace(one.peak, **{key: factor * peak}))
            assert place(sheet_figures.problem(slipped)) == ("peak", key), (one.name, key, factor)
    bare = replace(one, limit=(), share=(), peak=replace(one.peak, fp32=one.peak.fp32 / 2))
    assert sheet_figures.problem(bare) is None


@each("one", SHEETS, told=lambda one: one.name)
def test_a_floor_that_its_basis_does_not_give_is_refused(one: Sheet) -> None:
    for at, row in enumerate(one.limit):
        for factor in (0.5, 0.9, 1.1):
            slipped = replace(row, low=row.low * factor, warn_low=None)
            rows = (*one.limit[:at], slipped, *one.limit[at + 1 :])
            found = sheet_figures.problem(replace(one, limit=rows))
            assert found[0][:2] == ("limit", at)
    for at, share in enumerate(one.share):
        wrong = replace(share, low=share.low + 0.05, warn_low=None)
        rows = (*one.share[:at], wrong, *one.share[at + 1 :])
        found = sheet_figures.problem(replace(one, share=rows))
        assert place(found) == ("share", at, "basis")


@each(
    "name, old, new, key",
    [
        ("geforce-rtx-4090", "fp32 = 82.6", "fp32 = 826", "peak.fp32"),
        ("geforce-rtx-4090", "fp32 = 82.6", "fp32 = 84", "peak.fp32"),
        ("geforce-rtx-4090", "fp16 = 165.2", "fp16 = 330.3", "peak.fp16"),
        ("geforce-rtx-4090", "sm = 128", "sm = 1280", "sm is 1280"),
        ("geforce-rtx-4090", "sm = 128", "sm = 144", "cuda_cores"),
        ("geforce-rtx-4090", "boost_mhz = 2520", "boost_mhz = 25200", "boost_mhz"),
        ("geforce-rtx-4090", "boost_mhz = 2520", "boost_mhz = 2.52", "boost_mhz"),
        ("geforce-rtx-4090", "tdp_w = 450", "tdp_w = 4500", "tdp_w"),
        ("geforce-rtx-4090", "nvml_max_sm_mhz = ", "nvml_max_sm_mhz = 1", "nvml_max_sm_mhz"),
        ("geforce-rtx-4090", "bandwidth_gbs = 1008", "bandwidth_gbs = 10080", "bandwidth_gbs"),
        ("geforce-rtx-4090", "bandwidth_gbs = 1008", "bandwidth_gbs = 504", "bandwidth_gbs"),
        ("geforce-rtx-4090", "pin_gbps = 21", "pin_gbps = 210", "pin_gbps"),
        ("geforce-rtx-4090", 'type = "GDDR6X"', 'type = "HBM3"', "pin_gbps"),
        ("geforce-rtx-4090", "bus_bits = 384", "bus_bits = 380", "bus_bits"),
        ("geforce-rtx-4090", "gib = 24", "gib = 240", "gib"),
        ("geforce-rtx-4090", "gib = 24", "gib = 2.4", "gib"),
        ("geforce-rtx-4090", "low = 47.9", "low = 95", "above peak.fp32"),
        ("geforce-rtx-4090", "low = 47.9", "low = 45", "0.58 x 82.6 is 47.91"),
        ("geforce-rtx-4090", "0.58 x 82.6", "0,58 x 82,6", "with a point"),
        ("geforce-rtx-4090", "0.58 x 82.6", "5 % of 82.6", "is 4.13"),
        ("h200-sxm-141gb", "link_gbs = 25", "link_gbs = 250", "nvlink.link_gbs"),
        ("h200-sxm-141gb", "generation = 4", "generation = 9", None),
        ("h200-sxm-141gb", "links = 18", "links = 180", "nvlink.links"),
        ("h200-sxm-141gb", "pcie_gen = 5", "pcie_gen = 9", "pcie_gen"),
        ("h200-sxm-141gb", "pcie_width = 16", "pcie_width = 17", "pcie_width"),
        ("h200-sxm-141gb", "pcie_width = 16\n", "", "pcie_gen stands alone"),
        ("h200-sxm-141gb", "pcie_gen = 5\n", "", "pcie_width stands alone"),
        ("h200-sxm-141gb", "max_operating_c = 87", "max_operating_c = 187", "max_operating_c"),
        ("h200-sxm-141gb", "slowdown_c = 89", "slowdown_c = 80", "slowdown_c"),
        ("h200-sxm-141gb", "low = 308", "low = 3080", "the links of the sheet carry 450"),
        ("h200-sxm-141gb", "low = 308", "low = 30.8", "next to nothing"),
        ("h200-sxm-141gb", "low = 308", "low = 318", "basis"),
        ("v100-sxm2-16gb", "fp16 = ", "bf16 = 100\nfp16 = ", "peak.bf16"),
    ],
)
def test_a_slip_in_a_gpu_sheet(name: str, old: str, new: str, key: str | None) -> None:
    text = card(name)
    assert old in text
    text = text.replace(old, new, 1)
    if key is None:
        assert site_sheets.parse("models/x.toml", text)
        return
    with pytest.raises(SiteSheetError, match=key) as refusal:
        site_sheets.parse("models/x.toml", text)
    assert refusal.value.contradicts
    assert refusal.value.line is not None
    assert str(refusal.value).startswith(f"models/x.toml, line {refusal.value.line}: ")


@each(
    "name, old, new, key",
    [
        ("samsung-990-pro", "read_gbs = 7.45", "read_gbs = 0.745", "read_gbs"),
        ("samsung-990-pro", "read_gbs = 7.45", "read_gbs = 74.5", "read_gbs"),
        ("samsung-990-pro", "read_gbs = 7.45", "read_gbs = 7450", "read_gbs"),
        ("samsung-990-pro", "write_gbs = 6.9", "write_gbs = 0.0691", "write_gbs"),
        ("samsung-990-pro", "read_iops = 1200000", "read_iops = 1200", "read_iops"),
        ("samsung-990-pro", "read_iops = 1200000", "read_iops = 1900000", "read_iops"),
        ("samsung-990-pro", "write_iops = 1550000", "write_iops = 1800000", "write_iops"),
        ("samsung-870-evo", "read_gbs = 0.56", "read_gbs = 0.056", "read_gbs"),
        ("seagate-exos-x18", "read_gbs = 0.27", "read_gbs = 0.027", "read_gbs"),
    ],
)
def test_a_slip_in_a_disk_sheet(name: str, old: str, new: str, key: str) -> None:
    text = drive(name)
    assert old in text, old
    with pytest.raises(SiteSheetError, match=key) as refusal:
        site_sheets.parse("disks/x.toml", text.replace(old, new, 1))
    assert refusal.value.contradicts
    assert refusal.value.line is not None


def test_an_nvme_disk_far_below_its_link() -> None:
    one = next(one for one in DISKS if one.name == "Samsung 9100 PRO")
    slow = replace(one.variant[0], read_gbs=1.4, write_gbs=None, read_iops=None, write_iops=None)
    found = sheet_figures.disk_problem(replace(one, variant=(slow,)))
    assert place(found) == ("variant", 0, "read_gbs")


def test_what_a_sheet_has_no_figure_for() -> None:
    """A new architecture, another memory and another NVLink are held against what there is."""
    one = BY_NAME["H200 SXM 141GB"]
    new = replace(one, compute_capability="13.0", limit=one.limit[:2])
    assert sheet_figures.problem(new) is None
    assert sheet_figures.unchecked(new) == tuple(sorted(one.peak.by_dtype()))
    assert sheet_figures.problem(replace(one, memory=replace(one.memory, type="HBM4"))) is None
    fast = replace(one.memory, type="HBM4", pin_gbps=100, bandwidth_gbs=76800)
    assert place(sheet_figures.problem(replace(one, memory=fast))) == ("memory", "pin_gbps")
    assert one.nvlink is not None
    later = replace(one.nvlink, generation=9, link_gbs=2500)
    assert place(sheet_figures.problem(replace(one, nvlink=later))) == ("nvlink", "link_gbs")
    b300 = BY_NAME["B300 SXM6 288GB"]
    row = replace(b300.limit[0], measurement="gemm_i8")
    assert place(sheet_figures.problem(replace(b300, limit=(row,)))) == ("limit", 0)
    nothing = replace(one.limit[0], low=0.5, warn_low=None)
    assert place(sheet_figures.problem(replace(one, limit=(nothing,)))) == ("limit", 0, "low")


def test_collectives_over_pci_express() -> None:
    h200 = BY_NAME["H200 SXM 141GB"]
    row = replace(h200.collective[0], low=40.0, basis="measured")
    bare = replace(h200, nvlink=None, collective=(row,))
    assert sheet_figures.problem(bare) is None
    assert place(sheet_figures.problem(replace(bare, pcie_gen=4))) == ("collective", 0, "low")
    assert sheet_figures.problem(replace(bare, pcie_gen=None, pcie_width=None)) is None


def test_an_exempt_peak_may_be_a_little_above() -> None:
    one = BY_NAME["H20 96GB"]
    for factor, wrong in ((1.05, None), (10, ("peak", "fp32"))):
        peak = replace(one.peak, fp32=one.peak.fp32 * factor)
        assert place(sheet_figures.problem(replace(one, peak=peak, limit=()))) == wrong


def test_a_shipped_sheet_that_somebody_changed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = BY_NAME["GeForce RTX 4090"]
    wrong = replace(one, peak=replace(one.peak, fp32=826))
    monkeypatch.setattr(sheet, "read_all", lambda _: (wrong,))
    assert "GeForce RTX 4090: peak.fp32 is 826" in raised(SetupError, gpu_limits.sheets.__wrapped__)


@each(
    "text, value",
    [
        ("0.75 x 989 TFLOP/s", 741.75),
        ("0.75 x 989.", 741.75),
        ("989 TFLOP/s x 0.75", 741.75),
        ("75 % of 989", 741.75),
        ("75% of 989 TFLOP/s", 741.75),
        ("75 percent of 989", 741.75),
        ("75 per cent of 989", 741.75),
        ("0.75 of 989 (dense peak)", 741.75),
        ("measured: 0.9 \u00d7 60", 54.0),
        ("0.5*100", 50.0),
        ("1.1 x 50 of a twin", 55.0),
        ("0.5 x 0.5 x 400", 100.0),
        ("a 4090 in 8192 x 8192 gives 52.2", None),
        ("8 x H200", None),
        ("10 of 12 cards", None),
        ("52 of 82.6", None),
        ("a twin gave 0.63 of 82.6", None),
        ("the twin gave 60", None),
    ],
)
def test_the_product_of_a_basis(text: str, value: float | None) -> None:
    found = sheet_figures.product(text)
    assert (found.value if found is not None else None) == (
        value if value is None else pytest.approx(value)
    )


def test_a_basis_gives_its_floor_to_so_many_digits() -> None:
    sheet_figures.check_basis("0.75 x 989", 741, 3)
    sheet_figures.check_basis("0.75 x 989", 742, 3)
    sheet_figures.check_basis("0.6 x 0.23: 53 TFLOP/s", 0.13, 2)
    sheet_figures.check_basis("a note", 5, 3)
    for low in (740.5, 743, 7417):
        assert_raises(UserError, sheet_figures.check_basis, "0.75 x 989", low, 3)


def test_a_file_of_tolerances_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "sheets.toml").write_text("[gpu]\n", encoding="utf-8")
    assert_raises(
        SetupError,
        resources.read,
        tmp_path / "sheets.toml",
        sheet_figures.Figures,
        match=r"^sheets\.toml: ",
    )
