"""A checkpoint of a training state: written in shards, flushed, and read back from the disk.

    python -m acceptance.loads storage_checkpoint folder=DIR component=disk:nvme0n1
        bytes=1073741824

The state has 16 bytes a parameter, as training in mixed precision with Adam keeps it (Rajbhandari
et al., "ZeRO", SC20, section 3.1): master weight, moment and variance in float32, weight and
gradient in 16 bits. As many parameters as fit `bytes` are spread over four shards. Each is a file
of its own: made under a temporary name, written tensor by tensor from memory, flushed by fsync(2),
renamed, and its folder flushed. Then the page cache of the shards is emptied, and each is read into
memory and compared bit for bit with what its seed gives; that comparison is not in the time.

The readings are seconds for a billion parameters: of the writing until the last flush, and of the
reading. The state is written once.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

import numpy as np

from acceptance.loads.cpu.memory_bandwidth import available_bytes
from acceptance.loads.storage.contract import CHECKPOINT_READINGS, Checkpoint
from acceptance.loads.storage.job import Job, read_bytes, require_cold, require_memory
from acceptance.loads.storage.scratch_file import ScratchFile, flush_folder
from acceptance.loads.storage.tokens import (
    BLOCK,
    WORD,
    Content,
    Words,
    damage,
    faults,
    flip,
    wrong_file,
)

SHARDS = 4
# The tensors of a shard, and the bytes that each has of a parameter.
TENSORS = {"master": 4, "moment": 4, "variance": 4, "weight": 2, "gradient": 2}
BYTES = sum(TENSORS.values())  # of a parameter
_STEP = 2048  # parameters: every tensor is whole blocks of 4 KiB
_BILLION = 1e9


def shard_parameters(size: int) -> int:
    """Parameters of each shard of a state of at most `size` bytes."""
    return size // SHARDS // BYTES // _STEP * _STEP


def write(job: Job, number: int, state: Words) -> ScratchFile:
    """Write a shard as a checkpoint is written: whole and under its name, or not at all."""
    name = f"shard-{number}"
    file = ScratchFile.create(job.folder, f"{name}.tmp", state.nbytes)
    try:
        offset, parameters = 0, state.nbytes // BYTES
        for width in TENSORS.values():
            tensor = state[offset // WORD : (offset + width * parameters) // WORD]
            file.write(offset, tensor.data.cast("B"))
            offset += tensor.nbytes
        file.flush()
        file.rename(name)
        flush_folder(job.folder, name)
    except BaseException:
        file.close()
        raise
    return file


def measure(ask: Checkpoint, job: Job) -> None:
    """The whole load."""
    parameters = shard_parameters(ask.bytes)
    size = BYTES * parameters
    require_memory((SHARDS + 1) * size, available_bytes())
    contents = [Content(job.seed, 1 + shard) for shard in range(SHARDS)]
    states = [content.words(0, size // WORD) for content in contents]
    with ExitStack() as stack:
        files: list[ScratchFile] = []
        began = time.monotonic()
        for number, state in enumerate(states):
            files.append(stack.enter_context(write(job, number, state)))
        wrote = time.monotonic() - began
        hit = size // BLOCK // 2 * BLOCK
        damage(files[0], contents[0], ask.inject, hit, 0)
        if ask.inject == "short":
            files[0].shorten(hit)
        del states, state
        for file in files:
            file.drop()
        got, read = np.empty(size // WORD, dtype=np.uint64), 0.0
        counted = 0
        for number, file in enumerate(files):
            got.fill(0)
            before, began = read_bytes(), time.monotonic()
            file.read_into(0, got.data.cast("B"))
            read += time.monotonic() - began
            here = read_bytes() - before
            require_cold(file.name, size, here)
            counted += here
            if number == 0 and ask.inject == "flight":
                flip(got, 1)
            for offset, found in faults(contents[number], 0, got):
                content = contents[number]
                wrong = wrong_file(ask.disk, "checkpoint", file.name, 0, content, offset, found)
                job.count(wrong)
    billions = SHARDS * parameters / _BILLION
    job.output.note(
        f"{SHARDS * parameters} parameters in {SHARDS} shards of {size} bytes: written in "
        f"{wrote:.3f} s, read in {read:.3f} s; the kernel counts {counted} bytes from the disk"
    )
    values = (wrote / billions, read / billions, job.wrong)
    for (name, unit), value in zip(CHECKPOINT_READINGS.items(), values, strict=True):
        job.output.reading(name, unit, ask.disk, value)
