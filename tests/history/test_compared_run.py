"""A journal as a run to hold others against."""

from __future__ import annotations

import shutil
from pathlib import Path

import journals
import pytest
import samples
from runs import judged

from acceptance.core.evidence import Observed
from acceptance.core.parts import ITSELF, MEMORY, Gpu, Part
from acceptance.history import comparison
from acceptance.journal import run as journal_run

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs/1xh200-host-accept"


def test_a_recorded_run(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "run")
    run = comparison.run_of(journal_run.read(tmp_path / "run"), "name")
    uuid = "GPU-94190ee9-c081-f973-7d83-19d064498225"
    assert (run.name, run.virtual, run.verdict.verdict, run.machine_id) == (
        "name",
        True,
        "PASS",
        "vm",
    )
    assert run.identities[Gpu(0)] == uuid
    assert [component for component, identity in run.identities.items() if identity == uuid] == [
        Gpu(0)
    ], "told once"
    assert run.seconds == pytest.approx(447.7, abs=0.1)
    facts = dict(run.facts)
    assert facts[ITSELF, "profile"] == "accept"
    assert facts[ITSELF, "station"] == "host"
    assert facts[ITSELF, "nvidia_driver"] == "580.159.04"
    assert (facts[Gpu(0), "vbios"], facts[Gpu(0), "ecc_enabled"]) == ("96.00.A5.00.1A", "on")
    assert (ITSELF, "boot_id") not in facts
    assert not run.sealed, "it was made before runs were sealed"


def test_a_run_of_which_little_is_known() -> None:
    run = comparison.run_of(samples.run(journals.bodies(journals.plan())), "name")
    assert (run.virtual, run.identities, run.machine_id) == (False, {}, "machine-1")
    assert run.sealed
    assert dict(run.facts) == {(ITSELF, "profile"): "smoke", (ITSELF, "scope"): "full"}


def test_the_beginning_of_a_run_need_not_be_its_first_line() -> None:
    start, *rest = journals.bodies(journals.plan())
    run = judged(journals.entries([Observed({}), start, *rest]))
    assert comparison.run_of(run, "name").machine_id == "machine-1"


def test_a_serial_number_that_was_measured_goes_before_the_inventory() -> None:
    disk = {"disks": [{"name": "vda", "serial": "D1"}]}
    run = comparison.run_of(samples.seen(samples.mixed(), disk), "name")
    assert run.identities == {MEMORY: "SN1", Part("disk", "vda"): "D1"}
