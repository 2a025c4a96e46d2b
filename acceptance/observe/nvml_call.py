"""Calls to NVML: which errors mean "not offered", and how the value of a field is read.

A value that NVML does not offer on this machine is None or absent. Every other error of the binding
may be a fault of the GPU: `ask` raises it, `ask_or_none` raises it only if the GPU is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

# nvml.h, nvmlReturn_t.
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
CORRUPTED_INFOROM = 14
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
NO_DATA = 21
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28
# Errors that mean "this GPU does not offer that", not that it is faulty. A driver that does not
# know a field, a threshold or a version of a record refuses it as an invalid argument.
NOT_OFFERED = frozenset(
    {
        NOT_SUPPORTED,
        NO_PERMISSION,
        FUNCTION_NOT_FOUND,
        INVALID_ARGUMENT,
        NO_DATA,
        ARGUMENT_VERSION_MISMATCH,
        DEPRECATED,
    }
)
# Errors after which a GPU is unusable until it is reset or reseated.
LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})

_BUS_ID = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")

_Told = TypeVar("_Told")
Field = tuple[int, int]  # number of a field, and its scope (for example the link), 0 without one
# nvml.h, nvmlValueType_t: the member of the record that holds the value.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def ask(nvml: Any, function: str, *arguments: Any) -> Any:
    """Call a function of the binding; None if NVML does not offer it or the binding is older.

    Raises the binding's NVMLError for every other error.
    """
    call = getattr(nvml, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except nvml.NVMLError as refusal:
        if refusal.value not in NOT_OFFERED:
            raise
        return None


def none_if_refused(nvml: Any, asking: Callable[[], _Told]) -> _Told | None:
    """Call `asking`; None if NVML refuses, for any reason.

    Raises the binding's NVMLError when the GPU is lost.
    """
    try:
        return asking()
    except nvml.NVMLError as refusal:
        if refusal.value in LOST:
            raise
        return None


def ask_or_none(nvml: Any, function: str, *arguments: Any) -> Any:
    """Call a function of the binding; None if NVML refuses.

    Raises the binding's NVMLError when the GPU is lost.
    """
    return none_if_refused(nvml, lambda: ask(nvml, function, *arguments))


def available_fields(nvml: Any, handle: Any, wanted: Iterable[Field]) -> dict[Field, float]:
    """Values of fields; a field that NVML refuses is absent.

    Raises the binding's NVMLError when the GPU is lost.
    """
    return none_if_refused(nvml, lambda: fields(nvml, handle, wanted, raising=LOST)) or {}


def field(nvml: Any, *names: str, scope: int = 0) -> tuple[Field, ...]:
    """The fields with these names that the binding has."""
    numbers = (getattr(nvml, f"NVML_FI_DEV_{name}", None) for name in names)
    return tuple((number, scope) for number in numbers if number is not None)


def fields(
    nvml: Any, handle: Any, wanted: Iterable[Field], *, raising: frozenset[int] | None = None
) -> dict[Field, float]:
    """Values of fields, read in one call; a field that NVML does not offer is absent.

    Raises the binding's NVMLError when the call or a field is refused for another reason. With
    `raising`, only these errors of a field are raised; a field with any other error is absent.
    """
    asked = list(dict.fromkeys(wanted))
    answers = ask(nvml, "nvmlDeviceGetFieldValues", handle, asked) if asked else None
    if answers is None:
        return {}
    found: dict[Field, float] = {}
    for name, answer in zip(asked, answers, strict=True):
        if answer.nvmlReturn == 0:
            found[name] = value(answer)
        elif (
            answer.nvmlReturn in raising
            if raising is not None
            else answer.nvmlReturn not in NOT_OFFERED
        ):
            raise nvml.NVMLError(answer.nvmlReturn)
    return found


def value(answer: Any) -> float:
    """The value in a field's record.

    Raises ValueError for a value type that the current nvml.h does not have.
    """
    if not 0 <= answer.valueType < len(_MEMBERS):
        raise ValueError(
            f"NVML gave field {answer.fieldId} as a value of type {answer.valueType}, which "
            "is not known"
        )
    found: float = getattr(answer.value, _MEMBERS[answer.valueType])
    return found


def first(values: dict[Field, float], candidates: Iterable[Field]) -> float | None:
    """The value of the first of these fields that has one."""
    return next((values[candidate] for candidate in candidates if candidate in values), None)


def text(answer: str | bytes) -> str:
    """A text of the binding, which returns some as bytes."""
    return answer.decode("utf-8", errors="replace") if isinstance(answer, bytes) else answer


def sysfs_address(bus_id: str) -> str:
    """A PCI address in sysfs form ("0000:01:00.0") from NVML's form ("00000000:01:00.0").

    Raises ValueError for anything else.
    """
    match = _BUS_ID.fullmatch(bus_id)
    if match is None:
        raise ValueError(f"NVML gave {bus_id!r}, which is not a PCI address")
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}.{match[4]}".lower()


def address(pci_info: Any) -> str:
    """The PCI address in one of NVML's records, in sysfs form.

    Raises ValueError for an invalid address.
    """
    return sysfs_address(text(pci_info.busId))
