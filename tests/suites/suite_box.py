"""The package's own suites over a machine of GPUs that is made of files: real plans, real
sessions, fake tools on the PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gpu_machine import device, machine
from msgspec.structs import replace
from product_session import Product, collected

from acceptance.core.evidence import Scratch, Table, ToolRan
from acceptance.core.finding import Waiver
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import LOAD_SESSIONS, Plan, Session
from acceptance.core.record import Body, CheckEnded, Measured, Note, Skipped
from acceptance.core.verdict import judge_due
from acceptance.expect import components, plan_builder
from acceptance.expect.limit_book import Override
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.process.command import ProgramResult
from acceptance.run import planning
from acceptance.session.check import Check, Violation
from acceptance.session.loads import Loads, Part
from acceptance.wording import words

LOADS_S = {"nvbandwidth": 1.0, "bandwidth_test": 1.0, "p2p_bandwidth": 1.0, "gpu_burn_float": 1.0}
LOADS_S |= {
    "gpu_gemm_table": 1.0,
    "gpu_gemm": 7.0,
    "gpu_copy": 1.0,
    "vram": 1.0,
    "burn": 1.0,
}
LOADS_S |= {"collective": 1.0, "train_digest": 20.0}
LOADS_S |= {"train_layers": 1.0, "train_layer_table": 1.0}
LOADS_S |= {"train_parallel": 1.0, "train_parallel_table": 1.0}


def planned(
    inventory: Inventory,
    names: Sequence[str],
    only: Sequence[str],
    digest: str,
    declared: Machine | None = None,
    scratches: Sequence[Scratch] = (),
    of_disks: tuple[tuple[Override, ...], tuple[Override, ...]] = ((), ()),
) -> Plan:
    """The plan of these checks on these GPUs and filesystems, with the limits that they have on
    that machine.
    """
    found = tuple(names)
    # What a check follows ran before, by the journal that its test has written.
    alone = [replace(one, follows=(), follows_load=None) for one in collected().checks]
    return plan_builder.build(
        alone,
        digest,
        MachineUnderTest(
            components=components.resolve(
                declared, inventory, frozenset(), found, scratches=scratches
            ),
            book=planning.book(
                declared, "machine.toml" if declared else None, inventory, found, of_disks
            ),
            siblings=components.siblings(None, inventory, found),
        ),
        Request(profile="smoke", loads_s=LOADS_S, memory_gib=1.0, only=only),
    )


class Box:
    """A machine with some GPUs, its tools, and what a session of the product says of it."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, inventory: Inventory | None = None
    ) -> None:
        self._names: tuple[Session, ...] = ("load",)
        self.bin = folder / "bin"
        self.bin.mkdir()
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        self.tool("nvidia-smi", "")  # gpu-burn needs it beside it
        self.inventory = inventory or machine(device(0), device(1))
        self.product = Product(folder, monkeypatch, own=True)
        self.product.inventory = self.inventory
        self.scratches: tuple[Scratch, ...] = ()  # those of the plan
        self.of_disks: tuple[tuple[Override, ...], tuple[Override, ...]] = ((), ())
        self.plan: Plan | None = None  # of the last session

    def tool(self, name: str, *texts: str, code: int = 0, seconds: str = "0") -> None:
        """A program that prints these texts, the first time the first of them, and so on; `seconds`
        is the shell's word for how long.

        gpu-burn says what it was asked: its seconds, and the memory (`-m`).
        """
        asked = (
            "s/Burning for [0-9]* s/Burning for $last s/; s/using [0-9]* MB of it/using "
            "$memory "
            "MB of it/"
        )
        edit = asked if name == "gpu-burn" else ""
        for number, text in enumerate(texts):
            (self.bin / f"{name}.{number}").write_text(text, newline="")
        program = self.bin / name
        program.write_text(f"""#!/bin/sh
for last; do [ "$before" = -m ] && memory=$last; before=$last; done
echo "$CUDA_VISIBLE_DEVICES" >> {self.bin}/{name}.saw
sleep {seconds}
run=$(($(wc -l < {self.bin}/{name}.saw) - 1))
sed "{edit}" {self.bin}/{name}.$run
exit {code}
""")
        program.chmod(0o755)

    def saw(self, name: str) -> list[str]:
        """Which GPUs a tool was shown, each time it ran."""
        return (self.bin / f"{name}.saw").read_text().split("\n")[:-1]

    def run(
        self, *only: str, names: Sequence[str] = (Gpu(0), Gpu(1)), name: Session | None = None
    ) -> dict[str, str]:
        """Run these checks on these GPUs, in one session or in all that load the machine; gives
        the outcome of each.
        """
        self.plan = planned(
            self.inventory,
            names,
            only,
            self.product.digest,
            scratches=self.scratches,
            of_disks=self.of_disks,
        )
        self._names = (name,) if name else tuple(filter(self.plan.share, LOAD_SESSIONS))
        for one in self._names:
            self.product.run(self.plan, name=one)
        return {body.check: body.outcome for body in self.ended()}

    def _journalled(self) -> list[Body]:
        return [body for name in self._names for body in self.product.journalled(name)]

    def ended(self) -> list[CheckEnded]:
        return [body for body in self._journalled() if isinstance(body, CheckEnded)]

    def message(self) -> str:
        """What the only check said at its end."""
        (end,) = self.ended()
        return end.message

    def measured(self, measurement: str) -> dict[str, float | None]:
        """The values of a measurement by component."""
        bodies = [body for body in self._journalled() if isinstance(body, Measured)]
        return {body.component: body.value for body in bodies if body.measurement == measurement}

    def notes(self) -> list[str]:
        return [body.text for body in self._journalled() if isinstance(body, Note)]

    def skipped(self) -> set[tuple[str | None, str | None]]:
        bodies = self._journalled()
        return {(body.measurement, body.component) for body in bodies if isinstance(body, Skipped)}

    def commands(self) -> list[tuple[str, ...]]:
        """The command lines of the tools, without the path of their programs."""
        ran = [body.argv for body in self._journalled() if isinstance(body, ToolRan)]
        return [(Path(argv[0]).name, *argv[1:]) for argv in ran]


@dataclass(frozen=True, slots=True)
class Said:
    """What a check said without a session around it: its outcome as the session would journal
    it, and what it measured and skipped.
    """

    outcome: str
    message: str
    written: tuple[Body, ...]

    def measured(self, measurement: str) -> dict[str, float | None]:
        """The values of a measurement by component."""
        bodies = [body for body in self.written if isinstance(body, Measured)]
        return {body.component: body.value for body in bodies if body.measurement == measurement}

    def notes(self, measurement: str) -> dict[str, str]:
        """The notes of a measurement in English, by component."""
        return {
            str(body.component): words.text(body.note)
            for body in self.written
            if isinstance(body, Measured)
            and body.measurement == measurement
            and body.note is not None
        }

    def skipped(self) -> set[tuple[str | None, str | None]]:
        return {
            (body.measurement, body.component) for body in self.written if isinstance(body, Skipped)
        }

    def tables(self) -> list[Table]:
        return [body for body in self.written if isinstance(body, Table)]


@dataclass
class Printed:
    """Stands for the loads of a check: `say` gives what the program of a part prints.

    Its exit code comes with that. `asked` has the parts of each stage, `heard` what listens to it,
    and `shown` whose programs that are.
    """

    say: Callable[[Part], tuple[str, int]]
    asked: list[tuple[Part, ...]] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)
    heard: list[Any] = field(default_factory=list)

    def run_stage(
        self, parts: Sequence[Part], *, on_line: Callable[[int, str], None] | None
    ) -> tuple[ProgramResult, ...]:
        self.asked.append(tuple(parts))
        self.heard.append(on_line)
        return tuple(map(self._ended, parts))

    def _ended(self, part: Part) -> ProgramResult:
        text, code = self.say(part)
        return ProgramResult(part.argv, code, text, "", 1e3)

    def loads(self) -> Loads:
        """What the check gets."""

        def listening(shown: object) -> Callable[[int, str], None]:
            self.shown.append(shown)
            return lambda _index, _line: None

        return Loads(self, listening)


def ask(made: Plan, name: str, function: Callable[..., None], **given: object) -> Said:
    """Run one check of a plan as a function, with its real limits."""
    (check,) = [one for one in made.checks if one.id == name]
    written: list[Body] = []
    taking = Check(check, (), written.append)
    try:
        function(**given, check=taking)
        taking.conclude()
    except Violation as fault:
        return Said("fail", str(fault), tuple(written))
    except Exception as error:  # noqa: BLE001 - as in a session: whatever else is raised is an error
        return Said("error", str(error), tuple(written))
    return Said("pass", "", tuple(written))


def excused(
    made: Plan, said: Said, check: str, measurement: str, component: Component
) -> list[str]:
    """What is found of a measurement that a machine file would let be as it is."""
    (due,) = [
        due
        for one in made.checks
        if one.id == check
        for due in one.due
        if (due.measurement, due.component) == (measurement, component)
    ]
    waiver = Waiver(reason="known", measurement=measurement, component=str(component), worst=1e9)
    measured = [
        body
        for body in said.written
        if isinstance(body, Measured)
        and (body.measurement, body.component) == (measurement, component)
    ]
    return [finding.kind for finding in judge_due(due, check, measured, [], [waiver]).findings]
