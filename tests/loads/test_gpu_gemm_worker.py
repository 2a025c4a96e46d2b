from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from card_of_tests import FakeCard
from cases import each

from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.worker import GemmOptions, GemmWorker, fitting_size, needs, report_absent
from acceptance.loads.miscompare import LapMismatch, ReferenceKind, WrongReference, WrongRepeat
from acceptance.loads.mismatch import ProductDifference, RemadeDigest
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, Output, parse

ONE_S = 2 * 1024**3 / 10e12  # a product of 1024 at 10 TFLOP/s


DIGESTS: RemadeDigest = {"expected": "1", "got": "2", "nan": 0, "infinite": 0}
DIFFERENCE: ProductDifference = {"elements": 1, "nan": 0, "infinite": 0, "first": ()}


def reference(check: ReferenceKind, elements: int) -> WrongReference:
    return WrongReference(
        component=Gpu(0),
        dtype="f32",
        check=check,
        rows=64,
        elements=elements,
        nan=0,
        infinite=0,
        first=(),
    )


@dataclass
class Found:
    findings: tuple[WrongReference, ...] = ()
    notes: tuple[str, ...] = ("close",)


@dataclass
class FakeTrial:
    """Products that cost the card time, and comparisons that a test can make fail: "short",
    "again", "sustained".
    """

    dtype: Dtype
    card: FakeCard
    found: Found
    differs: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)

    def multiply(self) -> None:
        self.card.work()

    def verify(self) -> Found:
        self.told.append("verify")
        return self.found

    def release(self) -> None:
        self.told.append("release")

    def remake(self) -> RemadeDigest | None:
        assert self.told[-1] == "release"
        self.told.append("again")
        return DIGESTS if "again" in self.differs else None

    def spoil(self) -> None:
        self.told.append("spoil")

    def compare(self, *, falsify: bool = False) -> ProductDifference | None:
        when = "sustained" if "compare" in self.told else "short"
        self.told.append("compare")
        return DIFFERENCE if falsify or when in self.differs else None


@dataclass
class Bench:
    """A worker's surroundings: what it is given and what it does."""

    card: FakeCard = field(default_factory=lambda: FakeCard(lambda _: ONE_S))
    found: Found = field(default_factory=Found)
    differs: tuple[str, ...] = ()
    trials: list[FakeTrial] = field(default_factory=list)
    slept: list[tuple[float, int]] = field(default_factory=list)

    def trial(self, dtype: Dtype, size: int) -> FakeTrial:
        assert size == 1024
        assert all(trial.told[-1] == "release" for trial in self.trials), (
            "one format has the memory at a time"
        )
        self.trials.append(FakeTrial(dtype, self.card, self.found, self.differs))
        return self.trials[-1]

    def prepare(self, _dtype: Dtype, _size: int) -> Callable[[], None]:
        return self.card.work

    def run(
        self,
        *shorts: str,
        seconds: float = 6.0,
        table: tuple[int, ...] = (),
        inject: str | None = None,
    ) -> LoadOutput:
        stream = io.StringIO()
        output = Output(stream)
        output.hello("gpu_gemm", {})
        order = GemmOptions(tuple(DTYPES[short] for short in shorts), seconds, 1024, table, inject)
        GemmWorker(
            order,
            self.card,
            output,
            self.trial,
            self.prepare,
            clock=lambda: self.card.now,
            sleep=lambda seconds: self.slept.append((seconds, self.card.done)),
        ).run()
        output.end()
        self.text = stream.getvalue()
        return parse(self.text)


def values(output: LoadOutput) -> dict[str, tuple[str, str, float]]:
    return {
        reading.name: (reading.unit, reading.component, reading.value)
        for reading in output.readings
    }


def test_every_format_has_its_three_readings() -> None:
    output = Bench().run("f64", "bf16")
    rate = pytest.approx(10.0)
    assert values(output) == {
        "gemm_f64_short": ("TFLOP/s", Gpu(0), rate),
        "gemm_bf16_short": ("TFLOP/s", Gpu(0), rate),
        "gemm_f64": ("TFLOP/s", Gpu(0), rate),
        "gemm_f64_miscompares": ("count", Gpu(0), 0),
        "gemm_bf16": ("TFLOP/s", Gpu(0), rate),
        "gemm_bf16_miscompares": ("count", Gpu(0), 0),
    }
    assert output.miscompares == ()
    assert output.tables == ()
    assert "float64, close" in output.notes


def test_all_are_taken_cool_before_any_is_taken_hot() -> None:
    bench = Bench()
    bench.run("f64", "bf16")
    warm = 1  # the one product that says how long one takes; a tenth of a second is 466 of them
    assert bench.slept == [(0.5, warm), (0.5, 2 * warm + 466)]
    first, second = (
        ["verify", "spoil", "compare", "release"],
        ["again", "spoil", "compare", "release"],
    )
    assert [trial.told for trial in bench.trials] == [first + second] * 2


def test_progress_is_told_over_all_formats() -> None:
    bench = Bench()
    bench.run("f64", "bf16")
    told = [line for line in bench.text.splitlines() if line.startswith('{"progress"')]
    assert told == ['{"progress": 5.0, "of": 12.0}', '{"progress": 10.0, "of": 12.0}']


def test_a_last_product_that_differs_is_a_miscompare() -> None:
    output = Bench(differs=("short",)).run("bf16")
    assert output.miscompares == (
        WrongRepeat(component=Gpu(0), dtype="bf16", check="repeat", after="short", **DIFFERENCE),
    )
    assert values(output)["gemm_bf16_miscompares"][2] == 1
    output = Bench(differs=("short", "sustained")).run("bf16")
    assert [found.after for found in output.miscompares] == ["short", "sustained"]
    assert values(output)["gemm_bf16_miscompares"][2] == 2


def test_after_a_wrong_first_product_no_product_counts_as_right() -> None:
    bench = Bench(
        found=Found((reference("normal", 3), reference("whole", 4))),
        differs=("short",),
    )
    output = bench.run("f32", seconds=0.5)
    assert [found.check for found in output.miscompares] == ["normal", "whole", "repeat"]
    assert values(output)["gemm_f32_miscompares"][2] == 5


def test_a_first_product_that_cannot_be_made_again_is_a_miscompare() -> None:
    output = Bench(differs=("again",)).run("bf16", seconds=0.5)
    assert output.miscompares == (
        LapMismatch(component=Gpu(0), dtype="bf16", check="again", **DIGESTS),
    )
    assert values(output)["gemm_bf16_miscompares"][2] == 2


def test_an_injected_wrong_element_is_found_in_every_format() -> None:
    output = Bench().run("f32", "i8", seconds=0.5, inject="wrong")
    assert [(found.dtype, found.after) for found in output.miscompares] == [
        ("f32", "sustained"),
        ("i8", "sustained"),
    ]
    assert values(output)["gemm_i8_miscompares"][2] == 1


def test_injected_slowness_halves_every_rate() -> None:
    output = Bench().run("bf16", seconds=0.5, table=(1024,), inject="slow")
    assert values(output)["gemm_bf16_short"][2] == pytest.approx(5.0)
    assert values(output)["gemm_bf16"][2] == pytest.approx(5.0)
    assert output.tables[0].rows == ((1024.0, pytest.approx(5.0)),)


def test_the_table_comes_before_the_heat() -> None:
    bench = Bench()
    bench.card.free = 1 << 30
    output = bench.run("bf16", seconds=0.5, table=(1024, 32768))
    (table,) = output.tables
    assert (table.name, table.columns) == ("gemm_bf16_by_size", ("n", "TFLOP/s"))
    assert table.rows == ((1024.0, pytest.approx(10.0)),)
    assert "bfloat16, table: 32768 needs 6.0 GiB and 1.0 GiB are free" in output.notes
    assert (
        bench.text.index("gemm_bf16_short")
        < bench.text.index("gemm_bf16_by_size")
        < bench.text.index('"gemm_bf16"')
    )


def test_a_table_without_a_size_that_fits_is_none() -> None:
    bench = Bench()
    bench.card.free = 1 << 27
    output = bench.run("bf16", seconds=0.5, table=(32768,))
    assert output.tables == ()
    assert any("table: 32768 needs" in note for note in output.notes)


def test_too_little_memory_is_said_before_anything_is_heated() -> None:
    bench = Bench()
    bench.card.free = 10 << 20
    with pytest.raises(
        LoadError, match=r"the matrices need 0\.1 GiB .* 0\.0 GiB are free: end what uses the GPU$"
    ):
        bench.run("f64")
    assert bench.card.done == 0


def test_formats_need_the_memory_of_the_hungriest_of_them_and_not_of_all() -> None:
    every = tuple(DTYPES.values())
    assert needs(every, 8192) == needs((DTYPES["f64"],), 8192) == (2 * 24 + 8) * 8192**2
    assert needs((), 8192) == 0
    bench = Bench()
    bench.card.free = needs(every, 1024)
    bench.run(*DTYPES, seconds=0.5)


@each(
    "gib, asked, judged",
    [(140, 8192, 8192), (6, 8192, 8192), (4, 8192, 4096), (4, 4096, 4096), (0.01, 64, 64)],
)
def test_a_gpu_too_small_for_one_format_is_judged_by_smaller_matrices(
    gib: float, asked: int, judged: int
) -> None:
    assert fitting_size(tuple(DTYPES.values()), asked, int(gib * 2**30)) == judged


def test_nothing_to_do_is_done() -> None:
    assert Bench().run().readings == ()


def test_what_is_not_offered_is_absent_by_every_name() -> None:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("gpu_gemm", {})
    offered = report_absent(output, tuple(DTYPES.values()), (7, 0))
    output.end()
    assert [dtype.short for dtype in offered] == ["f64", "f32", "f16"]
    found = parse(stream.getvalue()).absences
    assert [one.name for one in found[:3]] == [
        "gemm_tf32_short",
        "gemm_tf32",
        "gemm_tf32_miscompares",
    ]
    assert len(found) == 12
    assert {one.component for one in found} == {Gpu(0)}
    lacked = {"format": "TF32", "needs": "8.0", "has": "7.0"}
    assert found[0].reason == Message("format_not_native", lacked)
