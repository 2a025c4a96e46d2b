"""Fake roots: the small files of /sys, /proc and /dev that a machine would show."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from acceptance.process.command import ProgramResult

GIB = 1 << 30
NO_DMI = (
    "# dmidecode 3.4\nScanning /dev/mem for entry point.\n",
    "/dev/mem: No such file or directory\n",
    1,
)


class Tree:
    """A root directory under construction."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: set[Path] = set()

    def write(self, path: str, content: str | bytes) -> None:
        file = self.root / path
        if file.parent not in self._made:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(file.parent)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def files(self, folder: str, **contents: str | int) -> None:
        for name, content in contents.items():
            self.write(f"{folder}/{name}", f"{content}\n")

    def link(self, path: str, to: str) -> None:
        """A relative symbolic link, as sysfs has them; both paths from the root."""
        link, target = self.root / path, self.root / to
        link.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(target.resolve(), link.parent.resolve()))

    # --- parts of a machine ---

    def cpus(
        self,
        cores: Sequence[Sequence[int]],
        *,
        model: str = "AMD Ryzen",
        flags: str | None = "fpu",
        sockets: int = 1,
    ) -> None:
        """`cores` lists the logical CPUs of each physical core, spread evenly over the sockets."""
        threads = sorted(cpu for core in cores for cpu in core)
        self.write("sys/devices/system/cpu/online", f"{threads[0]}-{threads[-1]}\n")
        blocks = []
        for cpu in threads:
            flags_line = "" if flags is None else f"flags\t\t: {flags}\n"
            blocks.append(
                f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: "
                f"{model}\n{flags_line}power management:\n"
            )
        self.write("proc/cpuinfo", "\n".join(blocks) + "\n")
        for number, core in enumerate(cores):
            siblings = ",".join(map(str, core))
            for cpu in core:
                folder = f"sys/devices/system/cpu/cpu{cpu}"
                self.files(
                    f"{folder}/topology",
                    core_cpus_list=siblings,
                    physical_package_id=number * sockets // len(cores),
                )
                self.files(
                    f"{folder}/cache/index0",
                    level=1,
                    type="Data",
                    size="32K",
                    shared_cpu_list=siblings,
                )
                self.write(f"{folder}/cache/uevent", "")
                self.files(
                    f"{folder}/cpufreq", scaling_governor="performance", cpuinfo_max_freq=5_700_000
                )

    def memory(self, total_gib: int = 64) -> None:
        kib = total_gib * GIB // 1024
        self.write(
            "proc/meminfo",
            f"MemTotal:       {kib} kB\nMemFree:  1 kB\nMemAvailable:   {kib - 1024} kB\n",
        )

    def gpu(
        self,
        bus: int,
        *,
        device: str = "0x2684",
        driver: str | None = "nvidia",
        dead: bool = False,
        class_code: str = "0x030000",
        function: int = 0,
    ) -> str:
        """An NVIDIA function behind a root port of its own; gives its address."""
        address = f"0000:{bus:02x}:00.{function}"
        port = f"sys/devices/pci0000:00/0000:00:{bus:02x}.0"
        folder = f"{port}/{address}"
        self.files(port, max_link_speed="32.0 GT/s PCIe", max_link_width=16)
        self.files(
            folder,
            vendor="0x10de",
            device=device,
            revision="0xa1",
            numa_node=-1,
            current_link_speed="Unknown" if dead else "2.5 GT/s PCIe",
            current_link_width=63 if dead else 16,
            max_link_speed="16.0 GT/s PCIe",
            max_link_width=16,
            **{"class": class_code},
        )
        self.write(f"{folder}/config", b"\xff" * 256 if dead else b"\xde\x10\x84\x26" + b"\0" * 252)
        self.link(f"sys/bus/pci/devices/{address}", folder)
        if driver:
            self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        return address

    def driver(
        self,
        version: str = "570.86.15",
        nodes: Sequence[str] = ("nvidia0", "nvidiactl", "nvidia-uvm"),
    ) -> None:
        self.write("sys/module/nvidia/version", f"{version}\n")
        for node in nodes:
            self.write(f"dev/{node}", "")

    def disk(
        self, name: str, path: str, *, sectors: int = 1_000_215_216, rotational: int | None = 0
    ) -> str:
        """A block device at `path` below sys/devices; gives the path of its `device`."""
        device = f"sys/devices/{path}"
        block = f"{device}/block/{name}"
        self.files(block, size=sectors)
        if rotational is not None:
            self.files(f"{block}/queue", rotational=rotational)
        self.link(f"{block}/device", device)
        self.link(f"sys/block/{name}", block)
        return device

    def nic(self, name: str, *, bus: int = 5, driver: str = "igc", **files: str | int) -> None:
        device = f"sys/devices/pci0000:00/0000:00:1c.0/0000:{bus:02x}:00.0"
        interface = f"{device}/net/{name}"
        self.files(
            interface,
            **{
                "operstate": "up",
                "address": "aa:bb:cc:00:11:22",
                "type": 1,
                "speed": 2500,
                **files,
            },
        )
        self.link(f"{interface}/device", device)
        if not (self.root / device / "driver").exists():
            self.link(f"{device}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/class/net/{name}", interface)


def completed(
    stdout: str = "",
    stderr: str = "",
    returncode: int = 0,
    *,
    timed_out: bool = False,
    truncated: bool = False,
) -> ProgramResult:
    return ProgramResult(("program",), returncode, stdout, stderr, 0.1, timed_out, truncated)


class Programs:
    """A stand-in for command.run: gives the answer of the first program whose name is in the
    command line, and remembers what was asked.
    """

    def __init__(self, **answers: ProgramResult | Exception) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, argv: Sequence[str], **_options: object) -> ProgramResult:
        self.asked.append(tuple(argv))
        for name, answer in self.answers.items():
            if any(name in word for word in argv):
                if isinstance(answer, Exception):
                    raise answer
                return answer
        raise AssertionError(f"nobody expected {argv}")
