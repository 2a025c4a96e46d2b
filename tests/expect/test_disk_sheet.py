"""Disk sheets: how they are read, whose they are, and that every shipped one is sound."""

from __future__ import annotations

from pathlib import Path

import disk_page
import pytest
from cases import each
from known import known
from msgspec.structs import replace
from refusal import refusal

from acceptance import resources
from acceptance.core.message import SetupError
from acceptance.expect import disk_sheet
from acceptance.expect.disk_sheet import DiskSheet, find

FOLDER = resources.locate("disks")
SHEETS = disk_sheet.shipped()
BY_NAME = {one.name: one for one in SHEETS}
NVME = """name = "A"
kind = "nvme"
pcie_gen = 4
pcie_width = 4
models = ["A [0-9]"]
examples = ["A 1"]
source = "https://example.org"
read = 2026-11-24

[[variant]]
gb = 1000
read_gbs = 7
write_gbs = 5
read_iops = 1000000

[[variant]]
gb = 2000
read_gbs = 7
"""
# A link of 8 GB/s, and the most reads of 4 KiB that it carries.
FULL = (
    NVME.replace("gen = 4", "gen = 2")
    .replace("width = 4", "width = 16")
    .replace("iops = 1000000", "iops = 1953125")
)
SATA = """name = "B"
kind = "ssd"
sata_gbps = 6
models = ["B"]
examples = ["B"]
source = "the vendor's data sheet"

[[variant]]
gb = 500
read_gbs = 0.56
"""


def test_every_shipped_sheet_is_read_and_none_shares_a_name() -> None:
    assert len(SHEETS) == len(list(FOLDER.glob("*.toml"))) == len(BY_NAME)
    assert {one.kind for one in SHEETS} == {"nvme", "ssd", "hdd"}


@each("one", SHEETS, told=lambda one: one.name)
def test_examples_find_their_sheet_and_no_other(one: DiskSheet) -> None:
    for name in one.examples:
        assert [other.name for other in SHEETS if other.matches(name)] == [one.name]
        assert find(SHEETS, name) is one


@each("one", SHEETS, told=lambda one: one.name)
def test_every_pattern_is_of_whole_names(one: DiskSheet) -> None:
    for name in one.examples:
        assert find(SHEETS, f"x{name}") is None
        # What follows a dash is the vendor's suffix.
        assert find(SHEETS, f"{name} x") is None or "-" in name or "(-.*)?" in one.models[0]


@each("one", SHEETS, told=lambda one: one.name)
def test_figures_are_of_the_right_magnitude(one: DiskSheet) -> None:
    """A figure of the wrong unit, or of another generation, stands out."""
    most = {"nvme": (2.5, 15.0), "ssd": (0.5, 0.56), "hdd": (0.15, 0.3)}[one.kind]
    for variant in one.variant:
        assert most[0] <= variant.read_gbs <= most[1]
        if one.kind == "nvme":
            assert variant.read_iops is None or 200_000 <= variant.read_iops <= 3_300_000
        elif one.kind == "ssd":
            assert variant.read_iops is None or 70_000 <= variant.read_iops <= 98_000
        link = known(one.link_gbs())
        # A sheet of a generation too new would let every floor be that of the sheet alone.
        assert one.kind != "nvme" or max(each.read_gbs for each in one.variant) > link / 2


@each("one", SHEETS, told=lambda one: one.name)
def test_the_source_is_an_address_with_its_day_or_says_that_it_was_not_read(
    one: DiskSheet,
) -> None:
    assert ("http" in one.source) == (one.read is not None)
    assert one.read is not None or "from memory" in one.source


@each(
    "name",
    [
        "Samsung SSD 970 EVO Plus",
        "Samsung SSD 990 EVO 1TB",
        "Samsung SSD 990 PRO 8TB",
        "WD_BLACK SN770M 1TB",
        "WD_BLACK SN850 1TB",
        "CT1000T710SSD8",
        "INTEL SSDPF2KX038TX",
        "SOLIDIGM SSDPFKNU010TZ",
        "SAMSUNG MZQLB3T8HALS-00007",
        "Micron_7450_MTFDKBA960TFR",
        "KIOXIA KCD8XPUG3T84",
        "QEMU HARDDISK",
        "",
    ],
)
def test_other_models_have_no_sheet(name: str) -> None:
    assert find(SHEETS, name) is None


@each(
    "name, size, gb",
    [
        ("Samsung 990 PRO", 1_000_204_886_016, 1000),
        ("Samsung 990 PRO", 4_000_787_030_016, 4000),
        ("Samsung PM9A3 U.2", 960_197_124_096, 960),
        ("Solidigm P44 Pro", 1_024_209_543_168, 1024),
        ("Kingston KC3000", 2_048_408_248_320, 2048),
        ("Micron 7450 U.3", 3_840_755_982_336, 3840),
        ("Samsung 990 PRO", 1_009_999_999_999, 1000),
        ("Samsung 990 PRO", 990_000_000_001, 1000),
        ("Samsung 990 PRO", 1_010_000_000_000, 1000),
        ("Samsung 990 PRO", 1_010_000_000_001, None),
        ("Samsung 990 PRO", 990_000_000_000, 1000),
        ("Samsung 990 PRO", 989_999_999_999, None),
        # A namespace of a part of the disk, and 1024 GB where 1000 are sold.
        ("Samsung 990 PRO", 800_000_000_000, None),
        ("Samsung 990 PRO", 1_024_209_543_168, None),
    ],
)
def test_the_size_picks_the_variant(name: str, size: int, gb: int | None) -> None:
    found = BY_NAME[name].of_size(size)
    assert (found.gb if found is not None else None) == gb


@each(
    "name, rate",
    [
        ("Samsung 970 PRO", 3.938),
        ("Samsung 990 PRO", 7.877),
        ("Crucial T705", 15.754),
        ("Samsung 870 EVO", 0.6),
    ],
)
def test_the_link_of_a_model(name: str, rate: float) -> None:
    assert BY_NAME[name].link_gbs() == pytest.approx(rate, abs=0.001)


def test_the_page_of_limits_lists_every_sheet() -> None:
    page = disk_page.PAGE.read_text(encoding="utf-8")
    assert disk_page.current(page) == page, "run `make measurements`"
    line = disk_page.row(BY_NAME["Samsung 990 PRO"])
    assert disk_page.current(page.replace(f"{line}\n", "")) == page


def test_two_sheets_of_one_name_give_none() -> None:
    one = BY_NAME["Samsung 990 PRO"]
    assert find((one, one), "Samsung SSD 990 PRO 2TB") is None


def sheet(tmp_path: Path, text: str, name: str = "a.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sheet_as_written(tmp_path: Path) -> None:
    found = disk_sheet.read(sheet(tmp_path, NVME))
    assert str(found.read) == "2026-11-24"
    assert [one.gb for one in found.variant] == [1000, 2000]
    assert found.variant[1].write_gbs is found.variant[1].read_iops is None
    assert disk_sheet.read(sheet(tmp_path, SATA)).read is None


@each(
    "text, old, new, told",
    [
        (NVME, "kind", "colour = 1\nkind", "a.toml, line 2: Object contains unknown field"),
        (NVME, "write_gbs = 5", "write = 5", "a.toml, line 13: Object contains unknown field"),
        (NVME, "gb = 2000\n", "", "a.toml, line 16: Object missing required field `gb`"),
        (NVME, 'name = "A"\n', "", "a.toml: Object missing required field `name`"),
        (NVME, 'kind = "nvme"', 'kind = "tape"', "a.toml, line 2: Invalid enum value 'tape'"),
        (NVME, "gb = 1000", "gb = 99", "a.toml, line 11: Expected `int` >= 100"),
        (NVME, "gb = 1000", "gb = 1000001", "a.toml, line 11: Expected `int` <= 1000000"),
        (NVME, "read_gbs = 7\nw", "read_gbs = 7000\nw", "line 12: Expected `float` <= 100.0"),
        (NVME, "read_gbs = 7\nw", "read_gbs = 0.02\nw", "line 12: Expected `float` > 0.02"),
        (NVME, "read_gbs = 7\nw", "read_gbs = nan\nw", "line 12: Expected `float`"),
        (NVME, "iops = 1000000", "iops = 999", "a.toml, line 14: Expected `int` >= 1000"),
        (NVME, "iops = 1000000", "iops = 20000001", "line 14: Expected `int` <= 20000000"),
        (NVME, "pcie_gen = 4", "pcie_gen = 8", "a.toml, line 3: Expected `int` <= 7"),
        (NVME, "pcie_width = 4", "pcie_width = 17", "a.toml, line 4: Expected `int` <= 16"),
        (NVME, "pcie_width = 4", "pcie_width = 0", "a.toml, line 4: Expected `int` >= 1"),
        (FULL, "iops = 1953125", "iops = 1953126", "1953126 IOPS of 4 KiB are more than"),
        (NVME, "2026-11-24", '"today"', "a.toml, line 8: Invalid RFC3339 encoded date"),
        (NVME, '["A 1"]', "[]", "a.toml, line 6: Expected `array` of length >= 1"),
        (NVME, '["A [0-9]"]', '["A ["]', "line 5: models.0: 'A [' is no regular expression"),
        (NVME, '["A 1"]', '["B"]', "line 5: models.0: 'A [0-9]' matches no example"),
        (NVME, '["A 1"]', '["A 1", "B"]', "line 6: examples.1: 'B' is matched by no pattern"),
        (NVME, '["A [0-9]"]', '["A [0-9]", "B"]', "line 5: models.1: 'B' matches no example"),
        (NVME, "pcie_gen = 4\n", "", "a.toml, line 2: kind: an NVMe disk has pcie_gen"),
        (NVME, "pcie_width = 4\n", "", "a.toml, line 2: kind: an NVMe disk has pcie_gen"),
        (NVME, "pcie_width", "sata_gbps = 6\npcie_width", "line 2: kind: an NVMe disk has"),
        (SATA, "sata_gbps = 6\n", "", "a.toml, line 2: kind: a SATA disk has sata_gbps"),
        (SATA, "sata_gbps", "pcie_gen = 4\nsata_gbps", "line 2: kind: a SATA disk has"),
        (SATA, "sata_gbps", "pcie_width = 4\nsata_gbps", "line 2: kind: a SATA disk has"),
        (SATA, "sata_gbps = 6", "sata_gbps = 12", "a.toml, line 3: Invalid enum value 12"),
        (SATA, "0.56", "0.61", "line 10: variant.0.read_gbs: 0.61 GB/s is more than the link's"),
        (NVME, "write_gbs = 5", "write_gbs = 8", "variant.0.write_gbs: 8 GB/s is more than"),
        (NVME, "iops = 1000000", "iops = 1930000", "1930000 IOPS of 4 KiB are more than the link"),
        (SATA, "0.56", "0.5\nwrite_iops = 150000", "variant.0.write_iops: 150000 IOPS of 4 KiB"),
        (
            NVME,
            "gb = 2000",
            "gb = 1000",
            "line 17: variant.1.gb: 1000 GB must be more than the 1000",
        ),
        (
            NVME,
            "gb = 2000",
            "gb = 1020",
            "line 17: variant.1.gb: 1020 GB must be more than the 1000",
        ),
        (
            SATA.replace('"ssd"', '"hdd"'),
            "0.56",
            "0.2\nread_iops = 1000",
            "variant.0.read_iops: no vendor states random operations of a hard disk",
        ),
        (NVME, "[[variant]]", "[[variant]", "a.toml: "),
        (NVME, "gb = 1000", "gb = 1000\ngb = 1000", "Cannot overwrite a value (at line 12"),
    ],
)
def test_a_wrong_sheet_names_file_line_and_key(
    tmp_path: Path, text: str, old: str, new: str, told: str
) -> None:
    assert text.count(old)
    wrong = text.replace(old, new, 1)
    assert told in refusal(disk_sheet.read, tmp_path / "a.toml", wrong, SetupError)


def test_figures_at_the_bounds_are_allowed(tmp_path: Path) -> None:
    most = NVME.replace("iops = 1000000", "iops = 1923000").replace("gb = 2000", "gb = 1025")
    assert disk_sheet.read(sheet(tmp_path, most)).variant[0].read_iops == 1_923_000
    assert disk_sheet.read(sheet(tmp_path, SATA.replace("0.56", "0.6"))).variant[0].read_gbs == 0.6
    assert disk_sheet.read(sheet(tmp_path, FULL)).variant[0].read_iops == 1_953_125
    one_lane = NVME.replace("gen = 4", "gen = 7").replace("width = 4", "width = 1")
    assert disk_sheet.read(sheet(tmp_path, one_lane)).pcie_width == 1
    whole = FULL.replace("read_gbs = 7\nw", "read_gbs = 8\nw")
    assert disk_sheet.read(sheet(tmp_path, whole)).variant[0].read_gbs == 8
    slow = SATA.replace("sata_gbps = 6", "sata_gbps = 3").replace("0.56", "0.3")
    assert disk_sheet.read(sheet(tmp_path, slow)).link_gbs() == pytest.approx(0.3)


def test_one_of_several_patterns_is_enough(tmp_path: Path) -> None:
    two = NVME.replace('["A [0-9]"]', '["A [0-9]", "B"]').replace('["A 1"]', '["A 1", "B"]')
    found = disk_sheet.read(sheet(tmp_path, two))
    assert [name for name in ("A 7", "B", "A", "C") if found.matches(name)] == ["A 7", "B"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"^a.toml: cannot be read .*: install rigproof again"):
        disk_sheet.read(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_bytes(b"\xff")
    with pytest.raises(SetupError, match=r"^a.toml: "):
        disk_sheet.read(tmp_path / "a.toml")


def test_a_name_of_two_sheets_is_refused(tmp_path: Path) -> None:
    sheet(tmp_path, NVME)
    sheet(tmp_path, NVME.replace('["A [0-9]"]', '["A [1-3]"]'), "b.toml")
    told = r"^a.toml, line 6: examples.0: 'A 1' is a name of b.toml too$"
    with pytest.raises(SetupError, match=told):
        disk_sheet.read_all(tmp_path)
    sheet(tmp_path, SATA, "b.toml")
    assert [one.name for one in disk_sheet.read_all(tmp_path)] == ["A", "B"]


def test_a_folder_without_sheets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no disk sheet"):
        disk_sheet.read_all(tmp_path)


def test_a_sheet_without_a_link_has_no_rate() -> None:
    bare = DiskSheet("A", "nvme", ("A",), ("A",), "x", ())
    assert bare.link_gbs() is None
    assert replace(bare, pcie_gen=4).link_gbs() is None
    assert replace(bare, pcie_width=4).link_gbs() is None
    assert replace(bare, pcie_gen=8, pcie_width=4).link_gbs() is None
    assert replace(bare, pcie_gen=4, pcie_width=4).link_gbs() == pytest.approx(7.877, abs=0.001)
    assert bare.origin.values == {"model": "A"}
