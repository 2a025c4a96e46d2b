"""Stands in for NVIDIA's nvbandwidth: the testcases of `-t`, as JSON (`-j`)."""

from __future__ import annotations

import json
import sys
from typing import Any

import seen

Cell = float | None
WRONG = (
    " Invalid value when checking the pattern at 0x70a640000000\n Current offset : 11136\n"
    "ASSERT in expression h_errorFlag == 0 in void memcmpPatternHelper(CUstream, CUdeviceptr, "
    "long long unsigned int, "
    "unsigned int)() : memcpy.cpp:165\n"
)
CHANGED = {
    "copies nothing": 0.0,
    "copies NaN": float("nan"),
    "is slow": 0.5,
    "is impossible": 13000.0,
}  # what becomes of one figure
LATENCY = "memory latency SM CPU(row) <-> GPU(column) (ns)"
LOCAL = "memcpy local GPU(column) bandwidth (GB/s)"


def of_host(machine: seen.Machine, gpus: list[seen.Gpu], name: str) -> tuple[str, list[list[Cell]]]:
    if name == "host_device_latency_sm":
        return LATENCY, [[seen.wobble(seen.figures(gpu).latency, gpu.index) for gpu in gpus]]
    if name == "device_local_copy":
        return LOCAL, [[seen.wobble(seen.figures(gpu).local, gpu.index) for gpu in gpus]]
    both = "bidirectional" in name
    arrow = "<->" if both else "->" if name.startswith("host_to") else "<-"
    rates: list[Cell] = [
        seen.wobble(seen.host_rate(gpu) * (0.92 if both else 1.0), gpu.index) for gpu in gpus
    ]
    return f"memcpy CE CPU(row) {arrow} GPU(column) bandwidth (GB/s)", [rates]


def of_pairs(
    machine: seen.Machine, gpus: list[seen.Gpu], name: str
) -> tuple[str, list[list[Cell]]]:
    def cell(a: seen.Gpu, b: seen.Gpu) -> Cell:
        if a is b or not seen.peers(machine, a, b):
            return None
        return seen.wobble(seen.peer_rate(machine, a, b), a.index, b.index)

    arrow = "<-" if "_write_" in name else "->"
    return f"memcpy CE GPU(row) {arrow} GPU(column) bandwidth (GB/s)", [
        [cell(a, b) for b in gpus] for a in gpus
    ]


def testcase(
    machine: seen.Machine, gpus: list[seen.Gpu], name: str, how: str | None
) -> dict[str, Any]:
    description, rows = (of_pairs if name.startswith("device_to_device") else of_host)(
        machine, gpus, name
    )
    if not any(value is not None for row in rows for value in row):
        return {"name": name, "status": "Waived"}
    if name == "host_to_device_memcpy_ce" and how in CHANGED:
        rows[0] = [
            CHANGED[how] * (rate or 0.0) if gpu.index == seen.SICK else rate
            for gpu, rate in zip(gpus, rows[0], strict=True)
        ]
    if name.startswith("host_to_device") and how == "is too fast":
        rows[0] = [10.0 * (rate or 0.0) for rate in rows[0]]
    if name == "host_device_latency_sm" and how == "answers too soon":
        rows[0] = [0.01 * (time or 0.0) for time in rows[0]]
    if name == "device_local_copy" and how == "reads its cache":
        rows[0] = [2.0 * (rate or 0.0) for rate in rows[0]]
    return {
        "bandwidth_description": description,
        "bandwidth_matrix": [
            ["N/A" if value is None else f"{value:.6g}" for value in row] for row in rows
        ],
        "name": name,
        "status": "Passed",
        "sum": sum(value for row in rows for value in row if value is not None),
    }


def main() -> None:
    words = sys.argv[1:]
    names = [word for word in words[words.index("-t") + 1 : words.index("-b")]]
    machine, how = seen.machine(), seen.fault("nvbandwidth")
    seen.misbehave(how)
    gpus = seen.gpus(machine)
    if how == "finds wrong data" and any(name.startswith("device_to_device") for name in names):
        seen.leave(WRONG, 1)
    if how == "misses one":
        gpus = [gpu for gpu in gpus if gpu.index != seen.SICK]
    devices = [
        (
            f"{index}: {gpu.readings['name']} "
            f"({gpu.readings['pci_bus_id'].lower().partition('.')[0]}): (node)"
        )
        for index, gpu in enumerate(gpus)
    ]
    document = {
        "CUDA Runtime Version": 12080,
        "Driver Version": machine.driver_version,
        "GPU Device list": devices,
        "git_version": "v0.8",
        "testcases": [testcase(machine, gpus, name, how) for name in names],
        "version": "v0.8",
    }
    text = json.dumps({"nvbandwidth": document}, indent="\t") + "\n"
    seen.leave(text[: len(text) // 2] if how == "is truncated" else text)


if __name__ == "__main__":
    main()
