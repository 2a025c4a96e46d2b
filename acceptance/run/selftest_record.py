"""The score of the last self-test of this build on this machine, for the reports of every run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.message import Message, known

NAME = "selftest.json"


class SelftestRecord(msgspec.Struct, frozen=True):
    """The result of a self-test, stored beside the runs: time, build, machine and score."""

    utc: str
    package_digest: str
    machine_id: str
    caught: int
    faults: int
    alarms: int
    clean_runs: int
    kind: str  # "short" or "long", or the selected parts

    @property
    def score(self) -> Message:
        """The score in one line."""
        missed = self.faults - self.caught
        score = known(
            caught=self.caught,
            faults=self.faults,
            missed=missed or None,
            alarms=self.alarms,
            clean=self.clean_runs,
        )
        return Message("selftest_score", {"utc": self.utc, "kind": self.kind, **score})


def last_selftest(out: Path, package_digest: str, machine_id: str) -> Message:
    """The score of the last self-test, for the reports, or that there is none.

    There is none where this build was not tested on this machine. An unreadable record counts as
    none: it proves nothing, and the run does not depend on it.
    """
    path = out / NAME
    try:
        record = msgspec.json.decode(
            regular_file.read(path, regular_file.SMALL_RECORD), type=SelftestRecord
        )
    except FileNotFoundError:
        return Message("selftest_never")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else Message("it_is_damaged")
        return Message("selftest_unreadable", known(path=str(path), reason=reason))
    if (record.package_digest, record.machine_id) != (package_digest, machine_id):
        return Message("selftest_never", {"last": record.utc})
    return record.score
