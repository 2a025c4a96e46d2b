"""A program: asks NVIDIA's binding what standard input says, and prints the answers, each a line of
JSON.

A question is a list: a function of the binding and its arguments, where {"gpu": 0} stands for a
handle, {"fabric": 2} for a record and {"kept": "set"} for the event set that was made. ["sleep",
seconds] waits. An answer is {"value": ...} or {"error": NVML's code}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

import pynvml

_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_kept: dict[str, Any] = {}  # what an earlier question made


def plain(found: Any) -> Any:
    """The same as numbers, texts, lists and objects."""
    if isinstance(found, pynvml.c_nvmlFieldValue_t):
        code = found.nvmlReturn
        return (
            {"code": code}
            if code
            else {"code": 0, "value": getattr(found.value, _MEMBERS[found.valueType])}
        )
    if isinstance(found, pynvml.c_nvmlDevice_t):
        return {"gpu": index(found)}
    if isinstance(found, ctypes.Structure):
        return {field[0]: plain(getattr(found, field[0])) for field in found._fields_}
    if isinstance(found, pynvml.nvmlFriendlyObject):
        return {name: plain(value) for name, value in vars(found).items()}
    if isinstance(found, ctypes.Array | list | tuple):
        return [plain(one) for one in found]
    return found.decode() if isinstance(found, bytes) else found


def index(handle: Any) -> int | str:
    """Which GPU a handle stands for."""
    try:
        return int(pynvml.nvmlDeviceGetIndex(handle))
    except pynvml.NVMLError_GpuIsLost:
        return "lost"


def argument(given: Any) -> Any:
    """What a question's argument stands for."""
    match given:
        case {"gpu": int(index)}:
            return pynvml.nvmlDeviceGetHandleByIndex(index)
        case {"fabric": int(version)}:
            return getattr(
                pynvml, f"c_nvmlGpuFabricInfo_v{version}_t" if version else "c_nvmlGpuFabricInfo_t"
            )()
        case {"kept": str(name)}:
            return _kept[name]
        case [[int(), int()], *_]:
            return [tuple(field) for field in given]
    return given


def answer(question: list[Any]) -> Any:
    """Ask once."""
    name, *given = question
    if name == "sleep":
        return time.sleep(given[0])
    arguments = [argument(one) for one in given]
    if name.startswith("nvmlDeviceGetGpuFabricInfo"):
        getattr(pynvml, name)(arguments[0], ctypes.byref(arguments[1]))
        return plain(arguments[1])
    if name == "nvmlEventSetCreate":
        _kept["set"] = pynvml.nvmlEventSetCreate()
        return None
    return plain(getattr(pynvml, name)(*arguments))


def main() -> None:
    """Answer every question when it comes."""
    for line in sys.stdin:
        try:
            said = {"value": answer(json.loads(line))}
        except pynvml.NVMLError as error:
            said = {"error": error.value}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
