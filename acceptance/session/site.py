"""A session of a site's own checks: collection, mistakes in them, and their fixtures.

They are plain pytest files in one folder. Everything that can be wrong with them before they run is
a mistake with its file, line and cure, found when the plan is made.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

import msgspec
import pytest

from acceptance.core import nearest
from acceptance.core.evidence import AnyBody
from acceptance.core.message import Message, Text, known
from acceptance.core.parts import Component, parse
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Note
from acceptance.core.site import SUBJECT, FamilyFile, folder_digest
from acceptance.core.waiver import Waiver
from acceptance.expect import site_families
from acceptance.expect.collected import CollectedCheck
from acceptance.expect.site_families import PAGE, Setting, SiteFamilies
from acceptance.journal import provenance
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.session.check import Check
from acceptance.session.programs import Programs
from acceptance.wording.errors import WordedError

IS_SITE = pytest.StashKey[bool]()
LONGEST_S = 86_400.0  # of a check
# Other marks would change when, or whether, a check counts.
MARKS = frozenset({"measures", "costs", "parametrize", "usefixtures", "skip", "skipif"})
_MARK_CURES = {
    "session": "a site's checks have a session of their own",
    "gate": "no check of a site ends a run",
    "timeout": "its time limit follows from costs(seconds)",
    "xfail": "a waiver of the machine file accepts what is known",
}


class Mistake(Exception):
    """Something wrong with a site's file, in one sentence with the cure; `line` is its line."""

    def __init__(self, line: int | None, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


class ProgramFailed(WordedError):
    """A program of a site's check did not end as it should: the check proves nothing."""


def digest_of(folder: Path) -> str:
    """The digest of the run's copy of the files. Raises OSError.

    It was copied without folders: one that a file of checks has made changes the digest.
    """
    return folder_digest(
        {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}
    )


def families_of(folder: Path) -> SiteFamilies:
    """The families in the run's copy. Raises SiteFileError, which the planning has ruled out."""
    found = sorted(folder.glob("*.toml"))
    return site_families.parse(
        [FamilyFile(one.name, one.read_text(encoding="utf-8-sig")) for one in found]
    )


class SiteCollector:
    """Mode `collect` of a site's folder: lists its checks and its mistakes, and runs none."""

    def __init__(self, context: session_context.SessionContext) -> None:
        assert context.answer is not None
        assert context.site is not None
        self._answer, self._folder = Path(context.answer), Path(context.site)
        self._mistakes: list[str] = []
        self._broken: set[str] = set()  # files that could not be imported

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]
    ) -> None:
        """Note why a file could not be imported."""
        assert call.excinfo is not None
        error = call.excinfo.value
        cause = error.__cause__ if isinstance(error, pytest.Collector.CollectError) else error
        self._broken.add(node.path.name)
        self._note(node.path.name, _import_trouble(cause or error, node.path))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check every file that could be imported, and write the answer."""
        families, checks = families_of(self._folder), []
        sources = {path.name: path for path in sorted(self._folder.glob("*.py"))}
        for name, path in sources.items():
            if name in self._broken:
                continue
            own = [item for item in session.items if item.path == path]
            for mistake in _file_mistakes(path, own):
                self._note(name, mistake)
            for item in own:
                try:
                    checks.append(describe(item, families))
                except Mistake as mistake:
                    self._note(name, mistake)
        if not self._mistakes:
            measured = {one.name for check in checks for one in check.measures}
            for name, one in families.measurements.by_name.items():
                if name not in measured:
                    cure = "name it in @pytest.mark.measures, or remove it here"
                    self._note(
                        f"{one.family}.toml", Mistake(None, f"no check measures {name}: {cure}")
                    )
        if "torch" in sys.modules:
            self._mistakes.append(
                "torch was loaded by one of these files: start it in a program of its own, with "
                "the fixture program"
            )
        told = {
            "digest": provenance.package_digest(),
            "checks": checks,
            "mistakes": self._mistakes,
            "site_digest": digest_of(self._folder),
        }
        self._answer.write_bytes(msgspec.json.encode(told))

    def pytest_runtestloop(self) -> bool:
        """Run nothing."""
        return True

    def _note(self, file: str, mistake: Mistake) -> None:
        where = f"{file}, line {mistake.line}" if mistake.line else file
        self._mistakes.append(f"{where}: {mistake}")


def _import_trouble(error: BaseException, path: Path) -> Mistake:
    """Why a file could not be imported."""
    if isinstance(error, SyntaxError):
        return Mistake(error.lineno, f"is not Python ({error.msg}): correct it there, or before")
    for mistake in _plugins(ast.parse(path.read_bytes())):
        return mistake
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, ImportError):
        cure = "a file of checks has Python's own modules and what rigproof has installed, no other"
    else:
        cure = "correct it, or move it into a check"
    return Mistake(line_in(error, path.parent), f"cannot be imported ({text}): {cure}")


def _plugins(module: ast.Module) -> Iterator[Mistake]:
    """Plugins of pytest that a file names."""
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any(isinstance(one, ast.Name) and one.id == "pytest_plugins" for one in targets):
            yield Mistake(
                node.lineno,
                "names plugins of pytest, and a site's checks run without any: remove it",
            )


def line_in(error: BaseException, folder: Path) -> int | None:
    """The last line of a site's file that an exception went through."""
    own = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).parent == folder
    ]
    return own[-1] if own else None


def _file_mistakes(path: Path, items: Sequence[pytest.Item]) -> Iterator[Mistake]:
    """What is wrong with a file as a whole."""
    module = ast.parse(path.read_bytes())
    names = Counter(
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and names[node.name] > 1:
            names[node.name] = 1  # named once
            yield Mistake(
                node.lineno, f"{node.name} is defined again further down: give each its own name"
            )
    yield from _plugins(module)
    if not items:
        yield Mistake(None, f"holds no check: a check is a function named test_... ({PAGE})")


def describe(item: pytest.Item, families: SiteFamilies) -> CollectedCheck:
    """The description of a check from its marks and docstring. Raises Mistake."""
    line = (item.reportinfo()[1] or 0) + 1
    name = item.name
    if not isinstance(item, pytest.Function) or item.cls is not None:
        raise Mistake(line, f"{name} is a method: write it as a function of the file")
    function = item.function
    if inspect.iscoroutinefunction(function):
        raise Mistake(line, f"{name} is asynchronous: write it as a plain function")
    if not name.isascii() or not name.isprintable() or set(name) & set(" ,*?"):
        raise Mistake(
            line,
            f"{name!a} would be hard to name in --only: give its parameters ids of plain letters "
            "(parametrize(..., ids=[...]))",
        )
    title = " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())
    if not title:
        raise Mistake(line, f"{name} has no docstring: say in a sentence what it asks the machine")
    for mark in item.iter_markers():
        if mark.name not in MARKS:
            cure = _MARK_CURES.get(mark.name, f"{PAGE} has the marks there are")
            raise Mistake(line, f"{name} has the mark {mark.name}, which has no place here: {cure}")
    seconds, slack = _costs(item, line)
    declared = _declared(item, families, line)
    _lint_fixtures(item, line)
    _lint_calls(item, declared, line)
    return CollectedCheck(
        id=f"{SUBJECT}.{item.path.stem}.{name.removeprefix('test_')}",
        title=title,
        session="site",
        measures=tuple(families.measurements.by_name[one].measured_by(name) for one in declared),
        seconds=seconds,
        slack=slack,
    )


def _costs(item: pytest.Function, line: int) -> tuple[float, float]:
    """The calculated seconds of a check, and its slack."""
    mark = item.get_closest_marker("costs")
    if mark is None:
        raise Mistake(
            line,
            f"{item.name} does not say how long it takes: add @pytest.mark.costs(SECONDS), which "
            "its deadline follows from",
        )
    found = (*mark.args, *mark.kwargs.values())
    if (
        len(mark.args) != 1
        or mark.kwargs.keys() - {"slack"}
        or not all(isinstance(one, int | float) and math.isfinite(one) for one in found)
        or not 0 < mark.args[0] <= LONGEST_S
        or not 0 <= mark.kwargs.get("slack", 0) <= LONGEST_S
    ):
        raise Mistake(
            line,
            f"{item.name}: costs is costs(SECONDS) or costs(SECONDS, slack=SECONDS), up to a day",
        )
    return float(mark.args[0]), float(mark.kwargs.get("slack", 0.0))


def _declared(item: pytest.Function, families: SiteFamilies, line: int) -> tuple[str, ...]:
    """The names of the measurements of a check, each of them in a family of the site."""
    marks = tuple(item.iter_markers("measures"))[::-1]  # pytest gives the innermost first
    names = tuple(one for mark in marks for one in mark.args)
    if not names or any(mark.kwargs for mark in marks):
        raise Mistake(
            line,
            f"{item.name} measures nothing: add @pytest.mark.measures with the names of its "
            "measurements",
        )
    for one in names:
        if not isinstance(one, str) or families.measurements.get(one) is None:
            cure = nearest.cure(
                str(one), families.measurements.by_name, "declare it in the TOML file"
            )
            raise Mistake(
                line, f"{item.name} measures {one!a}, which no TOML file of the folder has: {cure}"
            )
    if len(set(names)) != len(names):
        raise Mistake(line, f"{item.name} names a measurement twice: remove one")
    return names


def _lint_fixtures(item: pytest.Function, line: int) -> None:
    info = item._fixtureinfo  # pytest names an unknown fixture only when a test runs
    wanted = [one for one in item.fixturenames if one != "request"]
    for one in wanted:
        if one not in info.name2fixturedefs:
            own = ("check", "program", "machine", "inventory", "settings", "say", "tmp_path")
            cure = nearest.cure(one, own, f"a check of a site has {', '.join(own)}")
            raise Mistake(line, f"{item.name} asks for {one!a}, which is no fixture: {cure}")
    if "check" not in wanted:
        raise Mistake(
            line, f"{item.name} does not take the fixture check: without it nothing is measured"
        )


def _lint_calls(item: pytest.Function, declared: Sequence[str], line: int) -> None:
    """Refuse calls of `check` with a name that the check does not declare."""
    module = ast.parse(item.path.read_bytes())
    own = item.function.__name__
    for node in ast.walk(next(_functions(module, own), module)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "check"
            and node.args
            and isinstance(first := node.args[0], ast.Constant)
            and first.value not in declared
        ):
            cure = nearest.cure(str(first.value), declared, "add it to @pytest.mark.measures")
            raise Mistake(
                node.lineno or line,
                f"{item.name} checks {first.value!a}, which it does not declare: {cure}",
            )


def _functions(module: ast.Module, name: str) -> Iterator[ast.FunctionDef]:
    return (one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == name)


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
        values: dict[Component, float] = {}
        for component, value in given.items():
            values[component] = _number(value, f"{measurement} of {component}")
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
        ProgramFailed where it is ended so, or with a code that is not in `exits`.
        """
        deadline = Deadline.after(seconds) if seconds is not None else None
        done = self._programs.run([str(one) for one in argv], deadline=deadline, env=env)
        if done.timed_out or done.returncode not in exits:
            name = Path(done.argv[0]).name
            values = known(program=name, how=done.describe(), last=done.last_lines(3) or None)
            raise ProgramFailed("site_program_failed", **values)
        return done


class SiteFixtures:
    """What a site's checks may use. No other fixture of rigproof is there."""

    def __init__(
        self,
        context: session_context.SessionContext,
        families: SiteFamilies,
        share: Mapping[str, PlannedCheck],
        write: Callable[[AnyBody], None],
    ) -> None:
        self._context = context
        self._families = families
        self._share = share
        self._write = write

    def _planned(self, request: pytest.FixtureRequest) -> PlannedCheck:
        item = request.node
        return self._share[f"{SUBJECT}.{item.path.stem}.{item.name.removeprefix('test_')}"]

    @pytest.fixture
    def check(self, request: pytest.FixtureRequest) -> SiteCheck:
        """Journals readings and judges them against the plan (`SiteCheck`)."""
        assert self._context.plan is not None
        declared = [one for mark in request.node.iter_markers("measures") for one in mark.args]
        planned, waivers = self._planned(request), self._context.plan.waivers
        return SiteCheck(planned, waivers, self._write, declared)

    @pytest.fixture
    def program(self, request: pytest.FixtureRequest) -> Program:
        """Starts programs with a deadline (`Program`)."""
        assert self._context.run_dir is not None
        logs = Path(self._context.run_dir) / "logs"
        return Program(Programs(self._planned(request), logs, self._write))

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
        return lambda text: self._write(Note(str(text)))

    @pytest.fixture
    def tmp_path(self) -> Iterator[Path]:
        """An empty folder, which is removed after the check."""
        with tempfile.TemporaryDirectory(prefix="rigproof-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def refusal(context: session_context.SessionContext, found: str | None) -> Message | None:
    """Why a session does not run: the site's files are not those of the plan."""
    assert context.plan is not None
    assert context.session is not None
    due = context.plan.site_digest(context.session)
    return None if due == found else Message("site_files_differ")
