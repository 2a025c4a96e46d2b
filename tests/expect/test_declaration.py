from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each
from known import known

from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Gpu, Pair, Part
from acceptance.expect import declaration
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.machine import machine_file
from acceptance.machine.machine_file import DeclaredLimit, DeclaredMemory, Machine
from acceptance.wording import words

EVERYTHING = machine_file.read(Path(__file__).resolve().parents[1] / "machine/everything.toml")


def facts(declared: Machine) -> dict[tuple[str, str | None], Limit]:
    found = {}
    for entry in declaration.declared_limits(declared, "box.toml"):
        assert words.text(entry.origin) == "declared in box.toml"
        assert "box.toml" in words.text(known(entry.limit).basis)
        assert not entry.own
        assert (entry.measurement, entry.component) not in found
        found[entry.measurement, entry.component] = entry.limit
    return found


@pytest.mark.usefixtures("shares")
def test_everything_declared_becomes_a_limit() -> None:
    found = {key: (limit.unit, limit.low, limit.high) for key, limit in facts(EVERYTHING).items()}
    assert found == {
        ("cpu_sockets", CPU): ("count", 2, 2),
        ("cpu_cores", CPU): ("count", 64, 64),
        ("cpu_threads", CPU): ("count", 128, 128),
        ("cpu_model_differs", CPU): ("count", None, 0),
        ("cpu_governor_differs", CPU): ("count", None, 0),
        ("memory_total", MEMORY): ("GiB", 0.95 * 64, None),
        ("dimm_count", MEMORY): ("count", 2, 2),
        ("dimm_present", Part("dimm", "A1")): ("count", 1, None),
        ("dimm_size", Part("dimm", "A1")): ("GiB", 32, 32),
        ("dimm_rated_speed", Part("dimm", "A1")): ("MT/s", 5600, None),
        ("dimm_configured_speed", Part("dimm", "A1")): ("MT/s", 4800, None),
        ("dimm_part_number_differs", Part("dimm", "A1")): ("count", None, 0),
        ("dimm_present", Part("dimm", "B1")): ("count", 1, None),
        ("board_differs", SYSTEM): ("count", None, 0),
        ("bios_version_differs", SYSTEM): ("count", None, 0),
        ("kernel_differs", SYSTEM): ("count", None, 0),
        ("driver_differs", SYSTEM): ("count", None, 0),
        ("disk_count", Part("declared-disk", "1")): ("count", 1, None),
        ("disk_count", Part("declared-disk", "2")): ("count", 2, None),
        ("link_up", Part("net", "enp1s0")): ("count", 1, None),
        ("link_speed", Part("net", "enp1s0")): ("Mbit/s", 10000, None),
        ("link_up", Part("net", "enp2s0")): ("count", 1, None),
        ("gpu_network_differs", Gpu(0)): ("count", None, 0),
        ("gpu_network_differs", Gpu(1)): ("count", None, 0),
        ("gpu_count", MACHINE): ("count", 3, 3),
        ("gpu_model_differs", Gpu(0)): ("count", None, 0),
        ("gpu_pci_id_differs", Gpu(0)): ("count", None, 0),
        ("gpu_address_differs", Gpu(0)): ("count", None, 0),
        ("gpu_link_width_max", Gpu(0)): ("count", 16, None),
        ("gpu_link_gen_max", Gpu(0)): ("count", 4, None),
        ("nvlink_active", Gpu(0)): ("count", 4, 4),
        ("gpu_path_differs", Pair(Gpu(0), Gpu(1))): ("count", None, 0),
        ("gpu_path_differs", Pair(Gpu(1), Gpu(0))): ("count", None, 0),
        ("gpu_path_differs", Pair(Gpu(1), Gpu(2))): ("count", None, 0),
        ("gpu_path_differs", Pair(Gpu(2), Gpu(1))): ("count", None, 0),
        ("p2p_supported", Pair(Gpu(0), Gpu(1))): ("count", 1, 1),
        ("p2p_supported", Pair(Gpu(1), Gpu(0))): ("count", 1, 1),
        ("transport_doubts", Pair(Gpu(0), Gpu(1))): ("count", None, 1),
        ("transport_doubts", Pair(Gpu(1), Gpu(0))): ("count", None, 1),
        ("p2p_write", Pair(Gpu(0), Gpu(1))): ("GB/s", 45, None),
        ("p2p_write", Pair(Gpu(1), Gpu(0))): ("GB/s", 45, None),
        ("p2p_supported", Pair(Gpu(2), Gpu(0))): ("count", 0, 0),
        ("p2p_supported", Pair(Gpu(0), Gpu(2))): ("count", 0, 0),
        ("gpu_pci_id_differs", Gpu(1)): ("count", None, 0),
        ("gpu_pci_id_differs", Gpu(2)): ("count", None, 0),
    }


def test_a_fact_that_nothing_declared_is_no_limit() -> None:
    assert facts(Machine(schema=1, name="box")) == {}


@each(
    "key, basis",
    [
        (("cpu_cores", CPU), "box.toml declares cpu.cores = 64"),
        (("cpu_governor_differs", CPU), "box.toml declares cpu.governor = 'performance'"),
        (
            ("memory_total", MEMORY),
            "box.toml declares memory.total_gib = 64; firmware and kernel keep up to 5 %",
        ),
        (("dimm_count", MEMORY), "box.toml declares memory.dimms = 2"),
        (("dimm_size", Part("dimm", "A1")), "box.toml declares a module in A1 with size_gib = 32"),
        (("link_speed", Part("net", "enp1s0")), "box.toml declares enp1s0, speed_mbps = 10000"),
        (("gpu_network_differs", Gpu(1)), "box.toml declares enp2s0, gpus = [0, 1]"),
        (("gpu_count", MACHINE), "box.toml declares 3 GPUs"),
        (("gpu_link_gen_max", Gpu(0)), "box.toml declares gpu0 with link_gen = 4"),
        (("nvlink_active", Gpu(0)), "box.toml declares gpu0 with nvlink_links = 4"),
        (
            ("gpu_path_differs", Pair(Gpu(1), Gpu(0))),
            "box.toml declares between = [0, 1] with path = 'NV4'",
        ),
        (
            ("p2p_supported", Pair(Gpu(0), Gpu(2))),
            "box.toml declares between = [2, 0] with p2p = false",
        ),
        (
            ("p2p_write", Pair(Gpu(1), Gpu(0))),
            "box.toml declares between = [0, 1] with write_gbs = 45",
        ),
    ],
)
def test_a_basis_says_where_in_the_file(key: tuple[str, str], basis: str) -> None:
    assert words.text(facts(EVERYTHING)[key].basis) == basis


@each(
    "declared, key, count, basis",
    [
        (
            {"memory": DeclaredMemory(dimm=EVERYTHING.memory.dimm)},
            ("dimm_count", MEMORY),
            2,
            "box.toml lists the modules in 2 slots",
        ),
        (
            {"memory": DeclaredMemory(dimms=12)},
            ("dimm_count", MEMORY),
            12,
            "box.toml declares memory.dimms = 12",
        ),
        ({"gpus": 0}, ("gpu_count", MACHINE), 0, "box.toml declares 0 GPUs"),
        ({"gpus": 1}, ("gpu_count", MACHINE), 1, "box.toml declares 1 GPU"),
    ],
    told=["modules by their tables", "modules without tables", "no GPU", "one GPU"],
)
def test_so_many_must_be_shown(
    declared: dict[str, Any], key: tuple[str, str], count: int, basis: str
) -> None:
    limit = facts(Machine(schema=1, name="box", **declared))[key]
    assert (limit.low, limit.high, words.text(limit.basis)) == (count, count, basis)


def test_own_limits_are_stamped_as_overrides() -> None:
    origin = Message("override_in", {"file": "box.toml"})
    first, second = (row.limit() for row in EVERYTHING.limit)
    assert list(declaration.own_limits(EVERYTHING, "box.toml")) == [
        Override("cpu_temperature", origin, first, CPU, own=True),
        Override("cpu_gemm_f64", origin, second, None, own=True),
    ]
    assert words.message(origin) == "override in box.toml"


def test_a_limit_of_ones_own_on_copies_holds_for_the_copy_beside_the_patterns_too() -> None:
    rows = (DeclaredLimit("copy_own_d2d", "GB/s", "its twin", component=Gpu(1), low=2900),)
    own, pattern = declaration.own_limits(Machine(schema=1, name="box", limit=rows), "box.toml")
    assert (own.measurement, own.own) == ("copy_own_d2d", True)
    assert (pattern.measurement, pattern.own) == ("vram_copy", False)
    assert (pattern.limit, pattern.component) == (own.limit, Gpu(1))
    assert pattern.origin == own.origin


@pytest.mark.usefixtures("shares")
def test_a_limit_of_ones_own_on_products_holds_for_the_burn_too_unless_that_has_one() -> None:
    rows = (
        DeclaredLimit(
            "gemm_bf16", "TFLOP/s", "its twin gave 700", component=Gpu(1), low=600, warn_low=650
        ),
        DeclaredLimit("burn_bf16", "TFLOP/s", "as measured", component=Gpu(1), low=500),
        DeclaredLimit("gemm_f8", "TFLOP/s", "its twin", low=1000),
        DeclaredLimit("gemm_f8_ratio", "ratio", "its twin", low=0.8),
    )
    book = LimitBook(
        tuple(declaration.own_limits(Machine(schema=1, name="box", limit=rows), "box.toml"))
    )
    found = known(book.find("burn_bf16", Gpu(1)))
    assert (known(found.limit).low, found.own) == (500, True)
    assert book.find("burn_bf16", Gpu(0)) is None
    every = known(book.find("burn_f8", Gpu(0)))
    assert (known(every.limit).low, words.text(every.origin), every.own) == (
        980.0,
        "override in box.toml",
        False,
    )
    assert words.text(known(every.limit).basis) == (
        "as gemm_f8, where every result verified costs at most 2 %: 0.98 x 1000 TFLOP/s; its twin"
    )
    assert len(book.entries) == 6


def test_declared_channels_are_due_and_alike() -> None:
    found = list(declaration.channel_limits(EVERYTHING, "box.toml"))
    limits = {entry.measurement: entry.limit for entry in found}
    assert {
        name: (limit.low, limit.high, words.text(limit.basis))
        for name, limit in limits.items()
        if limit is not None
    } == {
        "memory_channels": (2, 2, "box.toml declares memory.channels = 2"),
        "memory_channels_unequal": (None, 0, "box.toml declares memory.channels = 2"),
    }
    assert list(declaration.channel_limits(Machine(schema=1, name="box"), "box.toml")) == []


@pytest.mark.usefixtures("shares")
def test_bandwidth_has_a_floor_where_rate_and_channels_are_known() -> None:
    found = list(declaration.bandwidth_limits(EVERYTHING, (4800, 5600), "box.toml"))
    assert [(entry.measurement, entry.limit.low if entry.limit else None) for entry in found] == [
        ("memory_copy", 38.4),
        ("memory_triad", 38.4),
    ]
    assert {words.text(entry.origin) for entry in found} == {"derived from the DIMMs and box.toml"}
    assert list(declaration.bandwidth_limits(EVERYTHING, (), "box.toml")) == []
    assert (
        list(declaration.bandwidth_limits(Machine(schema=1, name="box"), (4800,), "box.toml")) == []
    )


def test_precedence_machine_file_then_declared_then_derived_then_class_default() -> None:
    default = Override("memory_copy", "class default", unlimited="no rate known")
    derived = list(declaration.bandwidth_limits(EVERYTHING, (4800,), "box.toml"))
    declared = list(declaration.declared_limits(EVERYTHING, "box.toml"))
    own = [
        Override(
            "memory_copy", "override in box.toml", Limit("GB/s", "its twin", low=50.0), own=True
        )
    ]
    weak = Override(
        "cpu_cores", "override in box.toml", Limit("count", "two are dark", low=62), own=True
    )
    book = LimitBook((default,))

    for made, measurement, component, origin in (
        (book, "memory_copy", MEMORY, "class default"),
        (book.after(derived), "memory_copy", MEMORY, "derived from the DIMMs and box.toml"),
        (book.after([*own, *declared, *derived]), "memory_copy", MEMORY, "override in box.toml"),
        (book.after([weak, *own, *declared, *derived]), "cpu_cores", CPU, "override in box.toml"),
        (book.after([*own, *declared, *derived]), "cpu_cores", CPU, "declared in box.toml"),
    ):
        assert words.text(known(made.find(measurement, component)).origin) == origin


def test_a_disk_is_declared_with_what_it_must_have() -> None:
    told = [
        words.text(facts(EVERYTHING)["disk_count", Part("declared-disk", number)].basis)
        for number in ("1", "2")
    ]
    assert told == [
        "box.toml declares disk 1, model = 'Samsung SSD 990 PRO 2TB', serial = 'S6Z2NF0W', "
        "firmware = '4B2QJXD7'",
        "box.toml declares disk 2, model = 'Micron 7450'",
    ]
