"""A burn that is cut off: what its loads had told until then is in the journal, and decides."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import journals
import pytest
from product_session import observed
from runs import known_provenance, machine_root, until
from wrong_results import one_bit

from acceptance.core.record import Note
from acceptance.journal import reader, segment
from acceptance.process import orphans
from acceptance.run import supervisor, unfinished
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.run.supervisor import Supervisor
from acceptance.station.options import Options
from acceptance.wording import words

# A load as they are: it says hello, tells what it proved, finds something wrong, and would go on
# for days.
LOAD = """
import json, sys, time
def say(record):
    print(json.dumps(record), flush=True)
say({"rigproof_load": 1, "load": "burn", "parameters": {"seconds": 90000}})
formats = [{"format": "bf16", "rate": 900.5, "right": 8, "wrong": 0}]
say({"lap": 1, "laps": 900, "done": 30, "formats": formats})
found = {**json.loads(RING), "found_s": time.clock_gettime(time.CLOCK_BOOTTIME)}
say({"miscompare": found})
say({"miscompare": {**found, "iteration": 18}})
time.sleep(600)
""".replace("RING", repr(json.dumps(one_bit(3))))
# A session with one check, whose programs are heard: as `_Session` and `Programs` do it.
SESSION = """
import os, pathlib, signal, sys
from acceptance.journal import segment
from acceptance.session import context as session, load_events
from acceptance.session.programs import Programs
from acceptance.session.loads import Part
from acceptance.core.parts import (Gpu)
from acceptance.core.record import CheckStarted, Event, RunStarted, SessionStarted
gpu, folder, load, plan = Gpu(0), pathlib.Path(sys.argv[1]), *sys.argv[2:4]
context = session.read(pathlib.Path(plan))
with segment.Writer(folder / "journal-load.jsonl", pathlib.Path(context.root)) as writer:
    check = context.plan.checks[0]
    writer.write(SessionStarted("load", context.plan.digest, (check.id,)))
    writer.write(CheckStarted(check.id))
    hear = load_events.listener([gpu], writer.write)
    def heard(index, line):
        hear(index, line)
        if index == 0 and "iteration" in line:
            os.kill(os.getpid(), signal.SIGKILL)
    part = Part(gpu, (sys.executable, "-c", load))
    Programs(check, folder / "logs", writer.write).run_stage([part] * 2, on_line=heard)
"""


class Burning:
    """Stands for the station of the run."""

    name = "fake"
    provenance: dict[str, str] = {}  # noqa: RUF012
    notes: tuple[Note, ...] = ()

    def inside(self, run_dir: Path) -> Path:
        return run_dir


def test_a_harness_that_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL to everything, as a reset does it: the next start closes the run,
    and it is a fail.
    """
    known_provenance(monkeypatch)
    root = machine_root(tmp_path / "root")
    run_dir = supervisor.new_run_dir(tmp_path / "out")
    made = journals.plan(journals.check("together.burn", seconds=1000.0))
    prepared = PreparedRun(Options(root=root), None, observed(), made, "a summary")
    station: Any = Burning()
    with segment.Writer(run_dir / reader.SUPERVISOR, root) as writer:
        owner = Supervisor(prepared, station, run_dir, lambda _entry: None)
        for body in header_records(prepared, station, run_dir):
            writer.write(body)
        context = owner._context("load", made.checks, station)
    argv = [sys.executable, "-c", SESSION, str(run_dir), LOAD, str(context)]
    with subprocess.Popen(argv, env={**os.environ, "RIGPROOF_RUN": run_dir.name}) as process:
        assert process.wait(60) == -signal.SIGKILL
    until(lambda: not orphans.find(run_dir.name), "its loads died with it")
    told = unfinished.close(run_dir, root)
    assert told is not None
    assert "together.burn was running" in words.message(told)
    verdict = json.loads((run_dir / "verdict.json").read_bytes())
    assert verdict["verdict"] == "FAIL"
    assert "miscompare bf16 on gpu0" in str(verdict["violations"])
    assert "proved until then: gpu0: lap 1 of 900" in str(verdict["unjudged"])
