"""The burn: all heat sources at once, all results verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from acceptance.core.component import Component
from acceptance.core.dtype import DTYPES
from acceptance.core.message import Message, Text
from acceptance.core.parts import CPU, MEMORY
from acceptance.core.unmeasured import Gap, after_fault, not_permitted
from acceptance.diagnosis.agreement import compare
from acceptance.loads.miscompare import WrongResult
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check
from acceptance.suites.fixtures.burn import BurnResults, HostRun, PartFailed
from acceptance.suites.fixtures.burn_evidence import (
    COLUMNS,
    Heats,
    diagnosed,
    evidence,
    product_digests,
)
from acceptance.suites.fixtures.host_tools import memory_errors

Siblings = Mapping[str, tuple[Component, ...]]
WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
# Of every number format: the wrong results, the rate, its ratio to the siblings' rates, and the
# share of it that is left at the end.
OF_FORMAT = ("burn_{}_miscompares", "burn_{}", "burn_{}_ratio", "burn_{}_kept")
# What is copied and what of it is wrong; of a link, and so without a serial number.
COPIED = ("burn_copied", "burn_peer_copied")
COPIES_WRONG = ("burn_copy_miscompares", "burn_peer_miscompares")
# What is made of digests, stress-ng and stressapptest.
BESIDE = ("burn_digests_differ", "burn_cpu_failures", "burn_memory_errors", "burn_memory_filled")


@pytest.mark.session("load")
# Operands and references are made before the time starts, and the last results compared after it.
@pytest.mark.costs(14.0, load="burn", per_gpu=3.0, slack=600.0)
@pytest.mark.measures(
    *(name.format(dtype) for dtype in DTYPES for name in OF_FORMAT),
    "burn_filled",
    *COPIED,
    *COPIES_WRONG,
    *BESIDE,
)
def test_burn(
    together: Callable[[], BurnResults],
    due_gpus: tuple[Gpu, ...],
    siblings: Siblings,
    gpu_heat: Heats,
    table: WriteTable,
    check: Check,
) -> None:
    """All GPUs, processors and RAM under full load at the same time, every result of every product
    verified.

    Measured: wrong results and their signature, the rate with every result verified, the share of
    it left at the end, results of equal GPUs against each other, copies over the links meanwhile,
    stress-ng and stressapptest beside it. Not measured: disks and network.
    """
    found, serials = together(), uuids(due_gpus)

    def note(gpu: Component, wrong: Sequence[WrongResult]) -> Text:
        return diagnosed(gpu, wrong, gpu_heat).told

    agreement = compare(product_digests(found.gpus), siblings)
    differing = {gpu: float(len(rows)) for gpu, rows in agreement.differing.items()}
    notes = {
        gpu: Message("note", {"text": tuple(rows.values())}) if rows else None
        for gpu, rows in agreement.differing.items()
    }
    check("burn_digests_differ", differing, notes=notes, serials=serials)
    for name in COPIED:
        check(name, found.gpus.values(name))
    for name in COPIES_WRONG:
        counts, diagnoses = found.gpus.counts(name, check.components(name), note)
        check(name, counts, notes=diagnoses)
    _host(found, check)
    made_here = (*COPIED, *COPIES_WRONG, *BESIDE)
    check.all(found.gpus, but=made_here, note=note, serials=serials, raise_failed=False)
    for gpu, rows in evidence(found.gpus, check.components, gpu_heat).items():
        table(gpu, "burn_miscompares", COLUMNS, rows)
    if troubles := [*found.troubles(), *agreement.troubles]:
        raise PartFailed(troubles)


def _host(results: BurnResults, check: Check) -> None:
    """Judge processors and RAM by the results of stress-ng and stressapptest."""
    output = results.processors.output
    failures = {CPU: float(output.outcome == "fail")} if output is not None else {}
    notes = {CPU: output.reason if output is not None else None}
    check("burn_cpu_failures", failures, notes=notes, skipped=_missing(CPU, results.processors))
    output, missing = results.memory.output, _missing(MEMORY, results.memory)
    errors = {MEMORY: memory_errors(output)} if output is not None else {}
    notes = {MEMORY: output.reason if output is not None else None}
    check("burn_memory_errors", errors, notes=notes, skipped=missing)
    whole = output is not None and output.outcome != "fail"
    filled = dict(output.reading("stressapptest_tested")) if output is not None and whole else {}
    unread: Mapping[Component, Gap] = (
        {MEMORY: after_fault(Message("not_all_tested"))} if output is not None else missing
    )
    check("burn_memory_filled", filled, skipped=unread)


def _missing(component: Component, run: HostRun) -> Mapping[Component, Gap]:
    return {component: not_permitted(run.missing)} if run.missing is not None else {}
