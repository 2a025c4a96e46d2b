from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, FakeNvml, Refusal

from acceptance.machine.inventory import GpuCounters, NvLink
from acceptance.observe import gpu_counters, nvlink

NOTHING = GpuCounters(*[None] * 15)
FUNCTIONS: dict[Any, Any] = {
    "nvmlDeviceGetTotalEccErrors": {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4},
    "nvmlDeviceGetRemappedRows": (5, 6, 1, 0),
    "nvmlDeviceGetRetiredPages": {0: [1] * 7, 1: []},
    "nvmlDeviceGetRetiredPagesPendingStatus": 0,
    "nvmlDeviceGetPcieReplayCounter": 9,
}


class Hopper(FakeNvml):
    """A binding with every field, and three links of which one is down."""

    NVML_NVLINK_MAX_LINKS = 4

    def __init__(
        self, fields: dict[Any, Any] | None = None, answers: dict[Any, Any] | None = None
    ) -> None:
        states = {"nvmlDeviceGetNvLinkState": {0: 1, 1: 0, 3: 1}, "nvmlDeviceGetNvLinkVersion": 6}
        super().__init__(1, {**states, **(answers or {})}, fields)


def pci(bus_id: str | bytes) -> SimpleNamespace:
    return SimpleNamespace(busId=bus_id)


def link(number: int, **changes: Any) -> NvLink:
    values = {"version": "4.0", "speed_gbs": None, "remote_address": None, "remote_kind": None}
    counters = {"replays": None, "recoveries": None, "crc_errors": None}
    return NvLink(number, True, **{**values, **counters, **changes})


BY_FUNCTION = GpuCounters(1, 2, 3, 4, 5, 6, True, False, 7, 0, False, 9, None, None, None)


@each(
    "nvml, counters",
    [
        (FakeNvml(), NOTHING),
        (FakeNvml(1, FUNCTIONS), BY_FUNCTION),
        (
            FakeNvml(1, FUNCTIONS, {3: 10, 4: 20, 145: 1, 94: 90}),
            replace(
                BY_FUNCTION,
                ecc_corrected=10,
                ecc_uncorrected=20,
                remap_failed=True,
                pcie_replays=90,
            ),
        ),
    ],
    told=["a GPU that offers nothing", "functions where there are no fields", "fields come first"],
)
def test_counters(nvml: FakeNvml, counters: GpuCounters) -> None:
    assert gpu_counters.read(nvml, 0, []) == counters


def test_a_lost_gpu_is_raised() -> None:
    with pytest.raises(Refusal):
        gpu_counters.read(FakeNvml(fields={3: Refusal(LOST)}), 0, [])


# --- links ---


def test_sums_are_over_links_that_all_tell() -> None:
    nvml = Hopper({(161, 0): 1, (161, 3): 2, (162, 0): 4, (163, 0): 8, (163, 3): 16})
    found = gpu_counters.read(nvml, 0, [0, 3])
    assert (found.nvlink_replays, found.nvlink_recoveries, found.nvlink_crc_errors) == (3, None, 24)


def test_links_that_exist() -> None:
    nvml = Hopper(
        {(161, 0): 1, (162, 0): 2, (163, 0): 3, (164, 0): 26562, 46: 99},
        {
            "nvmlDeviceGetNvLinkRemoteDeviceType": {0: 2, 3: 0},
            "nvmlDeviceGetNvLinkRemotePciInfo": {
                0: pci("00000000:A1:00.0"),
                3: pci(b"00000000:02:00.0"),
            },
        },
    )
    switch = {
        "version": "4.0",
        "speed_gbs": 26.562,
        "remote_address": "0000:a1:00.0",
        "remote_kind": "switch",
    }
    assert nvlink.read(nvml, 0) == (
        link(0, **switch, replays=1, recoveries=2, crc_errors=3),
        NvLink(1, False, None, None, None, None, None, None, None),
        link(3, remote_address="0000:02:00.0", remote_kind="gpu"),
    )
    assert len(nvml.asked_fields) == 1


KINDS = {0: "gpu", 1: "unknown", 2: "switch", 255: "unknown", 7: "unknown"}


@each(
    "fields, answers, first",
    [
        ({46: 5}, {}, link(0, replays=5)),
        ({}, {"nvmlDeviceGetNvLinkRemotePciInfo": pci("")}, link(0)),
        ({}, {"nvmlDeviceGetNvLinkRemotePciInfo": pci("FFFFFFFF:FF:FF.0")}, link(0)),
        *(
            ({}, {"nvmlDeviceGetNvLinkRemoteDeviceType": kind}, link(0, remote_kind=word))
            for kind, word in KINDS.items()
        ),
        ({}, {"nvmlDeviceGetNvLinkVersion": 99}, link(0, version=None)),
    ],
)
def test_one_link(fields: dict[Any, Any], answers: dict[Any, Any], first: NvLink) -> None:
    """A field for each link where the scope is not known; other ends; versions nobody knows."""
    assert nvlink.read(Hopper(fields, answers), 0)[0] == first


def test_a_gpu_without_links() -> None:
    nvml = FakeNvml()
    assert nvlink.read(nvml, 0) == ()
    assert nvml.asked_fields == []
