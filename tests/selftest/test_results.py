"""What a self-test leaves: table, page, JUnit, and the record that later runs tell of."""

from __future__ import annotations

import io
from pathlib import Path

import jenkins_schema
import msgspec
import pytest
from junitparser import Failure, JUnitXml
from junitparser.xunit2 import TestCase
from lxml import html
from rich.console import Console

from acceptance.run import selftest_record
from selftest import results
from selftest.__main__ import close
from selftest.row import FalseAlarms, Row, Sensitivity

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
    results.show(outcome(CAUGHT, MISSED), Console(file=stream, width=160))
    told = stream.getvalue()
    assert "dead-nvlink" in told
    assert "MISSED" in told
    assert "came to pass, not fail" in told
    assert "links: 1 of 1, the slowest after 10 s" in told
    assert "clean runs, 8xh200: 0 alarms in 100, 3 with a remark" in told
    assert told.splitlines()[-1].startswith("missed: ")


@pytest.mark.parametrize(("rows", "code"), [((CAUGHT,), 0), ((CAUGHT, MISSED), 1)])
def test_its_record_is_what_later_runs_tell(
    tmp_path: Path, rows: tuple[Row, ...], code: int
) -> None:
    folder = tmp_path / "selftest"
    folder.mkdir()
    assert close(outcome(*rows), folder, tmp_path, "digest") == code
    record = msgspec.json.decode(
        (tmp_path / selftest_record.NAME).read_bytes(), type=selftest_record.SelftestRecord
    )
    assert (record.caught, record.faults, record.package_digest) == (1, len(rows), "digest")
    told = selftest_record.selftest_sentence(tmp_path, "digest", record.machine_id)
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
    assert not (tmp_path / selftest_record.NAME).exists()
