"""The cores of a load, as its command line names them.

    0,1;2,3
        two cores, each with two logical CPUs: the first of each is used
    performance=0,1;2,3 efficiency=4;5
        cores of different kinds, compared only with their own kind

Spaces separate groups, semicolons separate cores, commas separate the logical CPUs (hardware
threads) of one core. A single group without a name is called `all`. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass

from acceptance.core import parts

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
_GROUP = re.compile(r"(?:(?P<name>[a-z][a-z0-9_-]*)=)?(?P<cores>\d{1,6}(?:[,;]\d{1,6})*)", re.ASCII)


class CoresError(argparse.ArgumentTypeError):
    """The cores cannot be used; the message is one sentence for the user."""


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


def parse_cores(text: str) -> tuple[Core, ...]:
    """Parse the command line's form.

    Raises CoresError for any other form, and for a CPU or a group named twice.
    """
    found: list[Core] = []
    words = text.split()
    for word in words:
        match = _GROUP.fullmatch(word)
        if match is None or (match["name"] is None and len(words) > 1):
            raise CoresError(
                f"{word!r} is not a group of cores: write it as 0,1;2,3 or as NAME=0,1;2,3 NAME=4;5"
            )
        name = match["name"] or "all"
        if any(core.group == name for core in found):
            raise CoresError(
                f"the group of cores {name!r} is named twice in {text!r}: join its cores by "
                "semicolons"
            )
        found += [
            Core(name, tuple(int(cpu) for cpu in core.split(",")))
            for core in match["cores"].split(";")
        ]
    cpus = [cpu for core in found for cpu in core.cpus]
    if not cpus:
        raise CoresError("no core is named: write them as 0,1;2,3")
    for cpu in cpus:
        if cpus.count(cpu) > 1:
            raise CoresError(
                f"CPU {cpu} is named twice in {text!r}: every logical CPU belongs to one core"
            )
    return tuple(found)


def by_group(cores: tuple[Core, ...]) -> dict[str, list[list[int]]]:
    """The cores as the hello line has them: group, its cores, their logical CPUs."""
    groups: dict[str, list[list[int]]] = {}
    for core in cores:
        groups.setdefault(core.group, []).append(list(core.cpus))
    return groups


def require_allowed(cores: tuple[Core, ...], allowed: set[int] | None = None) -> None:
    """Raise CoresError when this process may not run on the first CPU of one of the cores.

    `allowed` is for tests.
    """
    usable = os.sched_getaffinity(0) if allowed is None else allowed
    refused = [str(core.cpu) for core in cores if core.cpu not in usable]
    if refused:
        raise CoresError(
            f"this process may not run on CPU {', '.join(refused)}: name other cores, or "
            "lift the affinity or cpuset it runs under"
        )
