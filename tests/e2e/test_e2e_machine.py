"""What the machine file declares and the machine does not have."""

from __future__ import annotations

import fakes
import pytest
from rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def test_shortfalls_of_the_inventory_fail_by_name(rig: Rig) -> None:
    fakes.dmidecode(rig.fakes, ["DIMM_A1", "DIMM_B1"])
    rig.declare(
        """
        [cpu]
        model = "Imaginary Processor 9000"
        cores = 4096
        [memory]
        dimms = 3
        total_gib = 4096
        [[memory.dimm]]
        slot = "DIMM_A1"
        size_gib = 32
        configured_mts = 5600
        [[memory.dimm]]
        slot = "DIMM_C1"
        [[disk]]
        model = "Imaginary Disk"
        [[network]]
        name = "enp250s0"
        speed_mbps = 100000
        """
    )
    run = rig.accept(only="inventory")
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    told = run.texts("violations")
    for words in (
        "inventory.cpu: cpu_cores on cpu: measured",
        "machine.toml declares cpu.cores = 4096",
        "inventory.cpu: cpu_model_differs on cpu: measured 1 (found ",
        "machine.toml declares cpu.model = 'Imaginary Processor 9000'",
        "(dimm_count on memory is 2 too)",
        "inventory.memory: memory_total on memory: measured",
        (
            "inventory.dimms: dimm_present on dimm:DIMM_C1: measured 0 (modules are in: DIMM_A1, "
            "DIMM_B1), limit >= 1"
        ),
        "inventory.disks: disk_count on declared-disk:1: measured 0",
        "declares disk 1, model = 'Imaginary Disk'",
        "inventory.network: link_up on net:enp250s0: measured 0",
    ):
        assert words in told
    assert "DIMM_A1:" not in told
    measured = {
        (m["measurement"], m["component"]): m
        for c in run.verdict["checks"]
        for m in c["measurements"]
    }
    assert measured["dimm_configured_speed", "dimm:DIMM_A1"]["value"] == 5600
    assert measured["cpu_cores", "cpu"]["limit"]["low"] == 4096


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "no machine file"])
def test_missing_gpus_fail_within_seconds(rig: Rig, declared: bool) -> None:
    rig.machine.write_text('schema = 1\nname = "two cards"\ngpus = 2\n', encoding="utf-8")
    run = rig.accept("--fail-fast", burn=None, machine=declared)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    assert run.seconds < 10
    told = run.texts("violations")
    for place in ("PCI bus: ", "kernel driver: ", "device nodes: ", "NVML: "):
        assert place in told
        assert place in run.cases()["gpu.present"].result[0].text
    assert (
        "limit = 2; basis: machine.toml declares 2 GPUs" if declared else "limit >= 1; basis: "
    ) in told
    # It is said before the plan is. Nothing was heated, and every other check of the plan is there
    # as one that was not run.
    said, plan, _ = run.out.partition("profile smoke")
    assert plan
    short = "2 of 2 GPUs are not on the PCI bus" if declared else "no GPU is on the PCI bus, and"
    assert said.startswith(short)
    assert "PCI bus: " in said
    assert "the run stops at the first check that fails (--fail-fast" in said
    assert run.ended() == {"gpu.present": "fail"}
    others = {outcome for check, outcome in run.outcomes().items() if check != "gpu.present"}
    assert others == {"skip"}
    assert " not run" in run.out.splitlines()[-1]
    assert ("inventory not declared)" in run.out.splitlines()[-1]) is not declared
    assert (run.path / "machine.toml").is_file() is not declared


def test_what_is_not_missing_is_tested_all_the_same(rig: Rig) -> None:
    rig.machine.write_text('schema = 1\nname = "two cards"\ngpus = 2\n', encoding="utf-8")
    run = rig.accept(only="gpu.present,gpu.device_query,cpu.gemm[[]f64]", burn=None)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    assert run.ended()["gpu.present"] == "fail"
    assert set(run.outcomes()) == set(run.ended()) == {"gpu.present", "cpu.gemm[f64]"}
    assert "without a GPU only processor, RAM, disks and network are tested (--fail-f" in run.out
    assert "UNJUDGED" not in run.out, "what is not on the bus has no number to be named by"
