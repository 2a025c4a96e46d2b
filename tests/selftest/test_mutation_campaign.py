"""The whole of it, in a process of its own: faults put into the product on purpose are noticed,
and what no test looks at is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Of these modules, the mutations with these changes; or all of them, where none is named.
DRIVER = """
import dataclasses, json, sys
from pathlib import Path
from selftest.mutation import campaign, equivalents, runner
from selftest.mutation.subjects import SUBJECTS, Subject
root, scratch, asked, listed = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), Path(sys.argv[4])
runner.PATIENCE_S = 1.5
known = (*SUBJECTS, Subject("acceptance/fold.py", (("tests/test_fold.py",),)))
subjects = [dataclasses.replace(one, stages=one.stages[:1]) for one in known if one.path in asked]
jobs = [
    job for job in campaign.in_code(root, subjects)
    if not asked[job.subject.path] or job.mutation.change in asked[job.subject.path]
]
try:
    results = campaign.try_code(root, scratch, jobs, equivalents.read(listed), 2)
except campaign.NotGreen as error:
    sys.exit(str(error))
print(json.dumps([dataclasses.asdict(one) for one in results]))
"""  # noqa: E501
FOLD = '''"""A fold that is judged by its tests."""

import time


def verdict(kinds: list[str], most: int) -> str:
    if "fail" in kinds:
        return "FAIL"
    while len(kinds) > most:
        time.sleep(0.01)
        kinds = kinds[1:]
    return "PASS"
'''
TEST = """from acceptance.fold import verdict


def test_a_failure_fails() -> None:
    assert verdict(["fail"], 2) == "FAIL"


def test_nothing_passes() -> None:
    assert verdict([], 2) == "PASS"
"""


def drive(
    tmp_path: Path, root: Path, asked: dict[str, list[str]], listed: str = ""
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "listed.toml").write_text(listed, encoding="utf-8")
    argv = [
        sys.executable,
        "-c",
        DRIVER,
        root,
        tmp_path / "scratch",
        json.dumps(asked),
        tmp_path / "listed.toml",
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "COVERAGE"))
    }
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [str(one) for one in argv], env=environment, capture_output=True, text=True, timeout=100
    )


def became(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    return {one["change"]: one for one in json.loads(done.stdout.splitlines()[-1])}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A product of one module with one file of tests."""
    root = tmp_path / "project"
    for name, text in (
        ("acceptance/__init__.py", ""),
        ("acceptance/fold.py", FOLD),
        ("tests/test_fold.py", TEST),
        ("tox.ini", "[pytest]\nstrict = true\nfilterwarnings = error\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.sweep
def test_each_mutation_is_noticed_or_not_and_the_list_excuses_only_what_it_names(
    tmp_path: Path, project: Path
) -> None:
    entry = {
        "path": "acceptance/fold.py",
        "line": "while len(kinds) > most:",
        "change": "len(kinds) > most -> len(kinds) >= most",
        "why": "no test of this project looks at it",
    }
    listed = "[[equivalent]]\n" + "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in entry.items()
    )
    found = became(drive(tmp_path, project, {"acceptance/fold.py": []}, listed))
    failure = "tests/test_fold.py::test_a_failure_fails"
    assert found["'fail' in kinds -> False"]["by"] == failure
    assert found["'FAIL' -> 'PASS'"]["by"] == failure
    assert found["'fail' in kinds -> True"]["by"] == "tests/test_fold.py::test_nothing_passes"
    assert found["len(kinds) > most -> True"]["by"] == "(hangs)"
    assert found["1 -> 2"]["by"] == ""
    assert found["1 -> 2"]["why"] is None
    assert found[entry["change"]]["why"] == entry["why"]
    assert [one["change"] for one in found.values() if one["why"]] == [entry["change"]]


@pytest.mark.sweep
def test_without_a_green_beginning_there_is_no_score(tmp_path: Path, project: Path) -> None:
    (project / "tests/test_fold.py").write_text(
        TEST + "\n\ndef test_wrong() -> None:\n    raise ValueError\n"
    )
    done = drive(tmp_path, project, {"acceptance/fold.py": []})
    assert done.returncode == 1
    assert "not green without any mutation" in done.stderr
    assert "tests/test_fold.py::test_wrong" in done.stderr


@pytest.mark.sweep
def test_faults_put_into_the_product_are_noticed(tmp_path: Path) -> None:
    """A fold that counts only failures, a parser that skips what it read, a
    clock event bit that is gone.
    """
    asked = {
        "acceptance/core/verdict.py": ["'UNJUDGED' -> 'PASS'", "'FAIL' -> 'PASS'"],
        "acceptance/tools/nvbandwidth.py": ["self.matrices.append(matrix) -> pass"],
        "acceptance/observe/gpu_sample.py": ["64 -> 0"],
    }
    found = became(drive(tmp_path, ROOT, asked))
    assert all(one["by"] for one in found.values()), found
    assert {one["path"] for one in found.values()} == asked.keys()
