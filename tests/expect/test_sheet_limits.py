"""The limits in model sheets: plausible, below all that healthy cards have
reached, and each seen to fail.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from cases import each
from known import known
from limit_lint import of_sheet
from msgspec.structs import replace
from published import CARDS, MORE, SUSTAINED
from refusal import refusal

from acceptance import resources
from acceptance.core.criterion import Within
from acceptance.core.dtype import gemm_names
from acceptance.core.judgement import judge_due
from acceptance.core.message import SetupError
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due
from acceptance.core.record import Measured
from acceptance.expect import architecture, sheet, sheet_figures
from acceptance.expect.compute import ComputeFacts, compute_limits
from acceptance.expect.sheet import LOCAL_COPY, Sheet, SheetLimit
from acceptance.wording import words

FOLDER = resources.locate("models")
SHEETS = sheet.read_all(FOLDER)
BY_NAME = {one.name: one for one in SHEETS}
KNOWN = architecture.read(FOLDER / "architectures.toml")


def row_of(one: Sheet, measurement: str) -> SheetLimit | None:
    return next((row for row in one.limit if row.measurement == measurement), None)


# --- healthy cards ---


@each(
    "name, dtype, value",
    [*((name, key, value) for name, found in CARDS.items() for key, value in found.items()), *MORE],
)
def test_every_published_figure_is_within_its_limit(name: str, dtype: str, value: float) -> None:
    """By two points of the share at the least, for the noise between two runs."""
    for measurement in [LOCAL_COPY] if dtype == "copy" else gemm_names(dtype):
        row = known(row_of(BY_NAME[name], measurement))
        assert row.limit().grade(value) != "fail"
        assert value >= 1.02 * row.low


@each("name, dtype, value", SUSTAINED)
def test_every_published_figure_of_a_hot_card_is_within_its_limit(
    name: str, dtype: str, value: float
) -> None:
    assert value >= 1.04 * known(row_of(BY_NAME[name], gemm_names(dtype)[1])).low


@each(
    "dtype, value", [(dtype, value) for name, dtype, value in SUSTAINED if name == "H200 SXM 141GB"]
)
def test_a_card_15_percent_slower_than_the_one_of_box_e_fails_hot(dtype: str, value: float) -> None:
    row = known(row_of(BY_NAME["H200 SXM 141GB"], gemm_names(dtype)[1]))
    assert row.limit().grade(0.85 * value) == "fail"


# --- slips of the pen ---


@each(
    "name, measurement, slipped",
    [
        # DCGM's own file holds these: MB/s where GB/s are meant, so that nothing can ever fail
        ("H200 SXM 141GB", LOCAL_COPY, 2.333),
        ("H200 SXM 141GB", LOCAL_COPY, 2333.0),
        ("A100 SXM4 40GB", LOCAL_COPY, 137.5),
        ("A100 SXM4 40GB", LOCAL_COPY, 137500.0),
        ("L40", LOCAL_COPY, 49.05),
        ("L40", LOCAL_COPY, 49050.0),
        ("A100 PCIe 40GB", LOCAL_COPY, 127500.0),  # PG502
        ("H100 SXM5 80GB", LOCAL_COPY, 122250.0),  # 2337
        ("A100 PCIe 40GB", LOCAL_COPY, 127.5),
        ("H100 SXM5 80GB", LOCAL_COPY, 122.25),
        # and this one, which can never pass
        ("B200 SXM 180GB", LOCAL_COPY, 3416250.0),
        ("B200 SXM 180GB", "gemm_f32_short", 3416250.0),
        ("B200 SXM 180GB", "gemm_f32_short", 3416.25),
        # GFLOP/s for TFLOP/s, and peaks with sparsity
        ("H100 SXM5 80GB", "gemm_f32", 44100.0),
        ("H100 SXM5 80GB", "gemm_bf16_short", 0.7 * 1978.9),
    ],
)
def test_published_slips_are_refused(name: str, measurement: str, slipped: float) -> None:
    one = BY_NAME[name]
    rows = tuple(
        replace(row, low=slipped) if row.measurement == measurement else row for row in one.limit
    )
    assert list(of_sheet(replace(one, limit=rows)))


@each("one", SHEETS, told=lambda one: one.name)
def test_a_slip_of_two_or_of_a_thousand_is_refused(one: Sheet) -> None:
    for row, factor in itertools.product(one.limit, (1000, 2, 0.5, 0.001)):
        slipped = replace(row, low=row.low * factor, warn_low=None)
        told = f"{one.name}, {row.measurement}: {slipped.low} for {row.low} is not noticed"
        assert sheet_figures.problem(replace(one, limit=(slipped,))), told


# --- each limit is seen to fail ---


def card(one: Sheet) -> ComputeFacts:
    return ComputeFacts(
        Gpu(0), one.nvml_names[0], one.pci_ids[0], one.compute_capability, None, None, None, None
    )


@each("one", SHEETS, told=lambda one: one.name)
def test_just_below_each_limit_fails_and_at_it_passes(one: Sheet) -> None:
    """As the run judges it, with what is derived for a card of the model."""
    found = {entry.measurement: entry for entry in compute_limits([card(one)], SHEETS, KNOWN)}
    for row in one.limit:
        entry = found[row.measurement]
        assert words.text(entry.origin) == f"sheet of {one.name}"
        assert entry.component == Gpu(0)
        assert entry.limit == row.limit()
        due = Due(row.measurement, Gpu(0), row.unit, (Within(entry.limit),), entry.origin)
        for value, kinds in (
            (row.low, ["warn"] if row.warn_low else []),
            (row.warn_low or row.low, []),
            (math.nextafter(row.low, 0), ["fail"]),
            (0.0, ["fail"]),
            (math.nan, ["error"]),
        ):
            judged = judge_due(
                due, "c", [Measured("c", row.measurement, Gpu(0), row.unit, value)], [], []
            )
            assert [finding.kind for finding in judged.findings] == kinds, (row.measurement, value)


# --- how rows are read ---

H100 = FOLDER / "h100-nvl-94gb.toml"
FIRST = '[[limit]]\nmeasurement = "gemm_f64_short"\nunit = "TFLOP/s"\nlow = 30\n'


@each(
    "old, new, told",
    [
        (
            "gemm_f64_short",
            "gemm_f64_shorts",
            "limit for gemm_f64_shorts: no sheet limits that on compute capability 9.0",
        ),
        ("gemm_f64_short", "gpu_power", "limit for gpu_power: no sheet limits that"),
        (
            '"9.0"',
            '"8.0"',
            "limit for gemm_f8_short: no sheet limits that on compute capability 8.0",
        ),
        ("gemm_f64_short", "gemm_f64", "limit for gemm_f64 stands twice"),
        (FIRST, FIRST.replace("TFLOP/s", "GFLOP/s"), "measured in TFLOP/s, not in GFLOP/s"),
        (FIRST, FIRST.replace("30", "0"), "- at `$.limit[0].low`"),
        (FIRST, FIRST.replace("30", "nan"), "- at `$.limit[0].low`"),
        (FIRST, FIRST.replace("30", "inf"), "- at `$.limit[0].low`"),
        (FIRST, FIRST.replace("30", "20"), "it must be above that for gemm_f64"),
        (FIRST, FIRST.replace("30", "25.2"), "it must be above that for gemm_f64"),
        (FIRST, FIRST + "warn_low = 29\n", "bounds are out of order"),
        (FIRST, FIRST + "high = 60\n", "unknown field `high`"),
        (FIRST, FIRST + "low2 = 60\n", "unknown field `low2`"),
        (FIRST, FIRST.replace("low = 30\n", ""), "missing required field `low`"),
        ("[doubtful]", '[doubtful]\nlimit = "x"', "doubtful.limit is no fact of this sheet"),
    ],
)
def test_a_wrong_row_names_file_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = H100.read_text(encoding="utf-8")
    assert text.count(old) == 1
    wrong = tmp_path / "wrong.toml"
    assert told in refusal(sheet.read, wrong, text.replace(old, new), SetupError)


def test_a_cool_limit_without_a_hot_one_is_refused(tmp_path: Path) -> None:
    text = H100.read_text(encoding="utf-8")
    begin = text.index(FIRST)
    hot = text[:begin] + text[text.index("[[limit]]", begin + 1) :]
    said = refusal(sheet.read, tmp_path / "wrong.toml", hot, SetupError)
    assert "gemm_f64_short: gemm_f64 and it stand together or not at all" in said
