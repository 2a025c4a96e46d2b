"""The phases and sessions of a run, and the patterns that name checks."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Sequence
from typing import Literal

Session = Literal["host-before", "gpu-load", "host-load", "load", "host-after", "site"]
GPU_LOAD: Session = "gpu-load"  # its checks load only GPUs
HOST_LOAD: Session = "host-load"  # its checks load only processors, RAM and disks
SITE: Session = "site"  # its checks are the site's own (--checks), on the host
# The sessions of a phase run side by side; a phase begins when the one before it has ended.
PHASES: tuple[tuple[Session, ...], ...] = (
    ("host-before",),
    (GPU_LOAD, HOST_LOAD),
    ("load",),
    ("host-after",),
    (SITE,),
)
SESSIONS: tuple[Session, ...] = tuple(session for phase in PHASES for session in phase)
# The sessions whose checks load the machine; those of `load` share what they measure, or load all
# of it.
LOAD_SESSIONS: tuple[Session, ...] = (GPU_LOAD, HOST_LOAD, "load")
# Repeats checks of the load sessions whose measurements differed from this machine's earlier
# nights, alone and after them. No plan contains it.
REPEAT_SESSION: Literal["load-again"] = "load-again"
SessionName = Literal[
    "host-before", "gpu-load", "host-load", "load", "load-again", "host-after", "site"
]


def segment_of(session: SessionName) -> str:
    """The file name of a session's own segment of the journal."""
    return f"journal-{session}.jsonl"


def earlier_sessions(session: SessionName) -> tuple[Session, ...]:
    """The sessions that have ended before this one begins; none for a repeat.

    The other session of its own phase is not among them.
    """
    phases = iter(PHASES) if session != REPEAT_SESSION else iter(())
    return tuple(
        one
        for phase in itertools.takewhile(lambda phase: session not in phase, phases)
        for one in phase
    )


def side_by_side(one: SessionName, other: SessionName) -> bool:
    """Whether these two sessions are of one phase."""
    return one != other and any({one, other} <= set(phase) for phase in PHASES)


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
