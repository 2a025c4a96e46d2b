from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from reasons import require

from acceptance.core.parts import MACHINE, Component, Gpu
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import bandwidth_test

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/bandwidthTest"
QUICK, CSV, SHMOO, SUM, TWO_RUNS = (
    (RECORDINGS / name).read_text()
    for name in (
        "quick_12.4.txt",
        "csv_12.4.txt",
        "shmoo_pageable_12.4.txt",
        "all_devices_sum_12.4.txt",
        "two_runs_two_gpus_12.4.txt",
    )
)
HEALTHY = (QUICK, CSV, SHMOO, SUM, TWO_RUNS, (RECORDINGS / "quick_MB_7.5.txt").read_text())
# CUDA 4: host memory in the title, and another last line.
OLD = """[bandwidthTest] starting...
Running on...

 Device 0: Tesla M2090
 Quick Mode

 Host to Device Bandwidth, 1 Device(s), Paged memory
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t4137.1

 Device to Device Bandwidth, 1 Device(s)
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t124325.9

[bandwidthTest] test results...
PASSED
"""


def csv_row(kind: str, size: int, rate: float, unit: str = "GB") -> str:
    return (
        f"bandwidthTest-{kind}, Bandwidth = {rate} {unit}/s, Time = 0.1 s, Size = {size} "
        "bytes, "
        "NumDevsUsed = 1\n"
    )


def csv(*rows: str) -> str:
    """A run of a range of sizes, as rows of `--csv`."""
    return (
        "[CUDA Bandwidth Test] - Starting...\n Device 0: L40S\n Range "
        f"Mode\n{''.join(rows)}Result = PASS\n"
    )


@each("device", [0, 3])
def test_argv(device: int) -> None:
    due = f"bandwidthTest --device={device} --memory=pinned --mode=quick --htod --dtoh --dtod"
    assert bandwidth_test.argv("bandwidthTest", device=device) == tuple(due.split())


def test_there_is_no_gpu_below_0() -> None:
    with pytest.raises(ValueError, match="not -1"):
        bandwidth_test.argv("bandwidthTest", device=-1)


WRITE_COMBINED = " Write-Combined Memory Writes are Enabled"
PAGEABLE = QUICK.replace("PINNED", "PAGEABLE").replace("26.2", "11.2")


@each(
    "text, readings",
    [
        (OLD, {"h2d_pageable": {Gpu(0): 4.1371}, "d2d": {Gpu(0): 124.3259}}),
        *(
            (
                QUICK.replace("   Transfer Size", f"{WRITE_COMBINED}{end}  Transfer Size"),
                {"h2d_wc": {Gpu(0): 26.2}},
            )
            for end in (" ", "\n")
        ),
        (CSV.replace("H2D-Pinned", "H2D-Pinned-WriteCombined"), {"h2d_wc": {Gpu(2): 26.2}}),
        (QUICK + PAGEABLE, {"h2d": {Gpu(0): 26.2}, "h2d_pageable": {Gpu(0): 11.2}}),
        (CSV.replace("D2H-Pinned", "D2H-Paged"), {"d2h_pageable": {Gpu(2): 26.4}}),
        (  # the rate is that of the largest size
            csv(
                csv_row("H2D-Pinned", 1024, 5.5),
                csv_row("H2D-Pinned", 4096, 25.5),
                csv_row("H2D-Pinned", 2048, 45.5),
            ),
            {"h2d": {Gpu(0): 25.5}},
        ),
    ],
)
def test_readings(text: str, readings: dict[str, dict[Component, float]]) -> None:
    output = bandwidth_test.parse(text)
    require(output, "pass")
    for name, values in readings.items():
        assert output.reading(f"bandwidth_test_{name}") == pytest.approx(values)


@each(
    "text, reason, whose",
    [
        (QUICK, "gpu0 (NVIDIA L40S): h2d 26.2 GB/s, d2h 26.4 GB/s, d2d 3105 GB/s", Gpu(0)),
        (SUM, "sum over 4 GPUs, not one's rate: h2d 104.9 GB/s", MACHINE),
    ],
)
def test_a_pass_names_the_gpus_and_their_rates(text: str, reason: str, whose: Component) -> None:
    output = bandwidth_test.parse(text)
    require(output, "pass", reason)
    assert set(output.reading("bandwidth_test_d2h")) == {whose}


@each(
    "text",
    [
        f'Device 0: "Tesla K20c"\nResult = PASS\n$ ./bandwidthTest\n{QUICK}$ other\n 0 913.21\n',
        QUICK.replace("Result = PASS", "Result = PASS \uff08ok\uff09"),
    ],
)
def test_text_before_and_after_is_no_matter(text: str) -> None:
    assert bandwidth_test.parse(text) == bandwidth_test.parse(QUICK)


@each(
    "text, reason",
    [
        (QUICK.replace("Result = PASS", ""), "'Result =' is missing"),
        (QUICK.replace("Result = PASS", "Result = FAIL"), "not why"),
        (QUICK.replace(" Device 0: NVIDIA L40S\n", ""), "'Device N:' is missing"),
        (QUICK.replace("   32000000\t\t\t26.2\n", ""), "h2d has no row"),
        (QUICK.replace(" PINNED Memory Transfers\n", ""), "PINNED or PAGEABLE"),
        (
            "".join(QUICK.rsplit(" PINNED Memory Transfers\n", 1)),
            "d2d does not say PINNED or PAGEABLE",
        ),
        (
            OLD.replace(", Paged memory", "").replace(
                "\n Device to Device",
                "\n Device to Host Bandwidth, 1 Device(s), Paged memory\n"
                "   Transfer Size (Bytes)\tBandwidth(MB/s)\n   33554432\t\t\t4137.1\n\n Device to "
                "Device",
            ),
            "h2d does not say PINNED or PAGEABLE",
        ),
        (csv(csv_row("H2D", 1024, 5.5)), "h2d does not say PINNED or PAGEABLE"),
        (csv(csv_row("D2D", 1024, 0.0), csv_row("D2D", 2048, 5.5)), "0 GB/s"),
        (QUICK.replace("26.2", "0.0"), "0 GB/s"),
        (QUICK.replace("32000000\t\t\t26.2", "3200000\t\t\t26.2"), "different sizes"),
        (QUICK.replace("Bandwidth, 1 Dev", "Bandwidth, 2 Dev"), "2 devices and 1 are named"),
        (SUM.replace(" Device 3: NVIDIA L40S\n", ""), "4 devices and 3 are named"),
        (SHMOO.replace("68000000", "6800000"), "ends at 64000000 bytes"),
        (SHMOO.replace("Shmoo", "Quick"), "quick mode has not"),
        (QUICK[: QUICK.index(" Host")] + "Result = PASS\n", "measured nothing"),
        (
            (
                "[CUDA Bandwidth Test] - Starting...\nInvalid memory mode - valid modes are "
                "pageable or pinned\nResult = FAIL\n"
            ),
            "Invalid",
        ),
        (
            "[CUDA Bandwidth Test] - Starting...\n!!!!!No devices found!!!!!\nResult = FAIL\n",
            "no GPU",
        ),
        (
            (
                "[CUDA Bandwidth Test] - Starting...\ncudaGetDeviceCount returned 802\n-> system "
                "not yet initialized\n"
            ),
            "fabric",
        ),
        (
            QUICK.replace(
                " Quick Mode", "Error: device is running in <Compute Mode Prohibited>, no threads"
            ),
            "compute mode",
        ),
    ],
)
def test_error(text: str, reason: str) -> None:
    output = bandwidth_test.parse(text)
    require(output, "error", reason)
    assert output.readings == ()


@each(
    "text",
    [
        "",
        "hello",
        "Result = PASS",
        " Device 0: NVIDIA L40S\nResult = PASS\n",
        QUICK + QUICK,
        QUICK + QUICK.partition("\n")[2],
        QUICK.replace(" Device 0: NVIDIA L40S\n", " Device 0: NVIDIA L40S\n" * 2),
        QUICK.replace("Result =", " Device 1: NVIDIA L40S\nResult ="),
        csv(csv_row("H2D-Pinned", 1024, 5.5), csv_row("H2D-Pinned", 2048, 5.5, "MB")),
        csv(
            csv_row("H2D-Pinned", 1024, 5.5),
            csv_row("H2D-Pinned", 2048, 5.5).replace("= 1\n", "= 2\n"),
        ),
        QUICK.replace("26.2", "nan"),
        QUICK.replace("26.2", "26"),
        QUICK.replace("26.2", ""),
        QUICK.replace("26.2", "9" * 400 + ".0"),
        QUICK.replace(" Host to Device Bandwidth, 1 Device(s)\n", ""),
        QUICK.replace(" Host to Device Bandwidth, 1 Device(s)", " Host to Device Bandwidth, 1 Dev"),
        QUICK.replace(" Device to Host Bandwidth, 1 Device(s)\n", ""),
        QUICK.replace("   Transfer Size (Bytes)\tBandwidth(GB/s)\n", "", 1),
        QUICK.replace(" PINNED Memory Transfers\n", " PINNED Memory Transfers\n" * 2),
        QUICK.replace(
            "   Transfer Size (Bytes)\tBandwidth(GB/s)\n",
            "   Transfer Size (Bytes)\tBandwidth(GB/s)\n" * 2,
        ),
        QUICK.replace("Device to Host", "Host to Device"),
        QUICK.replace("Result = PASS", "Result = PASS\nResult = FAIL"),
        QUICK.replace("Result = PASS", "Result = PERHAPS"),
        "   Transfer Size (Bytes)\tBandwidth(GB/s)\n" + QUICK.partition("\n")[2],
        CSV.replace("26.2 GB/s", "26.2 GiB/s"),
        CSV.replace("D2H-Pinned", "H2D-Pinned").replace("26.4 GB", "26.4 MB"),
        CSV.replace("D2H-Pinned", "H2D-Pinned"),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        bandwidth_test.parse(text)
