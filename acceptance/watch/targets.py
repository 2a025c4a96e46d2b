"""GPUs to be watched, and how the watch finds them through NVML before it begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from acceptance.core.message import english
from acceptance.core.parts import Component
from acceptance.observe.gpu_sample import Sampler
from acceptance.observe.nvml import refused
from acceptance.observe.nvml_call import LOST, ask, text
from acceptance.wording.errors import WordedError


class WatchTarget(msgspec.Struct, frozen=True):
    """A GPU to be watched: its name in the journal, its expected UUID and its PCI address."""

    name: Component
    uuid: str | None
    pci_address: str


@dataclass(frozen=True, slots=True)
class AttachedGpu:
    """A GPU at the start of the watch: with its sampler, or with NVML's error if it is lost."""

    known: WatchTarget
    handle: Any
    sampler: Sampler | None = field(hash=False)
    refusal: Any = None


def attach(nvml: Any, gpus: Sequence[WatchTarget]) -> tuple[AttachedGpu, ...]:
    """Find every GPU through NVML.

    Raises WordedError when the UUID at an address is not the expected one, when a GPU does not
    answer for another reason than its loss, or when two GPUs have the same name, address or UUID.
    """
    for name in ("name", "pci_address", "uuid"):
        counts = Counter(getattr(gpu, name) for gpu in gpus if getattr(gpu, name) is not None)
        if twice := [value for value, count in counts.items() if count > 1]:
            raise WordedError(
                english(
                    "watch_gpus_alike",
                    "two GPUs have the same {what} {value}: nobody could say which of them is "
                    "watched",
                ),
                what=name,
                value=str(twice[0]),
            )
    return tuple(_find(nvml, gpu) for gpu in gpus)


def _find(nvml: Any, gpu: WatchTarget) -> AttachedGpu:
    try:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(gpu.pci_address)
        uuid = ask(nvml, "nvmlDeviceGetUUID", handle)
        if gpu.uuid is not None and uuid is not None and text(uuid) != gpu.uuid:
            place = {"gpu": str(gpu.name), "address": gpu.pci_address}
            raise WordedError(
                english("watch_other_gpu", "{gpu}: at {address} is {uuid} and not {due}"),
                **place,
                uuid=text(uuid),
                due=gpu.uuid,
            )
        return AttachedGpu(gpu, handle, Sampler.find(nvml, handle))
    except nvml.NVMLError as refusal:
        if refusal.value not in LOST:
            place = {"gpu": str(gpu.name), "address": gpu.pci_address}
            raise WordedError(
                english("watch_refused", "{gpu} ({address}) cannot be watched: {why}"),
                **place,
                why=refused(refusal),
            ) from refusal
        return AttachedGpu(gpu, None, None, refusal)
