"""NvLink: the links between a GPU and other GPUs or switches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from acceptance.machine.inventory import NvLink
from acceptance.observe.nvml_call import (
    Field,
    address,
    ask_or_none,
    available_fields,
    field,
    first,
    text,
)

_MAX_LINKS = 18  # NVML_NVLINK_MAX_LINKS up to Hopper; newer bindings have a larger number
# nvml.h, NVML_NVLINK_VERSION_*.
_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# nvml.h, nvmlIntNvLinkDeviceType_t. NVML says nothing more about an IBM processor at the other end.
_KINDS = {0: "gpu", 1: "unknown", 2: "switch", 255: "unknown"}
# Fields of each counter; the first one that the driver offers is used: one field with the link as
# scope, or a field for each link (before Hopper).
_REPLAYS = ("NVLINK_ERROR_DL_REPLAY", "NVLINK_REPLAY_ERROR_COUNT_L{}")
_RECOVERIES = (
    "NVLINK_ERROR_DL_RECOVERY",
    "NVLINK_RECOVERY_ERROR_COUNT_L{}",
    "NVLINK_COUNT_LINK_RECOVERY_EVENTS",
)
_CRC_ERRORS = ("NVLINK_ERROR_DL_CRC", "NVLINK_CRC_FLIT_ERROR_COUNT_L{}")
_SPEED = ("NVLINK_GET_SPEED", "NVLINK_SPEED_MBPS_L{}")  # MB/s


@dataclass(frozen=True, slots=True)
class NvLinkErrors:
    """The error counters of one link, or sums of several."""

    replays: int | None
    recoveries: int | None
    crc_errors: int | None


def read(nvml: Any, handle: Any) -> tuple[NvLink, ...]:
    """All links of a GPU, active or not. Raises the binding's NVMLError when it is lost."""
    states = {
        link: state == 1
        for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", _MAX_LINKS))
        if (state := ask_or_none(nvml, "nvmlDeviceGetNvLinkState", handle, link)) is not None
    }
    active = [link for link, is_active in states.items() if is_active]
    speeds = {link: _candidates(nvml, _SPEED, link) for link in active}
    counters = {link: _counters(nvml, link) for link in active}
    wanted = [
        name for link in active for group in (speeds[link], *counters[link]) for name in group
    ]
    values = available_fields(nvml, handle, wanted)
    return tuple(
        _active(nvml, handle, link, first(values, speeds[link]), _errors(values, counters[link]))
        if is_active
        else NvLink(link, False, None, None, None, None, None, None, None)
        for link, is_active in states.items()
    )


def counter_fields_of(nvml: Any, links: Iterable[int]) -> list[Field]:
    """The fields that hold the error counters of these links."""
    return [name for link in links for group in _counters(nvml, link) for name in group]


def sum_errors(nvml: Any, links: Iterable[int], values: dict[Field, float]) -> NvLinkErrors:
    """The sums of these links' counters.

    A sum is None if a link does not report the counter or there is no link.
    """
    each = [_errors(values, _counters(nvml, link)) for link in links]
    return NvLinkErrors(
        _sum(one.replays for one in each),
        _sum(one.recoveries for one in each),
        _sum(one.crc_errors for one in each),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    every = list(counts)
    known = [count for count in every if count is not None]
    return sum(known) if known and len(known) == len(every) else None


def _candidates(nvml: Any, names: Iterable[str], link: int) -> tuple[Field, ...]:
    """Fields of a link; a field that exists once for each link has no scope."""
    return tuple(
        one
        for name in names
        for one in field(nvml, name.format(link), scope=0 if "{}" in name else link)
    )


def _counters(nvml: Any, link: int) -> tuple[tuple[Field, ...], ...]:
    return tuple(_candidates(nvml, names, link) for names in (_REPLAYS, _RECOVERIES, _CRC_ERRORS))


def _errors(values: dict[Field, float], counters: tuple[tuple[Field, ...], ...]) -> NvLinkErrors:
    return NvLinkErrors(
        *(None if (found := first(values, group)) is None else int(found) for group in counters)
    )


def _active(
    nvml: Any, handle: Any, link: int, speed_mbs: float | None, errors: NvLinkErrors
) -> NvLink:
    remote = ask_or_none(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
    kind = ask_or_none(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
    return NvLink(
        link=link,
        active=True,
        version=_VERSIONS.get(ask_or_none(nvml, "nvmlDeviceGetNvLinkVersion", handle, link)),
        speed_gbs=None if speed_mbs is None else speed_mbs / 1000.0,
        remote_address=None if remote is None or _nowhere(remote) else address(remote),
        remote_kind=None if kind is None else _KINDS.get(kind, "unknown"),
        replays=errors.replays,
        recoveries=errors.recoveries,
        crc_errors=errors.crc_errors,
    )


def _nowhere(remote: Any) -> bool:
    """Whether the other end has no address.

    It is empty, or all ones for a switch that a virtual machine does not see.
    """
    bus_id = text(remote.busId)
    return not bus_id or bus_id.lower().startswith("ffffffff")
