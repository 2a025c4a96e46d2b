"""The burn of the whole machine and the memory test as checks: what two H200 gave, held against
the limits that they really have.
"""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from boxes import H200, Box
from load_texts import EMPTY, printed
from sound_loads import DIGEST, SHAPE
from suite_box import Said, ask, excused, planned
from synthetic_machines import inventory
from wrong_results import COPIED, all_of

from acceptance.core.dtype import DTYPES
from acceptance.core.message import not_permitted
from acceptance.core.parts import CPU, MEMORY, Component, Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.record import Measured, Skipped
from acceptance.diagnosis.signature import GpuHeat
from acceptance.loads.asks import AnyAsk
from acceptance.loads.burn import contract as burn
from acceptance.loads.burn.contract import DIGESTS, LAPS
from acceptance.loads.contract import ReadingKey
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import LoadOutput, LoadReading, LoadTable, parse
from acceptance.loads.vram import contract as vram_contract
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import LoadFailed, Place, Results
from acceptance.session.tools import Outputs
from acceptance.suites import together, vram
from acceptance.tools.reading import Reading, ToolOutput

NAMES = (Gpu(0), Gpu(1), Gpu(2))
SIBLINGS = {"NVIDIA H200": NAMES}
LIBRARY = "cuBLAS 12.8"
RIGHT, WRONG = DIGEST, "fedcba9876543210"
BURN = burn.Ask(dtypes=DTYPES, seconds=60.0, peers=2)
VRAM = vram_contract.Ask(seconds=1.0)
RING: dict[str, Any] = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "ring",
    "shape": SHAPE,
    "iteration": 17,
    "lap": 0,
    "slot": 5,
    "made_s": 100.0,
    "found_s": 101.0,
    "elements": 1,
    "of": 67108864,
    "nan": 0,
    "infinite": 0,
    "stride": None,
    "span": [7, 7],
    "xor_or": "0001",
    "xor_and": "0001",
    "bits": {"0": 1},
    "first": [
        {"index": [0, 7], "address": 123456, "expected": "3f80", "got": "3f81", "xor": "0001"}
    ],
}
STRESS_NG = ToolOutput("stress-ng", "pass", "8 workers for 240 s without a wrong result")
STRESSAPPTEST = ToolOutput(
    "stressapptest",
    "pass",
    "51.2 GiB for 240 s without wrong data",
    (
        Reading("stressapptest_incidents", "count", {MEMORY: 0.0}),
        Reading("stressapptest_errors", "count", {MEMORY: 0.0}),
        Reading("stressapptest_tested", "GiB", {MEMORY: 51.2}),
    ),
)
BAD_CPU = ToolOutput(
    "stress-ng", "fail", "cpu: float80 error detected, failed calculation checksum"
)
BAD_RAM = ToolOutput("stressapptest", "fail", "wrong data: 'Report Error: miscompare'")


@functools.cache
def seen() -> Inventory:
    return inventory(Box("8xh200.toml", "H200 SXM 141GB", 3, (5, 16), 18, "ok"))


@functools.cache
def made() -> Plan:
    return planned(seen(), NAMES, ("together", "vram"), "d")


def burned() -> dict[ReadingKey, float]:
    """What a healthy H200 gives, by reading and by the load's own count, in which its GPU is gpu0;
    counts are 0.
    """
    figures = {"burn_filled": 0.9, "burn_copied": 40.0, "burn_peer_copied": 20.0}
    for dtype in DTYPES:
        figures |= {f"burn_{dtype}": 0.99 * H200[f"gemm_{dtype}"], f"burn_{dtype}_kept": 0.99}
    due = BURN.due(EMPTY)
    return {key: figures.get(key[0], 0.0) for key in {**due.readings, **ChainMap(*due.choices)}}


def memory_values() -> dict[ReadingKey, float]:
    """What the memory test of a healthy H200 gives."""
    values = {"vram_tested": 0.98, "vram_rate": 0.9, "vram_copy": 4200.0, "vram_miscompares": 0.0}
    return {(name, Gpu(0)): value for name, value in values.items()}


def tables(ask: AnyAsk) -> dict[str, LoadTable]:
    """Those of a sound run."""
    return {one.name: one for one in parse(printed(ask)).tables}


@dataclass
class Machine:
    """Three H200 and their host under full load, healthy until a test changes it."""

    given: dict[str, dict[tuple[str, Component], float]] = field(
        default_factory=lambda: {name: burned() for name in NAMES}
    )
    wrong: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tables: dict[str, dict[str, LoadTable]] = field(
        default_factory=lambda: {name: tables(BURN) for name in NAMES}
    )
    libraries: dict[str, str] = field(default_factory=lambda: dict.fromkeys(NAMES, LIBRARY))
    died: dict[str, LoadFailed] = field(default_factory=dict)
    host: Outputs = field(default_factory=lambda: Outputs({CPU: STRESS_NG, MEMORY: STRESSAPPTEST}))
    heats: dict[str, GpuHeat] = field(default_factory=dict)
    written: list[tuple[str, str, Sequence[str], Sequence[Sequence[float | str]]]] = field(
        default_factory=list
    )

    def change(self, gpu: Component, reading: str, value: float, where: Component = Gpu(0)) -> None:
        self.given[gpu][reading, where] = value

    def digest(self, gpu: Component, dtype: str, inputs: str, result: str) -> None:
        """The burn of a GPU came to this."""
        own = self.tables[gpu]["burn_digests"]
        rows = tuple((dtype, SHAPE, inputs, result) if row[0] == dtype else row for row in own.rows)
        self.tables[gpu]["burn_digests"] = LoadTable(own.name, own.columns, rows)

    def results(self) -> Results:
        outputs = {
            name: LoadOutput(
                "burn",
                {"library": self.libraries[name], "laps": 2},
                tuple(
                    LoadReading(reading, "count", where, value)
                    for (reading, where), value in given.items()
                ),
                tuple(map(read, self.wrong.get(name, ()))),
                (),
                tuple(self.tables[name].values()),
            )
            for name, given in self.given.items()
            if name not in self.died
        }
        every = gpus(seen())
        places = [Place(own.name, (own, *(one for one in every if one != own))) for own in every]
        return Results(tuple(places), outputs, self.died)

    def run(self, _ask: object, on: object) -> Results:
        """Stands for the loads of the memory test."""
        return self.results()

    def heat(self, gpu: Component, boot_s: float) -> GpuHeat | None:
        return self.heats.get(gpu)

    def table(self, *words: object) -> None:
        self.written.append(words)  # type: ignore[arg-type]

    def said(self) -> Said:
        """The burn, asked."""
        return ask(
            made(),
            "together.burn",
            together.test_burn,
            together=lambda: (self.results(), self.host),
            due_gpus=gpus(seen()),
            siblings=SIBLINGS,
            gpu_heat=self.heat,
            table=self.table,
        )

    def memory_said(self) -> Said:
        """The memory test, asked."""
        return ask(
            made(),
            "vram.patterns",
            vram.test_patterns,
            loads=self,
            due_gpus=gpus(seen()),
            load_s={"vram": 1.0},
            gpu_heat=self.heat,
        )

    def rows(self, gpu: Component) -> list[dict[str, float | str]]:
        """The table of wrong results of a GPU."""
        found = [words for words in self.written if words[:2] == (gpu, "burn_miscompares")]
        return [
            dict(zip(columns, row, strict=True)) for _, _, columns, rows in found for row in rows
        ]


@pytest.fixture
def box() -> Machine:
    return Machine()


@pytest.fixture
def chips() -> Machine:
    """The same with the readings of the memory test."""
    return Machine(
        {name: memory_values() for name in NAMES},
        tables={name: tables(VRAM) for name in NAMES},
    )


# --- a healthy machine ---


def test_a_healthy_machine_passes_with_everything_measured(box: Machine) -> None:
    said = box.said()
    assert (said.outcome, said.message) == ("pass", "")
    (check,) = [one for one in made().checks if one.id == "together.burn"]
    measured = {
        (body.measurement, body.component) for body in said.written if isinstance(body, Measured)
    }
    assert measured == {(due.measurement, due.component) for due in check.due}
    assert said.measured("burn_digests_differ") == dict.fromkeys(NAMES, 0.0)
    assert len(said.measured("burn_peer_copied")) == 6
    assert said.measured("burn_memory_filled") == {MEMORY: 51.2}
    assert [(one.component, one.name) for one in said.tables()] == [
        (gpu, name) for gpu in NAMES for name in (LAPS, DIGESTS)
    ]
    assert box.written == []


def test_the_burn_is_the_last_check_that_loads_the_machine_and_memory_comes_before() -> None:
    whole = planned(seen(), NAMES, (), "d")
    names = [check.id for check in whole.checks]
    assert whole.share("load")[-1].id == "together.burn"
    assert (
        names.index("vram.patterns")
        < names.index("burn.gpu_burn[float]")
        < names.index("compute.copies")
        < names.index("together.burn")
    )


# --- rates ---


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gpu_15_percent_slower_than_its_siblings_fails_by_name(box: Machine, dtype: str) -> None:
    for gpu in NAMES:
        box.given[gpu][f"burn_{dtype}", Gpu(0)] *= 1.25
    box.given[Gpu(1)][f"burn_{dtype}", Gpu(0)] *= 0.85
    said = box.said()
    assert said.outcome == "fail"
    assert said.message.startswith(f"burn_{dtype}_ratio on gpu1: measured 0.85, limit >= 0.9")
    assert len(said.message.splitlines()) == 1


def test_gpus_that_are_all_slow_fail_by_the_floor_of_products(box: Machine) -> None:
    for gpu in NAMES:
        box.given[gpu]["burn_bf16", Gpu(0)] *= 0.6
    said = box.said()
    assert said.outcome == "fail"
    lines = said.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"burn_bf16 on {gpu}" for gpu in NAMES]


PEER = Pair(Gpu(0), Gpu(2))


@pytest.mark.parametrize(
    ("gpu", "reading", "value", "where", "line"),
    [
        (2, "burn_f64_kept", 0.89, Gpu(0), "burn_f64_kept on gpu2: measured 0.89, limit >= 0.9"),
        (2, "burn_filled", 0.69, Gpu(0), "burn_filled on gpu2: measured 0.69, limit >= 0.7"),
        (2, "burn_copied", 0.5, Gpu(0), "burn_copied on gpu2: measured 0.5 GiB, limit >= 1 GiB"),
        (1, "burn_peer_copied", 0.0, PEER, "burn_peer_copied on gpu1->gpu2: measured 0 GiB, limit"),
    ],
)
def test_a_figure_below_its_limit_fails(
    box: Machine, gpu: int, reading: str, value: float, where: Component, line: str
) -> None:
    box.change(Gpu(gpu), reading, value, where)
    said = box.said()
    assert said.outcome == "fail"
    assert said.message.startswith(line)


def test_a_format_that_was_not_measured_is_an_error(box: Machine) -> None:
    del box.given[Gpu(1)]["burn_f8", Gpu(0)]
    said = box.said()
    assert said.outcome == "error"
    assert "burn_f8 on gpu1 was not measured" in said.message


# --- wrong results ---


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_product_fails_with_what_it_looks_like_and_no_waiver_excuses_it(
    box: Machine, dtype: str
) -> None:
    box.change(Gpu(1), f"burn_{dtype}_miscompares", 1.0)
    box.wrong[Gpu(1)] = [{**RING, "dtype": dtype}]
    said = box.said()
    assert said.outcome == "fail"
    assert said.message.startswith(f"burn_{dtype}_miscompares on gpu1: measured 1")
    assert len(said.message.splitlines()) == 1
    ((gpu, told),) = said.notes(f"burn_{dtype}_miscompares").items()
    assert (gpu, f"{123456:#x}" in told) == ("gpu1", True)
    assert excused(made(), said, "together.burn", f"burn_{dtype}_miscompares", Gpu(1)) == ["fail"]


def test_wrong_products_are_in_a_table_with_the_heat_of_their_moment(box: Machine) -> None:
    box.change(Gpu(1), "burn_bf16_miscompares", 1.0)
    box.wrong[Gpu(1)] = [RING]
    box.heats[Gpu(1)] = GpuHeat(71.0, 1755.0)
    said = box.said()
    assert said.outcome == "fail", said.message
    (row,) = box.rows(Gpu(1))
    kind = row.pop("kind")
    assert isinstance(kind, str)
    assert kind not in ("", "-", "unknown")
    assert row == {
        "format": "bf16",
        "iteration": 17.0,
        "elements": 1.0,
        "first address": "0x1e240",
        "stride": "-",
        "XOR": "0001",
        "bits": "0:1",
        "made at s": 100.0,
        "degC": 71.0,
        "MHz": 1755.0,
    }
    assert box.rows(Gpu(0)) == []


@pytest.mark.parametrize(
    ("reading", "where", "named", "wrong"),
    [
        (
            "burn_copy_miscompares",
            Gpu(0),
            Gpu(1),
            {**COPIED, "component": "gpu0", "check": "copy_d2h"},
        ),
        (
            "burn_peer_miscompares",
            Pair(Gpu(0), Gpu(1)),
            Pair(Gpu(1), Gpu(0)),
            COPIED,
        ),
    ],
)
def test_data_that_arrives_changed_fails_and_no_waiver_excuses_it(
    box: Machine, reading: str, where: str, named: str, wrong: dict[str, Any]
) -> None:
    box.change(Gpu(1), reading, 1.0, where)
    box.wrong[Gpu(1)] = [wrong]
    said = box.said()
    assert said.outcome == "fail"
    assert said.message.startswith(f"{reading} on {named}: measured 1")
    assert said.notes(reading).get(str(named))
    assert excused(made(), said, "together.burn", reading, named) == ["fail"]
    assert [row["format"] for row in box.rows(Gpu(1))] == [wrong["check"]]


# --- equal GPUs, equal results ---


def test_a_gpu_that_comes_to_another_result_than_its_siblings_fails_by_name(box: Machine) -> None:
    box.digest(Gpu(1), "f64", RIGHT, WRONG)
    said = box.said()
    assert said.outcome == "fail"
    told = (
        f"burn_digests_differ on gpu1: measured 1 (f64 {SHAPE}: result {WRONG}, 2 of 3 have "
        f"{RIGHT}), limit <= 0"
    )
    assert said.message.startswith(told)
    assert len(said.message.splitlines()) == 1
    assert excused(made(), said, "together.burn", "burn_digests_differ", Gpu(1)) == ["fail"]


def test_siblings_with_another_library_are_an_error_and_no_pass(box: Machine) -> None:
    box.libraries[Gpu(2)] = "cuBLAS 13.0"
    said = box.said()
    assert said.outcome == "error"
    assert "ran with different libraries" in said.message
    assert said.measured("burn_digests_differ") == {}


# --- parts that failed ---


def test_a_load_that_died_is_an_error_and_what_the_others_proved_stays(box: Machine) -> None:
    box.died[Gpu(1)] = LoadFailed("the load burn ended with exit code 1", ())
    said = box.said()
    assert (said.outcome, said.message) == ("error", "gpu1: the load burn ended with exit code 1")
    assert set(said.measured("burn_bf16")) == {Gpu(0), Gpu(2)}
    assert said.measured("burn_digests_differ") == {Gpu(0): 0.0, Gpu(2): 0.0}
    assert said.measured("burn_cpu_failures") == {CPU: 0.0}
    assert said.measured("burn_memory_errors") == {MEMORY: 0.0}


def test_wrong_results_of_a_load_that_died_fail_the_machine_and_are_diagnosed(box: Machine) -> None:
    box.died[Gpu(1)] = LoadFailed(
        "the load burn was killed", all_of(RING, {**RING, "iteration": 18})
    )
    said = box.said()
    assert said.outcome == "error"
    assert said.measured("burn_bf16_miscompares") == {Gpu(0): 0.0, Gpu(1): 2.0, Gpu(2): 0.0}
    assert set(said.measured("burn_f64_miscompares")) == {Gpu(0), Gpu(2)}
    assert said.notes("burn_bf16_miscompares").get(str(Gpu(1)))
    assert len(box.rows(Gpu(1))) == 2
    assert excused(made(), said, "together.burn", "burn_bf16_miscompares", Gpu(1)) == ["fail"]


def test_a_wrong_result_that_names_no_count_speaks_against_those_of_its_gpu(box: Machine) -> None:
    box.died[Gpu(1)] = LoadFailed("the load burn was killed", all_of({"row": 7}))
    said = box.said()
    assert said.outcome == "error"
    for count in (*(f"burn_{dtype}_miscompares" for dtype in DTYPES), "burn_copy_miscompares"):
        assert said.measured(count)[Gpu(1)] == 1.0
    for count in ("burn_peer_miscompares", "burn_digests_differ"):
        assert set(said.measured(count).values()) == {0.0}, "it is of no pair, and no digest"
    assert len(said.measured("burn_digests_differ")) == 2


def test_every_part_that_failed_is_named(box: Machine) -> None:
    box.died = {Gpu(0): LoadFailed("it died", ()), Gpu(2): LoadFailed("it hung", ())}
    box.host = Outputs(failed={CPU: ValueError("stress-ng was ended by signal 9")})
    said = box.said()
    assert said.message.splitlines() == [
        "gpu0: it died",
        "gpu2: it hung",
        "stress-ng was ended by signal 9",
    ]


# --- processors and RAM ---


@pytest.mark.parametrize(
    ("outputs", "measurement", "part", "line"),
    [
        (
            {CPU: BAD_CPU, MEMORY: STRESSAPPTEST},
            *("burn_cpu_failures", CPU, "on cpu: measured 1 (cpu: float80 error detected"),
        ),
        (
            {CPU: STRESS_NG, MEMORY: BAD_RAM},
            *("burn_memory_errors", MEMORY, "on memory: measured 1 (wrong data: "),
        ),
    ],
)
def test_processors_and_ram_that_go_wrong_beside_hot_gpus_fail(
    box: Machine,
    outputs: dict[Component, ToolOutput],
    measurement: str,
    part: Component,
    line: str,
) -> None:
    box.host = Outputs(outputs)
    said = box.said()
    assert said.outcome == "fail"
    assert said.message.startswith(f"{measurement} {line}")
    filled = {("burn_memory_filled", MEMORY)} if part == MEMORY else set()
    assert said.skipped() == filled
    assert excused(made(), said, "together.burn", measurement, part) == ["fail"]


def test_a_program_that_is_not_installed_is_a_skip_with_its_cure(box: Machine) -> None:
    why = "stressapptest is not installed: install it"
    box.host = Outputs({CPU: STRESS_NG}, skipped={MEMORY: not_permitted(why)})
    said = box.said()
    assert said.skipped() == {("burn_memory_errors", MEMORY), ("burn_memory_filled", MEMORY)}
    assert {body.reason for body in said.written if isinstance(body, Skipped)} == {why}
    assert said.measured("burn_cpu_failures") == {CPU: 0.0}


@pytest.mark.parametrize("part", [CPU, MEMORY])
@pytest.mark.parametrize("outputs", [(STRESS_NG, STRESSAPPTEST), (BAD_CPU, BAD_RAM)])
def test_a_program_that_proved_nothing_is_an_error(
    box: Machine, part: Component, outputs: tuple[ToolOutput, ToolOutput]
) -> None:
    """Whatever the other one proved."""
    others = {name: one for name, one in zip((CPU, MEMORY), outputs, strict=True) if name != part}
    box.host = Outputs(others, {part: ValueError("it printed nothing")})
    said = box.said()
    assert (said.outcome, said.message) == ("error", "it printed nothing")
    assert said.measured("burn_cpu_failures" if part == CPU else "burn_memory_errors") == {}
    assert not any(component == part for _, component in said.skipped())


# --- the memory of the GPUs ---


def test_healthy_memory_passes_and_its_tables_are_journalled(chips: Machine) -> None:
    said = chips.memory_said()
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("vram_tested") == dict.fromkeys(NAMES, 0.98)
    assert [(one.component, one.name) for one in said.tables()] == [
        (gpu, "vram_passes") for gpu in NAMES
    ]


@pytest.mark.parametrize(
    ("reading", "value", "line"),
    [
        ("vram_tested", 0.89, "vram_tested on gpu1: measured 0.89, limit >= 0.9"),
        ("vram_rate", 0.79, "vram_rate on gpu1: measured 0.79, limit >= 0.8"),
        ("vram_miscompares", 1.0, "vram_miscompares on gpu1: measured 1, limit <= 0"),
    ],
)
def test_memory_outside_a_limit_fails(
    chips: Machine, reading: str, value: float, line: str
) -> None:
    chips.change(Gpu(1), reading, value)
    said = chips.memory_said()
    assert said.outcome == "fail"
    assert said.message.startswith(line)
    assert len(said.message.splitlines()) == 1


def test_wrong_words_are_told_with_what_they_look_like_and_no_waiver_excuses_them(
    chips: Machine,
) -> None:
    word = {"address": 4096, "expected": "0" * 16, "got": f"{32:016x}", "xor": f"{32:016x}"}
    chips.wrong[Gpu(1)] = [
        {
            "component": "gpu0",
            "check": "vram",
            "pattern": "march C-",
            "pass": 3,
            "words": 1,
            "bits": {"5": 1},
            "xor_or": f"{32:016x}",
            "xor_and": f"{32:016x}",
            "found_s": 100.0,
            "first": [word],
        }
    ]
    chips.change(Gpu(1), "vram_miscompares", 1.0)
    said = chips.memory_said()
    assert said.outcome == "fail"
    assert "bit" in said.notes("vram_miscompares")["gpu1"]
    assert excused(made(), said, "vram.patterns", "vram_miscompares", Gpu(1)) == ["fail"]


def test_a_memory_test_that_died_is_an_error_and_the_others_stay(chips: Machine) -> None:
    chips.died[Gpu(2)] = LoadFailed(
        "the load vram ended with exit code 1", all_of({"component": "gpu0", "check": "vram"})
    )
    said = chips.memory_said()
    assert (said.outcome, said.message) == ("error", "gpu2: the load vram ended with exit code 1")
    assert said.measured("vram_miscompares") == {Gpu(0): 0.0, Gpu(1): 0.0, Gpu(2): 1.0}
    assert set(said.measured("vram_rate")) == {Gpu(0), Gpu(1)}
