"""The alert rules of docs/monitoring: of metrics that we write, and doing what
the page says of them.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import fleet_reports
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
from acceptance.fleet.views import metrics as fleet_metrics
from acceptance.notify import textfile
from acceptance.process import command
from acceptance.process.deadline import Deadline

FOLDER = Path(__file__).resolve().parents[2] / "docs/monitoring"
RULES = FOLDER / "rigproof.rules.yml"
FLEET_RULES = FOLDER / "rigproof-fleet.rules.yml"
FILES = {RULES: "rules_test.yml", FLEET_RULES: "fleet_rules_test.yml"}
PAST = Past(
    decides=True,
    off_fails=3,
    off_of=10,
    level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
    first=FirstNights(152.0, 10, 20000.0, Bounds(low=140.0), baseline=True),
)
_METRIC = re.compile(r"\brigproof_[a-z_]+")


def rules(*files: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in files or FILES:
        (group,) = yaml.safe_load(file.read_bytes())["groups"]
        found += group["rules"]
    return found


def everything() -> tuple[bytes, ...]:
    """All metrics that there are, of runs with and without a past, and of a
    night that was skipped.
    """
    birth = machine_facts.ruled(machine_facts.born(machine_facts.machine()))
    made = journals.plan(journals.check("link.copy", journals.due().against(PAST)))
    made = msgspec.structs.replace(made, baseline=birth)
    started, *rest = journals.bodies(made)
    ran = samples.run([started, Observed(machine_facts.machine(1)), *rest])
    put_off = samples.run(
        [started, Postponed(("gpu0 is in use",), 1, 7), RunEnded(False, "in use")]
    )
    return (
        textfile.run_metrics(ran),
        textfile.run_metrics(samples.mixed()),
        textfile.night_metrics(put_off),
        fleet_metrics.render(fleet_reports.many(10)),
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


def test_rules_speak_of_metrics_that_are_written_and_are_on_the_page() -> None:
    known, page = labels(), (FOLDER / "README.md").read_text(encoding="utf-8")
    for rule in rules():
        used = set(_METRIC.findall(rule["expr"]))
        assert used, rule["alert"]
        assert used <= set(known), rule["alert"]
        own = set().union(*(known[name] for name in used)) | {"instance"}
        named = re.findall(r"\{([a-z]+)=", rule["expr"])
        named += re.findall(r"\$labels\.([a-z_]+)", " ".join(rule["annotations"].values()))
        assert set(named) <= own, rule["alert"]
        assert f"`{rule['alert']}`" in page
    assert set(_METRIC.findall(page)) - {"rigproof_"} == set(known)


# --- by Prometheus itself ---


def promtool(*arguments: str, stdin: Path | None = None) -> command.ProgramResult:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not here (Debian: in the package prometheus)")
    return command.run(["promtool", *arguments], deadline=Deadline.after(60.0), stdin=stdin)


@pytest.mark.tools
@pytest.mark.parametrize(("file", "test"), FILES.items(), ids=FILES.values())
def test_alerts_come_and_go_as_they_should(file: Path, test: str, tmp_path: Path) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(file))
    assert done.returncode == 0, done.stderr + done.stdout
    for path in (file, Path(__file__).with_name(test)):
        shutil.copy(path, tmp_path)
    done = promtool("test", "rules", str(tmp_path / test))
    assert done.returncode == 0, done.stdout


@pytest.mark.tools
def test_prometheus_has_nothing_against_the_metrics(tmp_path: Path) -> None:
    file = tmp_path / "metrics"
    for text in (*everything(), textfile.run_metrics(samples.hostile('\\ " \n {} \x1b \u4e2d'))):
        file.write_bytes(text)
        done = promtool("check", "metrics", stdin=file)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- the dashboard ---


DASHBOARD: dict[str, Any] = json.loads((FOLDER / "rigproof-fleet.json").read_bytes())


def expressions() -> list[str]:
    """The queries of the dashboard's panels, of all machines."""
    texts = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [re.sub(r"\$[a-z]+", ".*", text) for text in texts]


def test_the_dashboard_speaks_of_metrics_and_labels_that_are_written_in_any_datasource() -> None:
    known, variables = labels(), DASHBOARD["templating"]["list"]
    asked = [one["definition"] for one in variables if "definition" in one]
    for text in (*expressions(), *asked):
        used = set(_METRIC.findall(text))
        assert used, text
        assert used <= set(known), text
        own = set().union(*(known[name] for name in used)) | {"instance"}
        assert set(re.findall(r"[{,] ?([a-z]+)=", text)) <= own, text
    assert (variables[0]["name"], variables[0]["type"]) == ("datasource", "datasource")
    assert set(re.findall(r'"uid": "(.*?)"', json.dumps([variables, DASHBOARD["panels"]]))) == {
        "${datasource}"
    }


@pytest.mark.tools
def test_prometheus_can_read_every_query_of_the_dashboard(tmp_path: Path) -> None:
    made = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$[a-z]+", ".*", text)}
        for number, text in enumerate(expressions())
    ]
    (tmp_path / "queries.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "x", "rules": made}]})
    )
    done = promtool("check", "rules", str(tmp_path / "queries.yml"))
    assert done.returncode == 0, done.stderr + done.stdout


def test_every_alert_has_been_seen_to_come_and_to_go() -> None:
    texts = [Path(__file__).with_name(name).read_bytes() for name in FILES.values()]
    seen = {
        (case["alertname"], bool(case["exp_alerts"]))
        for text in texts
        for test in yaml.safe_load(text)["tests"]
        for case in test["alert_rule_test"]
    }
    assert {(rule["alert"], come) for rule in rules() for come in (True, False)} <= seen


@pytest.mark.tools
def test_a_gpu_of_dcgm_exporter_gets_the_machine_of_the_report(tmp_path: Path) -> None:
    joined = [text for text in expressions() if "DCGM_FI_" in text]
    assert [text for text in joined if "on (UUID)" not in text] == []
    (temperature,) = (text for text in joined if "DCGM_FI_DEV_GPU_TEMP" in text)
    info = 'rigproof_fleet_gpu_info{instance="head", machine="gpu-01", serial="%s"}'
    dcgm = 'DCGM_FI_DEV_GPU_TEMP{UUID="%s", gpu="0", instance="%s:9400"}'
    labelled = '{UUID="GPU-1", gpu="0", instance="x:9400", machine="gpu-01"}'
    test = {
        "interval": "1m",
        "input_series": [
            {"series": info % "GPU-1", "values": "1x5"},
            {"series": info % "a serial number", "values": "1x5"},
            {"series": dcgm % ("GPU-1", "x"), "values": "63x5"},
            {"series": dcgm % ("GPU-2", "y"), "values": "70x5"},
        ],
        "promql_expr_test": [
            {
                "expr": temperature,
                "eval_time": "2m",
                "exp_samples": [{"labels": labelled, "value": 63}],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}))
    done = promtool("test", "rules", str(tmp_path / "test.yml"))
    assert done.returncode == 0, done.stdout
