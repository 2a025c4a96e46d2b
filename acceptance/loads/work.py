"""What each load of a profile works on: said here, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What a load does to the machine.

    `gpus`: it works on GPUs. `busy`: it keeps every GPU under test at work for all of its time, so
    a GPU that it tests was loaded. `compares`: it compares every result, all the time. `heats`: it
    keeps its parts in full use, and runs after the others of its session.
    """

    gpus: bool = False
    busy: bool = False
    compares: bool = False
    heats: bool = False


_HOST = Work()
_GPUS = Work(gpus=True)
_BUSY = Work(gpus=True, busy=True)  # of products and training only some results are compared
# All bits of the training are compared. Between its many short operations a GPU may wait.
_DIGEST = Work(gpus=True, compares=True)
_MEMORY = Work(gpus=True, busy=True, compares=True)
_BURN = Work(gpus=True, busy=True, compares=True, heats=True)
_PULSES = Work(gpus=True, heats=True)  # between two pulses the GPUs rest

# By the name that a profile gives it. Seconds in a profile for any other name are a mistake.
LOADS: Mapping[str, Work] = {
    "disk_self_test": _HOST,
    "storage_kept": _HOST,
    "storage_write": _HOST,
    "storage_verify": _HOST,
    "storage_read": _HOST,
    "storage_write_random": _HOST,
    "storage_keep": _HOST,
    "storage_memmap": _HOST,
    "storage_feed": _HOST,
    "storage_checkpoint": _HOST,
    "storage_full_cache": _HOST,
    "stress_ng": _HOST,
    "cpu_gemm": _HOST,
    "cpuburn": _HOST,
    "memory_bandwidth": _HOST,
    "stressapptest": _HOST,
    "memory_random": _HOST,
    "nvbandwidth": _GPUS,
    "bandwidth_test": _GPUS,
    "p2p_bandwidth": _GPUS,
    "collective": _GPUS,
    "gpu_burn_float": _BURN,
    "gpu_burn_tensor": _BURN,
    "gpu_burn_double": _BURN,
    "gpu_gemm": _BUSY,
    "gpu_gemm_table": _GPUS,
    "gpu_copy": _GPUS,
    "vram": _MEMORY,
    "train_layers": _BUSY,
    "train_layer_table": _GPUS,
    "train_step": _BUSY,
    "train_step_table": _GPUS,
    "train_digest": _DIGEST,
    "train_parallel": _GPUS,
    "train_parallel_table": _GPUS,
    "burn": _BURN,
    "power_step": _PULSES,
    "power_pulses": _PULSES,
    "power_ladder": _PULSES,
}


def work_of(load: str | None) -> Work:
    """What a load does to the machine; nothing where there is none.

    Raises KeyError for a load that there is not.
    """
    return LOADS[load] if load is not None else _HOST
