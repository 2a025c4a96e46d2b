"""The topology picture: processors, what hangs on them over PCI Express, and NVLinks, as places on a canvas. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acceptance.judge import shown
from acceptance.judge.language import Language
from acceptance.reports.page.names import is_gpu, nvlinks
from acceptance.reports.text import one_line

WIDTH, ROW, DEVICE_X = 420, 30, 46
_BUS_X = 352


@dataclass(frozen=True, slots=True)
class Box:
    """A node, a bridge or a device: `kind` is "node", "bridge", "gpu" or "card"; `text` its name, `more` what is said beside it."""

    kind: str
    x: int
    y: int
    text: str
    more: str


@dataclass(frozen=True, slots=True)
class Wire:
    """A line from one place to another; `kind` is "pcie", "nvlink" or "short" (fewer NVLinks than others have), `text` stands at it."""

    kind: str
    path: str
    text: str = ""
    x: int = 0
    y: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it, `height` dots high and WIDTH wide. `told` says the same in sentences, for who does not see it."""

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


def picture(inventory: Mapping[str, Any], matrix: Sequence[Sequence[str]], language: Language) -> Picture | None:
    """The picture; None where no GPU is known."""
    devices = list(_devices(inventory))
    if not any(device.kind == "gpu" for device in devices):
        return None
    boxes: list[Box] = []
    wires: list[Wire] = []
    told: list[str] = []
    rows: dict[str, int] = {}
    y = 8
    for node in sorted({device.node for device in devices}, key=lambda node: (node is None, node or 0)):
        here = [device for device in devices if device.node == node]
        name = language("processor") if node is None else language("processor, NUMA node {node}", node=node)
        boxes.append(Box("node", 4, y, name, ""))
        top, last = y + ROW - 6, y
        y += ROW
        for host, switch in dict.fromkeys((device.host, device.switch) for device in here):
            group = [device for device in here if (device.host, device.switch) == (host, switch)]
            if switch:
                said = language("PCIe switch")
                boxes.append(Box("bridge", 24, y, said, switch))
                wires.append(Wire("pcie", f"M14 {y + 12}H24"))
                last, begin = y + 12, y + ROW - 6
                y += ROW
            for device in group:
                boxes.append(
                    Box(device.kind, DEVICE_X, y, device.name, " ".join((device.model, device.address)).strip())
                )
                wires.append(Wire("pcie", f"M{34 if switch else 14} {y + 12}H{DEVICE_X}"))
                rows[device.name] = y + 12
                told.append(_sentence(device, name, language))
                y += ROW
            if switch:
                wires.append(Wire("pcie", f"M34 {begin}V{y - ROW + 12}"))
            else:
                last = y - ROW + 12
        wires.append(Wire("pcie", f"M14 {top}V{last}"))
        y += 8
    links = _nvlinks(matrix)
    wires += _nvlink_wires(links, rows, language)
    told += [
        language("{a} and {b}: {count} NVLinks", a=a, b=b, count=count) for (a, b), count in links.items() if a < b
    ]
    return Picture(y, tuple(boxes), tuple(wires), tuple(told))


def _sentence(device: _Device, node: str, language: Language) -> str:
    where = language("{device} at {address} on {node}", device=device.name, address=device.address, node=node)
    return f"{where}, {language('PCIe switch')} {device.switch}" if device.switch else where


def _devices(inventory: Mapping[str, Any]) -> Iterator[_Device]:
    places = shown.table(inventory, "places")
    shared = _switches([place for place in places.values()])
    for gpu in shown.gpus(inventory):
        node = (places.get(gpu.address) or {}).get("numa_node")
        yield _device(
            gpu.name,
            "gpu",
            gpu.device.get("name") or "",
            gpu.address,
            places,
            shown.table(gpu.device, "traits").get("numa_node") if node is None else node,
            shared,
        )
    seen: set[str] = set()
    for link in sorted(shown.rows(inventory, "links"), key=lambda link: "/" not in link["name"]):
        address = link.get("pci_address")
        if address and address in places and address not in seen and not link.get("virtual"):
            seen.add(address)
            model = link.get("driver") or ""
            yield _device(link["name"], "card", model, address, places, places[address]["numa_node"], shared)


def _device(
    name: str,
    kind: str,
    model: str,
    address: str,
    places: Mapping[str, Any],
    node: int | None,
    shared: Mapping[str, str],
) -> _Device:
    host = (places.get(address) or {}).get("host_bridge", "")
    return _Device(
        one_line(name, 20),
        kind,
        one_line(model, 26),
        one_line(address, 16),
        node,
        one_line(host, 20),
        shared.get(address, ""),
    )


def _switches(places: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The switch that a device hangs on, by the device's address: the nearest bridge that it shares with another device."""
    users: dict[str, list[str]] = {}
    for place in places:
        for bridge in place["bridges"]:
            users.setdefault(bridge, []).append(place["address"])
    found = {}
    for place in places:
        common = [bridge for bridge in place["bridges"] if len(users[bridge]) > 1]
        if common:
            found[place["address"]] = one_line(common[-1], 16)
    return found


def _nvlinks(matrix: Sequence[Sequence[str]]) -> dict[tuple[str, str], int]:
    """How many NVLinks lead from one GPU to another, by both names."""
    if len(matrix) < 2:
        return {}
    head = matrix[0][1:]
    return {
        (row[0], other): count
        for row in matrix[1:]
        for other, cell in zip(head, row[1:], strict=False)
        if is_gpu(row[0]) and is_gpu(other) and (count := nvlinks(cell)) is not None
    }


def _nvlink_wires(links: Mapping[tuple[str, str], int], rows: Mapping[str, int], language: Language) -> Iterator[Wire]:
    """A rail where every GPU has links to all others, with the number of each beside it; else an arc for every pair."""
    names = [name for name in rows if any(name in pair for pair in links)]
    if len(names) > 2 and all((a, b) in links for a in names for b in names if a != b):
        each = {name: max(count for (a, _), count in links.items() if a == name) for name in names}
        yield Wire(
            "nvlink", f"M{_BUS_X} {rows[names[0]] - 8}V{rows[names[-1]] + 8}", "NVLink", _BUS_X + 8, rows[names[0]] - 12
        )
        for name, count in each.items():
            kind = "nvlink" if count == max(each.values()) else "short"
            yield Wire(kind, f"M{_BUS_X - 44} {rows[name]}H{_BUS_X}", f"{count}", _BUS_X + 8, rows[name] + 4)
        return
    for place, (a, b) in enumerate(
        pair for pair in links if pair[0] in rows and pair[1] in rows and rows[pair[0]] < rows[pair[1]]
    ):
        x, out = _BUS_X - 44, _BUS_X - 10 + 9 * (place % 4)
        path = f"M{x} {rows[a]}C{out} {rows[a]} {out} {rows[b]} {x} {rows[b]}"
        said = language("{count} NVLinks", count=links[a, b])
        yield Wire("nvlink", path, said if place < 4 else "", out + 4, (rows[a] + rows[b]) // 2 + 4)
