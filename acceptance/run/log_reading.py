"""The kept outputs of a run's programs, read again and held against the values in its journal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file, repeat
from acceptance.core.component import Component
from acceptance.core.evidence import Scratch, ToolRan
from acceptance.core.message import Listed, Message
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import CheckEnded, Entry, Measured
from acceptance.expect import site_sheets
from acceptance.journal.run import Run
from acceptance.machine.gpu import gpus
from acceptance.process.command import ProgramResult
from acceptance.run import kept_outputs
from acceptance.run.kept_outputs import Kept
from acceptance.wording.errors import WordedError

Figure = tuple[str, Component]  # a measurement of a component


@dataclass(frozen=True, slots=True)
class LogReading:
    """What the logs say of the values in the journal.

    `compared` of `measured` values were made again of the logs; the others come from sensors, the
    driver, the kernel and the disks. `differences` name what differs, and every log that proves
    nothing.
    """

    measured: int
    compared: int
    differences: tuple[Message, ...]


class _LogUnread(WordedError):
    """A log cannot be read; the message names it, and says why."""


def read_again(run: Run) -> LogReading:
    """Make the values of every check again of the logs of its programs."""
    measured = compared = 0
    differences: list[Message] = []
    # A repeat runs checks again: its values are its own logs'.
    for entries in repeat.split_repeat(run.entries):
        measured += len(_measured(entries))
        by_check: dict[str | None, list[Entry]] = {}
        for one in entries:
            by_check.setdefault(getattr(one.body, "check", None), []).append(one)
        for planned in run.plan.checks:
            count, found = _check(run, planned, by_check)
            compared += count
            differences += found
    return LogReading(measured, compared, tuple(differences))


def _measured(entries: Sequence[Entry]) -> list[Measured]:
    bodies = (entry.body for entry in entries)
    return [one for one in bodies if isinstance(one, Measured) and one.value is not None]


def _check(
    run: Run, planned: PlannedCheck, by_check: Mapping[str | None, Sequence[Entry]]
) -> tuple[int, Sequence[Message]]:
    """How many values of a check its logs tell, and what differs."""
    entries = by_check.get(planned.id, ())
    journal = [
        one for one in _measured(entries) if kept_outputs.of_logs(planned.id, one.measurement)
    ]
    about = {"check": planned.id}
    outcomes = [one.body.outcome for one in entries if isinstance(one.body, CheckEnded)]
    done: list[ProgramResult] = []
    unread: list[Message] = []
    for entry in entries:
        if isinstance(ran := entry.body, ToolRan) and ran.log is not None:
            try:
                done.append(_program(run.folder, ran, ran.log))
            except _LogUnread as error:
                unread.append(error.message)
    found = [
        Message("log_tells_fault", {**about, "why": why})
        for one in done
        if "pass" in outcomes and (why := kept_outputs.fault(one)) is not None
    ]
    if unread:
        return 0, [*unread, *found]
    if not kept_outputs.known(planned.id):
        unknown = [Message("log_of_unknown", about)] if any(map(kept_outputs.reads, done)) else []
        return 0, [*unknown, *found]
    if not done:
        return 0, [Message("log_none", about)] if journal else []

    def earlier(check: str) -> tuple[ProgramResult, ...]:
        ran = (one.body for one in by_check.get(check, ()))
        return tuple(
            _program(run.folder, one, one.log)
            for one in ran
            if isinstance(one, ToolRan) and one.log is not None
        )

    due = gpus(run.inventory, run.plan.gpus)
    scratches = [one.body for one in run.entries if isinstance(one.body, Scratch)]
    models = site_sheets.of_record(run.start.limits).models
    kept = Kept(planned, done, due, run.inventory, earlier, scratches, models)
    told, trouble = kept_outputs.values(kept)
    if trouble is not None:
        found.append(Message("log_proves_nothing", {**about, "why": trouble}))
    journalled, logged = _by_figure(journal), _by_figure(told)
    compared = sum(len(held) for figure, held in journalled.items() if figure in logged)
    for figure in dict.fromkeys((*journalled, *logged)):
        held, said = journalled.get(figure, []), logged.get(figure, [])
        # After a trouble the log tells less, and of a check that proved nothing the journal does.
        if (said or trouble is None) and (held or {"pass", "fail"} & {*outcomes}):
            found += _differences(planned.id, figure, held, said)
    return compared, found


def _by_figure(measured: Sequence[Measured]) -> dict[Figure, list[float]]:
    found: dict[Figure, list[float]] = {}
    for one in measured:
        if one.value is not None:
            found.setdefault((one.measurement, one.component), []).append(one.value)
    return found


def _differences(
    check: str, figure: Figure, held: Sequence[float], said: Sequence[float]
) -> Iterator[Message]:
    about = {"check": check, "measurement": figure[0], "component": str(figure[1])}
    strange, left_out = _without(held, said), _without(said, held)
    if strange and left_out:
        values = {"journal": _listed(strange), "log": _listed(left_out)}
        yield Message("log_differs", {**about, **values})
    elif strange:
        yield Message("log_lacks", {**about, "journal": _listed(strange)})
    elif left_out:
        yield Message("log_tells_more", {**about, "log": _listed(left_out)})


def _without(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """The values that are not among the others, each of which stands for one."""
    left, rest = list(others), []
    for value in values:
        # The text of a number in the journal may differ in the last digit.
        same = next((one for one in left if math.isclose(one, value, rel_tol=1e-9)), None)
        if same is None:
            rest.append(value)
        else:
            left.remove(same)
    return rest


def _listed(values: Sequence[float]) -> Listed:
    return Listed(tuple(f"{value:.9g}" for value in sorted(values)))


def _program(folder: Path, ran: ToolRan, log: str) -> ProgramResult:
    """A program as its kept output shows it. Raises _LogUnread."""
    out, err = (_text(folder, ran.check, name) for name in (log, f"{log}.err"))
    return ProgramResult(ran.argv, ran.returncode, out, err, ran.seconds)


def _text(folder: Path, check: str, name: str) -> str:
    path = folder / name
    try:
        # A journal may name any file; only those of the run are read.
        if not path.resolve().is_relative_to(folder.resolve()):
            raise _LogUnread("log_elsewhere", check=check, log=name)
        return regular_file.read(path, regular_file.RECORDING).decode("utf-8", "replace")
    except OSError as error:
        why = error.strerror or str(error)
        raise _LogUnread("log_unread", check=check, log=name, why=why) from error
    except (RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        raise _LogUnread("log_unread", check=check, log=name, why=str(error)) from error
