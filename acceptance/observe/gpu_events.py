"""Xid events from NVML.

NVML reports only to a registered listener; an Xid without one is only in the kernel log.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

from acceptance.core.message import Message, Text, english
from acceptance.observe.nvml_call import LOST, TIMEOUT, ask

# The most events taken in one call: a storm must not keep the caller from its other work.
AT_ONCE = 100
_WAIT_MS = 1
_XID = 8  # nvml.h, nvmlEventTypeXidCriticalError


class XidListener:
    """Listens for the Xid events of GPUs, which are named by PCI address.

    `unsubscribed` says, by address, why a GPU's events cannot be received.
    """

    def __init__(self, nvml: Any) -> None:
        self.unsubscribed: dict[str, Text] = {}
        self._nvml = nvml
        self._set: Any = None
        self._addresses: dict[object, str] = {}
        self._subscribed: list[str] = []

    def listen(self, handles: Mapping[str, Any]) -> None:
        """Listen to these GPUs and no others.

        An event set with a lost GPU in it reports no events of the others.
        """
        self.close()
        self._addresses |= {_key(handle): address for address, handle in handles.items()}
        for address, handle in handles.items():
            try:
                self._register(address, handle)
            except self._nvml.NVMLError as refusal:
                if refusal.value not in LOST:  # a loss is reported by the readings
                    self.unsubscribed[address] = str(refusal)

    def _register(self, address: str, handle: Any) -> None:
        if not (ask(self._nvml, "nvmlDeviceGetSupportedEventTypes", handle) or 0) & _XID:
            self.unsubscribed[address] = Message(english("no_xid_events", "it offers none"))
            return
        if self._set is None:
            self._set = self._nvml.nvmlEventSetCreate()
        self._nvml.nvmlDeviceRegisterEvents(handle, _XID, self._set)
        self._subscribed.append(address)

    def poll(self) -> list[tuple[int, str | None]]:
        """Events since the last call, at most AT_ONCE.

        Each event is the Xid's number and the address of its GPU, or None if that is unknown.
        """
        heard: list[tuple[int, str | None]] = []
        while self._set is not None and len(heard) < AT_ONCE:
            try:
                event = self._nvml.nvmlEventSetWait(self._set, _WAIT_MS)
            except self._nvml.NVMLError as refusal:
                if refusal.value not in LOST and refusal.value != TIMEOUT:
                    self._give_up(refusal)
                break  # no more events; a loss is reported by the readings
            if event.eventType & _XID:
                heard.append((int(event.eventData), self._addresses.get(_key(event.device))))
        return heard

    def close(self) -> None:
        """Stop listening."""
        if self._set is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(self._set)
        self._set, self._subscribed = None, []

    def _give_up(self, refusal: Exception) -> None:
        self.unsubscribed |= dict.fromkeys(self._subscribed, str(refusal))
        self.close()


def _key(handle: Any) -> object:
    """The pointer itself, which two handles of one GPU have in common."""
    return ctypes.cast(handle, ctypes.c_void_p).value
