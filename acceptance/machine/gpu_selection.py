"""The GPUs that a run tests: all of them, or those that `--gpus` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptance.core import parts
from acceptance.core.component import Component
from acceptance.core.message import Message
from acceptance.machine.gpu import Gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"


class SelectionError(Exception):
    """The GPU selection is not clear; the message is one sentence with the cure."""


def environment(due: Sequence[Gpu]) -> dict[str, str]:
    """The environment in which CUDA sees the due GPUs alone, in their order.

    A tool's device 0 is then the first due GPU. They are given by UUID: CUDA's own order is by
    speed by default, and an index moves when a card is lost. A GPU without a UUID was never known
    to NVML, and a run with one ends before any load.
    """
    uuids = ",".join(gpu.uuid for gpu in due if gpu.uuid is not None)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: uuids}


def refuse_outside(asked: Sequence[str], environ: Mapping[str, str]) -> Message | None:
    """A note on a CUDA_VISIBLE_DEVICES that the caller has set; None where it is not set.

    With `--gpus` the variable is not used, and the note says so. Without, it raises SelectionError:
    to honour the variable would pass a machine with a hidden part; to ignore it silently would load
    cards that somebody meant to spare.
    """
    value = environ.get(VISIBLE)
    if value is None:
        return None
    if asked:
        values = {"variable": f"{VISIBLE}={value}", "option": f"--gpus {','.join(asked)}"}
        return Message("variable_not_used", values)
    raise SelectionError(
        f"{VISIBLE}={value} hides GPUs from CUDA: unset it to test the whole machine, or "
        "name the GPUs with --gpus (make: GPUS=0,1)"
    )


def names(asked: Sequence[str], gpus: Sequence[Gpu], count: int) -> tuple[Component, ...]:
    """The names (gpu0, ...) of the selected GPUs, in the machine's order.

    All `count` due GPUs when `asked` is empty. Each word is an index (0, or gpu0: the order of the
    PCI addresses, as `nvidia-smi` counts), a UUID, or a prefix of a UUID that no other GPU shares.
    Raises SelectionError.
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
        raise SelectionError(f"--gpus {word}: there is no {name}: this machine has {_all(every)}")
    known = [
        gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.lower().startswith(word.lower())
    ]
    if len(known) == 1 and len(word) > len("GPU-"):
        return known[0].name
    uuids = (
        ", ".join(f"{gpu.name} {gpu.uuid}" for gpu in gpus if gpu.uuid is not None)
        or "no GPU tells its UUID"
    )
    why = "more than one GPU begins so" if len(known) > 1 else "no GPU has this index or UUID"
    raise SelectionError(f"--gpus {word}: {why}: {uuids}")


def _all(every: Sequence[Component]) -> str:
    return (
        "no GPU"
        if not every
        else str(every[0])
        if len(every) == 1
        else f"{every[0]} to {every[-1]}"
    )
