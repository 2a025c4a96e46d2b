"""A disk's report of its own health (smartctl), the faults that it proves, and what grew in it.

SATA, SAS and NVMe disks have the same form. `acceptance.observe.self_test` reads the disk's
self-tests in the same report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from acceptance.core.message import Message, Values
from acceptance.core.plain_text import quote, quote_value
from acceptance.core.unmeasured import Unmeasured
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable, WordedError

PROGRAM = "smartctl"
PACKAGE = "smartmontools"

# smartctl(8), EXIT STATUS.
BIT_COMMAND_LINE = 1 << 0
BIT_OPEN_FAILED = 1 << 1
BIT_COMMAND_FAILED = 1 << 2
BIT_FAILING = 1 << 3
BIT_ATTRIBUTES = 1 << 4
BIT_SELF_TESTS = 1 << 7
NOT_DONE = BIT_COMMAND_LINE | BIT_OPEN_FAILED | BIT_COMMAND_FAILED

_NVME = "nvme_smart_health_information_log"
# Counters have at most 128 bits (NVMe).
_TOO_MANY = 1 << 128
_MOST_BYTE = 0xFF
# Logs beside the health of an NVMe disk. Many disks lack the log of self-tests, and bridges and
# virtual machines pass on neither; smartctl 7.4 asks for it all the same, and ends with exit
# status 4 (smartmontools issue 217).
_OTHER_LOG = re.compile(
    r"Read (?:Self-test Log|(?:\d+ entries from )?Error Information Log) failed\b"
)
# NVMe base specification, Device Self-test Result: fatal error, unknown failed segment, known
# failed segments.
_NVME_SELF_TEST_FAILED = frozenset({5, 6, 7})
# SPC, Self-test results log page: 3 to 7; up to 7.3 smartctl has their words alone (scsiprint.cpp).
_SCSI_SELF_TEST_FAILED = frozenset({3, 4, 5, 6, 7})
_SCSI_SELF_TEST_WORDS = re.compile(r"Unknown error|segment failed|Failed in", re.IGNORECASE)
# 0 to 2 and 15: 8 to 14 are reserved.
_SCSI_SELF_TEST_SOUND = re.compile(r"Completed|Aborted \(.+\)|Self test in progress.*")
_SCSI_SELF_TESTS = 20
# Keys of a report that come and go: of the program, of the moment, and of single self-tests.
_PASSING = re.compile(r"smartctl|local_time|json_format_version|(?:scsi_)?self_test\w*")
# smartctl's words (os_linux.cpp, dev_interface.cpp, ataprint.cpp, scsiprint.cpp, scsinvme and
# nvmeprint.cpp). Of a volume of a RAID controller:
_RAID_VOLUME = re.compile(
    r"please try adding '(?P<option>-d [a-z0-9]+,[^']+)'|MegaRAID SAT layer is reportedly buggy"
)
# Names of such volumes where smartctl gives no such advice, with its option for the members.
_VOLUMES = (
    (re.compile(r"^(?:PERC|MR\d{4}|ServeRAID|MegaRAID|Raid \d)"), "-d megaraid,N"),
    (re.compile(r"^LOGICAL VOLUME", re.IGNORECASE), "-d cciss,N"),
)
# Of a disk that has no report, or whose bridge passes none on:
_NO_REPORT = re.compile(
    r": Unable to detect device type$|\b(?:Unknown|Unsupported) USB bridge\b"
    r"|^Please specify device type with the -d option|device lacks SMART capability"
    r"|^Device does not support SMART"
    r"|failed: scsi error unsupported (?:field in scsi command|scsi opcode)$"
    r"|^SMART Status not supported: Incomplete response"
)
# Of these, a bridge of which smartctl must be told how to talk through it.
_BRIDGE = re.compile(r"USB bridge|scsi error unsupported|^Please specify device type")
_NVME_REFUSAL = re.compile(
    r"^Read NVMe .+ failed: .*(?:NVMe Status |\()0x(?P<status>[0-9a-f]{1,4})\b"
)
# NVMe base specification, Status Field: the low 11 bits are code and type; the disk does not know
# the command (01h), a field of it (02h), or the log (109h).
_NVME_STATUS, _NVME_UNKNOWN = 0x7FF, frozenset({0x001, 0x002, 0x109})
# What smartctl says beside another message, of which it is a consequence.
_BESIDE = re.compile(r"^A mandatory SMART command failed: exiting")
_LACKS_SMART = re.compile(r"SMART support is: +Unavailable\b|Device does not support SMART")
_SMART_OFF = re.compile(r"SMART Disabled\. Use option -s|SMART support is: +Disabled")
_NOT_THERE = re.compile(r"failed: No such (?:device|file)")
_REFUSED = re.compile(r"permission denied|operation not permitted", re.IGNORECASE)
# smartctl's words for an attribute below its threshold.
_WHEN_FAILED = frozenset({"", "past", "now"})


class SmartUnreadable(NotMeasurable):
    """The disk's health could not be read."""


class DiskVanished(SmartUnreadable):
    """The disk is not on this machine (any more)."""


class ReportsDiffer(WordedError):
    """Two reports are not of one disk, or a counter that only grows has fallen.

    What happened to the disk between them is not known.
    """


class SmartInterrupted(WordedError):
    """smartctl was ended before it answered; not even the absence of a report is known."""


def argv(device: str, program: str = PROGRAM) -> tuple[str, ...]:
    """The command line that prints all about one disk (`/dev/nvme0n1`) as JSON; it needs root.

    The text is asked for as well (`o`): up to 7.4 smartctl has the transitions into thermal
    management nowhere else.
    """
    return (program, "--json=o", "-a", device)


def parse(text: str, returncode: int) -> Health:
    """Parse the output of `smartctl --json=o -a DEVICE` with its exit status.

    Raises SmartUnreadable when smartctl could not query the disk, when the disk offers no health
    data, or when an incomplete report shows no fault (a command failed, or there is no overall
    status); it says whether the disk has none, may not be read, or failed to answer. Raises
    SmartInterrupted when a signal ended smartctl, UnreadableOutput for any other text.
    """
    document = opened(text, returncode)
    nvme = _NVME
    attributes = _attributes(document)
    passed = at(document, "smart_status", "passed")
    if passed is not None and not isinstance(passed, bool):
        raise unknown(Message("smart_status_unknown", {"value": quote_value(passed)}))
    known = (
        "smart_status",
        nvme,
        "ata_smart_attributes",
        "scsi_error_counter_log",
        "scsi_grown_defect_list",
    )
    if not any(key in document for key in known):
        raise unread(document, returncode)
    health = Health(
        passed=False if returncode & BIT_FAILING else passed,
        critical_warning=_byte(document, nvme, "critical_warning"),
        media_errors=count(document, nvme, "media_errors"),
        percentage_used=_first(
            _byte(document, nvme, "percentage_used"),
            _byte(document, "scsi_percentage_used_endurance_indicator"),
        ),
        available_spare=_byte(document, nvme, "available_spare"),
        spare_threshold=_byte(document, nvme, "available_spare_threshold"),
        temperature_c=_temperature(document),
        power_on_hours=_first(
            count(document, "power_on_time", "hours"), count(document, nvme, "power_on_hours")
        ),
        # The same attribute number has other meanings for other makers, so the name must match too.
        serial=_text(document, "serial_number"),
        error_log_entries=count(document, nvme, "num_err_log_entries"),
        unsafe_shutdowns=count(document, nvme, "unsafe_shutdowns"),
        power_cycles=_first(
            count(document, "power_cycle_count"), count(document, nvme, "power_cycles")
        ),
        data_units_written=count(document, nvme, "data_units_written"),
        warning_minutes=count(document, nvme, "warning_temp_time"),
        critical_minutes=count(document, nvme, "critical_comp_time"),
        light_throttles=_thermal(document, "Thermal Temp. 1 Transition Count"),
        heavy_throttles=_thermal(document, "Thermal Temp. 2 Transition Count"),
        light_throttle_s=_thermal(document, "Thermal Temp. 1 Total Time"),
        heavy_throttle_s=_thermal(document, "Thermal Temp. 2 Total Time"),
        crc_errors=_raw(attributes, 199, "crc"),
        warning_c=_integer(document, "temperature", "op_limit_max"),
        critical_c=_first(
            _integer(document, "temperature", "critical_limit_max"),
            _integer(document, "temperature", "limit_max"),
        ),
        reallocated_sectors=_raw(attributes, 5, "realloc|retired"),
        pending_sectors=_first(
            _raw(attributes, 197, "pending"), count(document, "scsi_pending_defects", "count")
        ),
        offline_uncorrectable=_raw(attributes, 198, "uncorrect|unc_"),
        reported_uncorrectable=_raw(attributes, 187, "uncorrect"),
        uncorrected_errors=_scsi_uncorrected(document),
        grown_defects=count(document, "scsi_grown_defect_list"),
        failed_self_tests=_failed_self_tests(document),
        failing_attributes=tuple(
            str(row["name"]) for row in attributes if row.get("when_failed") == "now"
        ),
        parts=frozenset(_parts(document, attributes)),
    )
    if faults(health):  # a fault is proven, whatever else is missing
        return health
    if returncode & BIT_COMMAND_FAILED and not (nvme in document and _only_other_logs(document)):
        raise unread(document, returncode, "disk_command_failed")
    # These two are proof, but of what is not known.
    if returncode & BIT_ATTRIBUTES or (
        returncode & BIT_SELF_TESTS and health.failed_self_tests is None
    ):
        raise unknown(Message("smart_bits_unexplained", {"code": returncode}))
    # smartctl derives the status of an NVMe disk from the critical warning.
    if health.passed is None and health.critical_warning is None:
        raise unread(document, returncode, "no_smart_status")
    if nvme in document and None in (health.critical_warning, health.media_errors):
        # Every version prints both; a value missing from damaged text would look sound.
        raise unknown(Message("smart_log_cut"))
    return health


def opened(text: str, returncode: int) -> dict[str, Any]:
    """The document of a report whose disk smartctl could open.

    Raises as `parse` does.
    """
    document = _document(text, returncode)
    if returncode & (BIT_COMMAND_LINE | BIT_OPEN_FAILED):
        raise unread(document, returncode)
    return document


def unknown(why: Message) -> UnreadableOutput:
    """The error for a text that is not as smartctl writes it."""
    return UnreadableOutput(PROGRAM, "", why)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    # the last would win, and the first may be the one with a fault
    if len(found) != len(pairs):
        raise ValueError("a key comes twice in one object")
    return found


def _document(text: str, returncode: int) -> dict[str, Any]:
    if returncode < 0:
        raise SmartInterrupted("smartctl_killed", signal=-returncode)
    start = text.strip()
    try:
        document = json.loads(start, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        if not start:
            raise unknown(Message("smart_text_empty")) from error
        first = repr(quote(start.splitlines()[0]))
        raise unknown(Message("smart_no_json", {"first": first})) from error
    if not isinstance(document, dict) or not isinstance(document.get("smartctl"), dict):
        raise unknown(Message("smart_json_foreign"))
    status = document["smartctl"].get("exit_status")
    if status != returncode:
        values: Values = {"code": returncode, "status": quote_value(status)}
        raise unknown(Message("smart_codes_differ", values))
    return document


def _only_other_logs(document: dict[str, Any]) -> bool:
    """Whether all that smartctl complains of are logs that do not tell an NVMe disk's health."""
    told = [str(row.get("string")) for row in rows(document, "smartctl", "messages")]
    return bool(told) and all(map(_OTHER_LOG.match, told))


def unread(
    document: dict[str, Any],
    returncode: int,
    lack: Literal["disk_command_failed", "no_smart_status"] | None = None,
) -> SmartUnreadable:
    """The error for a disk that smartctl could not query, with its own messages.

    A reason that is not known counts as a disk that failed to answer.
    """
    found = rows(document, "smartctl", "messages")
    messages = [row["string"] for row in found if isinstance(row.get("string"), str)]
    why: tuple[str | Message, ...] = (*([Message(lack)] if lack else []), *messages)
    if not why and returncode:
        why = (Message("smartctl_failed", {"code": returncode}),)
    elif not why:
        why = (Message("no_smart_data"),)
    if any(map(_NOT_THERE.search, messages)):
        return DiskVanished("disk_gone", Unmeasured.NO_ANSWER, why=why)
    if any(map(_REFUSED.search, messages)):
        return SmartUnreadable("health_unread_without_root", Unmeasured.NOT_PERMITTED, why=why)
    own = [one for one in messages if not _BESIDE.search(one)]
    if not all(map(_is_known_lack, own)):
        return SmartUnreadable("health_no_answer", Unmeasured.NO_ANSWER, why=why)
    printed = _printed(document)
    if at(document, "smart_support", "enabled") is False or any(map(_SMART_OFF.search, printed)):
        return SmartUnreadable("health_switched_off", Unmeasured.NOT_PERMITTED, why=why)
    if (option := _member_option(document, own)) is not None:
        return SmartUnreadable("health_of_volume", Unmeasured.NOT_OFFERED, why=why, option=option)
    lacks = at(document, "smart_support", "available") is False
    if own or lacks or any(map(_LACKS_SMART.search, printed)):
        option = "-d TYPE" if any(map(_BRIDGE.search, own)) else None
        return SmartUnreadable("health_unread", Unmeasured.NOT_OFFERED, why=why, option=option)
    return SmartUnreadable("health_no_answer", Unmeasured.NO_ANSWER, why=why)


def _member_option(document: dict[str, Any], messages: Iterable[str]) -> str | None:
    """smartctl's option for the members of a RAID controller's volume; None for other disks."""
    for found in filter(None, map(_RAID_VOLUME.search, messages)):
        return found["option"] or _VOLUMES[0][1]
    product = str(at(document, "scsi_product") or at(document, "product") or "")
    return next((option for model, option in _VOLUMES if model.search(product)), None)


def _is_known_lack(text: str) -> bool:
    """Whether smartctl says by this message that the disk, as it is connected, has no report."""
    if _RAID_VOLUME.search(text) or _NO_REPORT.search(text):
        return True
    refusal = _NVME_REFUSAL.search(text)
    return refusal is not None and int(refusal["status"], 16) & _NVME_STATUS in _NVME_UNKNOWN


def _printed(document: dict[str, Any]) -> list[str]:
    """The lines of the text beside the JSON; empty without it."""
    output = at(document, "smartctl", "output")
    return list(map(str, output)) if isinstance(output, list) else []


def at(document: dict[str, Any], *path: str) -> Any:
    """The value at a path of keys, or None; raises UnreadableOutput where a key has no table."""
    value: Any = document
    for key in path:
        if not isinstance(value, dict):
            values = {"value": quote_value(value), "key": ".".join(path)}
            raise unknown(Message("smart_key_missing", values))
        if key not in value:
            return None
        value = value[key]
    return value


def _integer(document: dict[str, Any], *path: str) -> int | None:
    value = at(document, *path)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        values = {"key": ".".join(path), "value": quote_value(value)}
        raise unknown(Message("smart_no_whole_number", values))
    return value


def count(document: dict[str, Any], *path: str) -> int | None:
    """The counter at a path, or None; raises UnreadableOutput for what no counter holds."""
    value = _integer(document, *path)
    if value is not None and not 0 <= value < _TOO_MANY:
        values = {"key": ".".join(path), "value": quote_value(value)}
        raise unknown(Message("smart_count_impossible", values))
    return value


def _byte(document: dict[str, Any], *path: str) -> int | None:
    """The byte at a path, or None: the bits of a warning, or percent, which may exceed 100."""
    value = count(document, *path)
    if value is not None and value > _MOST_BYTE:
        raise unknown(Message("smart_byte_impossible", {"key": ".".join(path), "value": value}))
    return value


def _thermal(document: dict[str, Any], name: str) -> int | None:
    """A counter of thermal management, from JSON (smartctl 7.5) or from the text beside it."""
    key = name.lower().replace("thermal temp. ", "thermal_mgmt_temperature_").replace(" ", "_")
    if (value := count(document, _NVME, key)) is not None:
        return value
    for line in _printed(document):
        found = re.fullmatch(rf"{re.escape(name)}:\s*(?P<value>.*)", line)
        if found is not None:
            told = found["value"]
            if not re.fullmatch(r"\d{1,10}", told, re.ASCII):
                raise unknown(Message("smart_no_count", {"name": name, "value": quote_value(told)}))
            return int(told)
    return None


def _text(document: dict[str, Any], key: str) -> str | None:
    value = at(document, key)
    if value is not None and not isinstance(value, str):
        raise unknown(Message("smart_no_text", {"key": key, "value": quote_value(value)}))
    return value


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def rows(document: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    """The rows of the table at a path, empty without one; raises UnreadableOutput."""
    found = at(document, *path)
    if found is not None and (
        not isinstance(found, list) or not all(isinstance(row, dict) for row in found)
    ):
        raise unknown(Message("smart_no_table", {"key": ".".join(path)}))
    return found or []


def _attributes(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = rows(document, "ata_smart_attributes", "table")
    for row in found:
        # A row without its number or its `when_failed` would be skipped, whatever it counts.
        told = row.get("when_failed")
        whole = type(row.get("id")) is int and isinstance(told, str) and told in _WHEN_FAILED
        if (
            not whole
            or not isinstance(row.get("name"), str)
            or not isinstance(at(row, "raw", "string"), str)
        ):
            name = quote_value(row.get("name"))
            raise unknown(Message("smart_attribute_torn", {"name": name}))
    return found


def _parts(document: dict[str, Any], attributes: list[dict[str, Any]]) -> Iterator[str]:
    yield from (key for key in document if not _PASSING.fullmatch(key))
    yield from (f"{row['id']} {row['name']}" for row in attributes)


def _raw(attributes: list[dict[str, Any]], number: int, name: str) -> int | None:
    """The count in one ATA attribute.

    Makers store other data in the upper bytes, so smartctl's own text of the value is parsed.
    """
    for row in attributes:
        if row.get("id") == number and re.search(name, row["name"], re.IGNORECASE):
            match = re.match(r"\d{1,20}(?![\dx])", row["raw"]["string"])
            if match is None:
                values = {"name": row["name"], "value": repr(row["raw"]["string"])}
                raise unknown(Message("smart_no_count", values))
            return int(match[0])
    return None


def _temperature(document: dict[str, Any]) -> int | None:
    value = _integer(document, "temperature", "current")
    # A SAS disk without that log page has 0, with a trip point of 0.
    return None if value == 0 and _integer(document, "temperature", "drive_trip") == 0 else value


def _scsi_uncorrected(document: dict[str, Any]) -> int | None:
    log = "scsi_error_counter_log"
    counts = [
        count(document, log, kind, "total_uncorrected_errors")
        for kind in ("read", "write", "verify")
    ]
    given = [one for one in counts if one is not None]
    return sum(given) if given else None


def _failed_self_tests(document: dict[str, Any]) -> int | None:
    for form in ("standard", "extended"):
        total = count(document, "ata_smart_self_test_log", form, "error_count_total")
        if total is not None:  # a failure is outdated once a later full test has passed
            return total - (
                count(document, "ata_smart_self_test_log", form, "error_count_outdated") or 0
            )
    if "scsi_self_test_0" in document:
        return _failed_scsi_self_tests(document)
    if "nvme_self_test_log" not in document:
        return None
    table = rows(document, "nvme_self_test_log", "table")
    return sum(count(row, "self_test_result", "value") in _NVME_SELF_TEST_FAILED for row in table)


def _failed_scsi_self_tests(document: dict[str, Any]) -> int:
    """Failed self-tests of a SAS disk, the newest first, up to a long one that passed."""
    failed = 0
    for place in range(_SCSI_SELF_TESTS):
        key = f"scsi_self_test_{place}"
        if key not in document:
            break
        told, result = (
            at(document, key, "result", "string"),
            count(document, key, "result", "value"),
        )
        if not isinstance(told, str):
            raise unknown(Message("smart_no_text", {"key": key, "value": quote_value(told)}))
        if result in _SCSI_SELF_TEST_FAILED or _SCSI_SELF_TEST_WORDS.search(told):
            failed += 1
        elif not _SCSI_SELF_TEST_SOUND.fullmatch(told.strip()):
            raise unknown(Message("smart_self_test_word", {"key": key, "text": quote_value(told)}))
        elif told.strip() == "Completed" and "long" in str(at(document, key, "code", "string")):
            break
    return failed


# NVMe base specification, SMART / Health Information log, Critical Warning.
CRITICAL_WARNINGS = (
    Message("nvme_spare_low"),
    Message("nvme_temperature_outside"),
    Message("nvme_degraded"),
    Message("nvme_read_only"),
    Message("nvme_backup_failed"),
    Message("nvme_region_unreliable"),
    Message("nvme_reserved_bit", {"bit": 6}),
    Message("nvme_reserved_bit", {"bit": 7}),
)


@dataclass(frozen=True, slots=True)
class Health:
    """The disk's report. A value that the disk does not offer is None.

    `percentage_used`, `available_spare` and `spare_threshold` are percent; `critical_warning` is a
    bit mask (`CRITICAL_WARNINGS`). `warning_minutes` and `critical_minutes` were spent above the
    drive's own thresholds, `warning_c` and `critical_c` (NVMe: WCTEMP and CCTEMP; ATA: the limits
    of SCT). `light_throttles` and `heavy_throttles` are its transitions into thermal management 1
    and 2, `*_throttle_s` the seconds there (NVMe base specification, SMART / Health Information).
    `data_units_written` are 512,000 bytes each. smartctl leaves thermal counters out that are 0.
    `parts` names the report's logs and ATA attributes, whatever they count.
    """

    passed: bool | None
    critical_warning: int | None
    media_errors: int | None
    percentage_used: int | None
    available_spare: int | None
    spare_threshold: int | None
    temperature_c: int | None
    power_on_hours: int | None
    reallocated_sectors: int | None
    pending_sectors: int | None
    offline_uncorrectable: int | None
    reported_uncorrectable: int | None
    uncorrected_errors: int | None
    grown_defects: int | None
    failed_self_tests: int | None
    failing_attributes: tuple[str, ...]
    serial: str | None
    error_log_entries: int | None
    unsafe_shutdowns: int | None
    power_cycles: int | None
    data_units_written: int | None
    warning_minutes: int | None
    critical_minutes: int | None
    light_throttles: int | None
    heavy_throttles: int | None
    light_throttle_s: int | None
    heavy_throttle_s: int | None
    crc_errors: int | None
    warning_c: int | None
    critical_c: int | None
    parts: frozenset[str] = field(default=frozenset(), compare=False)


SELF_TESTS_FAILED = Message("disk_self_tests_failed")


def faults(health: Health) -> tuple[Message, ...]:
    """Every fault that the disk's report proves; empty if there is none."""
    found: list[Message] = []
    if health.passed is False:
        found.append(Message("smart_status_failed"))
    found += [Message("smart_attribute_low", {"name": name}) for name in health.failing_attributes]
    warning = health.critical_warning or 0
    found += [
        Message("nvme_warning", {"what": told})
        for bit, told in enumerate(CRITICAL_WARNINGS)
        if warning >> bit & 1
    ]
    spare, threshold = health.available_spare, health.spare_threshold
    if spare is not None and threshold is not None and spare < threshold:
        values = {"spare": str(spare), "threshold": str(threshold)}
        found.append(Message("disk_spare_low", values))
    counts = (
        (health.media_errors, Message("disk_media_errors")),
        (health.pending_sectors, Message("disk_sectors_pending")),
        (health.offline_uncorrectable, Message("disk_sectors_offline")),
        (health.reported_uncorrectable, Message("disk_sectors_reported")),
        (health.uncorrected_errors, Message("disk_errors_uncorrected")),
        (health.failed_self_tests, SELF_TESTS_FAILED),
    )
    found += [
        Message("disk_counts", {"count": str(number), "what": what})
        for number, what in counts
        if number
    ]
    return tuple(found)


# What a counter that grew counts: a sound disk does none of it while it works. Those of the second
# table may fall too, when a sector that was written again turned out sound.
_GROWS = (
    ("media_errors", Message("disk_media_errors")),
    ("unsafe_shutdowns", Message("disk_unsafe_shutdowns")),
    ("power_cycles", Message("disk_power_cycles")),
    ("reallocated_sectors", Message("disk_sectors_reallocated")),
    ("reported_uncorrectable", Message("disk_sectors_reported")),
    ("uncorrected_errors", Message("disk_errors_uncorrected")),
    ("grown_defects", Message("disk_grown_defects")),
    ("crc_errors", Message("disk_crc_errors")),
    ("warning_minutes", Message("disk_warning_minutes")),
    ("critical_minutes", Message("disk_critical_minutes")),
    ("light_throttles", Message("disk_light_throttles")),
    ("heavy_throttles", Message("disk_heavy_throttles")),
)
_RISES_AND_FALLS = (
    ("pending_sectors", Message("disk_sectors_pending")),
    ("offline_uncorrectable", Message("disk_sectors_offline")),
)
# Counters that grow while nothing is wrong, and never fall.
_CLOCKS = (
    ("power_on_hours", Message("disk_power_on_hours")),
    ("data_units_written", Message("disk_units_written")),
    ("light_throttle_s", Message("disk_light_throttle_s")),
    ("heavy_throttle_s", Message("disk_heavy_throttle_s")),
    ("error_log_entries", Message("disk_error_log_entries")),
)
# Counters that smartctl leaves out while they are 0 (nvmeprint.cpp).
_LEFT_OUT_AT_0 = frozenset(
    {
        "warning_minutes",
        "critical_minutes",
        "light_throttles",
        "heavy_throttles",
        "light_throttle_s",
        "heavy_throttle_s",
    }
)


def _difference(name: str, before: Health, after: Health) -> int | None:
    first, last = getattr(before, name), getattr(after, name)
    if name in _LEFT_OUT_AT_0:
        first, last = first or 0, last or 0
    return None if first is None or last is None else last - first


def growth(before: Health, after: Health) -> tuple[Message, ...]:
    """What grew between two reports of one disk that does not grow on a sound one; and its heat.

    Entries of an NVMe drive's error log are not among it: many drives write one for each command
    that they do not know, those of smartctl included; `remarks` tells them. A counter that only one
    of the reports has is not compared: `lost` names it, or `new_faults` judges it. Raises
    ReportsDiffer for reports of two disks, or of one whose counters fell.
    """
    if before.serial != after.serial:
        values = {"before": str(before.serial), "after": str(after.serial)}
        raise ReportsDiffer("disk_serial_differs", **values)
    found = []
    for name, what in (*_GROWS, *_CLOCKS, *_RISES_AND_FALLS):
        grew = _difference(name, before, after) or 0
        if grew < 0 and (name, what) not in _RISES_AND_FALLS:
            raise ReportsDiffer("disk_counter_fell", what=what, count=str(-grew))
        if grew > 0 and (name, what) not in _CLOCKS:
            found.append(Message("disk_grew", {"count": str(grew), "what": what}))
    hot, limit = after.temperature_c, after.warning_c
    if hot is not None and limit is not None and hot >= limit:
        found.append(Message("disk_hot", {"temperature": str(hot), "limit": str(limit)}))
    return tuple(found)


def lost(before: Health, after: Health) -> tuple[str, ...]:
    """The logs, attributes and values of the first report that the second one has not."""
    values = [one.name for one in fields(Health) if one.name not in _LEFT_OUT_AT_0]
    gone = [name for name in values if getattr(before, name) is not None]
    return (
        *sorted(before.parts - after.parts),
        *(name for name in gone if getattr(after, name) is None),
    )


def new_faults(before: Health, after: Health, grew: Sequence[Message]) -> tuple[Message, ...]:
    """The faults that a report proves and the one before it did not, by kind and not by number.

    What `grew` counts already is left out.
    """
    known = [_kind(fault) for fault in faults(before)]
    counted = [one.values.get("what") for one in grew]
    return tuple(
        fault
        for fault in faults(after)
        if _kind(fault) not in known and (fault.values.get("what") or fault) not in counted
    )


def _kind(fault: Message) -> tuple[object, ...]:
    return fault.code, fault.values.get("what"), fault.values.get("name")


def remarks(before: Health, after: Health) -> tuple[Message, ...]:
    """What grew between two reports and proves nothing by itself."""
    grew = _difference("error_log_entries", before, after) or 0
    what = Message("disk_error_log_entries")
    return (Message("disk_grew", {"count": str(grew), "what": what}),) if grew > 0 else ()
