"""Events of the machine, each counted once even when two sources report it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from acceptance.core.record import Entry, Event

# NVML reports an Xid at its listener's next poll, and a lost GPU after some seconds of silence. The
# kernel log is held back until a message is complete.
SAME_WITHIN_S = 10.0
_FALLEN_OFF = 79


def _incident(event: Event) -> Hashable:
    """What happened, and to which component.

    An Xid 79 is the loss of the GPU, whichever source reports it.
    """
    return (
        ("gpu-lost", event.component)
        if event.kind == "gpu-lost" or (event.kind == "xid" and event.code == _FALLEN_OFF)
        else (event.kind, event.code, event.component)
    )


def _moment(entry: Entry, event: Event) -> float:
    return event.boot_s if event.boot_s is not None else entry.boot_s


def without_duplicates(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without NVML events that the kernel log reports too.

    Two events are the same when they are of one boot and at most ten seconds apart. The kernel
    log's event stays: it has the driver's own words, and its severity follows from them.
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
