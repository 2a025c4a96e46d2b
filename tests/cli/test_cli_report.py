"""`report --card`: the top of the page as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from command import Call, printed
from lxml import etree
from test_command_line import record


def test_the_card_is_written_beside_the_reports(tmp_path: Path, call: Call) -> None:
    record(tmp_path / "run")
    out = printed(call("report", "run", "--card", "card.svg"))
    assert "card.svg" in out.splitlines()
    picture = etree.parse(tmp_path / "card.svg").getroot()
    texts = [one.text for one in picture.iterfind(".//{*}text")]
    assert texts[0] == "PASS"
    digest = next(line for line in out.splitlines() if line.startswith("evidence: "))
    assert f"evidence {digest.split()[1].rstrip(',')}" in texts
    assert call("report", "run", "--card", "card.svg", "--lang", "zh-CN")[0] == 0
    assert "证据" in (tmp_path / "card.svg").read_text(encoding="utf-8")


@each("name", ["card.png", "card"])
def test_another_format_is_refused_before_anything_is_written(
    name: str,
    tmp_path: Path,
    call: Call,
) -> None:
    run = record(tmp_path / "run")
    code, _, err = call("report", "run", "--card", name)
    assert code == 2
    assert f"{name} is no name of an SVG file" in err
    assert "end it with .svg" in err
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("folder", ["missing", "run"])
def test_a_card_that_cannot_be_written_says_so(
    folder: str,
    tmp_path: Path,
    call: Call,
) -> None:
    record(tmp_path / "run")
    if folder == "run":
        (tmp_path / "run/card.svg").mkdir()
    code, _, err = call("report", "run", "--card", f"{folder}/card.svg")
    assert code == 3
    assert f"{folder}/card.svg" in err
