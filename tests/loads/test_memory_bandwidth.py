from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each
from load_program import COMPONENTS, ON_CORES, forked, run
from thoroughness import some

from acceptance.loads import contract
from acceptance.loads.__main__ import parsed
from acceptance.loads.cpu import memory_worker
from acceptance.loads.cpu.memory_bandwidth import available_bytes, elements
from acceptance.loads.cpu.memory_worker import Arrays
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import parse

LOAD = ("-m", "acceptance.loads", "memory_bandwidth", "seconds=0.01")
TINY = (*LOAD, ON_CORES, "llc_bytes=100000", "megabytes_per_core=2")


def test_a_clean_run() -> None:
    done = run(*TINY)
    assert (done.returncode, done.stderr) == (0, "")
    output = parse(done.stdout)
    contract.prove(parsed(TINY[2:]), output, {"array_bytes": 666672}, 1.0)
    assert output.miscompares == ()
    assert all((one.value > 0) == (one.unit == "GB/s") for one in output.readings)
    assert "of 3 repeats" in output.notes[0]


def test_a_flipped_bit_is_found_in_copy_and_in_triad() -> None:
    done = forked(*TINY, "inject=bitflip")
    assert done.returncode == 0
    output = parse(done.stdout)
    assert output.injected == "bitflip"
    assert [(found.component, found.check, found.elements) for found in output.miscompares] == [
        (COMPONENTS[-1], "copy", 1),
        (COMPONENTS[-1], "triad", 1),
    ]
    counts = {reading.name: reading.value for reading in output.readings if reading.unit == "count"}
    assert counts == {"memory_copy_miscompares": 1, "memory_triad_miscompares": 1}


@each(
    "words, said",
    some(
        [
            ((ON_CORES, "llc_bytes=900000000000000"), "GiB that are available: free memory"),
            (
                (ON_CORES, "llc_bytes=900000000", "megabytes_per_core=1"),
                "fit into the cache: give megabytes_per_core=",
            ),
            (('cores={"all": [[999999]]}', "llc_bytes=1"), "may not run on CPU 999999"),
            ((*TINY[-3:], "inject=die"), f"the worker on {COMPONENTS[-1]} was ended by signal 9"),
        ],
        3,
    ),
)
def test_what_this_machine_cannot_do_gets_one_sentence(words: tuple[str, ...], said: str) -> None:
    done = forked(*LOAD, *words)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr
    assert '"end"' not in done.stdout
    assert "inject=die" in words or not done.stdout


@each(
    "workers, llc, megabytes, count",
    [
        (1, 1, None, 2**21),
        (2, 32 * 2**20, None, 64 * 2**20 // 8),
        (16, 32 * 2**20, None, 2**21),
        (128, 1152 * 2**20, None, 36 * 2**20 // 8),
        (1, 1, 3, 125_000),
    ],
)
def test_arrays_together_are_four_times_the_caches(
    workers: int, llc: int, megabytes: int | None, count: int
) -> None:
    assert elements(workers, llc, megabytes, 2**50) == count
    assert 8 * count * workers >= 4 * llc


@each(
    "workers, llc, megabytes, available, why",
    [
        (2, 32 * 2**20, 200, 2**50, "megabytes_per_core=202 or more"),
        (2, 33_500_001, 200, 2**50, "megabytes_per_core="),
        (2, 32 * 2**20, 202, 2**50, ""),  # the size that is advised
        # half of what is available at most
        (1, 1, None, 2 * 24 * 2**21, ""),
        (1, 1, None, 2 * 24 * 2**21 - 1, r"need 0.05 GiB, more than half of the 0.09 GiB"),
    ],
)
def test_arrays_that_are_too_small_or_too_large_are_refused(
    workers: int, llc: int, megabytes: int | None, available: int, why: str
) -> None:
    with pytest.raises(LoadError, match=why) if why else nullcontext():
        assert elements(workers, llc, megabytes, available) * 8 * workers >= 4 * llc


def test_available_memory_is_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    meminfo = tmp_path / "proc/meminfo"
    meminfo.write_text("MemTotal:       24683808 kB\nMemAvailable:   24410000 kB\n")
    assert available_bytes(tmp_path) == 24410000 * 1024
    meminfo.write_text("MemTotal:       24683808 kB\n")
    with pytest.raises(LoadError, match="no MemAvailable line"):
        available_bytes(tmp_path)


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> Arrays:
    monkeypatch.setattr(memory_worker, "BLOCK", 100)
    return Arrays.allocate(250, 3)


def test_arrays_hold_whole_numbers_that_differ(arrays: Arrays) -> None:
    assert len(arrays.blocks) == 3
    for array in (arrays.b, arrays.c):
        assert len(np.unique(array)) == 250
        assert array.min() >= 1
        assert array.max() <= 2**50
        assert (array == np.rint(array)).all()
    assert not np.intersect1d(arrays.b, arrays.c).size
    assert not np.intersect1d(arrays.b, Arrays.allocate(250, 4).b).size


def test_right_results_pass_and_results_of_the_other_kernel_do_not(arrays: Arrays) -> None:
    for fault in (arrays.copy_fault, arrays.triad_fault):
        nothing: Any = fault()
        assert nothing["elements"] == 250
    arrays.copy()
    assert arrays.copy_fault() is None
    assert arrays.triad_fault() is not None
    arrays.triad()
    assert arrays.triad_fault() is None
    assert arrays.copy_fault() is not None
    assert (arrays.a == arrays.b + 3 * arrays.c).all()
    arrays.a[[5, 150, 240]] = np.nan
    found: Any = arrays.triad_fault()
    assert (found["elements"], found["nan"]) == (3, 3), "of all blocks"


@each("place", [0, 99, 100, 249])
@each("value", [np.nan, 0.5, -0.0, None])
def test_one_wrong_element_is_located(arrays: Arrays, place: int, value: float | None) -> None:
    for run_once, fault in ((arrays.copy, arrays.copy_fault), (arrays.triad, arrays.triad_fault)):
        run_once()
        arrays.a[place] = np.nextafter(arrays.a[place], 0) if value is None else value
        found: Any = fault()
        assert (found["elements"], found["nan"]) == (1, int(value is not None and np.isnan(value)))
        assert found["first"][0].index == (place,)
