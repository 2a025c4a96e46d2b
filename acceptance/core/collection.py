"""The sessions of a run, and the patterns that name checks."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Literal

Session = Literal["host-before", "load", "host-after"]
SESSIONS: tuple[Session, ...] = ("host-before", "load", "host-after")
# Repeats checks of the load session whose measurements differed from this machine's earlier nights.
# No plan contains it.
REPEAT_SESSION: Literal["load-again"] = "load-again"
SessionName = Literal["host-before", "load", "load-again", "host-after"]


def matches_patterns(check_id: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern of `--only` matches this check.

    A pattern is an id, a subject, an id without its parameter, or a shell pattern.
    """
    return any(
        check_id == pattern
        or check_id.startswith((pattern + ".", pattern + "["))
        or fnmatch.fnmatchcase(check_id, pattern)
        for pattern in patterns
    )
