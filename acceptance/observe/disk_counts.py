"""What a disk's report counts and is no fault by itself: shown, a warning, or too much for a new
disk.
"""

from __future__ import annotations

from acceptance.core.message import Listed, Message, english
from acceptance.observe.smart import Health

# NVMe base specification, SBC and ACS: at 100 per cent the estimated endurance is used up.
_USED_UP = 100
# What a disk counts in its life. A new one has none of it; `smart.faults` has what is a fault at
# every age.
_LIFETIME = (
    ("reallocated_sectors", Message(english("disk_sectors_reallocated", "reallocated sectors"))),
    ("grown_defects", Message(english("disk_grown_defects", "grown defects"))),
    (
        "reported_uncorrectable",
        Message(english("disk_sectors_reported", "unreadable sectors reported to the host")),
    ),
    (
        "logged_unreadable",
        Message(
            english(
                "disk_log_unreadable",
                "of the newest entries of its error log are of unreadable data",
            )
        ),
    ),
    (
        "scan_defects",
        Message(english("disk_scan_defects", "unreadable places found by background scans")),
    ),
    ("end_to_end_errors", Message(english("disk_end_to_end_errors", "end-to-end errors"))),
    ("start_failures", Message(english("disk_start_failures", "failed starts of the spindle"))),
    (
        "over_minutes",
        Message(english("disk_over_minutes", "minutes above the disk's specified temperature")),
    ),
    (
        "warning_minutes",
        Message(english("disk_warning_minutes", "minutes above the disk's warning temperature")),
    ),
    (
        "critical_minutes",
        Message(english("disk_critical_minutes", "minutes above the disk's critical temperature")),
    ),
)
# What a disk counts in its use, a new one too.
_USE = (
    ("power_on_hours", Message(english("disk_power_on_hours", "power-on hours"))),
    (
        "unsafe_shutdowns",
        Message(english("disk_unsafe_shutdowns", "unsafe shutdowns (losses of power)")),
    ),
    ("crc_errors", Message(english("disk_crc_errors", "CRC errors of the SATA link"))),
    ("error_log_entries", Message(english("disk_error_log_entries", "entries of the error log"))),
)
# What standards have for disks, by what tells it.
_STANDARD = (
    (
        ("reallocated_sectors", "grown_defects", "available_spare"),
        Message(english("disk_sectors_spare", "reallocated sectors or spare")),
    ),
    (
        ("reported_uncorrectable", "uncorrected_errors", "media_errors"),
        Message(english("disk_errors_uncorrected", "uncorrected read, write or verify errors")),
    ),
    (("percentage_used",), Message(english("disk_life", "used life"))),
    (("failed_self_tests",), Message(english("disk_self_test_log", "a log of self-tests"))),
    (("temperature_c",), Message(english("disk_celsius", "temperature"))),
    (
        ("warning_c", "critical_c", "specified_c"),
        Message(english("disk_celsius_limit", "a limit for its temperature")),
    ),
)


def _counted(health: Health, names: tuple[tuple[str, Message], ...]) -> tuple[Message, ...]:
    return tuple(
        Message(english("disk_counts", "{count} {what}"), {"count": str(number), "what": what})
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
        *(
            [
                Message(
                    english(
                        "disk_used_new",
                        "{used} % of its rated life is used, and a new disk has used at most "
                        "{most} %",
                    ),
                    {"used": str(used), "most": str(most_used)},
                )
            ]
            if worn
            else []
        ),
    )


def warnings(health: Health) -> tuple[Message, ...]:
    """What is past a threshold of the standard or of the disk's own, and is no fault yet."""
    found: list[Message] = []
    used, hot = health.percentage_used, health.temperature_c
    if used is not None and used >= _USED_UP:
        found.append(
            Message(
                english("disk_used_up", "{used} % of its rated life is used"), {"used": str(used)}
            )
        )
    if health.failed_attributes:
        names = Listed(health.failed_attributes)
        found.append(
            Message(
                english(
                    "smart_attribute_was_low",
                    "SMART attributes were below their threshold once: {names}",
                ),
                {"names": names},
            )
        )
    if health.conditions_met:
        found.append(
            Message(
                english(
                    "disk_conditions_met",
                    "statistics reached a condition that was set for them: {names}",
                ),
                {"names": Listed(health.conditions_met)},
            )
        )
    if hot is not None and (limit := _passed_limit(health, hot)) is not None:
        found.append(
            Message(
                english("disk_hot", "it has {temperature} degC, and its own limit is {limit} degC"),
                {"temperature": str(hot), "limit": str(limit)},
            )
        )
    if health.scan_stopped:
        found.append(
            Message(english("disk_scan_stopped", "its background scan stopped for errors"))
        )
    if health.status_alone:
        found.append(
            Message(
                english(
                    "disk_status_alone",
                    "the report is nothing but the status: no counter and no threshold could be "
                    "read",
                )
            )
        )
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
        Message(
            english("disk_attribute", "attribute {name} counts {count}"),
            {"name": name, "count": str(number)},
        )
        for name, number in health.error_attributes
    )
    return (
        *_counted(health, _LIFETIME),
        *attributes,
        *_counted(health, _USE),
        *(
            [Message(english("disk_not_offered", "not offered: {what}"), {"what": Listed(lacks)})]
            if lacks
            else []
        ),
    )
