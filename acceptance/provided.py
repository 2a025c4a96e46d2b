"""What a session gives its checks: the fixtures of the plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from acceptance import journal, session
from acceptance.check import Check
from acceptance.judge.machine import Machine
from acceptance.judge.measurement import Series
from acceptance.judge.plan import PlannedCheck
from acceptance.judge.record import Body, Sample
from acceptance.observe.inventory import Inventory
from acceptance.observe.telemetry import UNITS
from acceptance.program import Programs


def check_id(item: pytest.Item) -> str:
    """`<subject>.<function>[parameter]`: the same wherever the package is installed."""
    return f"{item.path.stem}.{item.name.removeprefix('test_')}"


class Provided:
    """The fixtures of one session; `share` is its part of the plan by check id, `write` journals a record."""

    def __init__(
        self, context: session.Context, run_dir: Path, share: Mapping[str, PlannedCheck], write: Callable[[Body], None]
    ) -> None:
        self.context = context
        self.run_dir = run_dir
        self._share = share
        self._write = write

    @pytest.fixture
    def planned(self, request: pytest.FixtureRequest) -> PlannedCheck:
        """This check's part of the plan."""
        return self._share[check_id(request.node)]

    @pytest.fixture
    def check(self, planned: PlannedCheck) -> Check:
        """Journals readings and judges them against the plan: see `acceptance.check.Check`."""
        assert self.context.plan is not None
        return Check(planned, self.context.plan.waivers, self._write)

    @pytest.fixture
    def machine(self) -> Machine | None:
        """The machine file, or None when there is none."""
        return self.context.machine

    @pytest.fixture
    def inventory(self) -> Inventory:
        """The machine as observed before the run."""
        assert self.context.inventory is not None
        return self.context.inventory

    @pytest.fixture
    def root(self) -> Path:
        """The directory under which /sys, /proc and /dev are read."""
        return Path(self.context.root)

    @pytest.fixture
    def kernel_log_after(self) -> int | None:
        """Sequence number of the last kernel message before the run; None where the log could not be read then."""
        return self.context.kernel_log_after

    @pytest.fixture
    def load_s(self) -> Mapping[str, float]:
        """Seconds of each load in this profile."""
        assert self.context.plan is not None
        return self.context.plan.loads_s

    @pytest.fixture
    def memory_gib(self) -> float:
        """How much RAM the memory test fills."""
        assert self.context.plan is not None
        return self.context.plan.memory_gib

    @pytest.fixture
    def programs(self, planned: PlannedCheck) -> Programs:
        """Runs the check's programs, with its deadline, logs and journal: see `acceptance.program.Programs`."""
        return Programs(planned, self.run_dir / "logs", self._write)

    @pytest.fixture
    def telemetry(self) -> Mapping[str, Series]:
        """What the supervisor has sampled since the run began, by reading."""
        points: dict[str, list[tuple[float, float]]] = {}
        for entry in journal.read_segment(self.run_dir / journal.TELEMETRY).entries:
            if isinstance(entry.body, Sample):
                for readings in (entry.body.low or {}, entry.body.values, entry.body.high or {}):
                    for name, value in readings.items():
                        points.setdefault(name, []).append((entry.boot_s, value))
        return {name: Series(name, "cpu", UNITS[name], tuple(found)) for name, found in points.items()}
