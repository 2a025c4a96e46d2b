"""Kernel messages that no table has: which count, what they name, and which are harmless."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from cases import each
from refusal import assert_raises

from acceptance.core.parts import Function, Named
from acceptance.observe import unknown_line
from acceptance.observe.event import own_load, table
from acceptance.observe.kernel_line import KernelLine, kernel_lines
from acceptance.observe.kernel_log import all_events_of, read
from acceptance.tools.read import kernel_log

RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures/recordings/kernel-log"
ODD = "nvidia 0000:41:00.0: unexpected state 7 of the copy engine"


def unknown(text: str) -> list[tuple[str, str]]:
    """The unknown messages of a log, with what each names."""
    found = all_events_of(kernel_lines(text))
    return [(str(one.component), one.text) for one in found if one.kind == unknown_line.KIND]


@each(
    "text, names",
    [
        (f"[    1.000000] {ODD}", ["0000:41:00.0"]),
        ("[    1.000000] NVRM: GPU6 _threadNodeCheckTimeout: it was odd", ["None"]),
        ("[    1.000000] DMAR: [DMA Odd] of nothing", ["None"]),
        ("[    1.000000] ata5.00: status: { ODD }", ["ata5"]),
        ("[    1.000000] nvme nvme1: odd state", ["nvme1"]),
        ("[    1.000000] sd 0:0:0:0: [sdb] odd state", ["sdb"]),
        ("[    1.000000] pcieport 0000:40:01.1: odd state", ["0000:40:01.1"]),
        # not of the hardware, of another program, or information
        ("[    1.000000] usb 1-2: device descriptor read/64, error -71", []),
        (f"Jan  1 10:00:00 host myprogram[12]: {ODD}", []),
        (f"6,12,1000,-;{ODD}", []),
        (f"<6>[    1.000000] {ODD}", []),
        (f"kern  :info  : [    1.000000] {ODD}", []),
        (f"4,12,1000,-;{ODD}", ["0000:41:00.0"]),
        (f"<3>[    1.000000] {ODD}", ["0000:41:00.0"]),
        (f"kern  :err   : [    1.000000] {ODD}", ["0000:41:00.0"]),
        # known, or harmless
        ("[    1.000000] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", []),
        ("[    1.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15", []),
        ("[    1.000000] pci 0000:01:00.0: BAR 1 [mem 0x00000000-0x0fffffff 64bit pref]", []),
        ("[    1.000000] pci 0000:01:00.0: BAR 5 [io  size 0x0080]: can't assign; no space", []),
    ],
)
def test_what_counts(text: str, names: list[str]) -> None:
    assert [name for name, _ in unknown(text)] == names


@each(
    "record, level",
    [
        ({"MESSAGE": ODD, "_TRANSPORT": "kernel", "PRIORITY": "3"}, 3),
        ({"MESSAGE": ODD, "_TRANSPORT": "kernel", "PRIORITY": 6}, 6),
        ({"MESSAGE": ODD, "_TRANSPORT": "kernel", "PRIORITY": "high"}, None),
        ({"MESSAGE": ODD, "_TRANSPORT": "kernel"}, None),
        (
            {
                "MESSAGE": ODD,
                "_TRANSPORT": "kernel",
                "PRIORITY": "4",
                "__REALTIME_TIMESTAMP": "1700000000123456",
            },
            4,
        ),
        ({"msg": ODD, "time": 12.5, "pri": 3}, 3),
    ],
)
def test_priorities_of_json(record: dict[str, object], level: int | None) -> None:
    (line,) = kernel_lines(json.dumps(record))
    assert (line.text, line.level) == (ODD, level)


def test_they_decide_nothing() -> None:
    known = "[    1.000000] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."
    for text in ("[    1.000000] EXT4-fs (sda1): mounted filesystem", known):
        plain = kernel_log.parse(text)
        found = kernel_log.parse(f"{text}\n[    2.000000] {ODD}\n[    3.000000] {ODD}")
        assert found.outcome == plain.outcome
        assert found.readings == plain.readings
        kinds = [event["kind"] for event in found.events]
        assert kinds[-2:] == ["unknown", "unknown"]
        (reason,) = (one for one in [found.reason] if not isinstance(one, str))
        assert (reason.code, reason.values["count"]) == ("besides_unknown_lines", 2)
        assert reason.values["reason"] == plain.reason


def test_the_events_stand_in_the_order_of_the_log() -> None:
    last = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."
    found = all_events_of(kernel_lines(f"[    1.000000] {ODD}\n[    2.000000] {last}"))
    assert [event.kind for event in found] == ["unknown", "xid"]
    known, silent = read(kernel_lines(f"[    1.000000] {ODD}\n[    2.000000] {last}"))
    assert ([event.kind for event in known], [line.text for line in silent]) == (["xid"], [ODD])


def test_an_unstamped_text_of_unknown_lines_is_no_kernel_log() -> None:
    assert_raises(
        kernel_log.UnreadableOutput,
        kernel_log.parse,
        "nvidia-smi said something\nand something else\n",
    )


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.txt")), ids=lambda path: path.stem)
def test_recordings_have_none_but_of_what_failed(path: Path) -> None:
    assert unknown(path.read_text(encoding="utf-8")) == {
        "xid_48_63_154_raw_kmsg": [],
    }.get(path.stem, [])


@pytest.mark.parametrize(
    "entry", table("harmless")["line"], ids=lambda entry: entry["pattern"][:30]
)
def test_each_harmless_line_has_its_source(entry: dict[str, str]) -> None:
    assert set(entry) == {"pattern", "source", "why"}
    assert len(entry["source"]) > 8
    assert entry["why"].endswith(".")
    pattern = re.compile(entry["pattern"].replace("ADDRESS", "0000:01:00.0"))
    assert pattern.groups == 0
    assert not pattern.match("")


@each(
    "text, harmless",
    [
        ("pci 0000:01:00.0: BAR 1 [mem size 0x10000000 64bit pref]: can't assign; no space", False),
        ("pci 0000:01:00.0: BAR 1: failed to assign [mem size 0x10000000 64bit pref]", False),
        ("pci 0000:01:00.0: BAR 3: assigned [mem 0xe0000000-0xe1ffffff 64bit pref]", True),
        ("DMAR: DRHD: handling fault status reg 3", True),
        ("DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0xe0000000", False),
        ("nvidia 0000:81:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x001c]", False),
        ("AMD-Vi: Completion-Wait loop timed out", False),
        ("nvme0: Admin Cmd(0x6), I/O Error (sct 0x0 / sc 0x2) DNR", True),
        ("nvme0: Admin Cmd(0x6), I/O Error (sct 0x2 / sc 0x81) DNR", False),
        ("critical target error, dev sda, sector 8 op 0x3:(DISCARD) flags 0x800", True),
        ("critical target error, dev sda, sector 8 op 0x1:(WRITE) flags 0x800", False),
        (
            "nvme0n1: Write Zeroes(0x8) @ LBA 8, 8 blocks, Invalid Command Opcode "
            "(sct 0x0 / sc 0x1) DNR",
            True,
        ),
        (
            "nvme0n1: Dataset Management(0x9) @ LBA 8, 1 blocks, Invalid Field in Command "
            "(sct 0x0 / sc 0x2) DNR",
            True,
        ),
        ("nvme0n1: Write(0x1) @ LBA 8, 8 blocks, Invalid Field (sct 0x0 / sc 0x2) DNR", False),
        ("nvme0: Get Log Page(0x2), Invalid Log Page (sct 0x1 / sc 0x9) DNR", True),
        ("nvme0: Get Log Page(0x2), Unrecovered Read Error (sct 0x2 / sc 0x81) DNR", False),
        ("nvme nvme0: identifiers changed for nsid 1", False),
        ("nvme nvme0: resetting controller due to AER", False),
        ("mlx5_core 0000:18:00.0: Port module event: module 0, Cable unplugged", True),
        (
            "mlx5_core 0000:18:00.0: Port module event[error]: module 0, Cable error, "
            "Bus stuck (I2C or data shorted)",
            False,
        ),
        (
            "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 7): ACCESS_REG(0x805) "
            "op_mod(0x1) failed, status bad operation(0x2), syndrome (0x9a6171), err(-22)",
            True,
        ),
        (
            "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 7): CREATE_MKEY(0x200) "
            "op_mod(0x0) failed, status limits exceeded(0x8), syndrome (0x18af6), err(-12)",
            False,
        ),
        ("megaraid_sas 0000:65:00.0: 9 (7s/0x0001/CRIT) - VD 00/0 is now DEGRADED", False),
        ("megaraid_sas 0000:65:00.0: 9 (7s/0x0001/INFO) - VD 00/0 is now OPTIMAL", True),
        ("pci 0000:01:00.0: BAR 5 [io  size 0x0080]: can't assign; no space", True),
        ("pci 0000:01:00.0: BAR 5: no space for [io  size 0x0080]", True),
        ("pci 0000:01:00.0: BAR 5: failed to assign [mem size 0x00000800]", True),
        ("pci 0000:00:01.0: BAR 13 [io  size 0x1000]: failed to assign", True),
        ("pci 0000:00:01.0: BAR 13: no space for [io  size 0x1000]", True),
        ("pci 0000:00:01.0: BAR 7: can't assign io (size 0x1000)", True),
        ("sd 2:0:0:0: [sdb] No Caching mode page found", True),
        ("sd 2:0:0:0: [sdb] Sense Key : Hardware Error [current]", False),
        ("ata3: SATA link down (SStatus 0 SControl 300)", True),
        ("ata3: hard resetting link", False),
        ("pcieport 0000:40:01.1:    [12] Timeout", True),
    ],
)
def test_harmless_lines(text: str, harmless: bool) -> None:
    assert unknown_line.is_harmless(text) is harmless


@each(
    "one, other",
    [
        ("sd 2:0:0:0: it took 12 ms", "sd 3:0:0:0: it  took 7 ms"),
        ("at 0xdeadbeef01 of 7", "at 0x12 of 123456"),
    ],
)
def test_messages_that_differ_in_numbers_alone(one: str, other: str) -> None:
    assert unknown_line.without_numbers(one) == unknown_line.without_numbers(other)
    assert unknown_line.without_numbers(one) != unknown_line.without_numbers("something else")


def test_letters_alone_are_no_number() -> None:
    assert unknown_line.without_numbers("device dead, bad 0xdead") == "device dead, bad #"


@each(
    "text",
    [
        "pci 0000:04:00.0: BAR 1 [io " + "] " * 2000 + ": odd",
        "pci 0000:04:00.0: BAR 5 " + "(" * 4000,
        "a" * 4096,
    ],
)
def test_a_line_of_full_length_is_read_at_once(text: str) -> None:
    before = time.process_time()
    assert not unknown_line.is_harmless(text)
    assert len(unknown_line.without_numbers(text)) <= len(text)
    assert time.process_time() - before < 0.2


def test_an_unknown_message_names_what_it_can() -> None:
    named = [unknown_line.event(KernelLine(text)).component for text in (ODD, "nvme0n1: x", "x")]
    assert named == [Function("0000:41:00.0"), Named("nvme0n1"), None]


@each(
    "kind, code, expected",
    [
        ("xid", 31, (True, False)),
        ("xid", 45, (True, True)),
        ("xid", 79, (False, False)),
        ("xid", None, (False, False)),
        ("sxid", 31, (False, False)),
    ],
)
def test_which_xids_no_good_load_causes(
    kind: str, code: int | None, expected: tuple[bool, bool]
) -> None:
    assert own_load(kind, code) == expected


def test_every_xid_that_suspects_the_gpu_under_a_good_load_says_so() -> None:
    for code, entry in table("xid")["xid"].items():
        suspects = "if a known good load" in entry["action"]
        assert bool(entry.get("own_load")) is (suspects or code == "45"), code
        assert entry["severity"] == "warning" or not entry.get("own_load"), code


def test_a_long_log_is_read_quickly() -> None:
    text = "".join(
        f"<{number % 8}>[{number:6d}.000000] pci 0000:{number % 256:02x}:00.0: {number} is odd\n"
        for number in range(2_000)
    )
    lines = kernel_lines(text)
    began = time.process_time()
    assert len(all_events_of(lines)) == 1_250
    assert time.process_time() - began < 2.0
