"""The fixtures of a site's own checks, which are plain pytest files in one folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import SupportsFloat

import pytest

from acceptance.core.evidence import AnyBody
from acceptance.core.finding import Waiver
from acceptance.core.message import Text, english, known
from acceptance.core.parts import Component, parse
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Note
from acceptance.expect.site_families import Setting
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check
from acceptance.session.collection import check_id, families_of
from acceptance.session.fixtures import SessionFixtures
from acceptance.session.programs import Programs
from acceptance.wording.errors import WordedError


def _number(value: object, what: str) -> float:
    """A value as a number, numpy's too. Raises ValueError for a text, which is none."""
    if isinstance(value, SupportsFloat):
        return float(value)
    raise ValueError(f"{what} is {value!a}, which is no number")


class SiteCheck(Check):
    """The `check` of a site's check: it takes a number, or numbers by the names of components."""

    def __init__(
        self,
        planned: PlannedCheck,
        waivers: Sequence[Waiver],
        write: Callable[[AnyBody], None],
        declared: Sequence[str],
    ) -> None:
        super().__init__(planned, waivers, write)
        self._declared = declared

    def __call__(  # type: ignore[override]
        self,
        measurement: str,
        readings: float | Mapping[str, float] | Mapping[Component, float],
        *,
        note: str | None = None,
    ) -> None:
        """Journal one measurement of all its components, which the end of the check judges.

        `readings` is the value in the measurement's unit, where it is due of one component, else
        the values by component (`{"gpu0": 1.0}`). `note` is shown beside it. Raises ValueError for
        a measurement that the check does not declare, and for a value that is no number.
        """
        if measurement not in self._declared:
            raise ValueError(f"{measurement} is not among the measures of this check")
        due = self.due(measurement)
        if isinstance(readings, Mapping):
            given = {
                one if isinstance(one, Component) else parse(one): value
                for one, value in readings.items()
            }
        elif len(due) > 1:
            names = ", ".join(str(one.component) for one in due)
            raise ValueError(f"{measurement} is due of {names}: give a value for each by its name")
        else:
            given = {one.component: readings for one in due}
        values = {
            component: _number(value, f"{measurement} of {component}")
            for component, value in given.items()
        }
        notes: dict[Component, Text | None] = dict.fromkeys(values, note)
        super().__call__(measurement, values, notes=notes)


class Program:
    """Starts the programs of a check, each with a deadline, a log and a record in the journal."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def find(self, name: str, package: str | None = None) -> str:
        """The path of a program.

        Where it is not installed the check is skipped, and the package to install is its cure.
        """
        return self._programs.find(name, package)

    def __call__(
        self,
        *argv: str | Path,
        seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        exits: Sequence[int] = (0,),
    ) -> ProgramResult:
        """Run a program to its end; gives its `stdout`, `stderr`, `returncode` and `seconds`.

        It is ended after `seconds`, and with the check's own time at the latest. Raises
        WordedError where it is ended so, or with a code that is not in `exits`.
        """
        deadline = Deadline.after(seconds) if seconds is not None else None
        done = self._programs.run([str(one) for one in argv], deadline=deadline, env=env)
        if done.timed_out or done.returncode not in exits:
            name = Path(done.argv[0]).name
            values = known(program=name, how=done.describe(), last=done.last_lines(3) or None)
            raise WordedError(
                english("site_program_failed", "{program}: {how}[: {last}]"), **values
            )
        return done


class SiteFixtures:
    """What a site's checks may use. No other fixture of rigproof is there."""

    def __init__(self, session: SessionFixtures) -> None:
        assert session.context.site is not None
        self._session = session
        self._context = session.context
        self._families = families_of(Path(session.context.site))

    def _planned(self, request: pytest.FixtureRequest) -> PlannedCheck:
        return self._session.share[check_id(request.node)]

    @pytest.fixture
    def check(self, request: pytest.FixtureRequest) -> SiteCheck:
        """Journals readings and judges them against the plan (`SiteCheck`)."""
        declared = [one for mark in request.node.iter_markers("measures") for one in mark.args]
        planned, waivers = self._planned(request), self._session.plan.waivers
        return SiteCheck(planned, waivers, self._session.write, declared)

    @pytest.fixture
    def program(self, request: pytest.FixtureRequest) -> Program:
        """Starts programs with a deadline (`Program`)."""
        logs = self._session.run_dir / "logs"
        return Program(Programs(self._planned(request), logs, self._session.write))

    @pytest.fixture
    def machine(self) -> Machine | None:
        """The machine file; None where there is none."""
        return self._context.machine

    @pytest.fixture
    def inventory(self) -> Inventory | None:
        """The machine as observed before the run."""
        return self._context.inventory

    @pytest.fixture
    def settings(self, request: pytest.FixtureRequest) -> Mapping[str, Setting]:
        """`[settings]` of the TOML file beside the check's own file."""
        return self._families.settings[request.node.path.stem]

    @pytest.fixture
    def say(self) -> Callable[[str], None]:
        """Writes a note for the reader of the report; no verdict depends on it."""
        return lambda text: self._session.write(Note(str(text)))

    @pytest.fixture
    def tmp_path(self) -> Iterator[Path]:
        """An empty folder, which is removed after the check."""
        with tempfile.TemporaryDirectory(prefix="rigproof-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
