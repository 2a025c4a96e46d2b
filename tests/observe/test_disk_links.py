from __future__ import annotations

from pathlib import Path

from cases import each
from machine_tree import Tree
from refusal import raised

from acceptance.machine.disk_link import PcieLink, SataLink
from acceptance.machine.inventory import Disk
from acceptance.observe import disk_links, storage
from acceptance.observe.sysfs import SysfsError

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
    assert disk_links.read(disk("nvme0n1", transport), tmp_path) == link


def test_nvme_multipath(tmp_path: Path) -> None:
    tree = nvme(tmp_path)
    subsystem = tree.disk("nvme1n1", "virtual/nvme-subsystem/nvme-subsys1")
    tree.link(f"{subsystem}/nvme0", f"{FUNCTION}/nvme/nvme0")
    assert disk_links.read(disk("nvme1n1", "nvme"), tmp_path) == PCIE


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


def test_sata(tmp_path: Path) -> None:
    sata(tmp_path)
    assert disk_links.read(disk("sda", "sata"), tmp_path) == SataLink(3.0, 6.0, 6.0)


@each(
    "word, most",
    [("850e", 6.0), ("8506", 3.0), ("0002", 1.5), ("0000", None), ("ffff", None)],
)
def test_the_fastest_generation_of_a_disk(tmp_path: Path, word: str, most: float | None) -> None:
    sata(tmp_path)
    words = ["0000"] * 76 + [word]
    path = f"sys/devices/{ATA}/link1/dev1.0/ata_device/dev1.0/id"
    Tree(tmp_path).write(path, " ".join(words))
    assert disk_links.read(disk("sda", "sata"), tmp_path) == SataLink(3.0, most, 6.0)
    for short in (words[:-1], [*words[:-1], "zz"]):
        Tree(tmp_path).write(path, " ".join(short))
        assert "IDENTIFY DEVICE" in raised(
            SysfsError, disk_links.read, disk("sda", "sata"), tmp_path
        )


def test_what_the_kernel_does_not_show(tmp_path: Path) -> None:
    sata(tmp_path, sata_spd="<unknown>", hw_sata_spd_limit="")
    (tmp_path / f"sys/devices/{ATA}/link1/dev1.0/ata_device/dev1.0/id").unlink()
    assert disk_links.read(disk("sda", "sata"), tmp_path) == SataLink(None, None, None)


def test_a_speed_that_is_none(tmp_path: Path) -> None:
    sata(tmp_path, sata_spd="fast")
    assert "no speed of a SATA link" in raised(
        SysfsError, disk_links.read, disk("sda", "sata"), tmp_path
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
    shown = [disk_links.lack(one, tmp_path) for one in (seen, gone, disk("sda", "sata"))]
    assert shown == ["not_offered", "no_answer", "not_offered"]
    speed = tmp_path / FUNCTION / "current_link_speed"
    speed.unlink()
    assert disk_links.lack(seen, tmp_path) == "not_offered"
    speed.mkdir()  # it is there and cannot be read
    assert disk_links.lack(seen, tmp_path) == "no_answer"


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
    assert disk_links.read(disk(name, transport), tmp_path) is None
    assert disk_links.lack(disk(name, transport), tmp_path) == "not_offered"
