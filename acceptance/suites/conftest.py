"""The fixtures that run the tools; the checks judge the results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pytest

from acceptance.loads.miscompare import details
from acceptance.loads.protocol import LoadOutput
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.machine_file import Machine
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check
from acceptance.session.programs import Programs
from acceptance.suites.fixtures import host_tools
from acceptance.tools import cpuburn, load_output, stress_ng, stressapptest
from acceptance.tools.load_output import Groups, LoadFailed
from acceptance.tools.proof import ToolError
from acceptance.tools.reading import ToolOutput

pytest_plugins = [
    "acceptance.suites.fixtures.gpu_tools",
    "acceptance.suites.fixtures.gpu_loads",
    "acceptance.suites.fixtures.burn",
]


@pytest.fixture
def groups(inventory: Inventory) -> Groups:
    """The physical cores by kind, each with its logical CPUs."""
    return {group.name: group.cores for group in inventory.cpu.core_groups}


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
def cpuburn_run(
    programs: Programs, load_s: Mapping[str, float], machine: Machine, inventory: Inventory
) -> ToolOutput:
    """The burn program that the machine file names, on every CPU for the profile's time."""
    assert machine.cpu.cpuburn is not None
    binary = programs.find(machine.cpu.cpuburn)
    copies = known(inventory.cpu.threads) if cpuburn.is_classic(binary) else 1
    ended = programs.run_together(
        [cpuburn.argv(binary)] * copies, deadline=Deadline.after(load_s["cpuburn"])
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
        raise ToolError(f"{found.tool}: {found.reason}")
    return found


@pytest.fixture
def cpu_gemm(
    programs: Programs, load_s: Mapping[str, float], groups: Groups
) -> Callable[[str], LoadOutput]:
    """Runs the verified matrix load on every core at once, in one number format."""

    def run(dtype: str) -> LoadOutput:
        seconds = load_s["cpu_gemm"]
        argv = load_output.cpu_gemm_argv(
            sys.executable, dtype=dtype, seconds=seconds, groups=groups
        )
        return load_output.read(
            programs.run(argv), "cpu_gemm", {"dtype": dtype, "seconds": seconds}
        )

    return run


@pytest.fixture
def memory_bandwidth(
    programs: Programs, load_s: Mapping[str, float], groups: Groups, inventory: Inventory
) -> Callable[[], LoadOutput]:
    """Runs copy and triad on every core at once.

    The arrays are several times the size of the last-level caches.
    """

    def run() -> LoadOutput:
        caches = inventory.cpu.caches
        last = [cache for cache in caches if cache.level == max(cache.level for cache in caches)]
        sizes = [
            cache.size_bytes * cache.instances for cache in last if cache.size_bytes is not None
        ]
        if not sizes or len(sizes) != len(last):
            raise ToolError(
                "the kernel does not show every cache size, so arrays that leave the caches "
                "cannot be chosen"
            )
        seconds = load_s["memory_bandwidth"]
        argv = load_output.memory_bandwidth_argv(
            sys.executable, seconds=seconds, groups=groups, llc_bytes=sum(sizes)
        )
        return load_output.read(programs.run(argv), "memory_bandwidth", {"seconds": seconds})

    return run


@pytest.fixture
def record_miscompares(check: Check) -> Callable[[LoadFailed, str, str], None]:
    """Journals the wrong results that a load reported before it died.

    They stay evidence against the machine.
    """

    def record(failed: LoadFailed, measurement: str, component: str) -> None:
        if failed.miscompares:
            check(
                measurement,
                {component: float(len(failed.miscompares))},
                notes={component: str(details(failed.miscompares[0]))[:300]},
            )

    return record
