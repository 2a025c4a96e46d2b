from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import each
from worded import worded

from acceptance.observe import smart
from acceptance.observe.smart import Health
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/smartctl"
NOTHING = Health(
    passed=None,
    critical_warning=None,
    media_errors=None,
    percentage_used=None,
    available_spare=None,
    spare_threshold=None,
    temperature_c=None,
    power_on_hours=None,
    reallocated_sectors=None,
    pending_sectors=None,
    offline_uncorrectable=None,
    reported_uncorrectable=None,
    uncorrected_errors=None,
    grown_defects=None,
    failed_self_tests=None,
    failing_attributes=(),
    serial=None,
    error_log_entries=None,
    unsafe_shutdowns=None,
    power_cycles=None,
    data_units_written=None,
    warning_minutes=None,
    critical_minutes=None,
    light_throttles=None,
    heavy_throttles=None,
    light_throttle_s=None,
    heavy_throttle_s=None,
    crc_errors=None,
    warning_c=None,
    critical_c=None,
)
NVME = {
    "critical_warning": 0,
    "temperature": 35,
    "available_spare": 100,
    "available_spare_threshold": 10,
    "percentage_used": 3,
    "power_on_hours": 12,
    "media_errors": 0,
}


def parse(status: int = 0, **parts: Any) -> Health:
    document = {"smartctl": {"version": [7, 4], "exit_status": status}, **parts}
    return smart.parse(json.dumps(document), status)


def nvme(status: int = 0, passed: bool = True, **changes: Any) -> Health:
    return parse(
        status,
        smart_status={"passed": passed},
        nvme_smart_health_information_log={**NVME, **changes},
        temperature={"current": 35},
    )


def attribute(number: int, name: str, raw: str, when_failed: str = "") -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "when_failed": when_failed,
        "raw": {"value": 1 << 40, "string": raw},
    }


def ata(*attributes: dict[str, Any], status: int = 0, **parts: Any) -> Health:
    return parse(
        status,
        smart_status={"passed": True},
        ata_smart_attributes={"table": list(attributes)},
        **parts,
    )


def test_the_command_line() -> None:
    assert smart.argv("/dev/nvme0n1") == (
        *("smartctl", "--json=o", "-a", "-l", "devstat", "-l", "background"),
        "/dev/nvme0n1",
    )


def test_a_healthy_nvme() -> None:
    health = nvme()
    assert (health.passed, health.critical_warning, health.media_errors) == (True, 0, 0)
    assert (health.percentage_used, health.available_spare, health.spare_threshold) == (3, 100, 10)
    assert (health.temperature_c, health.power_on_hours) == (35, 12)
    assert smart.faults(health) == ()


def test_what_a_disk_does_not_offer_is_absent() -> None:
    assert parse(smart_status={"passed": True}) == replace(NOTHING, passed=True, status_alone=True)
    assert smart.faults(NOTHING) == ()


@each("bit", range(8))
def test_every_critical_warning_bit_alone(bit: int) -> None:
    assert worded(smart.faults(nvme(critical_warning=1 << bit))) == (
        f"critical warning: {worded(smart.CRITICAL_WARNINGS[bit])}",
    )


def test_sata_counts_come_from_the_rendering_not_the_packed_number() -> None:
    health = ata(
        attribute(5, "Reallocated_Sector_Ct", "3 (0 12)"),
        attribute(187, "Reported_Uncorrect", "1"),
        attribute(197, "Current_Pending_Sector", "8"),
        attribute(198, "Offline_Uncorrectable", "2"),
        power_on_time={"hours": 65592},
        temperature={"current": 25},
    )
    assert (health.reallocated_sectors, health.power_on_hours, health.temperature_c) == (
        3,
        65592,
        25,
    )
    assert worded(smart.faults(health)) == (
        "8 sectors waiting to be reallocated",
        "2 sectors found unreadable by offline scans",
    )
    assert health.reported_uncorrectable == 1


def test_an_attribute_of_another_meaning_is_not_taken() -> None:
    health = ata(attribute(197, "Later_Bad_Block", "9"), attribute(5, "Vendor", "9"))
    assert (health.pending_sectors, health.reallocated_sectors) == (None, 9)


def test_the_first_count_that_no_counter_holds_is_refused() -> None:
    assert nvme(media_errors=(1 << 128) - 1).media_errors == (1 << 128) - 1
    with pytest.raises(UnreadableOutput, match="beyond 128 bits"):
        nvme(media_errors=1 << 128)


@pytest.mark.parametrize(("current", "trip"), [(0, 60), (25, 0)])
def test_a_temperature_is_unknown_only_where_its_trip_point_is_0_too(
    current: int, trip: int
) -> None:
    assert parse(
        smart_status={"passed": True}, temperature={"current": current, "drive_trip": trip}
    ).temperature_c == (current)


def test_sas() -> None:
    counters = {
        kind: {"total_uncorrected_errors": count}
        for kind, count in (("read", 1), ("write", 0), ("verify", 4))
    }
    health = parse(
        smart_status={"passed": True},
        scsi_error_counter_log=counters,
        scsi_grown_defect_list=2,
        scsi_percentage_used_endurance_indicator=5,
        temperature={"current": 0, "drive_trip": 0},
    )
    assert (health.uncorrected_errors, health.grown_defects, health.percentage_used) == (5, 2, 5)
    assert health.temperature_c is None
    assert worded(smart.faults(health)) == ("5 uncorrected read, write or verify errors",)


def sas_self_test(result: str, value: int | None = None, code: str = "Background short") -> Any:
    told: dict[str, Any] = {"string": result} | ({} if value is None else {"value": value})
    return {"code": {"string": code}, "result": told, "power_on_time": {"hours": 9}}


def test_self_tests_of_a_sas_disk() -> None:
    def told(*tests: Any) -> tuple[str, ...]:
        logs = {f"scsi_self_test_{place}": test for place, test in enumerate(tests)}
        health = parse(128, smart_status={"passed": True}, scsi_grown_defect_list=0, **logs)
        return tuple(map(str, worded(smart.faults(health))))

    failed = sas_self_test("Failed in segment -->", 7)
    aborted = sas_self_test("Aborted (device reset ?)", 2)
    assert told(aborted, sas_self_test("Self test in progress ...", 15)) == ()
    assert told(sas_self_test("Completed"), failed) == ("1 failed self-tests",)
    # smartctl 7.3 has no values
    assert told(sas_self_test("Completed, segment failed"), failed) == ("2 failed self-tests",)
    assert told(*[failed] * 20) == ("20 failed self-tests",)
    # outdated
    assert told(sas_self_test("Completed", 0, "Background long"), failed) == ()
    with pytest.raises(UnreadableOutput):
        told({"result": {"value": 0}})
    with pytest.raises(UnreadableOutput, match=r"`scsi_self_test_1` as .*Reserved"):
        told(sas_self_test("Completed"), sas_self_test("Reserved(8)", 8))


@each("status", [16, 128, 16 | 64])
def test_a_fault_of_the_exit_status_that_the_json_does_not_show(status: int) -> None:
    with pytest.raises(UnreadableOutput, match=rf"exit status {status} tells of an"):
        ata(attribute(5, "Reallocated_Sector_Ct", "0"), status=status)
    assert smart.faults(ata(attribute(5, "Reallocated_Sector_Ct", "0", "now"), status=status))


def test_a_failed_command_proves_no_health_but_hides_no_fault() -> None:
    with pytest.raises(
        NotMeasurable,
        match=r"a command to the disk failed or its answer had a wrong checksum",
    ):
        ata(status=4)
    with pytest.raises(NotMeasurable, match="a command to the disk failed"):
        nvme(status=4)
    assert worded(smart.faults(nvme(status=4, media_errors=7))) == ("7 media errors",)
    assert worded(smart.faults(nvme(status=4 | 8))) == ("the disk's own SMART status is FAILED",)


SELF_TEST_LOG = "Read Self-test Log failed: Invalid Field in Command (0x2002)"
ERROR_LOG = "Read 1 entries from Error Information Log failed: GetLogPage failed: system=0x38"


def failed_command(*messages: str, **parts: Any) -> Health:
    told = [{"string": text, "severity": "error"} for text in messages]
    document = {
        "smartctl": {"version": [7, 4], "exit_status": 4, "messages": told},
        "smart_status": {"passed": True},
        "nvme_smart_health_information_log": NVME,
        **parts,
    }
    return smart.parse(json.dumps(document), 4)


def test_another_failed_command_proves_no_health() -> None:
    log = "nvme_smart_health_information_log"
    for messages in (
        (),
        (SELF_TEST_LOG, "Read NVMe SMART/Health Information (NSID 0x1) failed: x"),
        ("Read NVMe Identify Controller failed: x",),
    ):
        with pytest.raises(NotMeasurable, match="a command to the disk failed"):
            failed_command(*messages)
    with pytest.raises(UnreadableOutput):
        failed_command(SELF_TEST_LOG, **{log: {"critical_warning": 0}})


def test_without_overall_status_only_the_critical_warning_proves_health() -> None:
    pending = attribute(197, "Current_Pending_Sector", "0")
    for parts in (
        {"ata_smart_attributes": {"table": [pending]}},
        {"smart_status": {}},
        {"scsi_grown_defect_list": 0},
        {"nvme_smart_health_information_log": {"media_errors": 0}},
    ):
        with pytest.raises(NotMeasurable, match=r"it tells no overall SMART status\): "):
            parse(**parts)
    health = parse(nvme_smart_health_information_log=NVME)
    assert (health.passed, smart.faults(health)) == (None, ())
    failing = parse(ata_smart_attributes={"table": [{**pending, "raw": {"string": "8"}}]})
    assert worded(smart.faults(failing)) == ("8 sectors waiting to be reallocated",)


def refused(status: int, *messages: str, **parts: Any) -> str:
    document = {
        "smartctl": {"exit_status": status, "messages": [{"string": text} for text in messages]},
        **parts,
    }
    with pytest.raises(NotMeasurable) as caught:
        smart.parse(json.dumps(document), status)
    return str(caught.value)


def lack(status: int, *messages: str, text: tuple[str, ...] = (), **parts: Any) -> NotMeasurable:
    told = [{"string": one, "severity": "error"} for one in messages]
    document = {
        "smartctl": {"exit_status": status, "messages": told, "output": list(text)},
        **parts,
    }
    with pytest.raises(NotMeasurable) as caught:
        smart.parse(json.dumps(document), status)
    return caught.value


OPEN = "Smartctl open device: /dev/sda failed: "
BRIDGE = "Read Device Identity failed: scsi error unsupported field in scsi command"
MANDATORY = (
    "A mandatory SMART command failed: exiting. To continue, add one or more '-T permissive'"
)
NVME_LOG = "Read NVMe SMART/Health Information failed"
LACKS = "SMART support is:     Unavailable - device lacks SMART capability."
UNAVAILABLE = {"smart_support": {"available": False}}
# What smartctl says: its own sources (os_linux.cpp, dev_interface.cpp, scsiata.cpp, ataprint.cpp,
# scsiprint.cpp, nvmeprint.cpp), and reports in public issues.
WHY = [
    # it cannot have one
    (1, ("/dev/vda: Unable to detect device type",), {}, "not_offered", "health_unread"),
    (1, (f"{OPEN}Unknown USB bridge [0x152d:0x0578 (0x100)]",), {}, "not_offered", None),
    (1, (f"{OPEN}Unsupported USB bridge [0x0bda:0x9201]",), {}, "not_offered", None),
    (2, (BRIDGE, MANDATORY), {}, "not_offered", "health_unread"),
    (4, (), UNAVAILABLE, "not_offered", "health_unread"),
    (4, (MANDATORY,), UNAVAILABLE, "not_offered", "health_unread"),
    (0, (), {"text": (LACKS,)}, "not_offered", "health_unread"),
    (0, (), {"text": ("Device does not support SMART",)}, "not_offered", "health_unread"),
    (
        4,
        ("Read NVMe SMART/Health Information failed: NVMe Status 0x4002",),
        {},
        "not_offered",
        None,
    ),
    (
        4,
        ("Read NVMe SMART/Health Information (NSID 0x1) failed: Invalid Log Page (0x2109)",),
        {},
        "not_offered",
        "health_unread",
    ),
    (
        2,
        (f"{OPEN}DELL or MegaRaid controller, please try adding '-d megaraid,N'",),
        {},
        "not_offered",
        "health_of_volume",
    ),
    (
        2,
        (
            f"{OPEN}AMCC/3ware controller, please try adding '-d 3ware,N',\nyou may need to "
            "replace /dev/sda with /dev/twlN, /dev/twaN or /dev/tweN",
        ),
        {},
        "not_offered",
        "health_of_volume",
    ),
    (
        2,
        (f"{OPEN}SATA device detected,\nMegaRAID SAT layer is reportedly buggy, use '-d sat'",),
        {},
        "not_offered",
        "health_of_volume",
    ),
    (4, (), {"scsi_product": "MR9361-16i", **UNAVAILABLE}, "not_offered", "health_of_volume"),
    (4, (), {"product": "PERC H310", "text": (LACKS,)}, "not_offered", "health_of_volume"),
    (0, (), {"scsi_product": "LOGICAL VOLUME"}, "not_offered", "health_of_volume"),
    # it may not be read
    (2, (f"{OPEN}Permission denied",), {}, "not_permitted", "health_unread_without_root"),
    (2, (f"{OPEN}Operation not permitted",), {}, "not_permitted", "health_unread_without_root"),
    (
        4,
        (),
        {"smart_support": {"available": True, "enabled": False}},
        "not_permitted",
        "health_switched_off",
    ),
    (
        0,
        (),
        {"text": ("SMART Disabled. Use option -s with argument 'on' to enable it.",)},
        "not_permitted",
        "health_switched_off",
    ),
    # it failed to answer
    (2, (f"{OPEN}No such device",), {}, "no_answer", "disk_gone"),
    (2, (f"{OPEN}No such file or directory",), {}, "no_answer", "disk_gone"),
    (2, (f"{OPEN}Input/output error",), {}, "no_answer", "health_no_answer"),
    (2, (f"{OPEN}INQUIRY failed",), {}, "no_answer", "health_no_answer"),
    (2, (f"{OPEN}Device or resource busy",), {}, "no_answer", "health_no_answer"),
    (2, ("Standard Inquiry (36 bytes) failed [Input/output error]",), {}, "no_answer", None),
    (2, ("Read Device Identity failed: Input/output error",), UNAVAILABLE, "no_answer", None),
    (2, ("Read Device Identity failed: Connection timed out", MANDATORY), {}, "no_answer", None),
    (4, ("Read NVMe Identify Controller failed: Input/output error",), {}, "no_answer", None),
    (4, (f"{NVME_LOG}: NVMe Status 0x2006",), {}, "no_answer", None),
    (4, (MANDATORY,), {}, "no_answer", "health_no_answer"),
    (4, (), {}, "no_answer", "health_no_answer"),
    (0, (), {}, "no_answer", "health_no_answer"),
    (2, (f"{OPEN}Something that nobody knows yet",), {}, "no_answer", "health_no_answer"),
    # a known lack beside an unknown message does not hide it
    (
        1,
        ("/dev/sda: Unable to detect device type", "Read something failed: Input/output error"),
        {},
        "no_answer",
        "health_no_answer",
    ),
]


@each("status, messages, parts, why, code", WHY)
def test_why_a_disk_has_no_report(
    status: int, messages: tuple[str, ...], parts: dict[str, Any], why: str, code: str | None
) -> None:
    found = lack(status, *messages, **parts)
    assert found.why == why
    assert code in (None, found.message.code)


@each(
    "messages, parts, option",
    [
        (
            (f"{OPEN}DELL or MegaRaid controller, please try adding '-d megaraid,N'",),
            {},
            "megaraid",
        ),
        ((f"{OPEN}AMCC/3ware controller, please try adding '-d 3ware,N',\nyou",), {}, "3ware"),
        ((), {"scsi_product": "LOGICAL VOLUME"}, "cciss"),
    ],
)
def test_a_volume_names_the_option_for_its_members(
    messages: tuple[str, ...], parts: dict[str, Any], option: str
) -> None:
    assert lack(2, *messages, **parts).message.values["option"] == f"-d {option},N"


def test_support_that_is_no_table_is_refused() -> None:
    with pytest.raises(UnreadableOutput, match="smart_support"):
        lack(2, smart_support=1)


def test_a_disk_that_cannot_be_asked() -> None:
    assert "run rigproof with sudo" in refused(
        2, "Smartctl open device: /dev/sda failed: Permission denied"
    )
    assert "Unable to detect device type" in refused(1, "/dev/vda: Unable to detect device type")
    # Bits 0 and 1 win over whatever else the document holds.
    assert "exit code 2" in refused(2, smart_status={"passed": True})
    assert "no SMART data" in refused(0, device={"name": "/dev/sda"})


@pytest.mark.parametrize("lost", ["No such device", "No such file or directory"])
def test_a_disk_whose_node_is_gone_has_vanished(lost: str) -> None:
    messages = [{"string": f"Smartctl open device: /dev/nvme0n1 failed: {lost}"}]
    text = json.dumps({"smartctl": {"exit_status": 2, "messages": messages}})
    with pytest.raises(smart.DiskVanished):
        smart.parse(text, 2)


def test_a_program_that_was_killed_says_nothing_of_the_disk() -> None:
    with pytest.raises(
        smart.SmartInterrupted, match="smartctl was ended by signal 9: run it by hand"
    ):
        smart.parse("", -9)


@each(
    "text, why",
    [
        ("", "no JSON but 'nothing'"),
        ("smartctl 6.6 2017\nUNRECOGNIZED OPTION: j", "no JSON but 'smartctl 6.6 2017'"),
        ('{"smartctl": {"exit_status": 0}, "smart', "cut short"),
        ("[" * 100_000, "no JSON"),
        ("[]", "not smartctl's"),
        ("{}", "not smartctl's"),
        ('{"smartctl": {"exit_status": 4}}', "its JSON says 4"),
        (
            '{"smartctl": {"exit_status": 0}, "smart_status": {"passed": "yes"}}',
            "not true or false",
        ),
        ('{"smartctl": {"exit_status": 0}, "smart_status": 1}', "was expected"),
        (
            (
                '{"smartctl": {"exit_status": 0}, "nvme_smart_health_information_log": '
                '{"media_errors": "0"}}'
            ),
            "not a whole number",
        ),
        (
            (
                '{"smartctl": {"exit_status": 0}, "nvme_smart_health_information_log": '
                '{"media_errors": true}}'
            ),
            "not a whole number",
        ),
        (
            (
                '{"smartctl": {"exit_status": 0}, "nvme_smart_health_information_log": '
                '{"media_errors": -1}}'
            ),
            "cannot be negative",
        ),
        ('{"smartctl": {"exit_status": 0}, "ata_smart_attributes": {"table": 1}}', "not a table"),
        ('{"smartctl": {"exit_status": 0}, "ata_smart_attributes": {"table": [1]}}', "not a table"),
        (
            '{"smartctl": {"exit_status": 0}, "ata_smart_attributes": {"table": [{"id": 5}]}}',
            "without name or raw value",
        ),
    ],
)
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        smart.parse(text, 0)


@pytest.mark.parametrize(
    ("name", "status", "why"),
    [
        ("virtio_no_smart_7.3.json.txt", 1, "Unable to detect device type"),
        ("virtio_permission_denied_7.3.json.txt", 2, "run rigproof with sudo"),
    ],
)
def test_recordings(name: str, status: int, why: str) -> None:
    with pytest.raises(NotMeasurable, match=why):
        smart.parse((RECORDINGS / name).read_text(), status)


def test_a_key_that_comes_twice_is_refused() -> None:
    """The last would count, and the first may tell of the fault."""
    text = json.dumps({"smartctl": {"exit_status": 0}, "smart_status": {"passed": True}})
    with pytest.raises(UnreadableOutput, match="no JSON"):
        smart.parse(text.replace('"passed"', '"passed": false, "passed"'), 0)


@each("messages", [1, "x", [1], [["x"]]])
def test_messages_of_another_form_are_refused(messages: object) -> None:
    with pytest.raises(UnreadableOutput, match="not a table"):
        smart.parse(json.dumps({"smartctl": {"exit_status": 0, "messages": messages}}), 0)


def test_a_message_without_words_is_left_out() -> None:
    document = {"smartctl": {"exit_status": 0, "messages": [{"string": 1}, {"string": "asleep"}]}}
    with pytest.raises(NotMeasurable, match=r"\(asleep\)"):
        smart.parse(json.dumps(document), 0)


@each("depth", range(200, 1000, 40))
def test_what_is_nested_too_deep_is_refused(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    with pytest.raises(UnreadableOutput):
        smart.parse('{"smartctl": {"exit_status": 0}, "smart_status": {"passed": ' + deep + "}}", 0)


# --- growth ---

GROWN = {
    "media_errors": "2 media errors since the run began",
    "unsafe_shutdowns": "2 unsafe shutdowns (losses of power) since the run began",
    "power_cycles": "2 power cycles since the run began",
    "reallocated_sectors": "2 reallocated sectors since the run began",
    "reported_uncorrectable": "2 unreadable sectors reported to the host since the run began",
    "uncorrected_errors": "2 uncorrected read, write or verify errors since the run began",
    "grown_defects": "2 grown defects since the run began",
    "crc_errors": "2 CRC errors of the SATA link since the run began",
    "end_to_end_errors": "2 end-to-end errors since the run began",
    "start_failures": "2 failed starts of the spindle since the run began",
    "over_minutes": "2 minutes above the disk's specified temperature since the run began",
    "warning_minutes": "2 minutes above the disk's warning temperature since the run began",
    "critical_minutes": "2 minutes above the disk's critical temperature since the run began",
    "light_throttles": "2 transitions into light throttling by heat since the run began",
    "heavy_throttles": "2 transitions into heavy throttling by heat since the run began",
    "pending_sectors": "2 sectors waiting to be reallocated since the run began",
    "offline_uncorrectable": "2 sectors found unreadable by offline scans since the run began",
}
CLOCKS = (
    "power_on_hours",
    "data_units_written",
    "light_throttle_s",
    "heavy_throttle_s",
    "error_log_entries",
)
FALLS = ("pending_sectors", "offline_uncorrectable")
COUNTS: dict[str, Any] = dict.fromkeys((*GROWN, *CLOCKS), 5)
COUNTED = replace(NOTHING, serial="S1", **COUNTS)


def changed(name: str, value: int | None) -> Health:
    values: dict[str, Any] = {name: value}
    return replace(COUNTED, **values)


@each("name, told", GROWN.items())
def test_a_counter_that_grew_is_told_with_its_growth(name: str, told: str) -> None:
    grown = changed(name, 7)
    assert worded(smart.growth(COUNTED, grown)) == (told,)
    assert smart.growth(COUNTED, COUNTED) == ()
    assert smart.new_faults(COUNTED, grown, smart.growth(COUNTED, grown)) == ()


@each("temperature, limit, told", [(81, 82, 0), (82, 82, 1), (90, None, 0), (None, 82, 0)])
def test_heat_above_the_disks_own_limit(
    temperature: int | None, limit: int | None, told: int
) -> None:
    hot = replace(COUNTED, temperature_c=temperature, warning_c=limit)
    found = worded(smart.growth(COUNTED, hot))
    assert found == ("it has 82 degC, and its own limit is 82 degC",) * told


@each("name", CLOCKS)
def test_what_grows_on_sound_disks_too_is_no_fault(name: str) -> None:
    assert smart.growth(COUNTED, changed(name, 9)) == ()


@each("name", [*GROWN, *CLOCKS])
def test_a_counter_that_fell_makes_the_reports_worthless(name: str) -> None:
    fallen = changed(name, 4)
    if name in FALLS:
        assert smart.growth(COUNTED, fallen) == ()
        return
    with pytest.raises(smart.ReportsDiffer, match="fell by 1 during the run"):
        smart.growth(COUNTED, fallen)


def test_the_reports_of_two_disks_are_not_compared() -> None:
    for other in ("S2", None):
        with pytest.raises(smart.ReportsDiffer, match="serial number S1"):
            smart.growth(COUNTED, replace(COUNTED, serial=other, media_errors=9))


@each("name", [*GROWN, *CLOCKS])
def test_a_counter_of_one_report_alone(name: str) -> None:
    absent = changed(name, None)
    # smartctl leaves out thermal counters of 0
    thermal = name.endswith(("minutes", "throttles", "throttle_s")) and name != "over_minutes"
    assert len(smart.growth(absent, COUNTED)) == (thermal and not name.endswith("_s"))
    if thermal:
        with pytest.raises(smart.ReportsDiffer, match="fell by 5"):
            smart.growth(COUNTED, absent)
    else:
        assert smart.growth(COUNTED, absent) == ()


def test_new_entries_of_the_error_log_are_a_remark() -> None:
    grown = replace(COUNTED, error_log_entries=8)
    assert worded(smart.remarks(COUNTED, grown)) == (
        "3 entries of the error log since the run began",
    )
    assert smart.remarks(COUNTED, COUNTED) == ()
    assert smart.remarks(NOTHING, grown) == ()


def test_the_counters_of_an_nvme_report() -> None:
    thermal = "thermal_mgmt_temperature"
    health = parse(
        smart_status={"passed": True},
        serial_number="S466",
        nvme_smart_health_information_log={
            **NVME,
            "num_err_log_entries": 62,
            "unsafe_shutdowns": 10,
            "power_cycles": 25,
            "data_units_written": 65602088,
            "warning_temp_time": 3,
            "critical_comp_time": 1,
            f"{thermal}_1_transition_count": 4,
            f"{thermal}_2_transition_count": 5,
            f"{thermal}_1_total_time": 6,
            f"{thermal}_2_total_time": 7,
        },
        temperature={"current": 35, "op_limit_max": 82, "critical_limit_max": 85},
    )
    assert (health.serial, health.error_log_entries, health.unsafe_shutdowns) == ("S466", 62, 10)
    assert (health.power_cycles, health.data_units_written) == (25, 65602088)
    assert (health.warning_minutes, health.critical_minutes) == (3, 1)
    assert (health.light_throttles, health.heavy_throttles) == (4, 5)
    assert (health.light_throttle_s, health.heavy_throttle_s) == (6, 7)
    assert (health.warning_c, health.critical_c) == (82, 85)


def with_text(*lines: str) -> Health:
    head = {"version": [7, 3], "exit_status": 0, "output": ["=== START OF SMART DATA ===", *lines]}
    return parse(
        smartctl=head, smart_status={"passed": True}, nvme_smart_health_information_log=NVME
    )


def test_transitions_that_an_older_smartctl_only_prints() -> None:
    health = with_text(
        "Thermal Temp. 1 Transition Count:   8", "Thermal Temp. 1 Total Time:         12"
    )
    assert (health.light_throttles, health.light_throttle_s) == (8, 12)
    assert (health.heavy_throttles, health.heavy_throttle_s) == (None, None)
    assert with_text("Thermal Temp. 2 Transition Count:   3").heavy_throttles == 3


@each("told", ["-4", "", "8 or more", "99999999999", "\u0668"])
def test_transitions_that_are_no_count(told: str) -> None:
    with pytest.raises(UnreadableOutput, match=r"Thermal Temp\. 1 Transition Count"):
        with_text(f"Thermal Temp. 1 Transition Count:   {told}")


def test_the_counters_of_a_sata_report() -> None:
    health = ata(
        attribute(199, "UDMA_CRC_Error_Count", "4"),
        power_cycle_count=8,
        temperature={"current": 30, "op_limit_max": 60, "limit_max": 70},
    )
    assert (health.crc_errors, health.power_cycles) == (4, 8)
    assert (health.warning_c, health.critical_c) == (60, 70)


def rows(*table: Any) -> dict[str, Any]:
    return {"ata_smart_attributes": {"table": list(table)}}


def log(**changes: Any) -> dict[str, Any]:
    return {"nvme_smart_health_information_log": {**NVME, **changes}}


PENDING = attribute(197, "Current_Pending_Sector", "8")
NO_COUNTS = ("0x000000000008", "none", "12x")
WITHOUT = [
    {key: value for key, value in PENDING.items() if key != lost} for lost in ("id", "when_failed")
]
BYTES = ("critical_warning", "percentage_used", "available_spare", "available_spare_threshold")


@each(
    "parts, why",
    [
        (rows(attribute(5, "Reallocated_Sector_Ct", "0", "FAILING_NOW")), "Reallocated_Sector_Ct"),
        (rows({**PENDING, "when_failed": ["now"]}), "Current_Pending_Sector"),
        *((rows({**PENDING, "raw": {"string": raw}}), "not a count") for raw in NO_COUNTS),
        *((log(**{name: 256}), rf"{name}` as 256, which cannot exceed") for name in BYTES),
        (log(media_errors=10**4000), "beyond 128 bits"),
        (log(critical_warning=None), "incomplete"),
        (log(media_errors=None), "incomplete"),
        *((rows(row), "an attribute without") for row in WITHOUT),
        ({"serial_number": 7}, "not a text"),
    ],
)
def test_a_part_of_a_report_that_cannot_be_right_is_refused(
    parts: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        parse(smart_status={"passed": True}, **parts)


# --- what a report has no more, and what it says now ---


@each(
    "before, after, new",
    [
        (nvme(), nvme(media_errors=2), ("2 media errors",)),
        (nvme(media_errors=1), nvme(media_errors=2), ()),  # which `growth` counts
        (nvme(critical_warning=1), nvme(critical_warning=9), ("media has become read-only",)),
        (
            nvme(available_spare=5),
            nvme(available_spare=3),
            (),  # the same fault, and no other for its new value
        ),
        (
            ata(attribute(1, "A", "0", "now"), attribute(2, "B", "0")),
            ata(attribute(1, "A", "0", "now"), attribute(2, "B", "0", "now")),
            ("SMART attribute B is below its threshold",),
        ),
    ],
)
def test_faults_that_a_report_proves_now_and_did_not_before(
    before: Health, after: Health, new: tuple[str, ...]
) -> None:
    found = worded(smart.new_faults(before, after, ()))
    assert len(found) == len(new)
    assert all(text in one for one, text in zip(found, new, strict=True))


# --- what a report says twice ---


def test_an_attribute_whose_text_has_less_than_its_value_is_refused() -> None:
    row = attribute(5, "Reallocated_Sector_Ct", "0")
    with pytest.raises(UnreadableOutput, match=r"Reallocated_Sector_Ct"):
        ata({**row, "raw": {"value": 3000, "string": "0"}})
    for value, text, counted in ((3 << 16, "0 (3 0)", 0), (36, "36 (1 2)", 36), (7, "0/7", 0)):
        assert ata({**row, "raw": {"value": value, "string": text}}).reallocated_sectors == counted


FAILED = ("the disk's own SMART status is FAILED",)


def self_tests(*results: int) -> dict[str, Any]:
    table = [{"self_test_result": {"value": value}} for value in results]
    return {"nvme_self_test_log": {"table": table}}


def sata_log(form: str, **counts: int) -> dict[str, Any]:
    return {"ata_smart_self_test_log": {form: counts}}


@each(
    "health, faults",
    [
        (nvme(media_errors=7), ("7 media errors",)),
        (
            nvme(critical_warning=0b1100),
            tuple(f"critical warning: {worded(smart.CRITICAL_WARNINGS[bit])}" for bit in (2, 3)),
        ),
        (nvme(available_spare=10), ()),
        (nvme(available_spare=9), ("available spare is 9 %, below its threshold of 10 %",)),
        (nvme(available_spare=1, available_spare_threshold=None), ()),
        (nvme(passed=False), FAILED),
        (nvme(status=8), FAILED),
        (
            parse(
                smart_status={"passed": True, "nvme": {"value": 4}},
                nvme_smart_health_information_log=NVME,
            ),
            FAILED,
        ),
        (
            parse(
                smart_status={"passed": True, "nvme": {"value": 0}},
                nvme_smart_health_information_log=NVME,
            ),
            (),
        ),
        (
            ata(
                attribute(1, "Raw_Read_Error_Rate", "0", "now"),
                attribute(190, "Airflow_Temperature_Cel", "30", "past"),
                status=16,
            ),
            ("SMART attribute Raw_Read_Error_Rate is below its threshold",),
        ),
        (
            parse(smart_status={"passed": True}, scsi_pending_defects={"count": 3}),
            ("3 sectors waiting to be reallocated",),
        ),
        (
            parse(smart_status={"passed": True}, **self_tests(0, 1, 7, 15, 5)),
            ("2 failed self-tests",),
        ),
        (parse(smart_status={"passed": True}, nvme_self_test_log={}), ()),
        (
            ata(**sata_log("standard", error_count_total=3, error_count_outdated=2)),
            ("1 failed self-tests",),
        ),
        (
            ata(**sata_log("extended", error_count_total=3, error_count_outdated=2)),
            ("1 failed self-tests",),
        ),
        (ata(**sata_log("standard", error_count_total=1)), ("1 failed self-tests",)),
        (ata(**sata_log("extended", error_count_total=1)), ("1 failed self-tests",)),
        (failed_command(SELF_TEST_LOG), ()),
        (failed_command(ERROR_LOG), ()),
        (failed_command(ERROR_LOG, SELF_TEST_LOG), ()),
    ],
    told=[
        "media errors though the status passed",
        "two critical warnings at once",
        "a spare at its threshold",
        "a spare below its threshold",
        "a spare without threshold",
        "a status that failed by word",
        "a status that failed by exit bit",
        "a critical warning beside the status",
        "none beside the status",
        "attributes below their threshold now, and in the past",
        "pending defects of a SAS disk",
        "failed self-tests of an NVMe disk",
        "no self-tests of an NVMe disk",
        "failed self-tests of a SATA disk, some of which a later one outdates",
        "the same in its extended log",
        "a failed self-test of a SATA disk",
        "the same in its extended log",
        "an NVMe disk without its log of self-tests",
        "an NVMe disk without its log of errors",
        "an NVMe disk without either log",
    ],
)
def test_faults_of_a_report(health: Health, faults: tuple[str, ...]) -> None:
    assert worded(smart.faults(health)) == faults


@each("key", ["available_spare", "available_spare_threshold"])
def test_a_spare_of_more_than_all_is_refused(key: str) -> None:
    with pytest.raises(UnreadableOutput):
        nvme(**{key: 101})
    assert smart.faults(nvme(**{key: 100})) == ()


@each("status, failed", [(0x00, None), (0x19, None), (0xF9, None), (0x30, 1), (0x73, 1), (0x80, 1)])
def test_the_newest_self_test_of_an_ata_disk_needs_no_log(status: int, failed: int | None) -> None:
    data = {"self_test": {"status": {"value": status}}}
    read = ata(attribute(5, "Reallocated_Sector_Ct", "0"), ata_smart_data=data)
    assert read.failed_self_tests == failed
    assert len(smart.faults(read)) == (failed or 0)
    with pytest.raises(UnreadableOutput):
        ata(ata_smart_data={"self_test": {"status": {"value": 256}}})


def test_exit_statuses_that_the_rows_do_not_explain() -> None:
    row = attribute(190, "Airflow_Temperature_Cel", "30")
    with pytest.raises(UnreadableOutput, match="exit status 32"):
        ata(row, status=32)
    assert smart.faults(ata({**row, "when_failed": "past"}, status=32)) == ()
    log = {"standard": {"count": 1, "error_count_total": 0}}
    with pytest.raises(UnreadableOutput, match="exit status 128"):
        ata(row, status=128, ata_smart_self_test_log=log)


ROW = attribute(5, "Reallocated_Sector_Ct", "0")
HOURS = attribute(9, "Power_On_Hours", "7")
FULL = ata(ROW, HOURS, ata_smart_error_log={"extended": {}})
BOUND = {**ROW, "value": 100, "thresh": 10}
MOMENT = {"local_time": {"asctime": "now"}, "scsi_self_test_7": {}, "self_test_status": 1}


def sas_errors(*kinds: str) -> Health:
    counted = {kind: {"total_uncorrected_errors": 0} for kind in kinds}
    return parse(smart_status={"passed": True}, scsi_error_counter_log=counted)


@each(
    "before, after, lost",
    [
        (FULL, FULL, ()),
        (FULL, ata(ROW), ("9 Power_On_Hours", "ata_smart_error_log")),
        (
            FULL,
            parse(smart_status={"passed": True}),
            (
                "5 Reallocated_Sector_Ct",
                "9 Power_On_Hours",
                "ata_smart_attributes",
                "ata_smart_error_log",
                "reallocated_sectors",
            ),
        ),
        (ata(ROW), FULL, ()),
        (nvme(warning_temp_time=0), nvme(), ()),
        (nvme(), nvme(available_spare=None), ("available_spare",)),
        (ata(**MOMENT), ata(), ()),
        (ata(BOUND), ata({**ROW, "value": 100}), ("5 Reallocated_Sector_Ct thresh",)),
        (ata(BOUND, HOURS), ata(HOURS), ("5 Reallocated_Sector_Ct", "reallocated_sectors")),
        (sas_errors("read", "write"), sas_errors("read"), ("scsi_error_counter_log write",)),
        (sas_errors("read"), sas_errors("read", "write"), ()),
    ],
    told=[
        "the same report",
        "a row and a log are gone",
        "all but the status is gone",
        "what was not there before is not missed",
        "a counter that smartctl leaves out at 0",
        "a counter that it does not leave out",
        "keys of the moment",
        "the threshold of a row",
        "a row with its threshold",
        "the errors of one kind",
        "errors that were not told before are not missed",
    ],
)
def test_what_a_report_has_no_more(before: Health, after: Health, lost: tuple[str, ...]) -> None:
    assert smart.lost(before, after) == lost


def test_smart_that_is_switched_off_by_smartctls_own_error() -> None:
    told = [{"string": "SMART Disabled. Use option -s with argument 'on' to enable it."}]
    document = {"smartctl": {"exit_status": 4, "messages": told}}
    with pytest.raises(NotMeasurable) as raised:
        smart.parse(json.dumps(document), 4)
    assert raised.value.gap.why == "not_permitted"


def test_unreadable_data_that_only_a_log_of_the_run_tells() -> None:
    row = attribute(9, "Power_On_Hours", "7")
    logs = [
        {"summary": {"count": number, "table": [{"completion_registers": {"error": 64}}] * number}}
        for number in (0, 2)
    ]
    before, after = (ata(row, ata_smart_error_log=log) for log in logs)
    found = smart.growth(before, after)
    assert worded(found) == ("2 entries of unreadable data in its error log since the run began",)
    assert worded(smart.faults(after)) == ()  # of what age it is not known

    def scanned(*keys: int) -> Health:
        results = {f"result_{at}": {"sense_key": {"value": key}} for at, key in enumerate(keys)}
        status = {"status": {"value": 1}}
        return parse(
            smart_status={"passed": True},
            scsi_grown_defect_list=0,
            scsi_background_scan={**status, **results},
        )

    assert len(smart.growth(scanned(1), scanned(1, 3))) == 1
    assert smart.growth(scanned(3), scanned()) == ()
