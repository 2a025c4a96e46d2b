"""The checks of the links' data rates over tools that print what they are given: what is measured
a second time, what a fault leaves of the other GPUs, and what proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gpu_texts
import pytest
from gpu_machine import device, machine, pairs, uuid
from suite_box import Said, ask, planned
from test_gpu_tools import Programs

from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.tools import Tools
from acceptance.suites import link

HOST = {
    "host_to_device_memcpy_ce": [25.1, 25.2],
    "device_to_host_memcpy_ce": [26.1, 26.2],
    "host_to_device_bidirectional_memcpy_ce": [20.1, 20.2],
    "device_to_host_bidirectional_memcpy_ce": [21.1, 21.2],
}
TWO = machine(device(0), device(1))
VM = replace(TWO, cpu=replace(TWO.cpu, virtualised=True))
CHECKS: Mapping[str, Callable[..., None]] = {
    "link.host_copies": link.test_host_copies,
    "link.device_alone": link.test_device_alone,
    "link.peer_copies": link.test_peer_copies,
    "link.bandwidth_test": link.test_bandwidth_test,
    "link.p2p": link.test_p2p,
}


def alone(figures: Mapping[str, Sequence[float]]) -> list[str]:
    """nvbandwidth of each GPU alone."""
    return [gpu_texts.nvbandwidth_alone(index, figures) for index in range(2)]


FIRST, SECOND = alone(HOST)
GOOD, SLOW = gpu_texts.bandwidth_test(0), gpu_texts.bandwidth_test(0, h2d=12.5)
P2P_ECC = "Cuda failure p2pBandwidthLatencyTest.cu:222: 'uncorrectable ECC error encountered'\n"


def said(check: str, *texts: str, seen: Inventory = TWO) -> tuple[Said, list[str]]:
    """What a check says of tools that print these, one after the other, and which GPUs each saw."""
    programs = Programs(*texts)
    given: dict[str, Any] = {"tools": Tools(programs, seen), "due_gpus": gpus(seen)}
    if check in ("link.host_copies", "link.bandwidth_test"):
        given["inventory"] = seen
    made = planned(seen, (Gpu(0), Gpu(1)), (check,), "d")
    found = ask(made, check, CHECKS[check], **given)
    return found, [one["CUDA_VISIBLE_DEVICES"] for one in programs.environments]


@pytest.mark.parametrize(
    ("seen", "due", "missing"),
    [
        (
            machine(device(0)),
            {"link.host_copies", "link.bandwidth_test", "burn.gpu_burn[float]"},
            {"link.p2p", "link.peer_copies", "link.paths", "link.nvlinks"},
        ),
        # GPUs that do not reach each other owe no copies between them.
        (
            machine(device(0), device(1), found=pairs(2, "not-supported", "not-supported")),
            {"link.p2p"},
            {"link.peer_copies"},
        ),
    ],
)
def test_what_is_due_between_gpus(seen: Inventory, due: set[str], missing: set[str]) -> None:
    made = planned(seen, [gpu.name for gpu in gpus(seen)], ("link", "burn"), "d")
    ids = {check.id for check in made.checks}
    assert (due - ids, missing & ids) == (set(), set())


BEHIND = alone({**HOST, "host_to_device_memcpy_ce": [25.0, 23.0]})


@pytest.mark.parametrize(
    ("check", "texts", "outcome", "noted"),
    [
        ("link.host_copies", [*BEHIND, FIRST, SECOND], "pass", "copy_h2d_ratio"),
        ("link.bandwidth_test", [GOOD, SLOW, GOOD, GOOD], "pass", "bandwidth_test_h2d"),
        ("link.bandwidth_test", [GOOD, SLOW, GOOD, SLOW], "fail", None),
        ("link.host_copies", [gpu_texts.WRONG_DATA, BEHIND[1]], "fail", None),
    ],
)
def test_in_a_vm_what_is_unusual_is_measured_again_but_for_wrong_data(
    check: str, texts: list[str], outcome: str, noted: str | None
) -> None:
    found, shown = said(check, *texts, seen=VM)
    assert (found.outcome, shown) == (outcome, [uuid(0), uuid(1)] * (len(texts) // 2))
    for measurement in ("copy_h2d_ratio", "bandwidth_test_h2d"):
        both = ["gpu0", "gpu1"] if measurement == noted else []
        assert list(found.notes(measurement)) == both


@pytest.mark.parametrize(
    ("check", "texts", "faults", "measurement", "left"),
    [
        (
            "link.host_copies",
            [gpu_texts.WRONG_DATA, SECOND],
            {Gpu(0): 1.0, Gpu(1): 0.0},
            "copy_h2d",
            {Gpu(1): 25.2},
        ),
        (
            "link.device_alone",
            [gpu_texts.WRONG_DATA] * 2,
            {Gpu(0): 1.0, Gpu(1): 1.0},
            "copy_local",
            {},
        ),
        ("link.peer_copies", [gpu_texts.WRONG_DATA], {GPUS: 1.0}, "copy_d2d_read", {}),
        (
            "link.bandwidth_test",
            [GOOD, gpu_texts.ECC_UNCORRECTABLE],
            {Gpu(0): 0.0, Gpu(1): 1.0},
            "bandwidth_test_h2d",
            {Gpu(0): 26.2},
        ),
        ("link.p2p", [P2P_ECC], {GPUS: 1.0}, "p2p_gain", {}),
    ],
)
def test_wrong_data_and_broken_memory_fail_and_leave_the_others_figures(
    check: str,
    texts: list[str],
    faults: dict[Component, float],
    measurement: str,
    left: dict[Component, float],
) -> None:
    found, _ = said(check, *texts)
    assert found.outcome == "fail"
    assert found.measured("copy_faults") == faults
    assert found.measured(measurement) == left
    assert len(found.message.splitlines()) == sum(faults.values())
    assert {name for name, _ in found.skipped()} >= {measurement}


WAIVED = json.loads(alone({"host_to_device_memcpy_ce": [25.1, 25.2]})[1])
WAIVED["nvbandwidth"]["testcases"].append({"name": "device_to_host_memcpy_ce", "status": "Waived"})


@pytest.mark.parametrize("text", ["", "no words of it", json.dumps(WAIVED)])
def test_a_run_that_proves_nothing_leaves_the_others_figures(text: str) -> None:
    found, _ = said("link.host_copies", FIRST, text)
    assert (found.outcome, found.skipped()) == ("error", set())
    assert found.message.startswith("gpu1, which its program sees as gpu0: nvbandwidth")
    assert found.measured("copy_faults") == {Gpu(0): 0.0}
    assert found.measured("copy_h2d") == {Gpu(0): 25.1}


def test_a_pair_without_a_figure_is_an_error() -> None:
    figures = {f"device_to_device_memcpy_{way}_ce": [24.1, 24.2] for way in ("read", "write")}
    told = json.loads(gpu_texts.nvbandwidth(2, figures))
    for testcase in told["nvbandwidth"]["testcases"]:
        testcase["bandwidth_matrix"][1][0] = "N/A"
        testcase["sum"] = float(testcase["bandwidth_matrix"][0][1])
    found, _ = said("link.peer_copies", json.dumps(told))
    assert found.outcome == "error"
    assert "copy_d2d_read on gpu1->gpu0" in found.message
