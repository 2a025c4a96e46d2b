from __future__ import annotations

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


def link(number: int, **changes: Any) -> NvLink:
    values = {"version": "4.0", "speed_gbs": None, "remote_address": None, "remote_kind": None}
    counters = {"replays": None, "recoveries": None, "crc_errors": None}
    return NvLink(number, True, **{**values, **counters, **changes})


def test_a_gpu_that_offers_nothing() -> None:
    assert gpu_counters.read(FakeNvml(), 0, []) == NOTHING


def test_functions_where_there_are_no_fields() -> None:
    assert gpu_counters.read(FakeNvml(1, FUNCTIONS), 0, []) == GpuCounters(
        1, 2, 3, 4, 5, 6, True, False, 7, 0, False, 9, None, None, None
    )


def test_fields_come_first() -> None:
    found = gpu_counters.read(FakeNvml(1, FUNCTIONS, {3: 10, 4: 20, 145: 1, 94: 90}), 0, [])
    assert (found.ecc_corrected, found.ecc_uncorrected, found.ecc_corrected_total) == (10, 20, 3)
    assert (found.remap_failed, found.pcie_replays) == (True, 90)


def test_a_lost_gpu_is_raised() -> None:
    with pytest.raises(Refusal):
        gpu_counters.read(FakeNvml(fields={3: Refusal(LOST)}), 0, [])


def test_every_field_is_one_of_the_binding_s() -> None:
    import pynvml

    assert all(hasattr(pynvml, f"NVML_FI_DEV_{name}") for name in gpu_counters._FIELDS.values())
    assert all(hasattr(pynvml, name) for name in FUNCTIONS)
    own = set(GpuCounters.__slots__) - {"nvlink_replays", "nvlink_recoveries", "nvlink_crc_errors"}
    assert set(gpu_counters._FIELDS) == set(gpu_counters._FUNCTIONS) == own


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


def test_a_field_for_each_link_where_the_scope_is_not_known() -> None:
    assert nvlink.read(Hopper({46: 5}), 0)[0] == link(0, replays=5)


def test_a_gpu_without_links() -> None:
    nvml = FakeNvml()
    assert nvlink.read(nvml, 0) == ()
    assert nvml.asked_fields == []


@pytest.mark.parametrize("bus_id", ["", "FFFFFFFF:FF:FF.0"])
def test_another_end_that_is_not_to_be_seen(bus_id: str) -> None:
    nvml = Hopper(answers={"nvmlDeviceGetNvLinkRemotePciInfo": pci(bus_id)})
    assert [one.remote_address for one in nvlink.read(nvml, 0)] == [None, None, None]


@each("kind, word", [(0, "gpu"), (1, "unknown"), (2, "switch"), (255, "unknown"), (7, "unknown")])
def test_kinds_of_other_ends(kind: int, word: str) -> None:
    nvml = Hopper(answers={"nvmlDeviceGetNvLinkRemoteDeviceType": kind})
    assert nvlink.read(nvml, 0)[0].remote_kind == word


def test_a_version_that_nobody_knows_is_absent() -> None:
    assert nvlink.read(Hopper(answers={"nvmlDeviceGetNvLinkVersion": 99}), 0)[0].version is None


def test_versions_and_fields_are_the_binding_s() -> None:
    import pynvml

    for number, version in nvlink._VERSIONS.items():
        assert getattr(pynvml, f"NVML_NVLINK_VERSION_{version.replace('.', '_')}") == number
    for name in (*nvlink._REPLAYS, *nvlink._RECOVERIES, *nvlink._CRC_ERRORS, *nvlink._SPEED):
        assert hasattr(pynvml, f"NVML_FI_DEV_{name.format(11)}")
    assert pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH == 2


def pci(bus_id: str | bytes) -> Any:
    class Info:
        busId = bus_id

    return Info()
