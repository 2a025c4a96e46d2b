"""The GPUs that a run tests: all of them, those that `--gpus` names, or those of a Slurm job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptance.core import parts
from acceptance.core.message import Message, UserError, english
from acceptance.core.parts import Component
from acceptance.machine.gpu import Gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
SLURM_JOB = "SLURM_JOB_ID"
# Set by deploy/slurm/job, which is submitted with --exclusive, to the id of its own job.
EXCLUSIVE = "RIGPROOF_EXCLUSIVE_JOB"
_NO_GPU = ("", "-1", "NoDevFiles")  # the last is Slurm's


def environment(due: Sequence[Gpu]) -> dict[str, str]:
    """The environment in which CUDA sees the due GPUs alone, in their order.

    A tool's device 0 is then the first due GPU. They are given by UUID: CUDA's own order is by
    speed by default, and an index moves when a card is lost. A GPU without a UUID was never known
    to NVML, and a run with one ends before any load.
    """
    uuids = ",".join(gpu.uuid for gpu in due if gpu.uuid is not None)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: uuids}


@dataclass(frozen=True, slots=True)
class Job:
    """The Slurm job that this run is in.

    `visible` is its CUDA_VISIBLE_DEVICES, None where that is not set: then all GPUs are the job's.
    `whole` says whether the node is the job's alone.
    """

    id: str
    visible: str | None
    whole: bool


def job(environ: Mapping[str, str], threads: int | None) -> Job | None:
    """The Slurm job around this run, None outside of one. `threads` are the machine's."""
    own = environ.get(SLURM_JOB)
    if not own:
        return None
    processors = environ.get("SLURM_CPUS_ON_NODE", "")
    known = processors.isascii() and processors.isdigit() and threads is not None
    every = known and int(processors) >= (threads or 0)
    return Job(own, environ.get(VISIBLE), every or environ.get(EXCLUSIVE) == own)


def refuse_outside(asked: Sequence[str], environ: Mapping[str, str]) -> Message | None:
    """A note on a CUDA_VISIBLE_DEVICES that the caller has set; None where it is not set.

    With `--gpus` the variable is not used, and the note says so. In a Slurm job it names the GPUs
    that the job was given, which are tested. Elsewhere it raises UserError: to honour the
    variable would pass a machine with a hidden part; to ignore it silently would load cards that
    somebody meant to spare.
    """
    value = environ.get(VISIBLE)
    if value is None:
        return None
    variable = f"{VISIBLE}={value}"
    if asked:
        values = {"variable": variable, "option": f"--gpus {','.join(asked)}"}
        return Message(
            english(
                "variable_not_used",
                "{variable} is set and not used: {option} says which GPUs are tested",
            ),
            values,
        )
    if own := environ.get(SLURM_JOB):
        return Message(
            english(
                "gpus_of_job",
                "{variable}: these GPUs were given to Slurm job {job}, and these are tested",
            ),
            {"variable": variable, "job": own},
        )
    raise UserError(
        f"{variable} hides GPUs from CUDA: unset it to test the whole machine, or "
        "name the GPUs with --gpus (make: GPUS=0,1)"
    )


def names_of_job(job: Job, gpus: Sequence[Gpu], count: int) -> tuple[Component, ...]:
    """The names of the GPUs that a job was given, in the machine's order; all `count` due ones
    where nothing says which.

    An index counts the GPUs that NVML shows, in the order of their PCI addresses: where Slurm hides
    the others from the job, its first GPU is 0, whichever of the machine it is. Raises
    UserError.
    """
    every = tuple(parts.Gpu(index) for index in range(count))
    if job.visible is None or not count:
        return every
    told = f"Slurm job {job.id} has {VISIBLE}={job.visible}"
    if job.visible in _NO_GPU:
        raise UserError(f"{told}, which is no GPU: ask for GPUs with --gres=gpu:N")
    seen = [gpu for gpu in gpus if gpu.uuid is not None]
    chosen = set()
    for word in job.visible.split(","):
        index = int(word) if word.isascii() and word.isdigit() else None
        known = _of_uuid(word, gpus) if index is None else seen[index : index + 1]
        if len(known) != 1:
            raise UserError(
                f"{told}, and {word!r} is no GPU that NVML shows here (a part of one, by MIG, "
                "cannot be tested): name the GPUs with --gpus"
            )
        chosen.add(known[0].name)
    return tuple(name for name in every if name in chosen)


def names(asked: Sequence[str], gpus: Sequence[Gpu], count: int) -> tuple[Component, ...]:
    """The names (gpu0, ...) of the selected GPUs, in the machine's order.

    All `count` due GPUs when `asked` is empty. Each word is an index (0, or gpu0: the order of the
    PCI addresses, as `nvidia-smi` counts), a UUID, or a prefix of a UUID that no other GPU shares.
    Raises UserError.
    """
    every = tuple(parts.Gpu(index) for index in range(count))
    chosen = {_name(word, gpus, every) for word in asked}
    return tuple(name for name in every if not asked or name in chosen)


def _name(word: str, gpus: Sequence[Gpu], every: Sequence[Component]) -> Component:
    index = word.removeprefix("gpu")
    if index.isascii() and index.isdigit():
        name = parts.Gpu(int(index))
        if name in every:
            return name
        raise UserError(f"--gpus {word}: there is no {name}: this machine has {_all(every)}")
    known = _of_uuid(word, gpus)
    if len(known) == 1 and len(word) > len("GPU-"):
        return known[0].name
    uuids = (
        ", ".join(f"{gpu.name} {gpu.uuid}" for gpu in gpus if gpu.uuid is not None)
        or f"no GPU reports a UUID; this machine has {_all(every)}"
    )
    why = "more than one GPU begins so" if len(known) > 1 else "no GPU has this index or UUID"
    raise UserError(f"--gpus {word}: {why}: {uuids}")


def _of_uuid(word: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs whose UUID begins so."""
    return [
        gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.lower().startswith(word.lower())
    ]


def _all(every: Sequence[Component]) -> str:
    return (
        "no GPU"
        if not every
        else str(every[0])
        if len(every) == 1
        else f"{every[0]} to {every[-1]}"
    )
