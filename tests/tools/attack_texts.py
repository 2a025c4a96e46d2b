"""Texts made to take long: what is read line by line, and what patterns and lists would go
through again and again.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from attacks import HEALTHY, READ

Build = Callable[[int], str]


def _again(piece: str, before: str = "", after: str = "") -> Build:
    """As much of a piece as makes a text of so many letters."""
    return lambda size: before + piece * (size // len(piece)) + after


def _numbered(piece: str, before: str = "", after: str = "") -> Build:
    """The same with a number in each piece, at `{}`."""
    return lambda size: (
        before + "".join(piece.format(index) for index in range(size // len(piece))) + after
    )


# Of the loads, whose lines one reader takes, the one with the most to check.
ANY = tuple(
    tool
    for tool in READ
    if tool not in {"cpu_gemm", "memory_bandwidth", "gpu_copy", "gpu_gemm", "vram"}
)
_FIRST = {tool: next(one.text for one in HEALTHY if one.tool == tool) for tool in READ}
_SMART = '{"smartctl": {"exit_status": 0, "messages": '
_DIMM = "Handle 0x0010, DMI type 17, 84 bytes\nMemory Device\n"
_SLOT = _DIMM + "\tSize: 1 GB\n\tLocator: A\n\tType: DDR5\n\n"
_ARRAYS = (
    "Handle 0x{:04X}, DMI type 16, 23 bytes\n\n\tUse: x\n\tError Correction Type: "
    "x\n\tNumber Of "
    "Devices: 0\n\n"
)


def _wide(size: int) -> str:
    """One progress line of very many GPUs, and very many of none."""
    return "1.0%  proc'd: " + "0 - " * (size // 8) + "\n" + "1.0%  proc'd:\n" * (size // 28)


def _square(size: int) -> str:
    """A matrix of `topo -m` with as many GPUs as fit."""
    count = int((size / 4) ** 0.5)
    names = [f"GPU{index}" for index in range(count)]
    rows = [[name, *("X" if other == name else "SYS" for other in names)] for name in names]
    return "\t" + "\t".join(names) + "\n" + "".join("\t".join(row) + "\n" for row in rows)


def _laps(_: int) -> str:
    """A burn that says it made very many laps."""
    return next(one.text for one in HEALTHY if one.tool == "burn").replace(
        '"laps": 2', '"laps": 999999999999'
    )


# By tool and name: what makes the text of a size. The size is the name's of SIZE, else 100,000
# letters: enough for what is done to each letter again for each letter; what is done to each line
# again for each line needs more of them.
HOSTILE: dict[tuple[str, str], Build] = {
    **{(tool, "one long word"): _again("x", _FIRST[tool] + "\n") for tool in ANY},
    **{
        (tool, "one long line"): _again("x 0 -1 1.5 {} : / ( ", _FIRST[tool] + "\n") for tool in ANY
    },
    **{(tool, "blanks"): _again(" ", _FIRST[tool] + "a", "b") for tool in ANY},
    **{(tool, "lines of nothing"): _again("\n", _FIRST[tool]) for tool in ANY},
    **{(tool, "itself again"): _again(_FIRST[tool]) for tool in ANY},
    **{(tool, "deep"): _again("[", '{"nvbandwidth": {"testcases": ') for tool in ANY},
    **{(tool, "escapes"): _again("\x1b[0;\x1b]8;", _FIRST[tool]) for tool in ANY},
    **{(tool, "stamps"): _again("2026-01-02T03:04:05Z stdout P \n", _FIRST[tool]) for tool in ANY},
    ("gpu-burn", "wide"): _wide,
    ("gpu-burn", "percents"): _again("0.0%" + " " * 20),
    ("gpu-burn", "heads"): _again("GPU Burn\n\n\n\n"),
    ("deviceQuery", "beginnings of errors"): _again("CUDA error at x "),
    ("bandwidthTest", "beginnings of errors"): _again("CUDA error : ("),
    ("p2pBandwidthLatencyTest", "one group"): lambda _: (
        "P2P Cliques:\n["
        + " ".join(map(str, range(10_000)))
        + "]\n"
        + _FIRST["p2pBandwidthLatencyTest"]
    ),
    ("nvbandwidth", "testcases"): _numbered("Running a{}.\n"),
    ("nvbandwidth", "matrices"): _numbered(
        "x (row) GB/s\n0\n0 1.00\nSUM device_to_device_bidirectional{}_total 1.00\n"
    ),
    ("topo-m", "square"): _square,
    ("topo-p2p", "square"): lambda size: _square(size).replace("SYS", "OK"),
    ("kernel-log", "stamps of one line"): _again("[1.0] "),
    ("kernel-log", "Xids"): _again("Xid (1 "),
    ("kernel-log", "Xid 154"): _again(
        "recovery action changed from ", "[1.0] NVRM: Xid (PCI:0000:01:00): 154, "
    ),
    ("kernel-log", "bit of AER"): lambda size: (
        "[1.0] pci 0000:00:01.0: aer_status: 0x1\n[1.0] pci 0000:00:01.0:    [ 1] a"
        + " " * size
        + "b"
    ),
    ("kernel-log", "logged"): _again("mce: ", "[1.0] "),
    ("kernel-log", "status"): _again("CPU:1 MC1_STATUS[", "[1.0] [Hardware Error]: "),
    ("kernel-log", "labels"): _again(" on a", "[1.0] EDAC MC0: 1 CE x"),
    ("kernel-log", "repeated"): _numbered(
        "Jan 12 08:14:02 n kernel: message repeated 999 times: [ x{}]\n"
    ),
    ("kernel-log", "notices"): _again("[1.0] mce: Machine check events logged\n"),
    ("kernel-log", "lost"): _numbered(
        "[{}.0] NVRM: GPU is at NV_ERR_GPU_IS_LOST\n[1.0] NVRM: Xid (PCI:01:00): 79, x\n"
    ),
    ("kernel-log", "not started"): _again("[1.0] NVRM: RmInitAdapter failed\n"),
    ("kernel-log", "drivers"): _again("[1.0] NVRM: API mismatch\n"),
    ("kernel-log", "storm"): lambda size: "".join(
        f"Jan 12 {index // 3600 % 24:02}:{index // 60 % 60:02}:{index % 60:02} n kernel: pcieport "
        "0000:00:01.0: AER: "
        "Corrected error received: 0000:00:01.0\n"
        for index in range(size // 96)
    ),
    ("kernel-log", "deep in the second"): lambda size: '{"MESSAGE": "x"}\n' + "[" * size,
    ("smartctl", "messages"): lambda size: (
        _SMART + json.dumps([{"string": "x"}] * (size // 16)) + "}}"
    ),
    ("dmidecode", "name of blanks"): lambda size: _DIMM + "A" + " " * size + "!\n",
    ("dmidecode", "one line"): lambda size: "x" * size + "\n" + _SLOT,
    ("dmidecode", "one name"): _again(_SLOT),
    ("dmidecode", "arrays"): lambda size: _numbered(_ARRAYS)(size // 2) + _again(_SLOT)(size // 2),
    ("burn", "laps"): _laps,
}
SIZE = {
    "one long word": 5_000_000,
    "lines of nothing": 20_000,
    "itself again": 50_000,
    "testcases": 500_000,
    "matrices": 500_000,
    "one name": 1_000_000,
    "arrays": 800_000,
    "notices": 300_000,
    "drivers": 300_000,
    "square": 400_000,
    "repeated": 150_000,
    "wide": 250_000,
    "storm": 500_000,
}
