"""The frozen verdicts of the self-test's runs: which differences count, and
that every run is terminal_run.
"""

from __future__ import annotations

import pytest

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
