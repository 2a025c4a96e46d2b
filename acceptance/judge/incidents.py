"""Incidents: what the kernel log and NVML both told of, told once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from acceptance.judge.record import Entry, Event

# NVML tells an Xid within its listener's next look, and a lost GPU after some seconds of silence; the kernel log is held until it is whole.
SAME_WITHIN_S = 10.0
_FALLEN_OFF = 79


def _incident(event: Event) -> Hashable:
    """What happened, and to which component: an Xid 79 is the loss of the GPU, whoever says so."""
    if event.kind == "gpu-lost" or (event.kind == "xid" and event.code == _FALLEN_OFF):
        return "gpu-lost", event.component
    return event.kind, event.code, event.component


def _moment(entry: Entry, event: Event) -> float:
    return event.boot_s if event.boot_s is not None else entry.boot_s


def told_once(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without those events of NVML's that the kernel log tells too, of the same boot and within ten seconds.

    The kernel log's stays: it holds the driver's own words, and grades by them.
    """
    kernel: dict[Hashable, list[float]] = {}
    for entry in entries:
        if isinstance(event := entry.body, Event) and event.source != "nvml":
            kernel.setdefault((entry.boot, _incident(event)), []).append(_moment(entry, event))

    def told(entry: Entry) -> bool:
        if not isinstance(event := entry.body, Event) or event.source != "nvml":
            return False
        moments = kernel.get((entry.boot, _incident(event)), [])
        return any(abs(_moment(entry, event) - moment) <= SAME_WITHIN_S for moment in moments)

    return [entry for entry in entries if not told(entry)]
