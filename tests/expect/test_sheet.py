"""Model sheets: how they are read, whose they are, and a lint that no slip of the pen gets past."""

from __future__ import annotations

import itertools
import math
import tomllib
from pathlib import Path

from cases import each
from known import known
from limit_lint import of_sheet
from msgspec.structs import replace
from published import CARDS, MORE, SUSTAINED
from refusal import assert_raises, refusal

from acceptance import resources
from acceptance.core.dtype import gemm_names
from acceptance.core.finding import Within
from acceptance.core.message import SetupError
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due
from acceptance.core.record import Measured
from acceptance.core.verdict import judge_due
from acceptance.expect import architecture, sheet, sheet_figures
from acceptance.expect.compute import ComputeFacts, compute_limits
from acceptance.expect.sheet import LOCAL_COPY, Published, Sheet, SheetLimit, find
from acceptance.wording import words

FOLDER = resources.locate("models")
SHEETS = sheet.read_all(FOLDER)
BY_NAME = {one.name: one for one in SHEETS}
H100 = FOLDER / "h100-pcie-80gb.toml"
ROW = """[[collective]]
measurement = "collective_all_reduce"
gpus = 4
low = 100
basis = "b"
"""
TRAINING = """[[training]]
measurement = "layer_bert"
format = "f16"
sequence = 512
batch = [2, 4]
tflops = [100, 200]
source = "s"
"""
SHARE = """[[share]]
measurement = "layer_bert_share"
low = 0.5
basis = "b"
"""


def test_ecc_is_on_from_the_factory_with_hbm_and_never_on_a_geforce() -> None:
    for one in SHEETS:
        assert one.ecc or not one.memory.type.startswith("HBM"), one.name
        assert not (one.ecc and one.name.startswith("GeForce")), one.name


@each("one", SHEETS, told=lambda one: one.name)
def test_a_slip_of_a_thousand_is_caught(one: Sheet) -> None:
    """Each figure that is no identity, a thousand times too large and too small; a peak that is
    too small is what `test_architecture` catches.
    """
    for table in ("", "memory", "peak", "thermal", "nvlink"):
        part = getattr(one, table) if table else one
        for key in part.__struct_fields__ if part is not None else ():
            value = getattr(part, key)
            if type(value) not in (int, float) or key in IDENTITIES:
                continue
            for slipped in (value * 1000, value / 1000)[: 1 if table == "peak" else 2]:
                wrong = replace(part, **{key: slipped})
                whole = replace(one, **{table: wrong}) if table else wrong
                assert sheet_figures.problem(whole), (table, key, slipped)


IDENTITIES = {"pcie_gen", "pcie_width", "generation", "links"}


def test_no_two_sheets_share_an_id_or_a_name() -> None:
    for key in ("pci_ids", "nvml_names"):
        named = [name for one in SHEETS for name in getattr(one, key)]
        assert len(named) == len(set(named))
    assert len(BY_NAME) == len(SHEETS)


def test_links_that_are_healthy() -> None:
    """Boards that are wired to others have all their links; a bridge may be left away."""
    for one in SHEETS:
        active = one.nvlink.active if one.nvlink is not None else ()
        if active and one.nvlink is not None and 0 not in active:
            assert active == (one.nvlink.links,), one.name
        expected = {"no": (not active), "bridge": 0 in active, "nvlink": 0 not in active and active}
        assert expected.get(one.p2p, True), one.name


@each("one", SHEETS, told=lambda one: one.name)
def test_each_card_finds_its_sheet(one: Sheet) -> None:
    for pci_id in one.pci_ids:
        assert find(SHEETS, pci_id=pci_id) is one
        for name in one.nvml_names:
            assert find(SHEETS, pci_id=pci_id, nvml_name=name) is one
            assert find(SHEETS, nvml_name=name.removeprefix("NVIDIA ")) is one  # drivers before 470


@each(
    "pci_id, name",
    [
        ("10de:20b0", "GRID A100-7-40C"),  # a virtual GPU has the id of its card
        ("10de:20b0", "NVIDIA A100-SXM4-80GB"),
        ("10de:2684", "NVIDIA GeForce RTX 4090 D"),
        ("10de:2685", "NVIDIA GeForce RTX 4090"),
        ("10de:2331", "NVIDIA H100 80GB HBM3"),
        ("10de:2684", ""),
        ("10de:ffff", None),
        (None, "NVIDIA H100"),
        (None, None),
    ],
)
def test_what_does_not_agree_has_no_sheet(pci_id: str | None, name: str | None) -> None:
    assert find(SHEETS, pci_id=pci_id, nvml_name=name) is None
    assert find(SHEETS[:1], pci_id=None, nvml_name=None) is None


def test_the_peak_of_a_format_is_that_of_the_faster_cores() -> None:
    h200 = next(one for one in SHEETS if one.peak.fp64_tensor and one.peak.fp64)
    assert h200.peak.by_dtype()["f64"] == h200.peak.fp64_tensor
    assert h200.peak.by_dtype()["bf16"] == h200.peak.bf16
    without = next(one for one in SHEETS if one.peak.fp8 is None)
    assert "f8" not in without.peak.by_dtype()


def test_two_sheets_that_fit_are_told_apart_by_the_other_key_or_not_at_all() -> None:
    small = BY_NAME["A100 SXM4 40GB"]
    large = replace(BY_NAME["A100 SXM4 80GB"], pci_ids=small.pci_ids)
    both = (small, large)
    assert find(both, pci_id="10de:20b0") is None
    assert find(both, pci_id="10de:20b0", nvml_name="NVIDIA A100-SXM4-80GB") is large
    assert (
        find(
            (small, replace(large, nvml_names=small.nvml_names)),
            pci_id="10de:20b0",
            nvml_name=small.nvml_names[0],
        )
        is None
    )


def test_a_fact_is_doubtful_alone_or_with_its_table() -> None:
    card = BY_NAME["GeForce RTX 4090"]
    assert "T.Limit" in (card.doubt("thermal.slowdown_c") or "")
    assert "T.Limit" in (card.doubt("thermal") or "")
    assert card.doubt("sm") is None
    assert (
        BY_NAME["H20 96GB"].doubt("peak.fp32")
        == "32 TFLOP/s measured, 36.5 by SM x clock, 44 published"
    )
    assert BY_NAME["H20 96GB"].doubt("peak.fp16") is None


def test_what_limits_are_made_of_is_not_doubtful() -> None:
    """A doubtful fact limits nothing, so a sheet full of doubts would be of no use."""
    for one in SHEETS:
        assert not [
            key
            for key in ("sm", "memory.gib", "p2p", "nvlink.active", "nvlink.link_gbs")
            if one.doubt(key)
        ]


@each(
    "old, new, told",
    [
        ("sm = 114\n", "", "Object missing required field `sm`"),
        ("sm = 114", "sm = 0", "`int` >= 1 - at `$.sm`"),
        ("sm = 114", 'sm = "114"', "Expected `int`, got `str` - at `$.sm`"),
        ("sm = 114", "sms = 114\nsm = 114", "unknown field `sms`"),
        ("gib = 80", "gib = -80", "- at `$.memory.gib`"),
        ("gib = 80", "gib = nan", "- at `$.memory.gib`"),
        ("gib = 80", "gib = inf", "- at `$.memory.gib`"),
        ("gib = 80", "gib = 2e9", "- at `$.memory.gib`"),  # more than can be of anything: a slip
        ("10de:2331", "10DE:2331", "- at `$.pci_ids[0]`"),
        ('["10de:2331"]', "[]", "- at `$.pci_ids`"),
        ('["NVIDIA H100 PCIe"]', "[]", "- at `$.nvml_names`"),
        ('"9.0"', '"90"', "- at `$.compute_capability`"),
        ('p2p = "yes"', 'p2p = "maybe"', "- at `$.p2p`"),
        ("fp16 = 756\n", "", "missing required field `fp16` - at `$.peak`"),
        ("active = [0, 12]", "active = []", "- at `$.nvlink.active`"),
        (
            "active = [0, 12]",
            "active = [12, 0]",
            "nvlink.active must be one number, or 0 and one number",
        ),
        (
            "active = [0, 12]",
            "active = [4, 12]",
            "nvlink.active must be one number, or 0 and one number",
        ),
        ("active = [0, 12]", "active = [0]", "nvlink.active is 0, of 18 links"),
        ("active = [0, 12]", "active = [0, 19]", "nvlink.active is 19, of 18 links"),
        ("[doubtful]", '[doubtful]\nheat = "x"', "doubtful.heat is no fact of this sheet"),
        (
            "[doubtful]",
            '[doubtful]\n"memory.speed" = "x"',
            "doubtful.memory.speed is no fact of this sheet",
        ),
        ("[doubtful]", '[doubtful]\nthermal = "x"', "doubtful.thermal is no fact of this sheet"),
        ("[doubtful]", '[doubtful]\nsm = ""', "- at `$.doubtful[...]`"),
        ("[doubtful]", '[exempt]\nfp4 = "x"\n[doubtful]', "exempt.fp4 is no peak of this sheet"),
        ("[doubtful]", '[thermal]\nsource = "x"\n[doubtful]', "thermal holds no temperature"),
        ("sm = 114", "sm = ", "Invalid value"),
        ("[doubtful]", f"{ROW}{ROW}[doubtful]", "collective_all_reduce of 4 GPUs stands twice"),
        *(
            ("[doubtful]", f"{table}[doubtful]", told)
            for table, told in (
                (TRAINING * 2, "training layer_bert in f16 at sequence 512 stands twice"),
                (TRAINING.replace("bert", "bart"), "training layer_bart: no layer and no step"),
                (TRAINING.replace("layer_bert", "layer_matmul"), "no layer and no step"),
                (TRAINING.replace('"f16"', '"fp16"'), "- at `$.training[0].format`"),
                (TRAINING.replace("[100, 200]", "[100]"), "as many batches as rates"),
                (TRAINING.replace("[2, 4]", "[4, 2]"), "the batches are not in their order"),
                (TRAINING.replace("[2, 4]", "[2, 2]"), "the batches are not in their order"),
                (TRAINING.replace("sequence = 512\n", ""), "with a sequence, or one rate"),
                (TRAINING.replace("batch = [2, 4]\n", ""), "with a sequence, or one rate"),
                (
                    TRAINING.replace("sequence = 512\nbatch = [2, 4]\n", ""),
                    "with a sequence, or one rate",
                ),
                (TRAINING.replace("200]", "2e5]"), "200000 TFLOP/s are more than the peak of f16"),
                (TRAINING.replace("200]", "756.1]"), "756.1 TFLOP/s are more than the peak of f16"),
                (TRAINING.replace("[100, 200]", "[]"), "- at `$.training[0].tflops`"),
                (SHARE * 2, "share layer_bert_share stands twice"),
                (SHARE.replace("_share", ""), "share layer_bert: no share of a layer or of a step"),
                (SHARE.replace("0.5", "1.1"), "- at `$.share[0].low`"),
                (SHARE.replace("0.5", "0.05"), "- at `$.share[0].low`"),
                (SHARE.replace("0.5", "0.5\nwarn_low = 0.4"), "bounds are out of order"),
            )
        ),
    ],
)
def test_a_wrong_sheet_names_file_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = H100.read_text(encoding="utf-8")
    assert text.count(old) == 1
    wrong = tmp_path / "wrong.toml"
    assert told in refusal(sheet.read, wrong, text.replace(old, new), SetupError)


def test_only_a_peak_is_suggested_for_what_is_no_peak(tmp_path: Path) -> None:
    text = H100.read_text(encoding="utf-8")
    for key, told in (("fp6", "did you mean"), ("sm", "exempt.sm is no peak of this sheet")):
        wrong = text.replace("[doubtful]", f'[exempt]\n{key} = "x"\n[doubtful]')
        said = refusal(sheet.read, tmp_path / "wrong.toml", wrong, SetupError)
        assert (told in said, "mean sm" in said) == (True, False)


def test_published_rates_of_training() -> None:
    """Those of the 4090 as its builder gave them; of an A100 the best, of no known shape."""
    found = BY_NAME["GeForce RTX 4090"].published("layer_gpt2")
    assert Published("f16", 44.113, 1024, 64) in found
    assert len(found) == 12
    assert BY_NAME["A100 SXM4 80GB"].published("layer_bert") == (Published("f16", 136.0),)
    assert BY_NAME["GeForce RTX 4090"].published("layer_llama") == ()


def test_a_published_rate_may_be_the_peak_and_needs_one(tmp_path: Path) -> None:
    text = H100.read_text(encoding="utf-8")
    row = TRAINING.replace("200]", "756]")
    file = tmp_path / "peak.toml"
    file.write_text(text.replace("[doubtful]", f"{row}[doubtful]"), encoding="utf-8")
    assert sheet.read(file).published("layer_bert")[-1].tflops == 756
    v100 = (FOLDER / "v100-sxm2-16gb.toml").read_text(encoding="utf-8")
    row = TRAINING.replace('"f16"', '"bf16"').replace("[100, 200]", "[0.1, 0.2]")
    said = refusal(sheet.read, file, f"{v100}\n{row}", SetupError)
    assert "0.2 TFLOP/s are more than the peak of bf16" in said


def test_a_board_with_one_link_is_a_board(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        H100.read_text(encoding="utf-8").replace("active = [0, 12]", "active = [0, 1]"),
        encoding="utf-8",
    )
    assert known(sheet.read(tmp_path / "one.toml").nvlink).full() == 1


def test_a_sheet_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    assert_raises(SetupError, sheet.read, tmp_path / "none.toml", match=r"^none.toml: ")
    (tmp_path / "sheet.toml").write_bytes(b"\xff")
    assert_raises(SetupError, sheet.read_all, tmp_path, match=r"^sheet.toml: ")


def test_a_folder_without_sheets_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "architectures.toml").write_text("no sheet", encoding="utf-8")
    assert_raises(SetupError, sheet.read_all, tmp_path, match=r"holds no model sheet$")


@each("path", sorted(FOLDER.glob("*.toml")), told=lambda path: path.name)
def test_a_sheet_lies_under_its_own_name(path: Path) -> None:
    if path.name != sheet.NO_SHEET:
        assert path.stem == tomllib.loads(path.read_text(encoding="utf-8"))["name"].lower().replace(
            " ", "-"
        )


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

H100_NVL = FOLDER / "h100-nvl-94gb.toml"
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
    text = H100_NVL.read_text(encoding="utf-8")
    assert text.count(old) == 1
    wrong = tmp_path / "wrong.toml"
    assert told in refusal(sheet.read, wrong, text.replace(old, new), SetupError)


def test_a_cool_limit_without_a_hot_one_is_refused(tmp_path: Path) -> None:
    text = H100_NVL.read_text(encoding="utf-8")
    begin = text.index(FIRST)
    hot = text[:begin] + text[text.index("[[limit]]", begin + 1) :]
    said = refusal(sheet.read, tmp_path / "wrong.toml", hot, SetupError)
    assert "gemm_f64_short: gemm_f64 and it stand together or not at all" in said
