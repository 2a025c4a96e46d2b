"""Our own GPU loads as checks: what two H200 gave, held against the limits that
they really have.
"""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from boxes import H200, Box
from load_texts import EMPTY
from suite_box import Said, ask, excused, planned
from synthetic_machines import inventory
from wrong_results import REPEATED, all_of

from acceptance.core.dtype import DTYPES
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.record import Measured
from acceptance.diagnosis.wrong_result import in_words
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import ReadingKey
from acceptance.loads.copy import contract as copy
from acceptance.loads.gemm import contract as gemm_contract
from acceptance.loads.miscompare import Miscompare, read
from acceptance.loads.protocol import LoadOutput, LoadReading, LoadTable
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import LoadFailed, Place, Results
from acceptance.suites import compute
from acceptance.wording import words

NAMES = (Gpu(0), Gpu(1))
# What is not in the recorded figures, by reading; counts are 0.
FIGURES = {
    "gemm_f64_short": 58.0,
    "gemm_f32_short": 51.9,
    "gemm_tf32_short": 402.0,
    "gemm_f16_short": 740.0,
    "gemm_f8_short": 1400.0,
    "gemm_i8_short": 980.0,
    "copy_own_h2d_bidirectional": 50.0,
    "copy_own_d2h_bidirectional": 50.7,
    "copy_own_h2d_pageable": 9.0,
    "copy_own_d2h_pageable": 8.0,
    "copy_own_p2p": 365.3,
    **H200,
}
ASKS: dict[str, AnyAsk] = {
    "compute.gemm_together": gemm_contract.Ask(dtypes=DTYPES, seconds=7.0),
    "compute.copies": copy.Ask(seconds=1.0, peers=1),
}
CHECKS = {
    "compute.gemm_together": compute.test_gemm_together,
    "compute.copies": compute.test_copies,
}


@functools.cache
def seen() -> Inventory:
    return inventory(Box("8xh200.toml", "H200 SXM 141GB", 2, (5, 16), 18, "ok"))


@functools.cache
def made() -> Plan:
    return planned(seen(), NAMES, ("compute",), "d")


def readings(check: str) -> dict[ReadingKey, float]:
    """What a healthy H200 gives in this check: by reading and by the load's own count, in which
    its GPU is gpu0.
    """
    due = ASKS[check].due(EMPTY)
    return {key: FIGURES.get(key[0], 0.0) for key in {**due.readings, **ChainMap(*due.choices)}}


@dataclass
class Machine:
    """Two H200 whose loads gave something; `given` is what each gave, `died` those whose load
    did not run whole.
    """

    check: str
    given: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    wrong: dict[str, tuple[Miscompare, ...]] = field(default_factory=dict)
    tables: tuple[LoadTable, ...] = ()
    died: dict[str, LoadFailed] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = {name: readings(self.check) for name in NAMES}

    def slow(self, gpu: str, share: float, part: str) -> None:
        """Change all figures of a GPU whose name begins so, but for its counts."""
        for key in self.given[gpu]:
            if key[0].startswith(part) and not key[0].endswith("miscompares"):
                self.given[gpu][key] *= share

    def outputs(self) -> dict[Component, LoadOutput]:
        return {
            name: LoadOutput(
                "load",
                {},
                tuple(
                    LoadReading(reading, "count", where, value)
                    for (reading, where), value in given.items()
                ),
                self.wrong.get(name, ()),
                (),
                self.tables,
            )
            for name, given in self.given.items()
            if name not in self.died
        }

    def run(self, _ask: object, on: Sequence[Place]) -> Results:
        """As `Loads` does."""
        return Results(tuple(on), self.outputs(), self.died)

    def said(self) -> Said:
        """The check, asked."""
        given: dict[str, object] = {"inventory": seen(), "turns": "/logs/turns"}
        if self.check == "compute.gemm_together":
            peaks = dict.fromkeys(NAMES, self.peaks)
            given = {"formats": dict.fromkeys(NAMES, DTYPES), "peaks": peaks}
        function, load_s = CHECKS[self.check], {"gpu_gemm": 7.0, "gpu_copy": 1.0}
        due = gpus(seen())
        return ask(made(), self.check, function, loads=self, due_gpus=due, load_s=load_s, **given)


@pytest.fixture
def gemm() -> Machine:
    return Machine("compute.gemm_together")


@pytest.fixture(params=["gemm_{}_short", "gemm_{}"])
def rate(request: pytest.FixtureRequest) -> str:
    """The rates that it judges, from cool and sustained, with a place for the format."""
    return str(request.param)


@pytest.fixture
def copies() -> Machine:
    return Machine("compute.copies")


@pytest.mark.parametrize("check", CHECKS)
def test_a_healthy_machine_passes(check: str) -> None:
    said = Machine(check).said()
    assert (said.outcome, said.message) == ("pass", "")


@pytest.mark.parametrize("check", CHECKS)
def test_a_load_that_died_is_an_error_and_what_it_found_wrong_and_the_others_measured_stays(
    check: str,
) -> None:
    """The check itself is an error; what it journalled is a failure when the run is judged, and
    no waiver excuses it.
    """
    machine = Machine(check)
    machine.died[Gpu(1)] = LoadFailed("the load was killed", all_of({"row": 7}, {"row": 8}))
    said = machine.said()
    assert (said.outcome, said.message) == ("error", "gpu1: the load was killed")
    count = "copy_own_miscompares" if check == "compute.copies" else "gemm_f64_miscompares"
    assert said.measured(count) == {Gpu(0): 0.0, Gpu(1): 2.0}
    assert excused(made(), said, check, count, Gpu(1)) == ["fail"]
    rates = {
        one.component
        for one in said.written
        if isinstance(one, Measured) and "miscompares" not in one.measurement
    }
    assert Gpu(0) in rates
    assert Gpu(1) not in rates


# --- products of matrices ---


def test_every_format_is_measured_of_every_gpu_and_held_against_its_twin(
    gemm: Machine, rate: str
) -> None:
    said = gemm.said()
    for dtype in DTYPES:
        assert set(said.measured(rate.format(dtype))) == set(NAMES)
        assert said.measured(f"{rate.format(dtype)}_ratio") == {Gpu(0): 1.0, Gpu(1): 1.0}
        assert said.measured(f"gemm_{dtype}_miscompares") == {Gpu(0): 0.0, Gpu(1): 0.0}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gpu_a_fifth_slower_than_its_twin_fails_by_name(
    gemm: Machine, rate: str, dtype: str
) -> None:
    """Also where the sheet's limit would let it pass: its twin says what a card
    does in this machine.
    """
    for gpu, share in ((Gpu(0), 1.0), (Gpu(1), 0.8)):
        gemm.given[gpu] = {key: 1.35 * value for key, value in gemm.given[gpu].items()}
        gemm.given[gpu][rate.format(dtype), Gpu(0)] *= share
    said = gemm.said()
    assert said.outcome == "fail"
    name = rate.format(dtype)
    # Briefly equal cards differ more.
    limit = 0.82 if name == "gemm_f16_short" else 0.85 if name.endswith("_short") else 0.9
    assert said.message.startswith(f"{name}_ratio on gpu1: measured 0.8, limit >= {limit}; basis: ")
    assert len(said.message.splitlines()) == 1


@pytest.mark.parametrize(
    ("dtype", "changed", "outcome", "named"),
    [
        # Both are slow: their sheet tells it.
        ("bf16", {Gpu(0): 0.6, Gpu(1): 0.6}, "fail", ["gpu0: measured ", "gpu1: measured "]),
        ("f32", {Gpu(0): float("nan")}, "error", ["gpu0 is no finite number"]),
        # A format that a GPU has and that was not measured.
        ("f8", {Gpu(1): None}, "error", ["gpu1 was not measured"]),
    ],
)
def test_rates_that_are_no_pass(
    gemm: Machine,
    rate: str,
    dtype: str,
    changed: dict[str, float | None],
    outcome: str,
    named: list[str],
) -> None:
    for gpu, share in changed.items():
        value = gemm.given[gpu].pop((rate.format(dtype), Gpu(0)))
        if share is not None:
            gemm.given[gpu][rate.format(dtype), Gpu(0)] = share * value
    said = gemm.said()
    assert said.outcome == outcome
    own = [line for line in said.message.splitlines() if "_ratio" not in line]
    for line, told in zip(own, named, strict=True):
        assert line.startswith(f"{rate.format(dtype)} on {told}")


def test_a_wrong_product_fails_and_no_waiver_excuses_it(gemm: Machine) -> None:
    gemm.given[Gpu(1)]["gemm_f16_miscompares", Gpu(0)] = 1.0
    gemm.wrong[Gpu(1)] = (read(REPEATED),)
    said = gemm.said()
    assert said.outcome == "fail"
    assert said.message.startswith("gemm_f16_miscompares on gpu1: measured 1, limit <= 0")
    assert said.notes("gemm_f16_miscompares") == {"gpu1": words.text(in_words(read(REPEATED)))}
    assert len(said.message.splitlines()) == 1
    assert excused(made(), said, gemm.check, "gemm_f16_miscompares", Gpu(1)) == ["fail"]


def test_a_wrong_result_of_a_load_that_died_blames_its_own_format_only(gemm: Machine) -> None:
    gemm.died[Gpu(1)] = LoadFailed("the load was killed", all_of(REPEATED))
    said = gemm.said()
    assert said.measured("gemm_f16_miscompares") == {Gpu(0): 0.0, Gpu(1): 1.0}
    for dtype in set(DTYPES) - {"f16"}:
        assert said.measured(f"gemm_{dtype}_miscompares") == {Gpu(0): 0.0}


def test_tables_are_journalled_with_the_share_of_the_sheets_peak() -> None:
    machine = Machine("compute.gemm_together", peaks={"bf16": 990.0})
    columns, rows = ("n", "TFLOP/s"), ((4096.0, 495.0), (8192.0, 990.0))
    machine.tables = tuple(
        LoadTable(f"gemm_{one}_by_size", columns, rows) for one in ("bf16", "f8")
    )
    said = machine.said()
    assert said.outcome == "pass"
    shares = tuple((*row, share) for row, share in zip(rows, (0.5, 1.0), strict=True))
    both = [("gemm_bf16_by_size", (*columns, "MFU"), shares), ("gemm_f8_by_size", columns, rows)]
    assert [(one.component, one.name, one.columns, one.rows) for one in said.tables()] == [
        (gpu, *words) for gpu in NAMES for words in both
    ]


# --- copies ---


@pytest.mark.parametrize(
    ("path", "share", "named"),
    [
        ("h2d", 0.5, ["copy_own_h2d on gpu1: measured "]),
        ("d2h", 0.5, ["copy_own_d2h on gpu1: measured "]),
        ("d2d", 0.5, ["copy_own_d2d on gpu1: measured ", "copy_own_d2d_ratio on gpu1: "]),
        # A memory that is slower than its twin's, and a slow way to a peer.
        ("d2d", 0.85, ["copy_own_d2d_ratio on gpu1: measured 0.85, limit >= 0.9; basis: GPUs of"]),
        ("p2p", 0.2, ["copy_own_p2p on gpu1->gpu0: measured 73.06 GB/s, limit >= "]),
    ],
)
def test_a_copy_below_its_floor_fails(
    copies: Machine, path: str, share: float, named: list[str]
) -> None:
    copies.slow(Gpu(1), share, f"copy_own_{path}")
    said = copies.said()
    assert said.outcome == "fail"
    for line, told in zip(said.message.splitlines(), named, strict=True):
        assert line.startswith(told)


@pytest.mark.parametrize(
    ("measurement", "where", "named"),
    [
        ("copy_own_p2p_miscompares", Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))),
        ("copy_own_miscompares", Gpu(0), Gpu(1)),
        ("elementwise_miscompares", Gpu(0), Gpu(1)),
    ],
)
def test_data_that_arrives_changed_fails_and_no_waiver_excuses_it(
    copies: Machine, measurement: str, where: str, named: Component
) -> None:
    copies.given[Gpu(1)][measurement, where] = 1.0
    said = copies.said()
    assert said.outcome == "fail"
    assert said.message.startswith(f"{measurement} on {named}: measured 1, limit <= 0")
    assert len(said.message.splitlines()) == 1
    assert excused(made(), said, "compute.copies", measurement, named) == ["fail"]


def test_a_way_to_a_peer_that_was_not_measured_is_an_error(copies: Machine) -> None:
    del copies.given[Gpu(0)]["copy_own_p2p", Pair(Gpu(0), Gpu(1))]
    said = copies.said()
    assert said.outcome == "error"
    assert said.message.startswith("copy_own_p2p on gpu0->gpu1 was not measured")
