"""A campaign: the mutations that are asked for, tried in the code and in the tables, and what
became of each.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from selftest.mutation import child, operators, runner, tables
from selftest.mutation.data import DataMutation
from selftest.mutation.equivalents import Known
from selftest.mutation.runner import Job
from selftest.mutation.score import Result
from selftest.mutation.subjects import Subject

BASELINE_S = 600.0
TELL_EVERY_S = 30.0


class NotGreen(Exception):
    """Something goes wrong without any mutation, so nothing can be said of mutations."""


@dataclass(frozen=True, slots=True)
class TableJob:
    """One mutation of one table."""

    file: Path
    path: str
    mutation: DataMutation


def in_code(root: Path, subjects: Sequence[Subject]) -> Iterator[Job]:
    """Every mutation of these modules."""
    for subject in subjects:
        source = (root / subject.path).read_text(encoding="utf-8")
        for mutation in operators.mutations(source, subject.words, subject.only):
            yield Job(subject, source, mutation)


def in_tables(root: Path, chosen: Callable[[str], bool]) -> Iterator[TableJob]:
    """Every mutation of the tables whose path is chosen."""
    for file in tables.files(root):
        path = str(file.relative_to(root))
        if chosen(path):
            yield from (TableJob(file, path, mutation) for mutation in tables.mutations(file))


def key(job: Job | TableJob) -> tuple[str, str, str]:
    """What the list of equivalent mutations knows a mutation by: path, line's text, change."""
    if isinstance(job, TableJob):
        return job.path, job.mutation.text, job.mutation.change
    assert job.mutation is not None
    return job.subject.path, job.mutation.text, job.mutation.change


def _result(job: Job | TableJob, by: str, known: Known) -> Result:
    path, text, change = key(job)
    assert job.mutation is not None
    rule = "table" if isinstance(job, TableJob) else job.mutation.rule
    return Result(path, job.mutation.line, text, rule, change, by, known.why(path, text, change))


def try_code(
    root: Path, scratch: Path, jobs: Sequence[Job], known: Known, at_a_time: int
) -> list[Result]:
    """Try mutations of code. Raises NotGreen.

    Not to be called where anything of rigproof was imported.
    """
    if not jobs:
        return []
    runner.prepare(root, scratch / "compiled")
    results: list[Result] = []
    trouble: list[str] = []

    def drive(start: Callable[[child.Task], tuple[int, int]]) -> None:
        try:
            results.extend(_stages(root, scratch, jobs, known, at_a_time, start))
        except NotGreen as error:  # pytest stands between here and the caller
            trouble.append(str(error))

    child.host(root, scratch, drive)
    if trouble:
        raise NotGreen(trouble[0])
    return results


def _stages(
    root: Path,
    scratch: Path,
    jobs: Sequence[Job],
    known: Known,
    at_a_time: int,
    start: Callable[[child.Task], tuple[int, int]],
) -> Iterator[Result]:
    """Each mutation as its last stage ends, or the stage that notices it."""

    def go(queue: deque[Job], limit_s: Callable[[Job], float]) -> Iterator[runner.Tried]:
        return runner.run(
            queue, lambda job: start(runner.task(root, job)), at_a_time, limit_s, scratch
        )

    took: dict[tuple[str, ...], float] = {}
    stages = sorted({stage for job in jobs for stage in job.subject.stages})
    for tried in go(deque(Job(Subject("", (stage,))) for stage in stages), lambda _: BASELINE_S):
        if tried.by:
            raise NotGreen(f"not green without any mutation, so there is no score: {tried.by}")
        took[tried.job.subject.stages[0]] = tried.seconds
    began = told = time.monotonic()
    queue, done, missed = deque(jobs), 0, 0
    for tried in go(queue, lambda job: runner.PATIENCE_S + 5 * took[job.subject.stages[job.stage]]):
        job = tried.job
        if not tried.by and job.stage + 1 < len(job.subject.stages):
            queue.appendleft(replace(job, stage=job.stage + 1))
            continue
        done += 1
        result = _result(job, tried.by, known)
        if not result.by and result.why is None:
            missed += 1
            print(f"NOT noticed: {result}", file=sys.stderr, flush=True)
        if time.monotonic() - told > TELL_EVERY_S:
            told = time.monotonic()
            print(
                f"[{told - began:.0f} s] {done} of {len(jobs)}, {missed} not noticed",
                file=sys.stderr,
                flush=True,
            )
        yield result


def try_tables(
    root: Path, scratch: Path, jobs: Sequence[TableJob], known: Known, at_a_time: int
) -> list[Result]:
    """Try mutations of tables. Raises NotGreen.

    This process may not try mutations of code afterwards.
    """
    if not jobs:
        return []
    try:
        ask = tables.noticing(root, scratch)
    except tables.NotGreen as error:
        raise NotGreen(str(error)) from error
    _asked[:] = [ask]
    with ProcessPoolExecutor(at_a_time, multiprocessing.get_context("fork")) as pool:
        said = pool.map(_ask, jobs, chunksize=20)
        return [_result(job, by, known) for job, by in zip(jobs, said, strict=True)]


_asked: list[Callable[[Path, str], str]] = []  # inherited by the pool's processes


def _ask(job: TableJob) -> str:
    return _asked[0](job.file, job.mutation.table)
