"""What the product makes of every described machine: `python -m acceptance.observe.nvml` with
the fake library.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import described
import fake_driver
import pytest
import questions
from cases import each
from described import Gpu, Machine
from questions import GPU_IS_LOST, write
from worded import worded

from acceptance.machine.inventory import (
    GpuCounters,
    GpuHealth,
    GpuProcess,
    GpuTraits,
    NvLink,
    NvmlAnswer,
    NvmlDevice,
    NvmlPair,
)
from acceptance.observe import nvml
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

NAMES = sorted(path.stem for path in fake_driver.DESCRIPTIONS.glob("*.json"))
PLAIN = (
    *(
        "compute_capability",
        "cuda_cores",
        "memory_bus_bits",
        "max_link_gen",
        "max_link_gen_here",
        "max_link_width_here",
    ),
    *(
        "power_limit_w",
        "power_limit_default_w",
        "max_temperature_c",
        "slowdown_temperature_c",
        "shutdown_temperature_c",
    ),
    *(
        "memory_max_temperature_c",
        "max_sm_clock_mhz",
        "max_memory_clock_mhz",
        "mig_enabled",
        "compute_mode",
    ),
    *("display_active", "persistence", "ecc_enabled", "fabric_state"),
)
HEALTH = (
    "sram_threshold_exceeded",
    "channel_repair_pending",
    "tpc_repair_pending",
    "memory_unrepairable",
    "inforom_corrupt",
    "recovery_action",
)
LINK_SUMS = ("replays", "recoveries", "crc_errors")


def probe(
    library: Path, path: Path, patch: pytest.MonkeyPatch, age_s: float | None = -1000.0
) -> NvmlAnswer:
    """The answer of the product's own child, which starts as it does at a user's."""
    for name, value in fake_driver.environment(library, path, age_s=age_s).items():
        patch.setenv(name, value)
    return nvml.probe(command.run, deadline=Deadline.after(30.0))


def read(library: Path, path: Path, age_s: float | None = -1000.0) -> NvmlAnswer:
    """The same of a child that did not have to start."""
    environ = {**os.environ, **fake_driver.environment(library, path, age_s=age_s)}

    def run(argv: tuple[str, ...], **_: object) -> ProgramResult:
        assert argv[1:] == ("-m", "acceptance.observe.nvml")
        code, out, err = questions.forks(library).run("acceptance.observe.nvml:main", environ)
        return ProgramResult(argv, code, out, err, 0.0)

    return nvml.probe(run, deadline=Deadline.after(30.0))


def expected(machine: Machine) -> NvmlAnswer:
    cuda = machine.cuda_driver_version
    pairs = [_pair(machine, a, b) for a, b in itertools.permutations(range(len(machine.gpus)), 2)]
    devices = tuple(map(_device, machine.gpus))
    return NvmlAnswer(
        machine.driver_version,
        f"{cuda // 1000}.{cuda % 1000 // 10}",
        devices,
        None,
        None,
        tuple(pairs),
    )


def _pair(machine: Machine, a: int, b: int) -> NvmlPair:
    said = machine.pair(a, b)
    return NvmlPair(
        a, b, said.get("path"), said.get("p2p"), said.get("p2p"), said.get("p2p_nvlink")
    )


def _device(gpu: Gpu) -> NvmlDevice:
    said = gpu.readings
    return NvmlDevice(
        index=gpu.index,
        uuid=said["uuid"],
        name=said["name"],
        pci_address=gpu.address,
        serial=said.get("serial"),
        vbios=said["vbios"],
        memory_bytes=said["memory_total_bytes"],
        error=None,
        error_code=None,
        traits=_traits(gpu),
        counters=_counters(gpu),
        links=tuple(_link(number, link) for number, link in (gpu.links or {}).items()),
        health=_health(said),
    )


def _health(said: dict[str, Any]) -> GpuHealth:
    return GpuHealth(
        **{name: said.get(name) for name in HEALTH},
        banks_without_spare=said.get("banks_none"),
    )


def _traits(gpu: Gpu) -> GpuTraits:
    said: dict[str, Any] = gpu.readings
    has_fabric = "fabric_state" in said
    return GpuTraits(
        **{name: said.get(name) for name in PLAIN},
        numa_node=gpu.memory_affinity[0] if gpu.memory_affinity else None,
        cpu_affinity=gpu.cpu_affinity,
        fabric_status=said.get("fabric_status", 0) if has_fabric else None,
        fabric_health=said.get("fabric_health_mask", 0) if has_fabric else None,
        fabric_summary=said.get("fabric_health_summary", 0) if has_fabric else None,
        ecc_pending=said.get("ecc_pending", said.get("ecc_enabled")),
        mig_pending=said.get("mig_pending", said.get("mig_enabled")),
        virtualised=said["virtualisation"] != "none",
        compute_processes=_processes(gpu.compute_processes),
        graphics_processes=_processes(gpu.graphics_processes),
        memory_thermometer="memory_temperature_c" in said,
        fan="fan_percent" in said or None,
        utilisation=said["utilisation_percent"] / 100 if "utilisation_percent" in said else None,
    )


def _processes(said: list[dict[str, Any]] | None) -> tuple[GpuProcess, ...] | None:
    return (
        None
        if said is None
        else tuple(GpuProcess(one["pid"], one["name"], one["memory_bytes"]) for one in said)
    )


def _counters(gpu: Gpu) -> GpuCounters:
    own = [name for name in GpuCounters.__slots__ if not name.startswith("nvlink_")]
    active = [link for link in (gpu.links or {}).values() if link["active"]]
    sums = {
        f"nvlink_{name}": sum(link[name] for link in active) if active else None
        for name in LINK_SUMS
    }
    return GpuCounters(**{name: gpu.readings.get(name) for name in own}, **sums)


def _link(number: int, said: dict[str, Any]) -> NvLink:
    if not said["active"]:
        return NvLink(number, False, None, None, None, None, None, None, None)
    return NvLink(
        number,
        True,
        said["version"],
        said["speed_mbs"] / 1000,
        # A virtual machine hides its switches: all ones are no address.
        None if said["remote_address"].startswith("FFFF") else said["remote_address"][4:].lower(),
        said["remote_kind"],
        *(said[name] for name in LINK_SUMS),
    )


def test_the_products_own_child(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_driver.description(NAMES[0])
    assert probe(library, path, monkeypatch) == expected(described.read(path))


@each("name", NAMES)
def test_a_described_machine(library: Path, name: str) -> None:
    path = fake_driver.description(name)
    assert read(library, path) == expected(described.read(path))


def test_a_lost_gpu_is_known_by_its_code_and_the_other_one_is_read(library: Path) -> None:
    path = fake_driver.description("gpu-lost-mid-run")
    found = read(library, path, age_s=60.0)
    before = expected(described.read(path))
    assert found.error is None
    assert found.devices[0] == before.devices[0]
    assert (found.devices[1].error_code, found.devices[1].uuid, found.pairs) == (
        GPU_IS_LOST,
        None,
        (),
    )


def test_counters_that_grew(library: Path) -> None:
    found = read(library, fake_driver.description("ecc-growing"), age_s=100.0)
    well, ill = (device.counters for device in found.devices)
    assert well is not None
    assert ill is not None
    assert (well.ecc_corrected, well.ecc_corrected_total, well.remap_pending) == (0, 2, False)
    assert ill.ecc_corrected is not None
    assert ill.ecc_corrected >= 98 * 20
    assert (ill.ecc_uncorrected, ill.remapped_uncorrected, ill.remap_pending) == (1, 1, True)


@each(
    "how, code, why",
    [
        ({"init_crash": True}, None, "was ended by signal 6"),
        ({"init_error": 18}, 18, "NVML says: "),
        ({"init_error": 9}, 9, "NVML says: "),
        ({"nonsense": 1}, 999, "NVML says: "),
    ],
)
def test_a_driver_that_cannot_be_asked(
    library: Path, tmp_path: Path, how: dict[str, Any], code: int | None, why: str
) -> None:
    found = read(library, write(tmp_path, {"synthetic": True, "gpus": [], **how}))
    assert found.error is not None
    assert why in worded(found.error)
    assert (found.error_code, found.devices) == (code, ())


CARD = {"uuid": "GPU-0", "pci_bus_id": "00000000:01:00.0"}


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"init_crash": True}, "was ended by signal 6"),
        ({"init_hang": True}, "the driver hangs"),
        ({"every_gpu": {"hang": True}}, "the driver hangs"),
    ],
)
def test_the_products_own_child_when_a_driver_crashes_or_hangs(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, Any],
    told: str,
) -> None:
    monkeypatch.setattr(nvml, "PROBE_S", 1.0)
    begun = time.monotonic()
    found = probe(library, write(tmp_path, {"synthetic": True, "gpus": [CARD], **how}), monkeypatch)
    assert told in worded(found.error)
    assert time.monotonic() - begun < 20.0


def read_card(library: Path, folder: Path, *, about: Mapping[str, Any] = {}, **card: Any) -> Any:
    """What the product reads of a machine of this one GPU."""
    document = {
        "synthetic": True,
        "driver_version": "580.159.04",
        "cuda_driver_version": 13000,
        **about,
        "gpus": [{**CARD, **card}],
    }
    (found,) = read(library, write(folder, document)).devices
    return found


OLDER = {"driver_version": "450.80.02", "cuda_driver_version": 11000}


def test_an_older_driver_is_asked_by_its_older_calls(library: Path, tmp_path: Path) -> None:
    missing = (
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetComputeRunningProcesses_v3",
    )
    counted = {
        "ecc_corrected": 3,
        "remapped_corrected": 1,
        "remapped_uncorrected": 2,
        "remap_pending": True,
        "remap_failed": False,
        "retired_single": 4,
        "retired_pending": True,
        "pcie_replays": 6,
    }
    device = read_card(
        library,
        tmp_path,
        about=OLDER,
        fabric_state="in-progress",
        fabric_status=0,
        compute_processes=[{"pid": 4194300, "memory_bytes": 5, "name": "train"}],
        refuse=dict.fromkeys(missing, 13),
        **counted,
    )
    assert device.error is None
    assert (device.traits.fabric_state, device.traits.fabric_status) == ("in-progress", 0)
    assert device.traits.compute_processes == (GpuProcess(4194300, "train", 5),)
    assert {name: getattr(device.counters, name) for name in counted} == counted
    assert device.counters.retired_double is None


FABRIC = {"fabric_state": "completed", "fabric_health_mask": 0x1AA, "fabric_health_summary": 1}
NO_FABRIC = {"nvmlDeviceGetGpuFabricInfoV": 3, "nvmlDeviceGetGpuFabricInfo": 3}


@each(
    "described, health, summary",
    [
        ({}, 0x1AA, 1),
        ({"fabric_record": 2}, 0x1AA, None),
        ({"fabric_record": 1}, None, None),
        ({"refuse": NO_FABRIC}, None, None),
    ],
)
def test_the_health_of_the_fabric_by_the_records_that_the_driver_knows(
    library: Path,
    tmp_path: Path,
    described: dict[str, Any],
    health: int | None,
    summary: int | None,
) -> None:
    device = read_card(library, tmp_path, **FABRIC, **described)
    traits = device.traits
    assert (traits.fabric_health, traits.fabric_summary) == (health, summary)
    assert traits.fabric_state == (None if "refuse" in described else "completed")
    assert device.error is traits.fabric_error is None


FLAGS = dict.fromkeys([name for name in HEALTH if name != "recovery_action"], True)
BANKS = {"banks_max": 3070, "banks_high": 0, "banks_partial": 0, "banks_low": 0, "banks_none": 2}


@each(
    "described, health",
    [
        ({"recovery_action": 3, "reset_needed": True}, {"recovery_action": 3}),
        ({"recovery_action": 0, "refuse": {"field 226": 999}}, {"recovery_action": 0}),
        ({"reset_needed": True, "refuse": {"field 227": 999}}, {"recovery_action": 1}),
        ({"reset_needed": True, "drain_needed": False}, {"recovery_action": 1}),
        ({"reset_needed": True, "drain_needed": True}, {"recovery_action": 4}),
        ({"reset_needed": False, "drain_needed": False}, {"recovery_action": 0}),
        ({}, {}),
        ({**FLAGS, **BANKS}, {**FLAGS, "banks_without_spare": 2}),
    ],
)
def test_the_health_that_the_driver_tells(
    library: Path, tmp_path: Path, described: dict[str, Any], health: dict[str, Any]
) -> None:
    device = read_card(library, tmp_path, **described)
    assert (device.error, device.health) == (None, GpuHealth(**health))


def test_a_gpu_that_fails_to_answer_is_not_one_that_does_not_offer(
    library: Path, tmp_path: Path
) -> None:
    """What is lost is lost whatever was asked."""
    asked = ("nvmlDeviceValidateInforom", "nvmlDeviceGetRepairStatus", "nvmlDeviceGetFieldValues")
    refuse = dict.fromkeys((*asked, *NO_FABRIC), 999) | {"nvmlDeviceGetRowRemapperHistogram": 4}
    device = read_card(library, tmp_path, inforom_corrupt=False, **FABRIC, refuse=refuse)
    health = device.health
    assert device.error is None
    assert dict(health.unanswered).keys() == set(asked)
    assert (health.inforom_corrupt, health.banks_without_spare) == (None, None)
    assert device.traits.fabric_error
    lost = read_card(library, tmp_path, refuse={"nvmlDeviceValidateInforom": 15})
    assert (lost.error_code, lost.health) == (15, None)
