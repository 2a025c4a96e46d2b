"""What our loads said of faults that were made on purpose, on a real GPU: each is told from the
others. fixtures/recordings/burn.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from cases import each

from acceptance.diagnosis.diagnosis import diagnose
from acceptance.loads.protocol import parse
from acceptance.wording import words

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
ENTRIES = [
    entry
    for entry in tomllib.loads((RECORDINGS / "INDEX.toml").read_text())["recording"]
    if entry["tool"] in ("burn", "vram")
]


def test_every_recording_is_indexed() -> None:
    assert {Path(entry["path"]).name for entry in ENTRIES} == {
        path.name for path in (RECORDINGS / "burn").iterdir()
    }
    assert {entry["kind"] for entry in ENTRIES} >= {
        "one bit once",
        "memory bit",
        "datapath",
        "not a number",
        "repeatable",
        "inputs",
        "address line",
    }


@each("entry", ENTRIES, told=lambda entry: entry["path"])
def test_a_fault_is_told_from_the_others(entry: dict[str, Any]) -> None:
    output = parse((RECORDINGS / entry["path"]).read_text())
    asked = entry["command"].partition("--inject ")[2] or None
    assert (output.load, output.injected) == (entry["tool"], asked)
    counted = sum(one.value for one in output.readings if one.name.endswith("miscompares"))
    assert (counted == 0) == (not output.miscompares) == (asked is None)
    if "miscompares" in entry:
        assert len(output.miscompares) == entry["miscompares"]
    if asked is None:
        return
    found = diagnose(output.miscompares, [None] * len(output.miscompares))
    sentence = words.message(found.told)
    assert found.kind == entry["kind"], sentence
    assert "{" not in sentence, "a sentence for people holds no raw data"
