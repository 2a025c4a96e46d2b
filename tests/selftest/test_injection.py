"""The faults that loads make by themselves on a GPU: the list, and what a run must show of each, by
runs of described machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import journals
import msgspec
import pytest
import runs
from boxes import BOXES
from run_left import Run
from synthetic_machines import prepared_plan
from thoroughness import some

from acceptance.core.evidence import AnyBody
from acceptance.core.message import Message
from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.record import CheckEnded, Measured
from acceptance.loads.asks import ASKS
from acceptance.loads.burn.contract import FAULTS
from selftest import on_gpu
from selftest.fault import CatalogueError
from selftest.injection import Injection, not_played, read

EVERY = {one.name: one for one in read()}
# Processors, RAM and disks are shown without a GPU; a pair of nodes has a test of its own.
ON_DISKS = {name for name in ASKS if name.startswith("storage_")}
WITHOUT_GPU = {"cpu_gemm", "memory_bandwidth", "memory_random", "collective_pair", *ON_DISKS}
TWO, ONE = "2x4090.toml", "1xh200-vm.toml"


def planned(injection: Injection, file: str) -> Plan:
    """The plan of an injection's run on the machine of this file."""
    plan = prepared_plan(BOXES[file], injection.profile)
    wanted = injection.only.split(",")
    checks = tuple(one for one in plan.checks if one.id in wanted)
    assert injection.check in {one.id for one in checks}
    return msgspec.structs.replace(plan, checks=checks, waivers=())


def ran(
    folder: Path,
    injection: Injection,
    file: str = TWO,
    values: Mapping[tuple[str, Component], float] | None = None,
    error: str = "",
) -> Run:
    """A run of it in which these values are measured, or whose check ends with that error."""
    bodies: list[AnyBody] = list(journals.bodies(planned(injection, file), values))
    if error:
        told = Message("load_failed", {"load": injection.load, "why": "exited 1", "last": error})
        ended = CheckEnded(injection.check, "error", told, 1.0, ("load_failed",))
        bodies = [
            ended if isinstance(one, CheckEnded) and one.check == injection.check else one
            for one in bodies
            if not (isinstance(one, Measured) and one.check == injection.check)
        ]
    root = runs.machine_root(folder / "root")
    made = folder / "out" / "run-1"
    runs.write_segment(made / "journal.jsonl", bodies, root, seals=True)
    (made / "logs").mkdir()
    judged = runs.write_views(made)
    code = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}[judged.verdict.verdict]
    return Run(code, f"{judged.verdict.verdict}: \n", "", 9.0, made)


def wrong(injection: Injection, gpus: int = 2) -> dict[tuple[str, Component], float]:
    """What a run measures that finds all that it must."""
    return {
        (str(one.measurement), component): 1.0
        for one in injection.expected(gpus)
        for component in one.components
    }


@pytest.mark.parametrize(
    ("file", "name"), [*((TWO, one) for one in EVERY), *((ONE, one) for one in some([*EVERY]))]
)
def test_what_is_found_is_caught(tmp_path: Path, file: str, name: str) -> None:
    injection, gpus = EVERY[name], BOXES[file].count
    if injection.gpus > gpus:
        assert on_gpu.offered([injection], gpus)[0] == []
        return
    if injection.code == 1:
        run = ran(tmp_path, injection, file, wrong(injection, gpus))
    else:
        run = ran(tmp_path, injection, file, error=f"the worker on gpu{gpus - 1} was ended")
    rows, left_out = on_gpu.judged(injection, run, 0.0, tmp_path, gpus)
    assert [row.wrong for row in rows if not row.caught] == []
    assert len(rows) + len(left_out) == max(1, len(injection.finds.measurements))
    assert len(rows) > len(left_out)
    assert {row.by for row in rows} == {injection.check}


@pytest.mark.parametrize("name", some([*EVERY]))
def test_a_run_that_finds_nothing_is_missed(tmp_path: Path, name: str) -> None:
    rows, _ = on_gpu.judged(EVERY[name], ran(tmp_path, EVERY[name]), 0.0, tmp_path, 2)
    assert rows
    assert not any(row.caught for row in rows)


COLLECTIVE, LAYERS, LOST, DIES = (
    EVERY[name] for name in ("collective-wrong", "layers-wrong", "collective-lost", "parallel-die")
)


def of_code_3(folder: Path) -> Run:
    return replace(ran(folder, LAYERS, values=wrong(LAYERS)), code=3)


Made = Callable[[Path], Run]
MISSED: dict[str, tuple[Injection, Made, str]] = {
    **{
        f"found elsewhere: {where}": (
            injection,
            lambda folder, injection=injection, found=found: ran(folder, injection, values=found),
            injection.finds.measurements[0],
        )
        for where, injection, found in (
            ("other GPU", COLLECTIVE, {("collective_miscompares", Gpu(0)): 1.0}),
            ("other arm", COLLECTIVE, {("collective_miscompares_p2p_off", Gpu(1)): 1.0}),
            ("all GPUs", COLLECTIVE, {("collective_disagreements", GPUS): 1.0}),
            ("one of two", LAYERS, {("layer_miscompares", Gpu(1)): 1.0}),
            (
                "other way",
                LOST,
                {("collective_send_receive_miscompares", Pair(Gpu(1), Gpu(0))): 1.0},
            ),
            ("no path", LOST, {("collective_miscompares", Gpu(1)): 1.0}),
        )
    },
    **{
        f"an error that names gpu{gpu}": (
            DIES,
            lambda folder, gpu=gpu: ran(folder, DIES, error=f"the worker on gpu{gpu} was ended"),
            "",
        )
        for gpu in (0, 11)
    },
    "an error in place of a failure": (
        LAYERS,
        lambda folder: ran(folder, LAYERS, error="layer_miscompares on gpu0 and gpu1: wrong"),
        "",
    ),
    "another exit code": (LAYERS, of_code_3, ""),
    "another check accused": (
        LAYERS,
        lambda folder: ran(folder, LAYERS, values={**wrong(LAYERS), ("gpu_granted", Gpu(0)): 0.0}),
        "gpu.granted",
    ),
    "a run that was not made": (LAYERS, lambda _: Run(2, "", "rigproof: no", 1.0, None), ""),
    "what no plan has": (LAYERS, lambda folder: ran(folder, COLLECTIVE), "layer_miscompares"),
}


@pytest.mark.parametrize(("injection", "made", "told"), MISSED.values(), ids=MISSED)
def test_what_is_not_what_was_due_is_missed(
    tmp_path: Path, injection: Injection, made: Made, told: str
) -> None:
    ((row,), left_out) = on_gpu.judged(injection, made(tmp_path), 0.0, tmp_path, 2)
    assert not row.caught
    assert told in row.wrong
    assert left_out == []


def test_one_of_several_paths_is_enough(tmp_path: Path) -> None:
    (expected,) = LOST.expected(3)
    assert expected.components == (Pair(Gpu(0), Gpu(2)), Pair(Gpu(1), Gpu(2)))
    assert expected.one
    found = {("collective_send_receive_miscompares", Pair(Gpu(0), Gpu(1))): 1.0}
    ((row,), _) = on_gpu.judged(LOST, ran(tmp_path, LOST, values=found), 0.0, tmp_path, 2)
    assert row.caught


def test_a_format_that_a_card_lacks_is_not_offered_and_named(tmp_path: Path) -> None:
    injection = EVERY["burn-bit"]
    file = "2xa100-40gb-7049gp.toml"
    rows, left_out = on_gpu.judged(
        injection, ran(tmp_path, injection, file, wrong(injection)), 0.0, tmp_path, 2
    )
    assert all(row.caught for row in rows)
    (f8,) = left_out
    assert "burn_f8_miscompares" in f8.fault


# --- the list ---


def kinds(load: str) -> set[str]:
    """The faults that a load can be asked for."""
    if load == "burn":
        return {*FAULTS, "slow:10"}
    literal = get_type_hints(ASKS[load])["inject"]
    return {value for one in get_args(literal) for value in get_args(one)}


@pytest.mark.parametrize("load", sorted(ASKS.keys() - WITHOUT_GPU))
def test_every_fault_that_a_load_makes_is_played_or_says_why_not(load: str) -> None:
    played = {one.fault for one in read() if one.load == load}
    why = {fault: told for (name, fault), told in not_played().items() if name == load}
    assert played | why.keys() == kinds(load)
    assert played
    assert all(len(told) > 20 for told in why.values())


def test_a_load_that_needs_two_gpus_says_so() -> None:
    """Of those that every GPU has a process of, none needs a second."""
    together = {one.load for one in read() if one.gpus == 2}
    assert together == {"collective", "train_parallel"}
    played, left_out = on_gpu.offered(list(read()), 1)
    assert {one.load for one in played} == {one.load for one in read()} - together
    names = {one.name for one in read() if one.load in together}
    assert {one.fault for one in left_out} == names
    assert all("needs 2 GPUs" in one.why for one in left_out)
    assert on_gpu.offered(list(read()), 2)[1] == []
    assert {one.load for one in on_gpu.offered(list(read()), 2, "collective")[0]} == {"collective"}


GOOD = """\
[vram]
check = "vram.patterns"
profile = "smoke"
finds = { on = "each", measurements = ["vram_miscompares"] }
faults.bit.what = "a bit"
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[vram]", "[ram]", "ram"),
        ("profile", "profil", "profil"),
        ('on = "each"', 'on = "first"', "first"),
        ('measurements = ["vram_miscompares"]', 'outcome = "fail"', "bit"),
        ('on = "each"', 'on = "each", outcome = "error"', "bit"),
        ('on = "each"', 'on = "a path to the last"', "gpus"),
        ("faults.bit", 'not_played.bit = "why"\nfaults.bit', "bit"),
        ('faults.bit.what = "a bit"', 'faults.bit = { what = "a", family = "odd" }', "odd"),
        ("[vram]", "[vram", "injections.toml"),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    path = tmp_path / "injections.toml"
    path.write_text(GOOD)
    assert [one.name for one in read(path)] == ["vram-bit"]
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(CatalogueError, match=named) as refused:
        read(path)
    assert str(path) in str(refused.value)
