"""Collection of checks, rigproof's own and a site's: what each declares, and what is wrong with it.

A session in mode `collect` lists every check in its answer file and runs none. Everything that can
be wrong with a check before it runs is a mistake with its file, line and cure. Those of a site's
files are in the answer; one in rigproof's own suites ends the session.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from acceptance.core import nearest
from acceptance.core.plan import SESSIONS, SITE, SUBJECT, FamilyFile, folder_digest
from acceptance.expect import measurements, site_families
from acceptance.expect.collected import AnyLoad, CollectedCheck, lint_follows
from acceptance.expect.measurements import Measurements
from acceptance.expect.site_families import PAGE, SiteFamilies
from acceptance.journal import provenance
from acceptance.loads.work import LOADS
from acceptance.session import context as session_context

IS_SITE = pytest.StashKey[bool]()
LONGEST_S = 86_400.0  # of a check
OWN_SESSIONS = tuple(name for name in SESSIONS if name != SITE)
# The fixtures with results of other checks, without which there is nothing to judge.
EVIDENCE = frozenset({"earlier_programs", "earlier_tables", "judged_before", "load_outcomes"})
# The costs that a check may name beside its seconds, each with its name in the description.
COSTS = {
    "load": "load",
    "extra_load": "extra_load",
    "per_gib": "seconds_per_gib",
    "per_gib_of_a_core": "core_seconds_per_gib",
    "per_gpu": "seconds_per_gpu",
    "per_pair": "seconds_per_pair",
    "per_turn": "seconds_per_turn",
    "slack": "slack",
    "slack_per_gib": "slack_per_gib",
    "last": "last",
}
_LOAD_COSTS = ("load", "extra_load")
# Of a site's checks: other marks would change when, or whether, a check counts.
SITE_COSTS = frozenset({"slack"})
SITE_MARKS = frozenset({"measures", "costs", "parametrize", "usefixtures", "skip", "skipif"})
_MARK_CURES = {
    "session": "a site's checks have a session of their own",
    "gate": "no check of a site ends a run",
    "timeout": "its time limit follows from costs(seconds)",
    "xfail": "a waiver of the machine file accepts what is known",
}
_FIXTURES = ("check", "program", "machine", "inventory", "settings", "say", "tmp_path")
_NO_SUITES = frozenset({"conftest.py", "__init__.py"})  # of rigproof's own; a site has none


class Mistake(Exception):
    """Something wrong with a file of checks, in one sentence with the cure; `line` is its line."""

    def __init__(self, line: int | None, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


def is_site(item: pytest.Item) -> bool:
    """Whether it is a site's own check."""
    return item.config.stash.get(IS_SITE, False)


def check_id(item: pytest.Item) -> str:
    """`<subject>.<function>[parameter]`, the same wherever the package is installed.

    Of a site's own check `site.<file>.<function>[parameter]`.
    """
    name = f"{item.path.stem}.{item.name.removeprefix('test_')}"
    return f"{SUBJECT}.{name}" if is_site(item) else name


def digest_of(folder: Path) -> str:
    """The digest of the run's copy of the files. Raises OSError.

    It was copied without folders: one that a file of checks has made changes the digest.
    """
    return folder_digest(
        {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}
    )


def families_of(folder: Path) -> SiteFamilies:
    """The families in the run's copy. Raises UserError, which the planning has ruled out."""
    found = sorted(folder.glob("*.toml"))
    return site_families.parse(
        [FamilyFile(one.name, one.read_text(encoding="utf-8-sig")) for one in found]
    )


class Collector:
    """Mode `collect`: lists the checks of a folder and their mistakes, and runs none."""

    def __init__(self, context: session_context.SessionContext) -> None:
        assert context.answer is not None
        self._answer = Path(context.answer)
        self._site = None if context.site is None else Path(context.site)
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
        site = self._site
        known = families_of(site).measurements if site else measurements.shipped()
        checks = []
        for path in sorted((site or session.config.rootpath).glob("*.py")):
            if path.name in self._broken or (not site and path.name in _NO_SUITES):
                continue
            items = [item for item in session.items if item.path == path]
            for mistake in _file_mistakes(path, items):
                self._note(path.name, mistake)
            for item in items:
                try:
                    checks.append(describe(item, known))
                except Mistake as mistake:
                    self._note(path.name, mistake)
        if "torch" in sys.modules:
            self._mistakes.append(
                "torch was loaded by one of these files: start it in a program of its own, with "
                "the fixture program"
            )
        answer = {"digest": provenance.package_digest(), "checks": checks}
        if site:
            self._require_measured(known, checks)
            answer |= {"mistakes": self._mistakes, "site_digest": digest_of(site)}
        elif wrong := "; ".join(self._mistakes) or lint_follows(checks):
            raise pytest.UsageError(wrong)
        self._answer.write_bytes(msgspec.json.encode(answer))

    def pytest_runtestloop(self) -> bool:
        """Run nothing."""
        return True

    def _require_measured(self, known: Measurements, checks: Sequence[CollectedCheck]) -> None:
        """Note measurements that no check takes, where the checks are known."""
        measured = {one.name for check in checks for one in check.measures}
        lacking = () if self._mistakes else known.by_name.keys() - measured
        for name in sorted(lacking):
            cure = "name it in @pytest.mark.measures, or remove it here"
            file = f"{known.by_name[name].family}.toml"
            self._note(file, Mistake(None, f"no check measures {name}: {cure}"))

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


def describe(item: pytest.Item, known: Measurements) -> CollectedCheck:
    """The description of a check from its marks and docstring. Raises Mistake.

    `known` are the measurements that it may declare.
    """
    line = (item.reportinfo()[1] or 0) + 1
    name = item.name
    if not isinstance(item, pytest.Function) or item.cls is not None:
        raise Mistake(line, f"{name} is a method: write it as a function of the file")
    if inspect.iscoroutinefunction(item.function):
        raise Mistake(line, f"{name} is asynchronous: write it as a plain function")
    if not name.isascii() or not name.isprintable() or set(name) & set(" ,*?"):
        raise Mistake(
            line,
            f"{name!a} would be hard to name in --only: give its parameters ids of plain letters "
            "(parametrize(..., ids=[...]))",
        )
    # The title is the docstring's first paragraph: a sentence, which may take two lines.
    title = " ".join((item.function.__doc__ or "").strip().partition("\n\n")[0].split())
    if not title:
        raise Mistake(line, f"{name} has no docstring: say in a sentence what it asks the machine")
    session = _session(item, line)
    costs = _costs(item, line)
    declared = _declared(item, known, line)
    _lint_fixtures(item, line)
    _lint_calls(item, declared, line)
    follows, follows_load = _follows(item, line)
    own_id = check_id(item)
    return CollectedCheck(
        id=own_id,
        title=title,
        session=session,
        measures=tuple(
            known.by_name[one].measured_by(own_id.partition("[")[0]) for one in declared
        ),
        gate=item.get_closest_marker("gate") is not None,
        follows=follows,
        follows_load=follows_load,
        **costs,
    )


def _session(item: pytest.Function, line: int) -> Any:
    """The session of a check; a site's checks have one of their own, and few marks."""
    if is_site(item):
        for mark in item.iter_markers():
            if mark.name not in SITE_MARKS:
                cure = _MARK_CURES.get(mark.name, f"{PAGE} has the marks there are")
                raise Mistake(
                    line,
                    f"{item.name} has the mark {mark.name}, which has no place here: {cure}",
                )
        return SITE
    where = item.get_closest_marker("session")
    if where is None or where.kwargs or where.args not in [(one,) for one in OWN_SESSIONS]:
        raise Mistake(
            line,
            f"{item.name} has no session: add @pytest.mark.session with one of "
            f"{', '.join(OWN_SESSIONS)}",
        )
    return where.args[0]


def _costs(item: pytest.Function, line: int) -> dict[str, Any]:
    """The costs of a check, by their names in its description."""
    mark = item.get_closest_marker("costs")
    if mark is None:
        raise Mistake(
            line,
            f"{item.name} does not say how long it takes: add @pytest.mark.costs(SECONDS), which "
            "its deadline follows from",
        )
    allowed = SITE_COSTS if is_site(item) else COSTS.keys()
    given = dict(mark.kwargs)
    loads = {name: given.pop(name) for name in _LOAD_COSTS if given.get(name) is not None}
    numbers = (*mark.args, *given.values())
    if (
        len(mark.args) != 1
        or mark.kwargs.keys() - allowed
        or not all(isinstance(one, int | float) and math.isfinite(one) for one in numbers)
        or not 0 < mark.args[0] <= LONGEST_S
        or not all(0 <= one <= LONGEST_S for one in given.values())
    ):
        names = ", ".join(("SECONDS", *(f"{name}=..." for name in COSTS if name in allowed)))
        raise Mistake(
            line,
            f"{item.name}: costs is costs(SECONDS) or costs({names}), up to a day",
        )
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for key, load in loads.items():
        try:
            loads[key] = str(load).format(**parameters)
        except (IndexError, KeyError, ValueError) as error:
            raise Mistake(
                line, f"{item.name}: its load names a parameter that the test has not ({error})"
            ) from error
        if loads[key] not in LOADS:
            raise Mistake(
                line,
                f"{item.name}: nothing says what the load {loads[key]} works on: add it to "
                "acceptance/loads/work.py",
            )
    return {"seconds": mark.args[0], **{COSTS[key]: one for key, one in (given | loads).items()}}


def _follows(item: pytest.Function, line: int) -> tuple[tuple[str, ...], AnyLoad | None]:
    """The checks and the loads that a check is judged from."""
    mark = item.get_closest_marker("follows")
    if mark is None:
        if used := sorted(EVIDENCE & set(item.fixturenames)):
            raise Mistake(
                line,
                f"{item.name} is judged from other checks ({', '.join(used)}): name them with "
                "the mark follows",
            )
        return (), None
    load = mark.kwargs.get("load")
    named = all(isinstance(one, str) for one in mark.args) and (mark.args or load is not None)
    if not named or load not in (None, *get_args(AnyLoad)) or mark.kwargs.keys() - {"load"}:
        raise Mistake(
            line, f"{item.name}: the mark follows names checks, or load='any' or load='gpus'"
        )
    return mark.args, load


def _declared(item: pytest.Function, known: Measurements, line: int) -> tuple[str, ...]:
    """The names of the measurements of a check, in the order in which its marks name them."""
    marks = tuple(item.iter_markers("measures"))[::-1]  # pytest gives the innermost first
    names = tuple(one for mark in marks for one in mark.args)
    if not names or any(mark.kwargs for mark in marks):
        raise Mistake(
            line,
            f"{item.name} measures nothing: add @pytest.mark.measures with the names of its "
            "measurements",
        )
    for one in names:
        if not isinstance(one, str) or known.get(one) is None:
            cure = nearest.cure(str(one), known.by_name, "declare it in a TOML file")
            raise Mistake(
                line,
                f"{item.name} measures {one!a}, which no file of measurements has: {cure}",
            )
    if len(set(names)) != len(names):
        raise Mistake(line, f"{item.name} names a measurement twice: remove one")
    return names


def _lint_fixtures(item: pytest.Function, line: int) -> None:
    info = item._fixtureinfo  # pytest names an unknown fixture only when a test runs
    wanted = [one for one in item.fixturenames if one != "request"]
    for one in wanted:
        if one not in info.name2fixturedefs:
            cure = nearest.cure(one, _FIXTURES, f"a check of a site has {', '.join(_FIXTURES)}")
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
