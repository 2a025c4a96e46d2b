"""Comparison of machines over some nights: what is flagged, and of what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from fleet_verdicts import Call, ago, place, verdict

from acceptance import resources
from acceptance.core import parts
from acceptance.fleet import comparison, due
from acceptance.fleet.common_cause import Attribute
from acceptance.fleet.comparison import Comparison
from acceptance.fleet.night import NightTable, Row
from acceptance.fleet.outliers import Floats
from acceptance.fleet.verdicts import Series
from acceptance.history import noise
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

BOOK = noise.read(resources.locate("noise.toml"))
FIRST, SECOND = "2026-11-25", "2026-11-26"
MODEL = {"gpu_model": "NVIDIA H200", "nvidia_driver": "580.1", "gpu_vbios": "96.1"}
CARDS = 8
NONE: Mapping[int | tuple[int, int], float] = {}


def rates(measurement: str = "gemm_bf16", unit: str = "TFLOP/s") -> tuple[Series, ...]:
    return tuple(
        Series("compute.gemm", measurement, parts.Gpu(card), unit) for card in range(CARDS)
    )


def table(
    values: Floats,
    facts: Callable[[int], Mapping[str, str]] = lambda _: {},
    series: tuple[Series, ...] = rates(),
) -> NightTable:
    rows = tuple(
        Row(
            f"m{n:02d}",
            "PASS",
            profile="nightly",
            groups=tuple(sorted({**MODEL, **facts(n)}.items())),
        )
        for n in range(len(values))
    )
    return NightTable(rows, series, values)


def even(
    machines: int, value: float = 700.0, but: Mapping[int | tuple[int, int], float] = NONE
) -> Floats:
    """Values that are all alike, but for those of some machines or cards."""
    values = np.full((machines, CARDS), value)
    for at, other in but.items():
        values[at] = other
    return values


def both(one: NightTable, told: Mapping[str, Mapping[str, str]] | None = None) -> Comparison:
    return comparison.compare({FIRST: one, SECOND: one}, BOOK, told)


def flagged(found: Comparison) -> set[tuple[str, str]]:
    return {(flag.machine, str(flag.series.component)) for flag in found.flags}


def said(found: Comparison) -> list[str]:
    """The sentences but for the one that counts."""
    told = comparison.sentences(found)
    return [words.message(one) for one in told if not one.code.startswith("fleet_compared")]


def test_a_slow_card_is_flagged_on_the_second_night_and_named() -> None:
    night = table(even(8, but={(3, 5): 560.0}))
    assert not comparison.compare({SECOND: night}, BOOK).flags
    found = both(night)
    assert flagged(found) == {("m03", "gpu5")}
    assert found.compared == 8
    assert said(found) == [
        "m03 is slower than its equals on two nights: gpu5 gemm_bf16 560 TFLOP/s, 20 % worse than "
        "700 TFLOP/s, the median of 7 others (beyond 8.2 % it counts)"
    ]


def test_only_the_last_nights_count() -> None:
    slow = even(8, but={(3, 5): 560.0})
    nights = {f"2026-11-{day}": table(slow if day < 22 else even(8)) for day in range(20, 26)}
    found = comparison.compare(nights, BOOK)
    assert (found.flags, found.nights) == ((), ("2026-11-23", "2026-11-24", "2026-11-25"))


def test_a_rate_that_is_higher_than_the_others_is_none() -> None:
    assert not both(table(even(8, but={(3, 5): 900.0}))).flags


def test_of_a_time_more_is_worse() -> None:
    values = even(8, 1000.0, but={3: 2000.0, 4: 500.0})
    series = rates("a_latency", "ns")
    assert {machine for machine, _ in flagged(both(table(values, series=series)))} == {"m03"}


@pytest.mark.parametrize("unit", ["GiB", "degC", "W", "MHz", "count", "ratio", "MT/s"])
def test_what_is_no_rate_is_not_compared(unit: str) -> None:
    found = both(table(even(8, but={3: 100.0}), series=rates("anything", unit)))
    assert (found.flags, found.apart) == ((), ())


def test_a_counter_of_a_whole_life_is_not_compared() -> None:
    never = [name for name, one in BOOK.families.by_name.items() if one.exempt or one.incomparable]
    assert never
    for name in never:
        assert not comparison._columns(rates(name, "GB/s"), BOOK, virtual=False)[1]


@pytest.mark.parametrize(
    "fact", ["gpu_model", "gpus", "nvidia_driver", "image_inputs", "station", "rigproof", "virtual"]
)
def test_machines_that_differ_are_not_compared(fact: str) -> None:
    """Those with an older driver are all slower: none of them is an outlier."""
    values = even(16, but=dict.fromkeys(range(8, 16), 500.0))
    found = both(table(values, lambda n: {fact: "old"} if n >= 8 else {}))
    assert not found.flags
    assert found.compared == 16


def test_an_image_of_ours_is_known_by_its_inputs() -> None:
    """Each machine may have built it, under an id of its own."""
    values = even(8, but={(3, 5): 560.0})
    facts = {"image_inputs": "abc"}
    found = both(table(values, lambda n: {**facts, "image_id": f"sha256:{n}"}))
    assert flagged(found) == {("m03", "gpu5")}
    found = both(table(values, lambda n: {"image_id": f"sha256:{n}"}))
    assert found.uncompared == tuple(f"m{n:02d}" for n in range(8))
    assert found.compared == 0
    assert said(found)[-1].startswith("no equal machine to compare with: m00, m01")


def test_vms_have_a_noise_of_their_own() -> None:
    values = even(8, 50.0, but={(3, 5): 44.0})
    series = rates("copy_h2d", "GB/s")
    assert flagged(both(table(values, series=series)))
    assert not flagged(both(table(values, lambda _: {"virtual": "yes"}, series=series)))


def test_of_two_machines_none_is_blamed() -> None:
    found = both(table(even(2, but={(1, 0): 500.0})))
    assert not found.flags
    (sentence,) = said(found)
    assert sentence.startswith("m01 is 28.6 % behind m00 in gpu0 gemm_bf16 on two nights: of two")


def test_a_machine_that_missed_a_night_is_found_on_the_next() -> None:
    slow = even(8, but={3: 500.0})
    away = slow.copy()
    away[3] = np.nan
    nights = {FIRST: table(slow), SECOND: table(away), "2026-11-27": table(slow)}
    assert {machine for machine, _ in flagged(comparison.compare(nights, BOOK))} == {"m03"}
    assert comparison.compare(nights, BOOK).compared == 8


def test_a_slow_rack_is_one_cause() -> None:
    values = even(64, but=dict.fromkeys(range(8, 12), 500.0))
    racks = {f"m{n:02d}": {"rack": f"r{n // 4}"} for n in range(64)}
    found = both(table(values), racks)
    (cause,) = found.causes.common
    assert cause.attributes == (Attribute("rack", "r2"),)
    assert not found.causes.single
    (sentence,) = said(found)
    assert sentence == (
        "rack r2: 4 of the 4 machines with it are slower than their equals, of 4 among all 64: "
        "m08, m09, m10, m11, in gemm_bf16"
    )


def test_a_slow_position_in_all_machines_is_one_cause() -> None:
    """Beside it a card of its own is named by its own values."""
    values = even(
        64, but={(0, 1): 500.0, **dict.fromkeys(((n, 6) for n in range(0, 64, 8)), 560.0)}
    )
    first, second = said(both(table(values)))
    assert first.startswith(
        "slot gpu6: 8 of the 64 cards there are slower than their equals, of 9 among all 512: "
    )
    assert second.startswith("m00 is slower than its equals on two nights: gpu1 gemm_bf16 500")
    assert "other values" not in second


def test_firmware_that_differs_in_a_batch_is_listed() -> None:
    found = both(
        table(even(6), lambda n: {"gpu_vbios": "96.2"} if n == 4 else {"bios_version": "1"})
    )
    assert said(found) == [
        "NVIDIA H200: bios_version differs: 1 on most, not read on m04",
        "NVIDIA H200: gpu_vbios differs: 96.1 on most, 96.2 on m04",
    ]


def test_a_night_that_only_names_missing_machines_is_none() -> None:
    """Collecting in the afternoon begins the next one."""
    values = even(8, but={(3, 5): 560.0})
    nothing = table(np.full((1, CARDS), np.nan))
    nights = {FIRST: table(values), SECOND: table(values), "2026-11-27": nothing}
    found = comparison.compare(nights, BOOK)
    assert (flagged(found), found.nights) == ({("m03", "gpu5")}, (FIRST, SECOND))


def test_where_no_version_has_the_most_machines_all_are_listed() -> None:
    found = both(table(even(4), lambda n: {"gpu_vbios": f"96.{n % 2}"}))
    assert said(found) == [
        "NVIDIA H200: gpu_vbios differs: 96.0 on m00, m02, 96.1 on m01, m03",
    ]


def test_a_machine_of_unknown_model_is_compared_with_nobody() -> None:
    night = table(even(4))
    rows = (replace(night.rows[0], groups=()), *night.rows[1:])
    found = both(replace(night, rows=rows))
    assert found.uncompared == ("m00",)
    assert said(found) == ["no equal machine to compare with: m00"]


def test_a_slow_host_has_no_slot() -> None:
    values = even(8, but={3: 500.0})
    series = (*rates()[:-1], Series("link.nccl", "collective_all_reduce", parts.GPUS, "GB/s"))
    found = both(table(values, series=series))
    assert {part for _, part in flagged(found)} == {*(f"gpu{n}" for n in range(7)), "gpus"}
    assert [one.machine for one in found.causes.single] == ["m03"]


def test_machines_that_are_new_cannot_be_slow_yet() -> None:
    """One of this night has an earlier one: that is said, not that none is slow."""
    values = even(8, but={3: 500.0})
    before = values.copy()
    before[2:] = np.nan
    found = comparison.compare({FIRST: table(before), SECOND: table(values)}, BOOK)
    assert (found.measured, found.compared, found.twice, found.flags) == (8, 8, 2, ())
    assert words.message(comparison.sentences(found)[-1]) == (
        "compared with their equals: 8 of 8 machines, 2 of them on an earlier night too; slower: 0 "
        "(no verdict changes)"
    )


def test_nothing_to_compare() -> None:
    assert not comparison.compare({}, BOOK).compared
    assert not both(table(np.full((3, CARDS), np.nan))).compared


@pytest.fixture
def call(fleet: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TZ", "UTC")
    return lambda *arguments: fleet("collect", *arguments)[:2]


def fill(folder: Path, ages_h: Iterable[float], machines: int = 8) -> None:
    """Nights of machines of one rack each two, of which m3 is slow; a folder for each run."""
    for age in ages_h:
        run, began = ago(age)
        for n in range(machines):
            name = f"m{n}"
            rate = 700.0 if n != 3 else 550.0
            file = verdict(run=run, values=(rate, 700.0), serial=name, machine_id=name)
            place(folder, name, file, under=run, written=began + timedelta(minutes=5))


SLOW = "m3 is slower than its equals on two nights: gpu0 gemm_bf16 550 TFLOP/s, 21.4 % worse than"


def test_two_nights_of_run_folders_flag_and_change_no_verdict(call: Call, tmp_path: Path) -> None:
    fill(tmp_path / "fleet", (26, 2))
    code, out = call("fleet")
    assert code == 0
    assert out[-3].startswith(SLOW)
    assert out[-2:] == [
        "compared with their equals: 8 of 8 machines, 8 of them on an earlier night too; slower: 1 "
        "(no verdict changes)",
        "PASS: 8 machines due: 8 PASS, 0 FAIL, 0 UNJUDGED",
    ]


def test_kept_nights_flag_when_the_verdicts_are_gone(call: Call, tmp_path: Path) -> None:
    fill(tmp_path / "one", (26,))
    fill(tmp_path / "two", (2,))
    assert not [line for line in call("one", "--out", "nights")[1] if "is slower" in line]
    assert [line for line in call("two", "--out", "nights")[1] if line.startswith(SLOW)]


def test_a_night_of_another_month_is_not_compared(call: Call, tmp_path: Path) -> None:
    fill(tmp_path / "one", (24 * 30,))
    fill(tmp_path / "two", (2,))
    call("one", "--out", "nights", "--fresh", "8000")
    assert call("two", "--out", "nights")[1][-2] == (
        "compared with their equals: 8 of 8 machines, none on an earlier night: slow ones are "
        "named from the second night"
    )


def test_places_are_read_from_a_csv(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "locations.csv"
    path.write_text("\ufeffmachine, rack,switch\nm0,r1,s1\n\nm1,,s1\n", encoding="utf-8")
    assert due.read_locations(path) == {
        "m0": {"rack": "r1", "switch": "s1"},
        "m1": {"switch": "s1"},
    }
    fill(tmp_path / "fleet", (2,))
    assert call("fleet", "--locations", "locations.csv")[0] == 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "the first line must name the columns"),
        ("rack,machine\n", "the first line must name the columns"),
        ("machine\nm0\n", "the first line must name the columns"),
        ("machine,rack,rack\n", "the first line must name the columns"),
        ("machine,slot\nm0,1\n", "`slot` cannot be a column"),
        ("machine,rack\nm0\n", "locations.csv, line 2: m0 is no row of a machine"),
        ("machine,rack\nm0,r1\nm0,r2\n", "locations.csv, line 3: m0,r2 is no row"),
        ('machine,rack\n"m 0",r1\n', "locations.csv, line 2: m 0,r1 is no row"),
        ('machine,rack\nm0,"r1\n', "cannot be read (line"),
    ],
)
def test_a_wrong_file_of_places_is_one_sentence(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "locations.csv"
    path.write_text(text)
    with pytest.raises(WordedUserError) as caught:
        due.read_locations(path)
    assert wrong in str(caught.value)
    path.write_bytes(b"machine,rack\nm0,\xff\n")
    with pytest.raises(WordedUserError, match="it is not UTF-8"):
        due.read_locations(path)
