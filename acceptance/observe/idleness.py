"""Whether somebody is using the GPUs: what NVML tells of their processes and of how much they are in use."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.observe import readiness
from acceptance.observe.inventory import Gpu
from acceptance.observe.nvml import NvmlAnswer


def users(answer: NvmlAnswer, due: tuple[Gpu, ...], most_use: float) -> tuple[str, ...]:
    """Who or what is using each of these GPUs, a sentence each; empty when all are idle.

    `most_use` is the largest utilisation (0 to 1) of an idle GPU: a desktop draws. A GPU whose driver tells neither its processes nor
    its utilisation is not known to be idle. One that NVML does not know, or that stopped answering, has no user: the checks tell of it.
    """
    return tuple(_users(answer, due, most_use))


def _users(answer: NvmlAnswer, due: tuple[Gpu, ...], most_use: float) -> Iterator[str]:
    for gpu, traits in readiness.known(answer, due):
        computing = readiness.computing(traits)
        yield from (f"{gpu.name}: {readiness.named(one)} computes on it" for one in computing)
        if traits.utilisation is not None:
            if traits.utilisation > most_use and not computing:
                yield f"{gpu.name}: {traits.utilisation:.0%} in use by a process that the driver does not name"
        elif traits.compute_processes is None:
            yield f"{gpu.name}: its driver tells neither which processes compute on it nor how much it is in use"
