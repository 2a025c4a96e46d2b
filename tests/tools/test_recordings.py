"""Every recording of these tools is read as the index says."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cases import each
from parsers import PARSERS
from reasons import why_of

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import TOOLS

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
ENTRIES = [
    e
    for e in tomllib.loads((RECORDINGS / "INDEX.toml").read_text())["recording"]
    if e["tool"] in PARSERS
]


@each("entry", ENTRIES, told=lambda entry: entry["path"])
def test_recording_is_read_as_indexed(entry: dict[str, Any]) -> None:
    text = (RECORDINGS / entry["path"]).read_text()
    parse = PARSERS[entry["tool"]]
    if entry["outcome"] == "unreadable":
        with pytest.raises(UnreadableOutput):
            parse(text)
        return
    output = parse(text)
    assert (output.tool, output.outcome) == (entry["tool"], entry["outcome"]), why_of(output)
    for name, values in entry.get("readings", {}).items():
        assert {str(one): value for one, value in output.reading(name).items()} == pytest.approx(
            values
        )
    if "events" in entry:
        assert [
            f"{e['kind']} {e['code']} {e['component']} {e['severity']}" for e in output.events
        ] == entry["events"]


@each("entry", ENTRIES, told=lambda entry: entry["path"])
@each("weather", ["crlf", "indent", "quoted", "ansi"])
def test_weather_changes_nothing(entry: dict[str, Any], weather: str) -> None:
    text = (RECORDINGS / entry["path"]).read_text()
    if entry["outcome"] == "unreadable":
        return
    rough = {
        "crlf": text.replace("\n", "\r\n"),
        "indent": "".join(f"    {line}\n" for line in text.splitlines()),
        "quoted": "".join(f"> {line}\n" for line in text.splitlines()),
        "ansi": "".join(f"\x1b[1;31m{line}\x1b[0m\n" for line in text.splitlines()),
    }[weather]
    if weather == "ansi" and "raw_kmsg" in entry["path"]:
        return
    assert PARSERS[entry["tool"]](rough) == plain(entry["tool"], text)


@functools.cache
def plain(tool: str, text: str) -> object:
    return PARSERS[tool](text)


def test_the_page_on_checks_names_the_tools() -> None:
    text = (RECORDINGS.parents[1] / "docs/adding-a-check.md").read_text()
    (names,) = re.findall(r"`rigproof read TOOL FILE`.*TOOL is\s+([^.]*)\.", text, re.S)
    assert re.findall("`([^`]+)`", names) == [tool.name for tool in TOOLS]


def test_every_file_is_indexed() -> None:
    folders = [RECORDINGS / tool for tool in PARSERS] + [RECORDINGS / "h200"]
    files = {
        str(path.relative_to(RECORDINGS)) for folder in folders for path in folder.glob("*.txt")
    }
    assert files == {entry["path"] for entry in ENTRIES}
