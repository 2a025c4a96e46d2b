from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from gpu_machine import SOMEBODY, TRAITS, address, device, empty, look, machine, tree_of, uuid
from machine_tree import NO_DMI, Programs, Tree, completed
from thoroughness import some
from worded import worded

from acceptance.core.message import Message, Text
from acceptance.core.parts import Gpu
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuProcess, Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml, nvml_call, presence
from acceptance.observe.inventory import observe
from acceptance.observe.presence import (
    AbsenceKind,
    PresenceLayer,
    absence_kind,
    is_withheld,
    paravirtualised,
)
from acceptance.observe.readiness import obstacles, remarks
from acceptance.process.deadline import Deadline
from acceptance.wording import words

LIBRARY = nvml.failed_answer(nvml.LIBRARY_MISSING, nvml_call.LIBRARY_NOT_FOUND)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return bare(tmp_path)


def known(*addresses: str, error: str | None = None, code: int | None = None) -> NvmlAnswer:
    devices = tuple(
        NvmlDevice(index, f"GPU-{index}", "RTX", address, None, None, None, error, code)
        for index, address in enumerate(addresses)
    )
    return NvmlAnswer("570.86.15", "12.8", devices, None, None)


def layers(tree: Tree, answer: NvmlAnswer) -> tuple[Any, ...]:
    """The layers, with the fixes as they are and what was found in words."""
    programs = Programs(
        nvml=completed(msgspec.json.encode(answer).decode()), dmidecode=completed(*NO_DMI)
    )
    seen = presence.presence(
        observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")
    )
    told = tuple(
        replace(
            one,
            what=words.text(one.what),
            found=words.message(Message("clauses", {"why": one.found})),
        )
        for one in seen
    )
    assert [looked.what for looked in told] == ["PCI bus", "kernel driver", "device nodes", "NVML"]
    return told


FIRST, SECOND = "gpu0 (0000:01:00.0, 10de:2684)", "gpu1 (0000:02:00.0, 10de:2684)"


ONE, TWO = ("0000:01:00.0",), ("0000:01:00.0", "0000:02:00.0")


NODE, BOTH = ("nvidia0", "nvidiactl", "nvidia-uvm"), ("nvidia0", "nvidia1", "nvidiactl")


FREE: dict[str, Any] = {"driver": None}


NOUVEAU: dict[str, Any] = {"driver": "nouveau"}


SOUND: dict[str, Any] = {"function": 1, "class_code": "0x040300", "driver": None}


NO_BUS = (presence.NOT_ON_THE_BUS, *[presence.BUS_FIRST] * 3)


ANY = object()  # a cure that another case asks for


@each(
    "cards, module, nodes, answer, found, due",
    [
        (
            {1: {}, 2: {}},
            None,
            BOTH,
            known(*TWO),
            {
                0: f"2 GPUs: {FIRST}, {SECOND}",
                1: "version 570.86.15 is loaded",
                3: "driver 570.86.15, 2 GPUs",
            },
            (None,) * 4,
        ),
        ({1: {}}, None, NODE, known(*ONE), {0: f"1 GPU: {FIRST}", 3: "driver 570.86.15, 1 GPU"},
         (None,) * 4),
        ({}, None, None, LIBRARY, {0: "no NVIDIA device", 2: "none"}, NO_BUS),
        ({}, None, NODE, known(), {}, NO_BUS),
        ({1: SOUND}, None, None, LIBRARY,
         {0: "no GPU, only other NVIDIA functions: 0000:01:00.1 class 0403"}, NO_BUS),
        (
            {1: {}, 2: {"dead": True}},
            None,
            BOTH,
            known(*TWO, error="NVML says: GPU is lost", code=nvml_call.GPU_IS_LOST),
            {
                0: f"1 of 2 do not answer (rev ff): {SECOND}",
                3: "GPU 0: NVML says: GPU is lost; GPU 1: NVML says: GPU is lost",
            },
            (presence.FALLEN_OFF, ANY, ANY, presence.FALLEN_OFF),
        ),
        ({1: NOUVEAU}, "nouveau", None, LIBRARY,
         {1: "nouveau is loaded instead of NVIDIA's driver"},
         (ANY, presence.NOUVEAU, presence.DRIVER_FIRST, presence.DRIVER_FIRST)),
        ({1: NOUVEAU}, "nouveau", NODE, LIBRARY, {1: "held by another driver: gpu0 by nouveau"},
         (ANY, presence.NOUVEAU, ANY, ANY)),
        ({1: {"driver": "vfio-pci"}}, None, NODE, known(),
         {1: "held by another driver: gpu0 by vfio-pci"},
         (ANY, Message("gpu_release_cure"), ANY, ANY)),
        (
            {1: {}, 2: FREE},
            None,
            NODE,
            known(*ONE),
            {
                1: f"version 570.86.15 is loaded but does not drive {SECOND}",
                2: "/dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl; "
                "2 GPUs need as many /dev/nvidiaN, and /dev/nvidiactl",
                3: f"driver 570.86.15 does not know {SECOND}",
            },
            (None, Message("nvrm_lines_cure"), presence.NODES, Message("driver_refusal_cure")),
        ),
        *(
            ({1: {}}, None, NODE, answer, {}, (ANY, ANY, ANY, cure))
            for answer, cure in (
                (nvml.failed_answer("mismatch", nvml_call.VERSION_MISMATCH), presence.MISMATCH),
                (LIBRARY, presence.LIBRARY),
                (nvml.failed_answer("NVML did not end in its time: the driver hangs"),
                 presence.HUNG),
                (known(*ONE, error="NVML says: Unknown Error", code=999), presence.HUNG),
                (known(*ONE, error="NVML says: no", code=nvml_call.NO_PERMISSION),
                 presence.NODES_CLOSED),
            )
        ),
    ],
)  # fmt: skip
def test_what_each_layer_shows(
    tmp_path: Path,
    cards: dict[int, dict[str, Any]],
    module: str | None,
    nodes: tuple[str, ...] | None,
    answer: NvmlAnswer,
    found: dict[int, str],
    due: tuple[object, ...],
) -> None:
    tree = bare(tmp_path)
    for bus, more in cards.items():
        tree.gpu(bus, **more)
    if module is not None:
        tree.write("proc/modules", f"{module} 1 0 - Live 0x0\n")
    if nodes is not None:
        tree.driver(nodes=nodes)
    seen = layers(tree, answer)
    assert {at: seen[at].found for at in found} == found
    assert [ANY if cure is ANY else one.cure for one, cure in zip(seen, due, strict=True)] == [*due]


def bare(root: Path) -> Tree:
    """A machine without GPUs."""
    tree = Tree(root)
    tree.cpus([(0,)])
    tree.memory(16)
    return tree


def test_a_card_that_could_not_be_asked(tree: Tree) -> None:
    address = tree.gpu(1)
    (tree.root / f"sys/bus/pci/devices/{address}/config").unlink()
    assert (
        layers(tree, LIBRARY)[0].found
        == "the configuration space cannot be read of gpu0 (0000:01:00.0, 10de:2684)"
    )


@pytest.mark.parametrize(
    ("byte", "cure"), [(b"\x01", presence.SECURE_BOOT), (b"\0", presence.INSTALL)]
)
def test_no_driver_with_and_without_secure_boot(tree: Tree, byte: bytes, cure: Message) -> None:
    tree.gpu(1, driver=None)
    tree.write(
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        b"\x06\0\0\0" + byte,
    )
    assert layers(tree, LIBRARY)[1] == PresenceLayer(
        "kernel driver", "NVIDIA's driver is not loaded", cure
    )


def test_nodes_that_this_user_may_not_open(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.gpu(1)
    tree.driver()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    seen = layers(
        tree, nvml.failed_answer("NVML says: Insufficient Permissions", nvml_call.NO_PERMISSION)
    )
    assert seen[2].found == "this user may not open /dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl"
    assert (seen[2].cure, seen[3].cure) == (presence.NODES_CLOSED, presence.NODES_CLOSED)


DEAD: list[AbsenceKind | None] = ["dead", "dead"]
SET_UP: list[AbsenceKind | None] = ["set-up", "set-up"]


def kinds(inventory: Inventory) -> list[AbsenceKind | None]:
    return [absence_kind(inventory, gpu) for gpu in gpus(inventory)]


def own_cures(inventory: Inventory) -> list[Message | None]:
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


def test_a_card_that_has_fallen_off_the_bus_is_dead_whatever_else_is_missing(tree: Tree) -> None:
    tree.gpu(1, dead=True, driver=None)
    seen = look(tree, ())
    assert (kinds(seen), is_withheld(seen, gpus(seen)[0])) == (["dead"], False)


@each(
    "driver, loaded",
    [("nouveau", False), ("vfio-pci", True), (None, False), (None, True)],
)
def test_a_card_without_nvidias_driver(tmp_path: Path, driver: str | None, loaded: bool) -> None:
    tree = bare(tmp_path)
    if loaded:
        tree.driver()
    tree.gpu(1, driver=driver)
    seen = look(tree, ())
    assert (kinds(seen), is_withheld(seen, gpus(seen)[0])) == (["set-up"], False)


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
    assert own_cures(seen) == [None, None, presence.PARTLY, presence.PARTLY]
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
    assert "grep NVRM" in worded(own_cures(seen)[-1])


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


MODE = "sudo nvidia-smi -i"


def told(inventory: Inventory) -> list[str]:
    return [worded(one.message) for one in obstacles(inventory, gpus(inventory))]


def changed(tmp_path: Path, **traits: Any) -> Inventory:
    """A machine of two GPUs of which the second is set up another way."""
    return machine(device(0), device(1, traits=replace(TRAITS, **traits)))


def test_a_machine_that_is_ready() -> None:
    seen = machine(device(0), device(1))
    assert obstacles(seen, gpus(seen)) == ()
    assert remarks(seen, gpus(seen)) == ()


@each(
    "traits, what, cure",
    [
        (
            {"mig_enabled": True},
            "MIG is on, and a part of a GPU is not the GPU",
            f"`{MODE} {uuid(1)} -mig 0`",
        ),
        (
            {"compute_mode": "prohibited"},
            "compute mode is prohibited",
            f"`{MODE} {uuid(1)} -c DEFAULT`",
        ),
        (
            {"compute_mode": "exclusive-process"},
            "compute mode is exclusive-process, and some tools need more than one context",
            f"`{MODE} {uuid(1)} -c DEFAULT`",
        ),
        (
            {"fabric_state": "not-started"},
            "the NVLink fabric is not started: CUDA would answer 802",
            "fabricmanager",
        ),
        (
            {"fabric_state": "in-progress"},
            "the NVLink fabric is in progress: CUDA would answer 802",
            "fabricmanager",
        ),
        (
            {"fabric_state": "completed", "fabric_status": 3},
            "the NVLink fabric did not take this GPU (NVML status 3)",
            "journalctl -u nvidia-fabricmanager",
        ),
        (
            {"fabric_state": "7"},
            "the NVLink fabric is in state 7, which rigproof does not know",
            "journalctl -u nvidia-fabricmanager",
        ),
        (
            {"compute_processes": (SOMEBODY,)},
            (
                "python3 (process 4711, 1.5 GiB) computes on it, which would disturb every "
                "figure and be disturbed"
            ),
            "end it (`ps -p 4711`",
        ),
        (
            {"compute_processes": (SOMEBODY,), "graphics_processes": (SOMEBODY,)},
            "python3 (process 4711, 1.5 GiB) computes on it",
            "end it (`ps -p 4711`",
        ),
        (
            {"display_active": True, "compute_processes": (SOMEBODY,), "graphics_processes": None},
            "python3 (process 4711, 1.5 GiB) computes on it",
            "end it (`ps -p 4711`",
        ),
        (
            {"compute_processes": (GpuProcess(9, None, None),)},
            "a process (process 9) computes on it",
            "end it (`ps -p 9`",
        ),
    ],
)
def test_one_thing_in_the_way(tmp_path: Path, traits: dict[str, Any], what: str, cure: str) -> None:
    (one,) = told(changed(tmp_path, **traits))
    assert one.startswith(f"gpu1: {what}")
    assert cure in one


@each(
    "traits",
    [
        {"mig_enabled": False},
        {"mig_enabled": None},
        {"compute_mode": None},
        {"fabric_state": None},
        {"fabric_state": "completed", "fabric_status": 0},
        {"fabric_state": "completed", "fabric_status": None},
        {"fabric_state": "not-supported", "fabric_status": 3},
        {"graphics_processes": (SOMEBODY,)},
        {"graphics_processes": None},
        {"compute_processes": None},
        {
            "display_active": True,
            "compute_processes": (SOMEBODY,),
            "graphics_processes": (SOMEBODY,),
        },
        {"power_limit_w": 300.0},
        {"persistence": False},
    ],
)
def test_what_is_in_nobodys_way(tmp_path: Path, traits: dict[str, Any]) -> None:
    assert told(changed(tmp_path, **traits)) == []


def test_all_that_is_in_the_way_is_told_at_once(tmp_path: Path) -> None:
    everything = {
        "mig_enabled": True,
        "compute_mode": "prohibited",
        "fabric_state": "not-started",
        "compute_processes": (SOMEBODY, GpuProcess(9, None, None)),
    }
    assert len(told(changed(tmp_path, **everything))) == 5


@each(
    "driver, capability, needed",
    some(
        [
            ("525.60.13", "8.9", None),
            ("525.60.12", "8.9", "525.60.13"),
            ("470.256.02", "8.9", "525.60.13"),
            ("525.60", "8.9", "525.60.13"),
            ("570.86.15", "9.0", None),
            ("550.54.15", "10.0", "570"),
            ("570.86.15", "12.0", None),
            ("565.57.01", "12.0", "570"),
            ("525.147.05", None, None),
            ("470.1", None, "525.60.13"),
        ],
        5,
    ),
)
def test_drivers(
    tmp_path: Path, driver: str | None, capability: str | None, needed: str | None
) -> None:
    own = device(0, traits=replace(TRAITS, compute_capability=capability))
    found = told(look(tree_of(tmp_path, 1), [own], driver=driver))
    if needed is None:
        assert found == []
    else:
        (one,) = found
        assert (
            f"driver {driver} is too old for the CUDA 12.8 programs of the test, which need "
            f"{needed} or newer"
        ) in one


@each(
    "driver",
    [None, "", " ", "N/A", "[N/A]", "unknown", "570.x", "v570.86.15", "570-86", "570.", "57O.86"],
)
def test_a_version_that_cannot_be_read_is_not_new_enough(
    tmp_path: Path, driver: str | None
) -> None:
    seen = look(tree_of(tmp_path, 1), [device(0, traits=TRAITS)], driver=driver)
    (one,) = obstacles(seen, gpus(seen))
    assert (one.gpu, one.what.code) == (Gpu(0), "driver_unknown")
    assert one.what.values.get("version") == ((driver or "").strip() or None)


def test_a_gpu_that_nvml_does_not_know_is_no_matter_of_set_up(tmp_path: Path) -> None:
    busy = replace(TRAITS, mig_enabled=True, display_active=True)
    lost = device(0, traits=None, error="NVML says: GPU is lost")
    seen = look(tree_of(tmp_path, 3), [lost, device(1, traits=busy)])
    assert {one.gpu for one in obstacles(seen, gpus(seen))} == {Gpu(1)}
    assert obstacles(seen, gpus(seen)[::2]) == ()
    assert len(remarks(seen, gpus(seen))) == 1


def test_only_the_gpus_that_are_due_are_looked_at(tmp_path: Path) -> None:
    seen = changed(tmp_path, mig_enabled=True, display_active=True)
    assert obstacles(seen, gpus(seen)[:1]) == remarks(seen, gpus(seen)[:1]) == ()


def test_a_gpu_without_a_uuid_is_named_by_its_address() -> None:
    nameless = device(0, uuid=None, traits=replace(TRAITS, compute_mode="prohibited"))
    assert told(machine(nameless)) == [
        f"gpu0: compute mode is prohibited: `{MODE} {address(0)} -c DEFAULT`",
    ]


def test_what_the_reader_should_know(tmp_path: Path) -> None:
    drawn = changed(
        tmp_path, display_active=True, graphics_processes=(GpuProcess(7, "Xorg", 1 << 30),)
    )
    (one,) = worded(remarks(drawn, gpus(drawn)))
    assert one.startswith(
        "gpu1 drives the display (Xorg (process 7, 1.0 GiB)): a part of its memory"
    )
    bare = changed(tmp_path / "bare", display_active=True)
    assert worded(remarks(bare, gpus(bare)))[0].startswith("gpu1 drives the display: a part")
    passed = changed(tmp_path / "passed", virtualised=True)
    (one,) = worded(remarks(passed, gpus(passed)))
    assert one.startswith("gpu1 is passed through to a virtual machine")


@each(
    "modes, codes",
    [
        ({"ecc_enabled": True, "ecc_pending": False}, ["gpu_mode_off_pending"]),
        ({"ecc_enabled": False, "ecc_pending": True}, ["gpu_mode_on_pending"]),
        ({"mig_enabled": False, "mig_pending": True}, ["gpu_mode_on_pending"]),
        ({"ecc_enabled": True, "ecc_pending": True}, []),
        ({"ecc_enabled": None, "ecc_pending": True}, []),
        ({"ecc_enabled": True, "ecc_pending": None}, []),
    ],
)
def test_a_mode_that_changes_with_the_next_reset(
    tmp_path: Path, modes: dict[str, Any], codes: list[str]
) -> None:
    seen = changed(tmp_path / "mode", **modes)
    assert [remark.code for remark in remarks(seen, gpus(seen))] == codes
    assert obstacles(seen, gpus(seen)) == ()


@each(
    "limit_w, default_w, told",
    [
        (300.0, 450.0, True),
        (450.0, 450.0, False),
        (480.0, 450.0, False),
        (None, 450.0, False),
        (300.0, None, False),
    ],
)
def test_a_lowered_power_limit_is_told(
    tmp_path: Path, limit_w: float | None, default_w: float | None, told: bool
) -> None:
    lowered = changed(tmp_path / "limit", power_limit_w=limit_w, power_limit_default_w=default_w)
    said = (
        "gpu1 may take 300 W, less than its usual 450 W, so it may miss the floors of its model: "
        f"`sudo nvidia-smi -i {uuid(1)} -pl 450`"
    )
    assert worded(remarks(lowered, gpus(lowered))) == ((said,) if told else ())


def test_a_compositor_is_a_remark_and_so_is_what_nobody_tells(tmp_path: Path) -> None:
    both = (GpuProcess(7, "gnome-shell", 1 << 30),)
    drawn = changed(
        tmp_path / "drawn", display_active=True, compute_processes=both, graphics_processes=both
    )
    (one,) = worded(remarks(drawn, gpus(drawn)))
    assert one.startswith("gpu1 drives the display (gnome-shell (process 7, 1.0 GiB)): ")
    untold = changed(
        tmp_path / "untold", compute_processes=None, graphics_processes=None, persistence=False
    )
    assert worded(remarks(untold, gpus(untold))) == (
        "gpu1: the driver does not tell which processes compute on it; there may be some",
    )
