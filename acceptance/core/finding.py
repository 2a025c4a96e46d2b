"""A finding: one thing that the reader of a run must know."""

from __future__ import annotations

from typing import Literal

import msgspec

from acceptance.core.message import Text, Values
from acceptance.core.parts import Component
from acceptance.core.past import DriftFinding

FindingKind = Literal["fail", "error", "skip", "warn", "waived"]
# Findings of drift have this event kind, such as `drift.step`.
DRIFT = "drift"
RUN = "run"  # the check of what concerns the whole run


class Finding(msgspec.Struct, frozen=True):
    """One thing that the reader must know: a code with values, as a `Message` has them.

    `kind` decides the effect on the outcome; warn and waived have none. The wording of `code` may
    name `measurement` and `component` too; the value `measured` is what was measured. `note` is
    what was observed, where that is too long for the line. For an event, `event` is its kind and
    code (`xid.79`, `oom`), which selects its causes, `action` is what to do about it, and `quote`
    the kernel's own line. A finding of drift has `drift` in place of values.

    Of several findings of one fault the first counts, and names the checks of the others in
    `also_in`; each of these has its check (or "run") as `duplicate_of`.
    """

    kind: FindingKind
    check: str
    code: str
    values: Values = {}
    measurement: str | None = None
    component: Component | None = None
    action: tuple[str, ...] = ()
    quote: str | None = None
    note: Text | None = None
    event: str | None = None
    drift: DriftFinding | None = None
    also_in: tuple[str, ...] = ()
    duplicate_of: str | None = None
    # an error only because the value is missing: a better reason replaces it
    unmeasured: bool = False

    def __hash__(self) -> int:
        return hash((self.kind, self.check, self.code, self.measurement, self.component))
