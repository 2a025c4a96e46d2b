from __future__ import annotations

from pathlib import Path

import sample_runs
from cases import each
from thoroughness import ALL

from acceptance.diagnosis.gpu_history import histories
from acceptance.journal import reader, segment
from acceptance.journal import run as journal_run

VERDICTS = {
    "h200": "PASS",
    "2x4090-slow-card": "FAIL",
    "2x3090ti": "PASS",
    "8xh200-dead-link": "FAIL",
    "8xh200": "PASS",
    "reboot": "UNJUDGED",
    "unjudged": "UNJUDGED",
}


# Each takes a second, those of eight GPUs three: in `make test` one of each verdict.
FEW = ("h200", "2x4090-slow-card", "unjudged")


@each("name", sample_runs.NAMES if ALL else FEW)
def test_a_sample_run_is_a_run(name: str, tmp_path: Path) -> None:
    folder = sample_runs.write(name, tmp_path / "run")
    found = journal_run.read(folder)
    assert found.verdict.verdict == VERDICTS[name]
    if name != "8xh200":  # its samples are those of the other one
        seen = histories(segment.read_segment(folder / reader.GPU_TELEMETRY).entries)
        assert set(seen) == set(found.plan.gpus)
        assert all(history.maximum("power_w") > 200.0 for history in seen.values())
