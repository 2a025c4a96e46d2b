"""The burn: all heat sources at once, all results verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import pytest

from acceptance.core.component import Component
from acceptance.core.message import Message
from acceptance.core.parts import CPU, MEMORY
from acceptance.core.unmeasured import Gap, after_fault, not_permitted
from acceptance.diagnosis.agreement import compare
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check
from acceptance.suites.fixtures.burn import BurnResults, HostRun, PartFailed
from acceptance.suites.fixtures.burn_evidence import (
    COLUMNS,
    Heats,
    count_readings,
    evidence,
    product_digests,
)
from acceptance.suites.fixtures.gpu_loads import GpuLoads
from acceptance.suites.fixtures.host_tools import memory_errors

Siblings = Mapping[str, tuple[Component, ...]]
WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
# Of every number format: the wrong results, the rate, its ratio to the siblings' rates, and the
# share of it that is left at the end.
PRODUCTS = (
    ("burn_f64_miscompares", "burn_f64", "burn_f64_ratio", "burn_f64_kept"),
    ("burn_f32_miscompares", "burn_f32", "burn_f32_ratio", "burn_f32_kept"),
    ("burn_tf32_miscompares", "burn_tf32", "burn_tf32_ratio", "burn_tf32_kept"),
    ("burn_f16_miscompares", "burn_f16", "burn_f16_ratio", "burn_f16_kept"),
    ("burn_bf16_miscompares", "burn_bf16", "burn_bf16_ratio", "burn_bf16_kept"),
    ("burn_f8_miscompares", "burn_f8", "burn_f8_ratio", "burn_f8_kept"),
    ("burn_i8_miscompares", "burn_i8", "burn_i8_ratio", "burn_i8_kept"),
)


@pytest.mark.session("load")
# Operands and references are made before the time starts, and the last results compared after it.
@pytest.mark.costs(14.0, load="burn", per_gpu=3.0, slack=600.0)
@pytest.mark.measures(
    *chain(*PRODUCTS),
    "burn_digests_differ",
    "burn_filled",
    "burn_copied",
    "burn_copy_miscompares",
    "burn_peer_copied",
    "burn_peer_miscompares",
    "burn_cpu_failures",
    "burn_memory_errors",
    "burn_memory_filled",
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
    found = together()
    serials = uuids(due_gpus)
    _products(found.gpus, gpu_heat, serials, check)
    agreement = compare(product_digests(found.gpus), siblings)
    differing = {gpu: float(len(rows)) for gpu, rows in agreement.differing.items()}
    notes = {
        gpu: Message("note", {"text": tuple(rows.values())}) if rows else None
        for gpu, rows in agreement.differing.items()
    }
    check("burn_digests_differ", differing, notes=notes, serials=serials)
    check("burn_filled", found.gpus.values("burn_filled"), serials=serials)
    _copies(found.gpus, gpu_heat, check)
    _host(found, check)
    for gpu, output in found.gpus.outputs.items():
        for one in output.tables:
            table(gpu, one.name, one.columns, one.rows)
    for gpu, rows in evidence(found.gpus, gpu_heat).items():
        table(gpu, "burn_miscompares", COLUMNS, rows)
    if troubles := [*found.troubles(), *agreement.troubles]:
        raise PartFailed(troubles)


def _products(
    loads: GpuLoads, gpu_heat: Heats, serials: Mapping[Component, str | None], check: Check
) -> None:
    """Judge every format's wrong results, its rate against siblings, and its rate at the end."""
    for miscompares, rate, ratio, kept in PRODUCTS:
        counts, notes = count_readings(loads, miscompares, gpu_heat)
        check(miscompares, counts, notes=notes, serials=serials)
        check(rate, loads.values(rate), serials=serials)
        check.ratio(ratio, serials=serials)
        check(kept, loads.values(kept), serials=serials)


def _copies(loads: GpuLoads, gpu_heat: Heats, check: Check) -> None:
    """Judge the copies between GPU and host, and to peers, during the products."""
    for copied, miscompares in (
        ("burn_copied", "burn_copy_miscompares"),
        ("burn_peer_copied", "burn_peer_miscompares"),
    ):
        counts, notes = count_readings(loads, miscompares, gpu_heat)
        check(miscompares, counts, notes=notes)
        check(copied, loads.values(copied))


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
