from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import journals
import msgspec
import pytest
from cases import each
from gpu_machine import device, machine
from machine_tree import NO_DMI, Programs, Tree, completed
from product_session import Product
from runs import machine_root, write_segment

from acceptance.core.evidence import Sample, Table, ToolRan
from acceptance.core.parts import Gpu
from acceptance.core.plan import Session, SessionName, earlier_sessions
from acceptance.core.record import Body, CheckEnded, CheckStarted, Note
from acceptance.diagnosis.signature import GpuHeat
from acceptance.journal import clock, reader, segment
from acceptance.machine.machine_file import DeclaredCpu, Machine
from acceptance.observe import inventory
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.session import fixtures
from acceptance.session.fixtures import SessionFixtures, check_id


def test_what_checks_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    product = Product(tmp_path, monkeypatch)
    tree = Tree(tmp_path / "seen")
    tree.cpus([(0,), (1,)], model="AMD EPYC")
    tree.memory(64)
    seen = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    product.inventory = inventory.observe(
        tree.root, deadline=Deadline.after(9), run=seen, dmidecode="dmidecode"
    )
    product.machine = Machine(1, "box", gpus=0, cpu=DeclaredCpu(model="AMD EPYC"))
    product.suite(
        "link",
        """
@copy
def test_context(check, machine, inventory, planned, load_s, memory_gib, kernel_log_after, tested_parts, root):
    "The plan, the machine and where to look."
    assert planned.id == "link.context"
    assert machine.cpu.model == inventory.cpu.model == "AMD EPYC"
    assert (load_s, memory_gib, kernel_log_after) == ({}, 1.0, 41)
    assert tested_parts == {"ata3": "disk"}
    assert (root / "etc/machine-id").read_text() == "machine-1\\n"
    check("copy", {Gpu(0): 120.0})

@copy
def test_programs(check, programs):
    "Programs, with log and record."
    done = programs.run(["sh", "-c", "echo 120"])
    check("copy", {Gpu(0): float(done.stdout)})

@copy
def test_telemetry(check, telemetry):
    "The samples so far, thinned ones with their bounds."
    heat = telemetry["cpu_temperature_c"]
    assert (heat.maximum(), heat.minimum(), heat.unit, str(heat.component)) == (91.0, 40.0, "degC", "cpu")
    assert [value for _, value in telemetry["cpu_throttle_count"].points] == [3.0, 4.0, 5.0]
    check("copy", {Gpu(0): 120.0})

@pytest.fixture
def without_telemetry(request):
    from pathlib import Path
    (Path(request.config.getoption("--rigproof-context")).parent / "telemetry.jsonl").unlink()

@copy
def test_no_telemetry(without_telemetry, telemetry, check):
    "Without the supervisor's samples nothing can be said."
    check("copy", {Gpu(0): 120.0})
""",  # noqa: E501
    )
    samples: list[Body] = [
        Sample({"cpu_temperature_c": 40.0}),
        Note("not a sample"),
        Sample({"cpu_temperature_c": 140.0, "power_w": 700.0}, component=Gpu(0)),
        Sample(
            {"cpu_temperature_c": 80.0, "cpu_throttle_count": 4.0},
            10.0,
            {"cpu_temperature_c": 70.0, "cpu_throttle_count": 3.0},
            {"cpu_temperature_c": 91.0, "cpu_throttle_count": 5.0},
        ),
    ]
    path = write_segment(
        product.run_dir / "telemetry.jsonl", samples, machine_root(tmp_path / "root")
    )
    with path.open("ab") as file:
        file.write(b'{"seq":4,"boot')  # the supervisor is just writing
    names = ("link.context", "link.programs", "link.telemetry", "link.no_telemetry")
    done = product.run(product.plan(*(journals.check(name) for name in names)))
    assert list(product.outcomes().values()) == ["pass", "pass", "pass", "error"], done.stdout
    ran = [body for body in product.journalled() if isinstance(body, ToolRan)]
    assert [(body.check, body.argv, body.log) for body in ran] == [
        ("link.programs", ("sh", "-c", "echo 120"), "logs/link.programs-1.log")
    ]
    assert (product.run_dir / "logs/link.programs-1.log").read_text() == "120\n"
    assert any("telemetry.jsonl: cannot be read" in str(body) for body in product.journalled())


class Item:
    def __init__(self, path: str, name: str) -> None:
        self.path = Path(path)
        self.name = name
        self.config = SimpleNamespace(stash={})


@pytest.mark.parametrize(
    "folder",
    ["/usr/lib/python3/site-packages/acceptance/suites", "/home/me/rigproof/acceptance/suites"],
)
def test_an_id_does_not_depend_on_where_it_is_installed(folder: str) -> None:
    names = ("test_gemm[f64]", "test_test_pattern", "gemm")
    items = itertools.starmap(Item, [(f"{folder}/cpu.py", name) for name in names])
    assert [check_id(item) for item in items] == ["cpu.gemm[f64]", "cpu.test_pattern", "cpu.gemm"]  # type: ignore[arg-type]


# --- what checks of GPUs are given ---


class Given:
    """The fixtures of a session whose plan tests some of three GPUs, each asked by its name."""

    def __init__(self, folder: Path, *gpus: str) -> None:
        self.folder = folder
        self.written: list[Body] = []
        made = msgspec.structs.replace(journals.plan(), gpus=gpus)
        seen = machine(*(device(index) for index in range(3)))
        context = session_context.SessionContext(
            mode="run", root="/", session="host-after", plan=made, inventory=seen
        )
        self._given = SessionFixtures(context, folder, {}, self.written.append)

    def __call__(self, name: str, *arguments: object) -> Any:
        fixture: Any = getattr(SessionFixtures, name)
        return fixture.__wrapped__(self._given, *arguments)


Spans = tuple[tuple[str, float, float], ...]


def test_the_gpus_that_are_tested_in_the_order_of_the_bus(tmp_path: Path) -> None:
    given = Given(tmp_path, Gpu(2), Gpu(0), Gpu(3))  # gpu3 is declared and not there
    assert [gpu.name for gpu in given("due_gpus", given("inventory"))] == [Gpu(0), Gpu(2)]


def test_what_is_said_decides_nothing(tmp_path: Path) -> None:
    given = Given(tmp_path)
    given("say")("gpu0 drives the display")
    assert given.written == [Note("gpu0 drives the display")]


def test_when_the_loads_ran(tmp_path: Path) -> None:
    given = Given(tmp_path)
    assert given("load_spans") == given("load_tables") == ()
    loads: list[Body] = [
        CheckEnded("link.stray", "pass", "", 1.0),
        CheckStarted("link.p2p"),
        Note("in between"),
        CheckEnded("link.p2p", "fail", "", 1.0),
        CheckStarted("burn.gpu_burn[float]"),
    ]
    path = write_segment(tmp_path / "journal-load.jsonl", loads, machine_root(tmp_path / "root"))
    stamps = [entry.boot_s for entry in segment.read_segment(path).entries]
    assert given("load_spans") == (("link.p2p", stamps[1], stamps[3]),)


def test_the_loads_of_two_sessions_are_seen_together_by_their_ends(tmp_path: Path) -> None:
    given, root = Given(tmp_path), machine_root(tmp_path / "root")
    table = Table("vram.patterns", Gpu(0), "passes", ("n",), ((1.0,),))
    with (
        segment.Writer(tmp_path / "journal-gpu-load.jsonl", root) as gpus,
        segment.Writer(tmp_path / "journal-host-load.jsonl", root) as host,
    ):
        gpus.write(CheckStarted("vram.patterns"))
        host.write(CheckStarted("cpu.stress_ng"))
        gpus.write(table)
        host.write(CheckEnded("cpu.stress_ng", "fail", "", 1.0))
        gpus.write(CheckEnded("vram.patterns", "pass", "", 1.0))
    assert [name for name, _, _ in given("load_spans")] == ["cpu.stress_ng", "vram.patterns"]
    assert given("load_outcomes") == {"vram.patterns": "pass", "cpu.stress_ng": "fail"}
    assert given("load_tables") == (table,)


@each(
    "session, before",
    [
        ("host-before", ()),
        ("gpu-load", ("host-before",)),
        ("host-load", ("host-before",)),
        ("load", ("host-before", "gpu-load", "host-load")),
        ("host-after", ("host-before", "gpu-load", "host-load", "load")),
        ("load-again", ()),
    ],
)
def test_no_session_waits_for_the_one_beside_it(
    session: SessionName, before: tuple[Session, ...]
) -> None:
    assert earlier_sessions(session) == before


def naps(monkeypatch: pytest.MonkeyPatch, nap: Callable[[], None]) -> list[float]:
    """Does something in place of each sleep; gives how long they would have been."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        nap()

    monkeypatch.setattr(fixtures.time, "sleep", sleep)
    return slept


def test_without_gpu_telemetry_there_are_no_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = naps(monkeypatch, lambda: None)
    ended: Spans = (("burn.gpu_burn[float]", 0.0, clock.boot_s()),)
    assert (Given(tmp_path, Gpu(0))("gpu_history", ended), slept) == ({}, [])


def test_the_samples_of_the_last_load_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [Gpu(0), Gpu(1)]
    with segment.Writer(tmp_path / reader.GPU_TELEMETRY, machine_root(tmp_path / "root")) as writer:
        for name in names:
            writer.write(Sample({"x": 1.0}, component=name))
        ended: Spans = (("link.p2p", 0.0, 1.0), ("burn.gpu_burn[float]", 1.0, clock.boot_s()))
        late = iter(names)
        slept = naps(
            monkeypatch,
            lambda: writer.write(Sample({"x": 2.0}, 10.0, {"x": 1.0}, {"x": 3.0}, next(late))),
        )
        found = Given(tmp_path, *names)("gpu_history", ended)
        assert [[point.most("x") for point in found[name].points] for name in names] == [
            [1.0, 3.0],
            [1.0, 3.0],
        ]
        assert slept == [0.2, 0.2]


def test_samples_that_will_not_come_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine_root(tmp_path / "root")
    write_segment(tmp_path / reader.GPU_TELEMETRY, [Sample({"x": 1.0}, component=Gpu(0))], root)
    slept = naps(
        monkeypatch, lambda: monkeypatch.setattr(clock, "boot_s", lambda: 1e9)
    )  # a lost GPU is never sampled
    ended: Spans = (("burn.gpu_burn[float]", 0.0, clock.boot_s()),)
    given = Given(tmp_path, Gpu(0), Gpu(1))
    assert set(given("gpu_history", ended)) == set(given("gpu_history", ())) == {Gpu(0)}
    assert len(slept) == 1


def test_the_heat_of_a_gpu_at_a_moment(tmp_path: Path) -> None:
    """In a load session as well: the supervisor writes the segment into the run
    directory while loads run.
    """
    heat = Given(tmp_path, Gpu(0))("gpu_heat")
    assert heat(Gpu(0), 100.0) is None
    sample = Sample({"temperature_c": 71.0, "sm_clock_mhz": 1755.0}, component=Gpu(0))
    write_segment(tmp_path / reader.GPU_TELEMETRY, [sample], machine_root(tmp_path / "root"))
    assert heat(Gpu(0), clock.boot_s()) == GpuHeat(71.0, 1755.0)
    assert heat(Gpu(1), clock.boot_s()) is None


def test_the_programs_of_a_check_of_an_earlier_session(tmp_path: Path) -> None:
    """In their order, with what they printed; of another check, or without a log, there is none."""
    given = Given(tmp_path)
    assert given("earlier_programs")("storage.smart_health") == ()
    (tmp_path / "logs").mkdir()
    for name, text in (("a", "first"), ("b", "second")):
        (tmp_path / f"logs/{name}.log").write_text(text)
        (tmp_path / f"logs/{name}.log.err").write_text(f"{text} aside")
    ran = [
        ToolRan("storage.smart_health", ("smartctl", "/dev/sda"), 0, 0.5, "logs/a.log"),
        ToolRan("other", ("smartctl", "/dev/sdc"), 0, 0.5, "logs/a.log"),
        Note("x"),
        ToolRan("storage.smart_health", ("smartctl", "/dev/sdb"), 4, 0.5, "logs/b.log"),
        ToolRan("storage.smart_health", ("smartctl", "/dev/sdd"), 4, 0.5),
    ]
    write_segment(tmp_path / "journal-host-before.jsonl", ran, machine_root(tmp_path / "root"))
    found = given("earlier_programs")("storage.smart_health")
    assert [(one.argv[-1], one.returncode, one.stdout, one.stderr) for one in found] == [
        ("/dev/sda", 0, "first", "first aside"),
        ("/dev/sdb", 4, "second", "second aside"),
    ]
    (tmp_path / "logs/b.log").unlink()
    with pytest.raises(FileNotFoundError):
        given("earlier_programs")("storage.smart_health")
