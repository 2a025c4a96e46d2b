"""Simulated years: sound nights are quiet, decay is found in time, and a judgement with a fault
in it is noticed.
"""

from __future__ import annotations

import random
import statistics

import pytest
from cases import each
from thoroughness import ALL, some

from acceptance.core.past import DriftJudgement, Past
from selftest import drift_trials, year
from selftest.decay import FAULTS, Fault
from selftest.drawn_nights import YEAR, moves
from selftest.drawn_nights import year as nights_of
from selftest.drawn_runs import nightly
from selftest.drift_trials import BOARD, ONE, detect_once, quiet
from selftest.year import markdown, rows


def place(what: str) -> int:
    return next(number for number, fault in enumerate(FAULTS) if what in fault.what)


def test_sound_nights_have_no_failure_and_few_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_trials, "YEAR", drift_trials.YEAR if ALL else 60)
    found = quiet(ONE, 1, 7)
    assert found.failed == ()
    assert found.remarked < 30
    assert found.figures > 100


DECAY = [
    ("GPU 3 % slower", 1),
    ("GPU 5 % slower", 1),
    ("with which all products are 4 % slower", None),
    ("same 4 %", 1),
    ("every product 1 % slower a month", 90),
    ("where the rate does not suffer", 110),
    ("8 of 16 lanes", 1),
    ("a row remapped every night", 1),
    ("one row of a GPU", None),
    ("5000 corrected", 0),
    ("50 corrected", None),
    ("of a disk's life", None),
]


@pytest.mark.sweep
@each("what, latest", some(DECAY, 5))
def test_decay_fails_in_time_or_not_at_all(what: str, latest: int | None) -> None:
    number = place(what)
    remarked, failed = detect_once(number, False, 1)
    assert (failed is not None) == FAULTS[number].fails == (latest is not None)
    if latest is not None:
        assert failed is not None
        assert failed <= latest
    elif not FAULTS[number].era:
        assert remarked is not None
        assert remarked < 40


def test_every_fault_touches_something_that_a_night_measures() -> None:
    moved = moves(nightly(ONE), random.Random(1))
    for fault in FAULTS:
        assert any(drift_trials._touched(fault, key, one) for key, one in moved.items()), fault.what
    with pytest.raises(AssertionError):
        assert any(
            drift_trials._touched(Fault("none", lambda _k, _d, value, _n, _r: value), key, one)
            for key, one in moved.items()
        )


@pytest.mark.sweep
def test_nights_move_as_the_noise_says() -> None:
    machine, dice = nightly(ONE), random.Random(3)
    moved = moves(machine, dice)
    key = next(key for key in moved if key[1] == "burn_bf16")
    drawn = [night for night in nights_of(machine, moved, dice, 300)]
    first = [float(night.first[key] or 0) for night in drawn]
    assert statistics.stdev(first) == pytest.approx(moved[key].deviation, rel=0.3)
    apart = [float(night.first[key] or 0) - float(night.second[key] or 0) for night in drawn]
    assert statistics.stdev(apart) == pytest.approx(moved[key].deviation, rel=0.3)
    still = next(key for key in moved if key[1] == "gpu_link_width")
    assert {night.first[still] for night in drawn} == {16}
    wear = next(key for key in moved if key[1] == "disk_wear")
    assert drawn[-1].first[wear] == pytest.approx(0.05 * 300 / YEAR, abs=0.01)


def test_nights_that_differ_as_cards_do_are_noisier() -> None:
    machine = nightly(ONE)
    own, wide = (moves(machine, random.Random(1), as_cards=as_cards) for as_cards in (False, True))
    key = next(key for key in own if key[1] == "gemm_bf16")
    assert wide[key].deviation == pytest.approx(own[key].deviation * 0.008 / 0.005)


def test_a_judgement_that_says_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Past, "judge", lambda *_: DriftJudgement())
    monkeypatch.setattr(drift_trials, "YEAR", 30)
    monkeypatch.setattr(drift_trials, "SOUND_BEFORE", drift_trials.SOUND_BEFORE if ALL else 6)
    monkeypatch.setattr(drift_trials, "LOOKED_FOR", drift_trials.LOOKED_FOR if ALL else 6)
    assert detect_once(place("GPU 3 % slower"), False, 1) == (None, None)
    _, found = rows(1, 1, 1)
    assert {row.smallest.rpartition(" ")[2] for row in found} == {"never", "told"}


def test_the_rows_of_the_self_test_say_when() -> None:
    assert (year._when([1, 1, 1]), year._when([1, 1, 4, None]), year._when([None])) == (
        "night 2",
        "night 2, at the latest 5",
        "never",
    )


@pytest.mark.sweep
def test_the_tables_have_a_line_for_every_machine_and_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drift_trials, "YEAR", 6)
    monkeypatch.setattr(drift_trials, "LOOKED_FOR", 2)
    monkeypatch.setattr(drift_trials, "SOUND_BEFORE", 6)
    told = markdown(1, 1, 1, 1, 1)
    assert f"| {ONE} |" in told
    assert f"| {BOARD} |" in told
    assert all(f"| {fault.what} |" in told for fault in FAULTS)
