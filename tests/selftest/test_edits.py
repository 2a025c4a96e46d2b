"""A described machine with a fault's edits in it."""

from __future__ import annotations

import pytest

from selftest.edits import edited
from selftest.fault import NvmlEdit

MACHINE = {
    "gpus": [{"uuid": "A"}, {"uuid": "B"}],
    "driver_version": "1",
    "pairs": {"every": {"p2p": "ok"}, "0,1": {"path": "PIX"}},
}


def test_edits_reach_what_they_name_and_leave_the_description_alone() -> None:
    edits = (
        NvmlEdit(gpu=1, set={"link_gen": 3}),
        NvmlEdit(set={"power_w": 10}),
        NvmlEdit(machine=True, set={"driver_version": "2"}),
        NvmlEdit(pair="0,1", set={"p2p": "no"}),
        NvmlEdit(gpu=0, link=11, set={"active": False}),
        NvmlEdit(gpu=0, after_s=9.0, set={"lost": True}, xid=79),
        NvmlEdit(after_s=2.0, grow={"pcie_replays": 5}),
    )
    found = edited(MACHINE, edits, inside=False)
    assert found["gpus"] == [
        {"uuid": "A", "power_w": 10, "links": [{"link": 11, "active": False}]},
        {"uuid": "B", "link_gen": 3, "power_w": 10},
    ]
    assert found["driver_version"] == "2"
    assert found["pairs"]["0,1"] == {"path": "PIX", "p2p": "no"}
    assert found["timeline"] == [
        {"after_s": 2.0, "grow": {"pcie_replays": 5}},
        {"after_s": 9.0, "gpu": 0, "set": {"lost": True}, "xid": 79},
    ]
    assert MACHINE["gpus"] == [{"uuid": "A"}, {"uuid": "B"}]


def test_what_is_only_inside_is_not_seen_on_the_host() -> None:
    edit = (NvmlEdit(remove_gpus=(0,), inside=True),)
    assert len(edited(MACHINE, edit, inside=False)["gpus"]) == 2
    found = edited(MACHINE, edit, inside=True)
    assert found["gpus"] == [{"uuid": "B"}]
    assert found["pairs"] == {"every": {"p2p": "ok"}}


def test_a_gpu_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no GPU 5 in a machine of 2"):
        edited(MACHINE, (NvmlEdit(gpu=5, set={"lost": True}),), inside=False)
