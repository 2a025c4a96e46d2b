"""Recorded runs with the outputs of their programs: read again, these make every value that the
journal has of them, and a digit that is changed in one of them is found.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from runs import RECORDED, recorded, unpacked
from thoroughness import ALL

from acceptance.core.evidence import ToolRan
from acceptance.core.record import Measured
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.run import log_reading

# Of how many of its values a run has logs, and how many it has, as the indexes say.
COMPARED: dict[str, list[int]] = {
    entry["name"]: entry["compared"]
    for index in sorted({path.parent / "INDEX.toml" for path in RECORDED.values()})
    for entry in tomllib.loads(index.read_text())["run"]
    if "compared" in entry
}
ACCEPTED = ("2xh100-host-accept", "2xh200-host-accept")
# The loads of an acceptance, as the first lines of their outputs name them.
LOADS = {
    *("gpu_gemm", "gpu_copy", "burn", "vram", "collective", "pulse"),
    *("cpu_gemm", "memory_bandwidth", "memory_random"),
    *("storage_kept", "storage_memmap", "storage_feed", "storage_checkpoint"),
    *("train_layers", "train_step", "train_digest", "train_parallel"),
}
READING = re.compile(r'^{"reading": "(.+?)", .*"component": "(.+?)", "value": (.+)}$', re.MULTILINE)
DIGEST = re.compile(r'"log": "(train_digest)_\w+", "component": "(.+?)", .* (\w{32})\\n"}$', re.M)
# These say that there was work; no check measures them.
UNMEASURED = {"cpu_gemm_products_f32", "cpu_gemm_products_f64"}
WATCH = "power_watch"
# Of each other program a number on which a value of its check depends.
PRINTED = {
    "bandwidthTest": r"32000000\t+([\d.]+)",
    "deviceQuery": r"Total amount of global memory: +(\d+)",
    "fio": r'"runtime" : ([1-9]\d*)',
    "gpu-burn": r"proc'd: (\d+) ",
    "nvbandwidth": r'"(\d+\.\d+)"\n',
    "p2pBandwidthLatencyTest": r"\(P2P Writes\).*\n.*\n +0 +[\d.]+ +([\d.]+)",
    "stress-ng": r"metrc: .* cpu +\d+ +([\d.]+)",
    "stressapptest": r"with (\d+) hardware incidents",
}


@pytest.fixture(scope="module", params=COMPARED)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded run, its logs unpacked."""
    folder = tmp_path_factory.mktemp("recorded") / request.param
    return journal_run.read(unpacked(RECORDED[request.param], folder))


def programs(run: Run) -> Iterator[tuple[Run, str, Path]]:
    """Each output that is not empty: a run whose plan has its check alone, its program, its file.

    A load is named by its first line. The disks of the recorded machines have no report to change.
    The storage tests stay together: what one wrote the next one reads.
    """
    on_disks = tuple(check for check in run.plan.checks if check.id.startswith("storage."))
    for check in run.plan.checks:
        bodies = (entry.body for entry in run.entries)
        own = [one for one in bodies if isinstance(one, ToolRan) and one.check == check.id]
        checks = on_disks if check in on_disks else (check,)
        alone = run.with_plan(replace(run.plan, checks=checks)) if own else run
        for ran in own:
            words = {Path(word).name for word in ran.argv}
            names = {word.rpartition(".")[2] for word in words} & {WATCH} | words & PRINTED.keys()
            for path in (run.folder / str(ran.log), run.folder / f"{ran.log}.err"):
                text = path.read_text()
                if text.startswith('{"rigproof_load"'):
                    yield alone, json.loads(text.partition("\n")[0])["load"], path
                elif text and "smartctl" not in words:
                    (name,) = names
                    yield alone, name, path


def numbers(run: Run, program: str, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Numbers in an output on which a value depends: what each is, and where it stands."""
    if program in LOADS:
        for found in (*READING.finditer(text), *DIGEST.finditer(text)):
            yield found[1], found.span(3)
    elif program == WATCH:
        checks = {check.id for check in run.plan.checks}
        for body in (entry.body for entry in run.entries):
            if isinstance(body, Measured) and body.check in checks and "power" in body.measurement:
                yield from highest(body, text)
    else:
        (found, *_) = re.finditer(PRINTED[program], text)
        yield program, found.span(1)


def highest(excursion: Measured, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Where the watch printed the sample that made a GPU's excursion of power."""
    if not excursion.measurement.endswith("_excursion") or excursion.value is None:
        return
    for line in re.finditer(rf'^{{"gpu":"{excursion.component}".*"limit_w":(.+)}}$', text, re.M):
        watts = f"{excursion.value * float(line[1]):.1f}"
        if found := re.search(rf"[\[,]({re.escape(watts)})[\],]", line[0]):
            begin, end = found.span(1)
            yield excursion.measurement, (line.start() + begin, line.start() + end)


def other(number: str) -> str:
    """The number with another digit: its first that is not 0."""
    first = next((digit for digit in number if digit in "123456789"), "0")
    return number.replace(first, "2" if first == "1" else "1", 1)


def test_the_logs_tell_what_the_journal_has(run: Run) -> None:
    found = log_reading.read_again(run)
    assert found.differences == ()
    assert [found.compared, found.measured] == COMPARED[run.folder.name]


@pytest.mark.parametrize("name", [name for name in RECORDED if name not in COMPARED])
def test_a_run_without_logs_proves_nothing(name: str) -> None:
    assert not (RECORDED[name] / "logs").exists()
    found = log_reading.read_again(recorded(name))
    assert found.compared == 0
    assert found.differences


@pytest.mark.parametrize("run", ACCEPTED, indirect=True)
def test_an_acceptance_has_an_output_of_every_program(run: Run) -> None:
    assert {program for _, program, _ in programs(run)} == {*LOADS, *PRINTED, WATCH}


# The second acceptance has the same programs: its digits are changed in `make test-all`.
DIGITS = [
    pytest.param(name, marks=[pytest.mark.sweep] if name in ACCEPTED[1:] else [])
    for name in COMPARED
]


@pytest.mark.parametrize("run", DIGITS, indirect=True)
@pytest.mark.timeout(600)  # hundreds of readings
def test_a_changed_digit_is_found(run: Run) -> None:
    for alone, program, path in programs(run):
        text = path.read_text()
        every = [*numbers(alone, program, text)]
        places = every if ALL else every[-1:]
        assert places, path.name
        missed = set()
        for name, (begin, end) in places:
            path.write_text(text[:begin] + other(text[begin:end]) + text[end:])
            if not log_reading.read_again(alone).differences:
                missed.add(name)
        path.write_text(text)
        assert missed == UNMEASURED & {name for name, _ in places}, path.name
