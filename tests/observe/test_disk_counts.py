"""What reports of sound disks say once one thing in each is changed: a fault, a warning, or what a
disk that was declared as new must not have.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cases import each
from worded import worded

from acceptance.core.message import Message
from acceptance.observe import disk_counts, smart
from acceptance.observe.smart import Health
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable, WordedError

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/smartctl"
STATISTICS = "sata_samsung_860_evo_device_statistics_7.0.json.txt"
SATA = "sata_seagate_barracuda_229193_load_cycles_7.5.json.txt"
UNNAMED = "sata_oem_ssd_131_aborted_commands_7.5.json.txt"
CRC_LOG = "sata_hgst_7k4000_nine_years_crc_in_error_log_7.3.json.txt"
SAS = "sas_wd_hc530_new_decimal_commas_7.3.json.txt"
NVME = "nvme_wd_sn850_7.5.json.txt"
NVME_LOG = "nvme_sabrent_rocket4_invalid_field_entries_7.4.json.txt"
LOG = "nvme_smart_health_information_log"
MOST_USED = 1

Change = Callable[[dict[str, Any]], None]


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDINGS / name).read_text())
    return found


def parse(report: dict[str, Any]) -> Health:
    return smart.parse(json.dumps(report), report["smartctl"]["exit_status"])


def changed(name: str, change: Change) -> Health:
    report = document(name)
    change(report)
    return parse(report)


def at(*path: str | int, value: Any) -> Change:
    """Sets the value at a path."""

    def change(report: dict[str, Any]) -> None:
        place: Any = report
        for key in path[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
        place[path[-1]] = value

    return change


def several(*changes: Change) -> Change:
    def change(report: dict[str, Any]) -> None:
        for one in changes:
            one(report)

    return change


def attribute(number: int, raw: int | None = None, name: str | None = None, **keys: Any) -> Change:
    """Changes an attribute of the report, or adds one."""

    def change(report: dict[str, Any]) -> None:
        table = report["ata_smart_attributes"]["table"]
        row = next((row for row in table if row["id"] == number), None)
        if row is None:
            row = copy.deepcopy(table[0]) | {"id": number, "name": "Unknown_Attribute"}
            table.append(row)
        if raw is not None:
            row["raw"] = {"value": raw, "string": str(raw)}
        row.update(keys if name is None else {"name": name, **keys})

    return change


def statistic(
    page: int, offset: int, value: Any, name: str = "A statistic", **flags: Any
) -> Change:
    """Changes one of the statistics of an ATA disk, or adds it."""

    def change(report: dict[str, Any]) -> None:
        pages = report["ata_device_statistics"]["pages"]
        if not any(one["number"] == page for one in pages):
            pages.append({"number": page, "name": "A page", "revision": 1, "table": []})
        (table,) = [one["table"] for one in pages if one["number"] == page]
        table[:] = [row for row in table if row["offset"] != offset]
        told = {"valid": True, "normalized": False, "monitored_condition_met": False} | flags
        table.append({"offset": offset, "name": name, "size": 4, "value": value, "flags": told})

    return change


def ata_errors(error: int, count: int = 500) -> Change:
    """An error log whose newest five entries have this error register."""

    def change(report: dict[str, Any]) -> None:
        row = {"error_number": count, "lifetime_hours": 9, "completion_registers": {"error": error}}
        log = {"revision": 1, "count": count, "logged_count": 5, "table": [row] * 5}
        report["ata_smart_error_log"] = {"summary": log}
        report["smartctl"]["exit_status"] |= 64

    return change


def nvme_error(kind: int, code: int) -> Change:
    def change(report: dict[str, Any]) -> None:
        status = {"value": kind << 8 | code, "status_code_type": kind, "status_code": code}
        report["nvme_error_information_log"]["table"] = [{"error_count": 1, "status_field": status}]

    return change


def scan(sense: int, status: int = 1) -> Change:
    """The background scan of a SCSI disk with one result."""
    result = {"lba": 4096, "sense_key": {"value": sense}, "reassign_status": {"value": 1}}
    return at("scsi_background_scan", value={"status": {"value": status}, "result_1": result})


def status_alone(report: dict[str, Any]) -> None:
    for key in [key for key in report if key not in ("smartctl", "smart_status", "device")]:
        del report[key]


@dataclass(frozen=True, slots=True)
class Case:
    """One thing changed in a sound report; the codes that must be said of it, of each kind."""

    what: str
    report: str
    change: Change
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    beyond_new: tuple[str, ...] = ()


COUNT = ("disk_counts",)
CASES = (
    Case("reallocated sectors", SATA, attribute(5, 3000), beyond_new=COUNT),
    Case("of an SSD's statistics", STATISTICS, statistic(3, 32, 3000), beyond_new=COUNT),
    Case("without a name", UNNAMED, attribute(5, 3000, "Unknown_Attribute"), beyond_new=COUNT),
    Case("reported uncorrectable", SATA, attribute(187, 1), beyond_new=COUNT),
    Case("without a name", UNNAMED, attribute(187, 4), beyond_new=COUNT),
    Case("by the statistics", STATISTICS, statistic(4, 8, 1), beyond_new=COUNT),
    Case("pending, without a name", UNNAMED, attribute(197, 8, "Unknown_SSD_Attribute"), COUNT),
    Case("offline, without a name", UNNAMED, attribute(198, 2, "Unknown_Attribute"), COUNT),
    Case("candidates of the statistics", STATISTICS, statistic(3, 56, 8), COUNT),
    Case("of another meaning", UNNAMED, attribute(197, 8, "Not_In_Use")),
    Case("of another meaning", UNNAMED, attribute(198, 90210, "Host_Reads_GiB")),
    Case("end-to-end errors", SATA, attribute(184, 5), beyond_new=COUNT),
    Case("end-to-end, at its threshold", SATA, attribute(184, 5, value=99),
         ("smart_attribute_low",), beyond_new=COUNT),
    Case("below, by the numbers alone", SATA, attribute(5, 0, value=9), ("smart_attribute_low",)),
    Case("below, without a kind", SATA, attribute(5, 0, worst=9, flags={}),
         warnings=("smart_attribute_was_low",)),
    Case("once below, by its word", SATA, attribute(5, 0, when_failed="past"),
         warnings=("smart_attribute_was_low",)),
    # many sound disks were too warm once
    Case("too warm once", SATA, attribute(190, when_failed="past")),
    Case("a threshold of 0 is none", SATA, attribute(193, value=1, worst=1, thresh=0)),
    Case("failed starts", STATISTICS, statistic(3, 48, 2), beyond_new=COUNT),
    Case("minutes too hot", STATISTICS, statistic(5, 80, 90), beyond_new=COUNT),
    Case("what is not valid does not count", STATISTICS, statistic(4, 8, 9, valid=False)),
    Case("a condition that was met", STATISTICS, statistic(1, 16, 9, monitored_condition_met=True),
         warnings=("disk_conditions_met",)),
    Case("unreadable, in the error log", SATA, ata_errors(0x40), beyond_new=COUNT),
    Case("aborted commands and CRC errors in it", SATA, ata_errors(0x84)),
    Case("unreadable, in the extended log", STATISTICS,
         at("ata_smart_error_log", "extended", "table",
            value=[{"completion_registers": {"error": 0x41}}]), beyond_new=COUNT),
    Case("hotter than its own limit", STATISTICS, at("temperature", "current", value=71),
         ("disk_hot",)),
    Case("as hot as its warning", STATISTICS, at("temperature", "current", value=70),
         warnings=("disk_hot",)),
    Case("hotter than specified", STATISTICS,
         several(at("temperature", value={}), statistic(5, 8, 71)), warnings=("disk_hot",)),
    Case("as hot as specified", STATISTICS,
         several(at("temperature", value={}), statistic(5, 8, 70))),
    Case("SATA life used up", STATISTICS, statistic(7, 8, 100, normalized=True),
         warnings=("disk_used_up",)),
    Case("by smartctl 7.5", UNNAMED, at("endurance_used", "current_percent", value=120),
         warnings=("disk_used_up",), beyond_new=("disk_used_new",)),
    Case("two per cent", UNNAMED, at("endurance_used", "current_percent", value=2),
         beyond_new=("disk_used_new",)),
    Case("one per cent", UNNAMED, at("endurance_used", "current_percent", value=1)),
    Case("SATA spare", UNNAMED,
         at("spare_available", value={"current_percent": 4, "threshold_percent": 10}),
         ("disk_spare_low",)),
    Case("grown defects", SAS, at("scsi_grown_defect_list", value=3000), beyond_new=COUNT),
    Case("SAS wear", SAS, at("scsi_percentage_used_endurance_indicator", value=120),
         warnings=("disk_used_up",), beyond_new=("disk_used_new",)),
    Case("uncorrected", SAS,
         at("scsi_error_counter_log", "verify", "total_uncorrected_errors", value=1), COUNT),
    Case("hotter than its trip", SAS, at("temperature", "current", value=86), ("disk_hot",)),
    Case("at its trip", SAS, at("temperature", "current", value=85)),
    Case("a trip of 255 is none", SAS,
         at("temperature", value={"current": 90, "drive_trip": 255})),
    Case("a true temperature elsewhere", SAS,
         several(at("temperature", value={"current": 0, "drive_trip": 0}),
                 at("scsi_environmental_reports", "temperature_1", "current", value=34))),
    Case("unreadable, by a scan", SAS, scan(3), beyond_new=COUNT),
    Case("recovered, by a scan", SAS, scan(1)),
    Case("a scan that stopped", SAS, scan(1, status=4), warnings=("disk_scan_stopped",)),
    Case("NVMe life used up", NVME, at(LOG, "percentage_used", value=100),
         warnings=("disk_used_up",), beyond_new=("disk_used_new",)),
    Case("media errors", NVME, at(LOG, "media_errors", value=7), COUNT),
    Case("minutes of warning", NVME, at(LOG, "warning_temp_time", value=3), beyond_new=COUNT),
    Case("hotter than critical", NVME, at("temperature", "current", value=89), ("disk_hot",)),
    Case("hot", NVME, at("temperature", "current", value=84), warnings=("disk_hot",)),
    Case("no temperature", NVME, at("temperature", "current", value=-273)),
    Case("an unrecovered read in the log", NVME, nvme_error(2, 0x81), beyond_new=COUNT),
    Case("an invalid field in the log", NVME, nvme_error(0, 2)),
    Case("a failed compare in the log", NVME, nvme_error(2, 0x85)),
    Case("nothing but the status", SAS, status_alone, warnings=("disk_status_alone",)),
    Case("an empty table", SATA,
         several(status_alone, at("ata_smart_attributes", value={"table": []})),
         warnings=("disk_status_alone",)),
)  # fmt: skip


def codes(found: tuple[Message, ...]) -> tuple[str, ...]:
    return tuple(one.code for one in found)


def used(base: Health) -> tuple[str, ...]:
    """What a sound disk in use says of its own if it were declared as new."""
    return codes(disk_counts.beyond_new(base, MOST_USED))


@each("case", CASES, told=lambda case: f"{case.report}: {case.what}")
def test_one_thing_in_a_sound_report(case: Case) -> None:
    health = changed(case.report, case.change)
    assert codes(smart.faults(health)) == case.faults
    assert codes(disk_counts.warnings(health)) == case.warnings
    sound = used(parse(document(case.report)))
    found = codes(disk_counts.beyond_new(health, MOST_USED))
    assert tuple(code for code in found if code not in sound) == tuple(
        code for code in case.beyond_new if code not in sound
    )


def test_what_is_counted_is_shown_with_the_age() -> None:
    health = changed(SATA, several(attribute(5, 3000), attribute(188, 12)))
    assert worded(disk_counts.shown(health))[:3] == (
        "3000 reallocated sectors",
        "attribute Command_Timeout counts 12",
        "19073 power-on hours",
    )


def test_what_a_report_does_not_have_is_not_offered() -> None:
    (lack,) = [one for one in disk_counts.shown(parse(document(SAS))) if "not_off" in one.code]
    assert str(worded(lack)).startswith("not offered: used life")
    assert all("not_off" not in one.code for one in disk_counts.shown(parse(document(NVME))))


@each("report, offered", [(SATA, True), (NVME, True), (SAS, True)])
def test_a_report_has_counts_of_a_disks_life(report: str, offered: bool) -> None:
    assert disk_counts.offered(parse(document(report))) is offered
    assert not disk_counts.offered(changed(report, status_alone))


def test_an_empty_log_of_self_tests_has_no_failed_one() -> None:
    assert parse(document(UNNAMED)).failed_self_tests == 0
    log = {"standard": {"revision": 1, "count": 0}}
    assert changed(SATA, at("ata_smart_self_test_log", value=log)).failed_self_tests == 0


def test_losses_of_power_of_a_sata_ssd_are_read() -> None:
    name = "sata_intel_s3520_dell_7.1.json.txt"
    assert parse(document(name)).unsafe_shutdowns == 167


BY_ATTRIBUTES = "Warning: This result is based on an Attribute check."
ROW = document(CRC_LOG)["ata_smart_attributes"]["table"][0]
WITHOUT_THRESHOLD = {key: value for key, value in ROW.items() if key != "thresh"}


def behind_a_controller(
    severity: str, texts: Sequence[str], printed: Sequence[str], rows: list[dict[str, Any]] | None
) -> Health:
    """As smartctl prints it behind a controller that does not pass the disk's answer on."""
    report = document(CRC_LOG)
    report["smartctl"]["messages"] = [
        {"string": "CHECK POWER MODE not implemented, ignoring -n option",
         "severity": "information"},
        *({"string": text, "severity": severity} for text in texts),
    ]  # fmt: skip
    report["smartctl"] |= {"exit_status": 4, "output": ["=== START ===", *printed]}
    return parse(report if rows is None else report | {"ata_smart_attributes": {"table": rows}})


@each("severity", ["warning", "error"])
@each(
    "texts, printed",
    [
        ([BY_ATTRIBUTES], []),
        ([BY_ATTRIBUTES, "Read Device Statistics page 0x00 failed"], []),
        (["Read Device Statistics pages 0x00-0x07 failed"], []),
        ([], ["Read GP Log Directory failed"]),
        ([BY_ATTRIBUTES], ["SMART Status command failed: scsi error"]),
    ],
)
def test_a_status_by_attributes_is_a_whole_report(
    severity: str, texts: list[str], printed: list[str]
) -> None:
    assert behind_a_controller(severity, texts, printed, None).passed


@each("severity", ["warning", "error"])
@each(
    "texts, printed, rows",
    [
        ([BY_ATTRIBUTES], ["Read SMART Error Log failed: scsi error"], None),
        ([], [], None),
        ([BY_ATTRIBUTES, "Read SMART Data failed: scsi error"], [], None),
        ([BY_ATTRIBUTES], [], [WITHOUT_THRESHOLD]),
        ([BY_ATTRIBUTES], [], []),
    ],
)
def test_a_status_by_attributes_that_were_not_read_proves_nothing(
    severity: str, texts: list[str], printed: list[str], rows: list[dict[str, Any]] | None
) -> None:
    with pytest.raises(NotMeasurable):
        behind_a_controller(severity, texts, printed, rows)


# --- what is not as smartctl writes it ---

ABSURD: tuple[Any, ...] = (-1, float("nan"), True, "x", 1.5, 10**40, [], {})
# What is judged, in each report.
JUDGED: dict[str, tuple[tuple[str | int, ...], ...]] = {
    STATISTICS: (
        ("ata_device_statistics", "pages", 1, "table", 0, "value"),
        ("ata_device_statistics", "pages", 1, "table", 0, "offset"),
        ("ata_device_statistics", "pages", 1, "number"),
        ("ata_device_statistics", "pages", 4, "table", 0, "value"),
        ("ata_smart_attributes", "table", 0, "raw", "value"),
        ("ata_smart_attributes", "table", 0, "value"),
        ("ata_smart_attributes", "table", 0, "worst"),
        ("ata_smart_attributes", "table", 0, "thresh"),
        ("ata_smart_self_test_log", "extended", "error_count_total"),
        ("ata_smart_error_log", "extended", "count"),
        ("power_on_time", "hours"),
    ),
    UNNAMED: (
        ("endurance_used", "current_percent"),
        ("spare_available", "current_percent"),
        ("ata_smart_error_log", "summary", "table", 0, "completion_registers", "error"),
    ),
    SAS: (
        ("scsi_grown_defect_list",),
        ("scsi_error_counter_log", "read", "total_uncorrected_errors"),
        ("temperature", "drive_trip"),
        ("power_on_time", "hours"),
    ),
    NVME_LOG: (
        (LOG, "critical_warning"),
        (LOG, "media_errors"),
        (LOG, "percentage_used"),
        (LOG, "available_spare"),
        (LOG, "unsafe_shutdowns"),
        ("nvme_error_information_log", "table", 0, "status_field", "status_code_type"),
    ),
}


@each("report", JUDGED)
def test_an_absurd_value_of_what_is_judged_is_refused(report: str) -> None:
    for path in JUDGED[report]:
        for value in ABSURD:
            with pytest.raises(UnreadableOutput):
                changed(report, at(*path, value=value))


@each("value", [-101, 201, 10**9, True, "warm", 36.6, float("nan")])
def test_a_temperature_that_no_disk_has_is_refused(value: Any) -> None:
    for report in (STATISTICS, SAS, NVME):
        with pytest.raises(UnreadableOutput):
            changed(report, at("temperature", "current", value=value))
    with pytest.raises(UnreadableOutput):
        changed(STATISTICS, statistic(5, 8, value))


@each(
    "report, change",
    [
        (STATISTICS, statistic(4, 8, None)),
        (STATISTICS, statistic(5, 8, None)),
        (STATISTICS, statistic(7, 8, 256)),
        (STATISTICS, statistic(4, 8, 0, valid=1)),
        (STATISTICS, statistic(4, 8, 0, monitored_condition_met="no")),
        (STATISTICS, at("ata_device_statistics", "pages", value={})),
        (SATA, attribute(5, worst=1, flags={"prefailure": 1})),
        (SATA, at("ata_smart_attributes", "table", 3, "raw", "string", value="0x00")),
        (SATA, ata_errors(-1)),
        (SAS, at("scsi_background_scan", value=[])),
        (SAS, scan(-1)),
    ],
)
def test_a_field_of_another_form_is_refused(report: str, change: Change) -> None:
    with pytest.raises(UnreadableOutput):
        changed(report, change)


@each("status", [False, 0.0, "0", None])
def test_an_exit_status_that_is_no_number_is_refused(status: Any) -> None:
    report = document(NVME)
    report["smartctl"]["exit_status"] = status
    with pytest.raises(UnreadableOutput):
        smart.parse(json.dumps(report), 0)


def numbers(place: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every number and truth value."""
    if isinstance(place, dict | list):
        entries = place.items() if isinstance(place, dict) else enumerate(place)
        for key, value in entries:
            yield from numbers(value, (*path, key))
    elif isinstance(place, int | float):
        yield path


def sweep(name: str) -> None:
    """No number of a report, however absurd, ends in a traceback."""
    report = document(name)
    status = report["smartctl"]["exit_status"]
    for *path, last in list(numbers(report)):
        place: Any = report
        for key in path:
            place = place[key]
        sound = place[last]
        for value in (-1, float("nan"), not sound, "x", 10**9, 10**40, None, {}):
            place[last] = value
            try:
                health = smart.parse(json.dumps(report), status)
            except WordedError:
                continue
            told = smart.faults(health), disk_counts.warnings(health), disk_counts.shown(health)
            for one in told:
                worded(one)
        place[last] = sound


@each("name", [SAS, "nvme_micron_7450_7.3.json.txt"])
def test_an_absurd_number_ends_in_a_sentence(name: str) -> None:
    sweep(name)


@pytest.mark.sweep
@each("name", sorted(path.name for path in RECORDINGS.glob("*.txt")))
def test_an_absurd_number_of_any_report_ends_in_a_sentence(name: str) -> None:
    sweep(name)
