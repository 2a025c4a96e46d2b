from __future__ import annotations

import pytest
from machine_tree import Programs, Tree, completed
from refusal import raised

from acceptance.core.parts import Part
from acceptance.machine.inventory import Disk
from acceptance.observe import smart
from acceptance.observe import storage as observe_storage
from acceptance.process import command
from acceptance.process.deadline import Deadline

SATA = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0"


def test_nvme(tree: Tree) -> None:
    device = tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    tree.files(
        device,
        model="Samsung SSD 990 PRO 2TB  ",
        serial="S7",
        firmware_rev="4B2QJXD7",
        transport="pcie",
    )
    (disk,) = observe_storage.read(tree.root)
    assert disk == Disk(
        "nvme0n1", "Samsung SSD 990 PRO 2TB", "S7", 512110190592, "nvme", "nvme", "4B2QJXD7", False
    )
    assert disk.component == Part("disk", "nvme0n1")


def test_multipath_nvme_is_one_disk(tree: Tree) -> None:
    subsystem = tree.disk("nvme0n1", "virtual/nvme-subsystem/nvme-subsys0")
    tree.link(f"{subsystem}/nvme0", "sys/devices/pci0000:00/0000:04:00.0/nvme/nvme0")
    tree.write("sys/devices/pci0000:00/0000:04:00.0/nvme/nvme0/transport", "tcp\n")
    tree.disk("nvme0c0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    tree.write("sys/block/nvme0c0n1/hidden", "1\n")
    (disk,) = observe_storage.read(tree.root)
    assert (disk.name, disk.transport) == ("nvme0n1", "nvme-tcp")


def test_sata_has_its_whole_name_in_the_identify_data(tree: Tree) -> None:
    device = tree.disk("sda", SATA, rotational=1)
    tree.files(device, model="WDC WUH721818ALE", rev="0C0A")
    identity = bytearray(b" " * 512)
    for word, text in ((10, "2PKXXXXX"), (23, "PCGNW232"), (27, "WDC  WUH721818ALE6L4")):
        swapped = bytes(
            value for at in range(0, len(text), 2) for value in (ord(text[at + 1]), ord(text[at]))
        )
        identity[2 * word : 2 * word + len(text)] = swapped
    tree.write(f"{device}/vpd_pg89", b"\0" * 60 + bytes(identity))
    (disk,) = observe_storage.read(tree.root)
    assert (disk.model, disk.serial, disk.firmware) == (
        "WDC  WUH721818ALE6L4",
        "2PKXXXXX",
        "PCGNW232",
    )
    assert (disk.kind, disk.transport) == ("hdd", "sata")


def test_sas_has_a_serial_page(tree: Tree) -> None:
    device = tree.disk(
        "sdb", "pci0000:00/0000:01:00.0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0"
    )
    tree.files(device, model="PM1653", rev="A1")
    tree.write(f"{device}/vpd_pg80", b"\0\x80\0\x08S6  1234")
    tree.write(f"{device}/vpd_pg89", b"short")
    (disk,) = observe_storage.read(tree.root)
    assert (disk.model, disk.serial, disk.firmware) == ("PM1653", "S6  1234", "A1")
    assert (disk.kind, disk.transport) == ("ssd", "sas")


@pytest.mark.parametrize(
    ("name", "path", "model", "kind", "transport"),
    [
        ("vda", "pci0000:00/0000:00:02.0/virtio1", None, "virtual", "virtio"),
        ("xvda", "vbd-51712", None, "virtual", "xen"),
        (
            "sda",
            "LNXSYSTM:00/VMBUS:01/host0/target0:0:0/0:0:0:0",
            "Virtual Disk",
            "virtual",
            "vmbus",
        ),
        ("sda", SATA, "QEMU HARDDISK", "virtual", "sata"),
        (
            "nvme0n1",
            "pci0000:00/0000:04:00.0/nvme/nvme0",
            "Amazon Elastic Block Store",
            "virtual",
            "nvme",
        ),
        (
            "sdc",
            "pci0000:00/0000:00:14.0/usb2/2-1/host6/target6:0:0/6:0:0:0",
            "Flash",
            "ssd",
            "usb",
        ),
        ("mmcblk0", "platform/mmc0/mmc0:0001", None, "ssd", "mmc"),
        ("sdd", "pci0000:00/host1/target1:0:0/1:0:0:0", "PERC H730", "ssd", None),
    ],
)
def test_kinds(
    tree: Tree, name: str, path: str, model: str | None, kind: str, transport: str | None
) -> None:
    device = tree.disk(name, path)
    if model:
        tree.files(device, model=model)
    (disk,) = observe_storage.read(tree.root)
    assert (disk.kind, disk.transport, disk.model) == (kind, transport, model)


def test_a_disk_that_does_not_say_whether_it_turns(tree: Tree) -> None:
    tree.disk("sda", SATA, rotational=None)
    assert observe_storage.read(tree.root)[0].kind is None


def test_what_is_no_disk_is_left_out(tree: Tree) -> None:
    tree.disk("sr0", "pci0000:00/ata1/host0")
    tree.disk("mmcblk0boot0", "platform/mmc0/mmc0:0001")
    tree.disk("sdz", "pci0000:00/usb1/host9", sectors=0)
    for name in ("loop0", "ram0", "zram0", "dm-0", "md127"):
        tree.files(f"sys/block/{name}", size=2048)
    assert observe_storage.read(tree.root) == ()
    assert observe_storage.read(tree.root / "nowhere") == ()


DISK = Disk("sda", None, None, 1, "ssd", "sata", None)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda program, _package=None: program)


@pytest.mark.usefixtures("installed")
def test_reports_and_self_tests_are_asked_of_the_disk() -> None:
    programs = Programs(smartctl=completed("text"))
    for ask in (observe_storage.report, observe_storage.start_self_test):
        assert ask(DISK, deadline=Deadline.after(9), run=programs).stdout == "text"
    assert programs.asked == [
        smart.argv("/dev/sda"),
        ("smartctl", "-j", "-t", "short", "/dev/sda"),
    ]


@pytest.mark.usefixtures("installed")
def test_a_disk_that_does_not_answer_proves_nothing() -> None:
    programs = Programs(smartctl=completed(timed_out=True))
    assert "disk:sda did not answer" in raised(
        smart.SmartInterrupted,
        observe_storage.report,
        DISK,
        deadline=Deadline.after(9),
        run=programs,
    )
