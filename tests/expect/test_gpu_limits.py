"""What a machine's GPUs show of themselves, as limits: each figure comes from where it should."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from gpu_machine import (
    COUNTERS,
    TRAITS,
    address,
    answer,
    device,
    empty,
    link,
    look,
    machine,
    pairs,
    tree_of,
)

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.expect import architecture, gpu_limits
from acceptance.expect.compute import ComputeFacts
from acceptance.expect.gpu import PairFacts
from acceptance.expect.limit_book import LimitBook
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuCounters, Inventory
from acceptance.machine.machine_file import Machine
from acceptance.wording import words


def declared(**tables: Any) -> Machine:
    return msgspec.convert({"schema": 1, "name": "m", **tables}, Machine)


def book(
    inventory: Inventory, file: Machine | None = None, names: tuple[str, ...] = (Gpu(0), Gpu(1))
) -> LimitBook:
    return LimitBook(tuple(gpu_limits.overrides(inventory, names, file, gpu_limits.sheets())))


def low(found: LimitBook, measurement: str, component: str) -> float | None:
    held = found.find(measurement, component)
    return held.limit.low if held is not None and held.limit is not None else None


def without_slot(inventory: Inventory) -> Inventory:
    """The machine as a VM shows it: the ports that the cards hang on are hidden."""
    pci = tuple(
        replace(function, slot_max_link_speed_gts=None, slot_max_link_width=None)
        for function in inventory.pci
    )
    return replace(inventory, pci=pci)


def test_a_gpu_as_it_shows_itself() -> None:
    links = (link(0, to=1), link(1, to=1), link(2, active=False))
    first, second = gpu_limits.gpu_facts(gpus(machine(device(0, links=links), device(1))), None)
    assert (first.name, first.model, first.device_id) == (
        Gpu(0),
        "NVIDIA GeForce RTX 4090",
        "10de:2684",
    )
    assert (first.compute_capability, first.memory_mib) == ("8.9", 24564)
    assert (first.card_link_gen, first.card_link_width) == (4, 16)
    assert (first.slot_link_gen, first.slot_link_width) == (5, 16)
    assert (first.nvlink_active, first.nvlink_total) == (2, 3)
    assert (second.nvlink_active, second.nvlink_total) == (0, 0)


def test_a_gpu_that_nvml_does_not_know_or_that_stopped_answering() -> None:
    silent = device(0, traits=None, counters=None, memory_bytes=None, error="lost")
    seen = replace(empty(2), nvml=answer([silent]))
    lost, unknown = gpu_limits.gpu_facts(gpus(seen), None)
    assert (lost.compute_capability, lost.memory_mib, lost.nvlink_total) == (None, None, 0)
    assert (unknown.model, unknown.memory_mib, unknown.nvlink_active, unknown.nvlink_total) == (
        None,
        None,
        None,
        None,
    )
    # The kernel shows the card's own link all the same.
    assert (
        (unknown.card_link_gen, unknown.card_link_width)
        == (lost.card_link_gen, lost.card_link_width)
        == (4, 16)
    )
    assert low(book(seen), "gpu_link_width", Gpu(1)) == 16


def test_what_the_card_can_do_alone_comes_from_nvml_first() -> None:
    seen = machine(device(0, traits=replace(TRAITS, max_link_gen=3)))
    assert gpu_limits.gpu_facts(gpus(seen), None)[0].card_link_gen == 3
    hidden = replace(
        seen, pci=tuple(replace(function, max_link_width=None) for function in seen.pci)
    )
    assert gpu_limits.gpu_facts(gpus(hidden), None)[0].card_link_width == 16
    untold = replace(hidden, nvml=replace(hidden.nvml, devices=(device(0, traits=None),)))
    assert gpu_limits.gpu_facts(gpus(untold), None)[0].card_link_width is None


def test_a_slot_that_a_vm_hides_is_taken_from_the_machine_file() -> None:
    seen = without_slot(machine(device(0), device(1)))
    file = declared(gpu=[{"count": 1}, {"link_gen": 3, "link_width": 8}])
    first, second = gpu_limits.gpu_facts(gpus(seen), file)
    assert (first.slot_link_gen, first.slot_link_width) == (None, None)
    assert (second.slot_link_gen, second.slot_link_width) == (3, 8)
    found = book(seen, file)
    assert (low(found, "gpu_link_gen", Gpu(1)), low(found, "gpu_link_width", Gpu(1))) == (3, 8)
    shown = machine(device(0), device(1))
    assert gpu_limits.gpu_facts(gpus(shown), file)[1].slot_link_gen == 5, (
        "what the slot shows goes first"
    )


def test_a_port_that_a_vm_shows_is_not_the_slot() -> None:
    inside = replace(TRAITS, virtualised=True)
    seen = machine(device(0, traits=inside), device(1, traits=inside))
    first, second = gpu_limits.gpu_facts(
        gpus(seen), declared(gpu=[{}, {"link_gen": 4, "link_width": 8}])
    )
    assert (first.slot_link_gen, first.slot_link_width, first.card_link_width) == (None, None, 16)
    assert (second.slot_link_gen, second.slot_link_width) == (4, 8)
    for one in gpus(seen):
        assert (one.slot_link, one.link_generation, one.link_width) == ((None, None), 4, 16)
        for record in (device(0), None):
            assert replace(one, device=record).slot_link == (5, 16)


@functools.cache
def without_nvml() -> Inventory:
    """Three H200 as the kernel shows them."""
    with tempfile.TemporaryDirectory() as root:
        tree = tree_of(Path(root), 0)
        for bus in (1, 2, 3):
            tree.gpu(bus, device="0x2335")
        return look(tree, [])


NO_PAGES = {"remap_failed": None, "retired_single": None}


@each(
    "ecc, counters, told",
    [
        (True, COUNTERS, None),
        (None, COUNTERS, None),
        (True, replace(COUNTERS, remap_failed=None), None),
        (True, replace(COUNTERS, retired_single=None), None),
        (
            False,
            COUNTERS,
            "gpu1: ECC is off, and an H200 SXM 141GB has it on: `sudo nvidia-smi -i GPU-00000001-",
        ),
        (
            True,
            None,
            (
                "gpu1: the driver tells no ECC counters, and an H200 SXM 141GB has them: see "
                "`nvidia-smi -q"
            ),
        ),
        (
            None,
            replace(COUNTERS, ecc_uncorrected=None),
            "gpu1: the driver tells no ECC counters, and",
        ),
        (
            True,
            replace(COUNTERS, **NO_PAGES),
            "gpu1: the driver tells neither remapped rows nor retired pages, and",
        ),
    ],
)
def test_memory_errors_that_nobody_counts_are_a_gap(
    ecc: bool | None, counters: GpuCounters | None, told: str | None
) -> None:
    on, off = replace(TRAITS, ecc_enabled=True), replace(TRAITS, ecc_enabled=ecc)
    cards = [
        device(0, name="NVIDIA H200", traits=on),
        device(1, name="NVIDIA H200", traits=off, counters=counters),
    ]
    lost = device(2, name="NVIDIA H200", traits=None, counters=None, error="lost")
    seen = replace(without_nvml(), nvml=answer([*cards, lost]))
    found = list(gpu_limits.gaps(seen, (Gpu(0), Gpu(1), Gpu(2)), gpu_limits.sheets()))
    assert len(found) == int(told is not None)
    assert "".join(map(words.message, found)).startswith(told or "")
    assert list(gpu_limits.gaps(seen, (Gpu(0), Gpu(2)), gpu_limits.sheets())) == []


def test_a_card_that_ships_without_ecc_or_that_no_sheet_knows_has_no_such_gap() -> None:
    seen = machine(device(0), device(1, name="NVIDIA Unheard Of"))
    assert list(gpu_limits.gaps(seen, (Gpu(0), Gpu(1)), gpu_limits.sheets())) == []
    assert list(gpu_limits.gaps(empty(1), (Gpu(0),), gpu_limits.sheets())) == []


@pytest.mark.usefixtures("shares")
def test_limits_of_the_gpus_that_are_tested_and_of_no_others() -> None:
    found = book(machine(*(device(index) for index in range(3))), names=(Gpu(0), Gpu(2)))
    components = {entry.component for entry in found.entries}
    assert components == {Gpu(0), Gpu(2), Pair(Gpu(0), Gpu(2)), Pair(Gpu(2), Gpu(0)), GPUS}
    assert low(found, "gpu_sm_count", Gpu(0)) == 128
    assert low(found, "gpu_memory_total", Gpu(0)) == pytest.approx(0.93 * 24)
    assert low(found, "copy_h2d", Gpu(0)) == pytest.approx(0.75 * 31.5, rel=0.01)


@pytest.mark.usefixtures("shares")
@each(
    "thermometer, highest_c, limit",
    [(True, 95.0, 95.0), (True, None, None), (False, 95.0, None), (None, 95.0, None)],
)
def test_the_memorys_highest_temperature_is_the_drivers_where_it_can_be_read(
    thermometer: bool | None, highest_c: float | None, limit: float | None
) -> None:
    traits = replace(TRAITS, memory_thermometer=thermometer, memory_max_temperature_c=highest_c)
    held = book(machine(device(0, traits=traits), device(1, traits=None))).find(
        "gpu_memory_temperature", Gpu(0)
    )
    assert (held.limit.high if held is not None and held.limit is not None else None) == limit
    if held is not None and held.limit is not None:
        assert (held.limit.warn_high, words.text(held.origin)) == (90.0, "told by the driver")
        assert "the driver names 95 degC as the highest" in words.text(held.limit.basis)


@pytest.mark.usefixtures("shares")
def test_pairs_in_words() -> None:
    devices = [device(0, links=(link(0, to=1),)), device(1, links=(link(0, to=0),)), device(2)]
    told = (*pairs(2), *pairs(3, "ok", "not-supported")[1:2], *pairs(3, None, None)[-1:])
    seen = machine(*devices, found=told)
    assert gpu_limits.pair_facts(seen, gpus(seen)) == (
        PairFacts(Gpu(0), Gpu(1), 1, "ok"),
        PairFacts(Gpu(1), Gpu(0), 1, "ok"),
        PairFacts(Gpu(0), Gpu(2), 0, "read ok, write not-supported"),
        PairFacts(Gpu(2), Gpu(1), 0, None),
    )
    assert gpu_limits.pair_facts(seen, gpus(seen)[1:]) == (PairFacts(Gpu(2), Gpu(1), 0, None),)
    assert low(book(seen), "p2p_gain", Pair(Gpu(0), Gpu(1))) == 2.0


def test_names_are_in_the_order_of_the_bus_and_not_of_nvml() -> None:
    turned = machine(device(0, index=1), device(1, index=0), found=pairs(2)[:1])
    assert gpu_limits.pair_facts(turned, gpus(turned)) == (PairFacts(Gpu(1), Gpu(0), 0, "ok"),)
    assert (gpus(turned)[0].nvml_index, gpus(turned)[0].pci_address) == (1, address(0))


def test_the_sheets_are_read() -> None:
    assert "GeForce RTX 4090" in [one.name for one in gpu_limits.sheets()]


def test_what_floors_of_computing_are_derived_from() -> None:
    first, silent = gpu_limits.compute_facts(gpus(machine(device(0), device(1, traits=None))))
    told = (Gpu(0), "NVIDIA GeForce RTX 4090", "10de:2684", "8.9", 16384, 3105.0, 10501.0, 384)
    assert first == ComputeFacts(*told)
    assert silent == ComputeFacts(Gpu(1), told[1], told[2], None, None, None, None, None)
    unknown = empty(1)
    assert gpu_limits.compute_facts(gpus(unknown)) == (
        ComputeFacts(Gpu(0), None, "10de:2684", *[None] * 5),
    )
    assert architecture.shipped()
