"""The alert rules of docs/monitoring: of metrics that we write, and doing what
the page says of them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import journals
import machine_facts
import msgspec
import pytest
import samples
import yaml
from prometheus_client.parser import text_string_to_metric_families

from acceptance.core.evidence import Observed
from acceptance.core.past import Bounds, FirstNights, Level, Past
from acceptance.core.record import Postponed, RunEnded
from acceptance.notify import textfile
from acceptance.process import command
from acceptance.process.deadline import Deadline

FOLDER = Path(__file__).resolve().parents[2] / "docs/monitoring"
RULES = FOLDER / "rigproof.rules.yml"
PAST = Past(
    decides=True,
    off_fails=3,
    off_of=10,
    level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
    first=FirstNights(152.0, 10, 20000.0, Bounds(low=140.0), baseline=True),
)
_METRIC = re.compile(r"\brigproof_[a-z_]+")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_bytes())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def everything() -> tuple[bytes, ...]:
    """All metrics that there are, of runs with and without a past, and of a
    night that was skipped.
    """
    birth = machine_facts.ruled(machine_facts.born(machine_facts.machine()))
    made = journals.plan(journals.check("link.copy", journals.due().against(PAST)))
    made = msgspec.structs.replace(made, birth=birth)
    started, *rest = journals.bodies(made)
    ran = samples.run([started, Observed(machine_facts.machine(1)), *rest])
    put_off = samples.run(
        [started, Postponed(("gpu0 is in use",), 1, 7), RunEnded(False, "in use")]
    )
    return (
        textfile.run_metrics(ran),
        textfile.run_metrics(samples.mixed()),
        textfile.night_metrics(put_off),
    )


def labels() -> dict[str, set[str]]:
    """The labels of each metric."""
    found: dict[str, set[str]] = {}
    for text in everything():
        for metric in text_string_to_metric_families(text.decode("utf-8")):
            found.setdefault(metric.name, set()).update(
                key for sample in metric.samples for key in sample.labels
            )
    return found


def test_rules_speak_of_metrics_that_are_written() -> None:
    known = labels()
    for rule in rules():
        used = set(_METRIC.findall(rule["expr"]))
        assert used, rule["alert"]
        assert used <= set(known), rule["alert"]
        for label in re.findall(r"\{([a-z]+)=", rule["expr"]):
            assert any(label in known[name] for name in used)
        texts = " ".join(rule["annotations"].values())
        own = set().union(*(known[name] for name in used)) | {"instance"}
        assert set(re.findall(r"\$labels\.([a-z_]+)", texts)) <= own, rule["alert"]


def test_every_alert_and_every_metric_is_on_the_page() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for rule in rules():
        assert f"`{rule['alert']}`" in page
    named = set(_METRIC.findall(page)) - {"rigproof_"}
    assert set(labels()) <= named
    assert named <= set(labels())


# --- by Prometheus itself ---


def promtool(*arguments: str, stdin: Path | None = None) -> command.ProgramResult:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not here (Debian: in the package prometheus)")
    return command.run(["promtool", *arguments], deadline=Deadline.after(60.0), stdin=stdin)


@pytest.mark.tools
def test_prometheus_takes_the_rules() -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.tools
def test_alerts_come_and_go_as_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("rules_test.yml"), tmp_path)
    done = promtool("test", "rules", str(tmp_path / "rules_test.yml"))
    assert done.returncode == 0, done.stdout


@pytest.mark.tools
def test_every_alert_has_been_seen_to_come() -> None:
    tests = yaml.safe_load(Path(__file__).with_name("rules_test.yml").read_bytes())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    for rule in rules():
        assert {
            bool(case["exp_alerts"]) for case in cases if case["alertname"] == rule["alert"]
        } == {True, False}


@pytest.mark.tools
def test_prometheus_has_nothing_against_the_metrics(tmp_path: Path) -> None:
    for name, run in (
        ("mixed", samples.mixed()),
        ("hostile", samples.hostile('\\ " \n {} \x1b 中')),
    ):
        (tmp_path / name).write_bytes(textfile.run_metrics(run) + textfile.night_metrics(run))
        done = promtool("check", "metrics", stdin=tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
