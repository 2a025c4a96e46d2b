"""A GPU that cannot be tested is dead, or the machine is not set up for it; every case alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from cases import each
from gpu_machine import address, device, empty, look, machine, tree_of
from machine_tree import Tree
from worded import worded

from acceptance.core.message import Message, Text
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml, nvml_call, presence
from acceptance.observe.presence import AbsenceKind, absence_kind, is_withheld, paravirtualised

DEAD: list[AbsenceKind | None] = ["dead", "dead"]
SET_UP: list[AbsenceKind | None] = ["set-up", "set-up"]


def kinds(inventory: Inventory) -> list[AbsenceKind | None]:
    return [absence_kind(inventory, gpu) for gpu in gpus(inventory)]


def cures(inventory: Inventory) -> list[Message | None]:
    return [looked.cure for looked in presence.presence(inventory)]


def nameless(code: int | None) -> NvmlDevice:
    return device(
        1,
        uuid=None,
        name=None,
        pci_address=None,
        traits=None,
        error="NVML says: no",
        error_code=code,
    )


def answering(answer: NvmlAnswer) -> Inventory:
    """Two GPUs that the driver holds, and this word of NVML's."""
    return replace(empty(2), nvml=answer)


def test_a_card_that_has_fallen_off_the_bus_is_dead_whatever_else_is_missing(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path)
    tree.cpus([(0,)])
    tree.memory(16)
    tree.gpu(1, dead=True, driver=None)
    seen = look(tree, ())
    assert kinds(seen) == ["dead"]
    assert not is_withheld(seen, gpus(seen)[0])


@each(
    "driver, loaded, expected",
    [
        ("nouveau", False, "set-up"),
        ("vfio-pci", True, "set-up"),
        (None, False, "set-up"),
        (None, True, "set-up"),
    ],
)
def test_a_card_without_nvidias_driver(
    tmp_path: Path, driver: str | None, loaded: bool, expected: AbsenceKind
) -> None:
    tree = tree_of(tmp_path, 0) if loaded else Tree(tmp_path)
    tree.cpus([(0,)])
    tree.memory(16)
    tree.gpu(1, driver=driver)
    seen = look(tree, ())
    assert kinds(seen) == [expected]
    assert not is_withheld(seen, gpus(seen)[0])


@pytest.mark.parametrize(("model", "expected"), [("0x2684", "dead"), ("0x13c2", "set-up")])
def test_a_card_that_the_driver_leaves_alone_though_it_takes_another(
    tmp_path: Path, model: str, expected: AbsenceKind
) -> None:
    tree = tree_of(tmp_path, 1)
    tree.gpu(2, driver=None, device=model)
    assert kinds(look(tree, [device(0)])) == [None, expected]


def listed(*devices: NvmlDevice) -> Inventory:
    return answering(NvmlAnswer("570", "12.8", devices, None, None))


def failed(error: Text, code: int | None) -> Inventory:
    return answering(nvml.failed_answer(error, code))


def beside(error: str, code: int | None) -> Inventory:
    """A GPU that NVML lists and cannot use beside a sound one."""
    return machine(device(0), device(1, error=error, error_code=code))


@each(
    "seen, expected",
    [
        (machine(device(0), device(1)), [None, None]),
        (failed("NVML says: Driver/library version mismatch", nvml_call.VERSION_MISMATCH), SET_UP),
        (failed(nvml.LIBRARY_MISSING, nvml_call.LIBRARY_NOT_FOUND), SET_UP),
        (failed("NVML says: Driver Not Loaded", nvml_call.DRIVER_NOT_LOADED), SET_UP),
        (failed("NVML says: Insufficient Permissions", nvml_call.NO_PERMISSION), SET_UP),
        (failed("NVML says: Unknown Error", 999), SET_UP),
        (failed("asking NVML was ended by signal 6: it printed nothing", None), SET_UP),
        (failed("NVML says: GPU is lost", nvml_call.GPU_IS_LOST), DEAD),
        (failed("NVML says: GPU requires reset", 16), DEAD),
        # the driver hangs
        (answering(replace(nvml.failed_answer("NVML was ended after 60.0 s"), hung=True)), DEAD),
        (beside("NVML says: GPU is lost", nvml_call.GPU_IS_LOST), [None, "dead"]),
        (beside("NVML says: GPU requires reset", 16), [None, "dead"]),
        (beside("NVML says: Unknown Error", 999), [None, "dead"]),
        (beside("NVML gives 2 GPUs the same uuid", None), [None, "dead"]),
        (beside("NVML says: Insufficient Permissions", nvml_call.NO_PERMISSION), [None, "set-up"]),
        # RmInit failed: its node is there, and NVML passes it over
        (listed(device(0)), [None, "dead"]),
        (listed(device(0), nameless(nvml_call.GPU_IS_LOST)), [None, "dead"]),
        (listed(device(0), nameless(999)), [None, "dead"]),
        (listed(device(0), nameless(nvml_call.NO_PERMISSION)), [None, "set-up"]),
        (listed(device(0), nameless(None)), [None, "set-up"]),
        (listed(nameless(nvml_call.GPU_IS_LOST)), DEAD),
        # it works for nobody: a driver too old, or the wrong kernel modules
        (listed(), SET_UP),
    ],
)
def test_gpus_that_the_driver_holds_by_the_word_of_nvml(
    seen: Inventory, expected: list[AbsenceKind | None]
) -> None:
    assert kinds(seen) == expected
    assert not any(is_withheld(seen, gpu) for gpu in gpus(seen))


def numbered(tree: Tree, *minors: int | None) -> Tree:
    """Let the driver say which node is whose."""
    for index, minor in enumerate(minors):
        if minor is not None:
            tree.write(
                f"proc/driver/nvidia/gpus/{address(index)}/information",
                f"Device Minor: \t {minor}\n",
            )
    return tree


def closed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let these nodes be of those that may not be opened."""
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path).name not in names)


def test_a_job_that_was_given_one_gpu_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, "nvidia0")
    seen = look(numbered(tree_of(tmp_path, 2), 1, 0), [device(0)])
    assert kinds(seen) == [None, "set-up"], "the second GPU's node is nvidia0"
    assert [is_withheld(seen, gpu) for gpu in gpus(seen)] == [False, True]
    assert cures(seen) == [None, None, presence.PARTLY, presence.PARTLY]
    assert (
        "the job was given only some of the GPUs: name them with --gpus, or ask for all"
        in worded(presence.PARTLY)
    )


def test_a_gpu_that_could_not_start_among_numbered_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, "nvidia2")
    seen = look(numbered(tree_of(tmp_path, 3), 0, 1, 2), [device(0)])
    assert kinds(seen) == [None, "dead", "set-up"]
    assert "grep NVRM" in worded(cures(seen)[-1])


@pytest.mark.parametrize("minors", [(0, None), (0, 7)])
def test_a_container_that_was_given_one_gpu_of_two(
    tmp_path: Path, minors: tuple[int | None, ...]
) -> None:
    assert kinds(look(numbered(tree_of(tmp_path, 2), *minors), [device(0)])) == [None, "set-up"]


def test_nodes_that_nobody_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tree_of(tmp_path, 2)
    closed(monkeypatch, "nvidia1")
    assert kinds(look(tree, [device(0)])) == [None, "set-up"]
    monkeypatch.undo()
    (tree.root / "dev/nvidia1").unlink()
    assert kinds(look(tree, [device(0)])) == [None, "set-up"]


@pytest.mark.parametrize(("count", "word"), [(1, "1 GPU"), (2, "2 GPUs")])
def test_a_layer_that_shares_gpus_out(count: int, word: str) -> None:
    seen = replace(
        empty(0), nvml=NvmlAnswer("570", "12.8", tuple(map(device, range(count))), None, None)
    )
    assert paravirtualised(seen)
    bus, _, _, library = presence.presence(seen)
    assert (worded(bus.found), bus.cure) == (
        f"no NVIDIA device, and NVML lists {word}",
        presence.PARAVIRTUALISED,
    )
    assert "run on the machine itself" in worded(presence.PARAVIRTUALISED)
    assert library.cure == presence.PARAVIRTUALISED
    assert not paravirtualised(replace(seen, nvml=nvml.failed_answer("no")))
    assert not paravirtualised(machine(device(0)))
