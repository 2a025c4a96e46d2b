from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, NOT_SUPPORTED, UNKNOWN, FakeNvml, Refusal
from refusal import raised

from acceptance.observe import nvml_call
from acceptance.observe.nvml_call import ask, ask_or_none, available_fields, field, fields


def test_an_answer_and_what_is_not_offered() -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetFanSpeed": {7: 40}})
    assert ask(nvml, "nvmlDeviceGetFanSpeed", 0, 7) == 40
    assert ask(nvml, "nvmlDeviceGetFanSpeed", 0, 8) is None
    assert ask(nvml, "nvmlThatIsOlderThanTheBinding", 0) is None


@each("code", sorted(nvml_call.NOT_OFFERED))
def test_what_counts_as_not_offered(code: int) -> None:
    assert (
        ask(FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}), "nvmlDeviceGetFanSpeed", 0)
        is None
    )


@each("code", [LOST, UNKNOWN, nvml_call.RESET_REQUIRED, 14])
def test_every_other_refusal_is_raised(code: int) -> None:
    with pytest.raises(Refusal):
        ask(FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}), "nvmlDeviceGetFanSpeed", 0)


@each("code", [UNKNOWN, NOT_SUPPORTED, 14])
def test_what_must_not_be_known_may_be_refused(code: int) -> None:
    refusing = FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}, {"call": Refusal(code)})
    assert ask_or_none(refusing, "nvmlDeviceGetFanSpeed", 0) is None
    assert available_fields(refusing, 0, [(82, 0)]) == {}
    assert available_fields(FakeNvml(fields={82: Refusal(code), 3: 1}), 0, [(82, 0), (3, 0)]) == {
        (3, 0): 1
    }


@each("code", sorted(nvml_call.LOST))
def test_a_lost_gpu_is_never_passed_over(code: int) -> None:
    lost = FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}, {"call": Refusal(code)})
    with pytest.raises(Refusal):
        ask_or_none(lost, "nvmlDeviceGetFanSpeed", 0)
    with pytest.raises(Refusal):
        available_fields(lost, 0, [(82, 0)])
    with pytest.raises(Refusal):
        available_fields(FakeNvml(fields={82: Refusal(code)}), 0, [(82, 0)])


def test_fields_that_the_binding_does_not_know_are_not_asked_for() -> None:
    assert field(FakeNvml(), "MEMORY_TEMP", "MADE_UP", scope=4) == ((82, 4),)


@each(
    "answers, wanted, found, asked",
    [
        (
            {82: 51, (161, 3): 7, 4: 0.5},
            [(82, 0), (161, 3), (161, 4), (4, 0), (82, 0)],
            {(82, 0): 51, (161, 3): 7, (4, 0): 0.5},
            [[(82, 0), (161, 3), (161, 4), (4, 0)]],
        ),
        ({}, [], {}, []),
        ({"call": Refusal(NOT_SUPPORTED)}, [(82, 0)], {}, [[(82, 0)]]),
    ],
    told=["one call, each field once", "no fields are no call", "a driver without fields"],
)
def test_fields_come_in_one_call(
    answers: dict[Any, Any],
    wanted: list[tuple[int, int]],
    found: dict[tuple[int, int], float],
    asked: list[list[tuple[int, int]]],
) -> None:
    nvml = FakeNvml(fields=answers)
    assert fields(nvml, 0, wanted) == found
    assert nvml.asked_fields == asked


def test_a_field_s_own_refusal_counts() -> None:
    with pytest.raises(Refusal):
        fields(FakeNvml(fields={82: Refusal(UNKNOWN)}), 0, [(82, 0)])


def test_a_field_that_is_refused_for_another_reason_than_those_that_raise_is_absent() -> None:
    only = frozenset({LOST})
    assert fields(
        FakeNvml(fields={82: Refusal(UNKNOWN), 3: 1}), 0, [(82, 0), (3, 0)], raising=only
    ) == {(3, 0): 1}
    with pytest.raises(Refusal):
        fields(FakeNvml(fields={82: Refusal(LOST)}), 0, [(82, 0)], raising=only)


@each(
    "kind, member",
    [
        (0, "dVal"),
        (1, "uiVal"),
        (2, "ulVal"),
        (3, "ullVal"),
        (4, "sllVal"),
        (5, "siVal"),
        (6, "usVal"),
    ],
)
def test_where_a_value_stands(kind: int, member: str) -> None:
    answer = SimpleNamespace(fieldId=1, valueType=kind, value=SimpleNamespace(**{member: 12}))
    assert nvml_call.value(answer) == 12


def test_a_type_of_value_that_nobody_knows() -> None:
    assert "field 82 as a value of type 7" in raised(
        ValueError, nvml_call.value, SimpleNamespace(fieldId=82, valueType=7, value=None)
    )
