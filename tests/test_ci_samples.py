"""The samples for CI: what they call can be called, a skipped night is no failure, and nothing
of a stranger starts them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from acceptance.cli import parser
from acceptance.core import exit_code

FOLDER = Path(__file__).resolve().parents[1] / "docs/ci"
NAMES = ("github-actions.yml", "gitlab-ci.yml", "Jenkinsfile")
TEXTS = {name: (FOLDER / name).read_text(encoding="utf-8") for name in NAMES}
_OWN = re.compile(r"\.venv/bin/rigproof ([^|;}\n']+?)(?: *\|\||; ?\}|'|$)", re.MULTILINE)


def calls(name: str) -> list[list[str]]:
    """What a sample gives to rigproof, call by call."""
    return [shlex.split(found) for found in _OWN.findall(TEXTS[name])]


def github() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(TEXTS["github-actions.yml"])
    return found


def gitlab() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXTS["gitlab-ci.yml"])["nightly"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_is_called_can_be_called(name: str) -> None:
    found = calls(name)
    assert "nightly" in [call[0] for call in found]
    for call in found:
        given = parser.parser(call).parse_args(call)
        if given.verb == "nightly":
            assert given.machine is not None
            assert given.out == Path("$OUT"), "the history must outlive the workspace"
            assert given.run_dir_file is not None, "latest may be another night's"


@pytest.mark.parametrize("name", NAMES)
def test_history_stays_on_the_machine(name: str) -> None:
    assert re.search(r"""\bOUT\b *[:=] *'?/var/lib/rigproof'?$""", TEXTS[name], re.MULTILINE)
    assert "junit.xml" in TEXTS[name]


def test_a_skipped_night_has_one_exit_code_everywhere() -> None:
    assert exit_code.SKIPPED == 4
    assert gitlab()["allow_failure"] == {"exit_codes": 4}
    assert '"$code" -eq 4' in TEXTS["github-actions.yml"]
    assert "code == 4" in TEXTS["Jenkinsfile"]


def test_nothing_of_a_stranger_starts_them() -> None:
    assert set(github()[True]) == {"schedule", "workflow_dispatch"}  # YAML 1.1 takes `on` for true
    assert github()["permissions"] == {}
    (job,) = github()["jobs"].values()
    assert job["permissions"] == {"contents": "read"}
    conditions = " ".join(rule["if"] for rule in gitlab()["rules"])
    assert set(re.findall(r'"(\w+)"', conditions)) == {"schedule", "web"}
    assert "merge_request" not in conditions
    assert "cron(" in TEXTS["Jenkinsfile"]


def test_one_at_a_time() -> None:
    assert github()["concurrency"]["cancel-in-progress"] is False
    assert gitlab()["resource_group"]
    assert "disableConcurrentBuilds()" in TEXTS["Jenkinsfile"]


def test_actions_are_pinned_by_digest() -> None:
    (job,) = github()["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)


def test_reports_are_kept_whatever_the_verdict() -> None:
    (job,) = github()["jobs"].values()
    (kept,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    (made,) = [step for step in job["steps"] if step.get("id") == "made"]
    assert made["if"] == "${{ always() }}"
    assert kept["if"] == "${{ always() && steps.made.outputs.run != '' }}"
    assert gitlab()["artifacts"]["when"] == "always"
    assert gitlab()["artifacts"]["reports"]["junit"].startswith("night/")
    assert re.search(r"post \{\s+always \{", TEXTS["Jenkinsfile"])


def steps(name: str) -> str:
    """What a sample types to publish."""
    if name == "gitlab-ci.yml":
        return "\n".join(gitlab()["after_script"])
    if name == "Jenkinsfile":
        return re.findall(r"^ +sh '(.*)'$", TEXTS[name], re.MULTILINE)[-1]
    (job,) = github()["jobs"].values()
    return str(next(step["run"] for step in job["steps"] if step.get("id") == "made"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("own", [True, False])
def test_only_what_the_job_has_made_is_published(tmp_path: Path, name: str, own: bool) -> None:
    """`latest` is there in any case, of another night."""
    out, work = tmp_path / "out", tmp_path / "work"
    for folder in ("earlier", "of this job"):
        (out / folder).mkdir(parents=True)
        (out / folder / "junit.xml").write_text(folder)
    (out / "latest").symlink_to("earlier")
    work.mkdir()
    if own:
        (work / "run-dir").write_text(f"{out / 'of this job'}\n")
    env = {"PATH": os.environ["PATH"], "OUT": str(out), "MADE": "run-dir", "RUNNER_TEMP": str(work)}
    env["GITHUB_OUTPUT"] = str(work / "output")
    subprocess.run(
        ["bash", "-euc", steps(name)], cwd=work, env=env, check=True, capture_output=True
    )
    if name == "github-actions.yml":
        found = (work / "output").read_text() if (work / "output").exists() else None
        assert found == (f"run={out / 'of this job'}\n" if own else None)
    else:
        found = (work / "night/junit.xml").read_text() if (work / "night").exists() else None
        assert found == ("of this job" if own else None)


@pytest.mark.parametrize("name", NAMES)
def test_latest_is_published_by_none(name: str) -> None:
    assert "/latest" not in TEXTS[name]
