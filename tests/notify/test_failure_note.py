"""What a night leaves for its failure unit, and how that unit says that the night ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cases import each

from acceptance.core.message import known
from acceptance.notify.schedule import installation
from acceptance.notify.schedule.installation import FailureNote
from acceptance.wording import words

NIGHT, UNIT = {"INVOCATION_ID": "a1"}, {"MONITOR_INVOCATION_ID": "a1"}


def monitor(result: str, code: str = "", status: str = "") -> dict[str, str]:
    return {installation.RESULT: result, installation.CODE: code, installation.STATUS: status}


TOLD = FailureNote("a1", "/runs/a", told=True, headline="gpu0 in watch.heat: hot")
UNTOLD = FailureNote("a1", "/runs/a", told=False)


@each(
    "environment, note, code, values",
    [
        *(
            (monitor("exit-code", "exited", status), note, code, {"verdict": verdict})
            for status, verdict in (("1", "FAIL"), ("3", "UNJUDGED"))
            for note, code in ((TOLD, "night_told"), (UNTOLD, "night_untold"))
        ),
        *(
            (
                monitor("exit-code", "exited", status),
                note,
                "night_without_verdict",
                {"code": status},
            )
            for status, note in (("1", None), ("3", None), ("2", None), ("2", TOLD), ("203", None))
        ),
        *(
            (
                monitor(how, ended, signal),
                None,
                "night_cut_off",
                known(how=how, signal=signal or None),
            )
            for how, ended, signal in (
                ("timeout", "killed", "TERM"),
                ("signal", "killed", "KILL"),
                ("oom-kill", "killed", "KILL"),
                ("core-dump", "dumped", "1"),
                ("start-limit-hit", "", ""),
            )
        ),
        ({}, None, "night_not_passed", {}),
    ],
)
def test_how_a_night_ended(
    environment: dict[str, str], note: FailureNote | None, code: str, values: dict[str, Any]
) -> None:
    """An exit code alone proves nothing: Python ends with 1, too, where it breaks off."""
    found = installation.ending(environment, note, user=False)
    told = dict(found.message.values)
    assert (found.told, found.message.code) == (note is TOLD, code)
    assert told.pop("see") == "`journalctl --unit rigproof-nightly.service`"
    assert told.pop("headline", None) == (TOLD.headline if code == "night_told" else None)
    assert told == values
    own = installation.ending(environment, note, user=True).message
    assert own.values["see"] == "`journalctl --user --unit rigproof-nightly.service`"


def test_what_the_environment_holds_is_text() -> None:
    found = installation.ending(
        monitor("\x1b[31mtimeout\n", "killed", "x" * 5000), None, user=False
    )
    said = words.message(found.message)
    assert said.isprintable()
    assert len(said) < 500


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("run_dir", [None, Path("/runs/a")])
def test_it_is_found_by_the_unit_of_the_same_start_alone(
    tmp_path: Path, run_dir: Path | None, told: bool
) -> None:
    out = tmp_path / "not made by a night that could not begin"
    installation.write_note(out, NIGHT, run_dir, told=told)
    known = FailureNote("a1", str(run_dir) if run_dir else None, told)
    assert installation.find(out, UNIT) == known
    for other in ({"MONITOR_INVOCATION_ID": "a2"}, {}):
        assert installation.find(out, other) is None


def test_where_none_can_be_left_there_is_none(tmp_path: Path) -> None:
    installation.write_note(tmp_path, {}, None, told=True)  # without systemd
    installation.write_note(tmp_path, NIGHT, Path(os.fsdecode(b"/runs/\xff")), told=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    installation.write_note(tmp_path / "file", NIGHT, None, told=True)
    for folder in (tmp_path, tmp_path / "file"):
        assert installation.find(folder, UNIT) is None


@each("text", [b"", b"\xff", b"[]", b'{"invocation":"a1"}'])
def test_what_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / installation.NAME).write_bytes(text)
    assert installation.find(tmp_path, UNIT) is None
