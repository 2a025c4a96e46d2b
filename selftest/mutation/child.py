"""One pytest, started once; every mutant is a fork of it that collects and runs the tests with one
module mutated.

Starting pytest takes longer than most tests here, so the processes part just before collection:
what a fork imports of rigproof it imports afresh, through the finder that serves the mutated
module.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import pytest

# A mutant that collects for ever meets this, instead of taking the machine's memory.
MEMORY = 4 << 30
# No terminal: what notices is said through a pipe.
_ARGUMENTS = [
    "-x",
    "-s",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "-p",
    "no:xdist",
    "-p",
    "no:terminal",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "--hypothesis-profile=mutation",
]


class _Loader(importlib.machinery.SourceFileLoader):
    """Gives the compiled tree it was made with; neither reads nor writes what
    Python keeps compiled.
    """

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class Served(importlib.abc.MetaPathFinder):
    """Finds one module, mutated; all others are found as usual."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name = name
        self.path = path
        self.code = compile(tree, str(path), "exec", dont_inherit=True)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The mutated module's spec; None for any other."""
        if fullname != self.name:
            return None
        loader = _Loader(self.name, str(self.path), self.code)
        return importlib.util.spec_from_file_location(self.name, self.path, loader=loader)


@dataclass(frozen=True, slots=True)
class Task:
    """What one fork does: the tests it runs, and the module it mutates before,
    where it mutates one.
    """

    tests: tuple[str, ...]
    mutated: Callable[[], Served] | None = None


class _Fork:
    """The plugin: in the first process it hands pytest to `drive`; in a fork it says through its
    pipe which test noticed.
    """

    def __init__(
        self, scratch: Path, drive: Callable[[Callable[[Task], tuple[int, int]]], None]
    ) -> None:
        self.scratch = scratch
        self.drive = drive
        self.session: Any = None
        self.pipe: int | None = None
        self.wanted: set[Path] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> object:
        """Before anything is collected. In a fork pytest goes on from here."""
        self.session = session
        gc.collect()
        gc.freeze()
        try:
            self.drive(self.start)
        except _Go:
            return None
        session.items = []
        return True

    def start(self, task: Task) -> tuple[int, int]:
        """Begin a fork: its number, and the pipe on which it says who noticed.

        Does not return in the fork itself.
        """
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            os.close(write)
            return pid, read
        os.close(read)
        self.pipe = write
        try:
            self._settle(task)
        except BaseException as trouble:  # noqa: BLE001 - whatever it is, it is told
            self._say(f"(mutation) {type(trouble).__name__}: {trouble}")
        raise _Go

    def _settle(self, task: Task) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        gc.disable()  # it lives for a second
        config = self.session.config
        files = [config.rootpath / name for name in task.tests]
        config.args[:] = map(str, files)
        self.wanted = {*files, *(folder for file in files for folder in file.parents)}
        config._tmp_path_factory._given_basetemp = self.scratch / str(os.getpid())
        if task.mutated is not None:
            sys.meta_path.insert(0, task.mutated())

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        """Whatever else lies beside the files that are asked for: pytest would
        look at all of it.
        """
        return collection_path not in self.wanted

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of a test."""
        self._look(report)

    @pytest.hookimpl
    def pytest_collectreport(self, report: Any) -> None:
        """One file collected."""
        self._look(report)

    def _look(self, report: Any) -> None:
        if report.failed and self.pipe is not None:
            self._say(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: Any) -> None:
        """Something that is no test's failure, as when memory ends."""
        if self.pipe is not None:
            self._say("(pytest)")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """The end: in a fork, with nothing said before, nobody noticed."""
        if self.pipe is not None:
            self._say(
                ""
                if session.testscollected and exitstatus == 0
                else f"(pytest ended with {int(exitstatus)})"
            )

    def _say(self, who: str) -> NoReturn:
        assert self.pipe is not None
        with contextlib.suppress(OSError):
            os.write(self.pipe, f"={who[:500]}\n".encode())
        os._exit(0)


class _Go(BaseException):
    """In a fork: leave the driver, go on with pytest."""


def host(
    root: Path, scratch: Path, drive: Callable[[Callable[[Task], tuple[int, int]]], None]
) -> None:
    """Start pytest and call `drive` with what starts a fork of it."""
    pytest.main(
        [*_ARGUMENTS, f"--rootdir={root}", f"-c{root / 'tox.ini'}"], plugins=[_Fork(scratch, drive)]
    )
