"""A disk's report of its own health (smartctl), the faults that it proves, and what grew in it.

SATA, SAS and NVMe disks have the same form. `acceptance.observe.self_test` reads the disk's
self-tests in the same report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from acceptance.core.message import Message, Unmeasured, Values, english
from acceptance.core.plain_text import quote, quote_value
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
BIT_ATTRIBUTES_PAST = 1 << 5
BIT_SELF_TESTS = 1 << 7
NOT_DONE = BIT_COMMAND_LINE | BIT_OPEN_FAILED | BIT_COMMAND_FAILED

_NVME = "nvme_smart_health_information_log"
_ERRORS, _SCSI_KINDS = "scsi_error_counter_log", ("read", "write", "verify")
_STATISTICS, _SCAN = "ata_device_statistics", "scsi_background_scan"
# Counters have at most 128 bits (NVMe).
_TOO_MANY = 1 << 128
_MOST_BYTE = 0xFF
# NVMe base specification, Available Spare: above 100 per cent is reserved.
_MOST_SPARE = 100
# Logs beside the health of an NVMe disk. Many disks lack the log of self-tests, and bridges and
# virtual machines pass on neither; smartctl 7.4 asks for it all the same, and ends with exit
# status 4 (smartmontools issue 217).
_OTHER_LOG = re.compile(
    r"Read (?:Self-test Log|(?:\d+ entries from )?Error Information Log) failed\b"
)
# Of a disk behind a controller or bridge that does not pass the answer on, smartctl derives the
# status from the attributes and their thresholds; it says so, and ends with exit status 4. Many
# bridges do not pass on commands of 48 bits, and so neither the statistics nor the directory of
# logs that they are in (ataprint.cpp). Some of these lines are in the text alone.
_ATA_OTHER = re.compile(
    r"Warning: This result is based on an Attribute check"
    r"|SMART Status (?:command failed|not supported)"
    r"|Read Device Statistics page|Read (?:GP|SMART) Log Directory failed"
    r"|ATA_READ_LOG_EXT \(addr=0x0[04]:"
)
_FAILED_LINE = re.compile(r"(?:Read|Error|SMART|ATA_|SCT|Write) ?.*\bfailed\b|Warning!.*error")
# NVMe base specification, Device Self-test Result: fatal error, unknown failed segment, known
# failed segments.
_NVME_SELF_TEST_FAILED = frozenset({5, 6, 7})
# ACS, self-test execution status, high nibble.
_ATA_SELF_TEST_FAILED = frozenset({3, 4, 5, 6, 7, 8})
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
# ATA8-ACS, SMART threshold exceeded: an attribute counts from 1 to 253.
_ATTRIBUTE_VALUES = range(1, 254)
# Attributes that are judged by their number, whatever their name, because makers agree on them: 5,
# 187, 197 and 198. These names of smartctl's database (drivedb.h of 7.3) are of another count.
_OTHER_MEANING = {
    187: re.compile(r"Total_Unc_NAND_Reads"),
    197: re.compile(r"Not_In_Use|Total_Unc_Read|Read_Failure_Blk|ECC_Error_Count|Later_Bad_Block"),
    198: re.compile(r"Not_In_Use|Host_Reads|Read_Sectors_Tot|Uncor_Read_Error"),
}
# Attributes that are read.
_READ = frozenset({5, 174, 184, 187, 197, 198, 199})
# Attributes of other numbers are shown if they count something and their name tells of an error.
_ERROR_NAME = re.compile(r"Uncor|Unc_|Fail|Bad_Bl|Realloc|CRC|Timeout|End-to-End|Retry|Downshift")
_NO_COUNT_NAME = re.compile(r"Rate|Retract")
# ACS, Device Statistics log: page and offset of each statistic.
_HOURS, _REALLOCATED, _START_FAILURES, _CANDIDATES = (1, 16), (3, 32), (3, 48), (3, 56)
_REPORTED, _CELSIUS, _OVER_MINUTES, _MOST_CELSIUS, _USED = (4, 8), (5, 8), (5, 80), (5, 88), (7, 8)
_ATA_LOGS = ("summary", "extended")
# ACS, error register: uncorrectable data; NVMe base specification, Media and Data Integrity Errors:
# write fault, unrecovered read error, and three end-to-end checks.
_UNC, _NVME_MEDIA, _NVME_UNREADABLE = 1 << 6, 2, range(0x80, 0x85)
# SPC, sense keys; SBC, background scan status: stopped by a fatal error, or by a pattern of errors.
_MEDIUM_ERROR, _SCAN_STOPPED = 3, frozenset({4, 5})
# What a thermometer of a disk can say; -273 is the 0 K of an NVMe disk without one.
_CELSIUS_POSSIBLE, _NO_CELSIUS = range(-100, 201), -273


class DiskVanished(NotMeasurable):
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
    management nowhere else. `-a` leaves out the statistics of ATA disks and the background scan of
    SCSI disks; `-x` has both, and logs besides that bridges refuse. smartctl ignores what is not of
    the disk's kind.
    """
    return (program, "--json=o", "-a", "-l", "devstat", "-l", "background", device)


def parse(text: str, returncode: int) -> Health:
    """Parse the output of `argv`, or of plain `smartctl -j -a DEVICE`, with its exit status.

    Raises NotMeasurable when smartctl could not query the disk, when the disk offers no health
    data, or when an incomplete report shows no fault (a command failed, or there is no overall
    status); it says whether the disk has none, may not be read, or failed to answer. Raises
    SmartInterrupted when a signal ended smartctl, UnreadableOutput for any other text.
    """
    document = opened(text, returncode)
    nvme = _NVME
    attributes = _attributes(document)
    statistics = _statistics(document)
    passed = at(document, "smart_status", "passed")
    if passed is not None and not isinstance(passed, bool):
        raise unknown(
            Message(
                english(
                    "smart_status_unknown",
                    "it gave `smart_status.passed` as {value}, which is not true or false",
                ),
                {"value": quote_value(passed)},
            )
        )
    known = (
        "smart_status",
        nvme,
        "ata_smart_attributes",
        "scsi_error_counter_log",
        "scsi_grown_defect_list",
        _STATISTICS,
    )
    if not any(key in document for key in known):
        raise unread(document, returncode)
    warning_c, critical_c = _limits_c(document)
    # beside the status of an NVMe disk stands its critical warning
    failing = returncode & BIT_FAILING or count(document, "smart_status", "nvme", "value")
    health = Health(
        passed=False if failing else passed,
        critical_warning=_byte(document, nvme, "critical_warning"),
        media_errors=count(document, nvme, "media_errors"),
        # From 7.5 on smartctl has used life and spare of SATA disks too.
        percentage_used=_most(
            _byte(document, nvme, "percentage_used"),
            _byte(document, "scsi_percentage_used_endurance_indicator"),
            statistics.get(_USED),
            _byte(document, "endurance_used", "current_percent"),
        ),
        available_spare=_first(
            _byte(document, nvme, "available_spare", most=_MOST_SPARE),
            _byte(document, "spare_available", "current_percent", most=_MOST_SPARE),
        ),
        spare_threshold=_first(
            _byte(document, nvme, "available_spare_threshold", most=_MOST_SPARE),
            _byte(document, "spare_available", "threshold_percent", most=_MOST_SPARE),
        ),
        temperature_c=_temperature(document, statistics),
        power_on_hours=_first(
            count(document, "power_on_time", "hours"),
            count(document, nvme, "power_on_hours"),
            statistics.get(_HOURS),
        ),
        serial=_text(document, "serial_number"),
        error_log_entries=_most(
            count(document, nvme, "num_err_log_entries"),
            *(count(document, "ata_smart_error_log", form, "count") for form in _ATA_LOGS),
        ),
        unsafe_shutdowns=_first(
            count(document, nvme, "unsafe_shutdowns"),
            _named(attributes, 174, "unsafe|unexpect|power_loss"),
        ),
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
        crc_errors=_named(attributes, 199, "crc"),
        warning_c=warning_c,
        critical_c=critical_c,
        reallocated_sectors=_most(_raw(attributes, 5), statistics.get(_REALLOCATED)),
        pending_sectors=_most(
            _raw(attributes, 197),
            count(document, "scsi_pending_defects", "count"),
            statistics.get(_CANDIDATES),
        ),
        offline_uncorrectable=_raw(attributes, 198),
        reported_uncorrectable=_most(_raw(attributes, 187), statistics.get(_REPORTED)),
        uncorrected_errors=_scsi_uncorrected(document),
        grown_defects=count(document, "scsi_grown_defect_list"),
        failed_self_tests=_most(_failed_self_tests(document), _last_ata_self_test(document)),
        failing_attributes=tuple(
            str(row["name"]) for row in attributes if _below(row, "value", "now")
        ),
        failed_attributes=tuple(
            str(row["name"])
            for row in attributes
            if _warns_of_failure(row) and _was_low(row) and not _below(row, "value", "now")
        ),
        error_attributes=_error_attributes(attributes),
        end_to_end_errors=_named(attributes, 184, "end-to-end"),
        start_failures=statistics.get(_START_FAILURES),
        over_minutes=statistics.get(_OVER_MINUTES),
        specified_c=max(statistics.get(_MOST_CELSIUS, 0), 0) or None,
        conditions_met=_conditions_met(document),
        logged_unreadable=_logged_unreadable(document),
        scan_defects=_scan_defects(document),
        scan_stopped=count(document, _SCAN, "status", "value") in _SCAN_STOPPED,
        status_alone=not (
            attributes
            or statistics
            or any(key in document for key in known[3:5])
            or nvme in document
        ),
        parts=frozenset(_parts(document, attributes)),
    )
    if faults(health):  # a fault is proven, whatever else is missing
        return health
    if returncode & BIT_COMMAND_FAILED and not _whole(document, attributes):
        raise unread(document, returncode, "disk_command_failed")
    # These are proof, but of what is not known. A failed self-test of a SAS disk may be outdated.
    if (
        returncode & BIT_ATTRIBUTES
        or (returncode & BIT_ATTRIBUTES_PAST and not any(_was_low(row) for row in attributes))
        or (returncode & BIT_SELF_TESTS and "scsi_self_test_0" not in document)
    ):
        raise unknown(
            Message(
                english(
                    "smart_bits_unexplained",
                    "its exit status {code} tells of an attribute that is or was below its "
                    "threshold, or of a failed self-test, and its JSON shows none",
                ),
                {"code": returncode},
            )
        )
    # smartctl derives the status of an NVMe disk from the critical warning.
    if health.passed is None and health.critical_warning is None:
        raise unread(
            document, returncode, english("no_smart_status", "it tells no overall SMART status")
        )
    if nvme in document and None in (health.critical_warning, health.media_errors):
        # Every version prints both; a value missing from damaged text would look sound.
        raise unknown(
            Message(
                english(
                    "smart_log_cut",
                    "its NVMe health log has no `critical_warning` or no `media_errors`: the text "
                    "is incomplete",
                )
            )
        )
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
        raise SmartInterrupted(
            english(
                "smartctl_killed",
                "smartctl was ended by signal {signal}: run it by hand to see whether the disk "
                "answers",
            ),
            signal=-returncode,
        )
    start = text.strip()
    try:
        document = json.loads(start, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        if not start:
            raise unknown(
                Message(
                    english(
                        "smart_text_empty",
                        "this is no JSON but 'nothing': the text is cut short, or smartctl is "
                        "older than 7.0",
                    )
                )
            ) from error
        first = repr(quote(start.splitlines()[0]))
        raise unknown(
            Message(
                english(
                    "smart_no_json",
                    "this is no JSON but {first}: the text is cut short, or smartctl is older "
                    "than 7.0",
                ),
                {"first": first},
            )
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("smartctl"), dict):
        raise unknown(
            Message(
                english(
                    "smart_json_foreign", "the JSON is not smartctl's: it has no `smartctl` part"
                )
            )
        )
    status = document["smartctl"].get("exit_status")
    if type(status) is not int or status != returncode:
        values: Values = {"code": returncode, "status": quote_value(status)}
        raise unknown(
            Message(
                english(
                    "smart_codes_differ",
                    "it ended with exit code {code} but its JSON says {status}",
                ),
                values,
            )
        )
    return document


def _whole(document: dict[str, Any], attributes: list[dict[str, Any]]) -> bool:
    """Whether all that smartctl complains of leaves the disk's health told.

    Of an NVMe disk these are other logs; of an ATA disk the status, where its attributes and their
    thresholds are there in its place, and the statistics.
    """
    told = [
        str(row.get("string"))
        for row in rows(document, "smartctl", "messages")
        if row.get("severity") != "information"
    ]
    if _NVME in document:
        harmless = _OTHER_LOG
    elif attributes and all("thresh" in row for row in attributes):
        harmless = _ATA_OTHER
        told += [line for line in _printed(document) if _FAILED_LINE.match(line)]
    else:
        return False
    return bool(told) and all(map(harmless.match, told))


def unread(
    document: dict[str, Any],
    returncode: int,
    lack: str | None = None,
) -> NotMeasurable:
    """The error for a disk that smartctl could not query, with its own messages.

    A reason that is not known counts as a disk that failed to answer.
    """
    found = rows(document, "smartctl", "messages")
    messages = [row["string"] for row in found if isinstance(row.get("string"), str)]
    why: tuple[str | Message, ...] = (*([Message(lack)] if lack else []), *messages)
    if not why and returncode:
        why = (
            Message(
                english("smartctl_failed", "smartctl ended with exit code {code}"),
                {"code": returncode},
            ),
        )
    elif not why:
        why = (Message(english("no_smart_data", "it offers no SMART data")),)
    if any(map(_NOT_THERE.search, messages)):
        return DiskVanished(
            english(
                "disk_gone",
                "the disk is not there ({why}): look at the kernel log for what it said of the "
                "disk, reseat it and its cables, and run again",
            ),
            Unmeasured.NO_ANSWER,
            why=why,
        )
    if any(map(_REFUSED.search, messages)):
        return NotMeasurable(
            english(
                "health_unread_without_root",
                "the disk's health could not be read ({why}): run rigproof with sudo",
            ),
            Unmeasured.NOT_PERMITTED,
            why=why,
        )
    own = [one for one in messages if not (_BESIDE.search(one) or _SMART_OFF.search(one))]
    if not all(map(_is_known_lack, own)):
        return NotMeasurable(
            english(
                "health_no_answer",
                "the disk failed to answer for its health ({why}): look at the kernel log for "
                "what it said of the disk, run `sudo smartctl -a` by hand, check its cables and "
                "slot, and run again",
            ),
            Unmeasured.NO_ANSWER,
            why=why,
        )
    printed = [*_printed(document), *messages]
    if at(document, "smart_support", "enabled") is False or any(map(_SMART_OFF.search, printed)):
        return NotMeasurable(
            english(
                "health_switched_off",
                "SMART is switched off on this disk ({why}): switch it on with `sudo smartctl -s "
                "on` and run again",
            ),
            Unmeasured.NOT_PERMITTED,
            why=why,
        )
    if (option := _member_option(document, own)) is not None:
        return NotMeasurable(
            english(
                "health_of_volume",
                "it is a volume of a RAID controller, whose members have the health reports "
                "({why}): look at each of them by hand with `smartctl -a {option}` (N is the "
                "member's number at the controller), and waive this one in the machine file",
            ),
            Unmeasured.NOT_OFFERED,
            why=why,
            option=option,
        )
    lacks = at(document, "smart_support", "available") is False
    if own or lacks or any(map(_LACKS_SMART.search, printed)):
        option = "-d TYPE" if any(map(_BRIDGE.search, own)) else None
        return NotMeasurable(
            english(
                "health_unread",
                "the disk's health could not be read ({why}): [name the bridge to smartctl "
                "(`smartctl -a {option}`, see `smartctl -h`) and look at the report by hand; ]if "
                "that is usual for this disk, waive its health in the machine file",
            ),
            Unmeasured.NOT_OFFERED,
            why=why,
            option=option,
        )
    return NotMeasurable("health_no_answer", Unmeasured.NO_ANSWER, why=why)


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
            raise unknown(
                Message(
                    english("smart_key_missing", "it gave {value} where `{key}` was expected"),
                    values,
                )
            )
        if key not in value:
            return None
        value = value[key]
    return value


def _integer(document: dict[str, Any], *path: str) -> int | None:
    value = at(document, *path)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _no_whole_number(".".join(path), value)
    return value


def _no_whole_number(key: str, value: object) -> UnreadableOutput:
    return unknown(
        Message(
            english(
                "smart_no_whole_number", "it gave `{key}` as {value}, which is not a whole number"
            ),
            {"key": key, "value": quote_value(value)},
        )
    )


def count(document: dict[str, Any], *path: str) -> int | None:
    """The counter at a path, or None; raises UnreadableOutput for what no counter holds."""
    value = _integer(document, *path)
    if value is not None and not 0 <= value < _TOO_MANY:
        values = {"key": ".".join(path), "value": quote_value(value)}
        raise unknown(
            Message(
                english(
                    "smart_count_impossible",
                    "it gave `{key}` as {value}, which cannot be negative or beyond 128 bits",
                ),
                values,
            )
        )
    return value


def _byte(document: dict[str, Any], *path: str, most: int = _MOST_BYTE) -> int | None:
    """The byte at a path, or None: the bits of a warning, or percent, which may exceed 100 unless
    `most` says otherwise.
    """
    value = count(document, *path)
    if value is not None and value > most:
        values: Values = {"key": ".".join(path), "value": value, "most": most}
        raise unknown(
            Message(
                english(
                    "smart_byte_impossible",
                    "it gave `{key}` as {value}, which cannot exceed {most}",
                ),
                values,
            )
        )
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
                raise unknown(
                    Message(
                        english(
                            "smart_no_count", "it gave {name} as {value}, which is not a count"
                        ),
                        {"name": name, "value": quote_value(told)},
                    )
                )
            return int(told)
    return None


def _text(document: dict[str, Any], key: str) -> str | None:
    value = at(document, key)
    if value is not None and not isinstance(value, str):
        raise unknown(Message("smart_no_text", {"key": key, "value": quote_value(value)}))
    return value


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _most(*values: int | None) -> int | None:
    """The largest value where several logs have the same one."""
    return max((value for value in values if value is not None), default=None)


def rows(document: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    """The rows of the table at a path, empty without one; raises UnreadableOutput."""
    found = at(document, *path)
    if found is not None and (
        not isinstance(found, list) or not all(isinstance(row, dict) for row in found)
    ):
        raise unknown(
            Message(
                english("smart_no_table", "it gave `{key}` as something that is not a table"),
                {"key": ".".join(path)},
            )
        )
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
            raise unknown(
                Message(
                    english(
                        "smart_attribute_torn",
                        "it gave an attribute without name or raw value, id or when_failed: {name}",
                    ),
                    {"name": name},
                )
            )
        count(row, "raw", "value")  # the text beside it counts; raises for what no counter holds
    return found


def _parts(document: dict[str, Any], attributes: list[dict[str, Any]]) -> Iterator[str]:
    yield from (key for key in document if not _PASSING.fullmatch(key))
    for row in attributes:
        yield _named_row(row)
        # without them it is not told whether the attribute is below its threshold
        yield from (f"{_named_row(row)} {key}" for key in ("value", "thresh") if key in row)
    yield from (f"{_ERRORS} {kind}" for kind in _SCSI_KINDS if at(document, _ERRORS, kind))


def _named_row(row: dict[str, Any]) -> str:
    return f"{row['id']} {row['name']}"


def _below(row: dict[str, Any], key: str, told: str) -> bool:
    """Whether an attribute is (`value`) or was (`worst`) at its threshold or below it.

    By smartctl's word, or by the numbers.
    """
    value, threshold = _byte(row, key), _byte(row, "thresh")
    by_number = value is not None and value in _ATTRIBUTE_VALUES and value <= (threshold or 0)
    return row["when_failed"] == told or by_number


def _was_low(row: dict[str, Any]) -> bool:
    return _below(row, "worst", "past")


def _warns_of_failure(row: dict[str, Any]) -> bool:
    """Whether an attribute at its threshold means that the disk fails, not that it is old or warm.

    True where the report does not say it.
    """
    flag = at(row, "flags", "prefailure")
    if flag is not None and not isinstance(flag, bool):
        values = {"key": "flags.prefailure", "value": quote_value(flag)}
        raise unknown(
            Message(
                english("smart_no_flag", "it gave `{key}` as {value}, which is not true or false"),
                values,
            )
        )
    return flag is not False


def _count_of(row: dict[str, Any]) -> int | None:
    """The count in an ATA attribute; None where its text begins with none.

    Makers store other data in the upper bytes, so smartctl's own text of the value is parsed.
    """
    match = re.match(r"\d{1,20}(?![\dx])", row["raw"]["string"], re.ASCII)
    return None if match is None else int(match[0])


def _is_cut(row: dict[str, Any], counted: int) -> bool:
    """Whether the value of an attribute has more than its text, which smartctl makes of its bytes.

    A text of several numbers may begin with any of them.
    """
    value = row["raw"].get("value") or 0
    several = re.match(r"\d+[ /]\d", row["raw"]["string"])
    return not several and counted < value & 0xFFFF


def _raw(attributes: list[dict[str, Any]], number: int) -> int | None:
    """The count in the attribute of a number, unless its name is known for another count."""
    found: list[int] = []
    other = _OTHER_MEANING.get(number)
    for row in attributes:
        if row["id"] != number or (other is not None and other.search(row["name"])):
            continue
        counted = _count_of(row)
        if counted is None or _is_cut(row, counted):
            values = {"name": row["name"], "value": repr(row["raw"]["string"])}
            raise unknown(Message("smart_no_count", values))
        found.append(counted)
    return _most(*found)


def _named(attributes: list[dict[str, Any]], number: int, name: str) -> int | None:
    """The count in the attribute of a number, if its name is of that count."""
    return _raw([row for row in attributes if re.search(name, row["name"], re.IGNORECASE)], number)


def _error_attributes(attributes: list[dict[str, Any]]) -> tuple[tuple[str, int], ...]:
    """Other attributes that tell of errors and count some, by name."""
    return tuple(
        (row["name"], counted)
        for row in attributes
        if row["id"] not in _READ
        and _ERROR_NAME.search(row["name"])
        and not _NO_COUNT_NAME.search(row["name"])
        and (counted := _count_of(row))
    )


def _pages(document: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each valid row of the statistics of an ATA disk, with the number of its page."""
    for page in rows(document, _STATISTICS, "pages"):
        number = _present(page, "number")
        for row in rows(page, "table"):
            for flag in ("valid", "monitored_condition_met"):
                if not isinstance(at(row, "flags", flag), bool):
                    values = {"key": f"flags.{flag}", "value": quote_value(at(row, "flags", flag))}
                    raise unknown(Message("smart_no_flag", values))
            if row["flags"]["valid"]:
                yield number, row


def _present(table: dict[str, Any], *path: str) -> int:
    """The counter at a path, which must be there."""
    value = count(table, *path)
    if value is None:
        raise _no_whole_number(".".join(path), None)
    return value


def _statistics(document: dict[str, Any]) -> dict[tuple[int, int], int]:
    """The statistics of an ATA disk that it says are valid, by page and offset."""
    found: dict[tuple[int, int], int] = {}
    for page, row in _pages(document):
        place = (page, _present(row, "offset"))
        warm = place in (_CELSIUS, _MOST_CELSIUS)
        value = _celsius(row, "value") if warm else _present(row, "value")
        if value is None:
            raise _no_whole_number("value", row.get("value"))
        found[place] = value
    if found.get(_USED, 0) > _MOST_BYTE:
        values: Values = {"key": _STATISTICS, "value": found[_USED], "most": _MOST_BYTE}
        raise unknown(Message("smart_byte_impossible", values))
    return found


def _conditions_met(document: dict[str, Any]) -> tuple[str, ...]:
    """Statistics that reached a condition set for them (Device Statistics Notification)."""
    return tuple(
        _text(row, "name") or ""
        for _, row in _pages(document)
        if row["flags"]["monitored_condition_met"]
    )


def _logged_unreadable(document: dict[str, Any]) -> int | None:
    """How many entries of the disk's own error log are of data that it could not give back.

    The log has the newest entries alone.
    """
    logs = [
        rows(document, "ata_smart_error_log", form, "table")
        for form in _ATA_LOGS
        if at(document, "ata_smart_error_log", form) is not None
    ]
    nvme_log = "nvme_error_information_log"
    if not logs and nvme_log not in document:
        return None
    ata = sum(
        bool(_present(row, "completion_registers", "error") & _UNC) for log in logs for row in log
    )
    nvme = sum(
        _present(row, "status_field", "status_code_type") == _NVME_MEDIA
        and _present(row, "status_field", "status_code") in _NVME_UNREADABLE
        for row in rows(document, nvme_log, "table")
        if "status_field" in row
    )
    return ata + nvme


def _scan_defects(document: dict[str, Any]) -> int | None:
    """How many unreadable places the background scans of a SCSI disk have found."""
    at(document, _SCAN, "status")  # raises where it is no table
    if _SCAN not in document:
        return None
    results = [key for key in document[_SCAN] if key.startswith("result_")]
    return sum(
        count(document, _SCAN, key, "sense_key", "value") == _MEDIUM_ERROR for key in results
    )


def _celsius(document: dict[str, Any], *path: str) -> int | None:
    """The temperature at a path, or None; raises UnreadableOutput for what no disk can have."""
    value = _integer(document, *path)
    if value == _NO_CELSIUS:
        return None
    if value is not None and value not in _CELSIUS_POSSIBLE:
        values = {"key": ".".join(path), "value": quote_value(value)}
        raise unknown(
            Message(
                english(
                    "smart_temperature_impossible",
                    "it gave `{key}` as {value}, which is no temperature of a disk",
                ),
                values,
            )
        )
    return value


def _temperature(document: dict[str, Any], statistics: dict[tuple[int, int], int]) -> int | None:
    value = _celsius(document, "temperature", "current")
    # A SAS disk without that log page has 0, with a trip point of 0; from 7.4 on smartctl has the
    # true value elsewhere.
    if value == 0 and _integer(document, "temperature", "drive_trip") == 0:
        value = None
    return _first(
        value,
        statistics.get(_CELSIUS),
        _celsius(document, "scsi_environmental_reports", "temperature_1", "current"),
    )


def _limits_c(document: dict[str, Any]) -> tuple[int | None, int | None]:
    """The disk's own warning and critical temperature; one of 0 or less is none."""
    given = [
        _celsius(document, "temperature", key)
        for key in ("op_limit_max", "critical_limit_max", "limit_max")
    ]
    # One byte, where 255 means that the disk has none (SPC, Temperature log page).
    trip = _byte(document, "temperature", "drive_trip")
    trip = None if trip == _MOST_BYTE else trip
    warning, *critical = (one if one is not None and one > 0 else None for one in (*given, trip))
    return warning, _first(*critical)


def _scsi_uncorrected(document: dict[str, Any]) -> int | None:
    counts = [count(document, _ERRORS, kind, "total_uncorrected_errors") for kind in _SCSI_KINDS]
    given = [one for one in counts if one is not None]
    return sum(given) if given else None


def _failed_self_tests(document: dict[str, Any]) -> int | None:
    for form in ("standard", "extended"):  # smartctl gives an empty log no total
        if count(document, "ata_smart_self_test_log", form, "count") == 0:
            return 0
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


def _last_ata_self_test(document: dict[str, Any]) -> int | None:
    """1 if the newest self-test of an ATA disk failed by its own status, which needs no log."""
    status = _byte(document, "ata_smart_data", "self_test", "status", "value")
    return 1 if status is not None and status >> 4 in _ATA_SELF_TEST_FAILED else None


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
            raise unknown(
                Message(
                    english(
                        "smart_self_test_word",
                        "it gave `{key}` as {text}, which is no result of a self-test that is "
                        "known",
                    ),
                    {"key": key, "text": quote_value(told)},
                )
            )
        elif told.strip() == "Completed" and "long" in str(at(document, key, "code", "string")):
            break
    return failed


# NVMe base specification, SMART / Health Information log, Critical Warning.
CRITICAL_WARNINGS = (
    Message(english("nvme_spare_low", "available spare is below its threshold")),
    Message(english("nvme_temperature_outside", "temperature is outside its thresholds")),
    Message(english("nvme_degraded", "reliability is degraded by media or internal errors")),
    Message(english("nvme_read_only", "media has become read-only")),
    Message(english("nvme_backup_failed", "the volatile memory backup has failed")),
    Message(
        english("nvme_region_unreliable", "the persistent memory region is unreliable or read-only")
    ),
    Message(english("nvme_reserved_bit", "reserved bit {bit} is set"), {"bit": 6}),
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

    `failed_attributes` were below their threshold once. `error_attributes` are other attributes of
    an ATA disk that count errors. `conditions_met` are statistics that reached a condition set for
    them, `over_minutes` minutes above the specified temperature `specified_c`, in which a disk may
    work for long. `logged_unreadable` counts the
    newest entries of the error log that are of unreadable data, `scan_defects` those of a SCSI
    disk's background scans. `status_alone`: the report has a status and no counter at all.
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
    failed_attributes: tuple[str, ...] = ()
    error_attributes: tuple[tuple[str, int], ...] = ()
    end_to_end_errors: int | None = None
    start_failures: int | None = None
    over_minutes: int | None = None
    specified_c: int | None = None
    conditions_met: tuple[str, ...] = ()
    logged_unreadable: int | None = None
    scan_defects: int | None = None
    scan_stopped: bool = False
    status_alone: bool = False
    parts: frozenset[str] = field(default=frozenset(), compare=False)


SELF_TESTS_FAILED = Message(english("disk_self_tests_failed", "failed self-tests"))


def faults(health: Health) -> tuple[Message, ...]:
    """Every fault that the disk's report proves, of whatever age the disk; empty if there is none.

    `disk_counts` has what else a report tells: what warns, and what a new disk must not have.
    """
    found: list[Message] = []
    if health.passed is False:
        found.append(
            Message(english("smart_status_failed", "the disk's own SMART status is FAILED"))
        )
    found += [
        Message(
            english("smart_attribute_low", "SMART attribute {name} is below its threshold"),
            {"name": name},
        )
        for name in health.failing_attributes
    ]
    warning = health.critical_warning or 0
    found += [
        Message(english("nvme_warning", "critical warning: {what}"), {"what": told})
        for bit, told in enumerate(CRITICAL_WARNINGS)
        if warning >> bit & 1
    ]
    spare, threshold = health.available_spare, health.spare_threshold
    if spare is not None and threshold is not None and spare < threshold:
        values = {"spare": str(spare), "threshold": str(threshold)}
        found.append(
            Message(
                english(
                    "disk_spare_low",
                    "available spare is {spare} %, below its threshold of {threshold} %",
                ),
                values,
            )
        )
    counts = (
        (health.media_errors, Message(english("disk_media_errors", "media errors"))),
        (
            health.pending_sectors,
            Message(english("disk_sectors_pending", "sectors waiting to be reallocated")),
        ),
        (
            health.offline_uncorrectable,
            Message(english("disk_sectors_offline", "sectors found unreadable by offline scans")),
        ),
        (health.uncorrected_errors, Message("disk_errors_uncorrected")),
        (health.failed_self_tests, SELF_TESTS_FAILED),
    )
    found += [
        Message("disk_counts", {"count": str(number), "what": what})
        for number, what in counts
        if number
    ]
    hot, limit = health.temperature_c, health.critical_c
    if hot is not None and limit is not None and hot > limit:
        found.append(Message("disk_hot", {"temperature": str(hot), "limit": str(limit)}))
    return tuple(found)


# What a counter that grew counts: a sound disk does none of it while it works. Those of the second
# table may fall too: a sector that was written again turned out sound, a log has room for the
# newest entries alone.
_GROWS = (
    ("media_errors", Message("disk_media_errors")),
    ("unsafe_shutdowns", Message("disk_unsafe_shutdowns")),
    ("power_cycles", Message(english("disk_power_cycles", "power cycles"))),
    ("reallocated_sectors", Message("disk_sectors_reallocated")),
    ("reported_uncorrectable", Message("disk_sectors_reported")),
    ("uncorrected_errors", Message("disk_errors_uncorrected")),
    ("grown_defects", Message("disk_grown_defects")),
    ("crc_errors", Message("disk_crc_errors")),
    ("end_to_end_errors", Message("disk_end_to_end_errors")),
    ("start_failures", Message("disk_start_failures")),
    ("over_minutes", Message("disk_over_minutes")),
    ("warning_minutes", Message("disk_warning_minutes")),
    ("critical_minutes", Message("disk_critical_minutes")),
    (
        "light_throttles",
        Message(english("disk_light_throttles", "transitions into light throttling by heat")),
    ),
    (
        "heavy_throttles",
        Message(english("disk_heavy_throttles", "transitions into heavy throttling by heat")),
    ),
)
_RISES_AND_FALLS = (
    ("pending_sectors", Message("disk_sectors_pending")),
    ("offline_uncorrectable", Message("disk_sectors_offline")),
    (
        "logged_unreadable",
        Message(
            english("disk_log_unreadable_entries", "entries of unreadable data in its error log")
        ),
    ),
    ("scan_defects", Message("disk_scan_defects")),
)
# Counters that grow while nothing is wrong, and never fall.
_CLOCKS = (
    ("power_on_hours", Message("disk_power_on_hours")),
    ("data_units_written", Message(english("disk_units_written", "data units written"))),
    ("light_throttle_s", Message(english("disk_light_throttle_s", "seconds of light throttling"))),
    ("heavy_throttle_s", Message(english("disk_heavy_throttle_s", "seconds of heavy throttling"))),
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
        raise ReportsDiffer(
            english(
                "disk_serial_differs",
                "the report before the run is of a disk with serial number {before}, the one "
                "after it of {after}: was the disk changed during the run? Run again",
            ),
            **values,
        )
    found = []
    for name, what in (*_GROWS, *_CLOCKS, *_RISES_AND_FALLS):
        grew = _difference(name, before, after) or 0
        if grew < 0 and (name, what) not in _RISES_AND_FALLS:
            raise ReportsDiffer(
                english(
                    "disk_counter_fell",
                    "the disk's counter of {what} fell by {count} during the run, and such "
                    "counters only grow: read it by hand (`smartctl -a`), update the disk's "
                    "firmware, and run again",
                ),
                what=what,
                count=str(-grew),
            )
        if grew > 0 and (name, what) not in _CLOCKS:
            found.append(
                Message(
                    english("disk_grew", "{count} {what} since the run began"),
                    {"count": str(grew), "what": what},
                )
            )
    hot, limit = after.temperature_c, after.warning_c
    if hot is not None and limit is not None and hot >= limit:
        found.append(Message("disk_hot", {"temperature": str(hot), "limit": str(limit)}))
    return tuple(found)


def lost(before: Health, after: Health) -> tuple[str, ...]:
    """The logs, attributes and values of the first report that the second one has not."""
    # The error log is one of the parts.
    told = {*_LEFT_OUT_AT_0, "logged_unreadable"}
    values = [one.name for one in fields(Health) if one.name not in told]
    gone = [name for name in values if getattr(before, name) is not None]
    parts = before.parts - after.parts
    return (
        *sorted(name for name in parts if name.rpartition(" ")[0] not in parts),
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
