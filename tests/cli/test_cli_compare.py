"""`rigproof compare`, as it is called."""

from __future__ import annotations

import re
from pathlib import Path

import journals
import pytest
from cases import each
from command import Call, assert_one_sentence, assert_refused, printed
from runs import machine_root, write_segment


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """Two runs of one machine, the later one a tenth slower."""
    plan = journals.plan(journals.check("link.copy", journals.due("copy_h2d", "gpu0")))
    root = machine_root(tmp_path / "root")
    for name, value in (("one", 200.0), ("two", 180.0)):
        bodies = journals.bodies(plan, {("copy_h2d", "gpu0"): value})
        write_segment(tmp_path / name / "journal.jsonl", bodies, root, seals=True)
    return "one", "two"


def test_worse_is_1_and_the_other_way_round_0(call: Call, folders: tuple[str, str]) -> None:
    one, two = folders
    out = printed(call("compare", one, two), 1)
    assert "180 (-10.0 %)" in out
    assert out.splitlines()[-1].startswith("WORSE than A")
    out = printed(call("compare", two, one))
    assert "200 (+11.1 %)" in out
    written = [path.name for name in folders for path in Path(name).iterdir()]
    assert written == ["journal.jsonl"] * 2, "nothing is written into the runs"


def test_runs_with_nothing_in_common_prove_nothing(
    call: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    plan = journals.plan(journals.check("cpu.gemm", journals.due("cpu_gemm_f64", "cpu")))
    bodies = journals.bodies(plan, {("cpu_gemm_f64", "cpu"): 200.0})
    root = machine_root(tmp_path / "root")
    write_segment(tmp_path / "other/journal.jsonl", bodies, root, seals=True)
    out = printed(call("compare", folders[0], "other"), 3)
    told = "NOTHING PROVED: B measured nothing that A measured too; measurements: 0 worse"
    assert out.splitlines()[-1].startswith(told)


@pytest.mark.parametrize("changed", ["one", "two"])
def test_evidence_that_is_not_whole_is_named_and_proves_nothing(
    call: Call, folders: tuple[str, str], tmp_path: Path, changed: str
) -> None:
    (tmp_path / changed / "telemetry-gpu.jsonl").write_bytes(b"")
    journal = tmp_path / changed / "journal.jsonl"
    journal.write_text(journal.read_text().replace(":200.0", ":190.0").replace(":180.0", ":190.0"))
    letter = {"one": "A", "two": "B"}[changed]
    for runs in (folders, (*folders, "--page", "page.html")):
        out = printed(call("compare", *runs), 3)
        assert f"{letter}: journal.jsonl was changed after the seal" in out
        assert f"{letter}: telemetry-gpu.jsonl is not of this run" in out
        assert f"\nNOTHING PROVED: the evidence of {letter} is incomplete; measurements: " in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'<h1 class="warn">NOTHING PROVED: the evidence of {letter} is incomplete; ' in page
    assert f'<p class="warn">{letter}: journal.jsonl was changed after the seal' in page


def test_a_run_of_a_version_without_seals_is_marked(
    call: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    journal = tmp_path / "two/journal.jsonl"
    head, *rest = journal.read_text().splitlines(keepends=True)
    head = re.sub(r',"run_id":"[^"]*"', "", head).replace(
        '"rigproof_journal":3', '"rigproof_journal":2'
    )
    journal.write_text("".join([head, *rest[:-1]]))
    code, out, _ = call("compare", *folders)
    first, second = out.splitlines()[2:4]
    assert (code, "  PASS  " in first, "  PASS (not sealed)  " in second) == (1, True, True)


def test_the_page_is_written_and_its_place_told(
    call: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    code, out, _ = call("compare", *folders, "--page", "page.html", "--all")
    assert (code, out.splitlines()[-1]) == (1, "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    code, _, err = call("compare", *folders, "--page", "nowhere/page.html")
    assert code == 3
    assert_one_sentence(err, "nowhere/page.html: cannot be written")


@each(
    "runs, said",
    [
        *((("one", again), "are the same run: give another one") for again in ("one", "./one")),
        (("one", "latest"), "are the same run: give another one"),
        (("one",), "1 run was given: give the folders of 2 to 26 runs"),
        ((), ""),
        (("one",) * 27, "27 runs were given"),
        (("one", "empty"), "empty: holds no run"),
    ],
)
def test_what_cannot_be_compared(
    call: Call, folders: tuple[str, str], runs: tuple[str, ...], said: str
) -> None:
    Path("latest").unlink(missing_ok=True)
    Path("latest").symlink_to("one")
    Path("empty").mkdir(exist_ok=True)
    assert_refused(call("compare", *runs), 2, said)


def test_a_run_without_a_plan_damaged_or_of_a_newer_format_is_3(
    call: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    write_segment(tmp_path / "bare/journal.jsonl", [], machine_root(tmp_path / "root"))
    assert_refused(call("compare", "one", "bare"), 3, "bare", "0 beginnings")
    journal = tmp_path / "two/journal.jsonl"
    whole = journal.read_text()
    for old, new, words in (
        ('"record"', '"recor"', ("line 2", "restore it from a copy")),
        ('"rigproof_journal":3', '"rigproof_journal":9', ("line 1", "install a newer rigproof")),
    ):
        journal.write_text(whole.replace(old, new, 1))
        assert_refused(call("compare", "one", "two"), 3, "two/journal.jsonl", *words)
