from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cases import each
from fake_nvml import LOST, UNKNOWN, FabricInfo, FakeNvml, Refusal, fabric
from refusal import assert_raises

from acceptance.machine.inventory import GpuCounters, GpuProcess, GpuTraits, NvLink
from acceptance.observe import gpu_counters, gpu_traits, nvlink


def process(pid: int, memory: int | None = 1) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=memory)


H200: dict[Any, Any] = {
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetNumGpuCores": 16896,
    "nvmlDeviceGetMaxClockInfo": {1: 1980, 2: 3201},
    "nvmlDeviceGetMemoryBusWidth": 6016,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkGeneration": 4,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetEnforcedPowerLimit": 650500,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700000,
    "nvmlDeviceGetTemperatureThreshold": {0: 95, 1: 89, 2: 96, 3: 87},
    "nvmlDeviceGetMigMode": [0, 1],
    "nvmlDeviceGetComputeMode": 3,
    "nvmlDeviceGetDisplayActive": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetEccMode": [1, 0],
    "nvmlDeviceGetMemoryAffinity": {(16, 0): [0b10] + [0] * 15},
    "nvmlDeviceGetCpuAffinity": {128: [0b1011, 1] + [0] * 126},
    "nvmlDeviceGetVirtualizationMode": 1,
    "nvmlDeviceGetComputeRunningProcesses_v3": [process(10, 512)],
    "nvmlDeviceGetGraphicsRunningProcesses_v3": [],
}


def read(answers: dict[Any, Any], proc: Path) -> GpuTraits:
    return gpu_traits.read(FakeNvml(1, answers), 0, proc)


def test_a_gpu_that_offers_everything(tmp_path: Path) -> None:
    (tmp_path / "10").mkdir()
    (tmp_path / "10/comm").write_text("python3\n")
    nvml = FakeNvml(1, {**H200, "nvmlDeviceGetGpuFabricInfoV": fabric(3)}, {82: 51})
    nvml.c_nvmlGpuFabricInfo_v2_t = FabricInfo
    assert gpu_traits.read(nvml, 0, tmp_path) == GpuTraits(
        compute_capability="9.0",
        cuda_cores=16896,
        max_sm_clock_mhz=1980.0,
        max_memory_clock_mhz=3201.0,
        memory_bus_bits=6016,
        max_link_gen=5,
        max_link_gen_here=4,
        max_link_width_here=16,
        power_limit_w=650.5,
        power_limit_default_w=700.0,
        max_temperature_c=87.0,
        slowdown_temperature_c=89.0,
        shutdown_temperature_c=95.0,
        memory_max_temperature_c=96.0,
        mig_enabled=False,
        compute_mode="exclusive-process",
        display_active=False,
        persistence=True,
        ecc_enabled=True,
        numa_node=1,
        cpu_affinity=(0, 1, 3, 64),
        fabric_state="completed",
        fabric_status=0,
        virtualised=True,
        compute_processes=(GpuProcess(10, "python3", 512),),
        graphics_processes=(),
        memory_thermometer=True,
        ecc_pending=False,
        mig_pending=True,
    )


def test_a_gpu_that_offers_nothing(tmp_path: Path) -> None:
    assert set(GpuTraits.__slots__) == set(GpuTraits.__dataclass_fields__)
    traits = read({}, tmp_path)
    offered = set(GpuTraits.__slots__) - {"memory_thermometer"}
    assert {getattr(traits, name) for name in offered} == {None}
    assert traits.memory_thermometer is False


@each("code, least, gone", [(3, 0, (None, ())), (UNKNOWN, 1, (None,))])
@each("function", sorted(H200))
def test_one_thing_that_is_not_offered_hides_no_other(
    function: str, code: int, least: int, gone: tuple[object, ...], tmp_path: Path
) -> None:
    """Nor one that is refused for no known reason."""
    less, whole = read({**H200, function: Refusal(code)}, tmp_path), read(H200, tmp_path)
    changed = [name for name in GpuTraits.__slots__ if getattr(less, name) != getattr(whole, name)]
    assert least <= len(changed) <= 4
    assert all(getattr(less, name) in gone for name in changed)


def test_a_lost_gpu_is_raised(tmp_path: Path) -> None:
    assert_raises(Refusal, read, {**H200, "nvmlDeviceGetEccMode": Refusal(LOST)}, tmp_path)


@each(
    "answers, trait, value",
    [
        ({"nvmlDeviceGetMemoryAffinity": {(16, 0): [0b11]}}, "numa_node", None),
        ({"nvmlDeviceGetMemoryAffinity": {(16, 0): [0]}}, "numa_node", None),
        ({"nvmlDeviceGetCpuAffinity": {128: [0]}}, "cpu_affinity", None),
        ({"nvmlDeviceGetComputeMode": 9}, "compute_mode", None),
        (
            {
                "nvmlDeviceGetGraphicsRunningProcesses_v3": Refusal(13),
                "nvmlDeviceGetGraphicsRunningProcesses_v2": [
                    process(11),
                    process(12, None),
                    process(13),
                ],
                ("nvmlSystemGetProcessName", 11): b"/usr/lib/Xorg",
                ("nvmlSystemGetProcessName", 12): Refusal(6),
                ("nvmlSystemGetProcessName", 13): "",
            },
            "graphics_processes",
            (
                GpuProcess(11, "/usr/lib/Xorg", 1),
                GpuProcess(12, None, None),
                GpuProcess(13, None, 1),
            ),
        ),
        (
            {
                "nvmlDeviceGetComputeRunningProcesses_v3": [process(11)],
                "nvmlSystemGetProcessName": Refusal(UNKNOWN),
            },
            "compute_processes",
            (GpuProcess(11, None, 1),),
        ),
    ],
    told=[
        "two NUMA nodes are not one",
        "no NUMA node",
        "no CPU at all is no affinity",
        "a mode that nobody knows is absent",
        "processes of an older driver, and names that nobody tells",
        "a process whose name is refused is still there",
    ],
)
def test_one_trait_alone(
    answers: dict[Any, Any], trait: str, value: object, tmp_path: Path
) -> None:
    assert getattr(read(answers, tmp_path), trait) == value


@each(
    "state, word",
    [(0, "not-supported"), (1, "not-started"), (2, "in-progress"), (3, "completed"), (9, "9")],
)
def test_the_fabric_of_an_older_binding(state: int, word: str | None, tmp_path: Path) -> None:
    nvml = FakeNvml(
        1,
        {
            "nvmlDeviceGetGpuFabricInfoV": Refusal(13),
            "nvmlDeviceGetGpuFabricInfo": fabric(state, 27),
        },
    )
    nvml.c_nvmlGpuFabricInfo_v2_t = nvml.c_nvmlGpuFabricInfo_t = FabricInfo
    traits = gpu_traits.read(nvml, 0, tmp_path)
    assert (traits.fabric_state, traits.fabric_status) == (word, 27)


def test_a_fabric_and_a_thermometer_that_are_refused_are_not_known(tmp_path: Path) -> None:
    answers = {
        **H200,
        "nvmlDeviceGetGpuFabricInfoV": Refusal(UNKNOWN),
        "nvmlDeviceGetGpuFabricInfo": Refusal(UNKNOWN),
    }
    nvml = FakeNvml(1, answers, {82: Refusal(UNKNOWN)})
    nvml.c_nvmlGpuFabricInfo_v2_t = nvml.c_nvmlGpuFabricInfo_t = FabricInfo
    traits = gpu_traits.read(nvml, 0, tmp_path)
    assert (traits.fabric_state, traits.fabric_status, traits.memory_thermometer) == (
        None,
        None,
        None,
    )
    assert traits.fabric_error == "refused"
    assert traits.cuda_cores == 16896


def test_health_that_a_newer_record_failed_to_tell_is_not_one_that_is_not_offered(
    tmp_path: Path,
) -> None:
    def read_fabric(newer: int) -> GpuTraits:
        answers = {
            **H200,
            "nvmlDeviceGetGpuFabricInfoV": Refusal(newer),
            "nvmlDeviceGetGpuFabricInfo": fabric(3),
        }
        nvml = FakeNvml(1, answers)
        nvml.c_nvmlGpuFabricInfo_v2_t = nvml.c_nvmlGpuFabricInfo_t = FabricInfo
        return gpu_traits.read(nvml, 0, tmp_path)

    failed, not_offered = read_fabric(UNKNOWN), read_fabric(25)
    assert failed.fabric_state == not_offered.fabric_state == "completed"
    assert (failed.fabric_error, not_offered.fabric_error) == ("refused", None)


def test_a_gpu_that_is_lost_at_its_fabric(tmp_path: Path) -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetGpuFabricInfoV": Refusal(LOST)})
    nvml.c_nvmlGpuFabricInfo_v2_t = FabricInfo
    assert_raises(Refusal, gpu_traits.read, nvml, 0, tmp_path)


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


def test_a_lost_gpu_is_raised_at_its_counters() -> None:
    assert_raises(Refusal, gpu_counters.read, FakeNvml(fields={3: Refusal(LOST)}), 0, [])


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
