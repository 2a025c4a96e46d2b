"""The declared machine as an inventory: from the machine file and the sheets alone."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from cases import each
from known import known

from acceptance.core import parts
from acceptance.core.limit import GIB
from acceptance.core.message import Listed
from acceptance.core.parts import Gpu, Part
from acceptance.expect import components, gpu_limits
from acceptance.expect.declared_inventory import Observation, declared_machine
from acceptance.expect.site_sheets import own_sheets
from acceptance.machine import network_card
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuCounters
from acceptance.machine.machine_file import Machine
from acceptance.machine.scratch_place import KEPT_BYTES

H200 = {"model": "NVIDIA H200", "pci_id": "10de:2335"}
BRIDGED = {"model": "NVIDIA GeForce RTX 3090 Ti"}
V100_BOARD = {"model": "Tesla V100-SXM2-32GB"}
DISK = {"model": "Samsung SSD 990 PRO 2TB", "size_gb": 2000}


def declared(profile: str = "accept", **table: object) -> Observation:
    machine = msgspec.convert({"schema": 1, "name": "box", **table}, Machine, dec_hook=parts.decode)
    return declared_machine(machine, own_sheets(), profile)


def codes(found: Observation) -> dict[str, object]:
    """What is not declared, with the parts or models that it is of."""
    return {
        one.code: next(
            (value.items for value in one.values.values() if isinstance(value, Listed)), None
        )
        for one in found.undeclared
    }


def peers(found: Observation) -> set[str | None]:
    return {pair.p2p_read for pair in found.inventory.nvml.pairs}


def links(found: Observation) -> list[tuple[int, int]]:
    """Active and listed NVLinks of each GPU."""
    return [(gpu.active_links, len(gpu.links)) for gpu in gpus(found.inventory)]


def test_a_file_that_declares_nothing_gives_a_machine_of_nothing() -> None:
    found = declared()
    seen = found.inventory
    assert (gpus(seen), seen.disks, seen.links, seen.nvml.devices) == ((), (), (), ())
    assert (seen.cpu.threads, seen.memory.total_bytes, seen.board.kernel) == (None, None, None)
    assert found.hidden == {"cpu", "memory"}
    assert (found.sensors, found.thermometers, found.scratches) == (frozenset(),) * 2 + ((),)
    assert list(codes(found)) == [
        "undeclared_gpus",
        "undeclared_processors",
        "undeclared_memory",
        "undeclared_modules",
        "undeclared_disks",
        "undeclared_scratch",
        "undeclared_network",
    ]
    assert "undeclared_gpus" not in codes(declared(gpus=0))


def test_gpus_are_those_of_their_sheet_in_the_declared_slots() -> None:
    found = declared(gpu=[{**H200, "count": 8, "link_gen": 4, "link_width": 8}])
    first, *others = gpus(found.inventory)
    assert len(others) == 7
    assert (first.name, first.model, first.device_id) == (Gpu(0), "NVIDIA H200", "10de:2335")
    assert (first.link_generation, first.link_width) == (4, 8)
    assert first.memory_bytes == 141 * GIB
    traits = known(first.traits)
    assert (traits.compute_capability, traits.power_limit_w, traits.ecc_enabled) == (
        "9.0",
        700.0,
        True,
    )
    assert traits.memory_thermometer
    assert not list(gpu_limits.gaps(found.inventory, (Gpu(0),), own_sheets().models))
    assert not codes(found).keys() & {"undeclared_slots", "undeclared_models", "undeclared_nvlinks"}
    alone = declared(gpu=[H200])
    assert codes(alone)["undeclared_slots"] == ("gpu0",)
    assert gpus(alone.inventory)[0].link_generation == 5  # the card's


def test_a_model_may_be_named_as_people_do() -> None:
    found = declared(gpu=[{"model": "4090"}, {"model": "H200", "pci_id": "10de:2335"}])
    assert [gpu.model for gpu in gpus(found.inventory)] == [
        "NVIDIA GeForce RTX 4090",
        "NVIDIA H200",
    ]
    other = declared(gpu=[{"model": "4090", "pci_id": "10de:2335"}, {"model": "V100"}])
    assert [gpu.traits for gpu in gpus(other.inventory)] == [None, None]  # no card, or several
    assert codes(other)["undeclared_sheets"] == ("4090", "V100")


def test_declared_addresses_stand_and_others_are_nowhere() -> None:
    found = declared(gpu=[{**H200, "address": "0000:65:00.0"}, H200])
    addresses = [gpu.pci_address for gpu in gpus(found.inventory)]
    assert addresses == ["0000:65:00.0", "ffff:01:00.0"]
    assert [device.pci_address for device in found.inventory.nvml.devices] == addresses


def test_a_gpu_of_no_known_model_has_no_facts_and_is_named() -> None:
    found = declared(gpus=2)
    assert codes(found)["undeclared_models"] == ("gpu0", "gpu1")
    assert [gpu.traits for gpu in gpus(found.inventory)] == [None, None]
    assert peers(found) == {None}
    strange = declared(gpu=[{"model": "Card of Tomorrow"}, {"pci_id": "10de:ffff"}])
    assert codes(strange)["undeclared_sheets"] == ("10de:ffff", "Card of Tomorrow")
    assert [gpu.device_id for gpu in gpus(strange.inventory)] == ["10de:????", "10de:ffff"]
    assert [gpu.memory_bytes for gpu in gpus(strange.inventory)] == [None, None]


@pytest.mark.parametrize(
    ("table", "expected", "peered", "named"),
    [
        # On a board with switches all links lead there, declared or not; alone they lead nowhere.
        ({"gpu": [{**H200, "count": 2}]}, [(18, 18)] * 2, {"ok"}, None),
        ({"gpu": [{**H200, "count": 2, "nvlink_links": 17}]}, [(17, 18)] * 2, {"ok"}, None),
        ({"gpu": [H200]}, [(0, 18)], set(), ("gpu0",)),
        ({"gpu": [{**H200, "nvlink_links": 18}]}, [(18, 18)], set(), None),
        # Cards that take a bridge have none unless it is declared.
        ({"gpu": [{**BRIDGED, "count": 2}]}, [(0, 4)] * 2, {"not-supported"}, ("gpu0", "gpu1")),
        ({"gpu": [{**BRIDGED, "count": 2, "nvlink_links": 4}]}, [(4, 4)] * 2, {"ok"}, None),
        (
            {
                "gpu": [{**BRIDGED, "count": 2}],
                "gpu_pair": [{"between": [0, 1], "path": "NV4"}],
            },
            [(4, 4)] * 2,
            {"ok"},
            None,
        ),
        # Of four, nothing says which two a bridge joins.
        (
            {"gpu": [{**BRIDGED, "count": 4, "nvlink_links": 4}]},
            [(4, 4)] * 4,
            {"not-supported"},
            None,
        ),
        # From card to card, as the board has them.
        ({"gpu": [{**V100_BOARD, "count": 2}]}, [(0, 6)] * 2, {None}, ("gpu0", "gpu1")),
        (
            {
                "gpu": [{**V100_BOARD, "count": 2, "nvlink_links": 6}],
                "gpu_pair": [{"between": [0, 1], "path": "NV2"}],
            },
            [(6, 6)] * 2,
            {"ok"},
            None,
        ),
        # A model of which no sheet is known, with links as declared.
        ({"gpu": [{"model": "X", "count": 2, "nvlink_links": 2}]}, [(2, 2)] * 2, {None}, None),
        # What is declared of a pair holds, whatever the sheet says.
        (
            {
                "gpu": [{"model": "NVIDIA GeForce RTX 4090", "count": 2}],
                "gpu_pair": [{"between": [0, 1], "path": "PHB", "p2p": True}],
            },
            [(0, 0)] * 2,
            {"ok"},
            None,
        ),
        (
            {"gpu": [{"model": "NVIDIA GeForce RTX 4090", "count": 2}]},
            [(0, 0)] * 2,
            {"not-supported"},
            None,
        ),
        ({"gpu": [H200, BRIDGED]}, [(18, 18), (0, 4)], {None}, ("gpu1",)),
    ],
)
def test_nvlinks_and_peer_access(
    table: dict[str, object],
    expected: list[tuple[int, int]],
    peered: set[str | None],
    named: tuple[str, ...] | None,
) -> None:
    found = declared(**table)
    assert (links(found), peers(found)) == (expected, peered)
    assert codes(found).get("undeclared_nvlinks") == named


def test_the_declared_path_of_a_pair_is_the_plans() -> None:
    found = declared(
        gpu=[{"model": "NVIDIA GeForce RTX 4090", "count": 2}],
        gpu_pair=[{"between": [0, 1], "path": "SYS"}],
    )
    assert {pair.path for pair in found.inventory.nvml.pairs} == {"SYS"}
    bridged = declared(gpu=[{**BRIDGED, "count": 2}], gpu_pair=[{"between": [0, 1], "path": "NV4"}])
    assert {pair.path for pair in bridged.inventory.nvml.pairs} == {None}


@pytest.mark.parametrize(
    ("model", "has", "lacks"),
    [
        ("NVIDIA H200", ("ecc_uncorrected", "remap_failed"), ("retired_single",)),
        ("Tesla T4", ("ecc_uncorrected", "retired_single"), ("remap_failed",)),
        ("NVIDIA GeForce RTX 4090", ("pcie_replays",), ("ecc_uncorrected", "retired_single")),
    ],
)
def test_a_card_has_the_counters_of_its_kind(
    model: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    (device,) = declared(gpu=[{"model": model}]).inventory.nvml.devices
    counters = device.counters
    assert isinstance(counters, GpuCounters)
    assert all(getattr(counters, name) == 0 for name in has)
    assert all(getattr(counters, name) is None for name in lacks)
    assert not any(dataclasses.astuple(counters))  # of a sound card, none has counted anything


def test_processors_are_numbered_as_the_kernel_does() -> None:
    found = declared(cpu={"sockets": 2, "cores": 4, "threads": 8})
    cpu = found.inventory.cpu
    assert [group.cores for group in cpu.core_groups] == [((0, 4), (1, 5), (2, 6), (3, 7))]
    assert [(one.name, one.cores) for one in cpu.socket_cores] == [
        ("socket0", ((0, 4), (1, 5))),
        ("socket1", ((2, 6), (3, 7))),
    ]
    assert found.sensors == {"cpu_temperature_c", "cpu_throttle_count"}
    assert found.hidden == {"memory"}
    assert not codes(found).keys() & {"undeclared_processors", "undeclared_sockets"}


@pytest.mark.parametrize(
    ("cpu", "cores", "sockets", "named"),
    [
        ({"cores": 4}, 4, 0, {"undeclared_sockets"}),
        ({"threads": 8}, 0, 0, {"undeclared_cores", "undeclared_sockets"}),
        ({"sockets": 3, "cores": 4}, 4, 0, set()),  # the file is wrong, which a run will say
        ({"sockets": 2}, 0, 0, {"undeclared_processors"}),
    ],
)
def test_processors_of_which_less_is_declared(
    cpu: dict[str, int], cores: int, sockets: int, named: set[str]
) -> None:
    found = declared(cpu=cpu)
    seen = found.inventory.cpu
    assert sum(len(group.cores) for group in seen.core_groups) == cores
    assert len(seen.socket_cores) == sockets
    kinds = {"undeclared_processors", "undeclared_cores", "undeclared_sockets"}
    assert codes(found).keys() & kinds == named


def test_memory_and_its_modules() -> None:
    modules = [{"slot": "A1", "size_gib": 32, "configured_mts": 5200}, {"slot": "B1"}]
    found = declared(memory={"total_gib": 64, "dimm": modules})
    memory = found.inventory.memory
    assert memory.free_bytes == memory.total_bytes == 64 * GIB
    assert memory.dimms is not None
    assert [(one.slot, one.size_bytes) for one in memory.dimms] == [("A1", 32 * GIB), ("B1", None)]
    assert found.hidden == {"cpu"}
    assert "undeclared_modules" not in codes(found)


def test_disks_are_what_their_sheets_say() -> None:
    table = [{**DISK, "count": 2}, {"model": "CT500MX500SSD4"}, {"model": "Nobody's"}]
    found = declared(disk=table)
    disks = known(found.inventory.disks)
    assert [(one.name, one.kind, one.transport) for one in disks] == [
        ("nvme0n1", "nvme", "nvme"),
        ("nvme1n1", "nvme", "nvme"),
        ("disk2", "ssd", "sata"),
        ("disk3", None, None),
    ]
    assert [one.size_bytes for one in disks] == [2000 * 10**9] * 2 + [None] * 2
    assert codes(found)["undeclared_disk_sheets"] == ("Nobody's",)
    assert found.thermometers == {Part("disk", "nvme0n1"), Part("disk", "nvme1n1")}
    rates = {name: rate for name, (rate, _) in found.disk_links.items()}
    assert rates == pytest.approx({"nvme0n1": 7.877, "nvme1n1": 7.877, "disk2": 0.6}, rel=1e-3)


@each("profile", ["accept", "nightly", "soak"])
def test_equal_disks_need_no_folder(profile: str) -> None:
    found = declared(profile, disk=[{**DISK, "count": 2}])
    assert found.scratches == ()
    assert len(found.inventory.disks or ()) == 2


def test_folders_lie_on_equal_disks_in_their_order() -> None:
    folders = [{"path": "/a"}, {"path": "/b", "keep": False}]
    table = {"disk": [{**DISK, "count": 2}], "scratch": folders}
    accept = declared(**table)
    assert [(one.path, str(one.component)) for one in accept.scratches] == [
        ("/a", "disk:nvme0n1"),
        ("/b", "disk:nvme1n1"),
    ]
    assert [bool(one.write_bytes) for one in accept.scratches] == [True, True]
    assert [one.sealed_bytes for one in accept.scratches] == [0, 0]
    nightly = declared("nightly", **table)  # after the accepting run has kept its file
    assert [(one.write_bytes, one.sealed_bytes) for one in nightly.scratches] == [
        (0, KEPT_BYTES),
        (0, 0),
    ]
    for other in (
        {"disk": [DISK], "scratch": folders},
        {"disk": [DISK, {"model": "Nobody's"}], "scratch": folders},
        {"scratch": folders},
    ):
        found = declared(**other)
        assert found.scratches == ()
        assert "undeclared_scratch_disks" in codes(found)


def test_ports_are_up_with_the_counters_of_their_kind() -> None:
    table = [{"name": "ibs0", "speed_mbps": 400000}, {"name": "mlx5_0/1"}, {"name": "ens7"}]
    found = declared(gpu=[H200], network=table)
    seen = found.inventory
    assert seen.links is not None
    ports = network_card.ports(seen.links)
    assert [(port.name, port.kind) for port in ports] == [
        ("ibs0", "infiniband"),
        ("mlx5_0/1", "infiniband"),
        ("ens7", "ethernet"),
    ]
    classes = components.resolve(None, seen, frozenset(), (Gpu(0),))
    net = {port.name: port.component for port in ports}
    assert classes["network-port-rated"] == (net["ibs0"],)
    assert classes["network-port-symbol-errors"] == (net["ibs0"], net["mlx5_0/1"])
    assert set(classes["network-port-errors"]) == set(net.values())
    assert classes["network-card-linked"] == tuple(net.values())
    assert classes["gpu-networked"] == (Gpu(0),)
    assert "undeclared_network" not in codes(found)


def test_the_system_is_as_declared() -> None:
    found = declared(system={"board": "B", "kernel": "6.1", "driver": "570.1"})
    board = found.inventory.board
    assert (board.name, board.kernel, board.nvidia_driver) == ("B", "6.1", "570.1")
    assert found.inventory.nvml.driver_version == "570.1"
