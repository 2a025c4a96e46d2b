"""scripts/prove-two-gpus, with stubs in place of GPUs, tests and runs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from cases import each
from executable import executable

ROOT = Path(__file__).resolve().parents[1]
TWO = "echo NVIDIA H200; echo NVIDIA H200"
RATES = {
    "collective_all_reduce": 327.0,
    "collective_all_gather": 272.0,
    "collective_reduce_scatter": 269.0,
    "collective_all_to_all": 331.0,
    "collective_broadcast": 364.0,
    "collective_all_reduce_p2p_off": 26.19,
}
# Writes the run's folder as `accept` does: verb, --out, FOLDER, --run-dir-file, FILE.
ACCEPT = """[ "$1 $2 $4" = "accept --out --run-dir-file" ] || exit 2
mkdir "$3/made-$(basename "$5")" && cp "$(dirname "$0")/verdict.json" "$3/made-$(basename "$5")/"
echo "$3/made-$(basename "$5")" >"$5"
exit """


def prove(
    folder: Path,
    *,
    smi: str = TWO,
    tests: int = 0,
    accept: int = 0,
    rates: dict[str, float] = RATES,
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    rows = [
        {"measurement": name, "component": "gpus", "value": value} for name, value in rates.items()
    ]
    checks = [{"id": "link.collectives", "measurements": rows}, {"id": "link.peers"}]
    (folder / "verdict.json").write_text(json.dumps({"checks": checks}))
    real = f'[ "$1" = - ] && exec {shlex.quote(sys.executable)} "$@"'
    python = f'{real}\necho "$*"; echo 9 passed; exit {tests}'
    for name, text in {
        "nvidia-smi": smi,
        "python": python,
        "rigproof": ACCEPT + str(accept),
    }.items():
        executable(folder / name, f"#!/bin/sh\n{text}\n")
    done = subprocess.run(
        [ROOT / "scripts/prove-two-gpus", folder / "out"],
        env={
            "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
            "RIGPROOF": str(folder / "rigproof"),
            "TORCH_PYTHON": str(folder / "python"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_verdicts_and_figures_beside_the_recorded_ones(tmp_path: Path) -> None:
    code, told, said = prove(tmp_path)
    assert (code, said) == (0, ""), told
    assert told.splitlines()[0] == "tests/gpu: 9 passed"
    assert told.count("PASS, ") == 3
    found = {line.split()[0]: line.split()[1:] for line in told.splitlines()[-len(RATES) :]}
    assert found["collective_broadcast"] == ["364", "1.000", "364.0", "364.0", "364.0"]
    assert found["collective_all_reduce_p2p_off"] == ["27", "0.970", "26.2", "26.2", "26.2"]
    assert " -m gpu tests/gpu\n" in (tmp_path / "out/tests.txt").read_text()
    # the folder holds a proof, which is not written over
    assert prove(tmp_path)[::2] == (
        2,
        f"rigproof: {tmp_path}/out is not empty: give a new folder\n",
    )


LACKING = {name: rate for name, rate in RATES.items() if name != "collective_broadcast"}


@each(
    "options, code, line",
    [
        ({"tests": 1}, 1, "tests/gpu: 9 passed"),
        ({"accept": 1}, 1, "accept 3: FAIL"),
        ({"accept": 3}, 1, "accept 1: UNJUDGED"),
        ({"accept": 2}, 1, "accept 2: no run (exit status 2)"),
        ({"rates": LACKING}, 1, "none"),
        ({"smi": "echo NVIDIA H200"}, 2, "this needs two GPUs, and nvidia-smi lists: NVIDIA H200"),
        ({"smi": "exit 9"}, 2, "nvidia-smi lists no GPU"),
    ],
)
def test_what_did_not_pass_is_told(
    tmp_path: Path, options: dict[str, Any], code: int, line: str
) -> None:
    """Without two GPUs nothing is tried."""
    found, told, said = prove(tmp_path, **options)
    assert (found, line in (said if code == 2 else told)) == (code, True), told + said
    assert told == "" or code == 1
