"""The table of disk sheets in docs/limits.md.

python tests/expect/disk_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

from acceptance import resources
from acceptance.expect import disk_sheet
from acceptance.expect.disk_sheet import DiskSheet

PAGE = Path(__file__).resolve().parents[2] / "docs/limits.md"
_ROWS = re.compile(r"(?m)(?<=\| read on \|\n\|---\|---\|---\|---\|---\|---\|\n)(?:\|.*\n)*")


def row(one: DiskSheet) -> str:
    """A sheet's line."""
    sizes = " ".join(f"{each.gb:g}" for each in one.variant)
    rates = " ".join(f"{each.read_gbs:g}" for each in one.variant)
    random = " ".join(
        f"{each.read_iops / 1000:g}" if each.read_iops else "-" for each in one.variant
    )
    link = f"PCIe {one.pcie_gen}.0 x{one.pcie_width}" if one.pcie_gen else "SATA 6 Gbit/s"
    day = one.read.isoformat() if one.read else "not read again"
    if one.read and "from memory" in one.source:
        day += ", in part"
    return f"| {one.name} | {link} | {sizes} | {rates} | {random} | {day} |"


def current(text: str) -> str:
    """The page with a line for every sheet."""
    sheets = disk_sheet.read_all(resources.locate("disks"))
    return _ROWS.sub("".join(f"{row(one)}\n" for one in sheets), text, count=1)


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
