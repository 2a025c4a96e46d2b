"""A journal as a run to hold others against."""

from __future__ import annotations

import journals
import pytest
import samples
from runs import judged, recorded

from acceptance.core.evidence import Observed
from acceptance.core.parts import ITSELF, MEMORY, Gpu, Part
from acceptance.history import comparison


def test_a_recorded_run() -> None:
    run = comparison.run_of(recorded("1xh200-host-accept"), "name")
    uuid = "GPU-94190ee9-c081-f973-7d83-19d064498225"
    assert (run.name, run.virtual, run.verdict.verdict, run.machine_id) == (
        "name",
        True,
        "PASS",
        "vm",
    )
    named = [component for component, identity in run.identities.items() if identity == uuid]
    assert named == [Gpu(0)], "told once"
    assert run.seconds == pytest.approx(447.7, abs=0.1)
    facts = dict(run.facts)
    assert {
        (ITSELF, "profile"): "accept",
        (ITSELF, "station"): "host",
        (ITSELF, "nvidia_driver"): "580.159.04",
        (Gpu(0), "vbios"): "96.00.A5.00.1A",
        (Gpu(0), "ecc_enabled"): "on",
    }.items() <= facts.items()
    assert (ITSELF, "boot_id") not in facts
    assert not run.sealed, "it was made before runs were sealed"


def test_a_run_of_which_little_is_known() -> None:
    start, *rest = journals.bodies(journals.plan())
    late = judged(journals.entries([Observed({}), start, *rest]))
    for found in (samples.run([start, *rest]), late):  # whatever line it begins with
        run = comparison.run_of(found, "name")
        assert (run.virtual, run.identities, run.machine_id) == (False, {}, "machine-1")
        assert run.sealed
        assert dict(run.facts) == {(ITSELF, "profile"): "smoke", (ITSELF, "scope"): "full"}
    disk = {"disks": [{"name": "vda", "serial": "D1"}]}
    run = comparison.run_of(samples.seen(samples.mixed(), disk), "name")
    measured = {MEMORY: "SN1", Part("disk", "vda"): "D1"}
    assert run.identities == measured, "a number that was measured goes before the inventory"
