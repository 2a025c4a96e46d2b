"""The smallest fault still caught, over the judged measurements of the machines that ship; run
as a program it prints the page's tables.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.wording import words
from acceptance.wording.words import limit_text, quantity
from selftest.alarms import false_alarms
from selftest.drawn_runs import Machine, everything, machines
from selftest.durations import lasting
from selftest.noise import table
from selftest.probe import RATES, Caught, Known, smallest, subjects, unable
from selftest.row import FalseAlarms, Sensitivity
from selftest.sensitivity_rows import COUNTED, SLOW, Asked
from selftest.slowness import PAST, PERCENTS, Share, caught_slow

RUNS, SEED = 100, 1
ALARM_RUNS = 1000
ALARMS_HEAD = ("machine", "clean runs", "alarms", "what they said", "passed with a warning")


def every() -> tuple[Machine, ...]:
    """The machines that ship, and one that declares all that can be declared."""
    return (*machines(), everything())


def sensitivity(
    runs: int = RUNS, seed: int = SEED, asked: Sequence[Asked] = (*SLOW, *COUNTED)
) -> tuple[Sensitivity, ...]:
    """The rows of the table; each tells the smallest fault that is found in 99
    of 100 drawn runs.
    """
    return (*rows(asked, runs, seed), *_unlimited(), *lasting(runs, seed), unmeasured())


def rows(asked: Sequence[Asked], runs: int, seed: int) -> tuple[Sensitivity, ...]:
    """A row for each that is asked."""
    known: Known = {}
    return tuple(_row(one, runs, seed, known) for one in asked)


def _row(one: Asked, runs: int, seed: int, known: Known) -> Sensitivity:
    cells = [
        cell for name in one.machines if (cell := _cell(one, name, runs, seed, known)) is not None
    ]
    if not cells:
        return Sensitivity(one.what, "never", "all", f"no measurement {one.pattern} has a limit")
    return Sensitivity(
        one.what,
        "; ".join(_join(one, cells, "smallest")),
        "; ".join(_join(one, cells, "missed")),
        "; ".join(dict.fromkeys(cell.how for cell in cells)),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """What one machine adds to a row."""

    machine: str
    smallest: str
    missed: str
    how: str


def _join(one: Asked, cells: Sequence[Cell], key: str) -> list[str]:
    texts = [str(getattr(cell, key)) for cell in cells]
    if len(one.machines) == 1 or (len(cells) == len(one.machines) and len(set(texts)) == 1):
        return texts[:1]
    absent = [
        f"{name}: not judged"
        for name in one.machines
        if name not in {cell.machine for cell in cells}
    ]
    return [*(f"{cell.machine}: {text}" for cell, text in zip(cells, texts, strict=True)), *absent]


def _cell(one: Asked, name: str, runs: int, seed: int, known: Known) -> Cell | None:
    machine = next(machine for machine in every() if machine.name == name)
    wanted = [
        sub
        for sub in subjects(machine)
        if sub.less == one.less and re.fullmatch(one.pattern, sub.due.measurement)
    ]
    found = [smallest(subject, runs, seed, known) for subject in wanted]
    if not found:
        return None
    able = [caught for caught in found if caught.fails is not None]
    unfit = [caught for caught in found if caught.fails is None]
    if unfit and (one.mode == "each" or not able):
        return Cell(
            name, "never", "all", f"{unfit[0].subject.due.measurement}: no fault of it fails"
        )
    worst = (min if one.mode == "any" else max)(able, key=lambda caught: caught.fails or 0.0)
    warned = (min if one.mode == "any" else max)(
        caught.warns for caught in found if caught.warns is not None
    )
    return Cell(name, _caught(worst, warned), _missed(worst, warned), _how(worst))


def _caught(worst: Caught, warned: float) -> str:
    assert worst.fails is not None
    if warned < worst.fails:
        return f"fails at {_size(worst, worst.fails)}, warns at {_size(worst, warned)}"
    return f"fails at {_size(worst, worst.fails)}"


def _missed(worst: Caught, warned: float) -> str:
    assert worst.fails is not None
    smaller = [step for step in worst.subject.steps if step < min(warned, worst.fails)]
    return _size(worst, smaller[-1]) if smaller else "nothing"


def _size(caught: Caught, value: float) -> str:
    """A fault in the reader's terms: rates in per cent, seconds in milliseconds."""
    unit = caught.subject.due.unit
    if unit in RATES:
        return f"{100 * value:.1f} %"
    if unit == "s":
        return f"{1000 * value:g} ms"
    return quantity(value, unit)


def _how(worst: Caught) -> str:
    due = worst.subject.due
    assert due.limit is not None
    return f"{due.measurement} {limit_text(due.limit)}: {words.text(due.limit.basis).split(';')[0]}"


def _unlimited() -> Iterator[Sensitivity]:
    """What is known not to be judged, so that nobody takes it for caught."""
    yield Sensitivity(
        "corrected ECC errors in the run",
        "never",
        "any number",
        "gpu_ecc_corrected_new is recorded: their rate is judged over nights",
    )


def unmeasured(tried: Sequence[Machine] | None = None) -> Sensitivity:
    """A value that does not come."""
    wrong = faultless(tried)
    how = "each measurement of each machine was left out by itself: UNJUDGED, never PASS"
    return Sensitivity(
        "measurements that are due and do not come",
        *(("never", "1", wrong[0]) if wrong else ("1", "nothing", how)),
    )


def faultless(tried: Sequence[Machine] | None = None) -> tuple[str, ...]:
    """What keeps the judge from being trusted: limits that no fault breaks, and values whose
    absence passes.

    Empty where all is well.
    """
    return tuple(told for machine in tried or every() for told in unable(machine))


def markdown() -> str:
    """The tables of the page."""
    found, clean, slow = sensitivity(), false_alarms(ALARM_RUNS, SEED), caught_slow()
    cells = [(one.what, one.smallest, one.missed, one.how) for one in found]
    judged = sum(1 for machine in every() for _ in subjects(machine))
    return "\n".join(
        [
            "### The smallest fault still caught",
            "",
            (
                f"Found in 99 of {RUNS} drawn runs. Of {judged} limited measurements of "
                f"{len(every())} machines every one can fail."
            )
            if not faultless()
            else f"CANNOT FAIL: {'; '.join(faultless())}",
            "",
            *_table(("fault", "smallest caught", "largest missed", "decided by"), cells),
            "",
            "### A slow GPU, by what it is held against",
            "",
            (
                "Shares of 200 drawn runs in per cent: FAIL / warned only / missed. At 0 % "
                "nothing is wrong."
            ),
            "",
            *_table(
                ("held against", *(f"{percent} % slower" for percent in PERCENTS)), _slow(slow)
            ),
            "",
            PAST,
            "",
            "### False alarms in clean runs",
            "",
            *_table(ALARMS_HEAD, [_clean(one) for one in (*clean, _sum(clean))]),
            "",
            "### The noise of the drawn runs",
            "",
            *_table(("what", "one standard deviation", "source"), table()),
        ]
    )


def _slow(shares: Sequence[Share]) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for one in shares:
        cells = found.setdefault(one.basis, [one.basis])
        cells.append(
            " / ".join(f"{100 * share:.0f}" for share in (one.fails, one.warns, one.missed))
        )
    return list(found.values())


def _clean(one: FalseAlarms) -> tuple[str, ...]:
    return one.what, str(one.runs), str(one.alarms), one.told or "-", str(one.remarked)


def _sum(clean: Sequence[FalseAlarms]) -> FalseAlarms:
    alarms, remarked = sum(one.alarms for one in clean), sum(one.remarked for one in clean)
    return FalseAlarms("all", sum(one.runs for one in clean), alarms, "", remarked)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', ', ') for cell in row)} |"


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
