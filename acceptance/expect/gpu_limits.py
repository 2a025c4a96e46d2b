"""The limits of this machine's GPUs, from their own facts and their model sheets."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from acceptance import resources
from acceptance.core import parts
from acceptance.core.limit import MIB, Limit
from acceptance.core.message import Message, SetupError, Values, english
from acceptance.core.parts import Component
from acceptance.expect import architecture, limit_book, sheet, sheet_figures
from acceptance.expect.ceiling import gpu_ceilings
from acceptance.expect.compute import ComputeFacts, compute_limits, training_limits
from acceptance.expect.gpu import (
    GpuFacts,
    PairFacts,
    collective_limits,
    gpu_limits,
    parallel_ceilings,
    parallel_limits,
)
from acceptance.expect.limit_book import Override
from acceptance.expect.sheet import Sheet
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory, PciFunction, known
from acceptance.machine.machine_file import DeclaredGpu, Machine
from acceptance.machine.pcie import generation
from acceptance.machine.topology import nvlinks, pairs

_UNCOUNTED = Message(
    english(
        "read_counters",
        "see `nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT`, and update the driver (a VM: "
        "its host's, too)",
    )
)


@functools.cache
def sheets() -> tuple[Sheet, ...]:
    """All of rigproof's model sheets. Raises SetupError."""
    found = sheet.read_all(resources.locate("models"))
    for one in found:
        if wrong := sheet_figures.problem(one):
            raise SetupError(f"{one.name}: {wrong[1]}")
    return found


def sheet_of(gpu: Gpu, models: Sequence[Sheet]) -> Sheet | None:
    """The model sheet of a GPU; None where none or several agree."""
    return sheet.find(models, pci_id=gpu.device_id, nvml_name=gpu.model)


def overrides(
    inventory: Inventory,
    names: tuple[Component, ...],
    declared: Machine | None,
    models: Sequence[Sheet],
) -> Iterator[Override]:
    """The limits of the GPUs of these names, and of the paths between them, by these sheets."""
    due = gpus(inventory, names)
    facts, between = gpu_facts(due, declared), pair_facts(inventory, due)
    yield from gpu_limits(facts, between, models)
    yield from collective_limits(facts, between, models)
    yield from parallel_limits(facts, between, models)
    yield from compute_limits(compute_facts(due), models, architecture.shipped())
    yield from training_limits(compute_facts(due), models)
    for gpu in due:
        traits = gpu.traits
        # A limit for a missing sensor would be a gap of the plan.
        if (
            traits is not None
            and traits.memory_thermometer
            and traits.memory_max_temperature_c is not None
        ):
            highest, warn = (
                traits.memory_max_temperature_c,
                limit_book.figures().memory_warn_c.value,
            )
            basis = Message(
                english(
                    "highest_of_memory",
                    "the driver names {highest} degC as the highest operating temperature of this "
                    "card's memory",
                ),
                {"highest": f"{highest:g}"},
            )
            limit = Limit("degC", basis, high=highest, warn_high=highest - warn)
            yield Override(
                "gpu_memory_temperature",
                Message(english("told_by_driver", "told by the driver")),
                limit,
                gpu.name,
            )


def ceilings(
    inventory: Inventory, names: tuple[Component, ...], models: Sequence[Sheet]
) -> Iterator[Override]:
    """The ceilings of the GPUs of these names, and of the paths between them.

    Declared values set no ceiling.
    """
    due = gpus(inventory, names)
    found = gpu_facts(due, None)
    if inventory.cpu.virtualised is not False:
        found = tuple(_without_port(one, gpu.function) for one, gpu in zip(found, due, strict=True))
    yield from gpu_ceilings(found, compute_facts(due), models, architecture.shipped())
    yield from parallel_ceilings(found)


def _without_port(gpu: GpuFacts, function: PciFunction) -> GpuFacts:
    """A GPU without its slot's maximum where its link exceeds that.

    The port above it is then the hypervisor's own.
    """
    wider = (function.link_width or 0) > (gpu.slot_link_width or math.inf)
    faster = (generation(function.link_speed_gts) or 0) > (gpu.slot_link_gen or math.inf)
    return replace(gpu, slot_link_gen=None, slot_link_width=None) if wider or faster else gpu


def gpu_facts(due: tuple[Gpu, ...], declared: Machine | None) -> tuple[GpuFacts, ...]:
    """The facts from which limits of GPUs are derived.

    In a VM the machine file's values stand for the slot's.
    """
    listed = [gpu for gpu in declared.gpu for _ in range(gpu.count)] if declared is not None else []
    by_name: dict[Component, DeclaredGpu] = {
        parts.Gpu(index): gpu for index, gpu in enumerate(listed)
    }
    return tuple(_facts_of(gpu, by_name.get(gpu.name, DeclaredGpu())) for gpu in due)


def _facts_of(gpu: Gpu, declared: DeclaredGpu) -> GpuFacts:
    traits, function = gpu.traits, gpu.function
    card_gen = traits.max_link_gen if traits is not None else None
    slot_gen, slot_width = gpu.slot_link
    return GpuFacts(
        name=gpu.name,
        model=gpu.model,
        device_id=known(gpu.device_id),
        compute_capability=traits.compute_capability if traits is not None else None,
        memory_mib=gpu.memory_bytes // MIB if gpu.memory_bytes is not None else None,
        card_link_gen=card_gen if card_gen is not None else generation(function.max_link_speed_gts),
        card_link_width=function.max_link_width
        or (traits.max_link_width_here if traits is not None else None),
        slot_link_gen=slot_gen if slot_gen is not None else declared.link_gen,
        slot_link_width=slot_width if slot_width is not None else declared.link_width,
        nvlink_active=gpu.active_links if gpu.device is not None else None,
        nvlink_total=len(gpu.links) if gpu.device is not None else None,
    )


def gaps(
    inventory: Inventory, names: tuple[Component, ...], models: Sequence[Sheet]
) -> Iterator[Message]:
    """What keeps a run from passing: a GPU without memory error counts.

    Only of models that have ECC on when they leave the factory.
    """
    for gpu in gpus(inventory, names):
        if gpu.traits is None:
            continue  # the checks of presence report a GPU that does not answer
        own = sheet_of(gpu, models)
        if own is None or not own.ecc:
            continue
        values: Values = {"gpu": str(gpu.name), "card": own.card, "cure": _UNCOUNTED}
        counters = gpu.counters
        if gpu.traits.ecc_enabled is False:
            cure = Message(
                english("switch_ecc_on", "`sudo nvidia-smi -i {gpu} -e 1`, then reboot"),
                {"gpu": gpu.uuid or gpu.pci_address},
            )
            yield Message(
                english("ecc_off", "{gpu}: ECC is off, and {card} has it on: {cure}"),
                {"gpu": str(gpu.name), "card": own.card, "cure": cure},
            )
        elif counters is None or counters.ecc_uncorrected is None:
            yield Message(
                english(
                    "no_ecc_counters",
                    "{gpu}: the driver tells no ECC counters, and {card} has them: {cure}",
                ),
                values,
            )
        elif counters.remap_failed is None and None in (
            counters.retired_single,
            counters.retired_double,
        ):
            yield Message(
                english(
                    "no_retired_memory",
                    "{gpu}: the driver tells neither remapped rows nor retired pages, and {card} "
                    "has one of them: {cure}",
                ),
                values,
            )


def pair_facts(inventory: Inventory, due: tuple[Gpu, ...]) -> tuple[PairFacts, ...]:
    """Facts of every ordered pair of GPUs that NVML reports."""
    return tuple(
        PairFacts(
            a.name,
            b.name,
            nvlinks(a, b),
            pair.p2p_read
            if pair.p2p_read == pair.p2p_write
            else f"read {pair.p2p_read}, write {pair.p2p_write}",
            virtual=inventory.cpu.virtualised is True,
        )
        for a, b, pair in pairs(inventory, due)
    )


def compute_facts(due: tuple[Gpu, ...]) -> tuple[ComputeFacts, ...]:
    """The facts from which floors of compute and memory copies are derived."""
    return tuple(map(_card, due))


def _card(gpu: Gpu) -> ComputeFacts:
    traits = gpu.traits
    return ComputeFacts(
        name=gpu.name,
        model=gpu.model,
        device_id=known(gpu.device_id),
        compute_capability=traits.compute_capability if traits is not None else None,
        cuda_cores=traits.cuda_cores if traits is not None else None,
        max_sm_clock_mhz=traits.max_sm_clock_mhz if traits is not None else None,
        max_memory_clock_mhz=traits.max_memory_clock_mhz if traits is not None else None,
        memory_bus_bits=traits.memory_bus_bits if traits is not None else None,
    )
