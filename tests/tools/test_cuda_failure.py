from __future__ import annotations

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from known import known
from reasons import why_of

from acceptance.tools import cuda_error


@each(
    "text, code, words",
    [
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
    assert cuda_error.find_code(text.split("\n")) == cuda_error.CudaError(code, words)


@each(
    "text", ["", "cudaGetDeviceCount returned 0", "-> alone", "Detected 2 CUDA Capable device(s)"]
)
def test_no_error(text: str) -> None:
    assert cuda_error.find_code(text.split("\n")) is None


def test_a_proven_fault_counts_before_an_earlier_error() -> None:
    lines = [
        "cudaGetDeviceCount returned 999",
        'CUDA error at a.cu:1 code=214(cudaErrorECCUncorrectable) "f()"',
    ]
    error = known(cuda_error.find_code(lines))
    assert (error.code, error.hardware) == (214, True)


@each(
    "code, word",
    [
        (35, "newer driver"),
        (38, "permissions"),
        (802, "fabric"),
        (803, "reboot"),
        (804, "compat"),
        (46, "exclusive"),
        (999, "reboot"),
    ],
)
def test_cause_and_cure(code: int, word: str) -> None:
    error = cuda_error.CudaError(code, None)
    assert word in why_of(error)
    assert not error.hardware


def test_a_code_that_is_not_in_the_table() -> None:
    error = cuda_error.CudaError(12345, "odd")
    assert "12345 (odd)" in why_of(error)
    assert not error.hardware


def test_only_memory_and_link_errors_prove_a_fault() -> None:
    assert {code for code in cuda_error.CAUSES if cuda_error.CudaError(code, None).hardware} == {
        39,
        214,
        220,
    }


@given(st.lists(st.text()))
def test_nothing_makes_it_crash(lines: list[str]) -> None:
    cuda_error.find_code(lines)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("begin", ["CUDA error at x ", "CUDA error : ("])
def test_a_line_of_nothing_but_beginnings_takes_no_time(begin: str) -> None:
    assert cuda_error.find_code([begin * 20_000]) is None
    found = known(
        cuda_error.find_code(
            [begin * 20_000 + "CUDA error at a.cu:1 code=214(cudaErrorECCUncorrectable)"]
        )
    )
    assert found.hardware
