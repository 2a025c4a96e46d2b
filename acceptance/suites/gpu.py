"""The GPUs: presence, readiness and identity, checked first and within seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acceptance.core.message import (
    Listed,
    Message,
    Text,
    after_fault,
    english,
    no_answer,
    not_offered,
)
from acceptance.core.parts import GPUS, MACHINE
from acceptance.core.plain_text import same_text
from acceptance.expect import gpu_names
from acceptance.expect.sheet import Sheet
from acceptance.expect.site_sheets import gaps
from acceptance.machine.gpu import Gpu, gpus, uuids
from acceptance.machine.gpu_health import READINGS
from acceptance.machine.inventory import GpuCounters, Inventory
from acceptance.machine.machine_file import Machine
from acceptance.observe import nvml
from acceptance.observe.presence import (
    absence_kind,
    at_index,
    paravirtualised,
    presence,
    presence_lines,
)
from acceptance.observe.readiness import obstacles, remarks
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check
from acceptance.session.gpu_identity import in_slots
from acceptance.session.loads import Place
from acceptance.session.tools import Tools
from acceptance.suites.fixtures import gpu_health
from acceptance.tools import device_query
from acceptance.wording.errors import WordedError


@pytest.mark.gate
@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_count", "gpu_answers", "gpu_driver_bound", "gpu_in_nvml")
def test_present(inventory: Inventory, expected_gpus: tuple[Gpu, ...], check: Check) -> None:
    """Every GPU that is due is on the PCI bus, answers, has NVIDIA's driver, and is known to NVML
    and answers it.

    Measured: presence only. What the cards can do is measured later, and only of those that answer.
    A GPU that is missing because of the machine's set-up (driver, device nodes, rights) is no fault
    of the card: it is not measured, and an error with its cure.
    """
    lines = presence_lines(presence(inventory))
    serials = uuids(expected_gpus)
    if paravirtualised(inventory):
        raise WordedError("clauses", why=lines)
    check("gpu_count", {MACHINE: float(len(gpus(inventory)))}, notes={MACHINE: lines})
    answers = {gpu.name: float(gpu.answers) for gpu in expected_gpus if gpu.answers is not None}
    check(
        "gpu_answers",
        answers,
        serials=serials,
        notes={gpu.name: lines for gpu in expected_gpus if gpu.answers is False},
    )
    kinds = {gpu: absence_kind(inventory, gpu) for gpu in expected_gpus}
    judged = [gpu for gpu in expected_gpus if kinds[gpu] != "set-up"]
    bound = {gpu.name: float(gpu.function.driver == "nvidia") for gpu in judged}
    check(
        "gpu_driver_bound",
        bound,
        serials=serials,
        notes={name: lines for name, value in bound.items() if not value},
    )
    known = {gpu.name: float(kinds[gpu] is None) for gpu in judged}
    check(
        "gpu_in_nvml",
        known,
        serials=serials,
        notes={name: lines for name, value in known.items() if not value},
    )
    waiting = [gpu.name for gpu in expected_gpus if kinds[gpu] == "set-up"]
    if waiting:
        raise WordedError(
            english(
                "not_set_up", "{gpus}: not to be tested as the machine is set up now\n{places}"
            ),
            gpus=Listed(tuple(map(str, waiting))),
            places=lines,
        )


@pytest.mark.gate
@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_ready")
def test_ready(
    inventory: Inventory, due_gpus: tuple[Gpu, ...], say: Callable[[Text], None], check: Check
) -> None:
    """Every GPU is set up to be tested: MIG off, shared compute mode, no foreign process, the
    NVLink fabric up, the driver new enough.

    Measured: the set-up as NVML reports it. None of it is a fault of a card, so an obstacle is an
    error with its cure.
    """
    found = obstacles(inventory, due_gpus)
    for remark in remarks(inventory, due_gpus):
        say(remark)
    stuck = {obstacle.gpu for obstacle in found}
    check(
        "gpu_ready",
        {gpu.name: 1.0 for gpu in due_gpus if gpu.name not in stuck},
        serials=uuids(due_gpus),
    )
    if found:
        raise WordedError("clauses", why=tuple(one.message for one in found))


@pytest.mark.gate
@pytest.mark.session("gpu-load")
# without persistence mode the driver initializes every GPU first
@pytest.mark.costs(1.0, slack=60.0)
@pytest.mark.measures("gpu_granted")
def test_granted(
    inventory: Inventory, due_gpus: tuple[Gpu, ...], deadline: Deadline, check: Check
) -> None:
    """The loads see exactly the expected GPUs, compared by UUID.

    Measured: NVML's list inside the session. An engine may ignore a request for GPUs in silence,
    and a container without them would pass every test of GPUs that it does not see. A difference is
    the station's trouble and no fault of a card, so it is an error.
    """
    inside = nvml.probe(deadline=deadline)
    seen = {
        device.uuid for device in inside.devices if device.uuid is not None and device.error is None
    }
    check(
        "gpu_granted",
        {gpu.name: 1.0 for gpu in due_gpus if gpu.uuid in seen},
        serials=uuids(due_gpus),
    )
    lost = tuple(
        Message(
            english("gpu_by_uuid", "{gpu} ({uuid})"),
            {
                "gpu": str(gpu.name),
                "uuid": gpu.uuid or Message(english("without_uuid", "without a UUID")),
            },
        )
        for gpu in due_gpus
        if gpu.uuid not in seen
    )
    # On the host, NVML shows the whole machine even where --gpus selects some GPUs; CUDA then gets
    # only those.
    more = sorted(seen - {gpu.uuid for gpu in gpus(inventory)})
    if lost or more:
        why: list[Text] = (
            [
                Message(
                    english("cannot_be_seen", "cannot be seen from where the loads run: {gpus}"),
                    {"gpus": Listed(lost)},
                )
            ]
            if lost
            else []
        )
        why += (
            [
                Message(
                    english("seen_and_not_due", "seen there and not due: {gpus}"),
                    {"gpus": Listed(tuple(more))},
                )
            ]
            if more
            else []
        )
        why += [inside.error] if inside.error else []
        why += [at_index(one.index, one.error) for one in inside.devices if one.error]
        raise WordedError(
            english(
                "not_granted",
                "{why}: where the loads run in a container, set the engine up for GPUs (NVIDIA's "
                "container toolkit, then `sudo nvidia-ctk cdi generate "
                "--output=/etc/cdi/nvidia.yaml`) or go without one (--station host, make: "
                "STATION=host); where they run on the host itself, NVML has changed its answer "
                "since the run began: `nvidia-smi -L`, and Xid and NVRM lines in `dmesg`, say "
                "what happened",
            ),
            why=tuple(why),
        )


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures(
    "gpu_model_differs",
    "gpu_pci_id_differs",
    "gpu_address_differs",
    "gpu_link_width_max",
    "gpu_link_gen_max",
)
def test_identity(
    inventory: Inventory,
    due_gpus: tuple[Gpu, ...],
    machine: Machine | None,
    model_sheets: tuple[Sheet, ...],
    check: Check,
) -> None:
    """Each GPU's model, PCI id, slot, and the widest and fastest link it and its slot can have,
    against the machine file.

    Measured: what card and slot offer. Not measured: the link under load, which is another check.
    """
    if machine is None:
        return
    wanted = [gpu for gpu in machine.gpu for _ in range(gpu.count)]
    for gpu, declared in zip(gpus(inventory), wanted, strict=False):
        if gpu not in due_gpus:
            continue
        for measurement, name, text, found in (
            ("gpu_model_differs", "model", declared.model, gpu.model),
            ("gpu_pci_id_differs", "pci_id", declared.pci_id, gpu.device_id),
            ("gpu_address_differs", "address", declared.address, gpu.pci_address),
        ):
            if text is not None:
                same = (
                    gpu_names.is_of(text, gpu, model_sheets)
                    if name == "model"
                    else same_text(text, found)
                )
                differs = None if found is None else not same
                why = no_answer(
                    Message(
                        english(
                            "not_told_of_card", "the driver does not tell the {what} of this card"
                        ),
                        {"what": name},
                    )
                )
                note = Message(english("found", "found {text}"), {"text": str(found)})
                check.single(measurement, gpu.name, differs, why, note)
        _links(gpu, check)


def _links(gpu: Gpu, check: Check) -> None:
    """Journal the link that card and slot can have: the lesser of both.

    A maximum that neither shows is skipped with its reason.
    """
    unread = not_offered(
        Message(
            english(
                "no_link_maximum",
                "the kernel shows no link maximum for this card (a VM may withhold it)",
            )
        )
    )
    check.single("gpu_link_width_max", gpu.name, gpu.link_width, unread)
    check.single("gpu_link_gen_max", gpu.name, gpu.link_generation, unread)


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures(
    "gpu_ecc_uncorrected",
    "gpu_ecc_uncorrected_total",
    "gpu_remap_pending",
    "gpu_remap_failed",
    "gpu_remapped_uncorrected",
    "gpu_retirement_pending",
    "gpu_retired_pages",
)
def test_memory_health(
    inventory: Inventory,
    due_gpus: tuple[Gpu, ...],
    model_sheets: tuple[Sheet, ...],
    check: Check,
) -> None:
    """What each GPU's memory has been through before this run: uncorrected errors since the driver
    was loaded and in the card's life, remaps, retired pages.

    Measured: the driver's counters. A reboot sets those of the driver to 0, and the card keeps its
    own. Errors that are added during the run are another check. Where a
    model counts errors from the factory on and this card does not, nothing is known of its memory:
    an error with its cure.
    """
    gpu_health.count(_HEALTH, due_gpus, check)
    if uncounted := gaps(inventory, tuple(gpu.name for gpu in due_gpus), model_sheets):
        raise WordedError("clauses", why=uncounted)


def _pages(counters: GpuCounters) -> int | None:
    return (
        None
        if counters.retired_single is None or counters.retired_double is None
        else counters.retired_single + counters.retired_double
    )


_HEALTH: dict[str, Callable[[GpuCounters], int | None]] = {
    "gpu_ecc_uncorrected": lambda found: found.ecc_uncorrected,
    "gpu_ecc_uncorrected_total": lambda found: found.ecc_uncorrected_total,
    "gpu_remap_pending": lambda found: found.remap_pending,
    "gpu_remap_failed": lambda found: found.remap_failed,
    "gpu_remapped_uncorrected": lambda found: found.remapped_uncorrected,
    "gpu_retirement_pending": lambda found: found.retired_pending,
    "gpu_retired_pages": _pages,
}


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures(*READINGS)
def test_health(due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """What each GPU's driver says of its health: the criteria by which NVIDIA replaces a card, its
    InfoROM, repairs that wait, what the driver wants done, and the NVLink fabric.

    Measured: every flag that the driver offers, in its own words. A value that rigproof does not
    know, and a question that the driver fails to answer, prove nothing: they are errors. Not
    measured: what this driver or card does not offer. The same is asked again after the load.
    """
    if unjudged := gpu_health.measure(due_gpus, check):
        raise WordedError("clauses", why=unjudged)


@pytest.mark.session("load")
@pytest.mark.costs(0.1, per_gpu=0.5, slack=65.0)
@pytest.mark.measures("gpu_seen_by_cuda", "gpu_sm_count", "gpu_memory_total")
def test_device_query(tools: Tools, due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """The CUDA sample deviceQuery: CUDA starts, and shows each GPU with all of its multiprocessors
    and memory.

    Measured: CUDA's report. A card with parts switched off, or an instance of one, has fewer
    multiprocessors than its sheet says.
    """
    runs = tools.run(device_query.TOOL, device_query.argv, on=[Place(GPUS, due_gpus)])
    output = runs.only()
    shown = dict(zip(in_slots(output, due_gpus), output.gpus, strict=True))
    serials = uuids(due_gpus)
    unshown = after_fault(Message(english("not_shown_by_cuda", "CUDA does not show this GPU")))
    unseen = {gpu.name: unshown for gpu in due_gpus if gpu not in shown}
    check(
        "gpu_seen_by_cuda",
        {gpu.name: float(gpu in shown) for gpu in due_gpus},
        serials=serials,
        notes=dict.fromkeys(serials, runs.fault),
    )
    check("gpu_sm_count", runs.values("device_query_sm"), skipped=unseen, serials=serials)
    memory = {gpu.name: (one.memory_mib or 0) / 1024 for gpu, one in shown.items()}
    check("gpu_memory_total", memory, skipped=unseen, serials=serials)
    runs.raise_failed()
