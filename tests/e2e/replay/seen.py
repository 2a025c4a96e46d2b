"""The GPUs that a CUDA program sees on the described machine, and the healthy figures of their
models.

Programs of this folder stand in for the upstream tools, on the host and in containers: of the
standard library alone. The description is the one that the fake NVML library answers with; which
GPUs of it are seen, CUDA_VISIBLE_DEVICES says. `faults.json` beside them may say how a program
misbehaves, by its name.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import described
from described import Gpu as Gpu
from described import Machine as Machine

# GB/s that a lane carries one way, by PCI Express generation, and the share of it that healthy
# cards reach.
LANE = {3: 0.985, 4: 1.969, 5: 3.938}
SHARE = 0.83
NVLINK_SHARE = 0.9
SICK = 1  # the GPU that a fault is shown on, by the program's own count


@dataclass(frozen=True)
class Figures:
    """Of one model: gpu-burn's TFLOP/s by mode, GB/s of a copy inside the card (each byte once),
    ns from the card to host memory.
    """

    single: float
    tensor: float
    double: float
    local: float
    latency: float


MODELS = {
    "NVIDIA GeForce RTX 3090": Figures(24.8, 47.0, 0.54, 405.0, 1400.0),
    "NVIDIA GeForce RTX 3090 Ti": Figures(31.3, 55.35, 0.62, 445.0, 1380.0),
    "NVIDIA GeForce RTX 4090": Figures(52.2, 146.0, 1.26, 460.0, 1310.0),
    "NVIDIA A100-PCIE-40GB": Figures(17.6, 118.6, 17.9, 650.0, 1250.0),
    "NVIDIA H100 80GB HBM3": Figures(51.5, 345.0, 53.9, 1320.0, 1150.0),
    "NVIDIA H200": Figures(51.1, 348.0, 54.2, 2083.0, 1172.0),
}


def machine() -> Machine:
    return described.read(Path(os.environ["RIGPROOF_FAKE_NVML"]))


def gpus(found: Machine) -> list[Gpu]:
    """In CUDA's order; as CUDA does, it stops at the first name that it does not know."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return list(found.gpus)
    by_uuid = {gpu.readings["uuid"]: gpu for gpu in found.gpus}
    seen = []
    for word in visible.split(","):
        if word not in by_uuid:
            break
        seen.append(by_uuid[word])
    return seen


def fault(program: str) -> str | None:
    """How this program is to misbehave."""
    file = Path(__file__).with_name("faults.json")
    told: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return told.get(program)


def figures(gpu: Gpu) -> Figures:
    return MODELS[gpu.readings["name"]]


def host_rate(gpu: Gpu) -> float:
    """GB/s between host and GPU over the link as it is trained now."""
    return LANE[gpu.readings["link_gen"]] * float(gpu.readings["link_width"]) * SHARE


def staged_rate(first: Gpu, second: Gpu) -> float:
    """GB/s from one GPU to another through host memory."""
    return 0.84 * min(host_rate(first), host_rate(second))


def peers(found: Machine, first: Gpu, second: Gpu) -> bool:
    return found.pair(first.index, second.index).get("p2p") == "ok"


def peer_rate(found: Machine, first: Gpu, second: Gpu) -> float:
    """GB/s from one GPU to another with peer access, where there is none through host memory."""
    if not peers(found, first, second):
        return staged_rate(first, second)
    links = min(nvlink_rate(first), nvlink_rate(second))
    return links or min(host_rate(first), host_rate(second))


def nvlink_rate(gpu: Gpu) -> float:
    active = [link for link in (gpu.links or {}).values() if link["active"]]
    return NVLINK_SHARE * sum(float(link["speed_mbs"]) for link in active) / 1000


def wobble(value: float, *place: int) -> float:
    """A little different from place to place, and always the same."""
    return value * (
        1 + 0.004 * ((sum((n + 3) * (i + 7) for i, n in enumerate(place)) * 37 % 11) - 5) / 5
    )


def misbehave(how: str | None) -> None:
    """What any program can do wrong before it has said anything."""
    if how == "hangs":
        time.sleep(900)
    elif how == "floods":
        block = (b"a flood of words " * 60 + b"\n") * 1024
        for _ in range(20):
            sys.stdout.buffer.write(block)
    elif how == "crashes":
        sys.stdout.flush()
        os.kill(os.getpid(), 11)


def leave(text: str, code: int = 0) -> NoReturn:
    """Print the text and end."""
    sys.stdout.write(text)
    sys.stdout.flush()
    os._exit(code)
