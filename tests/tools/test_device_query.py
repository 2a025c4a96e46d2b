from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from reasons import require

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import device_query
from acceptance.tools.device_query import Device

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/deviceQuery"
TWO = (RECORDINGS / "two_gpus_12.8.txt").read_text()
OLD = (RECORDINGS / "one_gpu_6.5.txt").read_text()
UNKNOWN = (RECORDINGS / "unknown_gpu_11.4.txt").read_text()


def test_devices() -> None:
    first, second = device_query.devices(TWO)
    assert first == Device(
        index=0,
        name="NVIDIA H100 80GB HBM3",
        compute_capability="9.0",
        memory_mib=81090,
        memory_bytes=85029158912,
        sm=132,
        cuda_cores=16896,
        max_clock_mhz=1980.0,
        memory_clock_mhz=2619.0,
        bus_bits=5120,
        l2_bytes=52428800,
        ecc_enabled=True,
        pci_address="0000:1b:00.0",
        driver_version="12.8",
        runtime_version="12.8",
    )
    assert (second.index, second.pci_address) == (1, "0000:c1:00.0")


VERY_OLD = (
    OLD.replace("Detected 1", "Found 1")
    .replace(") Multiprocessors, (", ") Multiprocessors x (")
    .replace(
        "GPU Clock rate:                                745 MHz (0.74 GHz)",
        "GPU Clock Speed:    0.74 GHz",
    )
    .replace(
        "Device has ECC support:                        Enabled",
        "Device has ECC support enabled:   No",
    )
    .replace("Result = PASS", "[deviceQuery] test results...\nPASSED")
)


@each(
    "text, told",
    [
        (OLD, {"pci_address": "82:00.0", "max_clock_mhz": 745.0, "ecc_enabled": True}),
        (VERY_OLD, {"sm": 15, "max_clock_mhz": 740.0, "ecc_enabled": False}),
        # what is guessed or unknown is absent
        (UNKNOWN, dict.fromkeys(("cuda_cores", "memory_clock_mhz", "bus_bits"))),
        (
            OLD.replace("(192) CUDA Cores/MP:     2880", "( -1) CUDA Cores/MP:     -15"),
            {"cuda_cores": None},
        ),
        # numbers at their bounds
        (OLD.replace("130 / 0", "255 / 31"), {"pci_address": "ff:1f.0"}),
        (
            TWO.replace("81090 MBytes (85029158912", f"81090 MBytes ({81091 << 20}", 1),
            {"memory_bytes": 81091 << 20},
        ),
    ],
)
def test_the_first_device_of_other_texts(text: str, told: dict[str, object]) -> None:
    first = device_query.devices(text)[0]
    assert {name: getattr(first, name) for name in told} == told


@pytest.mark.parametrize("line", ["Detected 2 CUDA Capable device(s)", "NumDevs = 2"])
def test_a_line_that_comes_once_and_comes_twice_is_two_runs(line: str) -> None:
    with pytest.raises(UnreadableOutput, match="a line that comes once comes twice"):
        device_query.parse(f"{TWO}\n{line}\n")


def test_two_drivers_in_one_text() -> None:
    other = TWO.replace("CUDA Driver Version = 12.8", "CUDA Driver Version = 11.8")
    with pytest.raises(
        UnreadableOutput, match=r"driver is for CUDA 12\.8, and the last line 11\.8"
    ):
        device_query.parse(other)


def test_what_no_gpu_gives_is_no_reading() -> None:
    text = "".join(
        line
        for line in OLD.splitlines(keepends=True)
        if "Clock rate" not in line and "L2 Cache" not in line
    )
    names = {reading.name for reading in device_query.parse(text).readings}
    assert names == {"device_query_count", "device_query_sm", "device_query_memory"}


@each("missing", ["GPU Clock", "L2 Cache", "Device has ECC", "CUDA Driver Version / Runtime"])
def test_what_a_version_does_not_print_is_none(missing: str) -> None:
    text = "\n".join(line for line in OLD.split("\n") if missing not in line)
    (gpu,) = device_query.devices(text)
    assert None in (gpu.max_clock_mhz, gpu.l2_bytes, gpu.ecc_enabled, gpu.driver_version)
    assert device_query.parse(text).outcome == "pass"


@each(
    "old, new, reason",
    [
        ("Detected 2", "Detected 3", "it detected 3 devices, printed 2 and counts 2"),
        ("NumDevs = 2", "NumDevs = 1", "counts 1"),
        ("Detected 2 CUDA Capable device(s)\n", "", "'Detected' is missing"),
        ("NumDevs = 2", "", "'NumDevs =' is missing"),
        ("Result = PASS\n", "", "'Result =' is missing"),
        ("Result = PASS", "Result = FAIL", "not why"),
        (
            "  Memory Bus Width:                              5120-bit\n",
            "",
            "device 0 has no line 'bus bits'",
        ),
        (
            "  Total amount of global memory:                 81090 MBytes (85029158912 bytes)\n",
            "",
            "'Total amount of global",
        ),
    ],
)
def test_error(old: str, new: str, reason: str) -> None:
    assert old in TWO
    text = TWO.replace(old, new, 1)
    output = device_query.parse(text)
    require(output, "error", reason)
    assert output.readings == ()
    with pytest.raises(UnreadableOutput, match="deviceQuery: "):
        device_query.devices(text)


LOST = (
    "CUDA error at deviceQuery.cpp:240 code=214(cudaErrorECCUncorrectable) "
    '"cudaDeviceCanAccessPeer()"\n'
)
NONE = "Detected 0 CUDA Capable device(s)\ndeviceQuery, NumDevs = 0\nResult = PASS\n"


@each(
    "text, outcome, reason",
    [
        *(
            (
                f"./deviceQuery Starting...\n\ncudaGetDeviceCount returned {code}\n-> words\n"
                "Result = FAIL\n",
                "error",
                f"{code} (words)",
            )
            for code in (3, 35, 38, 46, 100, 802, 803, 804, 999, 4711)
        ),
        (TWO.partition("> Peer")[0] + LOST, "fail", ""),
        (NONE, "error", "no device"),
    ],
)
def test_errors_and_faults(text: str, outcome: str, reason: str) -> None:
    require(device_query.parse(text), outcome, reason)


@each(
    "text",
    [
        "",
        "hello",
        "Result = PASS",
        TWO + TWO,
        "cudaGetDeviceCount returned 38\n-> none\nResult = FAIL\n" + TWO,
        "cudaGetDeviceCount returned 38\n-> none\n" + TWO,
        TWO.replace("Result = PASS", "Result = PERHAPS"),
        TWO.replace('Device 1: "', 'Device 2: "'),
        TWO.replace('Device 1: "NVIDIA H100 80GB HBM3"', 'Device 1: "NVIDIA H1'),
        TWO.replace('Device 0: "NVIDIA H100 80GB HBM3"\n', ""),
        TWO.replace("81090 MBytes (85029158912 bytes)", "81090 MBy", 1),
        TWO.replace("81090 MBytes", "8109 MBytes", 1),
        TWO.replace("81090 MBytes (85029158912 bytes)", "0 MBytes (0 bytes)", 1),
        TWO.replace("85029158912", "9" * 400, 1),
        TWO.replace("16896 CUDA Cores", "16800 CUDA Cores", 1),
        TWO.replace("(132) Multi", "(000) Multi", 1),
        TWO.replace("0 / 193 / 0", "0 / 27 / 0"),
        TWO.replace("0 / 193 / 0", "0 / 256 / 0"),
        TWO.replace("0 / 193 / 0", "0 / 193 / 32"),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        device_query.parse(text)


def test_weather_of_forums() -> None:
    rough = TWO.replace('Device 0: "NVIDIA H100 80GB HBM3"', "Device 0: “NVIDIA H100 80GB HBM3”")
    rough = (
        "\n".join("   " + " ".join(line.split()) for line in rough.split("\n"))
        + "\n[root@node ~]# "
    )
    assert device_query.parse(rough) == device_query.parse(TWO)
