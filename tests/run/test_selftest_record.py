"""What the reports of a run say of the self-test of its build."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from acceptance.run import header
from acceptance.wording import words

DONE = header.SelftestRecord("2026-11-22T02:00:00Z", "digest", "machine", 84, 84, 0, 1020, "short")


NEVER = (
    "not run on this machine with this build: `make selftest` in a checkout shows what it catches"
)


def sentence(folder: Path, digest: str = "digest", machine: str = "machine") -> str:
    return words.message(header.last_selftest(folder, digest, machine))


def left(folder: Path, record: header.SelftestRecord) -> Path:
    (folder / header.NAME).write_bytes(msgspec.json.encode(record))
    return folder


def test_its_score_is_told(tmp_path: Path) -> None:
    assert sentence(left(tmp_path, DONE), "digest", "machine") == (
        "2026-11-22T02:00:00Z (short): 84 of 84 faults caught, 0 false alarms in 1020 clean runs"
    )


def test_what_was_missed_cannot_be_overlooked(tmp_path: Path) -> None:
    left(tmp_path, msgspec.structs.replace(DONE, caught=82, alarms=1))
    told = sentence(tmp_path, "digest", "machine")
    assert "82 of 84 faults caught (2 MISSED), 1 false alarms" in told


@pytest.mark.parametrize(("digest", "machine"), [("other", "machine"), ("digest", "other")])
def test_another_build_or_machine_proves_nothing(tmp_path: Path, digest: str, machine: str) -> None:
    told = sentence(left(tmp_path, DONE), digest, machine)
    assert told.startswith(NEVER)
    assert "was 2026-11-22T02:00:00Z" in told


def test_none_is_said_with_the_command(tmp_path: Path) -> None:
    assert sentence(tmp_path) == NEVER


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b'{"utc": 1}', b"[" * 2000])
def test_a_damaged_record_stops_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / header.NAME).write_bytes(data)
    assert "cannot be read (it is damaged): run `make selftest` in a checkout again" in sentence(
        tmp_path, "digest", "machine"
    )
    (tmp_path / header.NAME).unlink()
    (tmp_path / header.NAME).mkdir()
    assert "cannot be read (" in sentence(tmp_path, "digest", "machine")
