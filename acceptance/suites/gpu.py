"""The GPUs: are they there at all? Before anything else, and within seconds."""

from __future__ import annotations

import pytest

from acceptance.check import Check, same
from acceptance.judge.machine import Machine
from acceptance.observe import nvml
from acceptance.observe.inventory import Gpu, Inventory, gpus
from acceptance.observe.pci import PciFunction
from acceptance.observe.presence import presence
from acceptance.program import Programs

GRANT_CURE = (
    "set the engine up for GPUs (NVIDIA's container toolkit, then `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`), "
    "or go without a container: STATION=host"
)


class NotGranted(Exception):
    """Where the loads run there are other GPUs than those that are due; the message says which, and the cure."""


# PCI Express base specification: gigatransfers a second of each generation.
GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}


def looked(inventory: Inventory) -> str:
    """What was looked at, what each showed, and what to do about it; a line each."""
    return "\n".join(
        f"{look.what}: {look.found}{f' -> {look.cure}' if look.cure else ''}" for look in presence(inventory)
    )


@pytest.mark.gate
@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_count", unit="count", per="machine", waivable=False)
@pytest.mark.measures("gpu_answers", unit="count", per="gpu", waivable=False)
@pytest.mark.measures("gpu_driver_bound", unit="count", per="gpu", waivable=False)
@pytest.mark.measures("gpu_in_nvml", unit="count", per="gpu", waivable=False)
def test_present(inventory: Inventory, check: Check) -> None:
    """Every GPU that is due is on the PCI bus, answers, has NVIDIA's driver, and is known to NVML and answers it.

    Measured: presence only. What the cards can do is measured later, and only if this check passes.
    """
    found = gpus(inventory)
    told = looked(inventory)
    drivers = {function.address: function.driver for function in inventory.pci}
    serials = {gpu.name: gpu.uuid for gpu in found}
    check("gpu_count", {"machine": float(len(found))}, notes={"machine": told})
    answers = {gpu.name: float(gpu.answers) for gpu in found if gpu.answers is not None}
    check("gpu_answers", answers, serials=serials, notes={gpu.name: told for gpu in found if gpu.answers is False})
    bound = {gpu.name: float(drivers[gpu.pci_address] == "nvidia") for gpu in found}
    check("gpu_driver_bound", bound, serials=serials, notes={name: told for name, value in bound.items() if not value})
    known = {gpu.name: float(gpu.nvml_index is not None and gpu.error is None) for gpu in found}
    check("gpu_in_nvml", known, serials=serials, notes={name: told for name, value in known.items() if not value})


@pytest.mark.gate
@pytest.mark.session("load")
@pytest.mark.costs(1.0)
@pytest.mark.measures("gpu_granted", unit="count", per="gpu", waivable=False)
def test_granted(inventory: Inventory, programs: Programs, check: Check) -> None:
    """The GPUs that can be seen from where the loads run are those that are due, by their UUIDs.

    Measured: NVML's list inside the session. An engine may ignore a request for GPUs in silence, and a container without them would
    pass every test of GPUs that it does not see. What differs is the station's trouble and no fault of a card, so it is an error.
    """
    due = gpus(inventory)
    inside = nvml.probe(deadline=programs.deadline)
    seen = {device.uuid for device in inside.devices if device.uuid is not None and device.error is None}
    check(
        "gpu_granted",
        {gpu.name: 1.0 for gpu in due if gpu.uuid in seen},
        serials={gpu.name: gpu.uuid for gpu in due},
    )
    lost = [f"{gpu.name} ({gpu.uuid or 'without a UUID'})" for gpu in due if gpu.uuid not in seen]
    more = sorted(seen - {gpu.uuid for gpu in due})
    if lost or more:
        errors = [inside.error, *(f"GPU {device.index}: {device.error}" for device in inside.devices if device.error)]
        told = [
            *([f"cannot be seen from where the loads run: {', '.join(lost)}"] if lost else []),
            *([f"seen there and not due: {', '.join(more)}"] if more else []),
            *(error for error in errors if error),
        ]
        raise NotGranted(f"{'; '.join(told)}: {GRANT_CURE}")


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_model_differs", unit="count", per="gpu", fact=True)
@pytest.mark.measures("gpu_pci_id_differs", unit="count", per="gpu", fact=True)
@pytest.mark.measures("gpu_address_differs", unit="count", per="gpu", fact=True)
@pytest.mark.measures("gpu_link_width_max", unit="count", per="gpu", fact=True)
@pytest.mark.measures("gpu_link_gen_max", unit="count", per="gpu", fact=True)
def test_identity(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each GPU's model, PCI id, slot, and the widest and fastest link it and its slot can have, against the machine file.

    Measured: what card and slot offer. Not measured: the link under load, which is another check.
    """
    if machine is None:
        return
    wanted = [gpu for gpu in machine.gpu for _ in range(gpu.count)]
    functions = {function.address: function for function in inventory.pci}
    for gpu, declared in zip(gpus(inventory), wanted, strict=False):
        for name, text, found in (
            ("model", declared.model, gpu.model),
            ("pci_id", declared.pci_id, gpu.device_id),
            ("address", declared.address, gpu.pci_address),
        ):
            if text is not None:
                differs = {} if found is None else {gpu.name: float(not same(text, found))}
                why = {gpu.name: f"the driver does not tell the {name} of this card"}
                check(f"gpu_{name}_differs", differs, skipped=why, notes={gpu.name: f"found {found}"})
        _links(gpu, functions[gpu.pci_address], check)


def _links(gpu: Gpu, function: PciFunction, check: Check) -> None:
    """A link can be no better than the lesser of card and slot; what neither shows is not read, and says so."""
    widths = [width for width in (function.max_link_width, function.slot_max_link_width) if width is not None]
    speeds = [speed for speed in (function.max_link_speed_gts, function.slot_max_link_speed_gts) if speed is not None]
    unread = {gpu.name: "the kernel shows no link maximum for this card (a VM may withhold it)"}
    check("gpu_link_width_max", {gpu.name: float(min(widths))} if widths else {}, skipped=unread)
    check("gpu_link_gen_max", {gpu.name: float(GENERATION[min(speeds)])} if speeds else {}, skipped=unread)
