"""Faults that a load makes by itself on a GPU (`--inject`): `fixtures/injections.toml`, and whether
the journal of a run shows what it must of one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from acceptance.core.finding import Finding
from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.verdict import Verdict
from acceptance.loads.asks import ASKS
from selftest.fault import CatalogueError, Expect, Fault
from selftest.row import FAMILIES

INJECTIONS = Path(__file__).resolve().parents[1] / "fixtures" / "injections.toml"
# Without them no load is started.
GATES = ("gpu.present", "gpu.granted")


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Finds(_Strict, frozen=True):
    """What the check must say.

    Each of these `measurements` of the components that `on` names is a finding: `each` GPU, the
    `last`, `all` together, or one of the paths to the last at least. An error is of no measurement;
    its reason must name the component.
    """

    on: Literal["each", "last", "all", "a path to the last"]
    measurements: tuple[str, ...] = ()
    outcome: Literal["fail", "error"] = "fail"


class _Kind(_Strict, frozen=True):
    """What is wrong, its family of `make selftest`, and what is found, by default as the load's."""

    what: str
    family: str = "wrong results"
    finds: Finds | None = None


class _Load(_Strict, frozen=True):
    """A load with its faults by their name behind `--inject`, and those `not_played`, with why.

    The profile's load of the `check` is what runs; it needs so many `gpus`.
    """

    check: str
    profile: str
    finds: Finds
    faults: dict[str, _Kind]
    not_played: dict[str, str] = {}
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 1


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that must be there: of each of these components, or of `one` of them."""

    check: str
    outcome: Literal["fail", "error"]
    measurement: str | None
    components: tuple[Component, ...]
    one: bool = False

    def __str__(self) -> str:
        among = "one of " if self.one else ""
        what = self.measurement or self.outcome
        return f"{what} on {among}{', '.join(map(str, self.components))}"

    def found(self, verdict: Verdict) -> dict[Component, Finding]:
        """The findings of the verdict that are meant, by component."""
        every = (*verdict.findings, *(one for check in verdict.checks for one in check.findings))
        own = [one for one in every if (one.kind, one.check) == (self.outcome, self.check)]
        return {
            component: finding
            for component in self.components
            for finding in reversed(own)
            if self._is_of(finding, component)
        }

    def _is_of(self, finding: Finding, component: Component) -> bool:
        if self.measurement is not None:
            return (finding.measurement, finding.component) == (self.measurement, component)
        told = msgspec.json.encode(finding.values).decode()
        return re.search(rf"\b{re.escape(str(component))}\b", told) is not None

    def missing(self, verdict: Verdict) -> str:
        """What the verdict lacks of it, in a sentence; empty where nothing."""
        found = self.found(verdict)
        lacking = [str(one) for one in self.components if one not in found]
        if not lacking or (self.one and found):
            return ""
        what = f"{self.outcome} of {self.measurement}" if self.measurement else self.outcome
        return f"{self.check} has no {what} on {' or '.join(lacking)}"

    def due_in(self, plan: Plan) -> Expected | None:
        """The same of those components of which the plan has it; None where it has it of none."""
        planned = [one for one in plan.checks if one.id == self.check]
        if self.measurement is None:
            return self if planned else None
        dues = {(one.measurement, one.component) for check in planned for one in check.due}
        here = tuple(one for one in self.components if (self.measurement, one) in dues)
        return replace(self, components=here) if here else None


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault that a load makes; `gpus` is how many it needs."""

    load: str
    fault: str
    what: str
    family: str
    check: str
    profile: str
    gpus: int
    finds: Finds

    @property
    def name(self) -> str:
        """Its name in tables: `burn-bit`."""
        return f"{self.load.removeprefix('gpu_').removeprefix('train_')}-{self.fault}"

    @property
    def only(self) -> str:
        """The checks of its run, for `--only`."""
        return ",".join((*GATES, self.check))

    @property
    def code(self) -> Literal[1, 3]:
        """The exit code that its run must have."""
        return 1 if self.finds.outcome == "fail" else 3

    def as_fault(self) -> Fault:
        """The same as a fault of the catalogue: what its run must be as a whole."""
        return Fault(self.what, (Expect(self.check, "", self.finds.outcome),), self.code)

    def expected(self, gpus: int) -> Iterator[Expected]:
        """What must be found on a machine with so many GPUs."""
        every, last = tuple(map(Gpu, range(gpus))), Gpu(gpus - 1)
        components: tuple[Component, ...] = {
            "each": every,
            "last": (last,),
            "all": (GPUS,),
            "a path to the last": tuple(Pair(one, last) for one in every[:-1]),
        }[self.finds.on]
        for measurement in self.finds.measurements or (None,):
            one = self.finds.on == "a path to the last"
            yield Expected(self.check, self.finds.outcome, measurement, components, one)


def _loads(path: Path) -> dict[str, _Load]:
    try:
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, _Load])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path}: {error}") from error
    for name, load in found.items():
        if trouble := next(_troubles(name, load), None):
            raise CatalogueError(f"{path}: [{name}] {trouble}")
    return found


def _troubles(name: str, load: _Load) -> Iterator[str]:
    if name not in ASKS:
        yield f"is no load: choose one of {', '.join(ASKS)}"
    if twice := sorted(load.faults.keys() & load.not_played):
        yield f"plays {twice[0]!r}, and says why it does not: take one of them away"
    for fault, kind in load.faults.items():
        finds = kind.finds or load.finds
        if kind.family not in FAMILIES:
            every = ", ".join(FAMILIES)
            yield f"{fault!r} is of no family {kind.family!r} of faults: choose one of {every}"
        if bool(finds.measurements) != (finds.outcome == "fail"):
            yield f"{fault!r}: a failure has measurements, and an error none"
        if finds.on == "a path to the last" and load.gpus < 2:
            yield f"{fault!r} is found on a path, and needs one GPU: give `gpus = 2`"


def read(path: Path = INJECTIONS) -> tuple[Injection, ...]:
    """All that are played, load by load. Raises CatalogueError."""
    return tuple(
        Injection(
            name,
            fault,
            kind.what,
            kind.family,
            load.check,
            load.profile,
            load.gpus,
            kind.finds or load.finds,
        )
        for name, load in _loads(path).items()
        for fault, kind in load.faults.items()
    )


def not_played(path: Path = INJECTIONS) -> dict[tuple[str, str], str]:
    """Why a fault of a load is not played, by load and fault. Raises CatalogueError."""
    return {
        (name, fault): why
        for name, load in _loads(path).items()
        for fault, why in load.not_played.items()
    }
