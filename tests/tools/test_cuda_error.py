from __future__ import annotations

import pytest
from cases import each
from known import known
from reasons import why_of

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import proof


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
    trouble = known(proof.crash_reason(["Device 0: something", line, "more"]))
    assert trouble.hardware is hardware
    assert why_of(trouble).startswith(f"it died: '{line.strip()}'")
    assert cure in why_of(trouble)
    assert why_of(trouble).endswith(")") is bool(cure)


def test_not_started() -> None:
    line = (
        "./nvbandwidth: error while loading shared libraries: libcuda.so.1: cannot open shared "
        "object file"
    )
    output = proof.not_started("nvbandwidth", "", ["$ ./nvbandwidth", line])
    assert (output.tool, output.outcome) == ("nvbandwidth", "error")
    assert why_of(output).startswith("it did not start: './nvbandwidth: error while")
    assert "a library is missing" in why_of(output)
    with pytest.raises(
        UnreadableOutput, match=r"^nvbandwidth: the text holds no line of .*'hello'"
    ):
        proof.not_started("nvbandwidth", "\nhello\n", ["hello"])


DIED, LOST = "Aborted (core dumped)", "GPU 0000:01:00.0: GPU is lost."


@each(
    "lines, hardware",
    [
        ([DIED, LOST], True),
        ([LOST, DIED], True),
        (["Segmentation fault", "NVML_ERROR: [GPU is lost] in expression x"], True),
        *(
            ([one], False)
            for one in (
                *(
                    DIED,
                    "Bus error",
                    "Illegal instruction (core dumped)",
                    "Floating point exception",
                ),
            )
        ),
        (["Result = PASS"], None),
        (["Running host_to_device_memcpy_ce.", "The process Killed nothing"], None),
    ],
)
def test_a_fault_of_the_hardware_comes_before_a_death(
    lines: list[str], hardware: bool | None
) -> None:
    found = proof.trouble(lines)
    assert (None if found is None else found.hardware) is hardware
    assert (proof.crash_reason(lines) is None) == (found is None)


@each(
    "text, code, words",
    [
        (
            "cudaGetDeviceCount returned 999\n"
            'CUDA error at a.cu:1 code=214(cudaErrorECCUncorrectable) "f()"',
            214,
            "cudaErrorECCUncorrectable",
        ),
        (
            "cudaGetDeviceCount returned 802\n-> system not yet initialized",
            802,
            "system not yet initialized",
        ),
        (
            "cudaGetDeviceCount returned 802\n\n-> system not yet initialized",
            802,
            "system not yet initialized",
        ),
        (
            "cudaGetDeviceCount returned 100 -> no CUDA-capable device",
            100,
            "no CUDA-capable device",
        ),
        ("cudaGetDeviceProperties returned 101", 101, None),
        ("cudaGetDeviceCount returned 35\nResult = FAIL", 35, None),
        (
            (
                "CUDA error at bandwidthTest.cu:730 code=46(cudaErrorDevicesUnavailable) "
                '"cudaSetDevice(0)" '
            ),
            46,
            "cudaErrorDevicesUnavailable",
        ),
        ('CUDA error at a.cu:1 code=46() "f()"\n-> of another message', 46, None),
        (
            "a.cu(12) : getLastCudaError() CUDA error : Kernel failed : (719) unspecified.",
            719,
            "unspecified",
        ),
        ("a.cu(12) : cudaSafeCall() Runtime API error 38: no device.", 38, "no device"),
        (
            "There are no available device(s) that support CUDA",
            100,
            "There are no available device(s) that support CUDA",
        ),
        ("!!!!!No devices found!!!!!", 100, "No devices found"),
        (
            "Error: device is running in <Compute Mode Prohibited>, no threads",
            46,
            "device is running in <Compute Mode Prohibited>",
        ),
    ],
)
def test_forms(text: str, code: int, words: str | None) -> None:
    assert proof.find_code(text.split("\n")) == proof.CudaError(code, words)


@each(
    "text", ["", "cudaGetDeviceCount returned 0", "-> alone", "Detected 2 CUDA Capable device(s)"]
)
def test_no_error(text: str) -> None:
    assert proof.find_code(text.split("\n")) is None


@each(
    "code, word",
    [
        (35, "newer driver"),
        (38, "permissions"),
        (802, "fabric"),
        (12345, "12345"),
        (803, "reboot"),
        (804, "compat"),
        (46, "exclusive"),
        (999, "reboot"),
    ],
)
def test_cause_and_cure(code: int, word: str) -> None:
    error = proof.CudaError(code, None)
    assert word in why_of(error)
    assert not error.hardware


def test_only_memory_and_link_errors_prove_a_fault() -> None:
    assert {code for code in proof.CAUSES if proof.CudaError(code, None).hardware} == {
        39,
        214,
        220,
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize("begin", ["CUDA error at x ", "CUDA error : ("])
def test_a_line_of_nothing_but_beginnings_takes_no_time(begin: str) -> None:
    assert proof.find_code([begin * 20_000]) is None
    found = known(
        proof.find_code(
            [begin * 20_000 + "CUDA error at a.cu:1 code=214(cudaErrorECCUncorrectable)"]
        )
    )
    assert found.hardware
