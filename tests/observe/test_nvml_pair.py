from __future__ import annotations

import pytest
from cases import each
from fake_nvml import LOST, FakeNvml, Refusal

from acceptance.machine.inventory import NvmlPair
from acceptance.observe import nvml_pair


def test_a_pair_that_tells_everything() -> None:
    answers = {
        "nvmlDeviceGetTopologyCommonAncestor": 50,
        "nvmlDeviceGetP2PStatus": {
            (1, 0): 0,
            (1, 1): 4,
            (1, 2): 5,
            (0, 0): 1,
            (0, 1): 2,
            (0, 2): 3,
        },
    }
    assert nvml_pair.read(FakeNvml(2, answers), [0, 1], [True, True]) == (
        NvmlPair(0, 1, "SYS", "ok", "disabled-by-regkey", "not-supported"),
        NvmlPair(
            1, 0, "SYS", "chipset-not-supported", "gpu-not-supported", "topology-not-supported"
        ),
    )


@each(
    "level, path",
    [(0, "INTERNAL"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS"), (60, None)],
)
def test_paths(level: int, path: str | None) -> None:
    nvml = FakeNvml(2, {"nvmlDeviceGetTopologyCommonAncestor": level})
    assert {pair.path for pair in nvml_pair.read(nvml, [0, 1], [True, True])} == {path}


@pytest.mark.parametrize("number", [6, 77])
def test_states_that_nobody_knows(number: int) -> None:
    nvml = FakeNvml(2, {"nvmlDeviceGetP2PStatus": number})
    assert {pair.p2p_read for pair in nvml_pair.read(nvml, [0, 1], [True, True])} == {"unknown"}


def test_a_gpu_that_is_lost_meanwhile_leaves_its_pairs_empty() -> None:
    nvml = FakeNvml(2, {"nvmlDeviceGetP2PStatus": Refusal(LOST)})
    assert {pair.p2p_read for pair in nvml_pair.read(nvml, [0, 1], [True, True])} == {None}


def test_no_pair_with_a_gpu_that_does_not_answer() -> None:
    assert nvml_pair.read(FakeNvml(2), [0, None], [True, False]) == ()
