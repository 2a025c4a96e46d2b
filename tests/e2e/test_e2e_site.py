"""Checks of a site's own, through a whole run and everything that can be had again from it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rig import Rig
from site_box import SiteBox

from acceptance.core.record import SessionEnded
from acceptance.journal import seal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def test_a_site_adds_its_checks_and_never_makes_a_run_pass(rig: Rig, tmp_path: Path) -> None:
    box = SiteBox(tmp_path / "site")
    box.check("mount")
    box.check("slow", 'print("\\x1b[31mPASS <b>"); check("site_slow", 5.0)')
    run = rig.accept("--checks", str(box.folder), only="kernel_log,site", burn=None)
    run.assert_agrees()
    assert run.code == 1
    assert run.outcomes()["site.mount.fast"] == "pass"
    assert run.outcomes()["site.slow.fast"] == "fail"
    assert "2 checks are the site's own" in run.out
    sessions = [body.session for body in run.bodies(SessionEnded) if body.complete]
    assert sessions[-1] == "site"
    verdict = run.verdict
    assert verdict["provenance"]["site_checks"] == str(box.folder.resolve())
    assert len(verdict["provenance"]["site_checks_digest"]) == 64
    (violation,) = verdict["violations"]
    assert (violation["check"], violation["measurement"]) == ("site.slow.fast", "site_slow")
    assert violation["symptom"] == "It is slow at this site."
    assert violation["next"] == "ping -c 3 example.org"
    cases = ElementTree.parse(run.path / "junit.xml").iter("testcase")
    told = {case.get("name"): case.get("classname") for case in cases}
    assert told["site.slow.fast"] == "rigproof.site"
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "the site's own" in page.replace("&#39;", "'")
    assert {one.name for one in (run.path / seal.SITE_CHECKS).iterdir()} == {
        *("mount.py", "mount.toml", "slow.py", "slow.toml"),
    }
    names = ("verdict.json", "junit.xml", "report.html")
    before = {name: (run.path / name).read_bytes() for name in names}
    box.check("slow")  # what the folder holds now changes no report of then
    for name in names:
        (run.path / name).unlink()
    assert rig.run(["report", str(run.path)]).code == 1
    assert {name: (run.path / name).read_bytes() for name in names} == before


def test_a_check_that_hangs_is_ended(rig: Rig, tmp_path: Path) -> None:
    box = SiteBox(tmp_path / "site")
    box.check("hangs", "import time; time.sleep(900)")
    run = rig.accept("--checks", str(box.folder), only="site", burn=None)
    run.assert_agrees()
    assert run.code == 3
    assert run.outcomes() == {"site.hangs.fast": "error"}
    assert "Timeout" in json.dumps(run.verdict["unjudged"])
