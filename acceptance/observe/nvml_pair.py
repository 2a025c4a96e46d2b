"""NvmlPair: the path between two GPUs, according to NVML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acceptance.machine.inventory import NvmlPair
from acceptance.observe.nvml_call import ask

# nvml.h: nvmlGpuTopologyLevel_t, nvmlGpuP2PStatus_t, nvmlGpuP2PCapsIndex_t.
_PATHS = {0: "INTERNAL", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_STATES = (
    "ok",
    "chipset-not-supported",
    "gpu-not-supported",
    "topology-not-supported",
    "disabled-by-regkey",
    "not-supported",
    "unknown",
)
_READ, _WRITE, _NVLINK = 0, 1, 2


def read(nvml: Any, handles: Sequence[Any], answers: Sequence[bool]) -> tuple[NvmlPair, ...]:
    """Every ordered pair of the GPUs that answer, in order of their indices.

    If a GPU is lost during the calls, the values of its pairs are None.
    """
    known = [index for index, answering in enumerate(answers) if answering]
    return tuple(_pairs(nvml, handles, known))


def _pairs(nvml: Any, handles: Sequence[Any], known: Sequence[int]) -> Iterator[NvmlPair]:
    for a in known:
        for b in known:
            if a != b:
                ends = (handles[a], handles[b])
                level = _ask_state(nvml, "nvmlDeviceGetTopologyCommonAncestor", *ends)
                yield NvmlPair(
                    a=a,
                    b=b,
                    path=None if level is None else _PATHS.get(level),
                    p2p_read=_state(_ask_state(nvml, "nvmlDeviceGetP2PStatus", *ends, _READ)),
                    p2p_write=_state(_ask_state(nvml, "nvmlDeviceGetP2PStatus", *ends, _WRITE)),
                    p2p_nvlink=_state(_ask_state(nvml, "nvmlDeviceGetP2PStatus", *ends, _NVLINK)),
                )


def _ask_state(nvml: Any, function: str, *arguments: Any) -> Any:
    try:
        return ask(nvml, function, *arguments)
    except nvml.NVMLError:
        return None


def _state(number: int | None) -> str | None:
    if number is None:
        return None
    return _STATES[number] if number < len(_STATES) else "unknown"
