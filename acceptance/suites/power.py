"""Full load that comes and goes: what a supply does not bear, though it bears the steady burn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from acceptance.core.message import Gap, Listed, Message, Unmeasured, not_offered
from acceptance.core.parts import GPUS, MACHINE, Component
from acceptance.loads.pulse.contract import MISCOMPARES
from acceptance.loads.pulse.selection import Check as PowerCheck
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check, ErrorInLines
from acceptance.session.loads import first_wrong
from acceptance.session.tools import Outputs
from acceptance.suites.fixtures.host_tools import memory_errors
from acceptance.suites.fixtures.power import TRAIN_ROWS, TRAIN_S, PowerRun

RunSteps = Callable[[PowerCheck], PowerRun]
WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
# Of every check: the steps made, wrong results, slowdowns, the highest power, its ratio to the
# siblings' and failures of processors and RAM.
STEP = (
    "power_step_made",
    "power_step_miscompares",
    "power_step_slowdowns",
    "power_step_excursion",
    "power_step_excursion_ratio",
    "power_step_host_failures",
)
PULSES = (
    "power_pulses_made",
    "power_pulses_miscompares",
    "power_pulses_slowdowns",
    "power_pulses_excursion",
    "power_pulses_excursion_ratio",
    "power_pulses_host_failures",
)
LADDER = (
    "power_ladder_made",
    "power_ladder_miscompares",
    "power_ladder_slowdowns",
    "power_ladder_excursion",
    "power_ladder_excursion_ratio",
    "power_ladder_host_failures",
)
TRAIN = ("s", "W", "MHz")


# The library starts and the first product is proved before the first step.
@pytest.mark.session("load")
@pytest.mark.costs(8.0, load="power_ladder", per_gpu=2.0, slack=180.0, last=True)
@pytest.mark.measures(*LADDER)
def test_ladder(
    power_run: RunSteps, due_gpus: tuple[Gpu, ...], table: WriteTable, check: Check
) -> None:
    """Full load that comes and goes twice a second, on one GPU, two, four, and all, with processors
    and RAM loaded.

    Measured: that every step is made with right results, slowdowns, and the highest power that NVML
    shows. Not measured: watts between two samples, and what the supply's other outputs draw.
    """
    judge_power(LADDER, power_run("power.ladder"), due_gpus, table, check)


@pytest.mark.session("load")
@pytest.mark.costs(3.0, load="power_step", per_gpu=1.0, slack=180.0, last=True)
@pytest.mark.measures(*STEP)
def test_step(
    power_run: RunSteps, due_gpus: tuple[Gpu, ...], table: WriteTable, check: Check
) -> None:
    """All GPUs from idle to full load at once, with processors and RAM loaded.

    Measured: that the machine stands it, right results, slowdowns, and the highest power that NVML
    shows. Not measured: watts between two samples, and what the supply's other outputs draw.
    """
    judge_power(STEP, power_run("power.step"), due_gpus, table, check)


@pytest.mark.session("load")
@pytest.mark.costs(8.0, load="power_pulses", per_gpu=1.0, slack=180.0, last=True)
@pytest.mark.measures(*PULSES)
def test_pulses(
    power_run: RunSteps, due_gpus: tuple[Gpu, ...], table: WriteTable, check: Check
) -> None:
    """Square waves of full load on all GPUs at once, slow to fast, with processors and RAM loaded.

    Measured: the edges that were commanded at each frequency, right results, slowdowns, and the
    highest power that NVML shows. Not measured: watts between two samples, and what the supply's
    other outputs draw.
    """
    judge_power(PULSES, power_run("power.pulses"), due_gpus, table, check)


def judge_power(
    names: tuple[str, str, str, str, str, str],
    found: PowerRun,
    due_gpus: tuple[Gpu, ...],
    table: WriteTable,
    check: Check,
) -> None:
    """Judge the steps of one check, and raise ErrorInLines where a part proved nothing."""
    made, miscompares, slowdowns, excursion, ratio, host = names
    serials, troubles = uuids(due_gpus), list(found.troubles())
    if found.made is not None:
        check(made, {GPUS: found.made}, notes={GPUS: found.watch.stop})
    for component, one in found.results.tables():
        table(component, one.name, one.columns, one.rows)
    # the load does not know for which check it works
    wrong, notes = found.results.counts(miscompares, check.components(miscompares), first_wrong)
    check(miscompares, {**found.results.values(MISCOMPARES), **wrong}, notes=notes, serials=serials)
    seen = found.during()
    check(
        slowdowns,
        {gpu: float(one.slowdowns) for gpu, one in seen.items() if one.samples},
        notes={
            gpu: Message("note", {"text": Listed(tuple(sorted({name for _, name in one.reasons})))})
            for gpu, one in seen.items()
            if one.slowdowns
        },
        serials=serials,
    )
    power: dict[Component, float] = {
        gpu: max(watts for _, watts, _ in one.samples) / one.limit_w
        for gpu, one in seen.items()
        if one.samples and one.limit_w
    }
    unseen: dict[Component, Gap] = {
        gpu.name: not_offered(
            Message("power_not_measured", {"gpu": str(gpu.name), "why": Message("power_not_told")})
        )
        for gpu in due_gpus
        if gpu.name not in power
    }
    check(excursion, power, skipped=unseen, serials=serials)
    check.ratio(ratio, skipped=unseen, serials=serials)
    _host(host, found.host, check)
    _trains(found, table)
    if troubles:
        raise ErrorInLines(troubles)


def _host(name: str, host: Outputs, check: Check) -> None:
    """Judge processors and RAM beside the steps; one that is not installed is left out.

    One that was ended with a load that stopped early proves a failure, and no pass.
    """
    outputs = host.outputs
    count = sum(memory_errors(one) for one in outputs.values())
    # what failed comes before what was not permitted
    unseen = sorted(host.skipped.values(), key=lambda gap: gap.why is not Unmeasured.AFTER_FAULT)
    ended = unseen and unseen[0].why is Unmeasured.AFTER_FAULT
    if not outputs or (ended and not count):
        check(name, {}, skipped={MACHINE: unseen[0]} if unseen else {})
        return
    told = [outputs[place].reason for place in outputs if place in host.faulty]
    check(name, {MACHINE: count}, notes={MACHINE: told[0] if told else None})


def _trains(found: PowerRun, table: WriteTable) -> None:
    """Power and clock of each GPU in the first seconds of the first wave."""
    wave = next((one for one in found.begun if one.step.kind == "square"), None)
    if wave is None:
        return
    for gpu, one in found.watch.gpus.items():
        samples = one.within(wave.begins_s, wave.begins_s + TRAIN_S).samples[:TRAIN_ROWS]
        rows = [(round(at_s - wave.begins_s, 3), watts, mhz) for at_s, watts, mhz in samples]
        if rows:
            table(gpu, "power_train", TRAIN, rows)
