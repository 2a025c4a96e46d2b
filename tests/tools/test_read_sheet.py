"""`rigproof read sheet`: what a GPU or disk sheet is worth, without the card or the disk."""

from __future__ import annotations

from cases import each

from acceptance import resources
from acceptance.core.message import Message
from acceptance.tools.read import sheet

CARD = (resources.locate("models") / "geforce-rtx-4090.toml").read_text(encoding="utf-8")
DISK = (resources.locate("disks") / "samsung-990-pro.toml").read_text(encoding="utf-8")
NEW = CARD.replace('compute_capability = "8.9"', 'compute_capability = "13.0"')


@each(
    "text, outcome, code, line",
    [
        (CARD, "pass", "sheet_sound", None),
        (DISK, "pass", "disk_sheet_sound", None),
        (NEW, "pass", "sheet_peaks_unchecked", None),
        (CARD.replace("fp32 = 82.6", "fp32 = 826"), "fail", "sheet_contradicts", "fp32 ="),
        (CARD.replace("low = 47.9", "low = 90"), "fail", "sheet_contradicts", "low = 90"),
        (CARD.replace("0.58 x 82.6", "0.7 x 82.6"), "fail", "sheet_contradicts", "basis"),
        (CARD.replace("= 1008", "= 10080"), "fail", "sheet_contradicts", "bandwidth_gbs"),
        (CARD.replace('name = "GeForce', 'name = "My'), "fail", "sheet_contradicts", "pci_ids"),
        (CARD.replace("sm = 128", "sm = 0"), "fail", "sheet_contradicts", "sm = "),
        (DISK.replace("read_gbs = 7.45", "read_gbs = 745"), "fail", "sheet_contradicts", "read_"),
        (DISK.replace("read_gbs = 7.45", "read_gbs = 0.7"), "fail", "sheet_contradicts", "read_"),
        (CARD.replace("sm = 128", 'sm = "x"'), "error", "sheet_unreadable", "sm ="),
        (CARD.replace("sm = 128\n", ""), "error", "sheet_unreadable", None),
        (CARD.replace("sm = 128", "sm = 128\nsm = 128"), "error", "sheet_unreadable", "sm ="),
        (DISK.replace('kind = "nvme"', 'kind = "tape"'), "error", "sheet_unreadable", "kind"),
        ("Tue Nov 24 09:12:44 2026 NVIDIA-SMI", "error", "sheet_unreadable", None),
        ("", "error", "sheet_unreadable", None),
        ("x = " + "[" * 9999, "error", "sheet_unreadable", None),
        ("#" * (sheet.MOST + 1), "error", "sheet_too_large", None),
    ],
)
def test_what_a_sheet_is_worth(text: str, outcome: str, code: str, line: str | None) -> None:
    found = sheet.parse(text)
    assert isinstance(found.reason, Message)
    assert (found.tool, found.outcome, found.reason.code) == ("sheet", outcome, code)
    if line is not None:
        number = found.reason.values["line"]
        assert isinstance(number, int)
        assert text.splitlines()[number - 1].startswith(line)
