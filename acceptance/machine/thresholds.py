"""Thresholds of what is judged without being a measurement, each with its basis
(`fixtures/thresholds.toml`).
"""

from __future__ import annotations

import functools
import math
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.strict import Strict, Text

FILE = "thresholds.toml"

Range = tuple[float, float]
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
# Infinity, or what no value reaches, would switch a proof off.
_Above = Annotated[float, msgspec.Meta(gt=0, le=10**9)]
_Factor = Annotated[float, msgspec.Meta(ge=1, le=10**9)]


class _Sensor(Strict, frozen=True):
    missing: _Share
    basis: Text


class _Raid(Strict, frozen=True):
    blocked_s: _Above
    basis: Text


class _Work(Strict, frozen=True):
    load_s: _Above
    share: _Share
    power: _Share
    in_use: _Share
    full_use: _Share
    basis: Text


class _Power(Strict, frozen=True):
    still_s: _Above
    agree_share: _Share
    agree_j: _Above
    idle_power: _Share
    idle_clock: _Share
    basis: Text


class _Samples(Strict, frozen=True):
    gap_s: _Above
    period_s: _Above
    step_s: _Above
    basis: Text


class _LoneSample(Strict, frozen=True):
    lasts_s: _Above
    edge_s: _Above
    most: Annotated[int, msgspec.Meta(ge=0)]
    basis: Text


class _Program(Strict, frozen=True):
    ran: _Share
    basis: Text


class _PeerPath(Strict, frozen=True):
    no_gain: _Factor
    gain: _Factor
    host: _Share
    one_way: _Share
    tools: _Share
    collective: _Share
    basis: Text


class _HostSensor(Strict, frozen=True):
    late_s: _Above
    basis: Text


class _Disk(Strict, frozen=True):
    reached: _Share
    declared: _Share
    sheet: _Share
    basis: Text


class _NewDisk(Strict, frozen=True):
    most_used_percent: Annotated[int, msgspec.Meta(ge=0, le=99)]
    basis: Text


class _Card(Strict, frozen=True):
    reserved_mib: _Above
    reserved_share: _Share
    clock: _Factor
    basis: Text


class _Range(Strict, frozen=True):
    between: Range
    basis: Text

    def __post_init__(self) -> None:
        if not self.between[0] < self.between[1] or not all(map(math.isfinite, self.between)):
            raise ValueError("needs the least before the most, both finite")


class Ranges(Strict, frozen=True):
    """`[range.*]`: the possible values of sensors, by kind."""

    chip_c: _Range
    memory_c: _Range
    margin_c: _Range
    cpu_c: _Range
    disk_c: _Range
    power_w: _Range
    power_limit_w: _Range
    energy_j: _Range
    clock_mhz: _Range
    memory_clock_mhz: _Range
    share: _Range
    fan: _Range
    link_gen: _Range
    link_width: _Range
    time_s: _Range
    counter: _Range


class _OwnRange(Strict, frozen=True):
    power: _Factor
    clock: _Factor
    basis: Text


class Thresholds(Strict, frozen=True):
    """`thresholds.toml`; what each key means stands there beside it."""

    sensor: _Sensor
    raid: _Raid
    work: _Work
    power: _Power
    samples: _Samples
    lone_sample: _LoneSample
    program: _Program
    peer_path: _PeerPath
    host_sensor: _HostSensor
    disk: _Disk
    new_disk: _NewDisk
    card: _Card
    range: Ranges
    own_range: _OwnRange


@functools.cache
def thresholds() -> Thresholds:
    """The shipped file. Raises SetupError."""
    return resources.read(resources.locate(FILE), Thresholds)
