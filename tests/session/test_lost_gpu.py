"""No load is started on a GPU that has fallen off the bus during the run."""

from __future__ import annotations

from pathlib import Path

import journals
import msgspec
import pytest
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.parts import CPU, GPUS, Component, Gpu, Pair, parse
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Event
from acceptance.journal import segment
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline
from acceptance.session import context
from acceptance.session.check import CheckSkipped
from acceptance.session.fixtures import SessionFixtures
from acceptance.watch import gpu_sampler, host

SECOND = "0000:02:00.0"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "root")
    tree.cpus([(0,)])
    tree.memory(64)
    tree.gpu(1)
    tree.gpu(2)
    return tree


@pytest.fixture
def session(tree: Tree, tmp_path: Path) -> SessionFixtures:
    programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    seen = observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")
    told = context.SessionContext(
        mode="run",
        root=str(tree.root),
        session="load",
        run_dir=str(tmp_path),
        plan=msgspec.structs.replace(journals.plan(), gpus=(Gpu(0), Gpu(1))),
        inventory=seen,
    )
    return SessionFixtures(told, tmp_path, {}, lambda _: None)


def load(*components: Component, session: str = "load") -> PlannedCheck:
    due = (journals.due("copy", one) for one in components)
    return journals.check("vram.patterns", *due, session=session)


def test_a_whole_machine_is_loaded(session: SessionFixtures) -> None:
    session.refuse_lost(load(Gpu(0), GPUS))


def test_a_card_that_reads_as_all_ones_is_not_loaded(session: SessionFixtures, tree: Tree) -> None:
    tree.write(f"sys/bus/pci/devices/{SECOND}/revision", "0xff\n")
    for component in (Gpu(0), GPUS, Pair(Gpu(0), Gpu(1))):
        with pytest.raises(CheckSkipped, match=r"^not run: gpu1 fell off the bus before$"):
            session.refuse_lost(load(CPU, component))
    session.refuse_lost(load(CPU))
    session.refuse_lost(load(Gpu(1), session="host-after"))


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [(host.SEGMENT, "xid", 79), (gpu_sampler.EVENTS, "xid", 79), (host.SEGMENT, "gpu-lost", "bus")],
)
def test_a_card_that_the_watch_reported_lost_is_not_loaded(
    session: SessionFixtures, tmp_path: Path, name: str, kind: str, code: int | str
) -> None:
    with segment.Writer(tmp_path / name) as writer:
        writer.write(Event("xid", "error", "Xid 31", "a fault", "look", 31, parse(SECOND)))
        session.refuse_lost(load(Gpu(1)))
        writer.write(Event(kind, "fatal", "gone", "off the bus", "look", code, parse(SECOND)))
    with pytest.raises(CheckSkipped, match="gpu1 fell off the bus before"):
        session.refuse_lost(load(Gpu(0)))
