"""The recorded outputs of the programs of a run, read again and compared with its journal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file, repeat
from acceptance.core.evidence import Scratch, ToolRan
from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Text, english
from acceptance.core.record import CheckEnded, Entry, Measured, Stopped
from acceptance.journal.run import Run
from acceptance.loads.protocol import salvage
from acceptance.machine.machine_file import DeclaredCpu, Machine
from acceptance.process import reaper
from acceptance.process.command import ProgramResult
from acceptance.process.unreadable import UnreadableOutput
from acceptance.run import replay_session
from acceptance.run.replay_session import Figure, Reading
from acceptance.session.context import SessionContext
from acceptance.session.programs import SENT
from acceptance.suites.fixtures.host_tools import wrong_note
from acceptance.tools import TOOLS, Tool
from acceptance.wording.errors import WordedError


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


@dataclass(frozen=True, slots=True)
class _RecordedCheck:
    """The records of a check, and what its programs left; `unread` are logs that are not there."""

    entries: Sequence[Entry]
    programs: Sequence[ProgramResult]
    unread: Sequence[Message]

    @property
    def journal(self) -> list[Measured]:
        """The values that the journal has."""
        bodies = (entry.body for entry in self.entries)
        return [one for one in bodies if isinstance(one, Measured) and one.value is not None]

    @property
    def outcomes(self) -> set[str]:
        """How the check ended."""
        return {one.body.outcome for one in self.entries if isinstance(one.body, CheckEnded)}


def read_again(run: Run) -> LogReading:
    """Make the values of every check again of the logs of its programs."""
    measured = compared = 0
    differences: list[Message] = []
    # A repeat runs checks again: its values are its own logs'.
    for entries in filter(None, repeat.split_repeat(run.entries)):
        by_check = grouped((getattr(one.body, "check", None), one) for one in entries)
        measured += len(_RecordedCheck(entries, (), ()).journal)
        recorded = {
            one.id: _recorded_check(run.folder, by_check.get(one.id, ())) for one in run.plan.checks
        }
        whole = {
            str(name): recorded[str(name)].programs
            for name in by_check
            if name in recorded and recorded[name].programs and not recorded[name].unread
        }
        again = replay_session.read(_context(run), whole)
        for name, own in recorded.items():
            count, found = _check(name, own, again)
            compared += count
            differences += found
    return LogReading(measured, compared, tuple(differences))


def _context(run: Run) -> SessionContext:
    """What the sessions of a run had."""
    return SessionContext(
        mode="run",
        root="/",
        run_id=run.start.run_id,
        machine_id=run.start.machine_id,
        plan=run.plan,
        inventory=run.inventory,
        scratches=tuple(one.body for one in run.entries if isinstance(one.body, Scratch)),
        limits=run.start.limits,
        machine=_burn_program(run),
    )


def _burn_program(run: Run) -> Machine | None:
    """The machine file with what a check that starts programs needs of it: a burn program's name.

    None where the journal does not say what the file declares.
    """
    if (declared := run.start.declared) is None:
        return None
    name = declared.facts.get("cpu.cpuburn")
    return Machine(1, "machine", cpu=DeclaredCpu(cpuburn=None if name is None else str(name)))


def _recorded_check(folder: Path, entries: Sequence[Entry]) -> _RecordedCheck:
    """What the programs of a check left."""
    done: list[ProgramResult] = []
    unread: list[Message] = []
    before = None
    stops = 0  # of programs that the run ended, and that have not been recorded yet
    for entry in entries:
        stops += isinstance(entry.body, Stopped) and not entry.body.ended
        if isinstance(ran := entry.body, ToolRan) and ran.log is not None:
            # A signal that was not the run's own is journalled right before.
            own = not (isinstance(before, Stopped) and before.ended)
            ended = stops > 0 and ran.returncode == reaper.ENDED
            stops -= ended
            try:
                out, err = (_text(folder, ran.check, name) for name in (ran.log, f"{ran.log}.err"))
                done.append(
                    ProgramResult(
                        ran.argv,
                        ran.returncode,
                        out,
                        err,
                        ran.seconds,
                        timed_out=ended or (own and -ran.returncode in SENT),
                    )
                )
            except WordedError as error:
                unread.append(error.message)
        before = entry.body
    return _RecordedCheck(entries, done, unread)


def _check(
    name: str, recorded: _RecordedCheck, again: Mapping[str, Reading]
) -> tuple[int, Sequence[Message]]:
    """How many values of a check its logs tell, and what differs."""
    about = {"check": name}
    found = [
        *recorded.unread,
        *(
            Message(
                english("log_tells_fault", "{check} passed, but its log shows a fault: {why}"),
                {**about, "why": why},
            )
            for one in recorded.programs
            if "pass" in recorded.outcomes and (why := _fault(one)) is not None
        ),
    ]
    if recorded.unread:
        return 0, found
    if name not in again:
        unknown = any(_is_load(one) or _tool(one) for one in recorded.programs)
        return 0, [
            *(
                [
                    Message(
                        english(
                            "log_of_unknown",
                            "{check}: how its values are made of its logs is not known to this "
                            "version",
                        ),
                        about,
                    )
                ]
                if unknown
                else []
            ),
            *found,
        ]
    if not recorded.programs:
        return 0, [
            Message(english("log_none", "{check}: no output of its programs was kept"), about)
        ] if recorded.journal else []
    reading = again[name]
    if reading.trouble is not None:
        found.append(
            Message(
                english("log_proves_nothing", "{check}: its logs prove nothing: {why}"),
                {**about, "why": reading.trouble},
            )
        )
    journalled, logged = _by_figure(recorded.journal), _by_figure(reading.measured)
    compared = sum(len(values) for figure, values in journalled.items() if figure in logged)
    for figure in dict.fromkeys((*journalled, *logged)):
        ours, theirs = journalled.get(figure, ()), logged.get(figure, ())
        # After a trouble the log tells less, and of a check that proved nothing the journal does.
        due = (theirs or reading.trouble is None) and (ours or {"pass", "fail"} & recorded.outcomes)
        if due and figure not in reading.of_machine:
            found += _differences(name, figure, ours, theirs)
    return compared, found


def _fault(done: ProgramResult) -> Text | None:
    """The fault that a program's output proves by itself; None where it proves none."""
    if _is_load(done):
        return wrong_note(salvage(done.stdout))
    if (tool := _tool(done)) is None:
        return None
    try:
        output = tool.parse(f"{done.stdout}\n{done.stderr}")
    except UnreadableOutput:
        return None
    return output.reason if output.outcome == "fail" else None


def _is_load(done: ProgramResult) -> bool:
    return any(one.startswith("acceptance.loads") for one in done.argv)


def _tool(done: ProgramResult) -> Tool | None:
    """The tool of a command, which may stand behind `nice`."""
    names = {Path(one).name for one in done.argv}
    return next((tool for tool in TOOLS if tool.name in names), None)


def _by_figure(measured: Sequence[Measured]) -> dict[Figure, tuple[float, ...]]:
    return grouped(
        ((one.measurement, one.component), one.value) for one in measured if one.value is not None
    )


def _differences(
    check: str, figure: Figure, journalled: Sequence[float], logged: Sequence[float]
) -> Iterator[Message]:
    about = {"check": check, "measurement": figure[0], "component": str(figure[1])}
    strange, left_out = _without(journalled, logged), _without(logged, journalled)
    if strange and left_out:
        values = {"journal": _listed(strange), "log": _listed(left_out)}
        yield Message(
            english(
                "log_differs",
                "{check}: the journal has {measurement} = {journal} on {component}, but its log "
                "has {log}",
            ),
            {**about, **values},
        )
    elif strange:
        yield Message(
            english(
                "log_lacks",
                "{check}: the journal has {measurement} = {journal} on {component}, and its log "
                "does not tell it",
            ),
            {**about, "journal": _listed(strange)},
        )
    elif left_out:
        yield Message(
            english(
                "log_tells_more",
                "{check}: the log has {measurement} = {log} on {component}, which is not in the "
                "journal",
            ),
            {**about, "log": _listed(left_out)},
        )


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


def _text(folder: Path, check: str, name: str) -> str:
    path = folder / name
    try:
        # A journal may name any file; only those of the run are read.
        if not path.resolve().is_relative_to(folder.resolve()):
            raise WordedError(
                english(
                    "log_elsewhere",
                    "{check}: {log} is not in the folder of the run and was not read",
                ),
                check=check,
                log=name,
            )
        return regular_file.read(path, regular_file.RECORDING).decode("utf-8", "replace")
    except OSError as error:
        why = error.strerror or str(error)
        raise WordedError(
            english("log_unread", "{check}: {log} cannot be read: {why}"),
            check=check,
            log=name,
            why=why,
        ) from error
    except (RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        raise WordedError("log_unread", check=check, log=name, why=str(error)) from error
