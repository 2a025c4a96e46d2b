"""The score of the last self-test of this build on this machine, for the reports of every run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from acceptance.core import regular_file

NAME = "selftest.json"
NEVER = "not run on this machine with this build: `make selftest` shows what it catches"


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

    def sentence(self) -> str:
        """The score in one line."""
        missed = "" if self.caught == self.faults else f" ({self.faults - self.caught} MISSED)"
        text = (
            f"{self.caught} of {self.faults} faults caught{missed}, {self.alarms} false alarms "
            f"in {self.clean_runs} clean runs"
        )
        return f"{self.utc} ({self.kind}): {text}"


def selftest_sentence(out: Path, package_digest: str, machine_id: str) -> str:
    """The sentence for the reports: the last self-test's score, or that there is none.

    There is none where this build was not tested on this machine. An unreadable record counts as
    none: it proves nothing, and the run does not depend on it.
    """
    path = out / NAME
    try:
        record = msgspec.json.decode(
            regular_file.read(path, regular_file.SMALL_RECORD), type=SelftestRecord
        )
    except FileNotFoundError:
        return NEVER
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        return f"its record {path} cannot be read ({reason}): run `make selftest` again"
    if (record.package_digest, record.machine_id) != (package_digest, machine_id):
        return f"{NEVER}; the last one here, of another build or machine, was {record.utc}"
    return record.sentence()
