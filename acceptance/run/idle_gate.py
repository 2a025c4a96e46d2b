"""Skips a run on a machine in use, and records the skipped night as a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message, english
from acceptance.core.record import Postponed, RunEnded
from acceptance.journal import reader, seal, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import NvmlAnswer
from acceptance.observe import nvml, readiness
from acceptance.process.deadline import Deadline
from acceptance.run import lock, outputs
from acceptance.run.header import header_records
from acceptance.run.planning import PreparedRun
from acceptance.run.profile import IdlePolicy
from acceptance.run.supervisor import IN_USE
from acceptance.station.base import HostStation


def _probe() -> NvmlAnswer:
    return nvml.probe(deadline=Deadline.after(nvml.PROBE_S))


def find_users(
    prepared: PreparedRun,
    nights: IdlePolicy,
    probe: Callable[[], NvmlAnswer] = _probe,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Message, ...]:
    """The users of the GPUs that the plan tests; empty where all are idle.

    It samples the GPUs several times and stops at the first sample with a user. The first sample is
    the inventory's. Where NVML cannot be queried there are no users: the checks report that.
    """
    due = gpus(prepared.inventory, prepared.plan.gpus)
    found = describe_gpu_users(prepared.inventory.nvml, due, nights.idle_use)
    for _ in range(nights.looks - 1 if due else 0):
        if found:
            break
        sleep(nights.apart_s)
        found = describe_gpu_users(probe(), due, nights.idle_use)
    return found


def busy_reason(error: lock.MachineBusy) -> Message:
    """The reason to leave the machine alone: another rigproof run has it, and for how long.

    The time is given as far as clocks allow.
    """
    if error.held_s < 0:
        return Message(
            english(
                "busy_for_unknown_time",
                "{what}; for how long cannot be told, because the clock was set back meanwhile",
            ),
            {"what": error.message},
        )
    return Message(
        english("busy_for", "{what}; it has had it for {hours} h"),
        {"what": error.message, "hours": f"{error.held_s / 3600:.1f}"},
    )


def postpone(
    prepared: PreparedRun, run_dir: Path, skipped: Postponed, language: Language = ENGLISH
) -> Run:
    """Record a skipped run. Raises JournalError when it cannot be written."""
    with segment.Writer(run_dir / reader.SUPERVISOR, prepared.options.root) as writer:
        for body in header_records(prepared, HostStation(), run_dir):
            writer.write(body)
        writer.write(skipped)
        writer.write(RunEnded(False, IN_USE))
        seal.write(writer)
    run = journal_run.read(run_dir)
    outputs.write(run, language)
    return run


def describe_gpu_users(
    answer: NvmlAnswer, due: tuple[Gpu, ...], most_use: float
) -> tuple[Message, ...]:
    """The users of each of these GPUs, a message each; empty where all are idle.

    `most_use` is the largest utilisation (0 to 1) of an idle GPU, because a desktop draws on it. A
    GPU whose driver reports neither processes nor utilisation is not known to be idle. One that
    NVML does not know, or that stopped answering, has no user: the checks report it.
    """
    return tuple(_users(answer, due, most_use))


def _users(answer: NvmlAnswer, due: tuple[Gpu, ...], most_use: float) -> Iterator[Message]:
    for gpu, traits in readiness.known_gpus(answer, due):
        computing = readiness.compute_processes_of(traits)
        yield from (
            Message(
                english("computes_on_gpu", "{gpu}: {process} computes on it"),
                {"gpu": str(gpu.name), "process": readiness.process_name(one)},
            )
            for one in computing
        )
        if traits.utilisation is not None:
            if traits.utilisation > most_use and not computing:
                values = {"gpu": str(gpu.name), "use": f"{traits.utilisation:.0%}"}
                yield Message(
                    english(
                        "gpu_used_by_unnamed",
                        "{gpu}: {use} in use by a process that the driver does not name",
                    ),
                    values,
                )
        elif traits.compute_processes is None:
            yield Message(
                english(
                    "gpu_use_untold",
                    "{gpu}: its driver tells neither which processes compute on it nor how much "
                    "it is in use",
                ),
                {"gpu": str(gpu.name)},
            )
