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

    If a GPU is lost during the calls, the values of its pairs are None, and the error is kept.
    """
    known = [index for index, answering in enumerate(answers) if answering]
    return tuple(_pairs(nvml, handles, known))


def _pairs(nvml: Any, handles: Sequence[Any], known: Sequence[int]) -> Iterator[NvmlPair]:
    for a in known:
        for b in known:
            if a != b:
                ends = (handles[a], handles[b])
                errors: list[str] = []
                level = _ask_state(nvml, errors, "nvmlDeviceGetTopologyCommonAncestor", *ends)
                read, write, nvlink = (
                    _state(_ask_state(nvml, errors, "nvmlDeviceGetP2PStatus", *ends, kind))
                    for kind in (_READ, _WRITE, _NVLINK)
                )
                path = None if level is None else _PATHS.get(level)
                yield NvmlPair(a, b, path, read, write, nvlink, errors[0] if errors else None)


def _ask_state(nvml: Any, errors: list[str], function: str, *arguments: Any) -> Any:
    try:
        return ask(nvml, function, *arguments)
    except nvml.NVMLError as refusal:
        errors.append(str(refusal))
        return None


def _state(number: int | None) -> str | None:
    if number is None:
        return None
    return _STATES[number] if number < len(_STATES) else "unknown"
