"""A fault that is put into the harness itself turns the self-test red: whole self-tests of changed
copies, as `make selftest` runs them.

Each needs the engine and builds the copy's image, which differs from this one's in its last layer
only.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

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

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200)]

# What is done to the harness: a file, its right text, a wrong one; and the fault of the catalogue
# that must show it.
FAULTY = {
    "a parser that skips what it should read": (
        "acceptance/tools/gpu_burn.py",
        'if verdict == "FAULTY"',
        'if verdict == "no word of gpu-burn"',
        "gpu-burn-faulty-exit-0",
    ),
    "a limit that is dropped": (
        "acceptance/core/criterion.py",
        'if grade == "pass":',
        'if grade == "pass" or about.measurement == "gpu_sm_count":',
        "fewer-multiprocessors",
    ),
    "a fold that counts only failures": (
        "acceptance/core/verdict.py",
        '"UNJUDGED" if kinds & {"error", "skip"} else "PASS"',
        '"PASS"',
        "skips-the-work",
    ),
}


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Path]:
    """This checkout's files in a folder of their own; the images that were made
    from it go with it.
    """
    copy = tmp_path / "copy"
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / part, copy / part)
    interpreter(copy)
    engine = docker.from_env()
    before = {tag for image in engine.images.list("rigproof") for tag in image.tags}
    yield copy
    for tag in {tag for image in engine.images.list("rigproof") for tag in image.tags} - before:
        engine.images.remove(tag, noprune=True)
    engine.close()


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


def selftest(copy: Path, fault: str) -> tuple[int, str, list[dict[str, object]]]:
    """`python -m selftest` of a copy: its exit status, its closing line, its rows."""
    done = subprocess.run(
        [str(copy / ".venv/bin/python"), "-m", "selftest", "--out", "out", "--only", fault],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=1100,
    )
    found = sorted(copy.glob("out/selftest/*/rows.json"))
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    (closing,) = (
        line
        for line in done.stdout.splitlines()
        if line.startswith(("CAUGHT ALL: ", "NOT PROVED: "))
    )
    return done.returncode, closing, json.loads(found[-1].read_bytes())


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_in_the_harness_turns_the_self_test_red(copied: Path, name: str) -> None:
    file, right, wrong, fault = FAULTY[name]
    text = (copied / file).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (copied / file).write_text(text.replace(right, wrong), encoding="utf-8")
    code, closing, rows = selftest(copied, fault)
    assert code == 1, closing
    assert closing.startswith("NOT PROVED: ")
    assert [row for row in rows if not row["caught"]]
