"""The fixtures that load everything at once: what runs beside what, what each process is told,
and what is kept when a part fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import load_texts
import pytest
from gpu_machine import TRAITS, device, machine, uuid
from journals import check, due
from msgspec.structs import replace as replace_fields
from replay import host
from wrong_results import COPIED, one_bit

from acceptance.core.dtype import DTYPES, DtypeName
from acceptance.core.limit import GIB
from acceptance.core.parts import CPU, MEMORY, Component, Gpu, Pair
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Body, Event
from acceptance.loads import asks
from acceptance.loads.burn.contract import Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, Memory
from acceptance.process import command
from acceptance.process.command import ProgramMissing, ProgramResult
from acceptance.session import load_events
from acceptance.session.loads import Part, Results, first_wrong
from acceptance.session.programs import Programs
from acceptance.session.tools import Outputs
from acceptance.suites.fixtures import burn
from acceptance.suites.fixtures.burn import memory_share
from acceptance.wording import words

AMPERE: tuple[DtypeName, ...] = ("f64", "f32", "tf32", "f16", "bf16", "i8")
FORMATS: Mapping[str, tuple[DtypeName, ...]] = {Gpu(0): DTYPES, Gpu(1): AMPERE}
FAULTY = "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n"


def planned(*pairs: str) -> PlannedCheck:
    """The check's part of the plan, with these ways between GPUs."""
    return check("together.burn", due(), *(due("burn_peer_copied", pair, "GiB") for pair in pairs))


def host_printed(argv: Sequence[str]) -> str:
    """What stress-ng or stressapptest says to its command line, behind `nice -n N`."""
    return host.printed(Path(argv[3]).name, argv[4:])


@dataclass
class Loads:
    """Stands for the check's programs: all goes well, but for what `spoil` changes by the name
    of the GPU's load or the program.
    """

    folder: Path = Path("/logs")
    spoil: dict[str, Callable[[ProgramResult], ProgramResult]] = field(default_factory=dict)
    calls: list[list[tuple[tuple[str, ...], Mapping[str, str]]]] = field(default_factory=list)
    components: list[list[str | None]] = field(default_factory=list)
    heard: list[Callable[[int, str], None] | None] = field(default_factory=list)
    find = Programs.find

    def run_stage(
        self, parts: Sequence[Part], *, on_line: Callable[[int, str], None] | None = None
    ) -> tuple[ProgramResult, ...]:
        assert all((part.begin_s, part.seconds) == (0.0, None) for part in parts)
        self.calls.append([(part.argv, part.env) for part in parts])
        self.components.append([part.component for part in parts])
        self.heard.append(on_line)
        return tuple(self._done(argv, env) for argv, env in self.calls[-1])

    def _done(self, argv: tuple[str, ...], env: Mapping[str, str]) -> ProgramResult:
        if argv[0].endswith("nice"):
            name, text = Path(argv[3]).name, host_printed(argv)
        else:
            visible = env["CUDA_VISIBLE_DEVICES"].split(",")
            ask = asks.of_argv(argv)
            assert ask is not None
            name, text = visible[0], load_texts.printed(ask, {"uuid": visible[0]})
        done = ProgramResult(argv, 0, text, "", 1e5)
        return self.spoil.get(name, lambda one: one)(done)

    def loads(self) -> list[tuple[object, str]]:
        """What the GPUs' loads of the only call were asked, and the GPUs that each saw."""
        return [
            (asks.of_argv(argv), env["CUDA_VISIBLE_DEVICES"])
            for argv, env in self.calls[0]
            if not argv[0].endswith("nice")
        ]

    def beside(self) -> list[tuple[str, ...]]:
        """The programs beside them, without the paths that they lie in."""
        every = [argv for argv, _ in self.calls[0] if argv[0].endswith("nice")]
        return [(Path(argv[0]).name, *argv[1:3], Path(argv[3]).name, *argv[4:]) for argv in every]


def died(done: ProgramResult) -> ProgramResult:
    """The program died in the middle, with a wrong result told."""
    wrong = {"miscompare": one_bit(3)}
    return replace(done, returncode=-9, stdout=json.dumps(wrong) + "\n", seconds=3.0)


@dataclass
class Heard:
    """Stands for the fixture `listener`."""

    shown: list[dict[str, list[str]]] = field(default_factory=list)

    def __call__(self, shown: Mapping[str, Sequence[str]]) -> Callable[[int, str], None]:
        self.shown.append({name: list(names) for name, names in shown.items()})
        return lambda index, line: None


@pytest.fixture
def seen() -> Inventory:
    return machine(device(0), device(1, traits=replace(TRAITS, compute_capability="8.6")))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The programs of this machine; a test takes some away."""
    there = {"nice", "stress-ng", "stressapptest"}

    def find(program: str, package: str | None = None) -> str:
        if program not in there:
            raise ProgramMissing("program_missing", program=program, package=package)
        return f"/usr/bin/{program}"

    monkeypatch.setattr(command, "find", find)
    return there


def together(
    loads: Loads,
    seen: Inventory,
    *pairs: str,
    seconds: float = 20.0,
    gib: float = 4.0,
    heard: Heard | None = None,
) -> tuple[Results, Outputs]:
    """What the fixture finds on this machine: the GPUs' burns, and what is beside them."""
    fixture: Any = burn.together
    formats = {gpu.name: FORMATS.get(gpu.name, DTYPES) for gpu in gpus(seen)}
    run: Callable[[], tuple[Results, Outputs]] = fixture.__wrapped__(
        loads, planned(*pairs), gpus(seen), {"burn": seconds}, gib, seen, formats, heard or Heard()
    )
    return run()


def troubles(burns: Results, host: Outputs) -> list[str]:
    """Why parts proved nothing."""
    return [words.text(one) for one in (*burns.troubles(), *host.troubles())]


# --- all at once ---


def test_all_gpus_processors_and_ram_run_in_one_call_for_the_same_seconds(seen: Inventory) -> None:
    loads, heard = Loads(), Heard()
    burns, host = together(loads, seen, Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)), heard=heard)
    assert loads.components == [[Gpu(0), Gpu(1), CPU, MEMORY]]
    assert loads.loads() == [
        (Ask(dtypes=DTYPES, seconds=20.0, peers=1), f"{uuid(0)},{uuid(1)}"),
        (Ask(dtypes=AMPERE, seconds=20.0, peers=1), f"{uuid(1)},{uuid(0)}"),
    ]
    threads = str(seen.cpu.threads)
    stress_ng, stressapptest = loads.beside()
    assert stress_ng[:6] == ("nice", "-n", "10", "stress-ng", "--cpu", threads)
    assert "--verify" in stress_ng
    assert "36s" in stress_ng, "as long as the GPUs prove their first products and burn"
    assert stressapptest == (
        "nice",
        "-n",
        "10",
        "stressapptest",
        "-s",
        "32",
        "-M",
        "4096",
        "-m",
        threads,
        "-W",
    )
    assert heard.shown == [{Gpu(0): [Gpu(0), Gpu(1)], Gpu(1): [Gpu(1), Gpu(0)]}]
    assert loads.heard[0] is not None
    assert troubles(burns, host) == []
    assert burns.values("burn_bf16") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert burns.values("burn_f8") == {Gpu(0): 1.0}
    assert burns.values("burn_peer_copied") == {
        Pair(Gpu(0), Gpu(1)): 1.0,
        Pair(Gpu(1), Gpu(0)): 1.0,
    }
    assert CPU in host.outputs
    assert MEMORY in host.outputs
    assert host.values("stressapptest_tested") == {MEMORY: 4.0}


def test_each_gpu_copies_to_the_peers_that_the_plan_names_and_sees_no_others() -> None:
    """Two bridged pairs: the load of gpu0 calls gpu2 its first peer."""
    four = machine(device(0), device(1), device(2), device(3))
    loads = Loads()
    burns, _ = together(loads, four, Pair(Gpu(0), Gpu(2)), Pair(Gpu(2), Gpu(0)))
    alone = Ask(dtypes=DTYPES, seconds=20.0)
    beside = replace_fields(alone, peers=1)
    assert loads.loads() == [
        (beside, f"{uuid(0)},{uuid(2)}"),
        (replace_fields(alone, dtypes=AMPERE), uuid(1)),
        (beside, f"{uuid(2)},{uuid(0)}"),
        (alone, uuid(3)),
    ]
    assert burns.values("burn_peer_copied") == {
        Pair(Gpu(0), Gpu(2)): 1.0,
        Pair(Gpu(2), Gpu(0)): 1.0,
    }


def test_a_machine_without_gpus_burns_processors_and_ram() -> None:
    loads = Loads()
    burns, host = together(loads, machine(found=()))
    assert loads.loads() == []
    assert [argv[3] for argv in loads.beside()] == ["stress-ng", "stressapptest"]
    assert troubles(burns, host) == []
    assert burns.outputs == {}


# --- what one proves is kept when another fails ---


def instead(old: str, new: str) -> Callable[[ProgramResult], ProgramResult]:
    """The program printed something else."""
    return lambda done: replace(done, stdout=done.stdout.replace(old, new))


ALL: tuple[Component, ...] = (Gpu(0), Gpu(1), CPU, MEMORY)


@pytest.mark.parametrize(
    ("name", "spoil", "lost", "told"),
    [
        (uuid(1), died, Gpu(1), "gpu1: the load burn was ended by signal 9"),
        (
            *("stress-ng", lambda done: replace(done, returncode=1), CPU),
            "stress-ng ended with exit code 1",
        ),
        # A fault that it told before it died is a fault.
        (
            "stress-ng",
            lambda done: replace(done, returncode=2, stdout=FAULTY + done.stdout),
            *(None, None),
        ),
        # RAM that was not filled, or not compared; too few workers.
        (
            *("stressapptest", instead("4096M", "2048M"), MEMORY),
            "stressapptest filled 2.00 GiB and was to fill 4.00 GiB",
        ),
        (
            *("stressapptest", instead("Status: PASS", ""), MEMORY),
            "stressapptest: the text is cut: the line 'Status:' is missing",
        ),
        ("stress-ng", instead("hogs: 8", "hogs: 1"), CPU, "stress-ng tells of 1.0 workers"),
        # A burn of another length than was asked, and one of another GPU.
        (
            *(uuid(0), instead('"seconds": 20.0', '"seconds": 2.0'), Gpu(0)),
            "ran with seconds = 2.0, and 20.0 was asked for",
        ),
        (
            *(uuid(1), instead(uuid(1), uuid(0)), Gpu(1)),
            f"ran with uuid = '{uuid(0)}', and '{uuid(1)}' was asked for",
        ),
    ],
)
def test_a_part_that_proves_nothing_takes_nothing_from_the_others(
    seen: Inventory,
    name: str,
    spoil: Callable[[ProgramResult], ProgramResult],
    lost: Component | None,
    told: str | None,
) -> None:
    burns, host = together(Loads(spoil={name: spoil}), seen)
    assert {*burns.outputs, *host.outputs} == {*ALL} - {lost}
    found = troubles(burns, host)
    assert len(found) == int(told is not None)
    assert (told or "") in "".join(found)
    assert host.faulty == ({CPU} if told is None else set())


def test_a_load_that_died_keeps_its_wrong_results(seen: Inventory) -> None:
    burns, _ = together(Loads(spoil={uuid(1): died}), seen)
    for dtype, died_with in (("bf16", {Gpu(1): 1.0}), ("f64", {})):
        counts, _ = burns.counts(f"burn_{dtype}_miscompares", (Gpu(0), Gpu(1)), first_wrong)
        assert counts == {Gpu(0): 0.0, **died_with}


@pytest.mark.parametrize("missing", ["stress-ng", "stressapptest"])
def test_a_program_that_is_not_installed_is_left_out_with_its_cure(
    seen: Inventory, installed: set[str], missing: str
) -> None:
    installed.remove(missing)
    loads = Loads()
    burns, host = together(loads, seen)
    assert len(loads.loads()) == 2
    assert [argv[3] for argv in loads.beside()] == [
        one for one in ("stress-ng", "stressapptest") if one != missing
    ]
    without, other = (CPU, MEMORY) if missing == "stress-ng" else (MEMORY, CPU)
    assert set(host.outputs) == {other}
    assert f"sudo apt install {missing}" in words.text(host.skipped[without].reason)
    assert troubles(burns, host) == []


def test_ram_that_is_too_little_for_its_threads_keeps_no_gpu_from_burning(seen: Inventory) -> None:
    loads = Loads()
    burns, host = together(loads, seen, gib=0.001)
    assert [argv[3] for argv in loads.beside()] == ["stress-ng"]
    assert set(burns.outputs) == {Gpu(0), Gpu(1)}
    assert troubles(burns, host)[0].startswith("stressapptest needs 3 MB for each of its")


def test_nothing_to_run_is_no_pass(installed: set[str]) -> None:
    installed.clear()
    _, host = together(Loads(), machine(found=()))
    assert set(host.skipped) == {CPU, MEMORY}


# --- how much RAM is filled beside the loads ---


@pytest.mark.parametrize(
    ("planned_gib", "seconds", "free_gib", "count", "filled"),
    [
        (51.0, 240.0, 64.0, 0, 51.0),
        (51.0, 240.0, 64.0, 2, 51.0),
        (25.6, 240.0, 32.0, 2, 24.0),  # two loads want 8 GiB of the 32 that are free
        (4.0, 21.0, 64.0, 2, 4.0),
        # Filling more would take longer than the burn; a quarter is filled all the same.
        (
            1600.0,
            240.0,
            2000.0,
            8,
            400.0,
        ),
        (1600.0, 14400.0, 2000.0, 8, 1600.0),
        (4.8, 240.0, 6.0, 2, 1.2),
        (10.0, 240.0, None, 2, 10.0),
    ],
)
def test_ram_is_filled_as_far_as_the_burn_lasts_and_the_loads_have_room(
    planned_gib: float, seconds: float, free_gib: float | None, count: int, filled: float
) -> None:
    free = None if free_gib is None else int(free_gib * GIB)
    memory = Memory(None, free, None, None, None, None)
    assert memory_share(planned_gib, seconds=seconds, memory=memory, gpus=count) == pytest.approx(
        filled
    )


@pytest.mark.parametrize(
    ("gib", "seconds", "whole_s", "memory_s"),
    [
        (4.0, 21.0, 41, 37),  # ready in four seconds: it ends with the other loads
        (40.0, 105.0, 125, 112),
        (105.0, 105.0, 125, 105),  # filled when the GPUs burn: its own time all the same
        (4.0, 0.4, 1, 1),
        (8.0, 0.4, 1, 1),
        (16.0, 600.0, 620, 613),
    ],
)
def test_ram_is_loaded_from_when_it_is_filled_until_the_other_loads_end(
    gib: float, seconds: float, whole_s: int, memory_s: int
) -> None:
    assert burn.memory_seconds(gib, seconds=seconds, whole_s=whole_s) == memory_s


def test_what_is_heard_while_it_runs_has_the_names_of_the_gpus_that_the_load_sees() -> None:
    """Two bridged pairs: what the load of gpu0 calls gpu1 is gpu2, in the event as in the count."""
    written: list[Body] = []
    heard = load_events.listener(
        [Gpu(0), Gpu(1), Gpu(2)], written.append, shown={Gpu(0): [Gpu(0), Gpu(2)]}
    )
    heard(0, json.dumps({"miscompare": COPIED}))
    (event,) = written
    assert isinstance(event, Event)
    assert event.component == Pair(Gpu(0), Gpu(2))
