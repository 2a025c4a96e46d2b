from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from known import known
from machine_tree import Programs, Tree, completed
from refusal import raised

from acceptance.core.parts import Part
from acceptance.machine.disk_link import PcieLink, SataLink
from acceptance.machine.inventory import Disk
from acceptance.observe import smart, storage, sysfs
from acceptance.observe import storage as observe_storage
from acceptance.observe.sysfs import SysfsError
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


FUNCTION = "sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0"
ATA = "pci0000:00/0000:00:17.0/ata1"


def disk(name: str, transport: str | None) -> Disk:
    return Disk(name, None, None, 1, None, transport, None)


def nvme(root: Path) -> Tree:
    tree = Tree(root)
    device = tree.disk("nvme0n1", "pci0000:00/0000:00:01.0/0000:04:00.0/nvme/nvme0")
    tree.link(f"{device}/device", FUNCTION)
    tree.files(
        FUNCTION,
        current_link_speed="8.0 GT/s PCIe",
        current_link_width=2,
        max_link_speed="16.0 GT/s PCIe",
        max_link_width=4,
    )
    tree.files(str(Path(FUNCTION).parent), max_link_speed="32.0 GT/s PCIe", max_link_width=16)
    return tree


PCIE = PcieLink("0000:04:00.0", 8.0, 2, 16.0, 4, 32.0, 16)


@each(
    "transport, link",
    [("nvme", PCIE), ("usb", None), ("sas", None), ("nvme-tcp", None), (None, None)],
)
def test_a_pcie_link_is_that_of_an_nvme_disk_alone(
    tmp_path: Path, transport: str | None, link: PcieLink | None
) -> None:
    nvme(tmp_path)
    assert storage.read_link(disk("nvme0n1", transport), tmp_path) == link


def test_nvme_multipath(tmp_path: Path) -> None:
    tree = nvme(tmp_path)
    subsystem = tree.disk("nvme1n1", "virtual/nvme-subsystem/nvme-subsys1")
    tree.link(f"{subsystem}/nvme0", f"{FUNCTION}/nvme/nvme0")
    assert storage.read_link(disk("nvme1n1", "nvme"), tmp_path) == PCIE


def sata(root: Path, link: str = "link1", **files: str) -> None:
    tree = Tree(root)
    tree.disk("sda", f"{ATA}/host0/target0:0:0/0:0:0:0")
    own = {"sata_spd": "3.0 Gbps", "hw_sata_spd_limit": "6.0 Gbps", **files}
    number = link.removeprefix("link")
    tree.files(f"sys/devices/{ATA}/{link}/ata_link/{link}", **own)
    words = ["0000"] * 256
    words[76] = "850e"
    rows = "\n".join(" ".join(words[at : at + 8]) for at in range(0, 256, 8))
    tree.write(f"sys/devices/{ATA}/{link}/dev{number}.0/ata_device/dev{number}.0/id", rows + "\n")


@each(
    "word, most",
    [("850e", 6.0), ("8506", 3.0), ("0002", 1.5), ("0000", None), ("ffff", None)],
)
def test_the_fastest_generation_of_a_disk(tmp_path: Path, word: str, most: float | None) -> None:
    sata(tmp_path)
    words = ["0000"] * 76 + [word]
    path = f"sys/devices/{ATA}/link1/dev1.0/ata_device/dev1.0/id"
    Tree(tmp_path).write(path, " ".join(words))
    assert storage.read_link(disk("sda", "sata"), tmp_path) == SataLink(3.0, most, 6.0)
    for short in (words[:-1], [*words[:-1], "zz"]):
        Tree(tmp_path).write(path, " ".join(short))
        assert "IDENTIFY DEVICE" in raised(
            SysfsError, storage.read_link, disk("sda", "sata"), tmp_path
        )


def test_what_the_kernel_does_not_show(tmp_path: Path) -> None:
    sata(tmp_path, sata_spd="<unknown>", hw_sata_spd_limit="")
    (tmp_path / f"sys/devices/{ATA}/link1/dev1.0/ata_device/dev1.0/id").unlink()
    assert storage.read_link(disk("sda", "sata"), tmp_path) == SataLink(None, None, None)


def test_a_speed_that_is_none(tmp_path: Path) -> None:
    sata(tmp_path, sata_spd="fast")
    assert "no speed of a SATA link" in raised(
        SysfsError, storage.read_link, disk("sda", "sata"), tmp_path
    )


def test_whether_a_disk_shows_its_link_is_known_before_the_run(tmp_path: Path) -> None:
    tree = nvme(tmp_path)
    tree.disk("nvme2n1", "platform/apple/nvme/nvme2")
    shown = {one.name: one.shows_link for one in storage.read(tmp_path)}
    assert shown == {"nvme0n1": True, "nvme2n1": False}
    tree.files(FUNCTION, current_link_speed="fast")  # no reason to have no inventory
    shown = {one.name: one.shows_link for one in storage.read(tmp_path)}
    assert shown == {"nvme0n1": None, "nvme2n1": False}


def test_why_a_link_is_not_known(tmp_path: Path) -> None:
    nvme(tmp_path)
    sata(tmp_path)
    seen, gone = disk("nvme0n1", "nvme"), disk("nvme7n1", "nvme")
    shown = [storage.lack(one, tmp_path) for one in (seen, gone, disk("sda", "sata"))]
    assert shown == ["not_offered", "no_answer", "not_offered"]
    speed = tmp_path / FUNCTION / "current_link_speed"
    speed.unlink()
    assert storage.lack(seen, tmp_path) == "not_offered"
    speed.mkdir()  # it is there and cannot be read
    assert storage.lack(seen, tmp_path) == "no_answer"


@each(
    "name, transport, path",
    [
        ("nvme0n1", "nvme", "platform/apple/nvme/nvme0"),
        ("sda", "sata", f"{ATA}/host0/target0:0:0/0:0:0:0"),
        ("sda", "sata", "pci0000:00/0000:00:17.0/host0/target0:0:0/0:0:0:0"),
    ],
    told=["an NVMe disk that is on no PCI bus", "a SATA disk without a link", "or without a port"],
)
def test_a_disk_without_such_a_link_has_none(
    tmp_path: Path, name: str, transport: str, path: str
) -> None:
    tree = Tree(tmp_path)
    tree.link(f"{tree.disk(name, path)}/device", "sys/devices/platform")
    assert storage.read_link(disk(name, transport), tmp_path) is None
    assert storage.lack(disk(name, transport), tmp_path) == "not_offered"


NVME_DEVICE, SATA_DEVICE = "sys/class/block/nvme0n1/device", "sys/class/block/sda/device"


@each(
    "place",
    [
        f"{NVME_DEVICE}/hwmon3",
        f"{NVME_DEVICE}/hwmon/hwmon3",
        f"{NVME_DEVICE}/device/hwmon/hwmon0",
        f"{NVME_DEVICE}/nvme2/hwmon1",
        f"{NVME_DEVICE}/nvme2/device/hwmon/hwmon1",
    ],
)
def test_an_nvme_drive_wherever_the_kernel_has_its_thermometer(tmp_path: Path, place: str) -> None:
    Tree(tmp_path).files(place, temp1_input=41850, temp1_max=81850, temp1_crit=84850)
    found = known(storage.find_thermometer("nvme0n1", tmp_path))
    assert (found.now(), found.warning_c, found.critical_c) == (41.85, 81.85, 84.85)


def test_thresholds_that_a_drive_does_not_state(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA_DEVICE}/hwmon/hwmon1", temp1_input=-3000, temp1_crit=0)
    Tree(tmp_path).files(f"{NVME_DEVICE}/hwmon1", temp1_input=30000, temp1_max=65261850)
    for name, now in (("sda", -3.0), ("nvme0n1", 30.0)):
        found = known(storage.find_thermometer(name, tmp_path))
        assert (found.now(), found.warning_c, found.critical_c) == (now, None, None)


def test_a_drive_that_goes_away_and_one_that_has_none(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA_DEVICE}/hwmon/hwmon1", temp1_input=30000)
    Tree(tmp_path).files(f"{NVME_DEVICE}/hwmon1", name="nvme")
    assert storage.find_thermometer("nvme0n1", tmp_path) is None
    assert storage.find_thermometer("sdb", tmp_path) is None
    found = known(storage.find_thermometer("sda", tmp_path))
    found.input.unlink()
    assert found.now() is None


@each("millidegrees", [-273150, -60000, 200000, 65261850])
def test_a_temperature_that_no_drive_has_is_none(tmp_path: Path, millidegrees: int) -> None:
    Tree(tmp_path).files(f"{NVME_DEVICE}/hwmon1", temp1_input=millidegrees, temp1_max=81850)
    assert known(storage.find_thermometer("nvme0n1", tmp_path)).now() is None


def test_a_value_that_is_none(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA_DEVICE}/hwmon/hwmon1", temp1_input="warm")
    found = known(storage.find_thermometer("sda", tmp_path))
    assert "warm" in raised(sysfs.SysfsError, found.now)


def test_which_disks_show_a_temperature_and_a_threshold(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{NVME_DEVICE}/hwmon1", temp1_input=30000, temp1_max=80000)
    Tree(tmp_path).files(f"{SATA_DEVICE}/hwmon/hwmon1", temp1_input=30000)
    disks = [Disk(name, "M", None, 1, None, None, None) for name in ("nvme0n1", "sda", "sdb")]
    assert storage.limited(disks, tmp_path) == {Part("disk", "nvme0n1")}
    assert known(storage.find_thermometer("nvme0n1", tmp_path)).limit_c == 80.0
