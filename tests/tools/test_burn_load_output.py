"""What the load `burn` printed, read strictly: a whole run, and everything less than that."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from cases import each
from wrong_results import Fact, all_of, one_bit

from acceptance.core.message import Message
from acceptance.loads.burn import load as burn_load
from acceptance.loads.miscompare import read
from acceptance.loads.names import (
    BURN_OF_GPU,
    BURN_OF_PEER,
    BURN_READINGS,
    DIGESTS,
    LAPS,
)
from acceptance.loads.protocol import Output
from acceptance.process.command import ProgramResult
from acceptance.tools.load_output import (
    LoadFailed,
    burn_argv,
    digests,
    read_burn,
)

ASKED: dict[str, Any] = {"dtypes": ["f64", "f8"], "seconds": 8.0}
OWN = {"uuid": "GPU-1"}
A, B = "0123456789abcdef", "fedcba9876543210"


@dataclass
class Said:
    """What a load says: a whole run of the burn over two formats, until a test changes it."""

    load: str = "burn"
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            **ASKED,
            "peers": 0,
            "laps": 2,
            "uuid": "GPU-1",
            "library": "cuBLAS 12.8",
        }
    )
    readings: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    absent: list[tuple[str, str]] = field(default_factory=list)
    tables: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = field(default_factory=dict)
    wrong: list[Fact] = field(default_factory=list)
    seconds: float = 9.0
    returncode: int = 0

    def done(self) -> ProgramResult:
        stream = io.StringIO()
        output = Output(stream)
        output.hello(self.load, self.parameters)
        for found in self.wrong:
            output.miscompare(read(found))
        for name, component in self.absent:
            output.absent(name, component, Message("peer_out_of_reach"))
        for (name, component), (unit, value) in self.readings.items():
            output.reading(name, unit, component, value)
        for table, (columns, rows) in self.tables.items():
            output.table(table, columns, rows)
        output.end()
        return ProgramResult(("load",), self.returncode, stream.getvalue(), "", self.seconds)

    def lack(self, dtype: str) -> None:
        """This GPU does not have the format."""
        for name in BURN_READINGS:
            del self.readings[name.format(dtype), "gpu0"]
            self.absent.append((name.format(dtype), "gpu0"))
        for columns, rows in self.tables.values():
            rows[:] = [row for row in rows if row[columns.index("format")] != dtype]


def burned(peers: int = 0) -> Said:
    said = Said()
    for dtype in ASKED["dtypes"]:
        said.readings |= {
            (name.format(dtype), "gpu0"): (unit, 0.0 if unit == "count" else 1.0)
            for name, unit in BURN_READINGS.items()
        }
    said.readings |= {
        (name, "gpu0"): (unit, 0.0 if unit == "count" else 1.0)
        for name, unit in BURN_OF_GPU.items()
    }
    for peer in range(1, peers + 1):
        where = f"gpu0->gpu{peer}"
        said.readings |= {
            (name, where): (unit, 0.0 if unit == "count" else 2.0)
            for name, unit in BURN_OF_PEER.items()
        }
    said.parameters["peers"] = peers
    turns = [(lap, d) for lap in range(2) for d in ASKED["dtypes"]]
    laps = [
        (*turn, 50.0, 100, 3.9, 900.0 + 4 * place, 904.0 + 4 * place)
        for place, turn in enumerate(turns)
    ]
    said.tables["burn_laps"] = LAPS, laps
    shapes = ("8192x8192x8192", "16384x8192x4096")
    said.tables["burn_digests"] = (
        DIGESTS,
        [(d, shape, A, B) for d in ASKED["dtypes"] for shape in shapes],
    )
    return said


# --- command lines ---


def test_the_command_line_is_what_the_burn_reads() -> None:
    argv = burn_argv("python3", dtypes=["f64", "bf16"], seconds=240, peers=3, inject="bit")
    assert argv[:3] == ("python3", "-m", "acceptance.loads.burn.load")
    options = burn_load.arguments().parse_args(argv[3:])
    assert [dtype.short for dtype in options.dtypes] == ["f64", "bf16"]
    assert (options.seconds, options.peers, options.inject, options.plain) == (
        240.0,
        3,
        "bit",
        False,
    )
    options = burn_load.arguments().parse_args(burn_argv("python3", dtypes=["i8"], seconds=0.5)[3:])
    assert (options.seconds, options.peers, options.inject) == (0.5, 0, None)


# --- a whole run ---


@each("peers", [0, 1, 7])
def test_a_whole_burn_is_read(peers: int) -> None:
    output = read_burn(burned(peers).done(), **ASKED, peers=peers, also=OWN)
    assert len(output.readings) == 2 * 3 + 3 + 2 * peers
    assert digests(output)["f8", "16384x8192x4096"] == (A, B)


def test_a_format_may_be_absent_whole() -> None:
    said = burned()
    said.lack("f8")
    output = read_burn(said.done(), **ASKED, also=OWN)
    assert {absence.name for absence in output.absences} == {
        "burn_f8",
        "burn_f8_kept",
        "burn_f8_miscompares",
    }
    assert {dtype for dtype, _ in digests(output)} == {"f64"}


def test_wrong_results_that_are_counted_are_read() -> None:
    said = burned()
    said.readings["burn_f8_miscompares", "gpu0"] = ("count", 1.0)
    said.wrong = [{**one_bit(3), "dtype": "f8"}]
    assert len(read_burn(said.done(), **ASKED, also=OWN).miscompares) == 1


def test_turns_that_last_nineteen_twentieths_are_enough() -> None:
    said = burned()
    columns, rows = said.tables["burn_laps"]
    said.tables["burn_laps"] = columns, [(*row[:4], 1.9, *row[5:]) for row in rows]
    assert read_burn(said.done(), **ASKED).load == "burn"


# --- anything less ---

Change = Callable[[Said], Any]


def spoilt_table(name: str, row: int, place: int, cell: Any) -> Change:
    def change(said: Said) -> None:
        rows = said.tables[name][1]
        rows[row] = (*rows[row][:place], cell, *rows[row][place + 1 :])

    return change


def without(name: str, where: str = "gpu0") -> Change:
    return lambda said: said.readings.pop((name, where))


def told(name: str, unit: str, value: float, where: str = "gpu0") -> Change:
    return lambda said: said.readings.__setitem__((name, where), (unit, value))


def with_parameter(name: str, value: Any) -> Change:
    return lambda said: said.parameters.__setitem__(name, value)


def with_wrong(said: Said) -> None:
    said.wrong = [{**one_bit(3), "dtype": "f64"}]


def half_absent(said: Said) -> None:
    del said.readings["burn_f8_kept", "gpu0"]
    said.absent = [("burn_f8_kept", "gpu0")]


def nothing_offered(said: Said) -> None:
    for dtype in ASKED["dtypes"]:
        for name in BURN_READINGS:
            del said.readings[name.format(dtype), "gpu0"]
            said.absent.append((name.format(dtype), "gpu0"))


def no_rows_of_f8(said: Said) -> None:
    said.tables["burn_laps"][1][:] = [row for row in said.tables["burn_laps"][1] if row[1] != "f8"]


def turns_without_seconds(said: Said) -> None:
    said.tables["burn_laps"][1][:] = [
        (*row[:4], "long", *row[5:]) for row in said.tables["burn_laps"][1]
    ]


def gone(table: str) -> Change:
    return lambda said: said.tables.pop(table)


BURN_TROUBLES: list[tuple[Change, str]] = [
    (without("burn_f8"), "did not measure burn_f8 of gpu0"),
    (without("burn_f64_kept"), "did not measure burn_f64_kept of gpu0"),
    (without("burn_f64_miscompares"), "did not measure burn_f64_miscompares of gpu0"),
    (half_absent, "did not measure burn_f8_kept of gpu0"),
    (nothing_offered, "measured no format"),
    (without("burn_filled"), "did not measure burn_filled"),
    (without("burn_copied"), "did not measure burn_copied"),
    (without("burn_copy_miscompares"), "did not measure burn_copy_miscompares"),
    (without("burn_peer_copied", "gpu0->gpu1"), "did not measure burn_peer_copied of gpu0->gpu1"),
    (
        without("burn_peer_miscompares", "gpu0->gpu1"),
        "did not measure burn_peer_miscompares of gpu0->gpu1",
    ),
    (told("burn_i8", "TFLOP/s", 1.0), "measured what it was not asked for: burn_i8"),
    (told("burn_f64_plain", "TFLOP/s", 1.0), "measured what it was not asked for: burn_f64_plain"),
    (told("burn_f64", "TFLOP/s", 1.0, "gpu1"), "measured what it was not asked for: burn_f64"),
    (
        told("burn_peer_copied", "GiB", 1.0, "gpu0->gpu2"),
        "measured what it was not asked for: burn_peer_copied",
    ),
    (lambda said: said.absent.append(("burn_i8", "gpu0")), "not asked for: burn_i8"),
    (told("burn_f64", "GFLOP/s", 1.0), "measured burn_f64 as 1 GFLOP/s, and TFLOP/s are due"),
    (told("burn_f64_miscompares", "count", -1.0), "measured burn_f64_miscompares as -1 count"),
    (gone("burn_laps"), "printed no table burn_laps"),
    (gone("burn_digests"), "printed no table burn_digests"),
    (no_rows_of_f8, "its table burn_laps differs in f8"),
    (
        spoilt_table("burn_laps", 1, 5, 903.9),
        "tells of f8 in lap 0.0 from 903.9 to 908.0 s, after 904.0 s",
    ),
    (spoilt_table("burn_laps", 1, 6, 904.0), "tells of f8 in lap 0.0 from 904.0 to 904.0 s"),
    (spoilt_table("burn_laps", 0, 5, "then"), "tells of f64 in lap 0.0 from then to 904.0 s"),
    (spoilt_table("burn_laps", 0, 6, "now"), "tells of f64 in lap 0.0 from 900.0 to now s"),
    (spoilt_table("burn_digests", 0, 0, "i8"), "its table burn_digests differs in i8"),
    (
        spoilt_table("burn_digests", 0, 2, "none"),
        "no digest of f64 8192x8192x8192 that can be used: none",
    ),
    (spoilt_table("burn_digests", 0, 3, A.upper()), "no digest of f64"),
    (
        spoilt_table("burn_digests", 0, 3, 7.0),
        "no digest of f64 8192x8192x8192 that can be used: 0123456789abcdef, 7",
    ),
    (
        spoilt_table("burn_digests", 0, 1, "16384x8192x4096"),
        "no digest of f64 16384x8192x4096 that can be used",
    ),
    (spoilt_table("burn_laps", 0, 0, "first"), "tells of 3 turns, which are not those"),
    (turns_without_seconds, "worked for 0.0 s of the 8 s that it was to"),
    (with_parameter("laps", 1), "told of 1 laps, and at least 2 are due"),
    (with_parameter("laps", "2"), "told of '2' laps"),
    (with_parameter("laps", None), "told of None laps"),
    (with_parameter("library", ""), "does not say with which library it ran"),
    (with_parameter("library", None), "with which library it ran"),
    (with_parameter("dtypes", ["f64"]), "ran with dtypes"),
    (with_parameter("seconds", 1.0), "ran with seconds"),
    (with_parameter("peers", 0), "ran with peers"),
    (with_parameter("uuid", "GPU-2"), "ran with uuid = 'GPU-2', and 'GPU-1' was asked for"),
    (with_parameter("inject", "bit"), "a fault injected on purpose"),
    (with_wrong, "told of wrong results and counted none"),
    (lambda said: setattr(said, "seconds", 7.9), "ended after 7.9 s and was to work for 8 s"),
    (lambda said: setattr(said, "returncode", 1), "ended with exit code 1"),
    (lambda said: setattr(said, "load", "gpu_gemm"), "is not what ran"),
]


@each("change, trouble", BURN_TROUBLES)
def test_anything_less_of_a_burn_is_a_failed_load(change: Change, trouble: str) -> None:
    said = burned(peers=1)
    change(said)
    with pytest.raises(LoadFailed, match=f"(?s)^the load burn .*{trouble}") as caught:
        read_burn(said.done(), **ASKED, peers=1, also=OWN)
    assert caught.value.miscompares == all_of(*said.wrong)


def test_a_table_with_other_columns_is_a_failed_load() -> None:
    said = burned()
    said.tables["burn_laps"] = LAPS[:4], [row[:4] for row in said.tables["burn_laps"][1]]
    with pytest.raises(
        LoadFailed, match="printed lap, format, TFLOP/s, products as the table burn_laps"
    ):
        read_burn(said.done(), **ASKED, also=OWN)


def test_a_burn_that_died_keeps_what_it_had_found() -> None:
    said = burned()
    with_wrong(said)
    whole = said.done()
    cut = ProgramResult(whole.argv, -9, whole.stdout[:-60], "", 3.0)
    with pytest.raises(LoadFailed, match="was ended by signal 9") as caught:
        read_burn(cut, **ASKED, also=OWN)
    assert caught.value.miscompares == all_of(*said.wrong)


def test_turns_that_are_missing_doubled_or_too_short_prove_nothing() -> None:
    def read(change: Callable[[list[tuple[Any, ...]]], list[tuple[Any, ...]]]) -> str:
        said = burned()
        columns, rows = said.tables["burn_laps"]
        said.tables["burn_laps"] = (columns, change(list(rows)))
        with pytest.raises(LoadFailed) as caught:
            read_burn(said.done(), **ASKED, also=OWN)
        return str(caught.value)

    assert "tells of 3 turns, which are not those of 2 formats in 2 laps" in read(
        lambda rows: rows[:-1]
    )
    short = read(lambda rows: [(*row[:4], 0.5, *row[5:]) for row in rows])
    assert "worked for 2.0 s of the 8 s that it was to" in short
    other = burned()
    other.parameters["laps"] = 3
    with pytest.raises(
        LoadFailed, match="tells of 4 turns, which are not those of 2 formats in 3 laps"
    ):
        read_burn(other.done(), **ASKED, also=OWN)


def test_of_many_turns_the_first_and_the_last_are_looked_at() -> None:
    said = burned()
    said.parameters["laps"] = 1000
    columns = said.tables["burn_laps"][0]
    turns = [(float(lap), dtype) for lap in range(1000) for dtype in ASKED["dtypes"]]
    every = [
        (*turn, 50.0, 8.0, 0.004, 10.0 + place, 10.5 + place) for place, turn in enumerate(turns)
    ]
    said.tables["burn_laps"] = (columns, every[:250] + every[-250:])
    assert read_burn(said.done(), **ASKED, also=OWN).load == "burn"
    said.tables["burn_laps"] = (columns, every[:500])
    with pytest.raises(LoadFailed, match="tells of 500 turns"):
        read_burn(said.done(), **ASKED, also=OWN)


def test_laps_beyond_number_are_refused_at_once() -> None:
    said = burned()
    said.parameters["laps"] = 10**15
    with pytest.raises(LoadFailed, match="turns, which are not those of"):
        read_burn(said.done(), **ASKED)
