"""The disk under a folder, shown as an NVMe drive: its names in sysfs lead to a description, whose
counters are the disk's own.
"""

from __future__ import annotations

import os
from pathlib import Path

from selftest.fault import NvmeDrive

NAME = "nvme7n1"
_PORT = "sys/devices/pci9999:00/9999:00:01.0"


class NvmeDriveError(OSError):
    """The disk cannot be shown as another; the message is one sentence."""


def lay(root: Path, folder: Path, drive: NvmeDrive) -> None:
    """Write it below a described root. Raises NvmeDriveError where no disk is under the folder."""
    about = folder.stat()
    device = f"{os.major(about.st_dev)}:{os.minor(about.st_dev)}"
    own = Path("/sys/dev/block", device)
    if not own.exists():
        raise NvmeDriveError(
            f"{folder} is on no block device ({device}): give --out a folder on a disk"
        )
    port = root / _PORT
    function = port / "9999:01:00.0"
    controller = function / "nvme/nvme7"
    block = controller / NAME
    block.mkdir(parents=True)
    texts: dict[Path, dict[str, str | int]] = {
        port: {"max_link_speed": drive.slot_max_speed, "max_link_width": drive.slot_max_width},
        function: {
            "max_link_speed": drive.max_speed,
            "max_link_width": drive.max_width,
            "current_link_speed": drive.speed,
            "current_link_width": drive.width,
        },
        controller: {"model": drive.model, "serial": "S0001", "transport": "pcie"},
        block: {"size": drive.size_bytes // 512, "dev": device},
    }
    for place, files in texts.items():
        for name, text in files.items():
            (place / name).write_text(f"{text}\n", encoding="ascii")
    (controller / "device").symlink_to("../..")
    (block / "device").symlink_to("..")
    (block / "stat").symlink_to(own.resolve() / "stat")
    inside = f"../../{block.relative_to(root / 'sys')}"
    for link in (f"sys/block/{NAME}", f"sys/class/block/{NAME}", f"sys/dev/block/{device}"):
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        up = "../" * (len(Path(link).parts) - 2)
        (root / link).symlink_to(up + inside.removeprefix("../../"))
