"""The frozen verdicts of the self-test's runs: which differences count, that every run has one, and
how one is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
import statement
from msgspec.structs import replace

from selftest import clean, frozen
from selftest.clean_runs import healthy, parts, runs
from selftest.fault import Expect, Fault, Named

FAULT = Fault(what="a link that is slow", expect=(Expect("link.p2p", "p2p_gain"),), code=1)
SLOW = "fail | link.p2p | p2p_gain | gpu0->gpu1 | p2p_gain on gpu0->gpu1: measured #"
HOT = "fail | watch.heat | gpu_temperature | gpu1"
NAME = "links/one"
GAIN = "link.p2p p2p_gain gpu0->gpu1"
HEAT = "watch.heat gpu_temperature gpu1"


def test_every_fault_and_clean_run_is_frozen_and_nothing_else() -> None:
    known, there = frozen.compared(), frozen._frozen()
    assert [frozen.how(name, one) for name, one in known.items() if name not in there] == []
    assert sorted(there.keys() - known) == []


def run(
    *findings: str, values: dict[str, float | None] | None = None, verdict: str = "FAIL"
) -> dict[str, object]:
    """What one run said; by default a slow link and a hot GPU."""
    return {
        "verdict": verdict,
        "exit_code": 1,
        "scope": "whole",
        "closing": ["FAIL: # failed"],
        "findings": sorted(findings or (SLOW, HOT)),
        "values": {GAIN: 2.0, HEAT: None} if values is None else values,
    }


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("FAIL: gpu0 in a.b: hot: 1 passed", "FAIL: 1 passed"),
        ("FAIL: gpu0 in a.b: hot (1 more failure): 1 passed", "FAIL: 1 passed"),
        ("FAIL: gpu0 in a.b: hot (partial): 1 passed", "FAIL (partial): 1 passed"),
        ("FAIL: gpu0 in a.b: hot (7 more failures; partial): 1 passed", "FAIL (partial): 1 passed"),
        ("UNJUDGED: gpu0 in a.b: hot; next: x (2 more findings): 1 error", "UNJUDGED: 1 error"),
        ("PASS (partial): 1 passed", "PASS (partial): 1 passed"),
    ],
)
def test_a_closing_line_is_compared_without_its_headline(line: str, kept: str) -> None:
    """What happened stands in the findings, which are compared."""
    head = {"text": "gpu0 in a.b: hot", "to_do": "gpu0 in a.b: hot; next: x"}
    assert statement.paperwork(line, {"headline": head}) == kept
    assert statement.paperwork(kept, {}) == kept


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (run(), ""),
        (run(HOT), "no longer says"),
        (run(SLOW), "no longer says"),
        (run(SLOW, HOT, f"{HOT} again"), "and did not before"),
        (run(verdict="PASS"), "verdict is PASS"),
        (run(values={HEAT: None}), "is not any more"),
        (run(values={GAIN: 2.5, HEAT: None}), "is 2.5, and was 2.0"),
        (run(values={GAIN: 2.0}), "is not any more"),
    ],
)
def test_what_counts_as_a_difference(
    monkeypatch: pytest.MonkeyPatch, now: dict[str, object], word: str
) -> None:
    one = frozen.merged(NAME, [run(), run()])
    monkeypatch.setattr(frozen, "_frozen", lambda: {NAME: one})
    said = frozen.difference(NAME, FAULT, now)
    assert (word in said) if word else not said


@pytest.mark.parametrize(
    ("name", "fault", "command"),
    [
        (NAME, FAULT, "python -m selftest --only 'links/one' --out"),
        (NAME, replace(FAULT, long=True), "python -m selftest --long --only 'links/one' --out"),
        ("harness/clean-1", replace(FAULT, expect=()), "python -m selftest --only 'clean' --out"),
    ],
)
def test_what_is_not_frozen_is_a_difference_and_says_how_it_becomes_so(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault, command: str
) -> None:
    monkeypatch.setattr(frozen, "_frozen", dict)
    said = frozen.difference(name, fault, run())
    assert name in said
    assert command in said
    assert f"python -m selftest.frozen --only '{name}'" in said


@pytest.mark.parametrize("count", [2, 30])
def test_a_clean_run_that_is_repeated_is_compared_with_the_first_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    pairs: list[tuple[Named, Named]] = []

    def play(_: object, named: Named, first: Named) -> tuple[str, str]:
        pairs.append((named, first))
        return named.name, ""

    monkeypatch.setattr(clean, "_play", play)
    clean.play(SimpleNamespace(), count, 2, lambda _: None)  # type: ignore[arg-type]
    assert len(pairs) == count + len(parts())
    assert all(one.fault == first.fault for one, first in pairs)
    compared = {f"{first.family}/{first.name}" for _, first in pairs}
    assert compared <= frozen.compared().keys()
    assert len(compared) == min(count, 2 * len(healthy())) + len(parts())
    assert {one.name for one in runs(count)} <= {one.name for one, _ in pairs}


class Tool:
    """The tool that freezes, and the file that it writes."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, *recordings: Mapping[str, object], more: tuple[str, ...] = ()) -> int:
        paths = []
        for number, one in enumerate(recordings):
            paths.append(self.file.with_name(f"said-{number}.json"))
            paths[-1].write_text(json.dumps(one))
        return frozen.main([*map(str, paths), *more])

    @property
    def held(self) -> dict[str, dict[str, object]]:
        """What is frozen now."""
        found: dict[str, dict[str, object]] = json.loads(self.file.read_bytes())
        return found


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tool:
    """The tool over a file of its own: one of four faults is frozen, and one that is gone."""
    file = tmp_path / "selftest.json"
    one = frozen.merged(NAME, [run(), run()])
    file.write_text(json.dumps({NAME: one, "links/gone": one}))
    monkeypatch.setattr(frozen, "FROZEN", file)
    monkeypatch.setattr(frozen, "_frozen", lambda: json.loads(file.read_bytes()))
    known = dict.fromkeys((NAME, "links/two", "links/three", "links/four"), FAULT)
    monkeypatch.setattr(frozen, "compared", lambda: known)
    return Tool(file)


def test_what_is_new_is_added_and_what_is_there_stays(tool: Tool) -> None:
    before = tool.held[NAME]
    first = {NAME: run(HOT), "links/two": run(), "links/three": run(SLOW)}
    assert tool(first, {"links/two": run(SLOW)}) == 0
    assert tool.held == {
        NAME: before,
        "links/two": frozen.merged("links/two", [run(), run(SLOW)]),
        "links/three": frozen.merged("links/three", [run(SLOW)]),
    }
    assert tool.held["links/two"]["always"] == [SLOW]
    assert tool.held["links/two"]["sometimes"] == [HOT]


def test_one_fault_alone_can_be_added(tool: Tool) -> None:
    said = {"links/two": run(), "links/three": run()}
    assert tool(said, said, more=("--only", "two")) == 0
    assert set(tool.held) == {NAME, "links/two"}


def test_what_is_there_is_replaced_where_that_is_asked(tool: Tool) -> None:
    assert tool({NAME: run(HOT)}, {NAME: run(HOT)}, more=("--replace",)) == 0
    assert tool.held == {NAME: frozen.merged(NAME, [run(HOT)])}


@pytest.mark.parametrize(
    ("recordings", "more", "named"),
    [
        (({"links/two": run()}, {"links/two": run(verdict="PASS")}), (), "links/two"),
        (({"links/five": run()},), (), "links/five"),
        (({"links/two": run()},), ("--only", "seven"), "seven"),
        (({"links/two": {"verdict": "FAIL"}},), (), "said-0.json"),
        (({"links/two": 3},), (), "said-0.json"),
        (({},), ("--only", "two"), "two"),
    ],
    ids=["another verdict", "no fault", "no such word", "a part of it", "a number", "empty"],
)
def test_what_cannot_be_frozen_is_one_sentence_and_changes_nothing(
    tool: Tool,
    capsys: pytest.CaptureFixture[str],
    recordings: tuple[dict[str, object], ...],
    more: tuple[str, ...],
    named: str,
) -> None:
    before = tool.file.read_bytes()
    assert tool(*recordings, more=more) == 2
    assert tool.file.read_bytes() == before
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


@pytest.mark.parametrize("text", [None, "", "[1]", '{"links/two":'])
def test_a_file_that_is_no_recording_is_named(
    tool: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text)
    assert frozen.main([str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
