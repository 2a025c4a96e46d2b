"""The cores of a load, each a rank of it. Standard library only."""

from __future__ import annotations

import os
from dataclasses import dataclass

from acceptance.core import parts
from acceptance.loads.cpu.contract import Groups
from acceptance.loads.program import LoadError

# Read by OpenBLAS, MKL, BLIS and OpenMP when they are loaded; a second thread would share the
# core's one CPU and slow it down.
ONE_THREAD = {
    name: "1"
    for name in (
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "GOTO_NUM_THREADS",
    )
}


@dataclass(frozen=True, slots=True)
class Core:
    """One physical core, a rank of a load: its group for comparison, and its logical CPUs."""

    group: str
    cpus: tuple[int, ...]

    @property
    def cpu(self) -> int:
        """The logical CPU that the load uses: the core's first."""
        return self.cpus[0]

    @property
    def component(self) -> parts.Core:
        """The core's name in readings."""
        return parts.Core(self.cpu)

    def prepare(self) -> None:
        """Pin this process to the core and its libraries to one thread."""
        os.sched_setaffinity(0, {self.cpu})
        os.environ.update(ONE_THREAD)


def cores_of(groups: Groups) -> tuple[Core, ...]:
    """The cores of these groups, in their order."""
    return tuple(Core(name, tuple(cpus)) for name, cores in groups.items() for cpus in cores)


def require_allowed(cores: tuple[Core, ...], allowed: set[int] | None = None) -> None:
    """Raise LoadError when this process may not run on the first CPU of one of the cores.

    `allowed` is for tests.
    """
    usable = os.sched_getaffinity(0) if allowed is None else allowed
    refused = [str(core.cpu) for core in cores if core.cpu not in usable]
    if refused:
        raise LoadError(
            f"this process may not run on CPU {', '.join(refused)}: name other cores, or "
            "lift the affinity or cpuset it runs under"
        )
