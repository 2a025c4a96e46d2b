"""What a finding says of itself: its code and the codes of its note against a likely cause. Pure.

Each rule answers None where the finding does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from acceptance.core.finding import Finding
from acceptance.core.message import Listed, Message, Quantity, Value
from acceptance.core.parts import Gpu, Part

NoteRule = Callable[[Finding], bool | None]

_HEAT = frozenset(
    {
        "disk_hot",
        "disk_over_minutes",
        "disk_warning_minutes",
        "disk_critical_minutes",
        "disk_light_throttles",
        "disk_heavy_throttles",
        "nvme_temperature_outside",
        "attribute-temperature",
    }
)
_FAILURE = frozenset(
    {
        "disk_spare_low",
        "disk_media_errors",
        "disk_sectors_pending",
        "disk_sectors_offline",
        "disk_sectors_reallocated",
        "disk_sectors_reported",
        "disk_errors_uncorrected",
        "disk_grown_defects",
        "disk_end_to_end_errors",
        "disk_log_unreadable",
        "disk_log_unreadable_entries",
        "disk_scan_defects",
        "disk_self_tests_failed",
        "disk_start_failures",
        "nvme_spare_low",
        "nvme_degraded",
        "nvme_read_only",
        "nvme_backup_failed",
        "nvme_region_unreliable",
        "attribute",
    }
)
_LINK = frozenset({"disk_grew disk_crc_errors", "attribute-crc"})
_POWER = frozenset({"disk_grew disk_unsafe_shutdowns", "disk_grew disk_power_cycles"})
_STATUS_FAILED, _STATUS_ALONE = "smart_status_failed", "disk_status_alone"
_WORN, _USED = "disk_used_up", "disk_used_new"
_FAULTS_OF_DISKS = _HEAT | _FAILURE | _LINK | _POWER | {_STATUS_FAILED}
_WARNINGS_OF_DISKS = _HEAT | _FAILURE | {_STATUS_ALONE, _WORN}
_LOST_MEMBER = frozenset({"raid_degraded", "raid_faulty"})
_REFUSED = frozenset({"raid_write_error", "raid_want_replacement"})
_BLOCKED, _DIFFER = frozenset({"raid_blocked"}), frozenset({"raid_mismatches"})
_FAULTS_OF_RAID = _LOST_MEMBER | _REFUSED | _BLOCKED | _DIFFER
_GONE_MEMBER = frozenset({"raid_vanished", "raid_member_vanished"})
_GROWTH_OF_RAID = _GONE_MEMBER | {"raid_errors_grew", "raid_bad_blocks_grew", "raid_counted"}
_CARDS = frozenset({"xid", "sxid", "aer", "pcie", "gpu-lost", "gpu-hang", "rm-init"})
_PROCESSOR = frozenset({"mce", "edac", "memory-failure"})
_KINDS = _CARDS | _PROCESSOR | {"disk"}
_ATTRIBUTES = ("smart_attribute_low", "smart_attribute_was_low")


def codes(value: Value | None) -> frozenset[str]:
    """The codes of a note and of what it says, a counter's also with that of what it does:
    `disk_grew disk_crc_errors`.

    An attribute of a drive's report is `attribute-crc` or `attribute-temperature` by its name, and
    any other `attribute`.
    """
    return frozenset(_codes(value))


def _codes(value: Value | None) -> Iterator[str]:
    if isinstance(value, tuple | Listed):
        for one in value if isinstance(value, tuple) else value.items:
            yield from _codes(one)
    elif isinstance(value, Message):
        yield value.code
        if value.code in _ATTRIBUTES:
            yield from map(_attribute, _names(value))
        elif value.code != "disk_not_offered":  # what the report does not have
            for part in value.values.values():
                if isinstance(part, Message):
                    yield f"{value.code} {part.code}"
                yield from _codes(part)


def _names(message: Message) -> Iterator[str]:
    for part in message.values.values():
        items = part.items if isinstance(part, Listed) else (part,)
        yield from (one for one in items if isinstance(one, str))


def _attribute(name: str) -> str:
    words = name.lower()
    if "crc" in words:
        return "attribute-crc"
    return "attribute-temperature" if "temperature" in words else "attribute"


def _says(
    wanted: frozenset[str], known: frozenset[str], beside: frozenset[str] = frozenset()
) -> NoteRule:
    """Whether a note has one of the codes that are wanted, and none that speaks against it.

    It does not say where it has none of the codes that are known.
    """

    def rule(finding: Finding) -> bool | None:
        found = codes(finding.note)
        return bool(found & wanted) and not found & beside if found & known else None

    return rule


def disk_fails(found: frozenset[str]) -> bool:
    """Whether a report says that the disk is failing; its own status alone says so without heat."""
    return bool(found & _FAILURE) or (_STATUS_FAILED in found and not found & _HEAT)


def _failure(finding: Finding) -> bool | None:
    found = codes(finding.note)
    return disk_fails(found) if found & _FAULTS_OF_DISKS else None


def _wear(finding: Finding) -> bool | None:
    found = codes(finding.note)
    if _WORN in found:
        return True
    return None if found & _FAILURE or not found & _WARNINGS_OF_DISKS else False


def _used(finding: Finding) -> bool | None:
    return True if _USED in codes(finding.note) else None


def _link(finding: Finding) -> bool | None:
    """Whether the kernel lists a declared link by its name."""
    note, link = finding.note, finding.component
    if not isinstance(note, Message) or note.code != "links_found" or not isinstance(link, Part):
        return None
    found = note.values.get("links")
    return link.name in found.items if isinstance(found, Listed) else False


def _kernel(wanted: frozenset[str]) -> NoteRule:
    """Whether one of the faults that a note counts is of such a kind."""

    def rule(finding: Finding) -> bool | None:
        kinds = _kernel_kinds(finding.note)
        if kinds & wanted:
            return True
        return False if kinds <= _KINDS and _is_whole(finding) else None

    return rule


def _several_kinds(finding: Finding) -> bool | None:
    return False if len(_kernel_kinds(finding.note)) == 1 and _is_whole(finding) else None


def _kernel_lines(value: Value | None) -> Iterator[Message]:
    if isinstance(value, tuple):
        for one in value:
            yield from _kernel_lines(one)
    elif isinstance(value, Message) and value.code == "kernel_fault":
        yield value
    elif isinstance(value, Message):
        for part in value.values.values():
            yield from _kernel_lines(part)


def _kernel_kinds(note: Value | None) -> frozenset[str]:
    return frozenset(_kernel_kind(str(one.values["event"])) for one in _kernel_lines(note))


def _kernel_kind(event: str) -> str:
    """The kind of an event; of a report of the firmware that of the part that it names."""
    kind, _, code = event.partition(" ")
    if kind != "apei":
        return kind
    return "pcie" if "PCIe" in code else "mce" if "processor" in code or "memory" in code else kind


def _is_whole(finding: Finding) -> bool:
    """Whether a note has each of the faults that its finding counts."""
    count = finding.values.get("measured")
    return isinstance(count, Quantity) and count.value == len(list(_kernel_lines(finding.note)))


# Fields of the fabric's health in the driver's words, with the value where it matters.
_FEWER_LINKS = frozenset({"Bandwidth", "Incorrect Configuration: Insufficient Nvlinks"})
_ROUTE = frozenset({"Route Recovery in progress", "Route Unhealthy", "Access Timeout Recovery"})


def _fabric(finding: Finding) -> frozenset[str]:
    """The fields of the fabric's health that a note names, each also with its value."""
    note = finding.note
    if not isinstance(note, Message) or note.code != "driver_says":
        return frozenset()
    what = note.values.get("what")
    said = what.items if isinstance(what, Listed) else ()
    fields = [one for one in said if isinstance(one, str)]
    return frozenset({*fields, *(one.partition(":")[0] for one in fields)})


def _fabric_says(wanted: Callable[[frozenset[str]], bool]) -> NoteRule:
    """Whether the fields are such; a summary alone does not say which field it is."""

    def rule(finding: Finding) -> bool | None:
        found = frozenset(one for one in _fabric(finding) if not one.startswith("Summary"))
        return wanted(found) if found else None

    return rule


def _own(*events: str) -> NoteRule:
    """Whether the finding's own event is one of these."""
    return lambda finding: None if finding.event is None else finding.event in events


def _not(rule: NoteRule) -> NoteRule:
    def opposite(finding: Finding) -> bool | None:
        answer = rule(finding)
        return None if answer is None else not answer

    return opposite


_PORT = frozenset({"network_port_gone", "network_port_fell"})
NOTE_RULES: Mapping[str, NoteRule] = MappingProxyType(
    {
        "disk_report_of_heat": _says(_HEAT, _FAULTS_OF_DISKS | _WARNINGS_OF_DISKS),
        "disk_report_of_failure": _failure,
        "disk_report_of_the_link": _says(_LINK, _FAULTS_OF_DISKS, _FAILURE),
        "disk_report_of_power": _says(_POWER, _FAULTS_OF_DISKS),
        "disk_report_of_wear": _wear,
        "disk_report_of_use": _used,
        "disk_report_of_status_alone": _says(frozenset({_STATUS_ALONE}), _WARNINGS_OF_DISKS),
        "raid_lost_a_member": _says(_LOST_MEMBER, _FAULTS_OF_RAID),
        "raid_member_was_refused": _says(_REFUSED, _FAULTS_OF_RAID),
        "raid_member_is_blocked": _says(_BLOCKED, _FAULTS_OF_RAID),
        "raid_contents_differ": _says(_DIFFER, _FAULTS_OF_RAID),
        "raid_member_is_gone": _says(_GONE_MEMBER, _GROWTH_OF_RAID),
        "network_port_is_gone": _says(frozenset({"network_port_gone"}), _PORT),
        "network_port_is_there": _says(frozenset({"network_port_fell"}), _PORT),
        "link_is_there": _link,
        "link_is_not_there": _not(_link),
        "kernel_faults_of_cards": _kernel(_CARDS),
        "kernel_faults_of_processor_and_memory": _kernel(_PROCESSOR),
        "kernel_faults_of_disks": _kernel(frozenset({"disk"})),
        "kernel_faults_of_several_kinds": _several_kinds,
        "driver_of_two_versions": _own("driver.mismatch"),
        "driver_that_does_not_fit": _own("driver.open-modules", "driver.unsupported"),
        "driver_beside_another": _own("driver.bound"),
        "fabric_has_fewer_links": _fabric_says(lambda found: bool(found & _FEWER_LINKS)),
        "fabric_route_failed": _fabric_says(lambda found: bool(found & _ROUTE)),
        "fabric_is_set_up_wrong": _fabric_says(
            lambda found: "Incorrect Configuration" in found and not found & _FEWER_LINKS
        ),
        "firmware_names_memory": _own("apei.memory error"),
        "firmware_names_pcie": _own("apei.PCIe error"),
        "firmware_names_the_processor": _own(
            "apei.general processor error",
            "apei.IA32/X64 processor error",
            "apei.ARM processor error",
        ),
        "not_of_a_gpu": lambda finding: False if isinstance(finding.component, Gpu) else None,
        "not_of_a_memory_module": lambda finding: (
            False
            if isinstance(finding.component, Part) and finding.component.kind == "dimm"
            else None
        ),
        "of_one_load_alone": lambda finding: (
            False if finding.code == "xid_again_in_loads" else None
        ),
        "in_several_loads": lambda finding: finding.code == "xid_again_in_loads" or None,
    }
)
