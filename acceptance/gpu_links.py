"""The NVLinks of each GPU as NVML tells of them, journalled: before the load and after it alike."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.check import Check
from acceptance.observe.inventory import Gpu
from acceptance.observe.nvml import NvmlDevice


def measure(devices: Sequence[NvmlDevice], due_gpus: Sequence[Gpu], check: Check) -> None:
    """How many NVLinks of each GPU are up, and the rate of the slowest of them in GB/s. A GPU that does not answer gets no value."""
    known = {device.pci_address: device for device in devices if device.error is None}
    due = {one.component for one in check.due("nvlink_active")}
    active, speed, notes = {}, {}, {}
    for gpu in due_gpus:
        device = known.get(gpu.pci_address)
        if gpu.name not in due or device is None:
            continue
        up = [link for link in device.links if link.active]
        down = [str(link.link) for link in device.links if not link.active]
        active[gpu.name] = float(len(up))
        notes[gpu.name] = f"{len(device.links)} links, down: {', '.join(down)}" if down else None
        speeds = [link.speed_gbs for link in up if link.speed_gbs is not None]
        if up and len(speeds) == len(up):
            speed[gpu.name] = min(speeds)
    due_speed = {one.component for one in check.due("nvlink_speed")}
    serials = {gpu.name: gpu.uuid for gpu in due_gpus}
    check("nvlink_active", active, notes=notes, serials=serials)
    check("nvlink_speed", {name: value for name, value in speed.items() if name in due_speed}, serials=serials)
