"""What a machine file declares, as values by key."""

from __future__ import annotations

import msgspec

Fact = bool | int | float | str


class OwnLimit(msgspec.Struct, frozen=True):
    """A limit of the machine file's own; without `component` it is of every one."""

    measurement: str
    unit: str
    component: str | None = None
    low: float | None = None
    high: float | None = None


class Declared(msgspec.Struct, frozen=True):
    """The declared facts by key (`gpus`, `gpu0.model`), and limits; none without a machine file."""

    facts: dict[str, Fact] = {}
    limits: tuple[OwnLimit, ...] = ()
