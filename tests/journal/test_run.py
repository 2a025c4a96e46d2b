"""A run as it is read back from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import journals
import msgspec
import pytest
from cases import each
from runs import judged, machine_root, sealed, write_segment

from acceptance.core.evidence import Observed
from acceptance.core.limit import Limit
from acceptance.journal import reader, run
from acceptance.journal.reader import NoRun
from acceptance.journal.run import UnreadableRun
from acceptance.journal.segment import JournalError
from acceptance.machine.observation import NOTHING


def test_what_it_holds(tmp_path: Path) -> None:
    start, *rest = bodies = journals.bodies(journals.plan())
    root = machine_root(tmp_path / "root")
    write_segment(
        tmp_path / reader.SUPERVISOR,
        [start, Observed({"cpu": {"model": "a processor"}}, (("", "gpu0"),)), *rest],
        root,
    )
    (tmp_path / "journal-load.jsonl").write_text('{"half')
    sealed(tmp_path)
    found = run.read(tmp_path)
    assert (found.folder, len(found.entries), len(found.torn)) == (tmp_path, len(bodies) + 2, 1)
    assert (found.verdict.verdict, found.first.body, found.start) == ("PASS", start, start)
    assert (found.plan, found.inventory.cpu.model) == (journals.plan(), "a processor")
    assert found.matrix == (("", "gpu0"),)
    assert found.seconds == found.entries[-1].boot_s - found.first.boot_s
    assert list(found.samples()) == []
    bare = judged(journals.entries(bodies))
    assert (bare.inventory, bare.matrix) == (NOTHING, ())


def test_what_cannot_be_read_or_judged(tmp_path: Path) -> None:
    with pytest.raises(NoRun):
        run.read(tmp_path)
    write_segment(tmp_path / reader.SUPERVISOR, [], machine_root(tmp_path / "root"))
    with pytest.raises(UnreadableRun, match="0 beginnings"):
        run.read(tmp_path)


def test_another_plan_is_another_verdict() -> None:
    found = judged(journals.entries(journals.bodies(journals.plan())))
    due = journals.due(limit=Limit("GB/s", "more than there was", low=1e6))
    stricter = journals.plan(journals.check("link.copy", due))
    other = found.with_plan(stricter)
    assert (found.verdict.verdict, other.verdict.verdict) == ("PASS", "FAIL")
    assert (other.plan, other.first.body) == (stricter, other.start)
    assert [one.seq for one in other.entries] == [one.seq for one in found.entries]


@each("birth", [{}, 0, "run-0", {"run_id": "run-0"}])
def test_facts_of_a_baseline_that_cannot_be_read_are_no_verdict(tmp_path: Path, birth: Any) -> None:
    plan = msgspec.structs.replace(journals.plan(), baseline=birth)
    write_segment(
        tmp_path / reader.SUPERVISOR, journals.bodies(plan), machine_root(tmp_path / "root")
    )
    with pytest.raises(JournalError, match="birth"):
        run.read(tmp_path)


@each("beginnings", [0, 2])
def test_a_journal_without_one_beginning_is_not_judged(beginnings: int) -> None:
    entries = journals.entries(journals.bodies(journals.plan()))
    with pytest.raises(UnreadableRun, match=rf"^the journal holds {beginnings} beginnings"):
        judged([*entries[:1] * beginnings, *entries[1:]])
