from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import each

from acceptance.loads.copy import numa
from acceptance.loads.copy.numa import (
    Placement,
    cpu_list,
    pci_address,
    pin_process,
    placement,
)
from acceptance.loads.program import LoadError

GPU = "0000:c1:00.0"
FREE = "host memory is wherever the kernel puts it"


def machine(root: Path, node: str | None, **nodes: str) -> Path:
    device = root / "sys/bus/pci/devices" / GPU
    device.mkdir(parents=True)
    if node is not None:
        (device / "numa_node").write_text(f"{node}\n")
    for name, cpus in nodes.items():
        (root / "sys/devices/system/node" / name).mkdir(parents=True)
        (root / "sys/devices/system/node" / name / "cpulist").write_text(f"{cpus}\n")
    return root


def test_addresses_are_those_of_sysfs() -> None:
    assert pci_address(0, 0xC1, 0) == GPU
    assert pci_address(0x10000, 1, 31) == "10000:01:1f.0"


def test_the_cpus_of_the_gpu_s_own_node(tmp_path: Path) -> None:
    root = machine(tmp_path, "1", node0="0-3,8-11", node1="4-7,12-15")
    found = placement(GPU, frozenset(range(6)), root)
    assert found == Placement(
        frozenset({4, 5}), f"host memory on NUMA node 1, that of {GPU}, by its CPUs 4-7,12-15"
    )


@each(
    "node, nodes, told",
    [
        (None, {}, f"the kernel shows no NUMA node of {GPU}"),
        ("-1", {"node0": "0-7"}, f"the firmware gives {GPU} no NUMA node"),
        ("1", {"node0": "0-7"}, f"{GPU} is on NUMA node 1, which the kernel does not show"),
        ("1", {"node1": ""}, f"{GPU} is on NUMA node 1, which has no CPU"),
        (
            "1",
            {"node1": "8-15"},
            f"{GPU} is on NUMA node 1, which has the CPUs 8-15, none of which may be used here",
        ),
    ],
)
def test_without_a_usable_node_it_is_said(
    tmp_path: Path, node: str | None, nodes: dict[str, str], told: str
) -> None:
    root = machine(tmp_path, node, **nodes)
    assert placement(GPU, frozenset({0, 1}), root) == Placement(frozenset(), f"{told}: {FREE}")


@each("node", ["", "-2", "one", "1 2", "\u0661"])
def test_a_node_that_is_no_number_is_refused(tmp_path: Path, node: str) -> None:
    with pytest.raises(LoadError, match=f"not a number: {node!r}"):
        placement(GPU, frozenset({0}), machine(tmp_path, node))


def test_lists_as_the_kernel_writes_them() -> None:
    assert cpu_list("") == frozenset()
    assert cpu_list("0") == {0}
    assert cpu_list("0-3,8,10-11") == {0, 1, 2, 3, 8, 10, 11}


@each("text", ["0-", "a", "0,,1", "0-3:1/2", ",", "-1"])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(LoadError, match="is not a list of CPUs"):
        cpu_list(text)


def test_the_process_is_pinned_only_where_there_is_somewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pinned: list[frozenset[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: pinned.append(cpus))
    monkeypatch.setattr(
        numa, "placement", lambda address, allowed: Placement(frozenset(allowed), address)
    )
    assert pin_process("there") == "there"
    assert pinned == [frozenset({0, 1})]
    monkeypatch.setattr(numa, "placement", lambda address, allowed: Placement(frozenset(), address))
    assert pin_process("nowhere") == "nowhere"
    assert len(pinned) == 1
