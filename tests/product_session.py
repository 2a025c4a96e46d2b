"""Sessions of the product over small suites: the command line, the environment and the digest are
the product's own.

A session is a fork of the tests' own process, which has imported everything already, unless a test
asks for a program of its own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import journals
import msgspec
import pytest
from msgspec.structs import replace
from runs import MACHINE, digest, known_provenance, machine_root

from acceptance.core.evidence import Scratch
from acceptance.core.finding import Waiver
from acceptance.core.message import Message
from acceptance.core.plan import LimitSet, Plan, PlannedCheck, Session
from acceptance.core.record import Body, CheckEnded
from acceptance.expect.collected import CollectedCheck
from acceptance.journal import provenance, segment
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.observe.inventory import observe
from acceptance.process import command, reaper
from acceptance.process.deadline import Deadline
from acceptance.run import check_cache, planning
from acceptance.session import context
from acceptance.wording import words

MARKS = """
import pytest

from acceptance.core.parts import (Gpu)
pytestmark = [pytest.mark.session("load"), pytest.mark.costs(1.0)]
copy = pytest.mark.measures("copy")
"""
OWN = context.SUITES


def _become(
    argv: Sequence[str], environment: Mapping[str, str], cwd: Path, out: Path, err: Path
) -> int:
    """Be the session, in a process that was just forked; gives its exit code."""
    gc.freeze()  # what the tests hold is looked through by nobody here
    os.setsid()
    reaper.prctl(reaper.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number, path, flags in (
        (0, Path(os.devnull), os.O_RDONLY),
        (1, out, os.O_WRONLY),
        (2, err, os.O_WRONLY),
    ):
        os.dup2(os.open(path, flags | os.O_CREAT, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    known = command.clean_environment(environment)
    os.environ.clear()
    os.environ.update(known)
    os.chdir(cwd)
    warnings.resetwarnings()
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]  # another test's: a session never has it
    sys.dont_write_bytecode = True  # as the environment of a session says to one that starts
    context.SUITES = OWN
    provenance.package_digest = digest
    suites = Path(argv[-1])
    for name in list(sys.modules):
        if (suites / f"{name}.py").exists():  # in the tests it may be another of this name
            del sys.modules[name]
    return int(pytest.main(list(argv[argv.index("pytest") + 1 :])))


def forked(
    argv: Sequence[str], environment: Mapping[str, str], cwd: Path, folder: Path
) -> command.ProgramResult:
    """Run a session's command line in a fork of this process: as cheap as its checks, and as
    much on its own as a program.
    """
    out, err = folder / "session.out", folder / "session.err"
    for path in (out, err):
        path.unlink(missing_ok=True)
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Python 3.12 warns of threads: the child starts none of ours
        pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _become(argv, environment, cwd, out, err)
        except BaseException:  # noqa: BLE001 - nothing of a session may come back into the tests
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    try:
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    code = os.waitstatus_to_exitcode(status)
    return command.ProgramResult(
        tuple(argv), code, out.read_text(), err.read_text(), time.monotonic() - began
    )


@functools.cache
def collected() -> context.Answer:
    """Every check of the package, as its own session collects them, or has for another worker."""
    if (known := check_cache.read(digest())) is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="rigproof-tests-") as name:
        folder = Path(name)
        told, answer = folder / "context.json", folder / "answer.json"
        context.write(context.SessionContext(mode="collect", root="/", answer=str(answer)), told)
        done = forked(context.argv(told), context.environment(None), folder, folder)
        assert done.returncode == 0, done.stdout + done.stderr
        found = msgspec.json.decode(answer.read_bytes(), type=context.Answer)
    check_cache.keep(found)
    return found


observed = functools.cache(observe)


def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan over this machine, its commit and the package's checks as they were first found: they
    stay as they are while the tests run.
    """
    known_provenance(monkeypatch)
    monkeypatch.setattr(planning, "observe", observed)
    monkeypatch.setattr(
        planning, "start_collection", lambda _root: contextlib.nullcontext(collected)
    )


def worded(body: Body) -> Body:
    """A record with its messages in English, for tests that read them."""
    told = {
        name: words.text(value)
        for name in body.__struct_fields__
        if isinstance(value := getattr(body, name), Message)
        or (name == "message" and isinstance(value, tuple))
    }
    return replace(body, **told)


class Product:
    """A folder of suites in the package's place, and the sessions that run them; `real` makes each
    a program of its own.

    With `own` they are the package's own suites.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, own: bool = False) -> None:
        self.real = False
        self._folder = folder
        self.suites = OWN if own else folder / "suites"
        if not own:
            self.suites.mkdir()
            shutil.copy(OWN / "pytest.ini", self.suites)
            monkeypatch.setattr(context, "SUITES", self.suites)
        self.root = machine_root(folder / "root")
        self.run_dir = folder / "run"
        (self.run_dir / "logs").mkdir(parents=True)
        self.context = self.run_dir / "session.json"
        self.digest = digest()
        self.machine: Machine | None = None
        self.inventory: Inventory | None = None
        self.scratches: tuple[Scratch, ...] = ()  # with folders that the test has made
        self.fail_fast = False
        self.limits: LimitSet | None = None

    def suite(self, name: str, text: str) -> None:
        """One file of checks."""
        (self.suites / f"{name}.py").write_text(MARKS + text)

    def plan(self, *checks: PlannedCheck, waivers: Sequence[Waiver] = ()) -> Plan:
        return journals.plan(*checks, digest=self.digest, waivers=waivers)

    def start(self, run_id: str | None = None) -> command.ProgramResult:
        """Run pytest on the context that was written, as a station does."""
        argv, environment = context.argv(self.context), context.environment(run_id)
        if not self.real:
            return forked(argv, environment, self.context.parent, self._folder)
        return command.run(
            argv, deadline=Deadline.after(600.0), env=environment, cwd=self.context.parent
        )

    def run(
        self, plan: Plan, run_id: str | None = None, name: Session = "load"
    ) -> command.ProgramResult:
        """Run a session of a plan, under a name of its own: tests beside it sweep away what is
        left of runs that they close.
        """
        told = context.SessionContext(
            mode="run",
            root=str(self.root),
            session=name,
            run_dir=str(self.run_dir),
            kernel_log_after=41,
            tested_parts={"ata3": "disk"},
            plan=plan,
            machine=self.machine,
            inventory=self.inventory,
            fail_fast=self.fail_fast,
            scratches=self.scratches,
            limits=self.limits,
            run_id=self.run_dir.name if self.scratches else None,
            machine_id=MACHINE if self.scratches else None,
        )
        context.write(told, self.context)
        return self.start(run_id or f"session-{secrets.token_hex(8)}")

    def collect(self) -> command.ProgramResult:
        """Collect only; see `answer`."""
        answer = str(self.run_dir / "answer.json")
        context.write(
            context.SessionContext(mode="collect", root=str(self.root), answer=answer), self.context
        )
        return self.start()

    def answer(self) -> tuple[CollectedCheck, ...]:
        return msgspec.json.decode(
            (self.run_dir / "answer.json").read_bytes(), type=context.Answer
        ).checks

    def journalled(self, name: Session = "load") -> list[Body]:
        """What the session wrote, in words."""
        return [
            worded(entry.body)
            for entry in segment.read_segment(self.run_dir / f"journal-{name}.jsonl").entries
        ]

    def outcomes(self) -> dict[str, str]:
        return {
            body.check: body.outcome for body in self.journalled() if isinstance(body, CheckEnded)
        }
