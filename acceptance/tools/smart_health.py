"""A disk's own report of its health, and the faults that it proves."""

from __future__ import annotations

from dataclasses import dataclass

# NVMe base specification, SMART / Health Information log, Critical Warning.
CRITICAL_WARNINGS = (
    "available spare is below its threshold",
    "temperature is outside its thresholds",
    "reliability is degraded by media or internal errors",
    "media has become read-only",
    "the volatile memory backup has failed",
    "the persistent memory region is unreliable or read-only",
    "reserved bit 6 is set",
    "reserved bit 7 is set",
)


@dataclass(frozen=True, slots=True)
class Health:
    """What the disk reports. What it does not offer is None.

    `percentage_used`, `available_spare` and `spare_threshold` are percent; `critical_warning` is a bit mask (`CRITICAL_WARNINGS`).
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


def faults(health: Health) -> tuple[str, ...]:
    """Every fault that the disk's own report proves, one sentence each; none for a disk that reports none."""
    found: list[str] = []
    if health.passed is False:
        found.append("the disk's own SMART status is FAILED")
    found += [f"SMART attribute {name} is below its threshold" for name in health.failing_attributes]
    warning = health.critical_warning or 0
    found += [f"critical warning: {text}" for bit, text in enumerate(CRITICAL_WARNINGS) if warning >> bit & 1]
    spare, threshold = health.available_spare, health.spare_threshold
    if spare is not None and threshold is not None and spare < threshold:
        found.append(f"available spare is {spare} %, below its threshold of {threshold} %")
    counts = (
        (health.media_errors, "media errors"),
        (health.pending_sectors, "sectors waiting to be reallocated"),
        (health.offline_uncorrectable, "sectors found unreadable by offline scans"),
        (health.reported_uncorrectable, "unreadable sectors reported to the host"),
        (health.uncorrected_errors, "uncorrected read, write or verify errors"),
        (health.failed_self_tests, "failed self-tests"),
    )
    found += [f"{count} {what}" for count, what in counts if count]
    return tuple(found)
