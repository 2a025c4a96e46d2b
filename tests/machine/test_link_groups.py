"""The GPUs that share the way to the host, by what the kernel and NVML say of their NUMA nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from gpu_machine import TRAITS, address, device, machine

from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, PciPlace
from acceptance.machine.topology import host_link_groups, host_turns

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
