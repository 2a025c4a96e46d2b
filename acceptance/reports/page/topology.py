"""The topology picture: processors, PCI Express devices and NVLinks as boxes and wires. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core.language import Language
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, PciPlace
from acceptance.reports.page.heat import is_gpu, nvlinks
from acceptance.reports.text import one_line

WIDTH, ROW, DEVICE_X = 420, 30, 46
_NODE_X, _BRIDGE_X = 4, 24
_MIDDLE = 12  # of a row: the height of its wire
_BUS_X = 352


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the picture.

    `kind` is "node", "bridge", "gpu" or "card"; `text` is its name, `more` the text beside it.
    """

    kind: str
    x: int
    y: int
    text: str
    more: str


@dataclass(frozen=True, slots=True)
class Wire:
    """A line with an optional text.

    `kind` is "pcie", "nvlink" or "short" (fewer NVLinks than others have).
    """

    kind: str
    path: str
    text: str = ""
    x: int = 0
    y: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole picture, `height` dots high and WIDTH wide.

    `told` says the same in sentences, for readers who cannot see it.
    """

    height: int
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Device:
    name: str
    kind: str
    model: str
    address: str
    node: int | None
    host: str
    switch: str


@dataclass(slots=True)
class _Canvas:
    """The drawing down to `y`; `rows` are the heights of devices by name."""

    _language: Language
    y: int = 8
    boxes: list[Box] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    def node(self, name: str, devices: Sequence[_Device]) -> None:
        """Draw a node, with all its devices along one wire."""
        self.boxes.append(Box("node", _NODE_X, self.y, name, ""))
        top, last = self.y + ROW - 6, self.y
        self.y += ROW
        for host, switch in dict.fromkeys((device.host, device.switch) for device in devices):
            group = [device for device in devices if (device.host, device.switch) == (host, switch)]
            if switch:
                last = self._bridge(switch, len(group))
            for device in group:
                self._device(device, name)
            if not switch:
                last = self.y - ROW + _MIDDLE
        self.wires.append(Wire("pcie", f"M{_NODE_X + 10} {top}V{last}"))
        self.y += 8

    def _bridge(self, switch: str, devices: int) -> int:
        """Draw a switch with the wire of its devices; returns the height of its own wire."""
        middle, begin = self.y + _MIDDLE, self.y + ROW - 6
        self.boxes.append(Box("bridge", _BRIDGE_X, self.y, self._language("PCIe switch"), switch))
        self.wires.append(Wire("pcie", f"M{_NODE_X + 10} {middle}H{_BRIDGE_X}"))
        self.wires.append(Wire("pcie", f"M{_BRIDGE_X + 10} {begin}V{middle + devices * ROW}"))
        self.y += ROW
        return middle

    def _device(self, device: _Device, node: str) -> None:
        middle = self.y + _MIDDLE
        more = " ".join((device.model, device.address)).strip()
        self.boxes.append(Box(device.kind, DEVICE_X, self.y, device.name, more))
        from_x = (_BRIDGE_X if device.switch else _NODE_X) + 10
        self.wires.append(Wire("pcie", f"M{from_x} {middle}H{DEVICE_X}"))
        self.rows[device.name] = middle
        self.told.append(_sentence(device, node, self._language))
        self.y += ROW


def picture(
    inventory: Inventory, matrix: Sequence[Sequence[str]], language: Language
) -> Picture | None:
    """The picture; None if no GPU is known."""
    devices = list(_devices(inventory))
    if not any(device.kind == "gpu" for device in devices):
        return None
    canvas = _Canvas(language)
    for node in sorted(
        {device.node for device in devices}, key=lambda node: (node is None, node or 0)
    ):
        name = (
            language("processor")
            if node is None
            else language("processor, NUMA node {node}", node=node)
        )
        canvas.node(name, [device for device in devices if device.node == node])
    links = _nvlinks(matrix)
    wires = (*canvas.wires, *_nvlink_wires(links, canvas.rows, language))
    pairs = [
        language.ngettext("{a} and {b}: {n} NVLink", "{a} and {b}: {n} NVLinks", count, a=a, b=b)
        for (a, b), count in links.items()
        if a < b
    ]
    return Picture(canvas.y, tuple(canvas.boxes), wires, (*canvas.told, *pairs))


def _sentence(device: _Device, node: str, language: Language) -> str:
    name, address = device.name, device.address
    where = (
        language("{device} at {address} on the processor", device=name, address=address)
        if device.node is None
        else language("{device} at {address} on {node}", device=name, address=address, node=node)
    )
    if not device.switch:
        return where
    return language("{where}, PCIe switch {switch}", where=where, switch=device.switch)


def _devices(inventory: Inventory) -> Iterator[_Device]:
    places = inventory.places
    shared = _switches(places)
    for gpu in gpus(inventory):
        place = places.get(gpu.pci_address)
        node = place.numa_node if place else None
        if node is None and gpu.traits is not None:
            node = gpu.traits.numa_node
        yield _device(str(gpu.name), "gpu", gpu.model or "", gpu.pci_address, places, node, shared)
    seen: set[str] = set()
    for link in sorted(inventory.links or (), key=lambda link: "/" not in link.name):
        address = link.pci_address
        if address and address in places and address not in seen and not link.virtual:
            seen.add(address)
            model, node = link.driver or "", places[address].numa_node
            yield _device(link.name, "card", model, address, places, node, shared)


def _device(
    name: str,
    kind: str,
    model: str,
    address: str,
    places: Mapping[str, PciPlace],
    node: int | None,
    shared: Mapping[str, str],
) -> _Device:
    host = places[address].host_bridge if address in places else ""
    return _Device(
        one_line(name, 20),
        kind,
        one_line(model, 26),
        one_line(address, 16),
        node,
        one_line(host, 20),
        shared.get(address, ""),
    )


def _switches(places: Mapping[str, PciPlace]) -> dict[str, str]:
    """The switch of each device, by the device's address.

    It is the nearest bridge that the device shares with another one.
    """
    users = Counter(bridge for place in places.values() for bridge in place.bridges)
    shared = {
        place.address: [bridge for bridge in place.bridges if users[bridge] > 1]
        for place in places.values()
    }
    return {address: one_line(common[-1], 16) for address, common in shared.items() if common}


def _nvlinks(matrix: Sequence[Sequence[str]]) -> dict[tuple[str, str], int]:
    """The number of NVLinks from one GPU to another, by both names."""
    if len(matrix) < 2:
        return {}
    head = matrix[0][1:]
    return {
        (row[0], other): count
        for row in matrix[1:]
        for other, cell in zip(head, row[1:], strict=False)
        if is_gpu(row[0]) and is_gpu(other) and (count := nvlinks(cell)) is not None
    }


def _nvlink_wires(
    links: Mapping[tuple[str, str], int], rows: Mapping[str, int], language: Language
) -> Iterator[Wire]:
    """The NVLinks: a rail if every GPU has links to all others, else an arc for every pair.

    The rail shows the number of links beside each GPU.
    """
    names = [name for name in rows if any(name in pair for pair in links)]
    if len(names) > 2 and all((a, b) in links for a in names for b in names if a != b):
        each = {name: max(count for (a, _), count in links.items() if a == name) for name in names}
        yield Wire(
            "nvlink",
            f"M{_BUS_X} {rows[names[0]] - 8}V{rows[names[-1]] + 8}",
            "NVLink",
            _BUS_X + 8,
            rows[names[0]] - 12,
        )
        for name, count in each.items():
            kind = "nvlink" if count == max(each.values()) else "short"
            yield Wire(
                kind,
                f"M{_BUS_X - 44} {rows[name]}H{_BUS_X}",
                f"{count}",
                _BUS_X + 8,
                rows[name] + 4,
            )
        return
    for place, (a, b) in enumerate(
        pair
        for pair in links
        if pair[0] in rows and pair[1] in rows and rows[pair[0]] < rows[pair[1]]
    ):
        x, out = _BUS_X - 44, _BUS_X - 10 + 9 * (place % 4)
        path = f"M{x} {rows[a]}C{out} {rows[a]} {out} {rows[b]} {x} {rows[b]}"
        said = language.ngettext("{n} NVLink", "{n} NVLinks", links[a, b])
        yield Wire("nvlink", path, said if place < 4 else "", out + 4, (rows[a] + rows[b]) // 2 + 4)
