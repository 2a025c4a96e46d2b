"""The table of paths between GPUs on the page and the terminal, from the journal of a run."""

from __future__ import annotations

import io
import re
from pathlib import Path

import drawn
import faults
import pages
import sample_runs
from rich.console import Console

from acceptance.core.language import ENGLISH
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Due
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.reports import junit, pair_table
from acceptance.reports.page import render
from acceptance.reports.terminal import Terminal

THERE = Pair(Gpu(0), Gpu(1))
HEAD = "paths between GPUs where something is wrong:"


def lying(check: str, due: Due, value: float) -> float:
    return 1.0 if (check, due.component) == ("link.peers", THERE) else value


def all_lying(check: str, _due: Due, value: float) -> float:
    return 1.0 if check == "link.peers" else value


def dead_link(_check: str, due: Due, value: float) -> float:
    told = {"nvlink_active": 17.0, "gpu_nvlink_replays": 7.0}
    return told.get(due.measurement, value) if due.component == Gpu(1) else value


def made(folder: Path, machine: str, change: faults.Change | None = None) -> Run:
    sample_runs.put(sample_runs.Made(machine, "a sample", change), folder)
    return journal_run.read(folder)


def closing(run: Run) -> list[str]:
    out = io.StringIO()
    Terminal(Console(file=out, width=300)).verdict(run, [])
    return [line.strip() for line in out.getvalue().splitlines()]


def test_a_sound_machine_has_its_table_on_the_page_and_nothing_at_the_end(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "2x3090ti-bridge")
    found = drawn.cells(pair_table.table(run, ENGLISH))
    assert [(row[0], row[1], row[-1]) for row in found] == [
        ("gpu0->gpu1", "NV4", "sound"),
        ("gpu1->gpu0", "NV4", "sound"),
    ]
    assert HEAD not in closing(run)
    (section,) = pages.page(render.render(run)).xpath("//section[@aria-labelledby='pairs']")
    told = [text in pages.words(section) for text in ("gpu0->gpu1", "sources contradict")]
    assert told == [True, False]
    assert section.xpath(".//table[@class='heat']")
    bare = made(tmp_path / "bare", "2x3090ti-bridge", faults.without_bridge)
    first, _ = drawn.cells(pair_table.table(bare, ENGLISH))
    assert re.fullmatch("outside its limit: .*p2p_gain.*", first[-1])
    one = made(tmp_path / "one", "4090-7950x")
    assert not pair_table.table(one, ENGLISH).rows, "there is no path with one GPU"
    assert not pages.page(render.render(one)).xpath("//section[@aria-labelledby='pairs']")


def test_a_contradiction_is_in_the_table_the_closing_block_and_junit(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "2x3090ti-bridge", lying)
    assert [row.tone for row in pair_table.table(run, ENGLISH).rows] == ["bad", ""]
    said = closing(run)
    line = said[said.index(HEAD) + 1]
    assert line.startswith("gpu0->gpu1 (0000:")
    assert line.endswith("GB/s: sources contradict each other")
    assert any(one.startswith("FAIL link.peers: link_contradictions on gpu0->gpu1") for one in said)
    assert b"link_contradictions on gpu0-&gt;gpu1: measured 1" in junit.render(run)
    assert "sources contradict each other" in render.render(run)


def test_a_dead_link_and_errors_of_a_gpu_are_on_its_paths(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "8xh200", dead_link)
    for row in pair_table.table(run, ENGLISH).rows:
        path, *_, errors, verdict = row.cells
        sick = ("bad", "7", "outside its limit: nvlink_active")
        sound = ("", "0", "sound")
        assert (row.tone, errors, verdict) == (sick if "gpu1" in path else sound)


def test_of_very_many_paths_the_first_are_told(tmp_path: Path) -> None:
    said = closing(made(tmp_path / "run", "8xh200", all_lying))
    assert said[said.index(HEAD) + 9] == "48 more paths"
    (told,) = [one for one in said if one.startswith("FAIL link.peers")]
    assert "link_contradictions on gpu0->gpu1, gpu0->gpu2" in told
