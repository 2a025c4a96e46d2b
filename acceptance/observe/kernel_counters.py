"""The kernel's own counters of faults, whose growth in a run is judged.

EDAC, the errors of the RAM by memory controller: Documentation/admin-guide/RAS/main.rst of Linux.
`ce_count` and `ue_count` of a controller count all of its corrected and uncorrected errors, also
those that the kernel log was told not to show (`edac_mc_log_ce`).

AER, the errors of PCI Express by function: Documentation/ABI/testing has them in
sysfs-bus-pci-devices-aer_stats, drivers/pci/pcie/aer.c counts them. Each message of a device counts
once in the total, and once in each of the errors that it names: the total may be more or less than
their sum, and no error alone is more than the total.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import english
from acceptance.core.parts import MEMORY, Component, parse
from acceptance.machine import topology
from acceptance.machine.inventory import Inventory
from acceptance.observe import sysfs

Counts = Mapping[str, int]  # by the name of the counter
# Of each component the counters that the kernel has; the argument is the GPU of each PCI function.
_Reader = Callable[[Path, Mapping[str, Component]], dict[Component, dict[str, int]]]

EDAC = "memory-counted-edac"
AER = "gpu-counted-aer"
CORRECTED, UNCORRECTED = "ce_count", "ue_count"
_AER_TOTALS = {
    "aer_dev_correctable": "TOTAL_ERR_COR",
    "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL",
    "aer_dev_fatal": "TOTAL_ERR_FATAL",
}
_AER_LINE = re.compile(r"(?P<name>\S(?:.*\S)?) (?P<count>[0-9]+)")


def read_edac(root: Path) -> dict[str, int]:
    """The counters as "mc0/ce_count"; empty where no driver counts any.

    Raises SysfsError for a file with an unknown value.
    """
    found = {}
    for controller in sysfs.entries(root / "sys/devices/system/edac/mc"):
        if re.fullmatch(r"mc\d+", controller.name):
            for name in (CORRECTED, UNCORRECTED):
                if (count := sysfs.number(controller / name)) is not None:
                    if count < 0:
                        raise sysfs.unexpected(
                            english(
                                "no_counter_in_file",
                                "{path} holds {value}, which is no count of errors: the driver, "
                                "the kernel or rigproof is at fault: please report it",
                            ),
                            controller / name,
                            str(count),
                        )
                    found[f"{controller.name}/{name}"] = count
    return found


def _edac(root: Path, _: Mapping[str, Component]) -> dict[Component, dict[str, int]]:
    return {MEMORY: found} if (found := read_edac(root)) else {}


def read_aer(device: Path) -> dict[str, int]:
    """The totals, and each error that was counted, as "aer_dev_fatal DLP"; empty without the files.

    Raises SysfsError for a file with an unknown line, and for one whose last line is not its total,
    or not as much as each error.
    """
    found: dict[str, int] = {}
    for file, total in _AER_TOTALS.items():
        if (text := sysfs.text(device / file)) is None:
            continue
        counts: dict[str, int] = {}
        for line in text.splitlines():
            match = _AER_LINE.fullmatch(line)
            if match is None or match["name"] in counts:
                raise sysfs.unexpected("no_counter_in_file", device / file, line)
            counts[match["name"]] = int(match["count"])
        if next(reversed(counts)) != total or max(counts.values()) > counts[total]:
            raise sysfs.unexpected("no_counter_in_file", device / file, line)
        found |= {f"{file} {name}": n for name, n in counts.items() if n or name == total}
    return found


def _aer(root: Path, functions: Mapping[str, Component]) -> dict[Component, dict[str, int]]:
    found: dict[Component, dict[str, int]] = {}
    for address, part in functions.items():
        counts = read_aer(root / "sys/bus/pci/devices" / address)
        if counts:
            own = {f"{address} {name}": count for name, count in counts.items()}
            found.setdefault(part, {}).update(own)
    return found


# By the class of the components, as families have it: `<class>-counted-<source>`.
_READERS: Mapping[str, _Reader] = {EDAC: _edac, AER: _aer}


def read(inventory: Inventory, root: Path = Path("/")) -> dict[str, dict[str, dict[str, int]]]:
    """The counters by class, component and name; a component without counters is absent.

    Raises SysfsError for a file with an unknown value.
    """
    functions = topology.gpu_functions(inventory)
    return {
        kind: {str(part): counts for part, counts in reader(root, functions).items()}
        for kind, reader in _READERS.items()
    }


def since(inventory: Inventory, kind: str, root: Path = Path("/")) -> dict[Component, Growth]:
    """The growth since the inventory of each component that had counters of this class then.

    Raises SysfsError as `read`.
    """
    after = read(inventory, root)[kind]
    return {
        parse(part): growth(before, after.get(part, {}))
        for part, before in inventory.counters[kind].items()
    }


@dataclass(frozen=True, slots=True)
class Growth:
    """How far the counters of a component grew, by name, and which are gone or were set back."""

    grown: dict[str, int]
    lost: tuple[str, ...]

    def of(self, *kinds: str) -> Growth:
        """The same of the counters whose names have one of these in them."""
        grown = {name: n for name, n in self.grown.items() if any(one in name for one in kinds)}
        lost = tuple(name for name in self.lost if any(one in name for one in kinds))
        return Growth(grown, lost)


def growth(before: Counts, after: Counts) -> Growth:
    """The growth between two readings. A counter that only the second has began at 0."""
    lost = tuple(name for name, count in before.items() if after.get(name, -1) < count)
    grown = {name: n - before.get(name, 0) for name, n in after.items() if name not in lost}
    return Growth(grown, lost)
