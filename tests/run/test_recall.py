"""What is remembered of a machine, from night to night: through journals, the history, and the
plan of the next run.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import journals
import msgspec
import pytest
import synthetic_machines
from boxes import BOXES
from gpu_machine import device, machine
from known import known
from msgspec.structs import replace
from refusal import assert_raises
from runs import judged, known_provenance, machine_root, sealed, write_segment, write_views

from acceptance import resources
from acceptance.baseline import changes as baseline_changes
from acceptance.core import parts
from acceptance.core.finding import Waiver
from acceptance.core.fold import fold
from acceptance.core.message import Term
from acceptance.core.parts import Gpu
from acceptance.core.plan import PHASES, SESSIONS, Due, LimitSet, Plan, Reduction
from acceptance.core.record import Body, CheckEnded, Note, RunEnded, RunStarted
from acceptance.core.verdict import Verdict
from acceptance.history import baseline_file, night_file, noise
from acceptance.history import folder as history_folder
from acceptance.history.errors import HistoryError
from acceptance.journal import clock, reader, run_folder
from acceptance.journal import run as journal_run
from acceptance.machine.inventory import Inventory
from acceptance.reports import languages
from acceptance.reports.progress import eta_s
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.run.recall import SECONDS_PER_DAY, HistoryRecall, RecalledPlan
from acceptance.station.base import HostStation
from acceptance.station.options import Options
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

PAIR = machine(device(0), device(1))
# Both cards in each other's slot.
SWAPPED = machine(
    device(0, uuid=PAIR.nvml.devices[1].uuid), device(1, uuid=PAIR.nvml.devices[0].uuid)
)
MADE = replace(
    journals.plan(
        journals.check(
            "link.host_copies", journals.due("copy_h2d", Gpu(0)), journals.due("copy_h2d", Gpu(1))
        ),
        profile="nightly",
    ),
    gpus=(Gpu(0), Gpu(1)),
)
SOUND = (150.0, 152.0)
DAY_S = 86400.0
EIGHT = 8
FIRST_S = 1_790_000_000.0

_noise, _rules = functools.cache(noise.read), functools.cache(noise.read_rules)


class Nights:
    """One machine night after night; `night` is the number of the next one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out, self.root = folder / "out", machine_root(folder / "root")
        self.night = 0
        self.clock_off_days = 0.0
        self.inventory = PAIR
        self.plan: Plan = MADE
        self.limits: LimitSet | None = None
        self._monkeypatch = monkeypatch
        # a night's memory asks for both, and there are a hundred nights
        monkeypatch.setattr(noise, "read", _noise)
        monkeypatch.setattr(noise, "read_rules", _rules)

    def _prepared(
        self, plan: Plan, *notes: Note, inventory: Inventory | None = None
    ) -> PreparedRun:
        options, seen = Options(out=self.out, root=self.root), inventory or self.inventory
        return PreparedRun(options, None, seen, plan, "a summary", notes, limits=self.limits)

    def recalled(
        self, inventory: Inventory | None = None, memory: HistoryRecall | None = None
    ) -> RecalledPlan:
        prepared = self._prepared(self.plan, inventory=inventory)
        today = FIRST_S / DAY_S + self.night + self.clock_off_days
        return (memory or HistoryRecall(self.out, self.root)).recall(prepared, HostStation(), today)

    def run(self, *values: float, again: tuple[float, float] | None = None) -> Verdict:
        """A night with these values of gpu0 and gpu1, as the memory has it planned."""
        recalled = self.recalled()
        measured = {("copy_h2d", Gpu(index)): value for index, value in enumerate(values)}
        self.write(recalled, journals.bodies(recalled.plan, measured)[1:])
        if again:
            looked = {("copy_h2d", Gpu(index)): value for index, value in enumerate(again)}
            write_segment(
                self._folder / "journal-load-again.jsonl",
                journals.check_bodies(recalled.plan.checks[0], looked),
                self.root,
            )
        return self.close()

    def put_off(self) -> Verdict:
        """A night on which the machine is in use."""
        recalled = self.recalled()
        self.write(
            recalled, [recalled.postponement(("gpu0: somebody",), 3), RunEnded(False, "in use")]
        )
        return self.close()

    @property
    def _folder(self) -> Path:
        return self.out / f"night-{self.night:03}"

    def write(self, recalled: RecalledPlan, bodies: list[Body]) -> None:
        prepared = self._prepared(recalled.plan, *recalled.notes)
        moment = FIRST_S + DAY_S * (self.night + self.clock_off_days)
        told = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
        self._monkeypatch.setattr(clock, "utc", lambda: told.replace("+00:00", "Z"))
        write_segment(
            self._folder / reader.SUPERVISOR,
            [*header_records(prepared, HostStation(), self._folder), *bodies],
            self.root,
        )

    def close(self) -> Verdict:
        run = journal_run.read(sealed(self._folder))
        (self._folder / run_folder.VERDICT).write_text(
            "{}"
        )  # its reports are of no interest here, and take their time
        assert HistoryRecall(self.out, self.root).keep(run) is None
        self.night += 1
        return run.verdict


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    return Nights(tmp_path, monkeypatch)


def pass_soundly(nights: Nights, count: int) -> None:
    """So many nights with nothing wrong, and some noise."""
    for number in range(count):
        verdict = nights.run(SOUND[0] + 0.1 * (number % 3), SOUND[1] - 0.1 * (number % 2))
        assert (verdict.verdict, verdict.of_kind("warn")) == ("PASS", ())


@pytest.fixture(scope="module")
def eight_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that eight sound nights leave."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        known_provenance(monkeypatch)
        monkeypatch.setattr(os, "fsync", lambda _file: None)
        made = Nights(tmp_path_factory.mktemp("eight"), monkeypatch)
        pass_soundly(made, EIGHT)
    return made.out


@pytest.fixture
def eighth(nights: Nights, eight_nights: Path) -> Nights:
    """A machine after eight sound nights."""
    shutil.copytree(eight_nights, nights.out, symlinks=True)
    nights.night = EIGHT
    return nights


def warned(verdict: Verdict) -> list[tuple[str | None, str | None]]:
    return [(finding.component, finding.event) for finding in verdict.of_kind("warn", "fail")]


def outcome(verdict: Verdict) -> tuple[str, list[tuple[str | None, str | None]]]:
    """The verdict, and what is remarked of which component."""
    return verdict.verdict, warned(verdict)


STEP_WARNED = ("PASS", [(Gpu(0), "drift.step")])


STEP_FAILED = ("FAIL", [(Gpu(0), "drift.step")])


def middles(plan: Plan) -> dict[str, float]:
    """What is usual of each component by its nights."""
    return {
        due.component: due.past.level.middle for due in _dues(plan) if due.past and due.past.level
    }


def test_a_step_is_a_warning_on_the_first_night_and_a_failure_on_the_second(
    eighth: Nights,
) -> None:
    """Two nights running: not one between which all is well."""
    assert outcome(eighth.run(141.5, 152.0)) == STEP_WARNED
    assert outcome(eighth.run(150.0, 152.0)) == ("PASS", [])
    assert outcome(eighth.run(141.5, 152.0)) == STEP_WARNED
    second = eighth.run(141.6, 152.0)
    assert outcome(second) == STEP_FAILED
    assert journal_run.read(eighth.out / "night-011").verdict == second  # from its journal alone


def test_what_the_second_look_does_not_show_does_not_count_as_outside(eighth: Nights) -> None:
    unsteady = eighth.run(141.5, 152.0, again=(150.0, 152.0))
    assert outcome(unsteady) == ("PASS", [(Gpu(0), "drift.unsteady")])
    assert outcome(eighth.run(141.5, 152.0, again=(141.6, 152.0))) == STEP_WARNED
    assert eighth.run(141.5, 152.0, again=(141.6, 152.0)).verdict == "FAIL"


def test_a_card_takes_its_nights_along_to_another_slot(nights: Nights) -> None:
    nights.plan = replace(
        MADE,
        checks=(
            journals.check(
                "link.host_copies",
                journals.due("copy_h2d", Gpu(0), limit=None),
                journals.due("copy_h2d", Gpu(1)),
            ),
        ),
    )
    for _ in range(4):
        nights.run(150.0, 190.0)
    assert middles(nights.recalled().plan) == {Gpu(0): 150.0, Gpu(1): 190.0}
    assert middles(nights.recalled(SWAPPED).plan) == {Gpu(0): 190.0, Gpu(1): 150.0}


def test_the_plan_knows_the_worse_side_of_what_has_no_limit(nights: Nights) -> None:
    free = (("p2p_latency", "us"), ("copy_h2d", "GB/s"), ("gpu_power", "W"))
    due = [journals.due(name, Gpu(0), unit, None) for name, unit in free]
    check = journals.check("link.p2p", *due, journals.due("copy_d2h", Gpu(0)))
    nights.plan = replace(MADE, checks=(check,))
    assert [due.worse for due in _dues(nights.recalled().plan)] == ["higher", "lower", None, None]


def _dues(plan: Plan) -> list[Due]:
    return [due for check in plan.checks for due in check.due]


def test_another_time_of_load_begins_anew_and_says_so(eighth: Nights) -> None:
    eighth.plan = replace(MADE, loads_s={"nvbandwidth": 3.0})
    recalled = eighth.recalled()
    assert not any(due.past for due in _dues(recalled.plan))
    (note,) = recalled.notes
    assert "the time of nvbandwidth is 3 s" in words.text(note.text)
    assert eighth.run(140.0, 152.0).verdict == "PASS"
    assert note in [entry.body for entry in reader.read(eighth.out / "night-008").entries]


@pytest.mark.parametrize(
    "days",
    [
        pytest.param(0.0, id="right", marks=pytest.mark.sweep),
        pytest.param(4000.0, id="years ahead", marks=pytest.mark.sweep),
        pytest.param(-4000.0, id="years back"),
    ],
)
def test_nights_count_from_the_one_that_was_accepted_whatever_its_clock_said(
    nights: Nights, days: float
) -> None:
    for _ in range(4):
        nights.run(170.0, 172.0)
    nights.clock_off_days = days
    nights.run(150.0, 152.0)  # slower, and accepted so
    nights.clock_off_days = 0.0
    accepted(nights.out, nights.root, f"night-{4:03}", again=True)
    assert nights.recalled().plan.gaps == ()
    pass_soundly(nights, 5)
    levels = [due.past.level for due in _dues(nights.recalled().plan) if due.past]
    assert [(level.nights, level.middle) for level in levels if level] == [(6, 150.05), (6, 152.0)]
    assert outcome(nights.run(141.5, 152.0)) == STEP_WARNED
    assert nights.run(141.5, 152.0).verdict == "FAIL"


def test_two_nights_are_running_whatever_their_clocks_said(eighth: Nights) -> None:
    eighth.clock_off_days = -300.0
    assert outcome(eighth.run(141.5, 152.0)) == STEP_WARNED
    eighth.inventory = SWAPPED  # the card goes on in the other slot, and its nights with it
    eighth.clock_off_days = 0.0
    assert outcome(eighth.run(152.0, 141.5)) == ("FAIL", [(Gpu(1), "drift.step")])


def test_a_night_that_broke_its_limit_is_the_first_of_two(eighth: Nights) -> None:
    broken = eighth.run(99.0, 152.0)  # the limit is 100
    assert broken.verdict == "FAIL"
    assert (Gpu(0), None) in warned(broken)
    assert outcome(eighth.run(130.0, 152.0)) == STEP_FAILED


def test_a_waived_shortfall_is_held_against_its_own_nights(nights: Nights) -> None:
    nights.plan = replace(
        MADE,
        waivers=(Waiver("a slot of x8", measurement="copy_h2d", component="gpu0", worst=50.0),),
    )
    for number in range(8):  # the limit is 100
        assert outcome(nights.run(80.0 + 0.1 * (number % 3), SOUND[1])) == ("PASS", [])
    assert outcome(nights.run(60.0, SOUND[1])) == STEP_WARNED
    assert outcome(nights.run(60.0, SOUND[1])) == STEP_FAILED


def test_nights_that_were_put_off_are_counted_and_measured_nothing(eighth: Nights) -> None:
    assert [eighth.put_off().verdict for _ in range(3)] == ["UNJUDGED", "UNJUDGED", "FAIL"]
    assert eighth.recalled().put_off == 3
    assert any(due.past for due in _dues(eighth.recalled().plan))
    assert eighth.run(*SOUND).verdict == "PASS"
    assert eighth.recalled().put_off == 0


def file_of(nights: Nights, run_id: str) -> Path:
    return night_file.folder(nights.out, "machine-1") / night_file.name(run_id)


def not_counted(recalled: RecalledPlan) -> str:
    """Why nobody knows how many nights in a row were put off, this one included."""
    with pytest.raises(HistoryError) as caught:
        recalled.postponement(("gpu0: somebody",), 3)  # or it would be the first one every night
    return caught.value.message.code


def test_a_night_that_is_damaged_is_written_again_and_told_of(eighth: Nights) -> None:
    before = eighth.recalled().plan
    assert file_of(eighth, "night-003").is_file()
    file_of(eighth, "night-003").write_bytes(b"no night" * 1000)
    recalled = eighth.recalled()
    assert (recalled.plan, recalled.notes[0].text.code) == (before, "night_restored")


def test_a_damaged_night_without_its_run_is_named_every_night_and_is_no_reference(
    eighth: Nights,
) -> None:
    file = file_of(eighth, "night-003")
    shutil.rmtree(eighth.out / "night-003")
    file.write_bytes(file.read_bytes()[:-40])
    for _ in range(2):
        recalled = eighth.recalled()
        assert str(file) in words.text(recalled.notes[0].text)
    levels = {due.past.level.nights for due in _dues(recalled.plan) if due.past and due.past.level}
    assert (levels, not_counted(recalled)) == ({EIGHT - 1}, "skipped_nights_unknown")


def test_a_night_of_a_newer_rigproof_leaves_the_past_unknown(eighth: Nights) -> None:
    file = file_of(eighth, "night-003")
    file.write_bytes(file.read_bytes().replace(b'night":2', b'night":3', 1))
    recalled = eighth.recalled()
    assert (recalled.plan, recalled.notes[0].text.code) == (MADE, "not_remembered")
    assert not_counted(recalled) == "skipped_nights_unknown"


def test_a_history_that_was_not_converted_is_said_and_costs_no_verdict(nights: Nights) -> None:
    file = history_folder.database(nights.out, "machine-1")
    nights.recalled()
    file.parent.mkdir(parents=True)
    file.write_bytes(b"anything")
    recalled = nights.recalled()
    run = judged(journals.entries(journals.bodies(MADE)))
    assert (recalled.plan, recalled.notes[0].text.code) == (MADE, "not_remembered")
    assert not recalled.notes[0].trouble
    assert known(HistoryRecall(nights.out, nights.root).keep(run)).code == "not_in_history_yet"
    assert not_counted(recalled) == "skipped_nights_unknown"


def test_a_run_that_cannot_be_read_is_told_once_a_night(eighth: Nights) -> None:
    run = journal_run.read(eighth.out / "night-000")
    broken = eighth.out / "broken"
    broken.mkdir()
    (broken / reader.SUPERVISOR).write_text("rubbish\n")
    (broken / run_folder.VERDICT).write_text("{}")
    memory = HistoryRecall(eighth.out, eighth.root)
    (note,) = eighth.recalled(memory=memory).notes
    assert "broken (" in words.text(note.text)
    assert memory.keep(run) is None
    assert HistoryRecall(eighth.out, eighth.root).keep(run) == note.text


# --- counters ---

COUNT = "gpu_ecc_corrected_total"
COUNTED = replace(
    MADE,
    checks=(
        *MADE.checks,
        journals.check("watch.totals", journals.due(COUNT, Gpu(0), "count", None)),
    ),
)


def counting(nights: Nights, count: float, copies: float = 150.0) -> Verdict:
    """A night on which gpu0 copies at this rate, and has counted so many errors in its life."""
    recalled = nights.recalled()
    values = {("copy_h2d", Gpu(0)): copies, ("copy_h2d", Gpu(1)): 152.0, (COUNT, Gpu(0)): count}
    nights.write(recalled, journals.bodies(recalled.plan, values)[1:])
    return nights.close()


def driven(version: str) -> Inventory:
    return dataclasses.replace(PAIR, board=dataclasses.replace(PAIR.board, nvidia_driver=version))


@pytest.mark.parametrize(
    ("driver", "changes"),
    [
        ("590.1", {}),
        ("580.1", {"profile": "full"}),
        ("580.1", {"loads_s": {"nvbandwidth": 3.0}}),
    ],
)
def test_a_counter_has_its_past_on_the_first_night_of_an_era_without_a_baseline(
    nights: Nights, driver: str, changes: dict[str, Any]
) -> None:
    nights.plan, nights.inventory = COUNTED, driven("580.1")
    for number in range(4):
        assert warned(counting(nights, 3.0 + number)) == []
    nights.plan, nights.inventory = replace(COUNTED, **changes), driven(driver)
    (note,) = nights.recalled().notes
    assert words.text(note.text).endswith(": all but counters start again with this run")
    # the copies' own past would have remarked that
    verdict = counting(nights, 5000.0, copies=120.0)
    assert outcome(verdict) == ("FAIL", [(Gpu(0), "drift.counter")])
    assert "grew by 4994 within 1 day, from 6, " in words.of(verdict.of_kind("fail")[0])
    assert warned(counting(nights, 5001.0, copies=120.0)) == []


def test_of_an_era_in_which_nothing_was_usual_yet_nothing_is_said(nights: Nights) -> None:
    """A smoke test, and then the acceptance: whoever runs the first two has no history."""
    nights.inventory, told = driven("580.1"), []
    for _ in range(4):
        counting(nights, 3.0)
        nights.plan = replace(MADE, profile="accept")
        told.append(len(nights.recalled().notes))
        nights.plan = MADE
    assert told == [0, 0, 0, 1]


def keep_timed(nights: Nights, noise_share: float) -> float:
    """A run on a machine whose checks take another time than calculated; its seconds: of each
    phase those of its longer session.
    """
    recalled = nights.recalled()
    bodies: list[Body] = []
    took_s = dict.fromkeys(SESSIONS, 0.0)
    sessions = {check.id: check.session for check in recalled.plan.checks}
    for body in journals.bodies(recalled.plan)[1:]:
        if isinstance(body, CheckEnded):
            pace = (0.3, 0.6, 1.2)[len(body.check) % 3] * (1.0 + noise_share)
            body = replace(body, seconds=body.seconds * pace)  # noqa: PLW2901
            took_s[sessions[body.check]] += body.seconds
        bodies.append(body)
    nights.write(recalled, bodies)
    nights.close()
    return sum(max(took_s[session] for session in phase) for phase in PHASES)


def test_a_replaced_card_brings_a_count_of_its_own(nights: Nights) -> None:
    nights.plan = COUNTED
    for number in range(3):
        counting(nights, 3.0 + number)
    nights.inventory = machine(device(0, uuid="GPU-another"), device(1))
    assert warned(counting(nights, 5000.0)) == []


def test_from_the_third_run_on_the_plan_has_the_times_of_this_machine(nights: Nights) -> None:
    box = BOXES["2x4090.toml"]
    nights.inventory = synthetic_machines.inventory(box)
    nights.plan = synthetic_machines.planned(box, nights.inventory)
    calculated_s = eta_s(nights.plan)
    assert eta_s(nights.recalled().plan) == calculated_s
    keep_timed(nights, 0.04)
    assert nights.recalled().plan.timed_runs == 0
    keep_timed(nights, -0.04)
    memory = HistoryRecall(nights.out, nights.root)
    for made in (nights.recalled().plan, memory.with_usual_times(nights.plan, "host")[0]):
        assert made.timed_runs == 2
        assert [one.seconds for one in made.checks] == [one.seconds for one in nights.plan.checks]
    third_s = keep_timed(nights, 0.03)
    assert eta_s(made) == pytest.approx(third_s, rel=0.10)
    assert calculated_s != pytest.approx(third_s, rel=0.10)
    assert memory.with_usual_times(nights.plan, "docker") == (nights.plan, ())


def test_without_a_history_the_plan_has_the_calculated_times(nights: Nights) -> None:
    memory = HistoryRecall(nights.out, nights.root)
    assert memory.with_usual_times(MADE, "host") == (MADE, ())
    assert not nights.out.exists()  # nothing is written
    database = history_folder.database(nights.out, clock.machine_id(nights.root))
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database" * 99)
    plan, (notice,) = memory.with_usual_times(MADE, "host")
    assert (plan, notice.code) == (MADE, "history_to_convert")


def test_limits_of_another_version_are_said_and_compared_all_the_same(nights: Nights) -> None:
    """A night of an older rigproof, which told no limits, says nothing of them."""

    def told() -> list[str]:
        found = (words.text(note.text) for note in nights.recalled().notes)
        return [one for one in found if "limits" in one]

    versions = (None, "2026-11-27.1", "2026-11-27.1", "2026-12-01.1")
    for version, count in zip(versions, (0, 0, 0, 1), strict=True):
        nights.limits = LimitSet(version, version[-4:] * 16) if version else None
        assert len(told()) == count
        assert nights.run(*SOUND).verdict == "PASS"
    for night, count in ((1, 1), (3, 0), (0, 0)):
        accepted(nights.out, nights.root, f"night-{night:03}", again=True)
        said = [one for one in told() if "the baseline (" in one]
        assert len(said) == count
        assert all("held to 2026-11-27.1 (27.127.127.1)" in one for one in said)


HEALTHY = machine(device(0), device(1))
UNKNOWN = "changes since the machine was accepted are not known"
NIGHTLY_UNKNOWN = "changes from night to night are not known"
TOMORROW = time.time() / SECONDS_PER_DAY + 1.0
NOISE = noise.read(resources.locate("noise.toml"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return machine_root(tmp_path / "root")


def recalled(
    out: Path, root: Path, inventory: Inventory, plan: Plan | None = None, today: float = TOMORROW
) -> tuple[Plan, tuple[str, ...]]:
    """The plan of the next run, with what is remembered in it, and its notes."""
    prepared = PreparedRun(
        Options(out=out, root=root), None, inventory, plan or journals.plan(), "a summary"
    )
    found = HistoryRecall(out, root).recall(prepared, HostStation(), today)
    return found.plan, tuple(words.text(note.text) for note in found.notes)


def run(out: Path, root: Path, name: str, inventory: Inventory) -> Verdict:
    """A run that measures nothing wrong, on this machine, as the memory has it planned; closed
    with its reports.
    """
    plan, _ = recalled(out, root, inventory)
    return close(out, root, name, inventory, plan, [*journals.bodies(plan)[1:]])


def close(
    out: Path, root: Path, name: str, inventory: Inventory, plan: Plan, bodies: list[Body]
) -> Verdict:
    prepared = PreparedRun(Options(), None, inventory, plan, "a summary")
    head = [RunStarted(name, plan, {}, "machine-1"), prepared.observed()]
    write_segment(out / name / reader.SUPERVISOR, [*head, *bodies], root)
    return write_views(out / name).verdict


@pytest.fixture
def born(tmp_path: Path, root: Path) -> Path:
    """The output folder of a machine whose first run is its baseline."""
    run(tmp_path, root, "one", HEALTHY)
    accepted(tmp_path, root)
    return tmp_path


def accepted(
    out: Path, root: Path, name: str = "one", *, again: bool = False
) -> baseline_file.AcceptResult:
    """This run is the baseline."""
    return baseline_file.accept(out / name, out, NOISE, replace=again, root=root)


def test_the_plan_has_the_baseline_with_the_rules_of_this_version(
    tmp_path: Path, root: Path
) -> None:
    assert run(tmp_path, root, "one", HEALTHY).verdict == "PASS"
    plan, notes = recalled(tmp_path, root, HEALTHY)
    assert (plan.baseline, [note for note in notes if "baseline" in note]) == (None, [])
    facts = accepted(tmp_path, root).baseline.certificate.machine
    plan, _ = recalled(tmp_path, root, HEALTHY)
    book = baseline_changes.read(resources.locate("changes.toml"))
    assert plan.baseline == replace(facts, book=book)
    assert run(tmp_path, root, "two", HEALTHY).verdict == "PASS"


def test_another_card_fails_every_run_until_it_is_accepted(born: Path, root: Path) -> None:
    card = dataclasses.replace(device(1), uuid="GPU-another")
    other = machine(device(0), card)
    for name in ("two", "three", "four"):
        verdict = run(born, root, name, other)
        (finding,) = verdict.of_kind("fail")
        assert (finding.check, finding.event, verdict.changed) == (
            "run",
            "inventory.replaced",
            (),
        )
    assert words.of(finding).startswith("gpu1 is another part: GPU-00000001-")
    for name in (run_folder.JUNIT, run_folder.PAGE):
        told = " ".join((born / "four" / name).read_text(encoding="utf-8").split())
        for text in (
            "gpu1 is another part",
            "it was exchanged in a repair",
            "accept RUN --replace",
        ):
            assert text in told
    assert_raises(
        WordedUserError, accepted, born, root, "four", match=r"is FAIL, .*gpu1 is another part"
    )
    done = accepted(born, root, "four", again=True)
    assert done.baseline.certificate.set_aside[0].startswith("gpu1 is another part")
    assert run(born, root, "five", other).verdict == "PASS"
    before = run(born, root, "six", HEALTHY)
    assert before.verdict == "FAIL"
    # From its journal alone, anywhere.
    done.baseline.path.unlink()
    (born / "six").rename(born / "elsewhere")
    assert journal_run.read(born / "elsewhere").verdict == before


def baseline_path(out: Path) -> Path:
    return known(baseline_file.read(out, "machine-1")).path


def test_a_baseline_that_was_changed_leaves_a_whole_run_unjudged_until_another_is_accepted(
    born: Path, root: Path
) -> None:
    """A shortened run too, and not one of a part, which says it."""
    file = baseline_path(born)
    file.write_text(file.read_text().replace("RTX 4090", "RTX 5090"))
    whole, _ = recalled(born, root, HEALTHY)
    less = (Reduction("burn", 1.0, 12.0, "s"),)
    asked = replace(journals.plan(), scope="partial", shortened=less)
    short, _ = recalled(born, root, HEALTHY, asked)
    part, notes = recalled(born, root, HEALTHY, replace(asked, shortened=()))
    assert (len(whole.gaps), short.gaps, part.gaps) == (1, whole.gaps, ())
    assert any(note.startswith(UNKNOWN) for note in notes)
    verdict = run(born, root, "two", HEALTHY)
    (finding,) = verdict.of_kind("error")
    assert verdict.verdict == "UNJUDGED"
    assert words.of(finding).startswith(f"{UNKNOWN}: {file}: is not what was sealed")
    again = accepted(born, root, "two", again=True)
    assert again.baseline.certificate.set_aside == (words.of(finding),)
    assert run(born, root, "three", HEALTHY).verdict == "PASS"


def test_a_baseline_of_a_day_to_come_stands_where_the_history_has_it(
    born: Path, root: Path
) -> None:
    """Where it has not, a run is unjudged."""
    plan, notes = recalled(born, root, HEALTHY, today=TOMORROW - 30.0)
    assert (plan.gaps, [note for note in notes if "baseline" in note]) == ((), [])
    forget(born, "one")
    plan, _ = recalled(born, root, HEALTHY, today=TOMORROW - 30.0)
    (gap,) = map(words.text, plan.gaps)
    assert gap.startswith(f"{NIGHTLY_UNKNOWN}: the history does not hold the run of the baseline")
    assert "which is yet to come: set the clock right, or accept" in gap


def forget(out: Path, name: str) -> None:
    """The run and the history that held it are gone; the baseline is there."""
    (out / name).rename(out.parent / f"{out.name} {name} elsewhere")
    (night_file.folder(out, "machine-1") / night_file.name(name)).unlink(missing_ok=True)


def test_a_baseline_that_no_history_has_is_placed_by_its_clock_and_that_is_said(
    tmp_path: Path, root: Path
) -> None:
    for name in ("zero", "one"):
        run(tmp_path, root, name, HEALTHY)
    accepted(tmp_path, root)
    forget(tmp_path, "one")
    plan, notes = recalled(tmp_path, root, HEALTHY)
    assert plan.gaps == ()
    (note,) = [note for note in notes if "baseline" in note]
    assert note.endswith(": which nights came after it is known only by their clock")
    forget(tmp_path, "zero")  # there are no nights to tell
    assert not [note for note in recalled(tmp_path, root, HEALTHY)[1] if "baseline" in note]


def test_a_plan_of_before_there_were_baselines_is_read() -> None:
    start = RunStarted("run-1", journals.plan(), {}, "machine-1")
    plain = msgspec.json.decode(msgspec.json.encode(start, enc_hook=parts.encode))
    del plain["plan"]["birth"]
    old = msgspec.json.decode(msgspec.json.encode(plain), type=RunStarted, dec_hook=parts.decode)
    assert fold(journals.entries([old, *journals.bodies(journals.plan())[1:]])).verdict == "PASS"


@pytest.fixture
def kernel(tmp_path: Path, root: Path) -> Callable[[str, str], Verdict]:
    """Runs of this name with this kernel, on a machine that was accepted with 6.12."""

    def night(name: str, version: str) -> Verdict:
        return run(tmp_path, root, name, updated(version))

    night("one", "6.12")
    accepted(tmp_path, root)
    return night


Kernel = Callable[[str, str], Verdict]


# --- what somebody has done to the machine ---


def updated(kernel: str) -> Inventory:
    return dataclasses.replace(HEALTHY, board=dataclasses.replace(HEALTHY.board, kernel=kernel))


def told(verdict: Verdict) -> tuple[list[str | None], list[str]]:
    """The events of what is remarked, and the facts that are only noted."""
    assert verdict.verdict == "PASS"
    return [one.event for one in verdict.of_kind("warn")], [
        told.text for one in verdict.changed if isinstance(told := one.values["fact"], Term)
    ]


NEWS: tuple[list[str | None], list[str]] = (["inventory.software"], [])
KNOWN: tuple[list[str | None], list[str]] = ([], ["kernel"])


def test_another_kernel_is_a_warning_on_the_first_night_and_a_note_from_then_on(
    tmp_path: Path, kernel: Kernel
) -> None:
    assert told(kernel("two", "6.13")) == NEWS
    third, fourth = (kernel(name, "6.13") for name in ("three", "four"))
    assert told(third) == told(fourth) == KNOWN
    day = reader.read(tmp_path / "two").entries[0].utc[:10]
    assert f"6.13 now; reported since {day}; basis: " in words.message(fourth.changed[0])
    # each from its journal alone
    assert journal_run.read(tmp_path / "two").verdict.of_kind("warn")
    assert journal_run.read(tmp_path / "four").verdict == fourth
    pages = [(tmp_path / name / run_folder.PAGE).read_text("utf-8") for name in ("two", "four")]
    assert ["Changed since the baseline" in page for page in pages] == [False, True]
    plain = msgspec.json.decode((tmp_path / "four" / run_folder.VERDICT).read_bytes())
    assert [note for note in plain["notes"] if note.startswith("kernel: ")]
    assert told(kernel("five", "6.14")) == NEWS
    assert told(kernel("six", "6.12")) == ([], [])
    assert told(kernel("seven", "6.14")) == NEWS  # the night before had the old one


def test_a_run_that_was_cut_off_or_of_a_part_has_told_nobody(
    tmp_path: Path, root: Path, kernel: Kernel
) -> None:
    part = replace(journals.plan(), scope="partial")
    for name, asked, end in (("two", part, True), ("three", journals.plan(), False)):
        plan, _ = recalled(tmp_path, root, updated("6.13"), asked)
        bodies = [*journals.bodies(plan)[1:-1], RunEnded(end, "")]
        verdict = close(tmp_path, root, name, updated("6.13"), plan, bodies)
        assert [one.event for one in verdict.of_kind("warn")] == ["inventory.software"]
    assert told(kernel("four", "6.13")) == NEWS


def test_what_was_told_of_another_baseline_is_told_again(
    tmp_path: Path, root: Path, kernel: Kernel
) -> None:
    for name in ("two", "three"):
        kernel(name, "6.13")
    again = accepted(tmp_path, root, "three", again=True)
    assert again.baseline.certificate.machine.known == ()
    assert told(kernel("four", "6.13")) == ([], [])
    accepted(tmp_path, root, "one", again=True)
    assert told(kernel("five", "6.13")) == NEWS


def test_a_reader_of_chinese_reads_what_changed_in_chinese(tmp_path: Path, kernel: Kernel) -> None:
    for name in ("two", "three"):
        kernel(name, "6.13")
        write_views(tmp_path / name, languages.language("zh-CN"))
        page = (tmp_path / name / run_folder.PAGE).read_text(encoding="utf-8")
        assert re.search(r"内核：记录基线时（[-0-9]+）是 6\.12，现在是 6\.13", page)  # noqa: RUF001
        assert "6.12 when" not in page
    assert "<h3>自基线以来的变化</h3>" in page
