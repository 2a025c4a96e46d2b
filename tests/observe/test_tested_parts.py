"""Severity by part and moment: what is a fault under load is none while a machine starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from acceptance.observe import kernel_log, tested_parts
from acceptance.observe.event import weigh
from acceptance.observe.kernel_line import kernel_lines
from acceptance.tools.read import kernel_log as read_kernel_log

GPU, PORT, DISK_FUNCTION, CARD = "0000:41:00.0", "0000:40:01.1", "0000:60:00.0", "0000:70:00.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with a GPU below a port, a SATA disk and a network card."""
    devices = tmp_path / "sys/devices"
    links = {
        f"bus/pci/devices/{GPU}": f"pci0000:40/{PORT}/{GPU}",
        "block/sda": f"pci0000:60/{DISK_FUNCTION}/ata3/host2/target2:0:0/2:0:0:0/block/sda",
        "class/net/eth0/device": f"pci0000:70/{CARD}",
    }
    for link, target in links.items():
        (devices / target).mkdir(parents=True)
        path = tmp_path / "sys" / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(devices / target)
    (tmp_path / "sys/class/net/lo").mkdir()
    return tmp_path


def test_the_parts_of_a_machine(root: Path) -> None:
    assert tested_parts.read(root, [GPU], ["sda"]) == {
        **{GPU: "gpu", PORT: "bridge", "sda": "disk", "ata3": "disk"},
        **{DISK_FUNCTION: "disk", CARD: "network"},
    }


def test_a_disk_with_several_ways(tmp_path: Path) -> None:
    subsystem = tmp_path / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    (subsystem / "nvme0n1").mkdir(parents=True)
    for number in (0, 1):
        controller = tmp_path / f"sys/devices/pci0000:60/0000:6{number}:00.0/nvme/nvme{number}"
        controller.mkdir(parents=True)
        (subsystem / f"nvme{number}").symlink_to(controller)
    (subsystem / "nvme0n1/device").symlink_to(subsystem)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/nvme0n1").symlink_to(subsystem / "nvme0n1")
    assert tested_parts.read(tmp_path, [], ["nvme0n1"]) == dict.fromkeys(
        ("nvme0n1", "0000:60:00.0", "0000:61:00.0"), "disk"
    )


BAR = "pci {}: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign"
SATA = "{}: COMRESET failed (errno=-16)"
TRAINING = "pcieport {}: retraining failed"
REFUSED = "DMAR: [DMA Read] Request device [{}] fault addr 0x0 [fault reason 06] PTE Read access"


@each(
    "line, severity",
    [
        (BAR.format(GPU), "error"),
        (BAR.format(CARD), "warning"),
        (SATA.format("ata3"), "error"),
        (SATA.format("ata3.00"), "error"),
        (SATA.format("ata4"), "warning"),
        (TRAINING.format(PORT), "error"),
        (TRAINING.format("0000:00:1c.0"), "warning"),
        (REFUSED.format("41:00.0"), "error"),
        (REFUSED.format("0x41:0x00.0"), "error"),
        (REFUSED.format("00:02.0"), "warning"),
        ("EDAC MC0: 1 UE memory read error on A1 (x)", "fatal"),
    ],
)
def test_a_fault_in_the_run_is_one_of_a_part_under_test(
    root: Path, line: str, severity: str
) -> None:
    parts = tested_parts.read(root, [GPU], ["sda"])
    events = kernel_log.events_of(kernel_lines(f"[ 100.5] {line}\n"))
    assert [event.severity for event in weigh(events, parts, in_run=True)] == [severity]
    before = weigh(events, {}, in_run=False)
    assert [event.severity for event in before] == ["warning" if severity == "error" else severity]


UP = "[ 110.5] ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)\n"


@each(
    "text, before, during",
    [
        (f"[ 100.5] {SATA.format('ata3')}\n{UP}", "info", "error"),
        (f"{UP}[ 111.5] {SATA.format('ata3')}\n", "warning", "error"),
        (f"[ 100.5] {SATA.format('ata4')}\n{UP}", "warning", "warning"),
        (
            f"[ 100.5] {BAR.format(GPU)}\n[ 100.6] pci {GPU}: BAR 1 [mem 0x80000000-0x8fffffff "
            "64bit pref]: assigned\n",
            "info",
            "error",
        ),
        (
            f"[ 100.5] {BAR.format(GPU)}\n[ 100.6] pci {GPU}: BAR 3 [mem 0x80000000-0x8fffffff "
            "64bit pref]: assigned\n",
            "warning",
            "error",
        ),
        (
            f"[ 100.5] {SATA.format('ata3')}\nNov  1 10:00:00 host tool[1]: ata3: SATA link up\n",
            "warning",
            "error",
        ),
    ],
)
def test_a_later_message_takes_it_back_before_the_run_alone(
    root: Path, text: str, before: str, during: str
) -> None:
    parts = tested_parts.read(root, [GPU], ["sda"])
    (event,) = kernel_log.events_of(kernel_lines(text))
    assert [one.severity for one in weigh([event], {}, in_run=False)] == [before]
    assert [one.severity for one in weigh([event], parts, in_run=True)] == [during]


FOUND = "[ 1.0] pci 0000:41:00.0: [10de:2330] type 00 class 0x030200 PCIe Endpoint\n"
BRIDGE = "[ 1.0] pci 0000:40:01.1: PCI bridge to [bus {}]\n"


@each(
    "text, outcome",
    [
        (f"{FOUND}[ 2.0] {BAR.format(GPU)}\n", "fail"),
        (f"[ 1.0] nvidia {GPU}: enabling device\n[ 2.0] {BAR.format(GPU)}\n", "fail"),
        (f"[ 1.0] NVRM: GPU at PCI:0000:41:00: GPU-0\n[ 2.0] {BAR.format(GPU)}\n", "fail"),
        (f"[ 1.0] NVRM: GPU {GPU}: x\n[ 2.0] {BAR.format(GPU)}\n", "fail"),
        (f"{FOUND.replace('10de', '1002')}[ 2.0] {BAR.format(GPU)}\n", "pass"),
        (f"{FOUND}{BRIDGE.format('41')}[ 2.0] {TRAINING.format(PORT)}\n", "fail"),
        (f"{FOUND}{BRIDGE.format('40-42')}[ 2.0] {TRAINING.format(PORT)}\n", "fail"),
        (f"{FOUND}{BRIDGE.format('42-50')}[ 2.0] {TRAINING.format(PORT)}\n", "pass"),
        (f"[ 1.0] ata3.00: ATA-9: DISK, 1, max UDMA/133\n[ 2.0] {SATA.format('ata3')}\n", "fail"),
        (f"[ 1.0] ata3.00: ATAPI: DVD, 1, max UDMA/133\n[ 2.0] {SATA.format('ata3')}\n", "pass"),
        (
            f"[ 1.0] nvme nvme0: pci function {DISK_FUNCTION}\n"
            f"[ 2.0] {REFUSED.format('60:00.0')}\n",
            "fail",
        ),
        (
            f"[ 2.0] nvme {DISK_FUNCTION}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1 "
            "address=0x0 flags=0x0]\n",
            "fail",
        ),
        (
            "Nov  1 10:00:00 host tool[1]: ata3.00: ATA-9: DISK\n"
            f"Nov  1 10:00:00 host kernel: {SATA.format('ata3')}\n",
            "pass",
        ),
    ],
)
def test_a_text_shows_which_parts_count(text: str, outcome: str) -> None:
    assert read_kernel_log.parse(text).outcome == outcome
