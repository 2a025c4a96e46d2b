from __future__ import annotations

import dataclasses
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from machine_tree import Programs, completed

from acceptance.command import CommandError, Completed
from acceptance.deadline import Deadline
from acceptance.observe import nvml
from acceptance.observe.nvml import NvmlAnswer, NvmlDevice


class Refusal(Exception):
    def __init__(self, value: int, text: str = "refused") -> None:
        super().__init__(text)
        self.value = value


class Library:
    """What the binding offers, with the answers of two GPUs; `refuse` maps (function, index) to NVML's number."""

    NVMLError = Refusal

    def __init__(self, refuse: dict[tuple[str, int | None], int] | None = None) -> None:
        self.refuse = refuse or {}

    def _ask(self, function: str, index: int | None, answer: Any) -> Any:
        if (function, index) in self.refuse:
            raise Refusal(self.refuse[function, index])
        return answer

    def nvmlInit(self) -> None:
        self._ask("init", None, None)

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.86.15"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 12080

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return int(self._ask("handle", index, index))

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=self._ask("pci", handle, f"00000000:{handle + 1:02X}:00.0".encode()))

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return str(self._ask("uuid", handle, f"GPU-{handle}"))

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA GeForce RTX 4090"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=self._ask("memory", handle, 25757220864))

    def nvmlDeviceGetSerial(self, handle: int) -> str:
        return str(self._ask("serial", handle, ""))

    def nvmlDeviceGetVbiosVersion(self, handle: int) -> str:
        return "95.02.18.80.1F"


def device(index: int, **changes: Any) -> NvmlDevice:
    healthy = NvmlDevice(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA GeForce RTX 4090",
        pci_address=f"0000:0{index + 1}:00.0",
        serial=None,
        vbios="95.02.18.80.1F",
        memory_bytes=25757220864,
        error=None,
        error_code=None,
    )
    return dataclasses.replace(healthy, **changes)


def test_a_healthy_answer() -> None:
    assert nvml.read(Library()) == NvmlAnswer("570.86.15", "12.8", (device(0), device(1)), None, None)


def test_what_a_gpu_does_not_offer_is_absent() -> None:
    answer = nvml.read(Library({("serial", 0): nvml.NOT_SUPPORTED, ("memory", 1): nvml.FUNCTION_NOT_FOUND}))
    assert answer.devices == (device(0), device(1, memory_bytes=None))


def test_a_lost_gpu_does_not_hide_the_others() -> None:
    answer = nvml.read(Library({("handle", 0): nvml.GPU_IS_LOST}))
    assert answer.error is None
    lost, healthy = answer.devices
    assert (lost.index, lost.uuid, lost.error, lost.error_code) == (0, None, "NVML says: refused", nvml.GPU_IS_LOST)
    assert healthy == device(1)


def test_what_was_read_before_a_gpu_was_lost_is_kept() -> None:
    lost = nvml.read(Library({("memory", 0): nvml.GPU_IS_LOST})).devices[0]
    assert (lost.uuid, lost.pci_address, lost.memory_bytes) == ("GPU-0", "0000:01:00.0", None)
    assert lost.error_code == nvml.GPU_IS_LOST


def test_no_library_and_other_refusals_to_begin() -> None:
    assert nvml.read(Library({("init", None): nvml.LIBRARY_NOT_FOUND})) == nvml.failed(
        "the NVIDIA driver library libnvidia-ml.so.1 is not installed", nvml.LIBRARY_NOT_FOUND
    )
    assert nvml.read(Library({("init", None): nvml.VERSION_MISMATCH})) == nvml.failed(
        "NVML says: refused", nvml.VERSION_MISMATCH
    )


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [("00000000:01:00.0", "0000:01:00.0"), ("0000:C1:00.0", "0000:c1:00.0"), ("00010000:01:00.0", "10000:01:00.0")],
)
def test_addresses_as_sysfs_spells_them(bus_id: str, address: str) -> None:
    assert nvml.normalised(bus_id) == address


def test_a_strange_address_is_refused() -> None:
    with pytest.raises(ValueError, match="not a PCI address"):
        nvml.normalised("GPU 1")


def probe(answer: Completed | Exception) -> NvmlAnswer:
    return nvml.probe(Programs(nvml=answer), deadline=Deadline.after(9))


def test_the_answer_of_the_child_comes_back() -> None:
    answer = nvml.read(Library({("handle", 1): nvml.GPU_IS_LOST}))
    assert probe(completed(msgspec.json.encode(answer).decode())) == answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (completed(timed_out=True), "the driver hangs"),
        (completed(returncode=-11), "asking NVML was ended by signal 11"),
        (completed("{}", "boom\n", 1), "ended with exit code 1 after 0.1 s: boom"),
        (completed("{}", truncated=True), "asking NVML ended with exit code 0"),
        (completed("rubbish"), "gave no readable answer"),
        (completed('{"devices": 3}'), "gave no readable answer"),
        (completed(""), "it printed nothing"),
        (CommandError("it was not started"), "it was not started"),
    ],
)
def test_a_child_that_fails_is_an_answer_with_an_error(answer: Completed | Exception, error: str) -> None:
    seen = probe(answer)
    assert seen.error is not None
    assert error in seen.error
    assert (seen.devices, seen.driver_version) == ((), None)


def test_the_program_prints_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Library())  # type: ignore[arg-type]
    runpy.run_path(str(nvml.__file__), run_name="__main__")
    assert msgspec.json.decode(capsys.readouterr().out, type=NvmlAnswer).devices == (device(0), device(1))


def test_the_binding_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def nothing(_name: str) -> None:
        raise OSError("cannot open shared object file")

    # A developer's machine may have a driver: its library must not be found here.
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", nothing)
    assert nvml.read(pynvml) == nvml.failed(nvml.LIBRARY_MISSING, nvml.LIBRARY_NOT_FOUND)
    assert pynvml.NVML_ERROR_LIBRARY_NOT_FOUND == nvml.LIBRARY_NOT_FOUND
    assert pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH == nvml.VERSION_MISMATCH
    assert pynvml.NVML_ERROR_DRIVER_NOT_LOADED == nvml.DRIVER_NOT_LOADED
    assert pynvml.NVML_ERROR_FUNCTION_NOT_FOUND == nvml.FUNCTION_NOT_FOUND
    assert pynvml.NVML_ERROR_NOT_SUPPORTED == nvml.NOT_SUPPORTED
    assert pynvml.NVML_ERROR_NO_PERMISSION == nvml.NO_PERMISSION
    assert pynvml.NVML_ERROR_GPU_IS_LOST == nvml.GPU_IS_LOST


def test_a_real_child_gives_a_readable_answer() -> None:
    """Whatever this machine has, the child starts, and its answer is NVML's or says why there is none."""
    answer = nvml.probe(deadline=Deadline.after(30))
    assert answer.error is None or "NVML" in answer.error or answer.error == nvml.LIBRARY_MISSING
    assert "No module" not in (answer.error or "")
