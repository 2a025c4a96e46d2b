"""A whole run in a container, with the reports to show it."""

from __future__ import annotations

import json
from pathlib import Path

import box
import docker
import pytest
from junitparser import JUnitXml
from rig import Rig

from acceptance.core.record import RunStarted
from acceptance.station.image.record import ImageRef

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
CPU_ONLY = Path(__file__).resolve().parents[2] / "fixtures/machines/cpu-only.toml"


def test_a_run_in_a_container(rig: Rig, client: docker.DockerClient, built: ImageRef) -> None:
    only = "cpu.stress_ng,memory.stressapptest,memory.bandwidth,kernel_log"
    argv = [
        "accept",
        "--machine",
        str(CPU_ONLY),
        "--profile",
        "smoke",
        "--burn",
        "2",
        "--only",
        only,
    ]
    run = rig.run([*argv, "--out", str(rig.out)])  # the station is chosen: an engine answers
    run.assert_agrees()
    assert (run.code, run.verdict["verdict"]) == (0, "PASS"), run.out
    told = run.verdict["provenance"]
    assert told["station"] == "docker"
    assert told["engine"].startswith("Docker ")
    assert told["gpu_grant"] == "none"
    for key, value in built.provenance().items():
        assert told[key] == value
    suite = next(iter(JUnitXml.fromstring((run.path / "junit.xml").read_bytes())))
    properties = {one.name: one.value for one in suite.properties()}
    assert {
        key: properties[key] for key in ("station", "engine", "image_id", "image", "image_versions")
    } == {key: told[key] for key in ("station", "engine", "image_id", "image", "image_versions")}
    (start,) = run.bodies(RunStarted)
    assert start.provenance["image_id"] == built.id
    assert box.containers(client, run.path.name) == []
    owner = rig.out.stat().st_uid
    assert {path.stat().st_uid for path in run.path.rglob("*")} == {owner}
    assert "passed" in (run.path / "logs/session-load.log").read_text()
    # The session ran where the image's own Python is: stress-ng's log was written through the one
    # folder that is shared.
    heads = [
        json.loads((run.path / f"journal-{name}.jsonl").read_text().splitlines()[0])
        for name in ("load", "host-after")
    ]
    assert heads[0]["boot_id"] == heads[1]["boot_id"]
    assert heads[0]["pid"] < 100 < heads[1]["pid"], "in a namespace of process ids of its own"
