"""One line of the self-test's table: a fault that was put in, and what the harness made of it."""

from __future__ import annotations

from dataclasses import dataclass

FAMILIES = {
    "wrong results": "a product or a cell of memory that is not what it should be",
    "slow": "a GPU, a core or a memory that does less than it should",
    "missing": "a part that is declared, or on the bus, and is not there",
    "changed": (
        "a part, a link or a size that is not what it was when the machine was accepted, "
        "and "
        "that no machine file declares"
    ),
    "links": "PCI Express and NVLink: generation, lanes, replays, copies between GPUs",
    "heat and power": "clocks that are held back, margins that are used up",
    "memory health": "ECC errors, rows remapped, pages retired",
    "disk health": (
        "what drives say of themselves before and after a run, their self-tests, software RAID"
    ),
    "kernel log": "what the kernel and the driver reported by themselves",
    "hangs and deaths": "something that stops, hangs or is killed in the middle",
    "lying tools": "a tool whose words and exit code do not fit, or whose text proves nothing",
    "lying set-up": "a container, driver or mode that would test something else than the machine",
    "bad input": "files and arguments that cannot be right",
    "evidence": "files of a run that are missing, changed, or of another run",
    "interruption": "kills, full disks and reboots at random moments",
    "harness": "the harness itself with a fault in it",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one fault.

    `caught` is what the row is worth; `wrong` says in a sentence why it is not, and is empty where
    it is.

    `by` is the check (or `run`, `start`) whose finding was awaited, `message` that finding,
    `seconds` the time from the start of the command to the finding's check's end, or to the end of
    the command where nothing ran. `run_id`, `container` (the engine's id, short) and `journal` (a
    path relative to the self-test's folder) say which run the row came from, and are empty where no
    run was made.
    """

    family: str
    fault: str
    seam: str
    caught: bool
    by: str = ""
    message: str = ""
    seconds: float = 0.0
    run_id: str = ""
    container: str = ""
    journal: str = ""
    wrong: str = ""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(
                f"there is no family {self.family!r} of faults: choose one of {', '.join(FAMILIES)}"
            )
        if self.caught == bool(self.wrong):
            raise ValueError(f"{self.fault}: a row that is not caught says why, and no other does")


@dataclass(frozen=True, slots=True)
class NotOffered:
    """A fault, or something that must be found of it, that this machine cannot show, and why."""

    fault: str
    why: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The smallest fault still caught: `smallest` as text with its unit, `missed` the largest
    that is not, `how` what decided.
    """

    what: str
    smallest: str
    missed: str
    how: str


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Clean runs, and how many of them were not a pass; `told` are the first words of those that
    were not.

    `remarked` of those that passed carried a remark (a value within its limit and outside what is
    usual), which is no alarm.
    """

    what: str
    runs: int
    alarms: int
    told: str = ""
    remarked: int = 0
