"""`rigproof fleet pairs --slurm` in an allocation of a real Slurm of six nodes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from executable import executable
from pair_outputs import PYTHONPATH
from slurm_cluster import Cluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RIGPROOF = ROOT / ".venv/bin/rigproof"
COMMAND = shlex.join([sys.executable, str(HERE / "pair_outputs.py")])
# Stands for Python on the nodes: what the load would print, by the node that Slurm chose.
FAKE = f"""#!/bin/sh
export PYTHONPATH={shlex.quote(PYTHONPATH)}
[ "$SLURMD_NODENAME" != n4 ] || [ ! -f "$(dirname "$0")/slow" ] || exec sleep 300
exec {COMMAND} "$(dirname "$0")" "$SLURMD_NODENAME" "$@"
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        found = Cluster(Path(name), count=6)
        try:
            found.start()
            yield found
        finally:
            found.stop()


def pairs(cluster: Cluster, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    python = executable(folder / "python", FAKE)
    argv = ["salloc", "--quiet", "--nodes=6", str(RIGPROOF), "fleet", "pairs", "--slurm"]
    argv += ["--python", str(python), "--out", str(folder), *more]
    env = cluster.env()
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=150)


def test_each_program_runs_on_its_node(cluster: Cluster, tmp_path: Path) -> None:
    done = pairs(cluster, tmp_path)
    assert done.returncode == 0, done
    assert "PASS: 6 nodes, 3 tests" in done.stdout
    started = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    where = {
        (one[0], *(word for word in one if word.startswith(("rank=", "address="))))
        for one in started
    }
    assert where == {
        ("n1", "rank=0", "address=n1"),
        ("n2", "rank=1", "address=n1"),
        ("n3", "rank=0", "address=n3"),
        ("n4", "rank=1", "address=n3"),
        ("n5", "rank=0", "address=n5"),
        ("n6", "rank=1", "address=n5"),
    }


def test_a_program_that_hangs_is_ended_on_its_node_and_the_node_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "slow").write_text("")
    done = pairs(cluster, tmp_path, "--within", "6")
    assert done.returncode == 3, done
    found = json.loads((tmp_path / "pairs.json").read_text())
    assert found["not_reached"] == ["n4"]
    assert len(found["tests"]) == 3 + 2
    until(lambda: not cluster.ask("squeue", "-h"), 30, "an empty queue")
    until(lambda: not cluster.processes_of("n4"), 30, "no program on the node")
