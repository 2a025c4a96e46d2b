"""A description that the fake library does not understand wholly is refused, with its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_driver
import pytest
from cases import each

GPU: dict[str, Any] = {
    "uuid": "GPU-0",
    "pci_bus_id": "00000000:01:00.0",
    "energy_j": 0.5,
    "ecc_corrected": 0,
}
STEP = {"after_s": 1.0, "gpu": 0, "set": {"power_w": 1.0}}


def with_gpu(**more: Any) -> dict[str, Any]:
    return {"synthetic": True, "gpus": [{**GPU, **more}]}


def with_steps(*steps: dict[str, Any]) -> dict[str, Any]:
    return {**with_gpu(links=[{"link": 0, "active": True}]), "timeline": list(steps)}


def with_pairs(pairs: Any) -> dict[str, Any]:
    second = {**GPU, "uuid": "GPU-1", "pci_bus_id": "00000000:02:00.0"}
    return {"synthetic": True, "gpus": [GPU, second], "pairs": pairs}


TEXTS = {
    "": "another value was expected",
    "[1, 2]": "an object was expected",
    '{"synthetic": true,}': "a text in quotes was expected",
    '{"synthetic": true, "synthetic": true}': "a key is there twice",
    '{"synthetic": true "gpus": []}': "a comma or a closing brace",
    '{"synthetic" true}': "a colon was expected",
    '{"synthetic": True}': "another value was expected",
    '{"synthetic": true, "gpus": []} {}': "something follows the document",
    '{"synthetic": true, "gpus": [1 2]}': "a comma or a closing bracket",
    '{"synthetic": true, "gpus": [01]}': "a number or another value was expected",
    '{"synthetic": true, "gpus": [1.]}': "a digit is missing after the point",
    '{"synthetic": true, "gpus": [1e]}': "a digit is missing in the exponent",
    '{"synthetic": true, "gpus": [1e999]}': "a number is too large",
    '{"synthetic": true, "gpus": [NaN]}': "another value was expected",
    '{"synthetic": true, "source": "\\q"}': "an unknown escape",
    '{"synthetic": true, "source": "\u00e9"}': "not printable ASCII",
    '{"synthetic": true, "source': "the file ends within a text",
    "[" * 100: "nested too deeply",
    '{"synthetic": true,\n}': ".json:2: a text in quotes",
    '{"synthetic": true, "gpus": [],\n\n"driver": 1}': "line 3: driver: unknown key",
}
DOCUMENTS: list[tuple[Any, str]] = [
    ({"synthetic": True}, "the key gpus must be a list"),
    ({"gpus": []}, "says whether it is synthetic"),
    ({"synthetic": True, "gpus": [], "driver": "1"}, "driver: unknown key"),
    ({"synthetic": 1, "gpus": []}, "synthetic: true or false"),
    ({"synthetic": True, "gpus": [], "init_error": 0}, "init_error: the number is outside"),
    (
        {"synthetic": True, "gpus": [], "refuse": {"nvmlDeviceGetNothing": 3}},
        "no function of this library",
    ),
    ({"synthetic": True, "gpus": [], "refuse": {"field 400": 3}}, "no function of this library"),
    ({"synthetic": True, "gpus": [], "refuse": {"nvmlInit_v2": 0}}, "outside its range"),
    ({"synthetic": True, "gpus": [{"uuid": "GPU-0"}]}, "at least a uuid and a pci_bus_id"),
    (with_gpu(pci_bus_id="0000:01:00.0"), "a pci_bus_id like 00000000:01:00.0"),
    (with_gpu(pci_device_id="2684"), "ids are like 10de:2684"),
    (with_gpu(compute_capability="9"), "a compute_capability is like 9.0"),
    (with_gpu(temprature_c=40), "temprature_c: unknown key"),
    (with_gpu(temperature_c=40.5), "temperature_c: a whole number was expected"),
    (with_gpu(cuda_cores=-1), "cuda_cores: the number is outside its range"),
    (with_gpu(cuda_cores="16384"), "cuda_cores: a whole number was expected"),
    (with_gpu(power_w="21 W"), "power_w: a number was expected"),
    (with_gpu(persistence=1), "persistence: true or false was expected"),
    (with_gpu(compute_mode="exclusive"), "compute_mode: an unknown word"),
    (with_gpu(clock_event_reasons="gpu-idle"), "a list of words was expected"),
    (with_gpu(clock_event_reasons=["idle"]), "an unknown word"),
    (with_gpu(serial=5), "serial: a text was expected"),
    (with_gpu(cpu_affinity=[[4, 2]]), "outside its range"),
    (with_gpu(cpu_affinity="0-3"), "a list of numbers, or of"),
    (with_gpu(compute_processes=[{"name": "x"}]), "an object with at least a pid"),
    (with_gpu(compute_processes=[{"pid": 5, "memory": 1}]), "memory: unknown key"),
    (with_gpu(links=[{"active": True}]), "at least the key link"),
    (with_gpu(links=[{"link": 0}]), "says whether it is active"),
    (with_gpu(links=[{"link": 36, "active": True}]), "outside its range"),
    (with_gpu(links=[{"link": 0, "active": True, "speed_gbs": 25}]), "speed_gbs: unknown key"),
    (with_gpu(links=[{"link": 0, "active": True, "version": "4"}]), "version: an unknown word"),
    (with_pairs({"1,0": {"path": "PIX"}}), "the lower one first"),
    (with_pairs({"0,2": {"path": "PIX"}}), "two GPUs that are described"),
    (with_pairs({"0,1": {"path": "NV4"}}), "path: an unknown word"),
    (with_pairs({"0,1": {"p2p_read": "ok"}}), "p2p_read: unknown key"),
    (with_steps({"set": {"power_w": 1.0}}), "steps say after_s"),
    (with_steps({"after_s": 2.0, "gpu": 0, "xid": 79}, STEP), "in order of time"),
    (with_steps({"after_s": 2.0, "gpu": 1, "xid": 79}), "gpu: the number is outside"),
    (with_steps({"after_s": 2.0, "xid": 79}), "an xid needs its gpu"),
    (with_steps({"after_s": 2.0}), "nothing happens in this step"),
    (with_steps({**STEP, "lost": True}), "lost: unknown key"),
    (with_steps({**STEP, "set": {"power": 1.0}}), "power: unknown key"),
    (with_steps({**STEP, "grow": {"temperature_c": 1.0}}), "of a reading that is described"),
    (with_steps({**STEP, "grow": {"persistence": 1.0}}), "only a number can grow"),
    (
        with_steps({**STEP, "grow": {"links": [{"link": 0, "replays": 1.0}]}}),
        "of a reading that is described",
    ),
    (with_steps({**STEP, "grow": {"links": [{"link": 0, "errors": 1.0}]}}), "errors: unknown key"),
]


# Each description in a process of its own, as the library reads one only, but without starting
# Python for each.
PROGRAM = """
import ctypes, json, os, sys
for variables, complaints in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(complaints, os.O_CREAT | os.O_WRONLY), 2)
        os.environ |= variables
        os._exit(0 if ctypes.CDLL(sys.argv[1]).nvmlInit_v2() == 999 else 1)
    assert os.waitpid(child, 0)[1] == 0, variables
"""
DESCRIPTION, EPOCH = "RIGPROOF_FAKE_NVML", "RIGPROOF_FAKE_NVML_EPOCH"
SETTINGS: list[tuple[dict[str, str], str]] = [
    ({}, "names no description"),
    ({DESCRIPTION: str(fake_driver.description("2x4090")), EPOCH: "soon"}, "is not a number of s"),
    ({DESCRIPTION: "/there/is/none.json"}, "No such file"),
]
REFUSED = [*TEXTS.values(), *(why for _, why in DOCUMENTS), *(why for _, why in SETTINGS)]


@pytest.fixture(scope="module")
def complaints(library: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the library says of each of TEXTS, DOCUMENTS and SETTINGS, all of which it refuses."""
    folder = tmp_path_factory.mktemp("refused")
    settings = []
    for number, text in enumerate((*TEXTS, *(json.dumps(one) for one, _ in DOCUMENTS))):
        path = folder / f"{number}.json"
        path.write_text(text, encoding="utf-8")
        settings.append({DESCRIPTION: str(path)})
    settings += [variables for variables, _ in SETTINGS]
    told = [str(folder / f"{number}.stderr") for number in range(len(settings))]
    argv = [sys.executable, "-I", "-S", "-c", PROGRAM, str(library / fake_driver.LIBRARY)]
    given = json.dumps(list(zip(settings, told, strict=True)))
    subprocess.run(argv, input=given, text=True, check=True)
    return [Path(one).read_text(encoding="utf-8") for one in told]


@each("number, why", list(enumerate(REFUSED)))
def test_what_is_not_understood_is_refused(complaints: list[str], number: int, why: str) -> None:
    assert why in complaints[number]
