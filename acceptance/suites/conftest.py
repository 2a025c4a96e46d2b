"""The fixtures that run the tools; the checks judge the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from acceptance.core.limit import GIB
from acceptance.core.message import Text
from acceptance.core.parts import CPU
from acceptance.loads.cpu.contract import Groups
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.machine_file import Machine
from acceptance.session.programs import Programs
from acceptance.session.stage import Part
from acceptance.suites.fixtures import host_tools
from acceptance.suites.fixtures.no_proof import NoProof
from acceptance.tools import cpuburn, stress_ng, stressapptest
from acceptance.tools.reading import ToolOutput

pytest_plugins = [
    "acceptance.suites.fixtures.gpu_tools",
    "acceptance.suites.fixtures.gpu_loads",
    "acceptance.suites.fixtures.burn",
    "acceptance.suites.fixtures.power",
    "acceptance.suites.fixtures.storage",
    "acceptance.suites.fixtures.train",
]


@pytest.fixture
def groups(inventory: Inventory) -> Groups:
    """The physical cores by kind, each with its logical CPUs."""
    return {group.name: group.cores for group in inventory.cpu.core_groups}


@pytest.fixture
def sockets(inventory: Inventory) -> Groups:
    """The physical cores by the socket whose memory is theirs, each with its logical CPUs."""
    return {group.name: group.cores for group in inventory.cpu.socket_cores}


@pytest.fixture
def stress_ng_run(
    programs: Programs, load_s: Mapping[str, float], inventory: Inventory
) -> ToolOutput:
    """Every logical CPU under stress-ng's verified CPU methods, for the profile's time."""
    binary = programs.find("stress-ng", "stress-ng")
    seconds, threads = round(load_s["stress_ng"]), known(inventory.cpu.threads)
    argv = stress_ng.argv(binary, seconds=seconds, workers=threads, temp_path=str(programs.folder))
    return host_tools.of_stress_ng(programs.run(argv), seconds=seconds, threads=threads)


@pytest.fixture
def stressapptest_run(
    programs: Programs, load_s: Mapping[str, float], memory_gib: float, inventory: Inventory
) -> ToolOutput:
    """The planned part of the RAM under stressapptest, one thread a logical CPU."""
    binary = programs.find("stressapptest", "stressapptest")
    seconds, threads = round(load_s["stressapptest"]), known(inventory.cpu.threads)
    argv = stressapptest.argv(
        binary, megabytes=int(memory_gib * 1024), seconds=seconds, threads=threads
    )
    return host_tools.of_stressapptest(programs.run(argv), seconds=seconds, gib=memory_gib)


@pytest.fixture
def say_coverage(inventory: Inventory, say: Callable[[Text], None]) -> Callable[[ToolOutput], None]:
    """Writes the note of how much of the free RAM a run of stressapptest covered."""
    free_gib = inventory.memory.free_bytes / GIB
    return lambda output: say(host_tools.memory_covered(output, free_gib))


@pytest.fixture
def cpuburn_run(
    programs: Programs, load_s: Mapping[str, float], machine: Machine, inventory: Inventory
) -> ToolOutput:
    """The burn program that the machine file names, on every CPU for the profile's time."""
    assert machine.cpu.cpuburn is not None
    binary = programs.find(machine.cpu.cpuburn)
    copies = known(inventory.cpu.threads) if cpuburn.is_classic(binary) else 1
    ended = programs.run_stage(
        [Part(CPU, cpuburn.argv(binary), seconds=load_s["cpuburn"])] * copies
    )
    judged = [
        cpuburn.judge(
            binary, returncode=done.returncode, timed_out=done.timed_out, seconds=done.seconds
        )
        for done in ended
    ]
    order = ("fail", "error", "pass")
    found = min(judged, key=lambda output: order.index(output.outcome))
    if found.outcome == "error":
        raise NoProof("tool_says", tool=found.tool, why=found.reason)
    return found


@pytest.fixture
def llc_bytes(inventory: Inventory) -> int:
    """The size of all last-level caches of the machine together; raises NoProof."""
    caches = inventory.cpu.caches
    last = [cache for cache in caches if cache.level == max(cache.level for cache in caches)]
    sizes = [cache.size_bytes * cache.instances for cache in last if cache.size_bytes is not None]
    if not sizes or len(sizes) != len(last):
        raise NoProof("cache_sizes_unknown")
    return sum(sizes)
