"""Texts of tools that contradict themselves, each made of a healthy recording:
an error, and never a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from reasons import why_of

from acceptance.core.message import Message
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import bandwidth_test, device_query, gpu_burn, nvbandwidth, p2p_bandwidth
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.reading import ToolOutput
from acceptance.wording import words

RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures/recordings"
TENSOR = "gpu-burn/ok_tensor_2gpu_2024.txt"
H200_BURN = "h200/gpu-burn-float.txt"
ILLEGAL = "\nCUDA error: an illegal memory access was encountered\n"
_WHOLE = RECORDINGS.joinpath("nvbandwidth/h200_x3_v0.8.json.txt").read_text(encoding="utf-8")
JSON = _WHOLE[_WHOLE.index("{") : _WHOLE.index("\ndone {")]
UNCORRECTABLE = "\nCUDA error: uncorrectable ECC error encountered\n"


def recording(name: str) -> str:
    return (RECORDINGS / name).read_text(encoding="utf-8")


@each(
    "name, parse",
    [
        ("h200/bandwidthTest.txt", bandwidth_test.parse),
        ("h200/deviceQuery.txt", device_query.parse),
        (H200_BURN, gpu_burn.parse),
        ("h200/p2pBandwidthLatencyTest.txt", p2p_bandwidth.parse),
        ("h200/nvbandwidth-text.txt", nvbandwidth.parse),
    ],
)
def test_a_cuda_error_beside_a_healthy_text(name: str, parse: Callable[[str], ToolOutput]) -> None:
    assert parse(recording(name)).outcome == "pass"
    assert parse(recording(name) + ILLEGAL).outcome == "error"
    assert parse(recording(name) + UNCORRECTABLE).outcome == "fail"


# --- gpu-burn ---


@each(
    "old, new, why",
    [
        (
            "GPU-00000001-0000-4000-8000-000000000001",
            "GPU-00000000-0000-4000-8000-000000000000",
            "names .* twice",
        ),
        (
            "Burning for 60 seconds.",
            "Burning for 60 seconds.\nBurning for 30 seconds.",
            "burned for 60 and for 30 s",
        ),
        (
            "(23801 MB available",
            "(1024 MB available",
            "device 0 has 24217 MB of memory, 1024 MB of it available",
        ),
        ("with 24214 MB of memory", "with 12288 MB of memory", "which cannot be"),
        (
            "(23759 MB available, using 2560 MB of it), using FLOATS, using Tensor Cores",
            "(23759 MB available, using 2560 MB of it), using FLOATS",
            "some of its devices work in mode",
        ),
        (
            "FLOATS, using Tensor Cores",
            "DOUBLES",
            "uses DOUBLES and a result has the 268435456 bytes of FLOATS",
        ),
    ],
)
def test_gpu_burn(old: str, new: str, why: str) -> None:
    text = recording(TENSOR)
    assert gpu_burn.parse(text).outcome == "pass"
    assert old in text
    found = gpu_burn.parse(text.replace(old, new))
    assert found.outcome == "error"
    assert re.search(why, why_of(found)), why_of(found)


@each(
    "mode, seconds, memory_mb, why",
    [
        ("tensor", 60, 2560, None),
        ("float", 60, 2560, "works in mode tensor, and was to work in mode float"),
        ("tensor", 30, 2560, "burned for 60 s, and was to burn for 30 s"),
        ("tensor", 60, 4096, "uses 2560 MB, and was to use 4096 MB"),
    ],
)
def test_gpu_burn_of_another_run(mode: Mode, seconds: int, memory_mb: int, why: str | None) -> None:
    found = gpu_burn.mismatch(recording(TENSOR), mode=mode, seconds=seconds, memory_mb=memory_mb)
    if why is None:
        # The recording was put together by hand.
        assert found is None or found.code == "burn_rate_false"
    else:
        assert found is not None
        assert why in words.message(found)


# --- deviceQuery ---


def test_device_query_of_two_drivers() -> None:
    text = recording("h200/deviceQuery.txt")
    (driver,) = {device.driver_version for device in device_query.devices(text)}
    changed = text.replace(f"CUDA Driver Version = {driver}", "CUDA Driver Version = 11.8")
    assert changed != text
    with pytest.raises(
        UnreadableOutput, match=f"the driver is for CUDA {driver}, and the last line 11.8"
    ):
        device_query.parse(changed)


# --- nvbandwidth ---


def extremes(**figures: object) -> str:
    document = json.loads(JSON)
    ((_, said),) = document.items()
    said["testcases"][0] |= figures
    return json.dumps(document)


def test_nvbandwidth_extremes_of_its_own_cells() -> None:
    ((_, said),) = json.loads(JSON).items()
    cells = [
        float(one)
        for row in said["testcases"][0]["bandwidth_matrix"]
        for one in row
        if one != "N/A"
    ]
    good = {"min": min(cells), "max": max(cells), "average": sum(cells) / len(cells)}
    assert nvbandwidth.parse(extremes(**good)).outcome == "pass"
    for key in good:
        with pytest.raises(UnreadableOutput, match=rf"says {key} .* and its figures make"):
            nvbandwidth.parse(extremes(**{**good, key: good[key] * 1.5}))
    nothing = [["N/A" for _ in row] for row in said["testcases"][0]["bandwidth_matrix"]]
    assert nvbandwidth.parse(extremes(**good, bandwidth_matrix=nothing, sum=0)).outcome != "pass"


def burn_text(*steps: tuple[float, int, float]) -> str:
    """gpu-burn for ten seconds on one GPU that works and one that shows nothing; (percent,
    products, Gflop/s) of the first.
    """
    head = ["Burning for 10 seconds."]
    for gpu in (0, 1):
        head.append(
            f"Initialized device {gpu} with 24217 MB of memory (23801 MB available, using "
            "512 MB of it), using FLOATS"
        )
        head.append("Results are 268435456 bytes each, thus performing 1 iterations")
    shown = [
        (
            f"{percent:.1f}%  proc'd: {products} ({rate:.0f} Gflop/s) - 0 (0 Gflop/s)   errors: "
            "0 - 0   temps: 47 C - 46 C "
        )
        for percent, products, rate in steps
    ]
    return "\n".join(
        [*head, "\r".join(shown), "\nTested 2 GPUs:", "\tGPU 0: OK", "\tGPU 1: OK", ""]
    )


@each(
    "steps, why",
    [
        ([(50.0, 227, 50000.0), (100.0, 454, 50000.0)], None),
        ([(100.0, 454, 50000.0)], None),
        (
            [(50.0, 227, 91000.0), (100.0, 454, 91000.0)],
            "454 products take 5.5 s, and the progress shows 10.0 s",
        ),
        ([(100.0, 4540, 50000.0)], "4540 products take 99.9 s"),
        (
            [
                (10.0, 45, 50000.0),
                (20.0, 90, 50000.0),
                (30.0, 135, 50000.0),
                (40.0, 180, 50000.0),
                (100.0, 207, 5000.0),
            ],
            "reports 50000 Gflop/s and made 20000",
        ),
    ],
)
def test_the_rate_of_gpu_burn_and_its_products(
    steps: list[tuple[float, int, float]], why: str | None
) -> None:
    found = gpu_burn.mismatch(burn_text(*steps), mode="float", seconds=10, memory_mb=512)
    assert (found is None) == (why is None)
    assert (why or "") in ("" if found is None else words.message(found))


def test_gpu_burn_beside_a_gpu_that_is_lost() -> None:
    for said in (
        "CUDA error: GPU is lost",
        "cudaErrorNvlinkUncorrectable",
        "GPU has fallen off the bus: CUDA error",
    ):
        assert gpu_burn.parse(f"{recording(H200_BURN)}\n{said}\n").outcome == "fail", said


def test_a_burn_that_does_not_say_how_long_it_is() -> None:
    found = gpu_burn.mismatch("nothing", mode="float", seconds=10, memory_mb=512)
    assert found == Message("burn_time_missing", {"due": 10})
