"""The baseline on its way into a run: from the file into the plan, the journal and the verdict;
and what to do after a change.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import journals
import msgspec
import pytest
from gpu_machine import device, machine
from runs import machine_root, write_segment, write_views

from acceptance import resources
from acceptance.baseline import change_rules
from acceptance.core import parts
from acceptance.core.fold import fold
from acceptance.core.message import Term
from acceptance.core.plan import Plan, Reduction
from acceptance.core.record import Entry, RunEnded, RunStarted
from acceptance.core.verdict import Verdict
from acceptance.history import baseline_file, night_file, noise
from acceptance.journal import reader, run_folder
from acceptance.journal import run as journal_run
from acceptance.machine.inventory import Inventory
from acceptance.reports import languages
from acceptance.run.planning import PreparedRun
from acceptance.run.recall import SECONDS_PER_DAY, HistoryRecall
from acceptance.station.host import HostStation
from acceptance.station.options import Options
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

HEALTHY = machine(device(0), device(1))
OTHER = machine(device(0), replace(device(1), uuid="GPU-another"))
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
    prepared = PreparedRun(Options(), None, inventory, plan, "a summary")
    bodies = [
        RunStarted(name, plan, {}, "machine-1"),
        prepared.observed(),
        *journals.bodies(plan)[1:],
    ]
    write_segment(out / name / reader.SUPERVISOR, bodies, root)
    return write_views(out / name).verdict


def accept(out: Path, root: Path, name: str, *, again: bool = False) -> baseline_file.AcceptResult:
    return baseline_file.accept(out / name, out, NOISE, replace=again, root=root)


def accepted(out: Path, root: Path, inventory: Inventory = HEALTHY) -> baseline_file.AcceptResult:
    """A first run, which is the baseline."""
    run(out, root, "one", inventory)
    return accept(out, root, "one")


def test_without_a_baseline_a_plan_has_none(tmp_path: Path, root: Path) -> None:
    plan, notes = recalled(tmp_path, root, HEALTHY)
    assert plan.baseline is None
    assert not [note for note in notes if "baseline" in note]


def test_the_plan_has_the_baseline_with_the_rules_of_this_version(
    tmp_path: Path, root: Path
) -> None:
    assert run(tmp_path, root, "one", HEALTHY).verdict == "PASS"
    born = accept(tmp_path, root, "one").baseline.certificate.machine
    plan, _ = recalled(tmp_path, root, HEALTHY)
    book = change_rules.read(resources.locate("changes.toml"))
    assert plan.baseline == msgspec.structs.replace(born, book=book)
    assert run(tmp_path, root, "two", HEALTHY).verdict == "PASS"


def test_another_card_fails_every_run_until_it_is_accepted(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root)
    for name in ("two", "three"):
        verdict = run(tmp_path, root, name, OTHER)
        (finding,) = verdict.of_kind("fail")
        assert (verdict.verdict, finding.check, finding.event) == (
            "FAIL",
            "run",
            "inventory.replaced",
        )
        assert words.of(finding).startswith(
            "gpu1 is another part: GPU-00000001-0000-4000-8000-000000000000 when"
        )
    with pytest.raises(WordedUserError, match=r"is FAIL, .*gpu1 is another part"):
        accept(tmp_path, root, "three")
    done = accept(tmp_path, root, "three", again=True)
    assert done.baseline.certificate.set_aside[0].startswith("gpu1 is another part")
    assert run(tmp_path, root, "four", OTHER).verdict == "PASS"
    assert run(tmp_path, root, "five", HEALTHY).verdict == "FAIL"


def test_it_can_be_judged_again_anywhere_from_its_journal_alone(tmp_path: Path, root: Path) -> None:
    file = accepted(tmp_path, root).baseline.path
    before = run(tmp_path, root, "two", OTHER)
    file.unlink()
    (tmp_path / "two").rename(tmp_path / "elsewhere")
    assert journal_run.read(tmp_path / "elsewhere").verdict == before


def test_its_causes_are_told_in_the_reports(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root)
    run(tmp_path, root, "two", OTHER)
    for name in (run_folder.JUNIT, run_folder.PAGE):
        told = " ".join((tmp_path / "two" / name).read_text(encoding="utf-8").split())
        assert "gpu1 is another part" in told
        assert "it was exchanged in a repair" in told
        assert "rigproof baseline accept RUN --replace" in told


def test_a_baseline_that_was_changed_leaves_a_whole_run_unjudged_until_another_is_accepted(
    tmp_path: Path, root: Path
) -> None:
    file = accepted(tmp_path, root).baseline.path
    file.write_text(file.read_text().replace("RTX 4090", "RTX 5090"))
    verdict = run(tmp_path, root, "two", HEALTHY)
    (finding,) = verdict.of_kind("error")
    assert verdict.verdict == "UNJUDGED"
    assert words.of(finding).startswith(f"{UNKNOWN}: {file}: is not what was sealed")
    assert accept(tmp_path, root, "two", again=True).baseline.certificate.set_aside == (
        words.of(finding),
    )
    assert run(tmp_path, root, "three", HEALTHY).verdict == "PASS"


def test_a_baseline_of_a_day_to_come_stands_where_the_history_has_it(
    tmp_path: Path, root: Path
) -> None:
    accepted(tmp_path, root)
    plan, notes = recalled(tmp_path, root, HEALTHY, today=TOMORROW - 30.0)
    assert plan.gaps == ()
    assert not [note for note in notes if "baseline" in note]


def forget(out: Path, name: str) -> None:
    """The run and the history that held it are gone; the baseline is there."""
    (out / name).rename(out.parent / f"{name} elsewhere")
    (night_file.folder(out, "machine-1") / night_file.name(name)).unlink(missing_ok=True)


def test_a_baseline_of_a_day_to_come_that_no_history_has_leaves_a_run_unjudged(
    tmp_path: Path, root: Path
) -> None:
    out = tmp_path / "out"
    accepted(out, root)
    forget(out, "one")
    plan, _ = recalled(out, root, HEALTHY, today=TOMORROW - 30.0)
    (gap,) = map(words.text, plan.gaps)
    assert gap.startswith(
        f"{NIGHTLY_UNKNOWN}: the history does not hold the run of the baseline (one), which is of 2"
    )
    assert "which is yet to come: set the clock right, or accept" in gap


def test_a_baseline_that_no_history_has_is_placed_by_its_clock_and_that_is_said(
    tmp_path: Path, root: Path
) -> None:
    out = tmp_path / "out"
    run(out, root, "zero", HEALTHY)
    accepted(out, root)
    forget(out, "one")
    plan, notes = recalled(out, root, HEALTHY)
    assert plan.gaps == ()
    (note,) = [note for note in notes if "baseline" in note]
    assert note.startswith("the history does not hold the run of the baseline (one), which is of 2")
    assert note.endswith(": which nights came after it is known only by their clock")
    forget(out, "zero")
    assert not [
        note for note in recalled(out, root, HEALTHY)[1] if "baseline" in note
    ]  # there are no nights to tell


def test_a_run_of_a_part_says_it_and_is_judged(tmp_path: Path, root: Path) -> None:
    file = accepted(tmp_path, root).baseline.path
    file.write_text("")
    plan, notes = recalled(
        tmp_path, root, HEALTHY, msgspec.structs.replace(journals.plan(), scope="partial")
    )
    assert plan.gaps == ()
    assert any(note.startswith(UNKNOWN) for note in notes)


def test_a_shortened_run_is_judged_as_strictly_as_a_full_one(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root).baseline.path.write_text("")
    less = (Reduction("burn", 1.0, 12.0, "s"),)
    short = msgspec.structs.replace(journals.plan(), scope="partial", shortened=less)
    plan, _ = recalled(tmp_path, root, HEALTHY, short)
    whole, _ = recalled(tmp_path, root, HEALTHY)
    assert plan.gaps == whole.gaps
    assert len(plan.gaps) == 1


def test_a_plan_of_before_there_were_baselines_is_read() -> None:
    start = RunStarted("run-1", journals.plan(), {}, "machine-1")
    plain = msgspec.json.decode(msgspec.json.encode(start, enc_hook=parts.encode))
    del plain["plan"]["birth"]
    old = msgspec.json.decode(msgspec.json.encode(plain), type=RunStarted, dec_hook=parts.decode)
    bodies = [old, *journals.bodies(journals.plan())[1:]]
    entries: list[Entry] = journals.entries(bodies)
    assert fold(entries).verdict == "PASS"


# --- what somebody has done to the machine ---


def updated(kernel: str) -> Inventory:
    return replace(HEALTHY, board=replace(HEALTHY.board, kernel=kernel))


def told(verdict: Verdict) -> tuple[list[str | None], list[str]]:
    """The events of what is remarked, and the facts that are only noted."""
    assert verdict.verdict == "PASS"
    return [one.event for one in verdict.of_kind("warn")], [
        told.text for one in verdict.changed if isinstance(told := one.values["fact"], Term)
    ]


NEWS: tuple[list[str | None], list[str]] = (["inventory.software"], [])
KNOWN: tuple[list[str | None], list[str]] = ([], ["kernel"])


def test_another_kernel_is_a_warning_on_the_first_night_and_a_note_from_then_on(
    tmp_path: Path, root: Path
) -> None:
    accepted(tmp_path, root, updated("6.12"))
    assert told(run(tmp_path, root, "two", updated("6.13"))) == NEWS
    third, fourth = (run(tmp_path, root, name, updated("6.13")) for name in ("three", "four"))
    assert told(third) == told(fourth) == KNOWN
    day = reader.read(tmp_path / "two").entries[0].utc[:10]
    assert f"6.13 now; reported since {day}; basis: " in words.message(fourth.changed[0])
    assert journal_run.read(tmp_path / "two").verdict.of_kind("warn")  # each from its journal alone
    assert journal_run.read(tmp_path / "four").verdict == fourth
    assert told(run(tmp_path, root, "five", updated("6.14"))) == NEWS
    assert told(run(tmp_path, root, "six", updated("6.12"))) == ([], [])
    assert (
        told(run(tmp_path, root, "seven", updated("6.14"))) == NEWS
    )  # the night before had the old one


def test_what_is_only_noted_stands_in_the_reports(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root, updated("6.12"))
    for name in ("two", "three"):
        run(tmp_path, root, name, updated("6.13"))
    page = " ".join((tmp_path / "three" / run_folder.PAGE).read_text(encoding="utf-8").split())
    assert (
        "<h3>Changed since the baseline</h3> <ul> <li>kernel: 6.12 when the baseline was recorded"
        in page
    )
    plain = msgspec.json.decode((tmp_path / "three" / run_folder.VERDICT).read_bytes())
    assert [note for note in plain["notes"] if note.startswith("kernel: ")]
    assert "Changed since the baseline" not in (tmp_path / "two" / run_folder.PAGE).read_text(
        encoding="utf-8"
    )


def test_a_run_that_was_cut_off_or_of_a_part_has_told_nobody(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root, updated("6.12"))
    part = msgspec.structs.replace(journals.plan(), scope="partial")
    for name, asked, end in (("two", part, True), ("three", journals.plan(), False)):
        plan, _ = recalled(tmp_path, root, updated("6.13"), asked)
        prepared = PreparedRun(Options(), None, updated("6.13"), plan, "a summary")
        bodies = [
            RunStarted(name, plan, {}, "machine-1"),
            prepared.observed(),
            *journals.bodies(plan)[1:-1],
        ]
        write_segment(tmp_path / name / reader.SUPERVISOR, [*bodies, RunEnded(end, "")], root)
        assert [one.event for one in write_views(tmp_path / name).verdict.of_kind("warn")] == [
            "inventory.software"
        ]
    assert told(run(tmp_path, root, "four", updated("6.13"))) == NEWS


def test_what_was_told_of_another_baseline_is_told_again(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root, updated("6.12"))
    for name in ("two", "three"):
        run(tmp_path, root, name, updated("6.13"))
    assert accept(tmp_path, root, "three", again=True).baseline.certificate.machine.known == ()
    assert told(run(tmp_path, root, "four", updated("6.13"))) == ([], [])
    accept(tmp_path, root, "one", again=True)
    assert told(run(tmp_path, root, "five", updated("6.13"))) == NEWS


def test_another_card_is_never_only_noted_whatever_the_plan_says(
    tmp_path: Path, root: Path
) -> None:
    accepted(tmp_path, root)
    for name in ("two", "three", "four"):
        verdict = run(tmp_path, root, name, OTHER)
        assert ([one.event for one in verdict.of_kind("fail")], verdict.changed) == (
            ["inventory.replaced"],
            (),
        )


def test_a_reader_of_chinese_reads_what_changed_in_chinese(tmp_path: Path, root: Path) -> None:
    accepted(tmp_path, root, updated("6.12"))
    chinese = languages.language("zh-CN")
    for name in ("two", "three"):
        run(tmp_path, root, name, updated("6.13"))
        write_views(tmp_path / name, chinese)
        page = (tmp_path / name / run_folder.PAGE).read_text(encoding="utf-8")
        assert re.search(r"内核：记录基线时（[-0-9]+）是 6\.12，现在是 6\.13", page)  # noqa: RUF001
        assert "6.12 when" not in page
    assert "<h3>自基线以来的变化</h3>" in page
