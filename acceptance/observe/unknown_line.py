"""Kernel messages that no table knows: which count, and what they name."""

from __future__ import annotations

import re
from functools import cache

from acceptance.core.parts import Component, Named
from acceptance.observe.event import KernelEvent, clean, pci_function, table
from acceptance.observe.kernel_line import KernelLine

KIND = "unknown"
MEANING = "A message of the kernel that rigproof does not know."
ACTION = "Look for the message in the source of the driver that prints it, or ask its vendor."
# The level of the kernel's `err`; a lower number is worse. At `notice` and above it is information.
ERR, WARNING = 3, 4

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_FUNCTION = re.compile(
    r"(?<![\w.])(?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)(?!\w)"
)
_DISK = re.compile(r"\b(?P<disk>nvme\d+(?:n\d+)?|sd[a-z]{1,3}|ata\d+)\b")
# NVIDIA's driver, PCI, the IOMMU, and disks with their drivers and file systems.
_OF_HARDWARE = re.compile(
    rf"\s*(?:NVRM|nvidia|(?:\S+ )?{_ADDRESS}|pci|pcie|DMAR|AMD-Vi|iommu|arm-smmu|"
    r"ata\d|sd [\d:]+|sd[a-z]+:|nvme|scsi|ahci|mpt[23]sas|megaraid|smartpqi|aacraid|hpsa|"
    r"(?:EXT4|XFS|BTRFS|F2FS)\b|Buffer I/O|blk_update|\w+ error, dev )",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?:0x)?[0-9a-f]+", re.IGNORECASE)


@cache
def _harmless() -> re.Pattern[str]:
    patterns = "|".join(f"(?:{entry['pattern']})" for entry in table("harmless")["line"])
    return re.compile(patterns.replace("ADDRESS", _ADDRESS))


def is_harmless(text: str) -> bool:
    """Whether a message is in the table of harmless ones (fixtures/events/harmless.toml)."""
    return _harmless().match(text.strip()) is not None


def without_numbers(text: str) -> str:
    """A message without its numbers: two that differ only in these say the same."""
    numbered = _DIGITS.sub(_number, text)
    return " ".join(numbered.split())


def _number(match: re.Match[str]) -> str:
    """A mark for a number; letters alone, as in `dead`, are part of a word."""
    return match[0] if match[0].isalpha() else "#"


def counts(line: KernelLine) -> bool:
    """Whether a message without an event is one of the hardware that rigproof does not know.

    One whose priority says that it is information is none.
    """
    return (
        not line.foreign
        and (line.level is None or line.level <= WARNING)
        and _OF_HARDWARE.match(line.text) is not None
        and not is_harmless(line.text)
    )


def event(line: KernelLine) -> KernelEvent:
    """The event of an unknown message, which proves nothing."""
    text = clean(line.text)
    return KernelEvent(
        KIND, None, _named(line.text), "info", line.time, text, MEANING, ACTION, hardware=False
    )


def _named(text: str) -> Component | None:
    """The PCI function or the disk that a message names first, or None."""
    if match := _FUNCTION.search(text):
        return pci_function(match["pci"])
    disk = _DISK.search(text)
    return Named(disk["disk"]) if disk else None
