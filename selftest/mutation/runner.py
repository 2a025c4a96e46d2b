"""The edge: processes that try mutants, some at a time.

Why this and no library. cosmic-ray starts a pytest for every mutant: a second of imports before the
first assertion, for thousands of mutants. mutmut mutates texts as well, so that half of its
survivors are words in messages, and knows nothing of which tests belong to which module. Here one
process imports pytest, hypothesis and the other libraries once, but nothing of rigproof; each
mutant is a fork of it that finds the mutated module in place of the real one and runs the module's
own tests first, stopping at the first that notices.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from selftest.mutation import child, operators
from selftest.mutation.subjects import Subject

PATIENCE_S = 20.0  # beside five times what the tests take without a mutation
HANGS = "(hangs)"


@dataclass(frozen=True, slots=True)
class Job:
    """One mutant of one subject, and the stage of its tests that it has come to.

    No mutation: the baseline.

    `source` is the module's text as the mutation was made from: who edits the file meanwhile
    mutates nothing else than what is told.
    """

    subject: Subject
    source: str = ""
    mutation: operators.Mutation | None = None
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a job: who noticed (empty: nobody), and for how long it ran."""

    job: Job
    by: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Running:
    job: Job
    pid: int
    pipe: int
    began: float
    until: float


def prepare(root: Path, compiled: Path) -> None:
    """Import what every mutant needs and is no part of rigproof."""
    import hypothesis
    import hypothesis.extra
    import junitparser  # noqa: F401
    import msgspec  # noqa: F401
    import numpy  # noqa: F401
    import pynvml  # noqa: F401
    import rich.console  # noqa: F401

    # That a property fails is all there is to know: nobody reads the smallest case of it, which
    # takes far longer to find.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, max_examples=20, deadline=None, database=None, phases=phases
    )
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "acceptance")
    if loaded:
        raise RuntimeError(f"{loaded[0]} is already imported: a mutant of it would not be seen")
    # Compiled tests and modules are kept between mutants, and outside the checkout.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(compiled)
    sys.path.insert(0, str(root))


def task(root: Path, job: Job) -> child.Task:
    """What the forked process does."""
    mutation, subject = job.mutation, job.subject
    if mutation is None:
        return child.Task(subject.stages[job.stage])

    def mutated() -> child.Served:
        return child.Served(
            subject.module, root / subject.path, operators.apply(job.source, mutation)
        )

    return child.Task(subject.stages[job.stage], mutated)


def run(
    queue: deque[Job],
    start: Callable[[Job], tuple[int, int]],
    jobs: int,
    limit_s: Callable[[Job], float],
    scratch: Path,
) -> Iterator[Tried]:
    """Try every job of the queue, so many at a time; each as it ends.

    Who takes a result may put more jobs on the queue.
    """
    running: dict[int, _Running] = {}
    while True:
        while len(running) < jobs and queue:
            job = queue.popleft()
            began = time.monotonic()
            pid, pipe = start(job)
            running[pipe] = _Running(job, pid, pipe, began, began + limit_s(job))
        if not running:
            return
        left = min(one.until for one in running.values()) - time.monotonic()
        ready, _, _ = select.select(list(running), [], [], max(left, 0.0))
        for pipe in ready:
            said = os.read(pipe, 4096).decode()
            # Nothing said: it died, which no sound module does to its tests.
            yield _end(
                running.pop(pipe), said.removeprefix("=").strip() if said else "(died)", scratch
            )
        now = time.monotonic()
        for late in [one for one in running.values() if one.until <= now]:
            yield _end(running.pop(late.pipe), HANGS, scratch)


def _end(one: _Running, by: str, scratch: Path) -> Tried:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(one.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(one.pid, signal.SIGKILL)
    os.waitpid(one.pid, 0)
    os.close(one.pipe)
    shutil.rmtree(scratch / str(one.pid), ignore_errors=True)
    return Tried(one.job, by, time.monotonic() - one.began)
