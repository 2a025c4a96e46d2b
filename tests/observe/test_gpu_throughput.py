from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, NOT_SUPPORTED, UNKNOWN, FakeNvml, Refusal

from acceptance.observe.gpu_throughput import Throughput

ALL = 0xFFFFFFFF
PCIE = {"nvmlDeviceGetPcieThroughput": {0: 300_000, 1: 55_100_000}}
RATES = {"pcie_tx_gb_s": 0.3, "pcie_rx_gb_s": 55.1}


def reader(
    answers: dict[Any, Any], fields: dict[Any, Any] | None = None, links: tuple[int, ...] = ()
) -> Throughput:
    return Throughput(FakeNvml(1, answers, fields or {}), 0, links)


UNKNOWN_TYPE = SimpleNamespace(fieldId=138, nvmlReturn=0, valueType=7, value=None)


def refused(code: int) -> dict[str, Any]:
    return {"nvmlDeviceGetPcieThroughput": {0: Refusal(code), 1: 1_000_000}}


@each(
    "answers, fields, links, rates",
    [
        (PCIE, {}, (), RATES),
        (refused(NOT_SUPPORTED), {}, (), {"pcie_rx_gb_s": 1.0}),
        (refused(UNKNOWN), {}, (), {"pcie_rx_gb_s": 1.0}),
        (refused(LOST), {}, (), {"pcie_rx_gb_s": 1.0}),
        ({}, {}, (), {}),
        ({}, {(138, ALL): 0, (139, ALL): 0}, (), {}),
        (PCIE, {"call": Refusal(UNKNOWN)}, (0,), RATES),
        (PCIE, {(138, ALL): UNKNOWN_TYPE}, (0,), RATES),
    ],
    told=[
        "PCIe in both directions",
        "what is not supported is absent and no zero",
        "what is refused",
        "what a lost GPU refuses",
        "a binding that does not have it",
        "a GPU without links is not asked for them",
        "a call that is refused as a whole",
        "a type of value that is not known yet",
    ],
)
def test_the_first_reading(
    answers: dict[Any, Any], fields: dict[Any, Any], links: tuple[int, ...], rates: dict[str, float]
) -> None:
    assert reader(answers, fields, links).read(0.0) == rates


def test_nvlink_is_the_difference_of_its_counters() -> None:
    fields: dict[Any, Any] = {(138, ALL): 0, (139, ALL): 1_000}
    found = reader({}, fields, links=(0, 1))
    assert found.read(10.0) == {}, "the first reading says only where the counters are"
    fields.update({(138, ALL): 2_000_000_000, (139, ALL): 1_000})
    rates = found.read(12.0)
    assert rates == {"nvlink_tx_gb_s": pytest.approx(1024.0), "nvlink_rx_gb_s": 0.0}


def test_where_nvml_does_not_sum_the_links_are_added_if_all_answer() -> None:
    fields: dict[Any, Any] = {(138, ALL): Refusal(NOT_SUPPORTED), (138, 0): 100, (138, 1): 200}
    found = reader({}, fields, links=(0, 1))
    found.read(0.0)
    fields.update({(138, 0): 100 + 1_000_000, (138, 1): 200 + 1_000_000})
    assert found.read(1.0) == {"nvlink_tx_gb_s": pytest.approx(2.048)}
    fields[138, 1] = Refusal(UNKNOWN)
    assert found.read(2.0) == {}
    fields[138, 1] = 5_000_000
    assert found.read(3.0) == {}, "what was missed in between is not known"


def test_a_counter_that_fell_gives_no_rate() -> None:
    fields: dict[Any, Any] = {(138, ALL): 5_000}
    found = reader({}, fields, links=(0,))
    found.read(0.0)
    fields[138, ALL] = 10
    assert found.read(1.0) == {}
    fields[138, ALL] = 1_000_010
    assert found.read(2.0) == {"nvlink_tx_gb_s": pytest.approx(1.024)}
