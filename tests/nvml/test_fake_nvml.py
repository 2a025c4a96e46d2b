"""The fake library through the real binding: every getter gives back what the description says,
for every description.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import described
import fake_driver
import pytest
from cases import each
from getters import ENDS, FABRIC, FIELDS, LINK_FIELDS, LINK_ROWS, P2P, PATHS, PLAIN, VERSIONS
from questions import INVALID_ARGUMENT, NOT_SUPPORTED, Answer, Question, Session, values
from thoroughness import some

NAMES = sorted(path.stem for path in fake_driver.DESCRIPTIONS.glob("*.json"))
TRIED = some(NAMES, 4)


@dataclass(frozen=True)
class Machine:
    """A description, and a child that asks for it before anything of its timeline has happened."""

    said: described.Machine
    session: Session

    def ask(self, *questions: Question) -> list[Answer]:
        return self.session.ask(*questions)

    def of_each(self, *questions: Question) -> Iterator[tuple[described.Gpu, list[Answer]]]:
        """Every GPU with the answers to questions that get its handle as their first argument."""
        for gpu in self.said.gpus:
            yield gpu, self.ask(*([name, {"gpu": gpu.index}, *rest] for name, *rest in questions))


@pytest.fixture(scope="module")
def machines(library: Path) -> Iterator[dict[str, Machine]]:
    made = {}
    for name in TRIED:
        path = fake_driver.description(name)
        made[name] = Machine(described.read(path), Session(library, path, age_s=-1000.0))
    yield made
    assert {name: machine.session.end() for name, machine in made.items()} == dict.fromkeys(
        TRIED, ""
    )


def every(test: Callable[[Machine], None]) -> Callable[..., None]:
    """The test of each machine."""

    @each("name", TRIED)
    def loop(machines: dict[str, Machine], name: str) -> None:
        test(machines[name])

    return loop


def given(value: Any) -> Answer:
    return {"error": NOT_SUPPORTED} if value is None else {"value": value}


def in_field(value: Any) -> dict[str, Any]:
    return {"code": NOT_SUPPORTED} if value is None else {"code": 0, "value": value}


def made(readings: dict[str, Any], key: str, make: Any) -> Any:
    return make(readings[key]) if key in readings else None


def bits(answer: Answer) -> tuple[int, ...] | None:
    if answer.get("error") == NOT_SUPPORTED:
        return None
    return tuple(
        64 * place + bit
        for place, word in enumerate(answer["value"])
        for bit in range(64)
        if word >> bit & 1
    )


def test_the_index_names_every_description() -> None:
    index = (fake_driver.DESCRIPTIONS / "INDEX.toml").read_text(encoding="utf-8")
    assert len(NAMES) >= 9
    assert [name for name in NAMES if f'path = "{name}.json"' not in index] == []


@every
def test_the_system(machine: Machine) -> None:
    functions = (
        "SystemGetDriverVersion",
        "SystemGetCudaDriverVersion_v2",
        "SystemGetCudaDriverVersion",
        "DeviceGetCount",
    )
    said = machine.said
    wanted = [
        said.driver_version,
        said.cuda_driver_version,
        said.cuda_driver_version,
        len(said.gpus),
    ]
    assert values(machine.ask(*([f"nvml{function}"] for function in functions))) == wanted


@every
def test_every_getter_of_a_gpu(machine: Machine) -> None:
    for gpu, found in machine.of_each(*(question for _, question, _ in PLAIN)):
        wanted = [given(made(gpu.readings, key, make)) for key, _, make in PLAIN]
        named = [(gpu.index, question) for _, question, _ in PLAIN]
        assert list(zip(named, found, strict=True)) == list(zip(named, wanted, strict=True))


@every
def test_handles(machine: Machine) -> None:
    for gpu in machine.said.gpus:
        by_uuid, by_bus, by_short = machine.ask(
            ["nvmlDeviceGetHandleByUUID", gpu.readings["uuid"]],
            ["nvmlDeviceGetHandleByPciBusId", gpu.readings["pci_bus_id"]],
            ["nvmlDeviceGetHandleByPciBusId", gpu.address],
        )
        assert by_uuid == by_bus == by_short == {"value": {"gpu": gpu.index}}


@every
def test_addresses_and_memory(machine: Machine) -> None:
    for gpu, found in machine.of_each(
        ["nvmlDeviceGetPciInfo"],
        ["nvmlDeviceGetMemoryInfo"],
        ["nvmlDeviceGetMemoryInfo", 0x02000028],
    ):
        readings = gpu.readings
        pci, memory, memory_v2 = values(found)
        vendor, device = (int(part, 16) for part in readings["pci_device_id"].split(":"))
        assert (pci["busId"], pci["busIdLegacy"]) == (
            readings["pci_bus_id"],
            readings["pci_bus_id"][4:],
        )
        assert (pci["domain"], pci["bus"], pci["device"]) == (
            0,
            int(gpu.address[5:7], 16),
            int(gpu.address[8:10], 16),
        )
        assert pci["pciDeviceId"] == device << 16 | vendor
        total, used, reserved = (
            readings[f"memory_{part}_bytes"] for part in ("total", "used", "reserved")
        )
        assert memory == {"total": total, "free": total - used - reserved, "used": used + reserved}
        del memory_v2["version"]
        assert memory_v2 == {
            "total": total,
            "reserved": reserved,
            "free": total - used - reserved,
            "used": used,
        }


@every
def test_where_a_gpu_sits_and_who_uses_it(machine: Machine) -> None:
    for gpu, (cpus, near, nodes, compute, graphics, use) in machine.of_each(
        ["nvmlDeviceGetCpuAffinity", 128],
        ["nvmlDeviceGetCpuAffinityWithinScope", 16, 1],
        ["nvmlDeviceGetMemoryAffinity", 16, 0],
        ["nvmlDeviceGetComputeRunningProcesses_v3"],
        ["nvmlDeviceGetGraphicsRunningProcesses"],
        ["nvmlDeviceGetUtilizationRates"],
    ):
        assert (bits(cpus), bits(near), bits(nodes)) == (
            gpu.cpu_affinity,
            gpu.cpu_affinity,
            gpu.memory_affinity,
        )
        for found, processes in (
            (compute, gpu.compute_processes),
            (graphics, gpu.graphics_processes),
        ):
            told = [(one["pid"], one["usedGpuMemory"]) for one in found["value"]]
            assert told == [
                (process["pid"], process["memory_bytes"]) for process in processes or ()
            ]
            for process in processes or ():
                assert machine.ask(["nvmlSystemGetProcessName", process["pid"]]) == [
                    {"value": process["name"]}
                ]
        load = gpu.readings.get("utilisation_percent")
        of_memory = gpu.readings.get("memory_utilisation_percent")
        assert use == given(None if load is None else {"gpu": load, "memory": of_memory})


@every
def test_the_fabric_and_remapped_rows(machine: Machine) -> None:
    keys = ("remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed")
    for gpu, (*records, rows) in machine.of_each(
        ["nvmlDeviceGetGpuFabricInfo", {"fabric": 0}],
        ["nvmlDeviceGetGpuFabricInfoV", {"fabric": 2}],
        ["nvmlDeviceGetGpuFabricInfoV", {"fabric": 3}],
        ["nvmlDeviceGetRemappedRows"],
    ):
        for record in records:
            if "fabric_state" not in gpu.readings:
                assert record == given(None)
            else:
                state, status = record["value"]["state"], record["value"]["status"]
                assert (state, status) == (
                    FABRIC[gpu.readings["fabric_state"]],
                    gpu.readings.get("fabric_status", 0),
                )
        assert rows == given(
            [int(gpu.readings[key]) for key in keys] if keys[0] in gpu.readings else None
        )


@every
def test_every_field(machine: Machine) -> None:
    for gpu, (found, others) in machine.of_each(
        ["nvmlDeviceGetFieldValues", list(FIELDS)], ["nvmlDeviceGetFieldValues", [0, 60, 308, 9999]]
    ):
        told = dict(zip(FIELDS, found["value"], strict=True))
        assert told == {
            field: in_field(made(gpu.readings, key, make)) for field, (key, make) in FIELDS.items()
        }
        codes = [INVALID_ARGUMENT, NOT_SUPPORTED, INVALID_ARGUMENT, INVALID_ARGUMENT]
        assert others["value"] == [{"code": code} for code in codes]


@every
def test_every_link(machine: Machine) -> None:
    for gpu in machine.said.gpus:
        for link in range(19):
            four = machine.ask(
                *(
                    [f"nvmlDeviceGetNvLink{what}", {"gpu": gpu.index}, link]
                    for what in ("State", "Version", "RemoteDeviceType", "RemotePciInfo")
                )
            )
            if gpu.links is None or link not in gpu.links:
                assert (
                    four
                    == [{"error": NOT_SUPPORTED if gpu.links is None else INVALID_ARGUMENT}] * 4
                )
                continue
            own = gpu.links[link]
            assert four[:3] == [
                {"value": int(own["active"])},
                given(made(own, "version", VERSIONS.get)),
                given(made(own, "remote_kind", ENDS.get)),
            ]
            assert four[3].get("value", {}).get("busId") == own.get("remote_address")


@every
def test_the_counters_and_the_speed_of_every_link(machine: Machine) -> None:
    scoped = [(field, link, key) for field, key in LINK_FIELDS.items() for link in range(18)]
    rows = [
        (first + link % 6, link, key)
        for firsts, key in LINK_ROWS.items()
        for link, first in enumerate(firsts[place // 6] for place in range(12))
    ]
    asked = (
        [[field, link] for field, link, _ in scoped]
        + [[field, 0] for field, _, _ in rows]
        + [[91, 0], [52, 0]]
    )
    for gpu, (found,) in machine.of_each(["nvmlDeviceGetFieldValues", asked]):
        if gpu.links is None:
            assert found["value"] == [{"code": NOT_SUPPORTED}] * len(asked)
            continue
        for (field, link, key), told in zip([*scoped, *rows], found["value"][:-2], strict=True):
            beyond = link not in gpu.links
            assert told == (
                {"code": INVALID_ARGUMENT} if beyond else in_field(gpu.links[link].get(key))
            ), (field, link)
        replays = [link["replays"] for link in gpu.links.values() if "replays" in link]
        assert found["value"][-2:] == [
            in_field(len(gpu.links)),
            in_field(sum(replays) if replays else None),
        ]


@every
def test_the_counters_of_links_by_function(machine: Machine) -> None:
    keys = ("replays", "recoveries", "crc_errors", "crc_data_errors", "ecc_errors")
    for gpu in machine.said.gpus:
        for number, link in (gpu.links or {}).items():
            found = machine.ask(
                *(
                    ["nvmlDeviceGetNvLinkErrorCounter", {"gpu": gpu.index}, number, counter]
                    for counter in range(5)
                )
            )
            assert found == [given(link.get(key)) for key in keys]


@every
def test_every_pair(machine: Machine) -> None:
    said = machine.said
    for a, b in itertools.permutations(range(len(said.gpus)), 2):
        both, pair = ({"gpu": a}, {"gpu": b}), said.pair(a, b)
        found = machine.ask(
            ["nvmlDeviceGetTopologyCommonAncestor", *both],
            *(["nvmlDeviceGetP2PStatus", *both, what] for what in (0, 1, 2)),
        )
        states = [given(made(pair, key, P2P.get)) for key in ("p2p", "p2p", "p2p_nvlink")]
        assert found == [given(made(pair, "path", PATHS.get)), *states]
