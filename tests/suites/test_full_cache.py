"""The drop of a drive whose fast cache is full: the curve, and the check that writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from test_disk_watch import NVME, SCRATCH
from test_storage_suite import Recorder

from acceptance.core.evidence import Scratch
from acceptance.core.limit import GIB, MIB
from acceptance.core.parts import Component
from acceptance.machine import scratch_place
from acceptance.session.tools import Outputs
from acceptance.suites import storage
from acceptance.suites.fixtures import full_cache
from acceptance.suites.fixtures.full_cache import Chunk
from acceptance.suites.fixtures.storage import DiskFiles, Filled, budget, write_chunks
from acceptance.tools import fio
from acceptance.tools.reading import Reading, ToolOutput
from acceptance.wording import words

# Three chunks and a half, as small as the tests make them.
SOAK = msgspec.structs.replace(SCRATCH, write_bytes=8 * GIB + 7 * MIB // 2)


def chunks(*rates: float, celsius: float | None = None) -> tuple[Chunk, ...]:
    return tuple(Chunk(n * GIB, rate, celsius) for n, rate in enumerate(rates, start=1))


@each(
    "size, chunk",
    [(4 * GIB, 256 * MIB), (100 * GIB, GIB), (1000 * GIB, 10 * GIB), (150 * GIB + 1, 1536 * MIB)],
)
def test_the_size_of_a_chunk(size: int, chunk: int) -> None:
    assert full_cache.chunk_bytes(size) == chunk


@each(
    "rates, last, told",
    [
        ((5.0,), 5.0, "in 1 GiB of writing"),
        ((5.0, 5.0, 4.0, 2.5), 2.5, "in 4 GiB of writing"),
        ((5.0, 5.0, 1.0, 1.5), 1.5, "after 2 GiB; 4 GiB were written"),
        ((5.0, 1.0, 5.0, 4.9, 1.0, 1.2, 0.9, 1.1), 1.0, "after 4 GiB; 8 GiB were written"),
    ],
)
def test_the_rate_behind_the_cache_and_where_it_begins(
    rates: tuple[float, ...], last: float, told: str
) -> None:
    assert full_cache.last_rate(chunks(*rates)) == last
    assert told in words.message(full_cache.drop(chunks(*rates)))


def test_the_curve() -> None:
    warm = (*chunks(5.0, celsius=40.0), Chunk(2 * GIB, 1.23456, None))
    assert full_cache.columns(warm) == ("GiB", "GB/s", "degC")
    assert full_cache.rows(warm) == [(1.0, 5.0, 40.0), (2.0, 1.2346, "")]
    cold = chunks(5.0)
    assert full_cache.columns(cold) == ("GiB", "GB/s")
    assert full_cache.rows(cold) == [(1.0, 5.0)]


def test_the_other_parts_write_no_more_than_in_accept() -> None:
    parts = [
        msgspec.structs.replace(SCRATCH, write_bytes=size * GIB, kept_bytes=0) for size in (8, 200)
    ]
    assert len({budget(one, "fio") for one in parts}) == 1


# --- writing ---


class Jobs:
    """Stands for fio: writes nothing, says these rates, and then that the disk failed."""

    def __init__(self, *rates: float) -> None:
        self.rates = list(rates)
        self.jobs: list[fio.Job] = []

    def __call__(self, _scratch: Scratch, job: fio.Job) -> Outputs:
        assert Path(job.file).stat().st_size == job.bytes
        self.jobs.append(job)
        if not self.rates:
            return Outputs({NVME: ToolOutput("fio", "fail", "an input/output error")})
        reading = Reading("fio_write", "GB/s", {NVME: self.rates.pop(0)})
        return Outputs({NVME: ToolOutput("fio", "pass", "", (reading,))})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(full_cache, "LEAST_CHUNK", MIB)
    monkeypatch.setattr(scratch_place, "FULL_CACHE_LEAST_BYTES", 1)
    made = tmp_path / ".rigproof/run-1"
    made.mkdir(parents=True)
    return made


def write(folder: Path, jobs: Jobs, seconds: float = 100.0, scratch: Scratch = SOAK) -> Filled:
    files = DiskFiles(7)
    return write_chunks(scratch, folder, files, files.time_left(folder, seconds), jobs, [])


def test_chunks_are_written_until_the_budget_is_over(folder: Path) -> None:
    jobs = Jobs(5.0, 4.0, 3.0, 2.0)
    found = write(folder, jobs)
    assert found == Filled(
        tuple(Chunk(n * MIB, rate, None) for n, rate in ((1, 5.0), (2, 4.0), (3, 3.0))), None
    )
    # each has other data, in a file of its own, and none is left
    assert len({job.seed for job in jobs.jobs}) == len({job.file for job in jobs.jobs}) == 3
    assert list(folder.iterdir()) == []


def test_a_disk_that_fails_ends_it(folder: Path) -> None:
    found = write(folder, Jobs(5.0))
    assert (len(found.chunks), found.fault) == (1, "an input/output error")
    assert list(folder.iterdir()) == []


def test_without_time_nothing_is_written(folder: Path) -> None:
    jobs = Jobs(5.0)
    assert write(folder, jobs, seconds=0.0) == Filled((), None)
    assert jobs.jobs == []


# --- the check ---


class Tables:
    """Remembers the tables of a check."""

    def __init__(self) -> None:
        self.written: list[tuple[Component, str, tuple[str, ...]]] = []

    def __call__(
        self,
        component: Component,
        name: str,
        columns: Sequence[str],
        _rows: Sequence[Sequence[float | str]],
    ) -> None:
        self.written.append((component, name, tuple(columns)))


class Named(Recorder):
    """A recorder that keeps measurements apart."""

    def __init__(self) -> None:
        super().__init__(NVME)
        self.by_name: dict[str, dict[Component, float]] = {}

    def __call__(self, measurement: str, readings: Mapping[Component, float], **more: Any) -> None:
        self.by_name[measurement] = dict(readings)
        super().__call__(measurement, readings, **more)


@each(
    "filled, first, full, failed, tables",
    [
        (Filled(chunks(5.0, 5.0, 1.0, 1.0), None), {NVME: 5.0}, {NVME: 1.0}, 0.0, 1),
        (Filled(chunks(5.0, 1.0), "failed"), {NVME: 5.0}, {}, 1.0, 1),
        (Filled((), "failed"), {}, {}, 1.0, 0),
    ],
)
def test_the_check(
    filled: Filled,
    first: dict[Component, float],
    full: dict[Component, float],
    failed: float,
    tables: int,
) -> None:
    check: Any = Named()
    table = Tables()
    storage.test_full_cache(lambda _name: (SOAK,), lambda _scratch: filled, table, check)
    assert check.by_name == {
        "storage_write_first": first,
        "storage_write_full": full,
        "storage_failed": {NVME: failed},
    }
    assert table.written == [(NVME, "storage_full_cache", ("GiB", "GB/s"))] * tables
    assert ("failed" if failed else "the rate fell below half") in check.notes[NVME]
