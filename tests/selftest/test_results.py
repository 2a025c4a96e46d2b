"""What a self-test leaves: table, page, JUnit, and the record that later runs tell of."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import jenkins_schema
import msgspec
import pytest
from junitparser import Failure, JUnitXml
from junitparser.xunit2 import TestCase
from lxml import html
from rich.console import Console

from acceptance.run import header
from acceptance.wording import words
from selftest import clean, results
from selftest.__main__ import close
from selftest.catalogue import Theatre
from selftest.fault import Fault, Named
from selftest.row import FalseAlarms, Row, Sensitivity
from selftest.stage import EndedBefore, StageError

CAUGHT = Row(
    "links",
    "dead-nvlink",
    "NVML",
    True,
    "link.nvlinks",
    "measured 17",
    9.5,
    "run-1",
    "0123456789ab",
    "one/run-1/journal.jsonl",
)
MISSED = Row(
    "slow", "gpu", "load", False, "compute.gemm", wrong="compute.gemm came to pass, not fail"
)
CLEAN = FalseAlarms("8xh200", 100, 0, remarked=3)
HOSTILE = "\x1b[31m]]><script>alert(1)</script>\u202e\x00 [bold]x"
FAULT = Fault("nothing", (), 0)


def outcome(
    *rows: Row, alarms: tuple[FalseAlarms, ...] = (CLEAN,), troubles: tuple[str, ...] = ()
) -> results.Outcome:
    small = (
        Sensitivity("a GPU slow beside its equal", "10 %", "9 %", "gemm_bf16_ratio, limit 0.9"),
    )
    return results.Outcome(
        "2026-11-22T02:00:00Z", "abc123", "short", 300.0, rows, alarms, small, troubles
    )


def test_all_caught_is_good_and_everything_else_is_not() -> None:
    assert outcome(CAUGHT).good
    assert outcome(CAUGHT).closing_line() == (
        "CAUGHT ALL: 1 of 1 faults caught, 0 false alarms in 100 clean runs, in 5.0 minutes"
    )
    for bad in (
        outcome(CAUGHT, MISSED),
        outcome(),
        outcome(CAUGHT, alarms=(FalseAlarms("8xh200", 100, 1, "slow"),)),
        outcome(CAUGHT, troubles=("something was not tried",)),
    ):
        assert not bad.good
        assert bad.closing_line().startswith("NOT PROVED: ")


def test_a_row_that_contradicts_itself_cannot_be_made() -> None:
    for caught, wrong in ((True, "no"), (False, "")):
        with pytest.raises(ValueError, match="says why"):
            Row("links", "x", "NVML", caught, wrong=wrong)
    with pytest.raises(ValueError, match="there is no family"):
        Row("gremlins", "x", "NVML", True)


def test_the_junit_fails_by_what_was_missed_and_names_the_runs() -> None:
    bad = FalseAlarms("4090", 10, 2, "fail: gemm_f16")
    data = results.junit(
        outcome(CAUGHT, MISSED, alarms=(CLEAN, bad), troubles=("a part was not tried",))
    )
    assert jenkins_schema.faults(data) == []
    cases = {
        case.name: TestCase.fromelem(case._elem)
        for suite in JUnitXml.fromstring(data)
        for case in suite
    }
    failed = {
        name for name, case in cases.items() if any(isinstance(one, Failure) for one in case.result)
    }
    assert failed == {"slow: gpu", "clean runs: 4090", "the self-test itself 1"}
    assert {one.name: one.value for one in cases["links: dead-nvlink"].properties()} == {
        "seam": "NVML",
        "by": "link.nvlinks",
        "run_id": "run-1",
        "container": "0123456789ab",
        "journal": "one/run-1/journal.jsonl",
    }


def test_the_page_holds_every_row_and_is_inert() -> None:
    spoilt = Row("slow", f"gpu {HOSTILE}", "load", True, "x", f"said {HOSTILE}")
    text = results.page(outcome(CAUGHT, MISSED, spoilt))
    page = html.document_fromstring(text)
    assert not page.xpath("//script")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(page.xpath("//tr[@class='missed']")) == 2  # of its family, and its own
    assert page.xpath("//a/@href") == ["one/run-1/journal.jsonl"]
    assert "in container 0123456789ab" in page.text_content()
    assert all(head.get("scope") for head in page.xpath("//th"))


def test_the_table_in_the_terminal_says_what_was_missed() -> None:
    stream = io.StringIO()
    results.show(outcome(CAUGHT, MISSED), Console(file=stream))
    assert stream.getvalue().splitlines() == [
        "slow: 0 of 1 caught, the slowest after 0 s",
        "  gpu                                     0.0 s  MISSED",
        "      compute.gemm came to pass, not fail",
        "links: 1 of 1 caught, the slowest after 10 s",
        "  dead-nvlink                             9.5 s  link.nvlinks",
        "      measured 17",
        "a GPU slow beside its equal: smallest caught 10 %; largest missed 9 %",
        "      gemm_bf16_ratio, limit 0.9",
        "clean runs, 8xh200: 0 alarms in 100, 3 with a warning",
        "missed: slow: gpu: compute.gemm came to pass, not fail",
    ]


def test_a_redirected_table_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = replace(CAUGHT, fault="f" * 34, by="memory.stressapptest", message="so many words " * 40)
    stream = io.StringIO()
    results.show(outcome(long, replace(MISSED, wrong=HOSTILE * 9)), Console(file=stream))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert f"  {long.fault}      9.5 s  memory.stressapptest" in lines
    assert "\x1b" not in stream.getvalue()


def test_what_is_done_is_told_as_it_goes_with_how_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    theatre = Theatre(tmp_path, tmp_path, (), None)
    rows = {"one": CAUGHT, "two": MISSED}
    monkeypatch.setattr(Theatre, "_tried", lambda _, named: ((rows[named.name],), ""))
    faults = [Named("slow", name, FAULT) for name in rows]
    assert set(theatre.play_all(faults, 1, said.append)) == {CAUGHT, MISSED}
    monkeypatch.setattr(clean, "parts", lambda: ())
    monkeypatch.setattr(clean, "_play", lambda _, named, __: (named.name, ""))
    assert clean.play(theatre, 2, 2, said.append).alarms == 0
    assert [line.partition(": ")[0] for line in said] == [
        "1 of 2",
        "2 of 2",
        "clean run 1 of 2",
        "clean run 2 of 2",
    ]


class Early:
    """A stage whose first run ended too early, or all of them, or that cannot be set at all."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.played = 0

    def __call__(self, name: str) -> tuple[Row, ...]:
        self.played += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return (replace(CAUGHT, fault=name),)


@pytest.mark.parametrize(
    ("stage", "caught", "played"),
    [
        (Early(EndedBefore("early")), True, 2),
        (Early(EndedBefore("early"), EndedBefore("early")), False, 2),
        (Early(StageError("no /dev/kmsg")), False, 1),
        (Early(EndedBefore("early"), ValueError("other")), False, 2),
    ],
)
def test_only_a_run_that_ended_before_its_fault_is_made_once_more(
    stage: Early, caught: bool, played: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Theatre, "_played", lambda _, named: (stage(named.name), ""))
    theatre, named = Theatre(tmp_path, tmp_path, (), None), Named("slow", "one", FAULT)
    (row,) = theatre.play_all([named], 1, lambda _: None)
    assert (row.caught, stage.played) == (caught, played)


@pytest.mark.parametrize("second", [CAUGHT, MISSED])
def test_a_starved_run_is_played_again_once_after_all_others(
    second: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it shows then counts."""
    told = {"one": [((MISSED,), "cpu ran for 0.6 of 1 s"), ((second,), "again")]}
    told |= {"two": [((CAUGHT,), "")], "three": [((MISSED,), "")]}
    played: list[str] = []

    def tried(_: Theatre, named: Named) -> tuple[tuple[Row, ...], str]:
        played.append(named.name)
        rows, starved = told[named.name].pop(0)
        return tuple(replace(row, fault=named.name) for row in rows), starved

    monkeypatch.setattr(Theatre, "_tried", tried)
    said: list[str] = []
    faults = [Named("slow", name, FAULT) for name in told]
    rows = list(Theatre(tmp_path, tmp_path, (), None).play_all(faults, 1, said.append))
    assert (played[0], played[-1], len(played)) == ("one", "one", 4)
    assert {row.fault: row.caught for row in rows} == {
        "one": second.caught,
        "two": True,
        "three": False,
    }
    assert len(rows) == 3
    assert [line for line in said if "0.6 of 1 s" in line]


@pytest.mark.parametrize(("rows", "code"), [((CAUGHT,), 0), ((CAUGHT, MISSED), 1)])
def test_its_record_is_what_later_runs_tell(
    tmp_path: Path, rows: tuple[Row, ...], code: int
) -> None:
    folder = tmp_path / "selftest"
    folder.mkdir()
    assert close(outcome(*rows), folder, tmp_path, "digest") == code
    record = msgspec.json.decode((tmp_path / header.NAME).read_bytes(), type=header.SelftestRecord)
    assert (record.caught, record.faults, record.package_digest) == (1, len(rows), "digest")
    told = words.message(header.last_selftest(tmp_path, "digest", record.machine_id))
    assert f"1 of {len(rows)} faults caught" in told
    assert {path.name for path in folder.iterdir()} == {
        "selftest.html",
        "selftest.xml",
        "selftest.md",
        "selftest.json",
        "rows.json",
    }


def test_a_part_leaves_no_record(tmp_path: Path) -> None:
    (tmp_path / "selftest").mkdir()
    part = results.Outcome("2026-11-22T02:00:00Z", "abc123", "only links", 3.0, (CAUGHT,))
    assert close(part, tmp_path / "selftest", tmp_path, "digest") == 0
    assert not (tmp_path / header.NAME).exists()
