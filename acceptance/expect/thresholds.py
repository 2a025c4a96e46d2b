"""Thresholds of what is judged without being a measurement, each with its basis
(`fixtures/thresholds.toml`).
"""

from __future__ import annotations

import functools
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.strict import Strict, Text

FILE = "thresholds.toml"


class _Sensor(Strict, frozen=True):
    missing: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    basis: Text


class _Raid(Strict, frozen=True):
    blocked_s: Annotated[float, msgspec.Meta(gt=0)]
    basis: Text


class Thresholds(Strict, frozen=True):
    """`thresholds.toml`.

    `sensor.missing` is the largest share of a check's samples that may be missing or out of range;
    `raid.blocked_s` the longest time in seconds for which a RAID member may be blocked.
    """

    sensor: _Sensor
    raid: _Raid


@functools.cache
def thresholds() -> Thresholds:
    """The shipped file. Raises DataFileError."""
    return resources.read(resources.locate(FILE), Thresholds)
