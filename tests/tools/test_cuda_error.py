from __future__ import annotations

import pytest
from cases import each
from known import known
from reasons import why_of

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import cuda_error


@each(
    "line, cure, hardware",
    [
        (
            "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected in expression cuInit(0)",
            "GPU grant",
            False,
        ),
        (
            "Cuda failure a.cu:7: 'CUDA driver version is insufficient for CUDA runtime version'",
            "install a newer driver",
            False,
        ),
        ("[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized", "fabricmanager", False),
        ("NVML_ERROR: [Driver/library version mismatch] in expression nvmlInit()", "reboot", False),
        (
            "  Cuda failure a.cu:7: 'no kernel image is available for execution on the device'",
            "architecture",
            False,
        ),
        (
            'CUDA error at a.cu:7 code=2(cudaErrorMemoryAllocation) "cudaMalloc()"',
            "end the processes that nvidia-smi lists",
            False,
        ),
        (
            "Cuda failure a.cu:7: 'all CUDA-capable devices are busy or unavailable'",
            "compute mode",
            False,
        ),
        ("[cudaErrorLaunchFailure] unspecified launch failure in expression x", "xid", False),
        (
            "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable ECC error encountered in expression x",
            "",
            True,
        ),
        ("Cuda failure a.cu:7: 'uncorrectable ECC error encountered'", "", True),
        ("NVML_ERROR: [GPU is lost] in expression x", "", True),
        ("[CUDA_ERROR_NVLINK_UNCORRECTABLE] uncorrectable NVLink error detected", "", True),
        ("Segmentation fault (core dumped)", "", False),
        ("Killed", "", False),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "", False),
    ],
)
def test_died(line: str, cure: str, hardware: bool) -> None:
    trouble = known(cuda_error.crash_reason(["Device 0: something", line, "more"]))
    assert trouble.hardware is hardware
    assert why_of(trouble).startswith(f"it died: '{line.strip()}'")
    assert cure in why_of(trouble)
    assert why_of(trouble).endswith(")") is bool(cure)


def test_a_fault_of_the_hardware_comes_first() -> None:
    trouble = known(
        cuda_error.crash_reason(["Segmentation fault", "NVML_ERROR: [GPU is lost] in expression x"])
    )
    assert trouble.hardware


def test_a_run_that_lives() -> None:
    assert (
        cuda_error.crash_reason(["Running host_to_device_memcpy_ce.", "The process Killed nothing"])
        is None
    )


def test_not_started() -> None:
    line = (
        "./nvbandwidth: error while loading shared libraries: libcuda.so.1: cannot open shared "
        "object file"
    )
    output = cuda_error.not_started("nvbandwidth", "", ["$ ./nvbandwidth", line])
    assert (output.tool, output.outcome) == ("nvbandwidth", "error")
    assert why_of(output).startswith("it did not start: './nvbandwidth: error while")
    assert "a library is missing" in why_of(output)
    with pytest.raises(
        UnreadableOutput, match=r"^nvbandwidth: the text holds no line of .*'hello'"
    ):
        cuda_error.not_started("nvbandwidth", "\nhello\n", ["hello"])


def test_a_fault_of_the_hardware_comes_before_a_death() -> None:
    died, lost = "Aborted (core dumped)", "GPU 0000:01:00.0: GPU is lost."
    for lines in ([died, lost], [lost, died]):
        found = known(cuda_error.trouble(lines))
        assert found.hardware
    found = known(cuda_error.trouble([died]))
    assert not found.hardware
    assert cuda_error.trouble(["Result = PASS"]) is None
    for line in ("Bus error", "Illegal instruction (core dumped)", "Floating point exception"):
        assert cuda_error.crash_reason([line]) is not None
