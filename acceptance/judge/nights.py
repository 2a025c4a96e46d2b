"""One value of one measurement on one night, as it is remembered. Pure."""

from __future__ import annotations

import msgspec


class Look(msgspec.Struct, frozen=True, gc=False):
    """What one measurement of one part gave on one night.

    `day` is in days since 1970-01-01 in UTC, with its fraction; `value` and `again`, where a second look was taken, are in the
    measurement's unit. `outside` and `unsteady` are what that night's judgement said: beyond the bound of its past (and still so at the
    second look, where there was one), or beyond it at the first look and within it at the second. `failed` says that it broke its limit,
    and nothing waived that: it counts as a night outside, and is never part of what is usual.
    """

    day: float
    value: float
    again: float | None = None
    outside: bool = False
    unsteady: bool = False
    failed: bool = False
