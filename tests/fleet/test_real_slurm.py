"""`rigproof fleet submit --slurm` and the readers, on a real Slurm of four nodes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fleet_verdicts
import pytest
import slurm_cluster
from executable import executable
from fleet_verdicts import headed, verdict
from slurm_cluster import Cluster, until

from acceptance import resources
from acceptance.core.verdict import VerdictWord
from acceptance.reports import plain_json

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[2]
RIGPROOF = ROOT / ".venv/bin/rigproof"
RUN = "2026-11-27T00-00-00Z-0001"  # in the template of a verdict
# Stands for rigproof where Slurm is under test: it writes the verdict that the test wants of the
# node, and when it began and ended.
FAKE = r"""#!/bin/sh
here=$(dirname "$0") node=$SLURMD_NODENAME
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --run-dir-file) told=$2 ;; esac
    shift
done
echo "began $node ${SLURM_JOB_RESERVATION:-none}" >>"$here/log"
[ ! -f "$here/hangs-$node" ] || exec sleep 300
sleep 1
run=$(date -u +%Y-%m-%dT%H-%M-%SZ)-$(printf %04x $$)
mkdir -p "$out/$run"
echo "$out/$run" >"$told"
word=$(cat "$here/word-$node" 2>/dev/null || echo PASS)
sed "s/RUN_ID/$run/; s/NODE/$node/g" "$here/$word.json" >"$out/$run/verdict.json"
echo "ended $node" >>"$here/log"
"""


@dataclass
class Site:
    """The cluster as a site sees it: commands, the shared folder, and what the fake logged."""

    cluster: Cluster
    home: Path

    @property
    def shared(self) -> Path:
        return self.home / "shared"

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `rigproof fleet submit --slurm`."""
        own = ("--command", str(self.home / "rigproof"), "--out", str(self.home / "local"))
        argv = [str(RIGPROOF), "fleet", "submit", "--slurm", str(self.shared), *own, *arguments]
        env = {**self.cluster.env(), "COLUMNS": "300"}
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(argv, env=env, text=True, **both)

    def end(self, call: subprocess.Popen[str], code: int = 0) -> str:
        """What a call prints until it has ended."""
        printed = call.communicate(timeout=100)[0]
        assert call.returncode == code, (printed, self.log())
        return printed

    def submit(self, *arguments: str, code: int = 0) -> str:
        """Call `rigproof fleet submit --slurm`; returns what it printed."""
        return self.end(self.begin(*arguments), code)

    def log(self) -> list[str]:
        """What the fake has logged: one line when it begins, one when it ends."""
        log = self.home / "log"
        return log.read_text().splitlines() if log.exists() else []

    def hold(self, node: str, word: VerdictWord, hours: float = 1.0) -> None:
        """Let a node have a verdict of some hours ago."""
        fleet_verdicts.hold(self.shared, node, word, hours)

    def reason(self, node: str) -> str:
        return self.cluster.ask("sinfo", "-h", "-n", node, "-o", "%E").strip()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        yield from started(Path(name))


def started(folder: Path) -> Iterator[Cluster]:
    """A cluster with rigproof's readers, which is stopped afterwards."""
    folder.chmod(0o755)  # a job of another user has its script in it
    readers = folder / "readers"
    shutil.copytree(resources.deployment("slurm"), readers)
    (readers / "settings").write_text(f"folder={folder / 'no-runs'}\n")
    more = (
        f"Prolog={readers / 'prolog'}\nHealthCheckProgram={readers / 'healthcheck'}\n"
        "HealthCheckInterval=2\nHealthCheckNodeState=ANY"
    )
    found = Cluster(folder, more=more)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "shared").mkdir()
    executable(tmp_path / "rigproof", FAKE)
    for word in ("PASS", "FAIL"):
        file = verdict(word, "RUN_ID", serial="NODE", machine_id="NODE")
        (tmp_path / f"{word}.json").write_bytes(plain_json.render(headed(file)))
    yield Site(cluster, tmp_path)
    subprocess.run(["scancel", "--me"], env=cluster.env(), timeout=20, capture_output=True)
    until(lambda: not cluster.ask("squeue", "-h"), 30, "an empty queue")
    gone = ["scontrol", "delete", "ReservationName=repair"]
    subprocess.run(gone, env=cluster.env(), timeout=20, capture_output=True)
    for node, state in cluster.states().items():
        if {"drain", "down"} & set(state.split("+")):
            cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    cluster.until_states({f"n{number}": "idle" for number in range(1, 5)})


def test_each_node_once_in_waves_and_not_again(site: Site) -> None:
    told = site.submit("--licence", "rigproof", "--wait")
    assert "PASS: 4 machines due: 4 PASS" in told
    log = site.log()
    running = most = 0
    for line in log:
        running += 1 if line.startswith("began") else -1
        most = max(most, running)
    assert (len(log), running, most) == (8, 0, 2), log
    assert sorted(line.split()[1] for line in log if line.startswith("ended")) == [
        "n1",
        "n2",
        "n3",
        "n4",
    ]
    for number in range(1, 5):
        (run,) = (site.shared / f"n{number}").iterdir()
        assert [one.name for one in run.iterdir()] == ["verdict.json"]
        assert (site.home / "local" / run.name / "verdict.json").exists()
    told = site.submit("--licence", "rigproof")
    (fresh,) = [line for line in told.splitlines() if "not tested again" in line]
    assert re.findall(r"\bn[0-9]\b", fresh) == ["n1", "n2", "n3", "n4"]
    assert site.log() == log


def test_two_calls_at_once_submit_no_node_twice(site: Site) -> None:
    for number in range(1, 5):
        (site.home / f"hangs-n{number}").touch()
    printed = [site.end(one) for one in [site.begin() for _ in range(2)]]
    assert sum("submitted: n1 (" in one for one in printed) == 1, printed
    assert sum("a job waits or runs already: n1" in one for one in printed) == 1, printed
    queue = site.cluster.ask("squeue", "-h", "-o", "%n").split()
    assert sorted(queue) == ["n1", "n2", "n3", "n4"]


def test_a_wait_goes_on_when_the_controller_restarts(site: Site) -> None:
    call = site.begin("--nodes", "n[1-2]", "--wait")
    until(lambda: any(one.startswith("began") for one in site.log()), 20, "a job")
    site.cluster.stop_controller()
    time.sleep(3.0)
    site.cluster.start_controller()
    assert "PASS: 2 machines due: 2 PASS" in site.end(call)


def test_a_node_that_dies_in_the_middle_has_no_verdict_and_is_tested_when_it_is_back(
    site: Site,
) -> None:
    (site.home / "hangs-n3").touch()
    site.submit("--nodes", "n3")
    until(lambda: "began n3 none" in site.log(), 20, "n3's job")
    site.cluster.kill("n3")
    site.cluster.until_states({"n3": "down+not_responding"}, 60)
    told = site.submit("--nodes", "n3,n4", "--wait", code=3)
    assert "n3: down+not_responding (Not responding): not submitted" in told
    assert "is the newest run and has no verdict" in told
    assert "UNJUDGED: 2 machines due: 1 PASS, 0 FAIL, 1 UNJUDGED (1 without" in told
    (site.home / "hangs-n3").unlink()
    site.cluster.boot("n3")
    site.cluster.ask("scontrol", "update", "NodeName=n3", "State=RESUME")
    site.cluster.until_states({"n3": "idle"})
    assert "PASS: 2 machines due: 2 PASS" in site.submit("--nodes", "n3,n4", "--wait")


def test_drained_for_a_fail_and_undrained_for_a_pass(site: Site) -> None:
    """A user's job goes on; what somebody else drained stays drained."""
    site.hold("n2", "FAIL")
    site.hold("n3", "PASS")
    site.cluster.ask("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=new cable")
    done, go = site.home / "done", site.home / "go"
    user = ("--parsable", "-w", "n2", "--chdir=/", "--output=/dev/null")
    site.cluster.ask("sbatch", *user, f"--wrap=until [ -e {go} ]; do sleep 0.2; done; touch {done}")
    site.cluster.until_states({"n2": "allocated"})
    assert "drained" not in site.submit("--nodes", "n[2-3]"), "not unless asked"
    site.submit("--nodes", "n[2-3]", "--drain")
    assert site.cluster.states()["n2"] == "allocated+drain"
    assert site.reason("n2").startswith("rigproof FAIL: gemm.rate[bf16] 20")
    assert not done.exists()
    go.touch()
    until(done.exists, 20, "the end of the user's job")
    site.cluster.until_states({"n2": "idle+drain"})
    site.hold("n2", "PASS", hours=0.5)
    assert "n2: resumed, it passed" in site.submit("--nodes", "n[2-3]", "--drain")
    site.cluster.until_states({"n1": "idle", "n2": "idle", "n3": "idle+drain", "n4": "idle"})
    assert site.reason("n3") == "new cable"


def test_a_repaired_node_is_tested_in_its_reservation_and_released_on_pass(site: Site) -> None:
    for node in ("n1", "n2"):
        site.hold(node, "FAIL")
    site.submit("--nodes", "n[1-2]", "--drain")
    site.cluster.until_states({"n1": "idle+drain", "n2": "idle+drain"})
    assert "n1: idle+drain (rigproof FAIL" in site.submit(
        "--nodes", "n[1-2]", "--fresh", "0.1", code=3
    )
    (site.home / "word-n2").write_text("FAIL")
    repair = ("ReservationName=repair", "StartTime=now", "Duration=60", "Users=root")
    made = ("scontrol", "create", "reservation", *repair, "Flags=MAINT,IGNORE_JOBS", "Nodes=n[1-2]")
    site.cluster.ask(*made)
    time.sleep(1.1)  # a run of the second in which it begins is an earlier one
    told = site.submit("--reservation", "repair", "--wait", code=1)
    assert "released from the reservation repair: n1" in told
    assert sorted(site.log()) == ["began n1 repair", "began n2 repair", "ended n1", "ended n2"]
    held = site.cluster.ask("scontrol", "show", "reservation", "repair", "-o")
    assert "Nodes=n2 " in held
    site.cluster.until_states({"n1": "idle", "n2": "idle+drain+maintenance+reserved"})
    assert site.reason("n2").startswith("rigproof FAIL: gemm.rate[bf16]")
    # A new repair is a new reservation.
    site.cluster.ask("scontrol", "delete", "ReservationName=repair")
    site.cluster.ask(*made[:-1], "Nodes=n2")
    time.sleep(1.1)
    (site.home / "word-n2").unlink()
    site.submit("--reservation", "repair", "--wait")
    assert site.cluster.ask("scontrol", "show", "reservation").startswith("No reservations")
    site.cluster.until_states({"n1": "idle", "n2": "idle"})


def test_the_prolog_keeps_jobs_off_a_failed_machine_but_ours(site: Site) -> None:
    runs = site.home / "runs"
    settings = site.cluster.folder / "readers/settings"
    before = settings.read_text()
    site.submit("--nodes", "n4", "--wait")
    shutil.copytree(site.shared / "n4", runs)
    settings.write_text(f"folder={runs}\nblock=stale\n")
    try:
        nobody = ("sbatch", "--parsable", "--uid=65534", "--chdir=/", "-o", "/dev/null")
        job = site.cluster.ask(*nobody, "-w", "n1", "--wrap=true").strip()
        shown = ("scontrol", "show", "job", job)
        until(lambda: "JobState=COMPLETED" in site.cluster.ask(*shown), 20, "nobody's job")
        (kept,) = runs.glob("*/verdict.json")
        kept.write_text(kept.read_text().replace('"verdict": "PASS"', '"verdict": "FAIL"'))
        assert site.cluster.ask("srun", "-w", "n1", "echo", "root's") == "root's\n"
        site.cluster.ask(*nobody, "-w", "n1", "--wrap=true")
        site.cluster.until_states({"n1": "idle+drain"})
        assert site.reason("n1") == "Prolog error"
        assert "FAIL" not in site.submit("--nodes", "n1", "--drain", code=3), "not ours"
        assert site.cluster.states()["n1"] == "idle+drain"
        # slurmd starts and registers although the verdict is FAIL.
        pid = int((site.cluster.folder / "n2.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists(), 10, "the end of n2's daemon")
        site.cluster.boot("n2")
        assert site.cluster.ask("srun", "-w", "n2", "echo", "up") == "up\n"
    finally:
        settings.write_text(before)
        subprocess.run(
            ["scancel", "-u", "nobody"], env=site.cluster.env(), timeout=20, capture_output=True
        )


def test_a_run_of_rigproof_itself(site: Site) -> None:
    """Its verdict arrives; a run of one check is no acceptance."""
    machine = ROOT / "fixtures/machines/cpu-only.toml"
    only = ("--machine", str(machine), "--profile", "smoke", "--only", "kernel_log")
    told = site.submit(
        *("--nodes", "n1", "--wait", "--command", str(RIGPROOF), "--", *only), code=3
    )
    assert "UNJUDGED n1: run " in told
    (run,) = (site.shared / "n1").iterdir()
    reader = resources.deployment("slurm/verdict")
    for folder in (site.home / "local", site.shared / "n1"):
        done = subprocess.run([reader, folder], capture_output=True, text=True, timeout=10)
        word, age, named = done.stdout.split()
        assert (word, named) == ("PARTIAL", run.name), sys.version
        assert 0 <= int(age) < 100


def test_a_run_that_is_cancelled_ends_as_unjudged_and_its_verdict_arrives(site: Site) -> None:
    machine = ROOT / "fixtures/machines/cpu-only.toml"
    only = ("--machine", str(machine), "--profile", "smoke", "--only", "memory.bandwidth")
    site.submit("--nodes", "n1", "--command", str(RIGPROOF), "--", *only)
    local = site.home / "local"
    until(lambda: any(local.glob("20*/journal-load.jsonl")), 40, "the run's load session")
    site.cluster.ask("scancel", "--me")
    until(lambda: not site.cluster.ask("squeue", "-h"), 30, "the end of the job")
    (kept,) = (site.shared / "n1").glob("20*/verdict.json")
    assert json.loads(kept.read_text())["verdict"] == "UNJUDGED"
    (site.home / "hangs-n1").touch()
    assert "submitted: n1 (" in site.submit("--nodes", "n1"), "it has not been proved"
