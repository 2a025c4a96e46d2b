from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

from cases import each
from gpu_machine import COUNTERS, NO_COUNTERS, TRAITS, answer, device, empty, link, machine, pairs
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.dtype import DTYPES
from acceptance.expect import components
from acceptance.machine import machine_file
from acceptance.machine.inventory import CoreGroup, Inventory, NvmlDevice, NvmlPair
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline

NOTHING: frozenset[str] = frozenset()
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


def declared(folder: Path, text: str) -> machine_file.Machine:
    folder.mkdir(exist_ok=True)
    file = folder / "machine.toml"
    file.write_text(f'schema = 1\nname = "box"\n{text}')
    return machine_file.read(file)


def test_a_machine_that_declares_nothing() -> None:
    found = components.resolve(None, shown(0x41, 0x01, more=True), EVERYTHING, ("gpu0", "gpu1"))
    assert found == {
        "machine": ("machine",),
        "system": ("system",),
        "cpu": ("cpu",),
        "memory": ("memory",),
        "core": ("core:0", "core:1", "core:2", "core:3"),
        "core-with-peers": ("core:0", "core:1", "core:2", "core:3"),
        "cpu-thermometer": ("cpu",),
        "cpu-throttle-counter": ("cpu",),
        "cpuburn": (),
        "disk": ("disk:nvme0n1",),
        "disk-nvme": ("disk:nvme0n1",),
        "dimm": (),
        "declared-disk": (),
        "declared-link": (),
        "gpu": ("gpu0", "gpu1"),
        "gpus": ("gpus",),
        "gpus-paired": ("gpus",),
        "gpu-pair": ("gpu0->gpu1", "gpu1->gpu0"),
        # NVML does not know them, so nothing that it tells is due.
        **dict.fromkeys((*components.COUNTERS, "gpu-with-peers", "gpu-with-link-peers"), ()),
        **dict.fromkeys(("gpu-peers", "gpus-peered"), ()),
        **dict.fromkeys(("gpu-nvlink", "gpu-nvlink-up", "gpu-memory-thermometer"), ()),
        # What format a GPU lacks is not known of one that nobody asked: all are due.
        **{f"gpu-{dtype}": ("gpu0", "gpu1") for dtype in DTYPES},
        **{f"gpu-{dtype}-with-peers": () for dtype in DTYPES},
    }
    assert not any(line.startswith("processor") for line in components.not_offered(found))


def test_what_is_declared_is_due(tmp_path: Path) -> None:
    text = """
        cpu = {cpuburn = "burnP6"}
        memory = {dimm = [{slot = "A1"}, {slot = "B 1"}]}
        disk = [{model = "x"}, {model = "y"}]
        network = [{name = "eth0"}]
    """
    found = components.resolve(declared(tmp_path, text), shown(), NOTHING, ())
    assert found["cpuburn"] == ("cpu",)
    assert found["dimm"] == ("dimm:A1", "dimm:B 1")
    assert found["declared-disk"] == ("declared-disk:1", "declared-disk:2")
    assert found["declared-link"] == ("net:eth0",)
    assert found["gpu"] == ()


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
    tmp_path: Path, text: str, seen: int, due: int
) -> None:
    machine = shown(*range(1, seen + 1))
    assert components.gpu_count(declared(tmp_path, text), machine) == due
    assert components.gpu_count(None, machine) == seen


def test_cores_are_held_against_their_own_kind() -> None:
    seen = shown()
    groups = (CoreGroup("performance", ((0, 1), (2, 3))), CoreGroup("efficiency", ((4,),)))
    found = components.resolve(
        None, replace(seen, cpu=replace(seen.cpu, core_groups=groups)), NOTHING, ()
    )
    assert found["core"] == ("core:0", "core:2", "core:4")
    assert found["core-with-peers"] == ("core:0", "core:2")


def test_what_a_machine_does_not_show_is_said() -> None:
    seen = shown()
    bare = replace(seen, cpu=replace(seen.cpu, core_groups=()))
    lines = components.not_offered(components.resolve(None, bare, NOTHING, ()))
    assert [line.split(":")[0] for line in lines] == [
        "processor temperature",
        "processor throttling",
        "single cores",
        "disk health",
    ]
    one = replace(seen, cpu=replace(seen.cpu, core_groups=(CoreGroup("all", ((0,),)),)))
    assert [
        line.split(":")[0]
        for line in components.not_offered(components.resolve(None, one, EVERYTHING, ()))
    ] == [
        "slow cores",
        "disk health",
    ]


# --- GPUs ---

THREE = ("gpu0", "gpu1", "gpu2")


def of(
    tmp_path: Path, *devices: NvmlDevice, found: tuple[NvmlPair, ...] = (), text: str = ""
) -> dict[str, tuple[str, ...]]:
    """The classes of a machine with three GPUs, of which NVML knows these."""
    seen = replace(empty(3), nvml=answer(devices, found))
    return components.resolve(declared(tmp_path, text), seen, EVERYTHING, THREE)


def test_gpus_of_one_model_are_held_against_each_other(tmp_path: Path) -> None:
    found = of(tmp_path, device(0), device(1, name="NVIDIA L40S"), device(2))
    assert found["gpu-with-peers"] == ("gpu0", "gpu2")
    lines = components.not_offered(found)
    assert (
        "gpu1: slow GPUs: a GPU is held against others of its model, and no other was seen" in lines
    )
    absent = components.not_offered(of(tmp_path / "absent", device(0), device(1)))
    assert (
        "gpu2: slow GPUs: a GPU is held against others of its model, and no other was seen"
        in absent
    )


def test_copies_are_held_against_gpus_on_equal_links() -> None:
    seen = machine(device(0), device(1), device(2), device(3, name="NVIDIA L40S"), found=())
    narrow = seen.pci[1].address
    riser = replace(
        seen,
        pci=tuple(
            replace(one, slot_max_link_width=4) if one.address == narrow else one
            for one in seen.pci
        ),
    )
    names = ("gpu0", "gpu1", "gpu2", "gpu3")
    found = components.resolve(None, riser, EVERYTHING, names)
    assert found["gpu-with-peers"] == ("gpu0", "gpu1", "gpu2")
    assert found["gpu-with-link-peers"] == ("gpu0", "gpu2")
    told = (
        "gpu1: slow copies: a copy is held against others of the model on such a link, and no "
        "other was seen"
    )
    assert told in components.not_offered(found)
    assert list(components.link_siblings(None, riser, names).values()) == [
        ("gpu0", "gpu2"),
        ("gpu1",),
        ("gpu3",),
    ]
    groups = components.siblings(None, riser, names)
    assert groups["gpu-with-link-peers"] == (("gpu0", "gpu2"), ("gpu1",), ("gpu3",))
    assert groups["gpu-with-peers"] == (("gpu0", "gpu1", "gpu2"), ("gpu3",))
    assert groups["gpu-bf16-with-peers"] == groups["gpu-with-peers"]
    assert components.siblings(None, riser, names[:1])["gpu-with-peers"] == (("gpu0",),)
    assert components.resolve(None, riser, EVERYTHING, names[:2])["gpu-with-link-peers"] == ()
    hidden = tuple(
        replace(one, max_link_width=None, slot_max_link_width=None, max_link_speed_gts=None)
        for one in seen.pci
    )
    untold = [device(n, traits=None) for n in range(4)]
    blind = replace(seen, pci=hidden, nvml=replace(seen.nvml, devices=tuple(untold)))
    assert components.link_siblings(None, blind, names) == {}


@each(
    "capability, lacking",
    [("7.0", {"tf32", "bf16", "f8", "i8"}), ("8.6", {"f8"}), ("9.0", set()), (None, set())],
)
def test_formats_that_a_gpu_has_itself(
    tmp_path: Path, capability: str | None, lacking: set[str]
) -> None:
    traits = replace(device(0).traits, compute_capability=capability)
    found = of(tmp_path, *(replace(device(number), traits=traits) for number in range(3)))
    for dtype in DTYPES:
        due = () if dtype in lacking else THREE
        assert found[f"gpu-{dtype}"] == found[f"gpu-{dtype}-with-peers"] == due


def test_one_gpu_alone() -> None:
    found = components.resolve(None, machine(device(0), found=()), EVERYTHING, ("gpu0",))
    assert found["gpu"] == ("gpu0",)
    assert found["gpus"] == ("gpus",)
    for name in ("gpu-pair", "gpus-paired", "gpu-with-peers", "gpu-peers", "gpus-peered"):
        assert found[name] == ()
    assert any(line.startswith("slow GPUs: ") for line in components.not_offered(found))


def test_no_gpu_at_all() -> None:
    found = components.resolve(None, shown(), EVERYTHING, ())
    assert not any(members for name, members in found.items() if name.startswith("gpu"))
    assert not any("GPU" in line for line in components.not_offered(found))


def test_only_the_gpus_that_are_tested() -> None:
    seen = machine(*map(device, range(3)), found=pairs(3))
    found = components.resolve(None, seen, EVERYTHING, ("gpu0", "gpu2"))
    members = {member for name in found if name.startswith("gpu") for member in found[name]}
    assert members == {"gpu0", "gpu2", "gpus", "gpu0->gpu2", "gpu2->gpu0"}


def test_a_gpu_that_is_missing_owes_its_presence_and_its_pairs() -> None:
    seen = machine(device(0), found=())
    found = components.resolve(None, seen, EVERYTHING, ("gpu0", "gpu1"))
    assert found["gpu"] == ("gpu0", "gpu1")
    assert found["gpu-pair"] == ("gpu0->gpu1", "gpu1->gpu0")
    assert found["gpu-ecc"] == ("gpu0",)


@each(
    "name, fields",
    [
        ("gpu-ecc", ("ecc_uncorrected",)),
        ("gpu-remap", ("remap_failed",)),
        ("gpu-retired", ("retired_single", "retired_double", "retired_pending")),
        ("gpu-replay", ("pcie_replays",)),
        ("gpu-nvlink-replay", ("nvlink_replays",)),
        ("gpu-nvlink-recovery", ("nvlink_recoveries",)),
        ("gpu-nvlink-crc", ("nvlink_crc_errors",)),
    ],
)
def test_a_counter_is_due_where_the_driver_shows_it(
    tmp_path: Path, name: str, fields: tuple[str, ...]
) -> None:
    healthy = {field: getattr(COUNTERS, field) for field in fields}  # 0 is an answer
    shown = replace(NO_COUNTERS, **healthy)
    part = replace(shown, **{fields[-1]: None})
    found = of(
        tmp_path, device(0, counters=shown), device(1, counters=part), device(2, counters=None)
    )
    assert {one: found[one] for one in components.COUNTERS} == {
        **dict.fromkeys(components.COUNTERS, ()),
        name: ("gpu0",),
    }


def test_counters_that_are_not_shown_are_told(tmp_path: Path) -> None:
    up = (link(0, to=1),)
    geforce = device(0, counters=NO_COUNTERS, links=up)
    older = device(
        1, counters=replace(COUNTERS, remap_failed=None, nvlink_crc_errors=None), links=up
    )
    lines = components.not_offered(of(tmp_path, geforce, older, device(2)))
    told = [line for line in lines if line.startswith("gpu")]
    assert [" ".join(line.split()[:4]).rstrip(":,") for line in told] == [
        "gpu0: memory errors: no",
        "gpu0: PCIe replays: the",
        "gpu0, gpu1: NVLink errors",
        "gpu0: remapped rows and",
    ]
    assert not [
        line
        for line in components.not_offered(of(tmp_path / "whole", *map(device, range(3))))
        if "gpu" in line
    ]


def test_nvlinks(tmp_path: Path) -> None:
    bridged, down, bare = (
        device(0, links=(link(0, to=1),)),
        device(1, links=(link(0, active=False),)),
        device(2),
    )
    found = of(tmp_path, bridged, down, bare)
    assert found["gpu-nvlink"] == ("gpu0", "gpu1")
    assert found["gpu-nvlink-up"] == ("gpu0",)
    declared_too = of(
        tmp_path / "declared", bridged, down, bare, text="gpu = [{count = 2}, {nvlink_links = 4}]"
    )
    assert declared_too["gpu-nvlink"] == THREE, (
        "a bridge that is declared and not seen at all is looked for"
    )
    assert declared_too["gpu-nvlink-up"] == ("gpu0",)


@each("told, due", [(True, ("gpu0",)), (False, ()), (None, ())])
def test_memory_thermometers(tmp_path: Path, told: bool | None, due: tuple[str, ...]) -> None:
    found = of(
        tmp_path, device(0, traits=replace(TRAITS, memory_thermometer=told)), device(1, traits=None)
    )
    assert found["gpu-memory-thermometer"] == due


@each(
    "pair, due",
    [
        (NvmlPair(0, 2, "PHB", "ok", "ok", None), ("gpu0->gpu2",)),
        (NvmlPair(0, 2, "PHB", "ok", "not-supported", None), ()),
        (NvmlPair(0, 2, "PHB", "disabled-by-regkey", "ok", None), ()),
        (NvmlPair(0, 2, "PHB", None, None, None), ()),
        (NvmlPair(5, 6, "PHB", "ok", "ok", None), ()),
    ],
)
def test_pairs_that_reach_each_other(tmp_path: Path, pair: NvmlPair, due: tuple[str, ...]) -> None:
    found = of(tmp_path, *map(device, range(3)), found=(pair,))
    assert (found["gpu-peers"], found["gpus-peered"]) == (due, ("gpus",) if due else ())
    assert len(found["gpu-pair"]) == 6


def test_pairs_go_by_the_numbers_of_nvml(tmp_path: Path) -> None:
    turned = (device(0, index=2), device(1), device(2, index=0))
    found = of(tmp_path, *turned, found=(NvmlPair(0, 1, "PHB", "ok", "ok", None),))
    assert found["gpu-peers"] == ("gpu2->gpu1",)
