"""A sheet of the site decides a run: from its folder to journal, JUnit and verdict.json."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import gpu_machine
import journals
import pytest
import samples
from junitparser import JUnitXml
from product_session import collected
from refusal import raised
from runs import known_provenance, machine_root

from acceptance import resources
from acceptance.core.language import ENGLISH
from acceptance.core.parts import Component, Gpu
from acceptance.expect import limit_version, site_sheets
from acceptance.expect.site_sheets import SiteSheetError
from acceptance.journal.run import Run
from acceptance.reports import junit, summary, verdict_json
from acceptance.reports.page import render
from acceptance.run import planning, site_folder
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.station.base import HostStation
from acceptance.station.options import Options
from acceptance.wording import words

CARD = (resources.locate("models") / "geforce-rtx-4090.toml").read_text(encoding="utf-8")
COPY = "copy_own_d2d"  # GB/s, with a floor in the sheet
OWN = next(
    row.low
    for one in site_sheets.own_sheets().models
    if one.name == "GeForce RTX 4090"
    for row in one.limit
    if row.measurement == COPY
)
Prepare = Callable[..., PreparedRun]


def card(low: float) -> str:
    """The sheet with another floor of copies, and what it comes from."""
    head, row, rest = CARD.partition(f'measurement = "{COPY}"')
    assert row
    lines = rest.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("low = "))
    lines[at] = f"low = {low}"
    at = next(number for number, line in enumerate(lines) if line.startswith("basis = "))
    lines[at] = 'basis = "what ours gave"'
    lines = [line for line in lines if not line.startswith("warn_low")]
    return head + row + "\n".join(lines) + "\n"


def folder(place: Path, **texts: str) -> Path:
    """A folder of GPU sheets that nobody else may write."""
    models = place / "models"
    models.mkdir(parents=True)
    for name, text in texts.items():
        (models / f"{name}.toml").write_text(text, encoding="utf-8")
    for one in (place, models, *models.iterdir()):
        one.chmod(0o755 if one.is_dir() else 0o644)
    return place


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Prepares a run of two RTX 4090."""
    known_provenance(monkeypatch)
    seen = gpu_machine.machine(gpu_machine.device(0), gpu_machine.device(1))
    monkeypatch.setattr(planning, "observe", lambda _root: seen)
    monkeypatch.setattr(
        planning, "start_collection", lambda _root: contextlib.nullcontext(collected)
    )
    root = machine_root(tmp_path / "root")

    def prepared(**more: object) -> PreparedRun:
        options = {"root": root, "only": ("compute.copies",), **more}
        return planning.prepare(Options(**options))  # type: ignore[arg-type]

    return prepared


def ran(prepared: PreparedRun, values: dict[tuple[str, Component], float]) -> Run:
    """The run of a plan in which all else passed."""
    head = [*header_records(prepared, HostStation(), Path("/runs/run-1"))]
    return samples.run([*head, *journals.bodies(prepared.plan, values)[1:]])


def outcome(run: Run) -> str:
    found = json.loads(verdict_json.render(run))
    return (
        ", ".join(row["text"] for row in found["violations"] + found["unjudged"])
        or found["verdict"]
    )


def copies(rate: float) -> dict[tuple[str, Component], float]:
    """Both cards copy at this rate."""
    return {
        (name, Gpu(gpu)): value
        for name, value in ((COPY, rate), (f"{COPY}_ratio", 1.0))
        for gpu in range(2)
    }


def test_a_sheet_of_the_site_decides(prepare: Prepare, tmp_path: Path) -> None:
    """A copy rate between both floors fails by the stricter sheet and passes by the looser one."""
    own = prepare()
    stricter = prepare(sheets=folder(tmp_path / "strict", card=card(OWN + 20)))
    looser = prepare(sheets=folder(tmp_path / "loose", card=card(OWN - 20)))
    between, below = copies(OWN + 10), copies(OWN - 10)
    assert outcome(ran(own, between)) == outcome(ran(looser, below)) == "PASS"
    failure = f"{COPY} on gpu1: measured {OWN + 10:g} GB/s, limit >= {OWN + 20:g}"
    assert failure in outcome(ran(stricter, between))
    assert f"limit >= {OWN:g} GB/s" in outcome(ran(own, below))
    assert stricter.limits.looser == ()
    assert len({one.limits.version for one in (own, stricter, looser)}) == 1
    assert len({one.limits.digest for one in (own, stricter, looser)}) == 3


def test_what_was_loosened_is_said_everywhere(prepare: Prepare, tmp_path: Path) -> None:
    text = card(OWN - 20)
    place = folder(tmp_path / "sheets", card=text)
    prepared = prepare(sheets=place)
    run = ran(prepared, {})
    (sheet,) = run.start.limits.sheets  # journaled whole
    assert (sheet.text, site_sheets.is_same(run.start.limits)) == (text, True)
    noted = set(words.text(note.text) for note in prepared.notes)
    for start in (f"the site's sheet models/card.toml (sha256 {sheet.sha256[:12]})", "looser by"):
        assert any(note.startswith(start) for note in noted)
    assert "2 limits looser by the site's sheets" in summary.closing_line(run)
    content = json.loads(verdict_json.render(run))
    assert noted <= set(content["notes"])
    version, digest = limit_version.shipped()
    digest = limit_version.with_sheets(digest, [sheet])
    overlay = {"file": "models/card.toml", "model": "GeForce RTX 4090", "replaces": True}
    first, _second = content["limits"].pop("looser")
    assert content["limits"] == {
        "version": version,
        "digest": digest,
        "folder": str(place),
        "overlay": [{**overlay, "sha256": sheet.sha256}],
    }
    assert (first["measurement"], first["component"], first["kind"]) == (COPY, "gpu0", "limit")
    assert (first["own"]["low"], first["limit"]["low"]) == (OWN, OWN - 20)
    origins = {
        one["origin"]
        for check in content["checks"]
        for one in check["measurements"]
        if one["measurement"] == COPY
    }
    assert origins == {"the site's sheet of GeForce RTX 4090, models/card.toml"}
    (suite,) = JUnitXml.fromstring(junit.render(run))
    properties = {one.name: one.value for one in suite.properties()}
    assert (properties["limits"], properties["limits_digest"]) == (version, digest)
    assert properties["site_sheets"] == f"models/card.toml sha256:{sheet.sha256}"
    page = render.render(run, site_sheets.of_record(run.start.limits).models, ENGLISH)
    assert all(text in page for text in (digest, "models/card.toml", "looser by the site"))


def test_an_old_run_says_nothing_of_limits(prepare: Prepare) -> None:
    """And one without sheets of the site nothing of these."""
    version, digest = limit_version.shipped()
    run, old = ran(prepare(), {}), samples.passing()
    content = json.loads(verdict_json.render(run))
    expected = {"version": version, "digest": digest, "overlay": [], "looser": []}
    assert (content["limits"], "site" in summary.closing_line(run)) == (expected, False)
    before = json.loads(verdict_json.render(old))
    assert not {"limits", "site_sheets"} & (before.keys() | before["provenance"].keys())
    read = [verdict_json.read(verdict_json.render(one)).limits for one in (run, old)]
    assert [one is verdict_json.UNSET for one in read] == [False, True]


def test_the_machines_own_folder(prepare: Prepare, tmp_path: Path) -> None:
    """It counts without being named, `none` leaves it out, and another folder replaces it."""

    def files(**more: object) -> tuple[str | None, list[str]]:
        found = prepare(**more).limits
        return found.folder, [one.file for one in found.sheets]

    place = folder(tmp_path / "root" / site_folder.PLACE, card=card(OWN - 20))
    assert files() == (str(place), ["models/card.toml"])
    assert files(sheets=Path("none"))[1] == []
    other = folder(tmp_path / "other", mine=card(OWN - 10))
    assert files(sheets=other)[1] == ["models/mine.toml"]
    (place / "models/card.toml").unlink()
    assert files() == (None, [])
    (place / "models/card.toml").write_text("x = 1", encoding="utf-8")
    assert "models/card.toml, line 1: x is no key" in raised(SiteSheetError, prepare)
