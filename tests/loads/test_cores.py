from __future__ import annotations

import os

import pytest

from acceptance.core import parts
from acceptance.loads.cpu.cores import Core, cores_of
from acceptance.loads.program import LoadError


def test_cores_come_in_the_order_of_their_groups() -> None:
    assert cores_of(
        {"performance": ((0, 1), (2, 3)), "efficiency": ((4,), (5,))}, set(range(6))
    ) == (
        Core("performance", (0, 1)),
        Core("performance", (2, 3)),
        Core("efficiency", (4,)),
        Core("efficiency", (5,)),
    )


def test_a_core_goes_by_its_first_cpu() -> None:
    core = Core("all", (6, 14))
    assert (core.cpu, core.component) == (6, parts.Core(6))


def test_only_the_first_cpu_of_a_core_must_be_allowed() -> None:
    assert len(cores_of({"all": ((0, 9), (1,))}, {0, 1})) == 2
    with pytest.raises(LoadError, match="may not run on CPU 8, 9: name other cores"):
        cores_of({"all": ((0,), (8,), (9,))}, {0, 1})
    assert cores_of({"all": ((min(os.sched_getaffinity(0)),),)})
