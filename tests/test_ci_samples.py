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
from cases import each

from acceptance.cli import parser
from acceptance.core import exit_code

FOLDER = Path(__file__).resolve().parents[1] / "docs/ci"
NAMES = ("github-actions.yml", "gitlab-ci.yml", "Jenkinsfile")
TEXTS = {name: (FOLDER / name).read_text(encoding="utf-8") for name in NAMES}
_OWN = re.compile(r"\.venv/bin/rigproof ([^|;}\n']+?)(?: *\|\||; ?\}|'|$)", re.MULTILINE)


GITHUB: dict[Any, Any] = yaml.safe_load(TEXTS["github-actions.yml"])
(JOB,) = GITHUB["jobs"].values()
GITLAB: dict[str, Any] = yaml.safe_load(TEXTS["gitlab-ci.yml"])["nightly"]


def calls(name: str) -> list[list[str]]:
    """What a sample gives to rigproof, call by call."""
    return [shlex.split(found) for found in _OWN.findall(TEXTS[name])]


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


@each(
    "name, told",
    [
        *(
            (name, pattern)
            for name in NAMES
            for pattern in (r"""\bOUT\b *[:=] *'?/var/lib/rigproof'?$""", "junit.xml")
        ),
        ("github-actions.yml", r'"\$code" -eq 4'),
        ("Jenkinsfile", "code == 4"),
        ("Jenkinsfile", r"disableConcurrentBuilds\(\)"),
        ("Jenkinsfile", r"post \{\s+always \{"),
        ("Jenkinsfile", r"cron\("),
    ],
)
def test_history_stays_on_the_machine_and_a_skipped_night_is_no_failure(
    name: str, told: str
) -> None:
    assert re.search(told, TEXTS[name], re.MULTILINE)
    assert "/latest" not in TEXTS[name], "it may be another night's"
    assert (exit_code.SKIPPED, GITLAB["allow_failure"]) == (4, {"exit_codes": 4})


def test_nothing_of_a_stranger_starts_them_and_reports_are_kept_whatever_the_verdict() -> None:
    assert set(GITHUB[True]) == {"schedule", "workflow_dispatch"}  # YAML 1.1 takes `on` for true
    assert (GITHUB["permissions"], JOB["permissions"]) == ({}, {"contents": "read"})
    conditions = " ".join(rule["if"] for rule in GITLAB["rules"])
    assert set(re.findall(r'"(\w+)"', conditions)) == {"schedule", "web"}
    assert "merge_request" not in conditions
    assert GITHUB["concurrency"]["cancel-in-progress"] is False
    assert GITLAB["resource_group"]
    used = {step["uses"]: step for step in JOB["steps"] if "uses" in step}
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    (kept,) = (step for name, step in used.items() if "upload-artifact" in name)
    (made,) = (step for step in JOB["steps"] if step.get("id") == "made")
    assert made["if"] == "${{ always() }}"
    assert kept["if"] == "${{ always() && steps.made.outputs.run != '' }}"
    assert GITLAB["artifacts"]["when"] == "always"
    assert GITLAB["artifacts"]["reports"]["junit"].startswith("night/")


# What a sample types to publish.
STEPS = {
    "github-actions.yml": next(step["run"] for step in JOB["steps"] if step.get("id") == "made"),
    "gitlab-ci.yml": "\n".join(GITLAB["after_script"]),
    "Jenkinsfile": re.findall(r"^ +sh '(.*)'$", TEXTS["Jenkinsfile"], re.MULTILINE)[-1],
}


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
        ["bash", "-euc", STEPS[name]], cwd=work, env=env, check=True, capture_output=True
    )
    github = name == "github-actions.yml"
    told = work / ("output" if github else "night/junit.xml")
    due = f"run={out / 'of this job'}\n" if github else "of this job"
    assert (told.read_text() if told.exists() else None) == (due if own else None)
