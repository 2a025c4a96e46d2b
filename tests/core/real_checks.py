"""The real checks, as pytest collects them: once a process, for it takes a session of its own."""

from __future__ import annotations

import functools
from pathlib import Path

from acceptance.expect.collected import CollectedCheck
from acceptance.run import planning
from acceptance.session import context


@functools.cache
def answer() -> context.Answer:
    """What the package's own pytest collects on a machine without files."""
    return planning.collect(Path("/"))


def collected() -> tuple[CollectedCheck, ...]:
    """Every check there is."""
    return answer().checks
