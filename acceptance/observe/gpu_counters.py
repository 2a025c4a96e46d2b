"""GpuCounters: a GPU's counters of its own errors, and the state of its memory repair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from acceptance.machine.inventory import GpuCounters
from acceptance.observe import nvlink
from acceptance.observe.nvml_call import Field, ask_or_none, available_fields, field

# nvml.h: nvmlMemoryErrorType_t and nvmlEccCounterType_t; nvmlPageRetirementCause_t.
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_SINGLE, _DOUBLE = 0, 1
_FIELDS = {
    "ecc_corrected": "ECC_SBE_VOL_TOTAL",
    "ecc_uncorrected": "ECC_DBE_VOL_TOTAL",
    "ecc_corrected_total": "ECC_SBE_AGG_TOTAL",
    "ecc_uncorrected_total": "ECC_DBE_AGG_TOTAL",
    "remapped_corrected": "REMAPPED_COR",
    "remapped_uncorrected": "REMAPPED_UNC",
    "remap_pending": "REMAPPED_PENDING",
    "remap_failed": "REMAPPED_FAILURE",
    "retired_single": "RETIRED_SBE",
    "retired_double": "RETIRED_DBE",
    "retired_pending": "RETIRED_PENDING",
    "pcie_replays": "PCIE_REPLAY_COUNTER",
}
_FLAGS = frozenset({"remap_pending", "remap_failed", "retired_pending"})
# A function to call if NVML does not offer the field.
_Function = Callable[[Any, Any], int | None]


def counter_fields(nvml: Any, links: Sequence[int]) -> list[Field]:
    """Fields with the GPU's counters, including those of these links."""
    own = [one for name in _FIELDS.values() for one in field(nvml, name)]
    return own + nvlink.counter_fields_of(nvml, links)


def read(nvml: Any, handle: Any, links: Sequence[int]) -> GpuCounters:
    """The counters of one GPU, in one call if its driver has them as fields.

    `links` are its active NVLinks. Raises the binding's NVMLError when the GPU is lost.
    """
    return counters_from(
        nvml, handle, links, available_fields(nvml, handle, counter_fields(nvml, links))
    )


def counters_from(
    nvml: Any, handle: Any, links: Sequence[int], values: dict[Field, float]
) -> GpuCounters:
    """The counters from fields that were already read; each missing one is read on its own."""
    found: dict[str, Any] = {}
    for name, field_name in _FIELDS.items():
        numbers = [values[one] for one in field(nvml, field_name) if one in values]
        count = int(numbers[0]) if numbers else _FUNCTIONS[name](nvml, handle)
        found[name] = bool(count) if count is not None and name in _FLAGS else count
    errors = nvlink.sum_errors(nvml, links, values)
    return GpuCounters(
        **found,
        nvlink_replays=errors.replays,
        nvlink_recoveries=errors.recoveries,
        nvlink_crc_errors=errors.crc_errors,
    )


def _count(
    function: str, *arguments: int, read: Callable[[Any], int] = lambda answer: answer
) -> _Function:
    def asked(nvml: Any, handle: Any) -> int | None:
        answer = ask_or_none(nvml, function, handle, *arguments)
        return None if answer is None else read(answer)

    return asked


_ecc = partial(_count, "nvmlDeviceGetTotalEccErrors")
_remapped = partial(_count, "nvmlDeviceGetRemappedRows")
_retired = partial(_count, "nvmlDeviceGetRetiredPages", read=len)
_FUNCTIONS: dict[str, _Function] = {
    "ecc_corrected": _ecc(_CORRECTED, _VOLATILE),
    "ecc_uncorrected": _ecc(_UNCORRECTED, _VOLATILE),
    "ecc_corrected_total": _ecc(_CORRECTED, _AGGREGATE),
    "ecc_uncorrected_total": _ecc(_UNCORRECTED, _AGGREGATE),
    "remapped_corrected": _remapped(read=itemgetter(0)),
    "remapped_uncorrected": _remapped(read=itemgetter(1)),
    "remap_pending": _remapped(read=itemgetter(2)),
    "remap_failed": _remapped(read=itemgetter(3)),
    "retired_single": _retired(_SINGLE),
    "retired_double": _retired(_DOUBLE),
    "retired_pending": _count("nvmlDeviceGetRetiredPagesPendingStatus"),
    "pcie_replays": _count("nvmlDeviceGetPcieReplayCounter"),
}
