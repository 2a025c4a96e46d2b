"""Whether GPUs are set up to be tested: each thing in the way alone, with its cure; and what
only the reader should know.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import each
from gpu_machine import SOMEBODY, TRAITS, address, device, look, machine, tree_of, uuid
from thoroughness import some
from worded import worded

from acceptance.core.parts import Gpu
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuProcess, Inventory
from acceptance.observe.readiness import obstacles, remarks

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
