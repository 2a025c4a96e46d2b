"""The Xid events that NVML tells of, for those who listen: what happens while nobody does is in
the kernel log alone.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

from acceptance.observe.nvml_call import LOST, TIMEOUT, ask

# How many events are taken at once: a storm must not keep its reader from everything else.
AT_ONCE = 100
_WAIT_MS = 1
_XID = 8  # nvml.h, nvmlEventTypeXidCriticalError


class XidListener:
    """Listens to GPUs, named by their PCI addresses.

    `deaf` says by address why it hears nothing of a GPU; the others are heard.
    """

    def __init__(self, nvml: Any) -> None:
        self.deaf: dict[str, str] = {}
        self._nvml = nvml
        self._set: Any = None
        self._addresses: dict[object, str] = {}
        self._heard: list[str] = []

    def listen(self, handles: Mapping[str, Any]) -> None:
        """Listen to these GPUs and no others: a set of events that holds a lost
        one tells of no other.
        """
        self.close()
        self._addresses |= {_key(handle): address for address, handle in handles.items()}
        for address, handle in handles.items():
            try:
                self._register(address, handle)
            except self._nvml.NVMLError as refusal:
                if refusal.value not in LOST:  # that it is lost, its readings say
                    self.deaf[address] = str(refusal)

    def _register(self, address: str, handle: Any) -> None:
        if not (ask(self._nvml, "nvmlDeviceGetSupportedEventTypes", handle) or 0) & _XID:
            self.deaf[address] = "it offers none"
            return
        if self._set is None:
            self._set = self._nvml.nvmlEventSetCreate()
        self._nvml.nvmlDeviceRegisterEvents(handle, _XID, self._set)
        self._heard.append(address)

    def poll(self) -> list[tuple[int, str | None]]:
        """What was told since the last time, at most AT_ONCE events: each Xid's number, and the
        address of its GPU where it is known.
        """
        heard: list[tuple[int, str | None]] = []
        while self._set is not None and len(heard) < AT_ONCE:
            try:
                event = self._nvml.nvmlEventSetWait(self._set, _WAIT_MS)
            except self._nvml.NVMLError as refusal:
                if refusal.value not in LOST and refusal.value != TIMEOUT:
                    self._give_up(refusal)
                break  # nothing more; which GPU is lost, its readings say
            if event.eventType & _XID:
                heard.append((int(event.eventData), self._addresses.get(_key(event.device))))
        return heard

    def close(self) -> None:
        """Listen no more."""
        if self._set is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(self._set)
        self._set, self._heard = None, []

    def _give_up(self, refusal: Exception) -> None:
        self.deaf |= dict.fromkeys(self._heard, str(refusal))
        self.close()


def _key(handle: Any) -> object:
    """What two handles of one GPU have in common: the pointer itself."""
    return ctypes.cast(handle, ctypes.c_void_p).value
