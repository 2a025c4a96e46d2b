"""The machine file's order and power supply, from the first record to every report."""

from __future__ import annotations

import json
from pathlib import Path

import journals
import pytest
import samples
from junitparser import JUnitXml
from product_session import observed
from runs import known_provenance

from acceptance.core.evidence import Scratch
from acceptance.core.language import ENGLISH
from acceptance.core.parts import Part
from acceptance.core.record import RunStarted
from acceptance.machine import machine_file
from acceptance.reports import junit, verdict_json
from acceptance.reports.page import render
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.station.host import HostStation
from acceptance.station.options import Options

DECLARED = """
schema = 1
name = "tower"
[order]
number = "PO <4711>"
asset_tag = "AT-9"
[psu]
watts = 1600
"""
TOLD = {"order_number": "PO <4711>", "asset_tag": "AT-9", "psu_watts": "1600"}


def test_order_and_supply_are_in_every_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_provenance(monkeypatch)
    (tmp_path / "box.toml").write_text(DECLARED, encoding="utf-8")
    made = journals.plan(journals.check("cpu.burn"))
    options = Options(machine_file=tmp_path / "box.toml")
    declared = machine_file.read(tmp_path / "box.toml")
    prepared = PreparedRun(options, declared, observed(), made, "a summary")
    records = list(header_records(prepared, HostStation(), tmp_path / "run-1"))
    (start,) = [one for one in records if isinstance(one, RunStarted)]
    assert TOLD.items() <= start.provenance.items()
    run = samples.run(records)
    (suite,) = JUnitXml.fromstring(junit.render(run))
    assert TOLD.items() <= {one.name: one.value for one in suite.properties()}.items()
    assert TOLD.items() <= json.loads(verdict_json.render(run))["provenance"].items()
    head = render.render(run, (), ENGLISH).partition("</header>")[0]
    assert all(text in head for text in ("PO &lt;4711&gt;", "AT-9", "1600 W"))


def test_the_folders_that_are_written_in_are_recorded(tmp_path: Path) -> None:
    place = Scratch(
        "/data",
        Part("disk", "sda"),
        "/",
        "ext4",
        "/dev/sda1",
        ("sda",),
        (),
        9,
        8,
        1,
        keep=True,
        sealed_bytes=0,
    )
    made = journals.plan()
    prepared = PreparedRun(Options(), None, observed(), made, "a summary", scratches=(place,))
    assert list(header_records(prepared, HostStation(), tmp_path / "run-1"))[-1] == place


def test_what_the_file_does_not_name_is_nowhere(tmp_path: Path) -> None:
    prepared = PreparedRun(Options(), None, observed(), journals.plan(), "a summary")
    (start,) = [
        one
        for one in header_records(prepared, HostStation(), tmp_path / "run-1")
        if isinstance(one, RunStarted)
    ]
    assert not TOLD.keys() & start.provenance.keys()
