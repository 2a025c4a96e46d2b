"""A table decides nothing: what reads a journal says the same with and without one."""

from __future__ import annotations

from pathlib import Path

import journals
import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import machine_root
from thoroughness import examples

from acceptance.core.evidence import Table
from acceptance.core.fold import fold
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import Body
from acceptance.journal import reader, segment
from acceptance.journal.segment import Writer
from acceptance.reports import junit, verdict_json
from acceptance.wording import words

TABLE = Table(
    "gpu.present", Gpu(0), "gemm_f64_by_size", ("n", "TFLOP/s"), ((128.0, 0.25), (512.0, 21.5))
)


@settings(max_examples=examples(50))
@given(journals.plans(), st.lists(journals.records, max_size=12), st.data())
def test_no_table_changes_a_verdict(made: Plan, strays: list[Body], data: st.DataObject) -> None:
    bodies = [*journals.bodies(made), *strays]
    place = data.draw(st.integers(0, len(bodies)))
    table = Table(made.checks[0].id, Gpu(0), "t", ("n",), ((1.0,),))
    # Every other record keeps its time: a table in between takes none.
    entries = journals.entries(bodies)
    (added,) = journals.entries([table], start_s=entries[min(place, len(entries) - 1)].boot_s)
    assert fold([*entries[:place], added, *entries[place:]]) == fold(entries)


def test_a_table_alone_measures_nothing() -> None:
    made = journals.plan()
    bodies = [body for body in journals.bodies(made) if type(body).__name__ != "Measured"]
    verdict = fold(
        journals.entries(
            [*bodies[:3], Table("link.copy", Gpu(0), "copy", ("GB/s",), ((500.0,),)), *bodies[3:]]
        )
    )
    assert verdict.verdict == "UNJUDGED"


def test_a_table_of_a_check_that_nobody_planned_is_a_stray() -> None:
    verdict = fold(journals.entries([*journals.bodies(journals.plan()), TABLE]))
    assert [words.of(finding) for finding in verdict.findings] == [
        "gpu.present was run but is not in the plan"
    ]


def test_reports_of_the_verdict_say_the_same() -> None:
    bodies = samples.mixed_bodies()
    views = []
    for told in (bodies, [*bodies[:5], TABLE, *bodies[5:]]):
        found = samples.run(told)
        views.append((junit.render(found), verdict_json.render(found), found.verdict))
    assert views[0] == views[1]


@pytest.mark.parametrize("rows", ["[[1,null]]", '[{"n":1}]', "[[[1]]]", "[[true]]"])
def test_a_cell_is_a_number_or_a_text(tmp_path: Path, rows: str) -> None:
    path = tmp_path / reader.SUPERVISOR
    with Writer(path, machine_root(tmp_path / "root")) as writer:
        writer.write(Table("a.one", Gpu(0), "t", ("n", "m"), ((1.0, "x"),)))
    path.write_text(path.read_text().replace('[[1.0,"x"]]', rows))
    with pytest.raises(segment.JournalError, match="is no record"):
        reader.read(tmp_path)
