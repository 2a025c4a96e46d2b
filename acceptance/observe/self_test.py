"""The short self-test of a disk (smartctl): its start, its progress and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from acceptance.core.message import Message, english
from acceptance.core.plain_text import quote_value
from acceptance.observe import smart
from acceptance.observe.smart import PROGRAM

State = Literal["passed", "failed", "aborted"]

# The results that each log keeps: NVMe base specification, Device Self-test log page (06h); ACS,
# SMART self-test log.
_NVME_KEPT, _ATA_KEPT = 20, 21
# NVMe base specification, Short Device Self-Test Operation: it takes two minutes at most.
_NVME_MINUTES = 2
# NVMe base specification, Device Self-test Result; ACS, self-test execution status (high nibble).
_NVME_RESULTS: dict[int, State] = {
    0: "passed",
    **dict.fromkeys((1, 2, 3, 4, 8, 9), "aborted"),
    **dict.fromkeys((5, 6, 7), "failed"),
}
_ATA_RESULTS: dict[int, State] = {
    0: "passed",
    **dict.fromkeys((1, 2), "aborted"),
    **dict.fromkeys((3, 4, 5, 6, 7, 8), "failed"),
}
_ATA_RUNNING = 15
# The short self-test, and in ATA the same while the host waits (captive).
_NVME_SHORT, _ATA_SHORT = frozenset({1}), frozenset({1, 129})
# ATA keeps the hours of a result in 16 bits.
_HOURS_WRAP = 1 << 16


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """One line of a disk's self-test log.

    `code` is the disk's own, `text` smartctl's words for it, `hours` the disk's age at the end.
    """

    short: bool
    state: State
    code: int
    text: str
    hours: int


@dataclass(frozen=True, slots=True)
class SelfTests:
    """A disk's self-tests: those that it kept, the newest first, and the one that runs.

    `supported`: whether the disk has them and smartctl can start them. `minutes` is the duration of
    a short one by the disk's own word, `percent` how far the running one is; None: none runs.
    `hours` is the disk's age, `kept` the most results that its log holds.
    """

    supported: bool
    minutes: int | None = None
    percent: int | None = None
    results: tuple[SelfTestResult, ...] = ()
    hours: int | None = None
    kept: int = 0


def start_argv(device: str, program: str = PROGRAM) -> tuple[str, ...]:
    """The command line that starts a disk's short self-test, beside its work; it needs root."""
    return (program, "-j", "-t", "short", device)


def start_refusal(text: str, returncode: int) -> Message | None:
    """Why the disk did not begin its self-test, from the output of `start_argv`; None if it did.

    Raises as `smart.parse` does.
    """
    document = smart.opened(text, returncode)
    if returncode & smart.BIT_COMMAND_FAILED:
        return smart.unread(
            document,
            returncode,
            english(
                "disk_command_failed",
                "a command to the disk failed or its answer had a wrong checksum",
            ),
        ).message
    return None


def parse(text: str, returncode: int) -> SelfTests:
    """Parse the self-tests in the output of `smartctl --json=o -a DEVICE`.

    Raises as `smart.parse` does; the disk's health is not asked.
    """
    document = smart.opened(text, returncode)
    if "nvme_self_test_log" in document:
        return _nvme(document)
    if smart.at(document, "ata_smart_data", "self_test") is not None:
        return _ata(document)
    if returncode & smart.BIT_COMMAND_FAILED:
        raise smart.unread(document, returncode, "disk_command_failed")
    return SelfTests(supported=False)


def _nvme(document: dict[str, Any]) -> SelfTests:
    log = "nvme_self_test_log"
    running = _needed(document, log, "current_self_test_operation", "value")
    results = []
    for row in smart.rows(document, log, "table"):
        kind, code = (
            _needed(row, "self_test_code", "value"),
            _needed(row, "self_test_result", "value"),
        )
        results.append(
            SelfTestResult(
                kind in _NVME_SHORT,
                _state(_NVME_RESULTS, code),
                code,
                _said(row, "self_test_result"),
                _needed(row, "power_on_hours"),
            )
        )
    return SelfTests(
        supported=True,
        minutes=_NVME_MINUTES,
        percent=_needed(document, log, "current_self_test_completion_percent") if running else None,
        results=tuple(results),
        hours=smart.count(document, "power_on_time", "hours"),
        kept=_NVME_KEPT,
    )


def _ata(document: dict[str, Any]) -> SelfTests:
    tests = ("ata_smart_data", "self_test")
    able = smart.at(document, "ata_smart_data", "capabilities", "self_tests_supported")
    minutes = smart.count(document, *tests, "polling_minutes", "short")
    if able is not True or minutes is None:
        return SelfTests(supported=False)
    status = _needed(document, *tests, "status", "value")
    results = []
    for form in ("standard", "extended"):
        for row in smart.rows(document, "ata_smart_self_test_log", form, "table"):
            code = _needed(row, "status", "value")
            if code >> 4 == _ATA_RUNNING:
                continue
            results.append(
                SelfTestResult(
                    _needed(row, "type", "value") in _ATA_SHORT,
                    _state(_ATA_RESULTS, code >> 4),
                    code >> 4,
                    _said(row, "status"),
                    _needed(row, "lifetime_hours"),
                )
            )
    return SelfTests(
        supported=True,
        minutes=minutes,
        # the low nibble is what is left, in tenths
        percent=100 - 10 * (status & 15) if status >> 4 == _ATA_RUNNING else None,
        results=tuple(results),
        hours=smart.count(document, "power_on_time", "hours"),
        kept=_ATA_KEPT,
    )


def _needed(document: dict[str, Any], *path: str) -> int:
    value = smart.count(document, *path)
    if value is None:
        raise smart.unknown(
            Message(
                english(
                    "self_test_torn", "its self-test log lacks `{key}`: the text is incomplete"
                ),
                {"key": ".".join(path)},
            )
        )
    return value


def _said(row: dict[str, Any], key: str) -> str:
    value = smart.at(row, key, "string")
    if not isinstance(value, str):
        raise smart.unknown(
            Message(
                english("smart_no_text", "it gave `{key}` as {value}, which is not a text"),
                {"key": key, "value": quote_value(value)},
            )
        )
    return value


def _state(states: dict[int, State], code: int) -> State:
    if code not in states:
        raise smart.unknown(
            Message(
                english(
                    "self_test_code_unknown",
                    "its self-test log has the result {code}, which the specification reserves",
                ),
                {"code": code},
            )
        )
    return states[code]


def result(before: SelfTests, after: SelfTests) -> SelfTestResult | None:
    """The result of the short self-test that was started between two reports.

    None where the disk shows none: it lost the test, or has not ended it. A log that is full may
    look the same before and after; then the newest result counts if it is of this hour.
    """
    if after.percent is not None or not after.results:
        return None
    newest = after.results[0]
    if after.results == before.results:
        full = len(after.results) >= after.kept and after.hours is not None
        if not full or (after.hours or 0) % _HOURS_WRAP - newest.hours % _HOURS_WRAP not in (0, 1):
            return None
    return newest if newest.short else None


def faults(found: SelfTestResult) -> tuple[Message, ...]:
    """The fault that a result proves; empty for a test that passed or was aborted."""
    if found.state != "failed":
        return ()
    return (
        Message(
            english(
                "self_test_failed", "the disk's short self-test failed with code {code}: {text}"
            ),
            {"code": found.code, "text": found.text},
        ),
    )
