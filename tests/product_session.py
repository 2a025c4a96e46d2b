"""Real sessions of the product over small suites: the command line, the environment and the digest are the product's own."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import journals
import msgspec
import pytest
from runs import machine_root

from acceptance.core.collection import Collected, Session
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import Body, CheckEnded
from acceptance.core.waiver import Waiver
from acceptance.journal import provenance, segment
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.session import context

MARKS = """
import pytest
pytestmark = [pytest.mark.session("load"), pytest.mark.costs(1.0)]
copy = pytest.mark.measures("copy", unit="GB/s", per="gpu")
"""


class Product:
    """A folder of suites in the package's place, and the sessions that run them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.suites = folder / "suites"
        self.suites.mkdir()
        shutil.copy(context.SUITES / "pytest.ini", self.suites)
        monkeypatch.setattr(context, "SUITES", self.suites)
        self.root = machine_root(folder / "root")
        self.run_dir = folder / "run"
        (self.run_dir / "logs").mkdir(parents=True)
        self.context = self.run_dir / "session.json"
        self.digest = provenance.package_digest()
        self.machine: Machine | None = None
        self.inventory: Inventory | None = None

    def suite(self, name: str, text: str) -> None:
        """One file of checks."""
        (self.suites / f"{name}.py").write_text(MARKS + text)

    def plan(self, *checks: PlannedCheck, waivers: Sequence[Waiver] = ()) -> Plan:
        return journals.plan(*checks, digest=self.digest, waivers=waivers)

    def start(self, run_id: str | None = None) -> command.Completed:
        """Run pytest on the context that was written, as a station does."""
        argv, environment = context.argv(self.context), context.environment(run_id)
        return command.run(argv, deadline=Deadline.after(600.0), env=environment, cwd=self.context.parent)

    def run(self, plan: Plan, run_id: str | None = None, name: Session = "load") -> command.Completed:
        """Run a session of a plan, under a name of its own: tests beside it sweep away what is left of runs that they close."""
        told = context.Context(
            mode="run",
            root=str(self.root),
            session=name,
            run_dir=str(self.run_dir),
            kernel_log_after=41,
            plan=plan,
            machine=self.machine,
            inventory=self.inventory,
        )
        context.write(told, self.context)
        return self.start(run_id or f"session-{secrets.token_hex(8)}")

    def collect(self) -> command.Completed:
        """Collect only; see `answer`."""
        answer = str(self.run_dir / "answer.json")
        context.write(context.Context(mode="collect", root=str(self.root), answer=answer), self.context)
        return self.start()

    def answer(self) -> tuple[Collected, ...]:
        return msgspec.json.decode((self.run_dir / "answer.json").read_bytes(), type=context.Answer).checks

    def journalled(self, name: Session = "load") -> list[Body]:
        """What the session wrote."""
        return [entry.body for entry in segment.read_segment(self.run_dir / f"journal-{name}.jsonl").entries]

    def outcomes(self) -> dict[str, str]:
        return {body.check: body.outcome for body in self.journalled() if isinstance(body, CheckEnded)}
