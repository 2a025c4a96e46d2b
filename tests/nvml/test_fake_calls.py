"""Calls of the fake library that are refused, and its opening and closing."""

from __future__ import annotations

from pathlib import Path

import fake_driver
from questions import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_SUPPORTED, ask, write


def test_what_is_no_argument(library: Path) -> None:
    found = ask(
        library,
        fake_driver.description("2x4090"),
        ["nvmlDeviceGetHandleByIndex", 2],
        ["nvmlDeviceGetTemperatureThreshold", {"gpu": 0}, 7],
        ["nvmlDeviceGetClockInfo", {"gpu": 0}, 3],
        ["nvmlDeviceGetTopologyCommonAncestor", {"gpu": 0}, {"gpu": 0}],
        ["nvmlDeviceGetName", None],
        ["nvmlDeviceGetHandleByUUID", "GPU-0"],
        ["nvmlDeviceGetHandleByPciBusId", "0000:7f:00.0"],
        ["nvmlDeviceGetMemoryInfo", {"gpu": 0}, 0x03000028],
        ["nvmlDeviceGetBrand", {"gpu": 0}],
    )
    not_found, version = 6, 25
    codes = [*[INVALID_ARGUMENT] * 5, not_found, not_found, version, FUNCTION_NOT_FOUND]
    assert [answer["error"] for answer in found.answers] == codes


def test_the_first_start_and_the_last_stop(library: Path, tmp_path: Path) -> None:
    path = write(tmp_path, {"synthetic": True, "driver_version": "1.2.3", "gpus": []})
    version, stop = ["nvmlSystemGetDriverVersion"], ["nvmlShutdown"]
    found = ask(
        library,
        path,
        ["nvmlInit"],
        stop,
        version,
        ["nvmlDeviceGetCount"],
        stop,
        version,
        stop,
        ["nvmlInit"],
        version,
    )
    done, uninitialised = {"value": None}, {"error": 1}
    wanted = [
        done,
        done,
        {"value": "1.2.3"},
        {"value": 0},
        done,
        uninitialised,
        uninitialised,
        done,
        {"value": "1.2.3"},
    ]
    assert found.answers == wanted
    assert ask(library, path, ["nvmlErrorString", 15], ["nvmlErrorString", 12345]).values() == [
        "the GPU is lost",
        "unknown error",
    ]
    assert ask(library, path, ["nvmlSystemGetCudaDriverVersion"]).answers == [
        {"error": NOT_SUPPORTED}
    ]
