from __future__ import annotations

import multiprocessing
import time
from typing import Any

import pytest
from cases import each

from acceptance.core import parts
from acceptance.loads.cpu import gemm_worker
from acceptance.loads.cpu.cores import Core
from acceptance.loads.cpu.gemm import LoopResult, WorkerReady
from acceptance.loads.cpu.gemm_worker import (
    FIRST,
    ProductCheck,
    inject_fault,
    library,
    numpy_product,
    run_loop,
    spoiled_result,
    work,
)

DTYPES = ["float32", "float64"]


def messages(
    dtype: str = "float64", inject: str | None = None, seconds: float = 0.02
) -> tuple[list[dict[str, Any]], WorkerReady, LoopResult]:
    """What a worker says, in this process."""
    ours, theirs = multiprocessing.Pipe()
    now = time.monotonic()
    ours.send(("start", (now, now + seconds)))
    work(Core("all", (4, 5)), theirs, 48, dtype, inject)
    theirs.close()
    heard: dict[str, list[Any]] = {"miscompare": [], "ready": [], "lap": []}
    while True:
        try:
            kind, value = ours.recv()
        except EOFError:
            break
        heard[kind].append(value)
    (ready,), (lap,) = heard["ready"], heard["lap"]
    return heard["miscompare"], ready, lap


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_clean_worker(dtype: str) -> None:
    found, ready, lap = messages(dtype)
    assert found == []
    assert ready.right
    assert len(ready.digest) == 64
    assert ready.library == library()
    assert lap.products >= 1
    assert lap.wrong == 0
    assert lap.seconds > 0


@each("dtype", DTYPES)
@each("kind", ["bitflip", "nan"])
def test_a_flipped_bit_is_located_and_a_nan_is_told_apart(dtype: str, kind: str) -> None:
    (found,), ready, lap = messages(dtype, kind)
    assert ready.right
    assert lap.wrong == 1
    assert (found.component, found.check, found.product) == (parts.Core(4), "repeat", 0)
    assert (found.elements, found.nan) == (1, int(kind == "nan"))
    assert found.first[0].index == (24, 0)
    assert kind == "nan" or int(found.first[0].xor, 16) == 1
    assert found.seconds >= 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_wrong_from_the_first_time_on_is_found_though_all_results_are_equal(
    dtype: str,
) -> None:
    (found,), ready, lap = messages(dtype, "stuck")
    assert not ready.right
    assert (found.check, found.component, found.first) == ("exact", parts.Core(4), (16,))
    assert lap.wrong == lap.products


def test_a_slow_core_is_slow_by_the_share_that_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    moments = iter([10.0, 12.0])
    monkeypatch.setattr(gemm_worker.time, "sleep", slept.append)
    monkeypatch.setattr(gemm_worker.time, "monotonic", lambda: next(moments))
    inject_fault("slow:75", lambda _turn, _out: None)(5, spoiled_result(8, "float32"))
    assert slept == [6.0]


def test_faults_of_the_timed_part_leave_the_first_product_alone() -> None:
    for kind in ("bitflip", "nan", "die", "hang", "slow:50"):
        out = spoiled_result(8, "float64")
        inject_fault(kind, lambda _turn, _out: None)(FIRST, out)
        assert (out == spoiled_result(8, "float64")).all()
    for kind in ("bitflip", "nan", "die", "hang"):
        inject_fault(kind, lambda _turn, _out: None)(1, out)
    assert (out == spoiled_result(8, "float64")).all()


@each("dtype", DTYPES)
@each("block", [(0, 32), (0, 8), (24, 32), (8, 12)])
def test_a_product_that_skips_a_block_or_does_nothing_is_found(
    dtype: str, block: tuple[int, int]
) -> None:
    _, _, multiply = numpy_product(32, dtype)
    first = spoiled_result(32, dtype)
    multiply(FIRST, first)
    told: list[dict[str, Any]] = []
    result = first.copy()  # even if it begins with a right result
    comparison = ProductCheck(first, result, told.append, parts.Core(4), time.monotonic())
    part = slice(*block), slice(0, 32 if block == (0, 32) else 16)
    for turn in range(62):
        kept = result[part].copy()
        multiply(turn, result)
        result[part] = kept
        comparison(turn)
    assert comparison.wrong > 40
    assert len(told) == 8  # counted all, told in detail the first few


def test_a_worker_without_products_never_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(_size: int, _dtype: str) -> Any:
        a, b, _ = numpy_product(_size, _dtype)
        return a, b, lambda _turn, _out: None

    monkeypatch.setattr(gemm_worker, "numpy_product", idle)
    (found, *_), ready, lap = messages()
    assert found.check == "exact"
    assert not ready.right
    assert lap.wrong == lap.products


def test_the_loop_runs_once_at_least_and_checks_every_product() -> None:
    for until_s in (0.0, time.monotonic() + 0.01):
        calls: list[tuple[str, int]] = []
        count, seconds = run_loop(
            until_s,
            lambda turn, calls=calls: calls.append(("product", turn)),
            lambda turn, calls=calls: calls.append(("check", turn)),
        )
        due = [(what, turn) for turn in range(count) for what in ("product", "check")]
        assert (calls, count >= 1, seconds >= 0) == (due, True, True)
        assert until_s or count == 1
