from __future__ import annotations

import functools
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import gpu_machine
import msgspec
from cases import each
from gpu_machine import COUNTERS, NO_COUNTERS, TRAITS, answer, device, empty, link, machine, pairs
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.dtype import DTYPES
from acceptance.core.evidence import Scratch
from acceptance.core.limit import GIB
from acceptance.core.parts import (
    CPU,
    GPUS,
    MACHINE,
    MEMORY,
    SYSTEM,
    Component,
    Core,
    Gpu,
    Pair,
    Part,
    Socket,
)
from acceptance.expect import components
from acceptance.machine import gpu_health
from acceptance.machine.inventory import CoreGroup, Disk, Inventory, NvmlDevice, NvmlPair
from acceptance.machine.machine_file import DeclaredCollectives, Machine
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline
from acceptance.wording import words

NOTHING: frozenset[str] = frozenset()
NETWORK = (
    "gpu-networked",
    "network-card-linked",
    "network-port",
    "network-port-errors",
    "network-port-link-downs",
    "network-port-rated",
    "network-port-remote-errors",
    "network-port-symbol-errors",
    "network-port-with-peers",
)
EVERYTHING = frozenset({"cpu_temperature_c", "cpu_throttle_count", "load_1m"})


@functools.cache
def shown(*gpus: int, more: bool = False) -> Inventory:
    """A machine of four cores with GPUs on these buses; `more` adds a sound function and a disk."""
    with tempfile.TemporaryDirectory() as root:
        tree = Tree(Path(root))
        tree.cpus([(core, core + 4) for core in range(4)])
        tree.memory()
        for bus in gpus:
            tree.gpu(bus)
        if more:
            tree.gpu(gpus[-1], function=1, class_code="0x040300")
            tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
        programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
        return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


def not_offered(found: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(map(words.message, components.not_offered(found)))


def resolved(
    inventory: Inventory,
    *names: Gpu,
    machine: Machine | None = None,
    sensors: frozenset[str] = EVERYTHING,
    **more: Any,
) -> dict[str, Any]:
    """The classes of a machine on which these GPUs are tested."""
    return components.resolve(machine, inventory, sensors, names, **more)


# Of the tested filesystems: with a kept file, with one to make, to read, on a disk whose link is
# seen, on machines without and with GPUs.
SCRATCHES = (
    "-full",
    "-with-peers",
    "-read-with-peers",
    "-kept",
    "-keep",
    "-read",
    "-linked",
    "-host",
    "-gpu",
)


def declared(text: str) -> Machine:
    head = 'schema = 1\nname = "box"\n'
    return msgspec.convert(tomllib.loads(head + text), Machine)


OF_HEALTH = tuple(map(gpu_health.component_class, gpu_health.READINGS))


def test_a_machine_that_declares_nothing() -> None:
    found = components.resolve(None, shown(0x41, 0x01, more=True), EVERYTHING, (Gpu(0), Gpu(1)))
    assert found == {
        "machine": (MACHINE,),
        "system": (SYSTEM,),
        "cpu": (CPU,),
        "memory": (MEMORY,),
        **dict.fromkeys(components.counted(), ()),
        "system-mounts": (),
        "core": (Core(0), Core(1), Core(2), Core(3)),
        "core-with-peers": (Core(0), Core(1), Core(2), Core(3)),
        "socket": (Socket(0),),
        "socket-pair": (),
        "cpu-thermometer": (CPU,),
        "cpu-throttle-counter": (CPU,),
        "cpuburn": (),
        "disk": (Part("disk", "nvme0n1"),),
        "disk-nvme": (Part("disk", "nvme0n1"),),
        "disk-physical": (Part("disk", "nvme0n1"),),
        "disk-new": (),
        "disk-linked": (Part("disk", "nvme0n1"),),
        "disk-thermometer": (),
        **dict.fromkeys((f"disk-scratch{of}" for of in ("", *SCRATCHES)), ()),
        "dimm": (),
        "declared-disk": (),
        "declared-link": (),
        **dict.fromkeys(NETWORK, ()),
        "gpu": (Gpu(0), Gpu(1)),
        "gpu-expected": (Gpu(0), Gpu(1)),
        "gpus": (GPUS,),
        "gpus-paired": (GPUS,),
        "gpu-paired": (Gpu(0), Gpu(1)),
        "gpus-multicast": (),
        "gpu-multicast": (),
        "gpu-neo": (Gpu(0), Gpu(1)),
        "gpu-neo-with-peers": (),
        "gpu-pair": (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))),
        # NVML does not know them, so nothing that it tells is due.
        **dict.fromkeys(
            (
                *components.COUNTERS,
                *OF_HEALTH,
                "gpu-with-peers",
                "gpu-with-link-peers",
                "gpu-fan-with-peers",
            ),
            (),
        ),
        "gpu-pair-with-peers": (),
        **dict.fromkeys(("gpu-peers", "gpus-peered"), ()),
        **dict.fromkeys(("gpu-nvlink", "gpu-nvlink-up", "gpu-memory-thermometer"), ()),
        # What format a GPU lacks is not known of one that nobody asked: all are due.
        **{f"gpu-{dtype}": (Gpu(0), Gpu(1)) for dtype in DTYPES},
        **{f"gpu-{dtype}-with-peers": () for dtype in DTYPES},
    }
    assert not any(line.startswith("processor") for line in not_offered(found))


def scratch(name: str, **changed: Any) -> Scratch:
    """A filesystem on a disk, which the run may write to."""
    values: dict[str, Any] = {
        "path": "/data",
        "component": Part("disk", name),
        "mount": "/data",
        "kind": "ext4",
        "source": f"/dev/{name}",
        "disks": (name,),
        "layers": (),
        "free_bytes": 9,
        "write_bytes": 5,
        "kept_bytes": 0,
        "keep": True,
        "sealed_bytes": 0,
    }
    return Scratch(**values | changed)


NIGHT: dict[str, Any] = {"write_bytes": 0}
KEPT: dict[str, Any] = {"sealed_bytes": 3}


@each(
    "scratches, gpus, due",
    [
        ([], (), {}),
        ([scratch("nvme0n1")], (), {"": "nvme0n1", "-read": "nvme0n1", "-linked": "nvme0n1"}),
        # A disk of which the inventory knows no link, an array, a disk that is not there.
        ([scratch("md0")], (), {"": "md0", "-read": "md0"}),
        ([scratch("nvme0n1", **NIGHT)], (), {}),
        (
            [scratch("nvme0n1", **NIGHT, **KEPT)],
            (),
            dict.fromkeys(("-kept", "-read", "-linked"), "nvme0n1"),
        ),
        (
            [scratch("md0", kept_bytes=1, **KEPT), scratch("md1", **NIGHT, **KEPT)],
            (),
            {"": "md0", "-keep": "md0", "-kept": "md0 md1", "-read": "md0 md1"},
        ),
        ([scratch("md0"), scratch("md1")], (Gpu(0),), {"": "md0 md1", "-read": "md0 md1"}),
    ],
)
def test_filesystems_are_due_by_what_the_run_does_there(
    scratches: list[Scratch], gpus: tuple[Gpu, ...], due: dict[str, str]
) -> None:
    found = resolved(shown(0x41, more=True), *gpus, scratches=scratches)
    classes = {
        name.removeprefix("disk-scratch"): " ".join(one.name for one in members)
        for name, members in found.items()
        if name.startswith("disk-scratch")
    }
    written = {"-gpu" if gpus else "-host": due[""]} if "" in due else {}
    assert {name: one for name, one in classes.items() if one} == {**due, **written}
    assert classes.keys() == {"", *SCRATCHES}


def test_of_some_profile_is_all_that_is_measured_on_filesystems() -> None:
    seen = shown(0x41, more=True)
    places = [scratch("nvme0n1", **NIGHT), scratch("md0", **NIGHT, **KEPT)]
    found = resolved(seen, Gpu(0), scratches=places)
    both = tuple(one.component for one in places)
    due = {f"disk-scratch{of}": both for of in ("", *SCRATCHES)}
    due |= {"disk-scratch-linked": both[:1], "disk-scratch-host": ()}
    due |= {"disk-scratch-with-peers": (), "disk-scratch-read-with-peers": ()}
    assert components.any_profile(found, seen, places) == {**found, **due}


def cored(*groups: CoreGroup, **more: Any) -> Inventory:
    """A machine with these groups of cores."""
    seen = shown()
    return replace(seen, cpu=replace(seen.cpu, core_groups=groups, **more))


def test_each_socket_reads_its_own_memory_and_that_of_each_other() -> None:
    groups = tuple(CoreGroup(f"socket{number}", ((number,),)) for number in range(3))
    found = resolved(cored(socket_cores=groups))
    three = (Socket(0), Socket(1), Socket(2))
    assert (found["socket"], found["socket-pair"]) == (
        three,
        tuple(Pair(a, b) for a, b in permutations(three, 2)),
    )


def test_what_is_declared_is_due() -> None:
    text = """
        cpu = {cpuburn = "burnP6"}
        memory = {dimm = [{slot = "A1"}, {slot = "B 1"}]}
        disk = [{model = "x"}, {model = "y"}]
        network = [{name = "eth0"}]
    """
    found = resolved(shown(), machine=declared(text))
    expected = {
        "cpuburn": (CPU,),
        "dimm": (Part("dimm", "A1"), Part("dimm", "B 1")),
        "declared-disk": (Part("declared-disk", "1"), Part("declared-disk", "2")),
        "declared-link": (Part("net", "eth0"),),
        "gpu": (),
    }
    assert expected.items() <= found.items()


@each(
    "text, seen, due",
    [
        ("", 0, 0),
        ("", 2, 2),
        ("gpus = 0", 0, 0),
        ("gpus = 0", 1, 1),  # one too many is looked at as well
        ("gpus = 3", 2, 3),
        ("gpus = 1", 2, 2),
        ("gpu = [{count = 4}]", 2, 4),
    ],
)
def test_gpus_are_those_seen_or_those_declared_whichever_is_more(
    text: str, seen: int, due: int
) -> None:
    machine = shown(*range(1, seen + 1))
    assert components.gpu_count(declared(text), machine) == due
    assert components.gpu_count(None, machine) == seen


def test_cores_are_held_against_their_own_kind() -> None:
    found = resolved(
        cored(CoreGroup("performance", ((0, 1), (2, 3))), CoreGroup("efficiency", ((4,),)))
    )
    assert found["core"] == (Core(0), Core(2), Core(4))
    assert found["core-with-peers"] == (Core(0), Core(2))


def test_what_a_machine_does_not_show_is_said() -> None:
    def left_out(seen: Inventory, sensors: frozenset[str]) -> list[str]:
        return [one.partition(":")[0] for one in not_offered(resolved(seen, sensors=sensors))]

    always = ["disk health", "network cards", "errors that the kernel counts by EDAC"]
    bare = ["processor temperature", "processor throttling", "single cores"]
    assert left_out(cored(), NOTHING) == [*bare, *always]
    assert left_out(cored(CoreGroup("all", ((0,),))), EVERYTHING) == ["slow cores", *always]
    counters = {"memory-counted-edac": {"memory": {"mc0/ue_count": 0}}}
    counting = replace(shown(), counters=counters)
    assert resolved(counting)["memory-counted-edac"] == (MEMORY,)
    assert left_out(counting, EVERYTHING) == always[:2]


# --- GPUs ---

THREE = (Gpu(0), Gpu(1), Gpu(2))


def of(
    *devices: NvmlDevice, found: tuple[NvmlPair, ...] = (), text: str = ""
) -> dict[str, tuple[str, ...]]:
    """The classes of a machine with three GPUs, of which NVML knows these."""
    seen = replace(empty(3), nvml=answer(devices, found))
    return resolved(seen, *THREE, machine=declared(text))


@each(
    "devices, equal, alone",
    [
        ((device(0), device(1, name="NVIDIA L40S"), device(2)), (Gpu(0), Gpu(2)), "gpu1"),
        ((device(0), device(1)), (Gpu(0), Gpu(1)), "gpu2"),
    ],
)
def test_gpus_of_one_model_are_held_against_each_other(
    devices: tuple[NvmlDevice, ...], equal: tuple[Gpu, ...], alone: str
) -> None:
    found = of(*devices)
    assert found["gpu-with-peers"] == equal
    assert any(line.startswith(f"{alone}: slow GPUs: ") for line in not_offered(found))


def test_copies_are_held_against_gpus_on_equal_links() -> None:
    seen = machine(device(0), device(1), device(2), device(3, name="NVIDIA L40S"), found=())
    first, second, *others = seen.pci
    riser = replace(seen, pci=(first, replace(second, slot_max_link_width=4), *others))
    names = (Gpu(0), Gpu(1), Gpu(2), Gpu(3))
    found = resolved(riser, *names)
    assert found["gpu-with-peers"] == (Gpu(0), Gpu(1), Gpu(2))
    assert found["gpu-with-link-peers"] == (Gpu(0), Gpu(2))
    assert any(line.startswith("gpu1: slow copies: ") for line in not_offered(found))
    groups = components.siblings(None, riser, names)
    assert groups["gpu-with-link-peers"] == ((Gpu(0), Gpu(2)), (Gpu(1),), (Gpu(3),))
    assert groups["gpu-with-peers"] == ((Gpu(0), Gpu(1), Gpu(2)), (Gpu(3),))
    assert groups["gpu-bf16-with-peers"] == groups["gpu-with-peers"]
    assert components.siblings(None, riser, names[:1])["gpu-with-peers"] == ((Gpu(0),),)
    assert resolved(riser, *names[:2])["gpu-with-link-peers"] == ()
    nothing = {"max_link_width": None, "slot_max_link_width": None, "max_link_speed_gts": None}
    untold = tuple(device(n, traits=None) for n in range(4))
    hidden = tuple(replace(one, **nothing) for one in seen.pci)
    blind = replace(seen, pci=hidden, nvml=replace(seen.nvml, devices=untold))
    assert components.link_siblings(None, blind, names) == {}


@each(
    "capability, lacking",
    [("7.0", {"tf32", "bf16", "f8", "i8"}), ("8.6", {"f8"}), ("9.0", set()), (None, set())],
)
def test_formats_that_a_gpu_has_itself(capability: str | None, lacking: set[str]) -> None:
    traits = replace(TRAITS, compute_capability=capability)
    found = of(*(device(number, traits=traits) for number in range(3)))
    for dtype in DTYPES:
        due = () if dtype in lacking else THREE
        assert found[f"gpu-{dtype}"] == found[f"gpu-{dtype}-with-peers"] == due


def test_one_gpu_alone() -> None:
    """And none at all."""
    found = resolved(machine(device(0), found=()), Gpu(0))
    assert (found["gpu"], found["gpus"]) == ((Gpu(0),), (GPUS,))
    two = {"gpu-pair", "gpus-paired", "gpu-with-peers", "gpu-peers", "gpus-peered"}
    assert {found[name] for name in {*two, "gpu-paired", "gpu-pair-with-peers"}} == {()}
    (line,) = [line for line in not_offered(found) if line.startswith("slow GPUs: ")]
    assert line.endswith("paths between GPUs and parallel training: they need two")
    none = resolved(shown())
    assert not any(members for name, members in none.items() if name.startswith("gpu"))
    assert not any("GPU" in line for line in not_offered(none))


def test_paths_are_equal_between_equal_cards_that_are_joined_in_one_way() -> None:
    every = [Pair(Gpu(a), Gpu(b)) for a, b in permutations(range(3), 2)]

    def groups(*devices: NvmlDevice, **more: Any) -> tuple[tuple[Component, ...], ...]:
        return components.pair_siblings(None, machine(*devices, **more), THREE)

    assert groups(*map(device, range(3))) == (tuple(every),)
    near = (replace(pairs(3)[0], path="PIX"), *pairs(3)[1:])
    assert groups(*map(device, range(3)), found=near) == (tuple(every[1:]),)
    first, second = groups(device(0), device(1), device(2, name="another card"))
    assert first == (every[0], every[2])
    assert set(second) == set(every) - set(first)
    assert groups(device(0), device(1), found=()) == ()


@each(
    "names, linked, said",
    [
        ((Gpu(0),), True, ()),
        ((Gpu(0), Gpu(1)), False, ("network",)),
        ((Gpu(0), Gpu(1)), True, ("network", "NVLink multicast")),
    ],
)
def test_collectives_are_not_tested_over_a_network_nor_by_multicast(
    names: tuple[Gpu, ...], linked: bool, said: tuple[str, ...]
) -> None:
    links = (link(0, to=1, active=linked),)
    seen = machine(device(0, links=links), device(1, links=links))
    told = [one for one in not_offered(resolved(seen, *names)) if one.startswith("collective op")]
    assert [word for word in ("network", "NVLink multicast") if word in " ".join(told)] == [*said]
    assert len(told) == len(said)


@each("count, asked, due", [(3, True, True), (2, True, False), (3, False, False)])
def test_multicast_is_due_on_three_gpus_where_the_machine_file_asks(
    count: int, asked: bool, due: bool
) -> None:
    seen = machine(*(device(index, links=(link(0, to=1),)) for index in range(count)))
    file = Machine(schema=1, name="m", collectives=DeclaredCollectives(multicast=asked))
    names = tuple(map(Gpu, range(count)))
    found = resolved(seen, *names, machine=file)
    expected = ((GPUS,), names) if due else ((), ())
    assert (found["gpus-multicast"], found["gpu-multicast"]) == expected
    assert any("NVLink multicast" in line for line in not_offered(found)) != due


def test_only_the_gpus_that_are_tested() -> None:
    """One that is missing owes its presence and its pairs."""
    found = resolved(machine(*map(device, range(3)), found=pairs(3)), Gpu(0), Gpu(2))
    members = {member for name in found if name.startswith("gpu") for member in found[name]}
    assert members == {Gpu(0), Gpu(2), GPUS, Pair(Gpu(0), Gpu(2)), Pair(Gpu(2), Gpu(0))}
    less = resolved(machine(device(0), found=()), Gpu(0), Gpu(1))
    assert (less["gpu"], less["gpu-ecc"]) == ((Gpu(0), Gpu(1)), (Gpu(0),))
    assert less["gpu-pair"] == (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)))


@each(
    "name, fields",
    [
        ("gpu-ecc", ("ecc_uncorrected",)),
        ("gpu-remap", ("remap_failed",)),
        ("gpu-retired", ("retired_single", "retired_double", "retired_pending")),
        ("gpu-replay", ("pcie_replays",)),
        ("gpu-ecc-life", ("ecc_uncorrected_total",)),
        ("gpu-nvlink-replay", ("nvlink_replays",)),
        ("gpu-nvlink-recovery", ("nvlink_recoveries",)),
        ("gpu-nvlink-crc", ("nvlink_crc_errors",)),
    ],
)
def test_a_counter_is_due_where_the_driver_shows_it(name: str, fields: tuple[str, ...]) -> None:
    healthy = {field: getattr(COUNTERS, field) for field in fields}  # 0 is an answer
    whole = replace(NO_COUNTERS, **healthy)
    part = replace(whole, **{fields[-1]: None})
    found = of(*(device(n, counters=counters) for n, counters in enumerate((whole, part, None))))
    due = {**dict.fromkeys(components.COUNTERS, ()), name: (Gpu(0),)}
    assert {one: found[one] for one in components.COUNTERS} == due


def test_counters_that_are_not_shown_are_told() -> None:
    up = (link(0, to=1),)
    less = replace(COUNTERS, remap_failed=None, nvlink_crc_errors=None)
    geforce, older = device(0, counters=NO_COUNTERS, links=up), device(1, counters=less, links=up)
    told = [line for line in not_offered(of(geforce, older, device(2))) if line.startswith("gpu")]
    assert [" ".join(line.split()[:4]).rstrip(":,") for line in told] == [
        "gpu0: memory errors: no",
        "gpu0: PCIe replays: the",
        "gpu0, gpu1: NVLink errors",
        "gpu0: remapped rows and",
    ]
    assert not [line for line in not_offered(of(*map(device, range(3)))) if "gpu" in line]


def test_nvlinks() -> None:
    cards = (
        device(0, links=(link(0, to=1),)),
        device(1, links=(link(0, active=False),)),
        device(2),
    )
    seen, asked = of(*cards), of(*cards, text="gpu = [{count = 2}, {nvlink_links = 4}]")
    # a bridge that is declared and not seen at all is looked for
    assert [one["gpu-nvlink"] for one in (seen, asked)] == [(Gpu(0), Gpu(1)), THREE]
    assert {one["gpu-nvlink-up"] for one in (seen, asked)} == {(Gpu(0),)}


@each("told, due", [(True, (Gpu(0),)), (False, ()), (None, ())])
def test_memory_thermometers(told: bool | None, due: tuple[str, ...]) -> None:
    found = of(device(0, traits=replace(TRAITS, memory_thermometer=told)), device(1, traits=None))
    assert found["gpu-memory-thermometer"] == due


@each(
    "pair, due",
    [
        (NvmlPair(0, 2, "PHB", "ok", "ok", None), (Pair(Gpu(0), Gpu(2)),)),
        (NvmlPair(0, 2, "PHB", "ok", "not-supported", None), ()),
        (NvmlPair(0, 2, "PHB", "disabled-by-regkey", "ok", None), ()),
        (NvmlPair(0, 2, "PHB", None, None, None), ()),
        (NvmlPair(5, 6, "PHB", "ok", "ok", None), ()),
    ],
)
def test_pairs_that_reach_each_other(pair: NvmlPair, due: tuple[str, ...]) -> None:
    found = of(*map(device, range(3)), found=(pair,))
    assert (found["gpu-peers"], found["gpus-peered"]) == (due, (GPUS,) if due else ())
    assert len(found["gpu-pair"]) == 6


def test_pairs_go_by_the_numbers_of_nvml() -> None:
    turned = (device(0, index=2), device(1), device(2, index=0))
    found = of(*turned, found=(NvmlPair(0, 1, "PHB", "ok", "ok", None),))
    assert found["gpu-peers"] == (Pair(Gpu(2), Gpu(1)),)


DISK_1, DISK_2, DISK_3 = (Part("disk", f"nvme{n}n1") for n in range(3))
MODEL = Disk("nvme0n1", "MAKER 980", "S0", 10**12, "nvme", "nvme", None)


def inventory(*changes: dict[str, Any]) -> Inventory:
    """A machine with disks of one model, but for what changes."""
    disks = tuple(
        replace(MODEL, **{"name": f"nvme{n}n1", "serial": f"S{n}", **one})
        for n, one in enumerate(changes)
    )
    return replace(gpu_machine.machine(), disks=disks)


def scratch_on(number: int, **changes: Any) -> Scratch:
    return scratch(f"nvme{number}n1", **{"write_bytes": 4 * GIB, **changes})


def equal(
    seen: Inventory, *scratches: Scratch
) -> tuple[tuple[tuple[Component, ...], ...], tuple[tuple[Component, ...], ...]]:
    """The groups that are written to, and those that are read."""
    groups, found = (
        components.siblings(None, seen, (), scratches),
        resolved(seen, scratches=scratches),
    )
    for name in ("disk-scratch-with-peers", "disk-scratch-read-with-peers"):
        assert set(found[name]) == {one for group in groups[name] for one in group}
    return groups["disk-scratch-with-peers"], groups["disk-scratch-read-with-peers"]


def test_equal_disks_are_held_against_each_other() -> None:
    three = inventory({}, {}, {"model": "OTHER"})
    pair = ((DISK_1, DISK_2),)
    assert equal(three, scratch_on(0), scratch_on(1), scratch_on(2)) == (pair, pair)
    assert equal(three, scratch_on(0), scratch_on(2)) == ((), ())
    whole = inventory({}, {}, {})
    all_three = ((DISK_1, DISK_2, DISK_3),)
    assert equal(whole, scratch_on(0), scratch_on(1), scratch_on(2)) == (all_three, all_three)


@each(
    "disk, place",
    [
        ({"size_bytes": 2 * 10**12}, {}),
        ({"size_bytes": None}, {}),
        ({"model": None}, {}),
        ({"kind": "virtual"}, {}),
        ({"name": "sda"}, {}),
        ({}, {"layers": ("crypt",)}),
        ({}, {"kind": "btrfs"}),
        ({}, {"disks": ("nvme1n1", "nvme2n1")}),
        ({}, {"disks": ()}),
        ({}, {"write_bytes": 0}),
    ],
)
def test_unequal_disks_are_not(disk: dict[str, Any], place: dict[str, Any]) -> None:
    assert equal(inventory({}, disk), scratch_on(0), scratch_on(1, **place)) == ((), ())


def test_files_that_earlier_runs_kept_are_read_and_not_written() -> None:
    kept = {"write_bytes": 0, "sealed_bytes": GIB}
    seen = inventory({}, {})
    assert equal(seen, scratch_on(0, **kept), scratch_on(1, **kept)) == ((), ((DISK_1, DISK_2),))
    assert equal(seen, scratch_on(0), scratch_on(1, **kept)) == ((), ())


@each(
    "write_gib, kept_gib, due", [(8, 1, ()), (12, 1, ()), (13, 1, (DISK_1,)), (200, 0, (DISK_1,))]
)
def test_what_a_soak_may_write_beyond_fills_a_cache(
    write_gib: int, kept_gib: int, due: tuple[Component, ...]
) -> None:
    place = scratch_on(0, write_bytes=write_gib * GIB, kept_bytes=kept_gib * GIB)
    assert resolved(inventory({}), scratches=[place])["disk-scratch-full"] == due


def test_the_disks_that_show_a_threshold_of_their_own() -> None:
    found = resolved(inventory({}, {}), thermometers=[DISK_2, Part("disk", "sda")])
    assert found["disk-thermometer"] == (DISK_2,)
