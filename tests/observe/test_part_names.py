"""What the kernel calls GPUs, disks and ports, and which of them a message names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cases import each
from gpu_machine import device, machine

from acceptance.core.evidence import Scratch
from acceptance.core.parts import GPUS, Component, Function, Gpu, Part
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Disk, NetworkLink, PciPlace
from acceptance.observe import part_names
from acceptance.observe.part_names import PartNames

GPU, BRIDGE, DISK, NVME = (
    Function("0000:41:00.0"),
    Function("0000:40:01.1"),
    Part("disk", "sda"),
    Part("disk", "nvme0n1"),
)
NAMES = PartNames(
    {
        GPU: ["0000:41:00.0", "GPU-4b0c8a1e-0002-4090-8000-000000000002"],
        BRIDGE: ["0000:40:01.1"],
        GPUS: ["gpu#"],
        DISK: ["sda", "sda1", "dm-0", "ata5", "4:0:0:0", "0000:40:01.1"],
        NVME: ["nvme0n1", "nvme0"],
    }
)


@each(
    "text, part",
    [
        ("nvidia 0000:41:00.0: odd", GPU),
        ("NVRM: GPU at PCI:0000:41:00: odd", GPU),
        ("NVRM: something (PCI:0000:41:00) odd", GPU),
        ("odd GPU-4B0C8A1E-0002-4090-8000-000000000002", GPU),
        ("snd_hda_intel 0000:41:00.1: the card's sound", None),
        ("nvidia 10000:41:00.0: of another domain", None),
        ("nvidia 0000:81:00.0: of another GPU", None),
        ("NVRM: GPU6 _odd: odd", GPUS),
        ("nvidia-modeset: ERROR: GPU:0: odd", GPUS),
        ("NVRM: odd", None),
        # the GPU's, although a disk is below it too
        ("pcieport 0000:40:01.1: odd", BRIDGE),
        ("sd 4:0:0:0: [sda] odd", DISK),
        ("sd 14:0:0:0: [sdb] odd", None),
        ("ata5.00: odd", DISK),
        ("ata5: odd", DISK),
        ("ata55: odd", None),
        ("EXT4-fs (dm-0): odd", DISK),
        ("EXT4-fs error (device sda1): odd", DISK),
        ("sdaa: odd", None),
        ("nvme nvme0: odd", NVME),
        ("nvme0n1: odd", NVME),
        ("nvme0n2: odd", None),
    ],
)
def test_what_a_message_names(text: str, part: Component | None) -> None:
    assert NAMES.part_in(text) == part


def test_without_names_it_names_nothing() -> None:
    assert PartNames({}).part_in("nvidia 0000:41:00.0: odd") is None


def test_the_names_of_a_disk(tmp_path: Path) -> None:
    port = "0000:00:17.0/ata5/host4/target4:0:0/4:0:0:0"
    device = tmp_path / "sys/devices/pci0000:00" / port
    (device / "block/sda/sda1/holders").mkdir(parents=True)
    (device / "block/sda/holders/md0").mkdir(parents=True)
    (device / "block/sda/sda1/holders/dm-0").mkdir()
    (device / "block/sda/device").symlink_to(device)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/sda").symlink_to(device / "block/sda")
    assert set(part_names._of_disk("sda", tmp_path)) == {
        *("sda", "sda1", "md0", "dm-0", "ata5", "4:0:0:0", "0000:00:17.0")
    }
    assert set(part_names._of_disk("nvme1n1", tmp_path)) == {"nvme1n1", "nvme1"}


def test_the_parts_of_a_machine(tmp_path: Path) -> None:
    seen = machine(device(0), device(1))
    first, second = (gpu.pci_address for gpu in gpus(seen))
    bridge, port = "0000:00:01.1", "0000:05:00.0"
    disk = Disk("sda", None, None, None, "ssd", "sata", None)
    seen = replace(
        seen,
        disks=(disk, replace(disk, name="sdb")),
        links=(
            NetworkLink("ib0", "ethernet", None, None, None, True, False, port, rdma="mlx5_0/1"),
            NetworkLink("eth0", "ethernet", None, None, None, True, False, None),
        ),
        places={first: PciPlace(first, "pci0000:00", (bridge,), None, None)},
    )
    scratch = Scratch(
        path="/data",
        component=Part("disk", "md0"),
        mount="/",
        kind="xfs",
        source="/dev/md0",
        disks=("sda",),
        layers=("raid1",),
        free_bytes=1,
        write_bytes=1,
        kept_bytes=0,
        keep=False,
        sealed_bytes=0,
    )
    names = part_names.find(seen, [Gpu(0)], [scratch], tmp_path)
    for text, part in (
        (f"nvidia {first}: odd", Function(first)),
        (f"nvidia {second}: odd", None),  # is not tested
        (f"pcieport {bridge}: odd", Function(bridge)),
        ("NVRM: GPU0 odd", GPUS),
        ("sda: odd", Part("disk", "md0")),
        ("md0: odd", Part("disk", "md0")),
        ("sdb: odd", Part("disk", "sdb")),
        ("mlx5_0: odd", Part("net", "ib0")),
        (f"mlx5_core {port}: odd", Part("net", "ib0")),
        ("eth0: odd", Part("net", "eth0")),
    ):
        assert names.part_in(text) == part, text
    assert part_names.find(seen, [], (), tmp_path).part_in("NVRM: GPU0 odd") is None
