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
from runs import known_provenance, machine_root

from acceptance import resources
from acceptance.core.language import ENGLISH
from acceptance.core.limit_set import LimitSet
from acceptance.core.parts import Component, Gpu
from acceptance.core.record import RunStarted
from acceptance.expect import limit_version, site_sheets
from acceptance.expect.site_sheets import SiteSheetError
from acceptance.journal.run import Run
from acceptance.reports import junit, summary, verdict_json
from acceptance.reports.page import render
from acceptance.run import planning, sheet_folder
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.station.host import HostStation
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
    head = list(header_records(prepared, HostStation(), Path("/runs/run-1")))
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


def limits_of(prepared: PreparedRun) -> LimitSet:
    assert prepared.limits is not None
    return prepared.limits


def test_a_sheet_of_the_site_decides(prepare: Prepare, tmp_path: Path) -> None:
    """A copy rate between both floors fails by the stricter sheet and passes by the looser one."""
    own = prepare()
    stricter = prepare(sheets=folder(tmp_path / "strict", card=card(OWN + 20)))
    looser = prepare(sheets=folder(tmp_path / "loose", card=card(OWN - 20)))
    between, below = copies(OWN + 10), copies(OWN - 10)
    assert outcome(ran(own, between)) == "PASS"
    assert f"{COPY} on gpu1: measured {OWN + 10:g} GB/s, limit >= {OWN + 20:g}" in outcome(
        ran(stricter, between)
    )
    assert f"limit >= {OWN:g} GB/s" in outcome(ran(own, below))
    assert outcome(ran(looser, below)) == "PASS"
    assert limits_of(stricter).looser == ()
    for one, other in ((own, stricter), (stricter, looser)):
        assert limits_of(one).version == limits_of(other).version
        assert limits_of(one).digest != limits_of(other).digest


def test_what_was_loosened_is_said_everywhere(prepare: Prepare, tmp_path: Path) -> None:
    place = folder(tmp_path / "sheets", card=card(OWN - 20))
    prepared = prepare(sheets=place)
    run = ran(prepared, {})
    (sheet,) = limits_of(prepared).sheets
    replaced = (
        f"the site's sheet models/card.toml (sha256 {sheet.sha256[:12]}) replaces rigproof's own "
        "of GeForce RTX 4090"
    )
    loosened = (
        f"looser by the site's sheets: {COPY} of gpu0, gpu1 must be >= {OWN - 20:g} GB/s, by "
        f"rigproof's own >= {OWN:g} GB/s"
    )
    assert {replaced, loosened} <= {words.text(note.text) for note in prepared.notes}
    assert "2 limits looser by the site's sheets" in summary.closing_line(run)
    content = json.loads(verdict_json.render(run))
    assert {replaced, loosened} <= set(content["notes"])
    digest = limit_version.with_sheets(limit_version.shipped()[1], [sheet])
    assert content["limits"] == {
        "version": limit_version.shipped()[0],
        "digest": digest,
        "folder": str(place),
        "overlay": [
            {
                "file": "models/card.toml",
                "model": "GeForce RTX 4090",
                "sha256": sheet.sha256,
                "replaces": True,
            }
        ],
        "looser": content["limits"]["looser"],
    }
    first, _second = content["limits"]["looser"]
    assert (first["measurement"], first["component"], first["kind"]) == (COPY, "gpu0", "limit")
    assert (first["own"]["low"], first["limit"]["low"]) == (OWN, OWN - 20)
    figure = next(
        one
        for check in content["checks"]
        for one in check["measurements"]
        if one["measurement"] == COPY
    )
    assert figure["origin"] == "the site's sheet of GeForce RTX 4090, models/card.toml"
    (suite,) = JUnitXml.fromstring(junit.render(run))
    properties = {one.name: one.value for one in suite.properties()}
    assert properties["limits"] == limit_version.shipped()[0]
    assert properties["limits_digest"] == digest
    assert properties["site_sheets"] == f"models/card.toml sha256:{sheet.sha256}"
    models = site_sheets.of_record(run.start.limits).models
    page = render.render(run, models, ENGLISH)
    for text in (digest, "models/card.toml", "looser by the site"):
        assert text in page


def test_a_run_without_sheets_of_the_site(prepare: Prepare) -> None:
    run = ran(prepare(), {})
    content = json.loads(verdict_json.render(run))
    version, digest = limit_version.shipped()
    expected = {"version": version, "digest": digest, "overlay": [], "looser": []}
    assert content["limits"] == expected
    assert "site_sheets" not in content["provenance"]
    assert "site" not in summary.closing_line(run)
    assert verdict_json.read(verdict_json.render(run)).limits != verdict_json.UNSET


def test_an_old_run_says_nothing_of_limits() -> None:
    run = samples.passing()
    content = json.loads(verdict_json.render(run))
    assert "limits" not in content
    assert "limits" not in content["provenance"]
    assert verdict_json.read(verdict_json.render(run)).limits is verdict_json.UNSET


def test_a_sheet_that_says_less_closes_no_gap_and_drops_no_limit_unseen(
    prepare: Prepare, tmp_path: Path
) -> None:
    head, _, _ = CARD.partition("[[limit]]")
    prepared = prepare(sheets=folder(tmp_path / "sheets", card=head))
    dropped = [one for one in limits_of(prepared).looser if one.measurement == COPY]
    assert [one.component for one in dropped] == [Gpu(0), Gpu(1)]
    assert all(one.own.low == OWN for one in dropped)


def test_a_sheet_of_no_card_here(prepare: Prepare, tmp_path: Path) -> None:
    new = CARD.replace("GeForce RTX 4090", "GeForce RTX 9999").replace("10de:2684", "10de:9999")
    notes = prepare(sheets=folder(tmp_path / "sheets", new=new)).notes
    told = [words.text(one.text) for one in notes]
    assert "sheets of the site that are of no GPU or disk here: models/new.toml" in told
    assert not any("looser" in one for one in told)


def test_the_machines_own_folder(prepare: Prepare, tmp_path: Path) -> None:
    """It counts without being named, `none` leaves it out, and another folder replaces it."""
    place = folder(tmp_path / "root" / sheet_folder.PLACE, card=card(OWN - 20))
    found = limits_of(prepare())
    assert (found.folder, [one.file for one in found.sheets]) == (str(place), ["models/card.toml"])
    assert limits_of(prepare(sheets=Path("none"))).sheets == ()
    other = folder(tmp_path / "other", mine=card(OWN - 10))
    assert [one.file for one in limits_of(prepare(sheets=other)).sheets] == ["models/mine.toml"]
    (place / "models/card.toml").unlink()
    assert limits_of(prepare()).sheets == ()
    assert limits_of(prepare()).folder is None
    (place / "models/card.toml").write_text("x = 1", encoding="utf-8")
    with pytest.raises(SiteSheetError, match=r"models/card\.toml, line 1: x is no key"):
        prepare()


def test_the_sheets_are_journaled_whole(prepare: Prepare, tmp_path: Path) -> None:
    text = card(OWN - 20)
    prepared = prepare(sheets=folder(tmp_path / "sheets", card=text))
    start = next(
        one
        for one in header_records(prepared, HostStation(), Path("/runs/run-1"))
        if isinstance(one, RunStarted)
    )
    assert [one.text for one in start.limits.sheets] == [text]
    assert site_sheets.is_same(start.limits)
