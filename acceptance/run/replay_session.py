"""A session over the recorded outputs of a run: its checks run again, and no program is started.

Each check's own function runs with its own fixtures. What starts programs hands out what those of
the run left, in the order in which they were started; what looks at the machine sees none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from acceptance.core.evidence import AnyBody
from acceptance.core.message import (
    Gap,
    Message,
    Text,
    Texts,
    Unmeasured,
    english,
    not_offered,
    not_permitted,
)
from acceptance.core.parts import Component
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Measured, Skipped
from acceptance.expect import site_sheets
from acceptance.expect.sheet import Sheet
from acceptance.loads import asks
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.session import plugin
from acceptance.session.check import Check, CheckSkipped
from acceptance.session.collection import check_id
from acceptance.session.context import SUITES, SessionContext
from acceptance.session.fixtures import SessionFixtures
from acceptance.session.loads import Part
from acceptance.session.programs import Programs
from acceptance.suites.fixtures.disk_watch import DiskWatch
from acceptance.suites.fixtures.storage import DiskFiles
from acceptance.tools import fio
from acceptance.tools.proof import ToolError

NOWHERE = Path("/nonexistent")  # nothing is read or written there
OF_MACHINE = not_offered("of the machine, and in no program's output")
# gpu-burn starts it; the checks only look whether it is there.
STARTED_BY_OTHERS = "nvidia-smi"
# Logs that smartctl was not asked for by older rigproofs; a report says itself what it has.
MORE_REPORT = ("-l", "devstat", "background")
Figure = tuple[str, Component]  # a measurement of a component

_OWN_FOLDER = re.compile(r'"[^"]*/logs/(turns|)[^"]*"')  # of the run's logs, in an ask
_AMOUNT = re.compile(r"(?<![^=])\d+(\.\d+)?[a-z]?$")


@dataclass(slots=True)
class Reading:
    """What a check made of the recorded outputs.

    `trouble` says why they prove nothing; `of_machine` are figures that no program prints.
    """

    measured: list[Measured] = field(default_factory=list)
    trouble: Text | None = None
    of_machine: set[Figure] = field(default_factory=set)


def _essence(argv: Sequence[str]) -> tuple[str, ...]:
    """What of a command line is the same each time.

    Of our loads all that is asked but the run's own folder. Of a tool not where it lies, and no
    amounts, which its output is held against.
    """
    try:
        ask = asks.of_argv(argv)
    except msgspec.MsgspecError:
        ask = None
    if ask is not None:
        given = {**msgspec.to_builtins(ask), **ask.parameters()}
        return (_OWN_FOLDER.sub(r'"\1"', msgspec.json.encode(given).decode()),)
    words = argv[1:] if argv[1:2] == ("-m",) else argv
    return tuple(_word(word) for word in words if word not in MORE_REPORT)


def _word(word: str) -> str:
    return (
        Path(word).name
        if word.startswith("/") and not word.startswith("/dev/")
        else _AMOUNT.sub("", word)
    )


class RecordedPrograms(Programs):
    """Hands out what the programs of a check left, in the order in which they were started."""

    def __init__(self, planned: PlannedCheck, recorded: Sequence[ProgramResult]) -> None:
        super().__init__(planned, NOWHERE / "logs", lambda _body: None)
        self._recorded = list(recorded)
        self._names = {Path(word).name for one in recorded for word in one.argv} | {
            STARTED_BY_OTHERS
        }
        self._left_s = session_context.programs_s(planned)

    @property
    def deadline(self) -> Deadline:
        """The time that the programs left of that of the check."""
        return Deadline.after(self._left_s)

    def find(self, program: str, package: str | None = None) -> str:
        """The name of a program that was started; what was not started was not installed."""
        if Path(program).name not in self._names:
            raise CheckSkipped(
                not_permitted(
                    Message(
                        english(
                            "log_of_another",
                            "{check}: its programs are not those that this version starts",
                        ),
                        {"check": self._planned.id},
                    )
                )
            )
        return program

    def is_next(self, folder: Path) -> bool:
        """Whether the next program is fio on a file in a folder."""
        place = fio.file_argument(f"{folder}/")
        return any(word.startswith(place) for one in self._recorded[:1] for word in one.argv)

    def run_stage(
        self,
        parts: Sequence[Part],
        *,
        on_line: Callable[[int, str], None] | None = None,
        whole: Callable[[ProgramResult], bool] | None = None,
    ) -> tuple[ProgramResult, ...]:
        """The results of the next programs. Raises ToolError where these are others."""
        found, self._recorded = self._recorded[: len(parts)], self._recorded[len(parts) :]
        if len(found) < len(parts):
            raise ToolError("log_none", check=self._planned.id)
        if [_essence(one.argv) for one in parts] != [_essence(one.argv) for one in found]:
            raise ToolError("log_of_another", check=self._planned.id)
        self._left_s -= max((one.seconds for one in found), default=0.0)
        return tuple(found)

    def require_all(self) -> None:
        """Raise ToolError where outputs are left that the check did not ask for."""
        if self._recorded:
            raise ToolError("log_of_another", check=self._planned.id)


@dataclass(slots=True)
class RecordedFiles(DiskFiles):
    """Makes no files. The time in a folder is over with the last program that worked there."""

    programs: Callable[[], RecordedPrograms] = field(kw_only=True)

    def reserve(self, folder: Path, name: str, size: int) -> None:
        """The run made it."""

    def remove(self, file: Path) -> None:
        """The run removed it."""

    def make_kept_folder(self, folder: Path) -> None:
        """The run made it."""

    def time_left(self, folder: Path, seconds: float) -> Callable[[], bool]:
        """Whether a program worked in the folder next."""
        return lambda: self.programs().is_next(folder)


class _NoDisks(DiskWatch):
    """Looks at no disk."""

    def __init__(self, check: Check) -> None:
        super().__init__((), (), NOWHERE)
        self._check = check

    def unseen(self) -> dict[Component, Gap]:
        """The links of all disks."""
        return dict.fromkeys(self._check.components("disk_link_share"), OF_MACHINE)


class ReplayFixtures(SessionFixtures):
    """The fixtures of the session: those here stand for programs, time and the machine."""

    def __init__(
        self,
        context: SessionContext,
        recorded: Mapping[str, Sequence[ProgramResult]],
        write: Callable[[AnyBody], None],
    ) -> None:
        assert context.plan is not None
        share = {one.id: one for one in context.plan.checks}
        super().__init__(context, NOWHERE, share, write)
        self._recorded = recorded
        self.running: RecordedPrograms | None = None
        self._files = RecordedFiles(seed=0, programs=lambda: cast(RecordedPrograms, self.running))

    @pytest.fixture
    def programs(self, planned: PlannedCheck) -> Programs:
        """Hands out the recorded outputs of the check."""
        self.running = RecordedPrograms(planned, self._recorded[planned.id])
        return self.running

    @pytest.fixture
    def earlier_programs(self) -> Callable[[str], tuple[ProgramResult, ...]]:
        """The recorded outputs of another check, by its id."""
        return lambda check: tuple(self._recorded.get(check, ()))

    @pytest.fixture
    def model_sheets(self) -> tuple[Sheet, ...]:
        """The GPU sheets of the run that this rigproof can read."""
        return site_sheets.of_record(self.context.limits).models

    @pytest.fixture
    def exists(self) -> Callable[[str], bool]:
        """What the run missed of its disks is in its journal."""
        return lambda _path: True

    @pytest.fixture
    def pause(self) -> Callable[[float], None]:
        """The outputs are there already."""
        return lambda _seconds: None

    @pytest.fixture
    def turns(self) -> str:
        """The folder in which loads took turns."""
        return str(NOWHERE / "logs/turns")

    @pytest.fixture
    def disk_files(self) -> DiskFiles:
        """What the storage tests of the run wrote, one for all checks."""
        return self._files

    @pytest.fixture
    def disk_watch(self, check: Check) -> DiskWatch:
        """Sees no disk."""
        return _NoDisks(check)


class _Session:
    """The plugin of the session: it runs the checks whose outputs were recorded."""

    def __init__(
        self,
        context: SessionContext,
        recorded: Mapping[str, Sequence[ProgramResult]],
        fixtures: type[ReplayFixtures],
    ) -> None:
        self._recorded = recorded
        self._context = context
        self._fixtures = fixtures(context, recorded, self._write)
        self.found: dict[str, Reading] = {}
        self.interrupted = False

    def _write(self, body: AnyBody) -> None:
        if isinstance(body, Measured):
            self.found[body.check].measured.append(body)
        elif isinstance(body, Skipped) and body.measurement and body.component is not None:
            reading = self.found[body.check]
            if body.reason == OF_MACHINE.reason:
                reading.of_machine.add((body.measurement, body.component))
            elif body.why is Unmeasured.NO_ANSWER:
                reading.trouble = reading.trouble or _clauses(body.reason)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the marks and, after those of the suites, the fixtures."""
        for mark in plugin.MARKS:
            config.addinivalue_line("markers", mark)
        config.pluginmanager.register(self._fixtures, "rigproof-fixtures")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the checks whose outputs were recorded, in the order of their programs."""
        found = {check_id(item): item for item in items}
        self.found = {
            name: Reading() for name, item in found.items() if _can_replay(item, self._context)
        }
        items[:] = [found[name] for name in self._recorded if name in self.found]

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that a person ended it; pytest ends itself in a subclass of this exception."""
        self.interrupted = excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """After the body of a check, require that it asked for all outputs."""
        result = yield
        assert self._fixtures.running is not None
        self._fixtures.running.require_all()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep why a check proves nothing."""
        report = yield
        reading = self.found[check_id(item)]
        if call.excinfo is not None:
            reading.trouble = _clauses(plugin.sentence(call.excinfo.value))
        return report


def _clauses(told: Texts) -> Text:
    """What an exception says, as one text."""
    return Message("clauses", {"why": told}) if isinstance(told, tuple) else told


def _can_replay(item: pytest.Item, context: SessionContext) -> bool:
    """Whether a check starts programs, by a machine file only where that is known."""
    names = getattr(item, "fixturenames", ())
    return "programs" in names and ("machine" not in names or context.machine is not None)


def read(
    context: SessionContext,
    recorded: Mapping[str, Sequence[ProgramResult]],
    fixtures: type[ReplayFixtures] = ReplayFixtures,
) -> dict[str, Reading]:
    """Run the checks of a plan that this rigproof has over what their programs left.

    Has each that starts programs, by its id, also where none were recorded.
    """
    assert context.plan is not None
    # No counters, thermometers or sensors are read of the disks.
    scratches = tuple(replace(one, disks=()) for one in context.scratches)
    session = _Session(replace(context, root=str(NOWHERE), scratches=scratches), recorded, fixtures)
    subjects = {one.id.partition(".")[0] for one in context.plan.checks}
    files = [str(path) for path in sorted(SUITES.glob("*.py")) if path.stem in subjects]
    if files:
        with pytest.MonkeyPatch.context() as surroundings:
            for name in [one for one in os.environ if one.startswith("PYTEST_")]:
                surroundings.delenv(name)
            pytest.main([*_ARGUMENTS, *files], plugins=[session])
    if session.interrupted:
        raise KeyboardInterrupt
    return session.found


# Nothing of the surroundings steers it, and it prints nothing.
_ARGUMENTS = (
    *("-c", os.devnull, f"--rootdir={SUITES}", f"--confcutdir={SUITES}", "--capture=no"),
    *("-o", "python_files=*.py", "--disable-plugin-autoload"),
    *("--assert=plain", "--import-mode=importlib"),
    *(
        word
        for name in (
            *("cacheprovider", "faulthandler", "junitxml", "logging", "terminal"),
            *("threadexception", "unraisableexception", "warnings"),
        )
        for word in ("-p", f"no:{name}")
    ),
)
