"""Training: transformer layers, steps, runs whose bits must agree, and training on several GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from acceptance.core.component import Component
from acceptance.loads.train.names import DIGEST_VERSION_COLUMNS, DIGEST_VERSIONS
from acceptance.machine.gpu import Gpu, uuids
from acceptance.machine.inventory import Inventory
from acceptance.session.check import Check
from acceptance.suites.fixtures import train_digests as digests
from acceptance.suites.fixtures.train_digests import DigestsUnproved, TrainingDigests

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]


@pytest.mark.session("load")
# torch needs some seconds to start. The slack is for cards that need longer for two runs of each
# format, and for a GPU that differs, which runs again alone.
@pytest.mark.costs(8.0, load="train_digest", slack=300.0, loads_gpus=True)
@pytest.mark.measures("digest_repeats_differ", "digest_differs")
def test_digest(
    train_digests: Callable[[], TrainingDigests],
    due_gpus: tuple[Gpu, ...],
    inventory: Inventory,
    table: WriteTable,
    check: Check,
) -> None:
    """A training run of 20 steps, again and again on all GPUs at once, whose bits must be the same
    each time and on equal GPUs.

    Measured: digests of the loss and of every gradient at each step, and of all weights and moments
    at the end, of a GPT of 124 M parameters in bfloat16 and in TF32 (float16 and float32 on older
    GPUs), under strict determinism. A GPU that differs is run again alone: what it does not repeat
    is transient. Not measured: larger models, other shapes, and training on several GPUs.
    """
    found, serials = train_digests(), uuids(due_gpus)
    counts, notes = found.repeats()
    check("digest_repeats_differ", counts, notes=notes, serials=serials)
    agreement = found.agreement
    check("digest_differs", agreement.differing, notes=agreement.notes, serials=serials)
    for gpu, output in found.loads.outputs.items():
        for one in output.tables:
            table(gpu, one.name, one.columns, one.rows)
        if rows := digests.versions(found.runs[gpu], inventory.nvml.driver_version):
            table(gpu, DIGEST_VERSIONS, DIGEST_VERSION_COLUMNS, rows)
    if troubles := found.troubles():
        raise DigestsUnproved(troubles)
