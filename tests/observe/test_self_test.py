from __future__ import annotations

import json
from typing import Any

import pytest
from cases import each
from worded import worded

from acceptance.observe import self_test, smart
from acceptance.observe.self_test import SelfTestResult, SelfTests
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable


def parse(status: int = 0, **parts: Any) -> SelfTests:
    document = {"smartctl": {"version": [7, 4], "exit_status": status}, **parts}
    return self_test.parse(json.dumps(document), status)


def nvme_row(code: int = 0, kind: int = 1, hours: int = 800) -> dict[str, Any]:
    return {
        "self_test_code": {"value": kind, "string": "Short"},
        "self_test_result": {"value": code, "string": "Completed"},
        "power_on_hours": hours,
    }


def nvme(*rows: dict[str, Any], running: int = 0, **log: Any) -> SelfTests:
    return parse(
        power_on_time={"hours": 900},
        nvme_self_test_log={
            "current_self_test_operation": {"value": running, "string": "..."},
            "table": list(rows),
            **log,
        },
    )


def ata_row(code: int = 0, kind: int = 1, hours: int = 800) -> dict[str, Any]:
    return {
        "type": {"value": kind, "string": "Short offline"},
        "status": {"value": code << 4, "string": "Completed"},
        "lifetime_hours": hours,
    }


def ata(
    *rows: dict[str, Any], status: int = 0, able: bool = True, form: str = "standard"
) -> SelfTests:
    return parse(
        power_on_time={"hours": 900},
        ata_smart_data={
            "self_test": {"status": {"value": status}, "polling_minutes": {"short": 3}},
            "capabilities": {"self_tests_supported": able},
        },
        ata_smart_self_test_log={form: {"table": list(rows)}},
    )


def test_the_command_line() -> None:
    assert self_test.start_argv("/dev/sda") == ("smartctl", "-j", "-t", "short", "/dev/sda")


def test_the_refusal_of_a_disk() -> None:
    def refusal(status: int, *messages: str) -> str | None:
        told = [{"string": one} for one in messages]
        text = json.dumps({"smartctl": {"exit_status": status, "messages": told}})
        found = self_test.start_refusal(text, status)
        return None if found is None else str(worded(found))

    assert refusal(0) is None
    told = refusal(smart.BIT_COMMAND_FAILED, "Self-test not allowed")
    assert told is not None
    assert "a command to the disk failed" in told
    assert "Self-test not allowed" in told


def test_nvme() -> None:
    found = nvme(nvme_row(), nvme_row(7, kind=2, hours=12))
    assert found == SelfTests(
        supported=True,
        minutes=2,
        percent=None,
        results=(
            SelfTestResult(True, "passed", 0, "Completed", 800),
            SelfTestResult(False, "failed", 7, "Completed", 12),
        ),
        hours=900,
        kept=20,
    )


def test_nvme_running() -> None:
    found = nvme(running=1, current_self_test_completion_percent=30)
    assert (found.percent, found.results) == (30, ())
    with pytest.raises(UnreadableOutput, match="current_self_test_completion_percent"):
        nvme(running=1)


@each("form", ["standard", "extended"])
def test_ata(form: str) -> None:
    found = ata(ata_row(), ata_row(15), ata_row(7, kind=2, hours=12), form=form)
    assert found == SelfTests(
        supported=True,
        minutes=3,
        percent=None,
        results=(
            SelfTestResult(True, "passed", 0, "Completed", 800),
            SelfTestResult(False, "failed", 7, "Completed", 12),
        ),
        hours=900,
        kept=21,
    )


@each("status, percent", [(0xF9, 10), (0xF1, 90), (0xF0, 100), (0x79, None), (0, None)])
def test_ata_running(status: int, percent: int | None) -> None:
    assert ata(status=status).percent == percent


@each(
    "read, row, code, state",
    [
        *((nvme, nvme_row, code, "aborted") for code in (1, 2, 3, 4, 8, 9)),
        *((nvme, nvme_row, code, "failed") for code in (5, 6, 7)),
        (nvme, nvme_row, 0, "passed"),
        *((ata, ata_row, code, "aborted") for code in (1, 2)),
        *((ata, ata_row, code, "failed") for code in range(3, 9)),
        (ata, ata_row, 0, "passed"),
    ],
)
def test_states(read: Any, row: Any, code: int, state: str) -> None:
    (found,) = read(row(code)).results
    assert (found.state, found.code) == (state, code)
    told = (f"the disk's short self-test failed with code {code}: Completed",)
    assert worded(self_test.faults(found)) == (told if state == "failed" else ())


@each("read, row, code", [(nvme, nvme_row, 10), (nvme, nvme_row, 14), (ata, ata_row, 9)])
def test_reserved_results_are_refused(read: Any, row: Any, code: int) -> None:
    with pytest.raises(UnreadableOutput, match=f"the result {code}, which the specification"):
        read(row(code))


@each(
    "row, why",
    [
        *(
            ({key: nvme_row()[key] for key in nvme_row() if key != lost}, "lacks `")
            for lost in nvme_row()
        ),
        ({**nvme_row(), "self_test_result": {"value": 0}}, "not a text"),
    ],
)
def test_a_row_that_is_not_whole_is_refused(row: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        nvme(row)


def test_disks_without_self_tests() -> None:
    none = SelfTests(supported=False)
    assert parse(smart_status={"passed": True}) == none
    assert ata(able=False) == none
    assert parse(ata_smart_data={"self_test": {"status": {"value": 0}}}) == none
    with pytest.raises(NotMeasurable, match="a command to the disk failed"):
        parse(4, smart_status={"passed": True})
    with pytest.raises(NotMeasurable, match="exit code 2"):
        parse(2, smart_status={"passed": True})


NEW, OLD = nvme_row(hours=900), nvme_row(hours=800)
FULL = [nvme_row(hours=900)] * 20
AGELESS = parse(nvme_self_test_log={"current_self_test_operation": {"value": 0}, "table": FULL})


@each(
    "before, after, hours",
    [
        (nvme(OLD), nvme(NEW, OLD), 900),
        (nvme(), nvme(NEW), 900),
        # nothing new, or nothing yet
        (nvme(OLD), nvme(OLD), None),
        (nvme(NEW), nvme(NEW), None),
        (nvme(), nvme(), None),
        (nvme(), nvme(running=1, current_self_test_completion_percent=1), None),
        # of another kind
        (nvme(), nvme(nvme_row(kind=2)), None),
        # a full log of one hour looks as before
        (nvme(*FULL), nvme(*FULL), 900),
        (nvme(*[nvme_row(hours=899)] * 20), nvme(*[nvme_row(hours=899)] * 20), 899),
        (nvme(*[nvme_row(hours=898)] * 20), nvme(*[nvme_row(hours=898)] * 20), None),
        (nvme(*[nvme_row(hours=901)] * 20), nvme(*[nvme_row(hours=901)] * 20), None),
        (ata(ata_row()), ata(ata_row(hours=900), ata_row()), 900),
        (AGELESS, AGELESS, None),
    ],
)
def test_the_result_of_the_test_between_two_reports(
    before: SelfTests, after: SelfTests, hours: int | None
) -> None:
    found = self_test.result(before, after)
    assert (found and found.hours) == hours
