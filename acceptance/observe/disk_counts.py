"""What a disk's report counts and is no fault by itself: shown, a warning, or too much for a new
disk.
"""

from __future__ import annotations

from acceptance.core.message import Listed, Message
from acceptance.observe.smart import Health

# NVMe base specification, SBC and ACS: at 100 per cent the estimated endurance is used up.
_USED_UP = 100
# What a disk counts in its life. A new one has none of it; `smart.faults` has what is a fault at
# every age.
_LIFETIME = (
    ("reallocated_sectors", Message("disk_sectors_reallocated")),
    ("grown_defects", Message("disk_grown_defects")),
    ("reported_uncorrectable", Message("disk_sectors_reported")),
    ("logged_unreadable", Message("disk_log_unreadable")),
    ("scan_defects", Message("disk_scan_defects")),
    ("end_to_end_errors", Message("disk_end_to_end_errors")),
    ("start_failures", Message("disk_start_failures")),
    ("over_minutes", Message("disk_over_minutes")),
    ("warning_minutes", Message("disk_warning_minutes")),
    ("critical_minutes", Message("disk_critical_minutes")),
)
# What a disk counts in its use, a new one too.
_USE = (
    ("power_on_hours", Message("disk_power_on_hours")),
    ("unsafe_shutdowns", Message("disk_unsafe_shutdowns")),
    ("crc_errors", Message("disk_crc_errors")),
    ("error_log_entries", Message("disk_error_log_entries")),
)
# What standards have for disks, by what tells it.
_STANDARD = (
    (("reallocated_sectors", "grown_defects", "available_spare"), Message("disk_sectors_spare")),
    (
        ("reported_uncorrectable", "uncorrected_errors", "media_errors"),
        Message("disk_errors_uncorrected"),
    ),
    (("percentage_used",), Message("disk_life")),
    (("failed_self_tests",), Message("disk_self_test_log")),
    (("temperature_c",), Message("disk_celsius")),
    (("warning_c", "critical_c", "specified_c"), Message("disk_celsius_limit")),
)


def _counted(health: Health, names: tuple[tuple[str, Message], ...]) -> tuple[Message, ...]:
    return tuple(
        Message("disk_counts", {"count": str(number), "what": what})
        for name, what in names
        if (number := getattr(health, name))
    )


def offered(health: Health) -> bool:
    """Whether the report has a count of what goes bad in a disk's life."""
    return any(getattr(health, name) is not None for names, _ in _STANDARD[:2] for name in names)


def beyond_new(health: Health, most_used: int) -> tuple[Message, ...]:
    """What a new disk must not have: counts of its life, used life above `most_used` per cent."""
    used = health.percentage_used
    worn = used is not None and used > most_used
    return (
        *_counted(health, _LIFETIME),
        *([Message("disk_used_new", {"used": str(used), "most": str(most_used)})] if worn else []),
    )


def warnings(health: Health) -> tuple[Message, ...]:
    """What is past a threshold of the standard or of the disk's own, and is no fault yet."""
    found: list[Message] = []
    used, hot = health.percentage_used, health.temperature_c
    if used is not None and used >= _USED_UP:
        found.append(Message("disk_used_up", {"used": str(used)}))
    if health.failed_attributes:
        names = Listed(health.failed_attributes)
        found.append(Message("smart_attribute_was_low", {"names": names}))
    if health.conditions_met:
        found.append(Message("disk_conditions_met", {"names": Listed(health.conditions_met)}))
    if hot is not None and (limit := _passed_limit(health, hot)) is not None:
        found.append(Message("disk_hot", {"temperature": str(hot), "limit": str(limit)}))
    if health.scan_stopped:
        found.append(Message("disk_scan_stopped"))
    if health.status_alone:
        found.append(Message("disk_status_alone"))
    return tuple(found)


def _passed_limit(health: Health, hot: int) -> int | None:
    """The temperature of a disk's own that it has passed, below its critical one."""
    if health.critical_c is not None and hot > health.critical_c:
        return None  # a fault
    if health.warning_c is not None and hot >= health.warning_c:
        return health.warning_c
    return health.specified_c if hot > (health.specified_c or hot) else None


def shown(health: Health) -> tuple[Message, ...]:
    """What else the report counts, and what it does not have."""
    lacks = tuple(
        what for names, what in _STANDARD if all(getattr(health, name) is None for name in names)
    )
    attributes = tuple(
        Message("disk_attribute", {"name": name, "count": str(number)})
        for name, number in health.error_attributes
    )
    return (
        *_counted(health, _LIFETIME),
        *attributes,
        *_counted(health, _USE),
        *([Message("disk_not_offered", {"what": Listed(lacks)})] if lacks else []),
    )
