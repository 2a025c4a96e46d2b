"""Equal disks held against each other, with the limits that they really have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import test_components as machine
from cases import each
from product_session import collected
from suite_box import Said, ask
from test_components import DISK_1 as ONE
from test_components import DISK_2 as TWO

from acceptance.core.evidence import Scratch
from acceptance.core.message import Gap
from acceptance.core.parts import Component
from acceptance.core.plan import Plan
from acceptance.expect import components, plan_builder
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.run import planning
from acceptance.session.tools import Outputs
from acceptance.suites import storage
from acceptance.tools import fio
from acceptance.tools.reading import Reading, ToolOutput

SCRATCHES = (machine.scratch_on(0), machine.scratch_on(1))
LATENCIES = ("p50", "p99", "p99_9", "p99_99", "max")


def planned(*only: str) -> Plan:
    """The plan of these checks on two equal disks."""
    seen = machine.inventory({}, {})
    return plan_builder.build(
        collected().checks,
        "digest",
        MachineUnderTest(
            components=components.resolve(None, seen, frozenset(), (), scratches=SCRATCHES),
            book=planning.book(None, None, seen, ()),
            siblings=components.siblings(None, seen, (), SCRATCHES),
        ),
        Request(
            profile="accept",
            loads_s=dict.fromkeys(("storage_write", "storage_read", "storage_checkpoint"), 1.0),
            memory_gib=1.0,
            only=only,
        ),
    )


def run_fio(rates: Mapping[Component, float]) -> Any:
    """Stands for fio: these rates of each disk; one without a rate fails."""

    def run(scratch: Scratch, kind: fio.Kind) -> Outputs:
        rate = rates.get(scratch.component)
        if rate is None:
            return Outputs({scratch.component: ToolOutput("fio", "fail", "an input/output error")})
        way = "write" if "write" in kind else "read"
        values = {f"fio_{way}": ("GB/s", rate), f"fio_{way}_iops": ("IOPS", 1000.0)}
        values |= {f"fio_{way}_latency_{one}": ("us", 9.0) for one in LATENCIES}
        found = tuple(Reading(n, unit, {ONE: value}) for n, (unit, value) in values.items())
        return Outputs({scratch.component: ToolOutput("fio", "pass", "", found)})

    return run


class Seen:
    """Stands for the watch of the disks, which saw no link."""

    least: Mapping[Component, Any] = {}

    def unseen(self) -> dict[Component, Gap]:
        return {}


def said(check: str, rates: Mapping[Component, float]) -> Said:
    about: dict[str, Any] = {
        "tested": lambda _name: SCRATCHES,
        "run_fio": run_fio(rates),
        "table": lambda *_: None,
    }
    if check == "storage.read":
        return ask(planned(check), check, storage.test_read, disk_watch=Seen(), **about)
    return ask(planned(check), check, storage.test_write, **about)


@each(
    "check, slow, fails",
    [
        ("storage.write", 0.9, False),
        ("storage.write", 0.6, True),
        ("storage.read", 0.95, False),
        ("storage.read", 0.75, True),
    ],
)
def test_a_disk_that_is_slower_than_its_equal(check: str, slow: float, fails: bool) -> None:
    found = said(check, {ONE: 5.0, TWO: 5.0 * slow})
    name = f"{check.replace('.', '_')}_ratio"
    assert found.measured(name) == {ONE: 1 / slow, TWO: slow}
    # that the links of these disks are not shown is an error, which a failure goes before
    assert (found.outcome == "fail") == fails


@each("check", ["storage.write", "storage.read"])
def test_where_one_fails_there_is_nothing_to_compare_with(check: str) -> None:
    found = said(check, {ONE: 5.0})
    name = f"{check.replace('.', '_')}_ratio"
    assert found.measured(name) == {}
    assert {(name, ONE), (name, TWO)} <= found.skipped()
    assert found.measured("storage_failed") == {ONE: 0.0, TWO: 1.0}
