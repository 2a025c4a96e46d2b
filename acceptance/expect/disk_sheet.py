"""Disk sheets: one TOML file a model of disk with the vendor's figures, strictly read, and found by
the name and the size of a disk.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from acceptance import resources
from acceptance.core.message import Message, SetupError, english
from acceptance.core.strict import Strict, Text
from acceptance.machine import disk_link, pcie
from acceptance.machine.disk_link import SataLink
from acceptance.machine.thresholds import thresholds
from acceptance.machine.toml_place import line_of

# Bytes of a random read, in our measurements and in the vendors'.
BLOCK_BYTES = 4096

Lanes = Annotated[int, msgspec.Meta(ge=1, le=16)]
Size = Annotated[int, msgspec.Meta(ge=100, le=1_000_000)]
# No disk reads 100 GB/s; a figure in MB/s is refused.
Rate = Annotated[float, msgspec.Meta(gt=0.02, le=100)]
Operations = Annotated[int, msgspec.Meta(ge=1000, le=20_000_000)]
Some = msgspec.Meta(min_length=1)


class DiskVariant(Strict, frozen=True):
    """`[[variant]]` of a sheet: the vendor's maxima of one size.

    `gb` are 10^9 bytes. `read_gbs` and `write_gbs` are sequential, `read_iops` and `write_iops`
    random operations of 4 KiB a second. None: no source gives the figure.
    """

    gb: Size
    read_gbs: Rate
    write_gbs: Rate | None = None
    read_iops: Operations | None = None
    write_iops: Operations | None = None


class DiskSheet(Strict, frozen=True):
    """One model of disk.

    `models` are regular expressions of the whole name that the disk gives to the kernel, `examples`
    names that they match. `source` says where the figures come from; `read` is the day on which
    they were read there, None for figures that were written down without reading them again. The
    link is that of the disk, whatever its slot is: `pcie_*` of NVMe, `sata_gbps` of the others.
    """

    name: Text
    kind: Literal["nvme", "ssd", "hdd"]
    models: Annotated[tuple[Text, ...], Some]
    examples: Annotated[tuple[Text, ...], Some]
    source: Text
    variant: Annotated[tuple[DiskVariant, ...], Some]
    read: date | None = None
    pcie_gen: Annotated[int, msgspec.Meta(ge=1, le=7)] | None = None
    pcie_width: Lanes | None = None
    sata_gbps: Literal[3, 6] | None = None

    @property
    def origin(self) -> Message:
        """The sheet, as the origin of limits."""
        return Message(english("sheet_of", "sheet of {model}"), {"model": self.name})

    def matches(self, model: str) -> bool:
        """Whether a disk of this name is of this model."""
        return any(re.fullmatch(pattern, model) for pattern in self.models)

    def of_size(self, size_bytes: int) -> DiskVariant | None:
        """The variant of a disk of so many bytes; None where none is of that size."""
        return next(
            (
                one
                for one in self.variant
                if abs(size_bytes - one.gb * 10**9) <= thresholds().disk.sheet * one.gb * 10**9
            ),
            None,
        )

    def link_gbs(self) -> float | None:
        """The data rate of the disk's own link; None where the sheet gives no link."""
        rate = self.link_rate()
        return rate[0] if rate is not None else None

    def link_rate(self) -> tuple[float, Message] | None:
        """The same with its derivation."""
        if self.sata_gbps is not None:
            return disk_link.most(SataLink(None, self.sata_gbps, None))
        return (
            None
            if self.pcie_gen is None or self.pcie_width is None
            else pcie.data_rate(self.pcie_gen, self.pcie_width)
        )


_Place = tuple[str | int, ...]
_Problem = tuple[_Place, str]


def problem(sheet: DiskSheet) -> _Problem | None:
    """What types cannot express: the key at fault and what is wrong with it, or None."""
    return _name_problem(sheet) or _link_problem(sheet) or _figure_problem(sheet)


def _name_problem(sheet: DiskSheet) -> _Problem | None:
    for at, pattern in enumerate(sheet.models):
        try:
            matched = any(re.fullmatch(pattern, name) for name in sheet.examples)
        except re.error as error:
            return ("models", at), f"{pattern!r} is no regular expression: {error}"
        if not matched:
            return ("models", at), f"{pattern!r} matches no example"
    for at, name in enumerate(sheet.examples):
        if not sheet.matches(name):
            return ("examples", at), f"{name!r} is matched by no pattern"
    return None


def _link_problem(sheet: DiskSheet) -> _Problem | None:
    pci = (sheet.pcie_gen, sheet.pcie_width)
    if sheet.kind == "nvme" and (None in pci or sheet.sata_gbps is not None):
        return ("kind",), "an NVMe disk has pcie_gen and pcie_width, and no sata_gbps"
    if sheet.kind != "nvme" and (pci != (None, None) or sheet.sata_gbps is None):
        return ("kind",), "a SATA disk has sata_gbps, and neither pcie_gen nor pcie_width"
    return None


def _figure_problem(sheet: DiskSheet) -> _Problem | None:
    most = sheet.link_gbs()
    assert most is not None  # the link is there, and of a known generation
    last = 0
    for at, one in enumerate(sheet.variant):
        if one.gb <= last * (1 + 2 * thresholds().disk.sheet):
            return ("variant", at, "gb"), f"{one.gb} GB must be more than the {last} GB before it"
        last = one.gb
        for key in ("read_gbs", "write_gbs"):
            rate = getattr(one, key)
            if rate is not None and rate > most:
                place = ("variant", at, key)
                return place, f"{rate:g} GB/s is more than the link's {most:.4g} GB/s"
        for key in ("read_iops", "write_iops"):
            count = getattr(one, key)
            if count is None:
                continue
            if count * BLOCK_BYTES > most * 1e9:
                return ("variant", at, key), f"{count} IOPS of 4 KiB are more than the link carries"
            if sheet.kind == "hdd":
                return ("variant", at, key), "no vendor states random operations of a hard disk"
    return None


def read(path: Path) -> DiskSheet:
    """The sheet in a file. Raises SetupError, naming file, line and key."""
    table = resources.read_table(path)
    text = path.read_text(encoding="utf-8")
    try:
        sheet = msgspec.convert(table, DiskSheet)
    except msgspec.ValidationError as refusal:
        place = _pointer(str(refusal))
        raise SetupError(f"{_at(path, text, place)}: {refusal}") from refusal
    if wrong := problem(sheet):
        place, told = wrong
        key = ".".join(map(str, place))
        raise SetupError(f"{_at(path, text, place)}: {key}: {told}")
    return sheet


def _pointer(refusal: str) -> _Place:
    """The key that an error of msgspec is about: `$.variant[1].gb`, and the name of an unknown one.

    A missing key has no line: its table has.
    """
    found = re.search(r" - at `\$([\w.\[\]]*)`$", refusal)
    place = [
        int(index) if index else name
        for name, index in re.findall(r"(\w+)|\[(\d+)\]", found[1] if found else "")
    ]
    unknown = re.match(r"Object contains unknown field `(.*?)`", refusal)
    return (*place, unknown[1]) if unknown else tuple(place)


def _at(path: Path, text: str, place: _Place) -> str:
    line = line_of(text, place)
    return f"{path.name}, line {line}" if line is not None else path.name


def read_all(folder: Path) -> tuple[DiskSheet, ...]:
    """Every sheet of a folder, by file name.

    Raises SetupError, also where there is none, or where one name belongs to two sheets.
    """
    paths = sorted(folder.glob("*.toml"))
    found = tuple(read(path) for path in paths)
    if not found:
        raise SetupError(f"{folder.name}: holds no disk sheet")
    for path, one in zip(paths, found, strict=True):
        for at, name in enumerate(one.examples):
            for other_path, other in zip(paths, found, strict=True):
                if other is not one and other.matches(name):
                    place = _at(path, path.read_text(encoding="utf-8"), ("examples", at))
                    raise SetupError(
                        f"{place}: examples.{at}: {name!r} is a name of {other_path.name} too"
                    )
    return found


@functools.cache
def shipped() -> tuple[DiskSheet, ...]:
    """All of rigproof's disk sheets. Raises SetupError."""
    return read_all(resources.locate("disks"))


def find(sheets: Sequence[DiskSheet], model: str) -> DiskSheet | None:
    """The only sheet of a disk of this name; None where none or several agree."""
    fit = [one for one in sheets if one.matches(model)]
    return fit[0] if len(fit) == 1 else None
