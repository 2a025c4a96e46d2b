"""The RAM under load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from acceptance.core.limit import GIB
from acceptance.core.message import Listed, Message, Text, after_fault, english
from acceptance.core.parts import MEMORY
from acceptance.loads.cpu.contract import Groups, MemoryBandwidth, MemoryRandom
from acceptance.machine.inventory import Inventory, known
from acceptance.observe import kernel_counters
from acceptance.session.check import Check, loss, refuse
from acceptance.session.loads import Loads, Place
from acceptance.session.tools import Tools
from acceptance.suites.fixtures import host_tools
from acceptance.suites.fixtures.host_tools import wrong_note
from acceptance.tools import stressapptest

# Measurement -> the counter of each memory controller whose growth it is.
EDAC = {
    "memory_errors_uncorrected": kernel_counters.UNCORRECTED,
    "memory_errors_corrected": kernel_counters.CORRECTED,
}


@pytest.mark.session("load")
@pytest.mark.costs(1.3, load="memory_bandwidth", slack=3.5)
@pytest.mark.measures(
    "memory_copy",
    "memory_triad",
    "memory_copy_miscompares",
    "memory_triad_miscompares",
)
def test_bandwidth(
    loads: Loads,
    groups: Groups,
    load_s: Mapping[str, float],
    llc_bytes: int,
    check: Check,
) -> None:
    """Copy and triad over arrays several times the caches, all cores at once, the result read back
    and compared.

    Measured: bytes that the program moves (copy two arrays, triad three) over wall time. Not
    measured: the lines a processor fetches before it overwrites them.
    """
    seconds = load_s["memory_bandwidth"]
    results = loads.run(
        lambda _: MemoryBandwidth(seconds=seconds, cores=groups, llc_bytes=llc_bytes),
        on=(Place(MEMORY),),
    )
    check.all(results)


@pytest.mark.session("host-load")
# A GiB takes 0.2 to 0.3 s to fill: recorded H200 runs of 16 virtual processors needed 78 to 91 s to
# fill 100 GiB and test them for 60 s, 20 and 21 s for 32 GiB and 15 s. In a VM of two processors it
# may take 2 s, for which the slack is.
@pytest.mark.costs(0.5, load="stressapptest", per_gib=0.22, slack=3.2, slack_per_gib=1.8)
@pytest.mark.measures("stressapptest_errors", "stressapptest_copy", "memory_tested")
def test_stressapptest(
    tools: Tools,
    load_s: Mapping[str, float],
    memory_gib: float,
    inventory: Inventory,
    say: Callable[[Text], None],
    check: Check,
) -> None:
    """A declared share of the free RAM filled with patterns, moved about, and compared, by
    stressapptest.

    Measured: blocks that changed, and how much RAM was filled, beside the GPUs' own loads, whose
    processes go first. Not measured: the RAM that the system itself occupies, and 4 GiB for each
    GPU. A note says the share of the free RAM, the rate, and how long all free RAM would take.
    """
    threads, seconds = known(inventory.cpu.threads), round(load_s["stressapptest"])
    argv = host_tools.stressapptest_argv(memory_gib, threads=threads, seconds=seconds)
    runs = tools.run(stressapptest.TOOL, argv, on=[Place(MEMORY)])
    check.faults("stressapptest_errors", runs, count=host_tools.memory_errors)
    uncounted, untested = (
        Message(english("no_rate_counts", "no rate counts from a run that found wrong data")),
        Message(english("not_all_tested", "a run that found wrong data did not go over all of it")),
    )
    check.figures("stressapptest_copy", runs, "stressapptest_copy", after_fault(uncounted))
    check.figures("memory_tested", runs, "stressapptest_tested", after_fault(untested))
    output = runs.only()
    if not runs.faulty:
        say(host_tools.memory_covered(output, inventory.memory.free_bytes / GIB))


# After stressapptest, which leaves the memory of every socket free of cached files.
@pytest.mark.session("load")
# A core fills 1 GiB in 2.4 s of its own time (measured in a VM of two processors with 1 and 3 GiB),
# and in more where many cores share the memory: 5.7 s where 32 fill 128 GiB.
@pytest.mark.costs(1.2, load="memory_random", per_gib_of_a_core=5.7, slack=120.0)
@pytest.mark.measures(
    "memory_random",
    "memory_random_miscompares",
    "memory_random_remote",
    "memory_random_remote_miscompares",
)
def test_random(
    loads: Loads,
    sockets: Groups,
    load_s: Mapping[str, float],
    llc_bytes: int,
    memory_gib: float,
    check: Check,
) -> None:
    """Words gathered with NumPy from all over a large part of the RAM, all cores at once, every
    word verified.

    Measured: gathered bytes over wall time, for each socket in its own memory and, on machines of
    several, in that of each other one; and words that differ from what was written. Not measured:
    latency, and the bandwidth that the lines of the gathered words take.
    """
    seconds = load_s["memory_random"]
    results = loads.run(
        lambda _: MemoryRandom(seconds=seconds, cores=sockets, llc_bytes=llc_bytes, gib=memory_gib),
        on=(Place(MEMORY),),
    )
    check.all(results, note=lambda _, wrong: wrong_note(wrong))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("memory_errors_uncorrected", "memory_errors_corrected")
def test_errors(inventory: Inventory, root: Path, check: Check) -> None:
    """Errors of the RAM that the kernel's drivers counted during the run (EDAC).

    Measured: the growth of every memory controller's counters, from before the run until after it,
    where the kernel has a driver for them. Not measured: errors that the firmware keeps to itself.
    """
    (of_memory,) = kernel_counters.since(inventory, kernel_counters.EDAC, root).values()
    losses = [loss(MEMORY, name) for name in of_memory.lost]
    for measurement, counter in EDAC.items():
        own = of_memory.of(counter)
        told = tuple(f"{name} +{count}" for name, count in own.grown.items() if count)
        if told or (own.grown and not own.lost):
            note = Message("note", {"text": Listed(told)}) if told else None
            check.single(measurement, MEMORY, sum(own.grown.values()), note=note)
    refuse(losses)
