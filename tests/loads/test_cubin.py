from __future__ import annotations

import pytest
from cases import each

from acceptance.loads.card import ARCHITECTURES, target
from acceptance.loads.program import LoadError

KNOWN = [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120]  # NVRTC 12.8


@each(
    "capability, due",
    [
        ((7, 0), 70),
        ((8, 0), 80),
        ((8, 6), 86),
        ((8, 9), 89),
        ((9, 0), 90),
        ((10, 0), 100),
        ((10, 3), 100),
        ((12, 1), 120),
    ],
)
def test_the_gpus_own_architecture_or_its_newest_forerunner(
    capability: tuple[int, int], due: int
) -> None:
    assert target(capability, KNOWN) == due


def test_every_architecture_that_is_tested_has_one() -> None:
    assert all(target(capability, KNOWN) // 10 == capability[0] for capability in ARCHITECTURES)


def test_a_gpu_newer_than_all_is_told_with_the_cure() -> None:
    with pytest.raises(
        LoadError,
        match=r"up to sm_120 and none for compute capability 13\.0: use an image with a newer CUDA",
    ):
        target((13, 0), KNOWN)
    with pytest.raises(LoadError, match=r"none for compute capability 7\.0"):
        target((7, 0), [75, 80])
