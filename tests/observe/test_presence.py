from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.message import Message, Value
from acceptance.machine.inventory import NvmlAnswer, NvmlDevice
from acceptance.observe import nvml, nvml_call, presence
from acceptance.observe.inventory import observe
from acceptance.observe.presence import PresenceLayer
from acceptance.process.deadline import Deadline
from acceptance.wording import words

LIBRARY = nvml.failed_answer(nvml.LIBRARY_MISSING, nvml_call.LIBRARY_NOT_FOUND)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.cpus([(0,)])
    tree.memory(16)
    return tree


def known(*addresses: str, error: str | None = None, code: int | None = None) -> NvmlAnswer:
    devices = tuple(
        NvmlDevice(index, f"GPU-{index}", "RTX", address, None, None, None, error, code)
        for index, address in enumerate(addresses)
    )
    return NvmlAnswer("570.86.15", "12.8", devices, None, None)


def look(tree: Tree, answer: NvmlAnswer) -> tuple[Any, ...]:
    """The layers, with the fixes as they are and what was found in words."""
    programs = Programs(
        nvml=completed(msgspec.json.encode(answer).decode()), dmidecode=completed(*NO_DMI)
    )
    seen = presence.presence(
        observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")
    )
    told = tuple(
        replace(one, what=words.text(one.what), found=told_value(one.found)) for one in seen
    )
    assert [looked.what for looked in told] == ["PCI bus", "kernel driver", "device nodes", "NVML"]
    return told


def told_value(found: Value) -> str:
    return words.message(Message("clauses", {"why": found}))


def cures(looked: Sequence[PresenceLayer]) -> list[Message | None]:
    return [one.cure for one in looked]


def test_all_is_well(tree: Tree) -> None:
    addresses = [tree.gpu(1), tree.gpu(2)]
    tree.driver(nodes=("nvidia0", "nvidia1", "nvidiactl"))
    seen = look(tree, known(*addresses))
    assert cures(seen) == [None, None, None, None]
    assert seen[0].found == "2 GPUs: gpu0 (0000:01:00.0, 10de:2684), gpu1 (0000:02:00.0, 10de:2684)"
    assert seen[1].found == "version 570.86.15 is loaded"
    assert seen[3].found == "driver 570.86.15, 2 GPUs"


def test_nothing_on_the_bus(tree: Tree) -> None:
    bus, driver, nodes, library = look(tree, LIBRARY)
    assert bus == PresenceLayer("PCI bus", "no NVIDIA device", presence.NOT_ON_THE_BUS)
    assert "Above 4G decoding" in words.message(presence.NOT_ON_THE_BUS)
    assert (driver.cure, nodes.cure, library.cure) == (presence.BUS_FIRST,) * 3
    assert nodes.found == "none"


def test_nothing_on_the_bus_though_the_driver_is_there(tree: Tree) -> None:
    tree.driver()
    assert cures(look(tree, known())) == [presence.NOT_ON_THE_BUS, *[presence.BUS_FIRST] * 3]


def test_the_sound_function_alone_is_no_gpu(tree: Tree) -> None:
    tree.gpu(1, function=1, class_code="0x040300", driver=None)
    bus = look(tree, LIBRARY)[0]
    assert bus.found == "no GPU, only other NVIDIA functions: 0000:01:00.1 class 0403"


def test_one_card_has_fallen_off_the_bus(tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2, dead=True)
    tree.driver(nodes=("nvidia0", "nvidia1", "nvidiactl"))
    seen = look(
        tree,
        known(
            "0000:01:00.0",
            "0000:02:00.0",
            error="NVML says: GPU is lost",
            code=nvml_call.GPU_IS_LOST,
        ),
    )
    assert seen[0].found == "1 of 2 do not answer (rev ff): gpu1 (0000:02:00.0, 10de:2684)"
    assert (seen[0].cure, seen[3].cure) == (presence.FALLEN_OFF, presence.FALLEN_OFF)
    assert seen[3].found.startswith("GPU 0: NVML says: GPU is lost; GPU 1: ")


def test_a_card_that_could_not_be_asked(tree: Tree) -> None:
    address = tree.gpu(1)
    (tree.root / f"sys/bus/pci/devices/{address}/config").unlink()
    assert (
        look(tree, LIBRARY)[0].found
        == "the configuration space cannot be read of gpu0 (0000:01:00.0, 10de:2684)"
    )


def test_nouveau_holds_the_card(tree: Tree) -> None:
    tree.gpu(1, driver="nouveau")
    tree.write("proc/modules", "nouveau 1 0 - Live 0x0\n")
    seen = look(tree, LIBRARY)
    assert seen[1] == PresenceLayer(
        "kernel driver", "nouveau is loaded instead of NVIDIA's driver", presence.NOUVEAU
    )
    assert (seen[2].cure, seen[3].cure) == (presence.DRIVER_FIRST, presence.DRIVER_FIRST)


def test_nouveau_holds_one_card_beside_the_driver(tree: Tree) -> None:
    tree.gpu(1, driver="nouveau")
    tree.write("proc/modules", "nouveau 1 0 - Live 0x0\n")
    tree.driver()
    assert look(tree, LIBRARY)[1] == PresenceLayer(
        "kernel driver", "held by another driver: gpu0 by nouveau", presence.NOUVEAU
    )


def test_a_card_kept_for_a_virtual_machine(tree: Tree) -> None:
    tree.gpu(1, driver="vfio-pci")
    tree.driver()
    driver = look(tree, known())[1]
    assert driver.found == "held by another driver: gpu0 by vfio-pci"
    assert "vfio" in words.message(driver.cure)


@pytest.mark.parametrize(
    ("byte", "cure"), [(b"\x01", presence.SECURE_BOOT), (b"\0", presence.INSTALL)]
)
def test_no_driver_with_and_without_secure_boot(tree: Tree, byte: bytes, cure: Message) -> None:
    tree.gpu(1, driver=None)
    tree.write(
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        b"\x06\0\0\0" + byte,
    )
    assert look(tree, LIBRARY)[1] == PresenceLayer(
        "kernel driver", "NVIDIA's driver is not loaded", cure
    )


def test_the_driver_does_not_take_one_card(tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2, driver=None)
    tree.driver()
    seen = look(tree, known("0000:01:00.0"))
    assert "does not drive gpu1 (0000:02:00.0" in seen[1].found
    assert seen[2].found.endswith("2 GPUs need as many /dev/nvidiaN, and /dev/nvidiactl")
    assert seen[2].cure == presence.NODES
    assert seen[3].found == "driver 570.86.15 does not know gpu1 (0000:02:00.0, 10de:2684)"
    assert None not in cures(seen[1:])


def test_nodes_that_this_user_may_not_open(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.gpu(1)
    tree.driver()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    seen = look(
        tree, nvml.failed_answer("NVML says: Insufficient Permissions", nvml_call.NO_PERMISSION)
    )
    assert seen[2].found == "this user may not open /dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl"
    assert (seen[2].cure, seen[3].cure) == (presence.NODES_CLOSED, presence.NODES_CLOSED)


@pytest.mark.parametrize(
    ("answer", "cure"),
    [
        (nvml.failed_answer("mismatch", nvml_call.VERSION_MISMATCH), presence.MISMATCH),
        (LIBRARY, presence.LIBRARY),
        (nvml.failed_answer("NVML did not end within its time: the driver hangs"), presence.HUNG),
        (known("0000:01:00.0", error="NVML says: Unknown Error", code=999), presence.HUNG),
        (
            known("0000:01:00.0", error="NVML says: no", code=nvml_call.NO_PERMISSION),
            presence.NODES_CLOSED,
        ),
    ],
)
def test_what_nvml_answers(tree: Tree, answer: NvmlAnswer, cure: Message) -> None:
    tree.gpu(1)
    tree.driver()
    assert look(tree, answer)[3].cure == cure


def test_one_gpu_is_not_several(tree: Tree) -> None:
    address = tree.gpu(1)
    tree.driver()
    seen = look(tree, known(address))
    assert (seen[0].found, seen[3].found) == (
        "1 GPU: gpu0 (0000:01:00.0, 10de:2684)",
        "driver 570.86.15, 1 GPU",
    )
