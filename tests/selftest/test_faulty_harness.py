"""A fault that is put into the harness itself turns the self-test red: the self-test of a changed
copy, as `make selftest` runs it.

The copy has all the faults. Those of the catalogue that must show them are played in place, where
no image of the copy has to be built.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from selftest import fault

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "acceptance",
    "containers",
    "deploy",
    "fixtures",
    "scripts",
    "selftest",
    "tests",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "tox.ini",
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

# What is done to the harness: a file, its right text, a wrong one; the fault of the catalogue that
# must show it, and how.
FAULTY = {
    "a parser that skips what it should read": (
        "acceptance/tools/gpu_burn.py",
        'if verdict == "FAULTY"',
        'if verdict == "no word of gpu-burn"',
        "gpu-burn-faulty-exit-0",
        "burn.gpu_burn[tensor] came to pass, not fail: ",
    ),
    "a limit that is dropped": (
        "acceptance/core/finding.py",
        'if grade == "pass":',
        'if grade == "pass" or about.measurement == "gpu_sm_count":',
        "fewer-multiprocessors",
        "gpu.device_query came to pass, not fail: ",
    ),
    "a fold that counts only failures": (
        "acceptance/core/verdict.py",
        '"UNJUDGED" if kinds & {"error", "skip"} else "PASS"',
        '"PASS"',
        "skips-the-work",
        "it ended with 0, not 3",
    ),
}


def interpreter(copy: Path) -> None:
    """An environment in which the copy is installed, with all that is installed in this one."""
    venv.EnvBuilder(symlinks=True).create(copy / ".venv")
    (site,) = copy.glob(".venv/lib/python3*/site-packages")
    own = [str(copy), *(one for one in sys.path if one.endswith("site-packages"))]
    (site / "copy.pth").write_text("".join(f"{one}\n" for one in own), encoding="utf-8")
    script = copy / ".venv/bin/rigproof"
    script.write_text(
        f"#!{copy}/.venv/bin/python -P\nimport sys\nfrom acceptance.__main__ import "
        "main\nsys.exit(main())\n"
    )
    script.chmod(0o755)


def changed(copy: Path) -> None:
    """This checkout's files in a folder of their own, with every fault, and the catalogue."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / part, copy / part)
    for file, right, wrong, name, _ in FAULTY.values():
        text = (copy / file).read_text(encoding="utf-8")
        assert text.count(right) == 1
        (copy / file).write_text(text.replace(right, wrong), encoding="utf-8")
        (shown,) = fault.FAULTS.glob(f"*/{name}.toml")
        played = copy / "played" / shown.relative_to(fault.FAULTS)
        played.parent.mkdir(parents=True, exist_ok=True)
        in_place = re.sub(r"(?m)^code = ", r'station = "host"\n\g<0>', shown.read_text("utf-8"))
        played.write_text(in_place, encoding="utf-8")


def test_a_fault_in_the_harness_turns_the_self_test_red(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    changed(copy)
    interpreter(copy)
    argv = [str(copy / ".venv/bin/python"), "-m", "selftest", "--faults", "played", "--out", "out"]
    # What names a part, here all of the three faults, leaves out clean runs and kills.
    done = subprocess.run(
        [*argv, "--only", "/"], cwd=copy, capture_output=True, text=True, timeout=500
    )
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == 1, said
    assert "NOT PROVED: " in done.stdout, said
    (rows,) = (json.loads(one.read_bytes()) for one in copy.glob("out/selftest/*/rows.json"))
    missed = {row["fault"].partition(" ")[0]: row["wrong"] for row in rows if not row["caught"]}
    assert missed == {name: how for *_, name, how in FAULTY.values()}, said
