"""Wrong results of a burn, as the journal tells of them: rows of a table, and a diagnosis with
the heat of the moment.
"""

from __future__ import annotations

from typing import Any

from gpu_machine import gpu
from wrong_results import COPIED, INPUTS, REPEATED, WHOLE, all_of, one_bit, vram

from acceptance.core.parts import Component, Gpu
from acceptance.diagnosis.signature import GpuHeat
from acceptance.journal.segment import JournalError
from acceptance.loads.protocol import LoadOutput, LoadTable
from acceptance.session.loads import LoadFailed, Results, alone
from acceptance.suites.fixtures import burn_evidence
from acceptance.suites.fixtures.burn_evidence import (
    COLUMNS,
    ROWS,
    diagnosed,
    evidence,
    product_digests,
)
from acceptance.wording import words

DUE = (gpu(0), gpu(2))


def ring(dtype: str, iteration: int, **more: Any) -> dict[str, Any]:
    found = one_bit(3, iteration=iteration, made_s=10.0 + iteration)
    return {**found, "dtype": dtype, **more}


def failed(*found: dict[str, Any]) -> Results:
    return Results(alone(DUE), {}, {Gpu(2): LoadFailed("it died", all_of(*found))})


def due(_count: str) -> tuple[Component, ...]:
    return tuple(gpu.name for gpu in DUE)


def cool(gpu: str, boot_s: float) -> GpuHeat | None:
    return None


def cells(results: Results, column: str) -> list[float | str]:
    return [row[COLUMNS.index(column)] for row in evidence(results, due, cool)[Gpu(2)]]


def test_without_wrong_results_there_is_no_table() -> None:
    assert evidence(failed(), due, cool) == {}


def test_a_format_with_many_wrong_products_does_not_crowd_out_another() -> None:
    loads = failed(
        *(ring("bf16", n) for n in range(500)), ring("f64", 3), *(ring("f32", n) for n in range(40))
    )
    formats = cells(loads, "format")
    assert len(formats) <= ROWS
    assert (formats.count("f64"), formats.count("bf16"), formats.count("f32")) == (1, 31, 31)
    assert cells(loads, "iteration")[:2] == [3.0, 0.0]


def test_what_a_load_did_not_tell_is_a_dash_and_never_a_number() -> None:
    (row,) = evidence(failed({**INPUTS, "dtype": "f16"}), due, cool)[Gpu(2)]
    told = dict(zip(COLUMNS, row, strict=True))
    assert told.pop("format") == "f16"
    assert told.pop("kind") == "inputs"
    assert set(told.values()) == {"-"}


def test_each_kind_fills_its_cells() -> None:
    loads = failed(
        ring("f16", 7),
        {**WHOLE, "dtype": "f16", "elements": 3},
        {**REPEATED, "dtype": "f16"},
        vram([(64, 0, 4)], number=2, words=5),
        {**COPIED, "component": "gpu0", "check": "copy_h2d", "found_s": 30.0},
        {"unknown": 1},
    )
    counts = ("burn_f16_miscompares", "burn_copy_miscompares", "vram_miscompares")
    assert {row[:8] for count in counts for row in _rows(loads, count)} == {
        ("f16", 7.0, 1.0, "0x2825ad0e", "-", "0008", "3:1", 17.0),
        ("f16", "-", 3.0, "-", "-", "-", "-", "-"),
        ("f16", "-", "-", "-", "-", "-", "-", "-"),
        ("vram", "-", 5.0, "0x40", "-", "0000000000000004", "2:1", 1002.0),
        ("copy_h2d", "-", 12.0, "-", "-", "-", "-", 30.0),
        ("-",) * 8,
    }


def _rows(results: Results, count: str) -> list[burn_evidence.Row]:
    return [
        burn_evidence._row(Gpu(2), one, "many", cool)
        for found in results.wrong(count, due(count)).values()
        for one in found
    ]


def test_a_number_too_large_for_the_journal_is_a_dash() -> None:
    assert cells(failed(ring("f16", 1, elements=10**15)), "elements") == ["-"]
    assert cells(failed(ring("f16", 1, elements=10**15 - 1)), "elements") == [1e15 - 1]


def test_heat_is_that_of_the_gpu_when_the_product_was_made_or_else_found() -> None:
    asked: list[tuple[str, float]] = []

    def heats(gpu: str, boot_s: float) -> GpuHeat | None:
        asked.append((gpu, boot_s))
        return GpuHeat(60.0 + boot_s, 1500.0)

    loads = failed(
        ring("f16", 1), {**COPIED, "component": "gpu0", "check": "copy_h2d", "found_s": 30.0}
    )
    rows = evidence(loads, due, heats)[Gpu(2)]
    assert [row[COLUMNS.index("degC")] for row in rows] == [71.0, 90.0]
    assert {gpu for gpu, _ in asked} == {Gpu(2)}


def test_a_telemetry_that_cannot_be_read_takes_no_wrong_result_away() -> None:
    def heats(gpu: str, boot_s: float) -> GpuHeat | None:
        raise JournalError("damaged")

    assert len(evidence(failed(ring("f16", 1)), due, heats)[Gpu(2)]) == 1
    assert diagnosed(Gpu(2), all_of(ring("f16", 1)), heats).told


def test_a_diagnosis_is_of_its_own_count() -> None:
    results = failed(ring("f16", 1), ring("f16", 2), ring("f64", 1))
    counts, notes = results.counts(
        "burn_f16_miscompares",
        due("burn_f16_miscompares"),
        lambda gpu, wrong: diagnosed(gpu, wrong, cool).told,
    )
    assert counts == {Gpu(2): 2.0}
    assert "2" in words.text(notes[Gpu(2)] or "")


def test_digests_are_by_product_with_the_library_that_made_them() -> None:
    table = LoadTable(
        "burn_digests",
        ("format", "shape", "inputs", "result"),
        (("f64", "8x8x8", "0" * 16, "1" * 16),),
    )
    found = product_digests(
        Results(
            alone(DUE),
            {Gpu(0): LoadOutput("burn", {"library": "cuBLAS"}, (), (), (), (table,))},
        )
    )
    assert found[Gpu(0)].library == "cuBLAS"
    assert found[Gpu(0)].rows == {("f64", "8x8x8"): ("0" * 16, "1" * 16)}


def test_every_count_of_the_burn_is_looked_at() -> None:
    assert len(burn_evidence.COUNTS) == 9
