"""Which number formats a card has itself."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each

from acceptance.core.dtype import (
    CPU_DTYPES,
    DTYPES,
    FIRST_CAPABILITY,
    PEAKS,
    gemm_names,
    native_dtypes,
    trained_dtype,
)
from acceptance.loads.gemm import dtypes


@each(
    "capability, formats",
    [
        ("0.0", "f64 f32"),
        ("6.1", "f64 f32"),
        ("7.0", "f64 f32 f16"),
        ("7.5", "f64 f32 f16 i8"),
        ("8.0", "f64 f32 tf32 f16 bf16 i8"),
        ("8.6", "f64 f32 tf32 f16 bf16 i8"),
        ("8.9", "f64 f32 tf32 f16 bf16 f8 i8"),
        ("9.0", "f64 f32 tf32 f16 bf16 f8 i8"),
        ("10.3", "f64 f32 tf32 f16 bf16 f8 i8"),
        ("12.0", "f64 f32 tf32 f16 bf16 f8 i8"),
        ("13.0", "f64 f32 tf32 f16 bf16 f8 i8"),
    ],
)
def test_a_card_has_what_its_tensor_cores_have(capability: str, formats: str) -> None:
    assert native_dtypes(capability) == tuple(formats.split())


@each("wrong", ["", "9", "9.", ".0", "sm_90", "9.0a", "-9.0", "9.0.1"])
def test_what_is_no_compute_capability_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no compute capability"):
        native_dtypes(wrong)


def test_training_is_judged_in_bfloat16_where_the_card_has_it() -> None:
    assert (trained_dtype("8.0"), trained_dtype("7.5")) == ("bf16", "f16")


def test_a_capability_is_a_major_and_a_minor_number() -> None:
    assert {len(first) for first in FIRST_CAPABILITY.values()} == {2}


def test_the_formats_of_the_processor_are_as_wide_as_their_names_say() -> None:
    bits = {name: 8 * np.dtype(numpy).itemsize for name, numpy in CPU_DTYPES.items()}
    assert bits == {"f64": 64, "f32": 32}


def test_every_format_has_a_peak_and_two_measurements() -> None:
    assert tuple(PEAKS) == tuple(FIRST_CAPABILITY) == tuple(dtypes.DTYPES) == DTYPES
    assert gemm_names("bf16") == ("gemm_bf16_short", "gemm_bf16")
