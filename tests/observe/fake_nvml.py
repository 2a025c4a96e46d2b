"""A stand-in for NVIDIA's binding: GPUs that answer what a test says."""

from __future__ import annotations

import ctypes
from collections import deque
from types import SimpleNamespace
from typing import Any

LOST, NOT_SUPPORTED, UNKNOWN = 15, 3, 999


class Refusal(Exception):
    def __init__(self, value: int, text: str = "refused") -> None:
        super().__init__(text)
        self.value = value


class FabricInfo(ctypes.Structure):
    _fields_ = (("state", ctypes.c_uint), ("status", ctypes.c_uint))


class FakeNvml:
    """The binding with `count` GPUs, whose handles are 0, 1, ...

    `answers` maps a function to what it gives: a value; a dict by its arguments after the handle
    (one alone, or a tuple; of two handles, the second is among them); a number of NVML's wrapped in
    Refusal; or a callable. `(function, index)` is of one GPU alone, and counts more. A function
    without an answer is one that the binding does not have. `fields` are field values by number, or
    number and scope.
    """

    NVMLError = Refusal
    NVML_FI_DEV_MEMORY_TEMP = 82
    NVML_FI_DEV_ECC_SBE_VOL_TOTAL = 3
    NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4
    NVML_FI_DEV_REMAPPED_FAILURE = 145
    NVML_FI_DEV_PCIE_REPLAY_COUNTER = 94
    NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY = 161
    NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY = 162
    NVML_FI_DEV_NVLINK_ERROR_DL_CRC = 163
    NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0 = 46
    NVML_FI_DEV_NVLINK_GET_SPEED = 164

    def __init__(
        self,
        count: int = 2,
        answers: dict[Any, Any] | None = None,
        fields: dict[Any, Any] | None = None,
    ) -> None:
        self.count = count
        self.answers: dict[Any, Any] = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": count,
            "nvmlSystemGetDriverVersion": "570.86.15",
            "nvmlSystemGetCudaDriverVersion_v2": 12080,
            "nvmlDeviceGetName": b"NVIDIA GeForce RTX 4090",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=25757220864),
            "nvmlDeviceGetSerial": "",
            "nvmlDeviceGetVbiosVersion": "95.02.18.80.1F",
            "nvmlDeviceGetPciInfo": lambda index: SimpleNamespace(
                busId=f"00000000:{index + 1:02X}:00.0".encode()
            ),
            "nvmlDeviceGetUUID": lambda index: f"GPU-{index}",
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByPciBusId": self._by_address,
            **(answers or {}),
        }
        self.fields = fields or {}
        self.events: deque[SimpleNamespace | Refusal] = deque()
        self.registered: list[int] = []
        self.asked_fields: list[list[tuple[int, int]]] = []
        self.waited_ms: list[int] = []
        self.freed: list[str] = []

    def __getattr__(self, function: str) -> Any:
        if not any(function in (name, name[0]) for name in self.__dict__.get("answers", {})):
            raise AttributeError(function)
        return lambda *arguments: self._answer(function, arguments)

    def _answer(self, function: str, arguments: tuple[Any, ...]) -> Any:
        index = arguments[0] if arguments and isinstance(arguments[0], int) else None
        answer = self.answers.get(
            (function, index), self.answers.get(function, Refusal(NOT_SUPPORTED))
        )
        if isinstance(answer, dict):
            rest = arguments[1:]
            answer = answer.get(rest[0] if len(rest) == 1 else rest, Refusal(NOT_SUPPORTED))
        if isinstance(answer, Refusal):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    def _by_address(self, address: str) -> int:
        found = [index for index in range(self.count) if address == f"0000:{index + 1:02x}:00.0"]
        if not found:
            raise Refusal(28, "not found")
        return found[0]

    def nvmlDeviceGetFieldValues(
        self, handle: int, wanted: list[tuple[int, int]]
    ) -> list[SimpleNamespace]:
        self.asked_fields.append(wanted)
        if (refused := self.fields.get("call")) is not None:
            raise refused
        return [self._field(*name) for name in wanted]

    def _field(self, number: int, scope: int) -> SimpleNamespace:
        found = self.fields.get((number, scope), self.fields.get(number, Refusal(NOT_SUPPORTED)))
        if isinstance(found, Refusal):
            return SimpleNamespace(fieldId=number, nvmlReturn=found.value, valueType=0, value=None)
        if isinstance(found, SimpleNamespace):
            return found
        kind = 0 if isinstance(found, float) else 3
        held = SimpleNamespace(dVal=found, ullVal=found)
        return SimpleNamespace(fieldId=number, nvmlReturn=0, valueType=kind, value=held)

    # --- events ---

    def nvmlDeviceGetSupportedEventTypes(self, handle: int) -> int:
        return int(self._answer("nvmlDeviceGetSupportedEventTypes", (handle,)))

    def nvmlEventSetCreate(self) -> str:
        self.registered = []
        return "set"

    def nvmlDeviceRegisterEvents(self, handle: int, kinds: int, event_set: str) -> None:
        assert (kinds, event_set) == (8, "set")
        if ("register", handle) in self.answers:
            raise self.answers["register", handle]
        self.registered.append(handle)

    def nvmlEventSetWait(self, event_set: str, timeout_ms: int) -> SimpleNamespace:
        self.waited_ms.append(timeout_ms)
        if not self.events:
            raise Refusal(10, "Timeout")
        told = self.events.popleft()
        if isinstance(told, Refusal):
            raise told
        return told

    def nvmlEventSetFree(self, event_set: str) -> None:
        self.freed.append(event_set)
        if "free" in self.answers:
            raise self.answers["free"]

    def tell_xid(self, index: int, code: int, kind: int = 8) -> None:
        self.events.append(SimpleNamespace(device=index, eventType=kind, eventData=code))


def fabric(state: int, status: int = 0) -> Any:
    def fill(_handle: int, pointer: Any) -> int:
        pointer._obj.state, pointer._obj.status = state, status
        return 0

    return fill
