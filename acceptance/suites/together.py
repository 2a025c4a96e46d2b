"""The burn: all heat sources at once, all results verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from acceptance.core.dtype import DTYPES
from acceptance.core.message import Message, Text, after_fault
from acceptance.core.parts import Component
from acceptance.diagnosis.agreement import compare
from acceptance.loads.miscompare import WrongResult
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check, ErrorInLines
from acceptance.session.loads import Results
from acceptance.session.tools import Outputs
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
    together: Callable[[], tuple[Results, Outputs]],
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
    (burns, host), serials = together(), uuids(due_gpus)

    def note(gpu: Component, wrong: Sequence[WrongResult]) -> Text:
        return diagnosed(gpu, wrong, gpu_heat).told

    agreement = compare(product_digests(burns), siblings)
    differing = {gpu: float(len(rows)) for gpu, rows in agreement.differing.items()}
    notes = {
        gpu: Message("note", {"text": tuple(rows.values())}) if rows else None
        for gpu, rows in agreement.differing.items()
    }
    check("burn_digests_differ", differing, notes=notes, serials=serials)
    for name in COPIED:
        check(name, burns.values(name))
    for name in COPIES_WRONG:
        counts, diagnoses = burns.counts(name, check.components(name), note)
        check(name, counts, notes=diagnoses)
    check.faults("burn_cpu_failures", host)
    check.faults("burn_memory_errors", host, count=memory_errors)
    unread = after_fault(Message("not_all_tested"))
    check.figures("burn_memory_filled", host, "stressapptest_tested", unread)
    made_here = (*COPIED, *COPIES_WRONG, *BESIDE)
    check.all(burns, but=made_here, note=note, serials=serials, raise_failed=False)
    for gpu, rows in evidence(burns, check.components, gpu_heat).items():
        table(gpu, "burn_miscompares", COLUMNS, rows)
    if troubles := [*burns.troubles(), *host.troubles(), *agreement.troubles]:
        raise ErrorInLines(troubles)
