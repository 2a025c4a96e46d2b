"""A finding: one thing that the reader of a run must know."""

from __future__ import annotations

from typing import Literal

import msgspec

FindingKind = Literal["fail", "error", "skip", "warn", "waived"]
# an event of this kind, `drift.step` say, is a finding about what a measurement was before
DRIFT = "drift"


class Finding(msgspec.Struct, frozen=True):
    """One thing that the reader must know, as one line; `kind` says what it does to the outcome
    (warn and waived do nothing).

    `note` is what was looked at, where that is too long for the line. Of an event, `event` is its
    kind and code (`xid.79`, `oom`), by which its causes are found, `action` what it asks for, and
    `quote` the kernel's own line.
    """

    kind: FindingKind
    check: str
    text: str
    measurement: str | None = None
    component: str | None = None
    action: str | None = None
    quote: str | None = None
    note: str | None = None
    event: str | None = None
    unmeasured: bool = (
        False  # an error only because the value is missing: a better reason replaces it
    )
