"""The course of the burn, on a device that is a table of what lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from card_of_tests import FakeCard
from cases import each
from load_texts import by_name
from written import ran_text
from wrong_results import WHOLE

from acceptance.loads.burn.contract import LAP_COLUMNS, LAP_ROWS
from acceptance.loads.burn.shape import Counts, Proof, division
from acceptance.loads.burn.worker import LISTED, BurnOptions, BurnWorker
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.miscompare import read
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Lap, LoadOutput, decode, parse

GIB = 1 << 30
ONE_S = 0.003


@dataclass
class Faults:
    """Which products come out wrong, by format and number; and what else goes wrong."""

    wrong: dict[tuple[str, int], Counts] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)  # format: the operand that changes
    again: frozenset[str] = frozenset()
    proof: frozenset[str] = frozenset()
    one_s: float = ONE_S
    groups: int = 13
    slots: int | None = None
    slow_from: float = 1e9
    begin_s: float = 0.0
    compare_s: float = 0.0


class Turn:
    def __init__(self, device: Device, dtype: Dtype, group: int) -> None:
        slots = device.faults.slots
        self.device, self.dtype = device, dtype
        self.group, self.groups = (
            (group, device.faults.groups) if slots is None else division(slots, group, 3)
        )
        self.digests = [
            "other" if dtype.short in device.faults.again and device.begun > 1 else "due"
        ] * 3
        self.memory: dict[int, tuple[int, int]] = {}
        self.compared: list[int] = []

    @property
    def filled_bytes(self) -> int:
        return 6 * GIB

    def make(self, group: int, shape: int, number: int) -> None:
        held = self.memory.get(group)
        if held is not None and held[0] >= 0 and number >= 0:
            assert held[0] in self.compared, "overwritten before it was compared"
        self.memory[group] = (number, shape)
        self.device.clock.now += self.group * self.device.faults.one_s
        self.device.made.append((self.dtype.short, number, shape))

    def repeat(self, group: int, shape: int, times: int) -> None:
        self.device.clock.now += times * self.device.faults.one_s

    def compare(self, group: int, shape: int) -> Any:
        number, made = self.memory[group]
        assert made == shape
        self.compared.append(number)
        self.device.clock.now += self.device.faults.compare_s
        return number

    def counts(self, ticket: Any) -> Sequence[Counts]:
        wrong = self.device.faults.wrong
        return [
            wrong.get((self.dtype.short, ticket + place), (0, 0, 0)) for place in range(self.group)
        ]

    def describe(self, group: int, place: int, shape: int) -> dict[str, Any]:
        return {"slot": group * self.group + place}

    def changed_inputs(self) -> Sequence[dict[str, Any]]:
        operand = self.device.faults.changed.get(self.dtype.short)
        return [{"operand": operand, "expected": "1", "got": "2"}] if operand else []


class Device:
    def __init__(self, clock: FakeCard, faults: Faults) -> None:
        self.clock, self.faults = clock, faults
        self.made: list[tuple[str, int, int]] = []
        self.filled = self.begun = 0
        self.divisors: list[int] = []

    def prove(self, dtype: Dtype, divisor: int) -> Proof:
        self.divisors.append(divisor)
        wrong = (
            (read({**WHOLE, "check": "normal", "dtype": dtype.short}),)
            if dtype.short in self.faults.proof
            else ()
        )
        return Proof(wrong, ("right",), (("s", "i", "due"),) * 3, self.faults.one_s / divisor**2)

    def fill(self, size: int) -> None:
        self.filled = size

    def begin(self, dtype: Dtype, divisor: int, group: int) -> Turn:
        self.begun += 1
        self.clock.now += self.faults.begin_s
        return Turn(self, dtype, group)


class Beside:
    steps = finished = 0

    def step(self) -> None:
        self.steps += 1

    def finish(self) -> None:
        self.finished += 1


def burn(
    order: BurnOptions, faults: Faults | None = None, free: int = 8 * GIB
) -> tuple[LoadOutput, Device, Beside, str]:
    clock, beside = FakeCard(free=free), Beside()
    device = Device(clock, faults or Faults())
    text = ran_text(
        "burn",
        lambda output: BurnWorker(order, device, clock, output, beside, lambda: clock.now).run(GIB),
    )
    return parse(text), device, beside, text


def of(*shorts: str) -> tuple[Dtype, ...]:
    return tuple(DTYPES[short] for short in shorts)


def test_formats_take_turns_and_every_product_is_compared_once() -> None:
    output, device, beside, text = burn(BurnOptions(of("bf16", "i8"), 60.0))
    values = by_name(output)
    assert values["burn_bf16_miscompares"] == values["burn_i8_miscompares"] == 0
    assert values["burn_bf16_kept"] == pytest.approx(1.0)
    assert values["burn_bf16"] == pytest.approx(2 * 8192**2 * 16384 / ONE_S / 1e12)
    assert values["burn_filled"] == 0.75
    assert device.filled == 7 * GIB
    tables = {table.name: table for table in output.tables}
    assert [row[:2] for row in tables["burn_laps"].rows] == [
        (0, "bf16"),
        (0, "i8"),
        (1, "bf16"),
        (1, "i8"),
    ]
    assert tables["burn_laps"].columns == LAP_COLUMNS
    assert all(float(row[4]) == pytest.approx(15.0, abs=0.1) for row in tables["burn_laps"].rows)
    assert len(tables["burn_digests"].rows) == 6
    for short in ("bf16", "i8"):
        numbers = [number for name, number, _ in device.made if name == short]
        assert numbers == list(range(0, 8 * len(numbers), 8))
        assert {shape for name, _, shape in device.made if name == short} == {0, 1, 2}
    assert beside.steps == len(device.made)
    assert beside.finished == 1
    assert text.count('"progress"') in range(10, 13)
    laps = [said for line in text.splitlines() if isinstance(said := decode(line), Lap)]
    assert [(lap.lap, lap.laps, lap.done_s) for lap in laps] == [(1, 2, 30.0), (2, 2, 60.0)]
    for lap in laps:
        assert [(one.format, one.wrong) for one in lap.formats] == [("bf16", 0), ("i8", 0)]
    assert {one.format: float(one.right) for one in laps[-1].formats} == {
        short: float(sum(name == short for name, _, _ in device.made) * 8)
        for short in ("bf16", "i8")
    }


def test_each_turn_tells_when_its_first_product_began_and_its_last_was_done() -> None:
    """In seconds since boot.

    Setting up, the comparing of what is left in memory and the plain products lie between turns.
    """
    faults = Faults(begin_s=2.0, compare_s=0.001)
    output, _, _, _ = burn(BurnOptions(of("bf16", "i8"), 60.0, plain=True), faults)
    (laps,) = (table for table in output.tables if table.name == "burn_laps")
    times = [(float(row[5]), float(row[6])) for row in laps.rows]
    assert times[0][0] == pytest.approx(2.0)
    left = faults.groups * faults.compare_s
    for (from_s, to_s), row in zip(times, laps.rows, strict=True):
        assert to_s - from_s == pytest.approx(float(row[4]) - left, abs=faults.compare_s * 3)
    for before, after in pairwise(times):
        assert after[0] - before[1] == pytest.approx(2.0 + left + 7.5, abs=0.1)
    (courses,) = (table for table in output.tables if table.name == "burn_courses")
    assert [round(float(row[2]), 3) for row in courses.rows[::2]] == [from_s for from_s, _ in times]


@each(
    "short, faults, told",
    [
        ("f64", Faults(proof=frozenset({"f64"})), [{"check": "normal"}]),
        ("f64", Faults(changed={"f64": "b"}), [{"check": "inputs", "operand": "b"}]),  # told once
        (
            "f64",
            Faults(again=frozenset({"f64"})),
            [{"check": "again", "lap": 1, "got": "other"}] * 3,
        ),
        # an operand is looked at as soon as a product is wrong
        (
            "tf32",
            Faults({("tf32", 9): (7, 0, 0)}, {"tf32": "a"}),
            [{"check": "inputs"}, {"check": "ring", "iteration": 9}],
        ),
        # a wrong product wherever it is
        (
            "bf16",
            Faults({("bf16", number): (3, 1, 2) for number in (0, 5, 100, 1000)}),
            [
                {
                    **{"check": "ring", "iteration": number, "shape": "8192x8192x16384"},
                    **{"elements": 3, "nan": 1, "infinite": 2, "of": 8192**2},
                }
                for number in (0, 5, 100, 1000)
            ],
        ),
    ],
)
def test_what_is_wrong_is_told(short: str, faults: Faults, told: list[dict[str, Any]]) -> None:
    output, _, _, _ = burn(BurnOptions(of(short), 4.0), faults)
    found = output.miscompares
    assert [
        {key: getattr(one, key) for key in due} for one, due in zip(found, told, strict=True)
    ] == told
    assert all(one.found_s > one.made_s for one in found if one.check == "ring")
    rings = [one for one in found if one.check == "ring"]
    assert by_name(output)[f"burn_{short}_miscompares"] >= len(rings)


def test_the_very_last_products_are_compared_too() -> None:
    clean, device, _, _ = burn(BurnOptions(of("f32"), 4.0))
    last = max(number for _, number, _ in device.made) + 7
    output, _, _, _ = burn(BurnOptions(of("f32"), 4.0), Faults({("f32", last): (1, 0, 0)}))
    assert [one.iteration for one in output.miscompares] == [last]
    assert by_name(clean)["burn_f32_miscompares"] == 0


@each("again, more", [(frozenset(), 0), (frozenset({"f16"}), 3)])
def test_many_wrong_products_are_all_counted_and_the_first_told(
    again: frozenset[str], more: int
) -> None:
    wrong = {("f16", number): (1, 0, 0) for number in range(1000)}
    output, _, _, _ = burn(BurnOptions(of("f16"), 30.0), Faults(wrong, again=again))
    assert len(output.miscompares) == LISTED
    assert by_name(output)["burn_f16_miscompares"] == 1000 + more


@each(
    "slots, free, why",
    [
        (3, 8 * GIB, "needs 4 groups of results, and there is memory for 3 results: 8"),
        (None, GIB // 2, "the GPU's memory is too small: 0"),
    ],
)
def test_a_small_memory_is_refused_with_what_there_is(
    slots: int | None, free: int, why: str
) -> None:
    with pytest.raises(LoadError, match=why):
        burn(BurnOptions(of("f32"), 4.0), Faults(slots=slots), free)


@each(
    "seconds, slots, share",
    [*((60.0, None, one) for one in (0.03, 0.05, 0.10, 0.25)), (60.0, 9, 0)],
)
def test_injected_slowness_begins_with_the_second_lap(
    seconds: float, slots: int | None, share: float
) -> None:
    """On a card whose small memory holds fewer products at once, too."""
    output, device, _, _ = burn(BurnOptions(of("bf16"), seconds, slow=share), Faults(slots=slots))
    assert by_name(output)["burn_bf16_kept"] == pytest.approx(1 - share, abs=0.002)
    first, second, *_ = sorted({number for _, number, _ in device.made})
    assert second - first == (8 if slots is None else 2)


def test_plain_products_are_timed_apart_and_not_compared() -> None:
    wrong = {("f8", -8): (1, 0, 0)}
    output, _, _, _ = burn(BurnOptions(of("f8"), 40.0, plain=True), Faults(wrong))
    values = by_name(output)
    assert values["burn_f8_verified_ratio"] == pytest.approx(1.0, abs=0.01)
    assert values["burn_f8_plain"] == pytest.approx(values["burn_f8"], rel=0.01)
    assert values["burn_f8_miscompares"] == 0


def test_slow_formats_are_compared_fewer_at_once_and_made_as_small_as_asked() -> None:
    output, device, _, _ = burn(
        BurnOptions(of("f64"), 40.0, divisors={"f64": 4, "f32": 2}), Faults(one_s=4.5)
    )
    assert device.divisors == [4]
    assert sorted({number for _, number, _ in device.made})[:3] == [0, 1, 2]
    assert by_name(output)["burn_f64_miscompares"] == 0
    assert output.tables[1].rows[0][1] == "f64"


def test_a_gpu_that_has_none_of_the_formats_only_copies() -> None:
    output, device, beside, _ = burn(BurnOptions((), 30.0))
    assert (output.readings, output.tables, device.made) == ((), (), [])
    assert beside.finished == 1


@each(
    "seconds, formats, laps",
    [(4.0, 7, 2), (240.0, 7, 2), (1200.0, 7, 6), (14400.0, 7, 69), (240.0, 1, 8)],
)
def test_laps(seconds: float, formats: int, laps: int) -> None:
    order = BurnOptions(tuple(DTYPES.values())[:formats], seconds)
    assert order.laps == laps
    assert order.laps * order.turn_s * formats == pytest.approx(seconds)


def test_days_of_burn_tells_a_bounded_number_of_laps_and_lines() -> None:
    days = 3 * 86400.0
    output, _, _, text = burn(BurnOptions(of("f64"), days), Faults(one_s=200.0))
    (laps,) = (table for table in output.tables if table.name == "burn_laps")
    assert (len(laps.rows), laps.rows[0][0], laps.rows[-1][0]) == (
        LAP_ROWS,
        0,
        BurnOptions(of("f64"), days).laps - 1,
    )
    assert text.count('"progress"') <= 2000
    assert len(text) < 16 << 20, "what is kept of a program's output"
