"""The frozen verdicts of the self-test's runs: which differences count, and
that every run is terminal_run.
"""

from __future__ import annotations

import pytest
import statement

from selftest import clean, frozen
from selftest.__main__ import WHOLE
from selftest.fault import Fault, read

SLOW = "fail | link.p2p | p2p_gain | gpu0->gpu1 | p2p_gain on gpu0->gpu1: measured #"
HOT = "fail | watch.heat | gpu_temperature | gpu1"
GAIN = "link.p2p p2p_gain gpu0->gpu1"
HEAT = "watch.heat gpu_temperature gpu1"


def test_every_frozen_run_is_still_played() -> None:
    played = {
        f"{one.family}/{one.name}" for one in (*read(), *clean.runs(max(WHOLE)), *clean.parts())
    }
    assert set(frozen._frozen()) <= played


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
    monkeypatch.setattr(frozen, "_frozen", lambda: {"links/one": frozen.merged([run(), run()])})
    fault = Fault(what="a link that is slow", expect=(), code=1)
    said = frozen.difference("links/one", fault, now)
    assert (word in said) if word else not said
