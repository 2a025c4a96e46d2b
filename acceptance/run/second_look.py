"""Which checks need a repeat. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.finding import DRIFT, Finding
from acceptance.core.judgement import Judgement


def should_repeat(judged: Sequence[Judgement], findings: Sequence[Finding]) -> bool:
    """Whether a check needs a repeat: a value outside its past, and nothing else wrong.

    A check that failed by a limit, or did not finish, is never run again.
    """
    outside = any(one.drift is not None and one.drift.look_again for one in judged)
    own = f"{DRIFT}."
    sound = all(
        finding.kind in ("warn", "waived") or str(finding.event).startswith(own)
        for finding in findings
    )
    return outside and sound
