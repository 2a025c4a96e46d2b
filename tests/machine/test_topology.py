from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from fake_nvml import FakeNvml
from gpu_machine import TRAITS, address, device, machine
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.parts import GPUS, Gpu
from acceptance.machine import topology
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import (
    Inventory,
    NvLink,
    NvmlAnswer,
    NvmlDevice,
    NvmlPair,
    PciPlace,
)
from acceptance.machine.topology import Topology, host_link_groups, host_turns
from acceptance.observe import gpu_traits, pci
from acceptance.observe.inventory import observe

FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"


def link(
    number: int, *, kind: str = "gpu", address: str | None = None, active: bool = True
) -> NvLink:
    return NvLink(number, active, "4.0", 25.0, address, kind if active else None, None, None, None)


def card_of(
    index: int, address: str | None, links: tuple[NvLink, ...] = (), **traits: Any
) -> NvmlDevice:
    found = dataclasses.replace(gpu_traits.read(FakeNvml(), 0), **traits)
    return NvmlDevice(
        index, f"GPU-{index}", "RTX", address, None, None, 1, None, None, found, None, links
    )


def pairs(path: str | None = "PHB") -> tuple[NvmlPair, ...]:
    return tuple(NvmlPair(a, b, path, None, None, None) for a, b in ((0, 1), (1, 0)))


def card(tree: Tree) -> None:
    """The network card that `nic` makes, as it stands on the bus."""
    tree.link(
        "sys/bus/pci/devices/0000:05:00.0", "sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0"
    )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.cpus([[0], [1]])
    tree.memory()
    tree.gpu(1)
    tree.gpu(2)
    return tree


def look(
    tree: Tree, devices: tuple[NvmlDevice, ...], found: tuple[NvmlPair, ...]
) -> tuple[Inventory, Topology]:
    answer = NvmlAnswer("570", "12.8", devices, None, None, found)
    programs = Programs(
        nvml=completed(msgspec.json.encode(answer).decode()), dmidecode=completed(*NO_DMI)
    )
    inventory = observe(tree.root, run=programs)
    return inventory, topology.build(
        inventory, pci.places(tree.root, topology.addresses(inventory))
    )


def test_two_gpus_and_a_card(tree: Tree) -> None:
    tree.nic("eth0")
    tree.nic("eth1", bus=7, driver="virtio_net")
    card(tree)
    tree.nic("wlan0", bus=6)
    tree.write("sys/devices/pci0000:00/0000:00:1c.0/0000:06:00.0/net/wlan0/wireless/x", "")
    tree.files("sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0", numa_node=0, local_cpulist="0-1")
    devices = (card_of(0, FIRST, numa_node=0, cpu_affinity=(0, 1, 5)), card_of(1, SECOND))
    _, made = look(tree, devices, pairs())
    assert made.names == ("gpu0", "gpu1", "eth0")
    assert (made.numa_nodes, made.cpus) == (
        {"gpu0": 0, "eth0": 0},
        {"gpu0": "0-1,5", "eth0": "0-1"},
    )
    assert made.text() == (
        "      gpu0  gpu1  eth0  CPUs   NUMA node\n"
        "gpu0  X     PHB   PHB   0-1,5  0\n"
        "gpu1  PHB   X     PHB   -      -\n"
        "eth0  PHB   PHB   X     0-1    0\n"
        "\n"
        "X    itself\n"
        "PHB  a PCIe host bridge, which is in the CPU\n"
    )


def test_a_card_of_two_names_is_one_card(tree: Tree) -> None:
    tree.nic("ib0", type=32)
    card(tree)
    device = "sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0/infiniband/mlx5_0"
    tree.files(
        f"{device}/ports/1", link_layer="InfiniBand", state="4: ACTIVE", rate="400 Gb/sec (4X NDR)"
    )
    tree.link(f"{device}/device", "sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0")
    tree.link("sys/class/infiniband/mlx5_0", device)
    inventory, made = look(tree, (), ())
    assert topology.cards(inventory) == {"mlx5_0/1": "0000:05:00.0"}
    assert made.cells["gpu0", "mlx5_0/1"] == "PHB"


def test_bridged_gpus(tree: Tree) -> None:
    first = tuple(link(number, address=SECOND) for number in range(4))
    second = (*(link(number, address=FIRST) for number in range(3)), link(3, active=False))
    _, made = look(tree, (card_of(0, FIRST, first), card_of(1, SECOND, second)), pairs())
    assert (made.cells["gpu0", "gpu1"], made.cells["gpu1", "gpu0"]) == ("NV4", "NV3")
    assert "NV#  that many NVLinks\n" in made.text()


def test_gpus_on_switches(tree: Tree) -> None:
    whole = tuple(link(number, kind="switch") for number in range(18))
    devices = (card_of(0, FIRST, whole), card_of(1, SECOND, (*whole[:17], link(17, active=False))))
    _, made = look(tree, devices, pairs())
    assert (made.cells["gpu0", "gpu1"], made.cells["gpu1", "gpu0"]) == ("NV17", "NV17")


def test_links_that_lead_elsewhere_are_not_counted(tree: Tree) -> None:
    elsewhere = (link(0, address="0000:03:00.0"), link(1, kind="unknown"), link(2, kind="switch"))
    _, made = look(tree, (card_of(0, FIRST, elsewhere), card_of(1, SECOND)), pairs("SYS"))
    assert made.cells["gpu0", "gpu1"] == "SYS"


def test_without_nvml_the_bus_tells(tree: Tree) -> None:
    _, made = look(tree, (), ())
    assert made.cells["gpu0", "gpu1"] == "PHB"
    assert made.cpus == {}


def test_what_nvml_does_not_tell_the_bus_does(tree: Tree) -> None:
    lost = dataclasses.replace(card_of(1, SECOND), traits=None)
    _, made = look(
        tree, (card_of(0, FIRST), lost), (*pairs(None), NvmlPair(0, 2, "SYS", None, None, None))
    )
    assert made.cells["gpu0", "gpu1"] == "PHB"


def test_what_nobody_tells_is_not_known(tree: Tree) -> None:
    inventory, _ = look(tree, (card_of(0, FIRST), card_of(1, SECOND)), pairs(None))
    made = topology.build(inventory, {})
    assert made.cells == {("gpu0", "gpu0"): "X", ("gpu1", "gpu1"): "X"}
    assert made.text().startswith("      gpu0  gpu1  CPUs  NUMA node\ngpu0  X     -     -     -\n")
    assert "-  not known\n" in made.text()


def test_a_machine_with_nothing_to_show() -> None:
    assert Topology((), {}, {}, {}).text() == ""


@each("numbers, text", [((), ""), ((3,), "3"), ((0, 1, 2, 5, 7, 8), "0-2,5,7-8")])
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert topology.ranges(numbers) == text


def test_a_bridge_above_one_gpu_is_of_that_gpu_and_one_above_several_of_all(tree: Tree) -> None:
    seen, _ = look(tree, (), ())
    root, ports = "0000:00:01.0", ("0000:10:00.0", "0000:10:01.0")
    places = {
        address: PciPlace(address, "pci0000:00", (root, port), None, None)
        for address, port in zip((FIRST, SECOND), ports, strict=True)
    }
    seen = dataclasses.replace(seen, places=places)
    assert topology.gpu_functions(seen) == {
        root: GPUS,
        ports[0]: Gpu(0),
        FIRST: Gpu(0),
        ports[1]: Gpu(1),
        SECOND: Gpu(1),
    }
    assert set(topology.gpu_functions(dataclasses.replace(seen, places={}))) == {FIRST, SECOND}


Nodes = Sequence[int | None]


def seen(kernel: Nodes, nvml: Nodes) -> Inventory:
    """A machine whose GPUs are on these nodes, as the kernel says and as NVML does."""
    found = machine(
        *(device(index, traits=replace(TRAITS, numa_node=node)) for index, node in enumerate(nvml))
    )
    places = {
        address(index): PciPlace(address(index), "pci0000:00", (), node, None)
        for index, node in enumerate(kernel)
    }
    return replace(found, places=places)


@pytest.mark.parametrize(
    ("kernel", "nvml", "groups"),
    [
        ((0, 0, 1, 1), (0, 0, 1, 1), [[0, 1], [2, 3]]),
        ((0, 1, 0, 1), (None,) * 4, [[0, 2], [1, 3]]),
        ((None,) * 3, (1, 0, 0), [[0], [1, 2]]),  # in a VM the kernel may say -1, and NVML a node
        ((0, None, 1), (None,) * 3, [[0, 1, 2]]),  # it may share the way of either
        ((None, None), (None, None), [[0, 1]]),
        ((3,), (None,), [[0]]),
        ((), (), []),
    ],
)
def test_gpus_of_one_node_share_the_way_to_the_host(
    kernel: Nodes, nvml: Nodes, groups: list[list[int]]
) -> None:
    found = seen(kernel, nvml)
    due = gpus(found)
    assert host_link_groups(found, due) == tuple(tuple(due[at] for at in one) for one in groups)
    assert host_turns(found, due) == max(map(len, groups), default=0)


def test_only_the_gpus_that_are_due_share() -> None:
    found = seen((0, 0, 0, 1), (None,) * 4)
    due = gpus(found)[1:]
    assert host_link_groups(found, due) == (due[:2], due[2:])
    assert host_turns(found, due) == 2


def test_a_gpu_that_nvml_does_not_know_has_the_node_that_the_kernel_says() -> None:
    found = seen((0, 1), (0, 1))
    less = replace(found, nvml=replace(found.nvml, devices=found.nvml.devices[:1]))
    assert host_turns(less, gpus(less)) == 1
    assert host_turns(replace(less, places={}), gpus(less)) == 2
