"""A finding: one thing that the reader of a run must know."""

from __future__ import annotations

from typing import Literal

import msgspec

FindingKind = Literal["fail", "error", "skip", "warn", "waived"]
# Findings of drift have this event kind, such as `drift.step`.
DRIFT = "drift"


class Finding(msgspec.Struct, frozen=True):
    """One thing that the reader must know, as one line.

    `kind` decides the effect on the outcome; warn and waived have none. `note` is what was
    observed, where that is too long for the line. For an event, `event` is its kind and code
    (`xid.79`, `oom`), which selects its causes, `action` is what to do about it, and `quote` the
    kernel's own line.
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
    # an error only because the value is missing: a better reason replaces it
    unmeasured: bool = False
