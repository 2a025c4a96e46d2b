"""Topology: how GPUs and network cards reach each other, as a matrix. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.grouping import grouped
from acceptance.core.parts import GPUS, Component
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory, NetworkLink, NvmlPair, PciPlace

LEGEND = {
    "X": "itself",
    "NV#": "that many NVLinks",
    "INTERNAL": "on one board",
    "PIX": "one PCIe bridge or switch",
    "PXB": "several PCIe bridges, and no host bridge",
    "PHB": "a PCIe host bridge, which is in the CPU",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
    "-": "not known",
}
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Topology:
    """The matrix: `cells` by the names of row and column; unknown cells are absent.

    `numa_nodes` and `cpus` (nearby logical CPUs, "0-31,64-95") are by name, where they are known.
    """

    names: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    numa_nodes: dict[str, int]
    cpus: dict[str, str]

    def text(self) -> str:
        """The matrix with its legend, aligned; empty where there is nothing to show."""
        rows = self.rows()
        if not rows:
            return ""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        shown = {cell for row in rows[1:] for cell in row[1 : 1 + len(self.names)]}
        marks = [
            mark
            for mark in LEGEND
            if mark in shown or (mark == "NV#" and any(map(_is_nvlink, shown)))
        ]
        width = max(map(len, marks))
        return (
            "\n".join([*lines, "", *(f"{mark.ljust(width)}  {LEGEND[mark]}" for mark in marks)])
            + "\n"
        )

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The matrix as rows of cells with a header row; empty where there is nothing to show."""
        if not self.names:
            return ()
        return (("", *self.names, "CPUs", "NUMA node"), *(self._row(name) for name in self.names))

    def _row(self, name: str) -> tuple[str, ...]:
        cells = (self.cells.get((name, other), _UNKNOWN) for other in self.names)
        node = self.numa_nodes.get(name)
        return (
            name,
            *cells,
            self.cpus.get(name, _UNKNOWN),
            _UNKNOWN if node is None else str(node),
        )


def _is_nvlink(cell: str) -> bool:
    return cell.startswith("NV")


def gpu_functions(inventory: Inventory) -> dict[str, Component]:
    """The GPU of each PCI function by address: the GPU's own, and the bridges above it.

    A bridge above several GPUs belongs to all of them together.
    """
    found: dict[str, Component] = {}
    for gpu in gpus(inventory):
        place = inventory.places.get(gpu.pci_address)
        for address in (gpu.pci_address, *(place.bridges if place else ())):
            found[address] = GPUS if address in found else gpu.name
    return found


def cards(inventory: Inventory) -> dict[str, str]:
    """The network cards on the PCI bus: name and PCI address of each.

    The name is that of the card's first port; InfiniBand ports take precedence.
    """
    links = inventory.links or ()
    real = [link for link in links if link.pci_address is not None and not link.virtual]
    wired = [link for link in real if link.kind != "wireless"]
    named: dict[str, NetworkLink] = {}
    for link in sorted(wired, key=lambda link: "/" not in link.name):
        named.setdefault(str(link.pci_address), link)
    return {link.name: address for address, link in sorted(named.items())}


def addresses(inventory: Inventory) -> tuple[str, ...]:
    """The PCI addresses of everything in the matrix, for `pci.places`."""
    return (*(gpu.pci_address for gpu in gpus(inventory)), *cards(inventory).values())


def build(inventory: Inventory, places: Mapping[str, PciPlace]) -> Topology:
    """The matrix of the due GPUs and the network cards.

    NVLinks take precedence over any other path.
    """
    due = gpus(inventory)
    where = {str(gpu.name): gpu.pci_address for gpu in due} | cards(inventory)
    cells: dict[tuple[str, str], str] = {}
    for a, first in where.items():
        for b, second in where.items():
            if a == b:
                cells[a, b] = "X"
            elif first in places and second in places:
                cells[a, b] = path(places[first], places[second])
    cells |= _of_gpus(inventory, due)
    return Topology(
        names=tuple(where),
        cells=cells,
        numa_nodes=_nodes(where, places, due),
        cpus=_cpus(where, places, due),
    )


def _of_gpus(inventory: Inventory, due: Sequence[Gpu]) -> dict[tuple[str, str], str]:
    """The cells between GPUs, as far as NVML reports them."""
    found = {}
    for a, b, pair in pairs(inventory, due):
        links = nvlinks(a, b)
        cell = f"NV{links}" if links else pair.path
        if cell is not None:
            found[str(a.name), str(b.name)] = cell
    return found


def pairs(inventory: Inventory, due: Sequence[Gpu]) -> Iterator[tuple[Gpu, Gpu, NvmlPair]]:
    """Every ordered pair of these GPUs that NVML reports."""
    known = {gpu.nvml_index: gpu for gpu in due if gpu.nvml_index is not None}
    return (
        (known[pair.a], known[pair.b], pair)
        for pair in inventory.nvml.pairs
        if pair.a in known and pair.b in known
    )


def host_link_groups(inventory: Inventory, due: Sequence[Gpu]) -> tuple[tuple[Gpu, ...], ...]:
    """The due GPUs by the way to the host that they share: those of one NUMA node are a group.

    They share that node's memory and its links. Where the node of any GPU is not known, as in most
    VMs, all GPUs are one group.
    """
    nodes = _nodes({str(gpu.name): gpu.pci_address for gpu in due}, inventory.places, due)
    groups = grouped((nodes[str(gpu.name)] if len(nodes) == len(due) else None, gpu) for gpu in due)
    return tuple(groups.values())


def host_turns(inventory: Inventory, due: Sequence[Gpu]) -> int:
    """How many turns the due GPUs take where one at a time may use the way to the host."""
    return max(map(len, host_link_groups(inventory, due)), default=0)


def nvlinks(a: Gpu, b: Gpu) -> int:
    """How many NVLinks lead from one GPU to the other.

    Direct links that end there, and through switches the lower number of the two GPUs' active
    links.
    """
    direct = [link for link in a.links if link.active and link.remote_kind != "switch"]
    to_switch = [
        sum(bool(link.active) and link.remote_kind == "switch" for link in gpu.links)
        for gpu in (a, b)
    ]
    return sum(link.remote_address == b.pci_address for link in direct) + min(to_switch)


def _nodes(
    where: Mapping[str, str], places: Mapping[str, PciPlace], due: Sequence[Gpu]
) -> dict[str, int]:
    found = {
        name: places[address].numa_node if address in places else None
        for name, address in where.items()
    }
    for gpu in due:
        if found[str(gpu.name)] is None and gpu.traits is not None:
            found[str(gpu.name)] = gpu.traits.numa_node
    return {name: node for name, node in found.items() if node is not None}


def _cpus(
    where: Mapping[str, str], places: Mapping[str, PciPlace], due: Sequence[Gpu]
) -> dict[str, str]:
    found = {
        name: places[address].cpus if address in places else None for name, address in where.items()
    }
    for gpu in due:
        if gpu.traits is not None and gpu.traits.cpu_affinity is not None:
            found[str(gpu.name)] = gpu.traits.cpu_affinity
    return {name: ranges(cpus) for name, cpus in found.items() if cpus}


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in the kernel's list notation: "0-3,8"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def path(a: PciPlace, b: PciPlace) -> str:
    """The path between two functions, in the words of `nvidia-smi topo`.

    "PIX": one bridge or switch; "PXB": several, and no host bridge; "PHB": a host bridge; "NODE":
    host bridges of one NUMA node; "SYS": more than that, or nodes that the kernel does not report.
    """
    if a.host_bridge != b.host_bridge:
        return "NODE" if a.numa_node is not None and a.numa_node == b.numa_node else "SYS"
    common = 0
    while common < min(len(a.bridges), len(b.bridges)) and a.bridges[common] == b.bridges[common]:
        common += 1
    if common == 0:
        return "PHB"
    # A switch is two bridges in a row: the port towards the host, which both have in common, and
    # one port towards each function.
    return "PIX" if max(len(a.bridges), len(b.bridges)) - common <= 1 else "PXB"
