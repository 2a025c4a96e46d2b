"""The GPUs' thermal steady state: temperature, clocks and links during the burn of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from acceptance.core.evidence import Table
from acceptance.core.message import Message, english
from acceptance.core.parts import Component
from acceptance.core.record import Outcome
from acceptance.diagnosis import steady_state
from acceptance.diagnosis.gpu_history import GpuHistory, NotMeasured
from acceptance.diagnosis.gpu_work import idle_clock, power_trouble
from acceptance.diagnosis.laps import Laps, slots
from acceptance.diagnosis.steady_state import COLUMNS, BurnTelemetry, growth_around, spreads
from acceptance.loads.burn.contract import LAPS
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check, Figures
from acceptance.wording.errors import WordedError, each_once

NamedSpans = Sequence[tuple[str, float, float]]
WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]

BURN = "together.burn"
# The links' error counters by measurement; a driver may report only some of NVLink's.
COUNTERS = {
    "burn_errors_new": ("pcie_replays",),
    "burn_nvlink_errors_new": ("nvlink_replays", "nvlink_crc_errors", "nvlink_recoveries"),
}
# A card that lost more of its clock, or is that much hotter than its siblings, gets a note with
# likely causes.
NOTABLE_KEPT = 0.97
NOTABLE_C = 5.0


@pytest.mark.session("host-after")
@pytest.mark.costs(0.5)
@pytest.mark.follows(BURN)
@pytest.mark.measures(
    "burn_settled",
    "burn_clock_kept",
    "burn_temperature_spread",
    "burn_errors_new",
    "burn_nvlink_errors_new",
    "burn_power_short",
)
def test_steady(
    gpu_history: Mapping[Component, GpuHistory],
    due_gpus: tuple[Gpu, ...],
    load_spans: NamedSpans,
    load_outcomes: Mapping[str, Outcome],
    load_tables: Sequence[Table],
    siblings: Mapping[str, tuple[Component, ...]],
    table: WriteTable,
    check: Check,
) -> None:
    """How each GPU's heat and clocks came to rest while the whole machine burned, beside its
    equals, and what its link counted meanwhile.

    Measured: seconds until each format's turn is within 2 degC of its last, the clock of each
    format in the last lap against that in the first, the last lap's temperature against its
    siblings', and errors of its links during the burn. A burn that ended in an error, a power that
    was not measured, and the clock of an idle card prove nothing. Not measured: other seasons.
    """
    span = next(((begin, end) for name, begin, end in load_spans if name == BURN), None)
    if span is None:
        raise WordedError(
            english(
                "burn_not_ended",
                "{check} did not come to its end in this run, so nothing is known of heat under "
                "full load",
            ),
            check=BURN,
        )
    if load_outcomes[BURN] not in ("pass", "fail"):
        raise WordedError(
            english(
                "burn_ended_in",
                "{check} ended in {outcome}, so nothing is known of heat under full load: cure "
                "that first, then run again",
            ),
            check=BURN,
            outcome=load_outcomes[BURN],
        )
    troubles: list[Message] = []
    burns: dict[Gpu, BurnTelemetry] = {}
    for gpu in due_gpus:
        history = gpu_history.get(gpu.name)
        if history is None:
            troubles.append(
                Message(
                    english(
                        "no_telemetry",
                        "{gpus}: no telemetry was recorded: journal.jsonl says why the watch did "
                        "not run",
                    ),
                    {"gpus": str(gpu.name)},
                )
            )
            continue
        if trouble := power_trouble(history, [span]) or idle_clock(
            history, span, gpu.traits.max_sm_clock_mhz if gpu.traits else None
        ):
            troubles.append(trouble)
            continue
        try:
            burns[gpu] = BurnTelemetry.within(history, *span)
        except NotMeasured as error:
            troubles.append(error.message)
    tables = {
        one.component: slots(one) for one in load_tables if (one.check, one.name) == (BURN, LAPS)
    }
    laps = {
        gpu: Laps(burn.history, found)
        for gpu, burn in burns.items()
        if (found := tables.get(gpu.name))
    }
    _heat(burns, laps, siblings, check, troubles)
    _errors(gpu_history, due_gpus, span, check, troubles)
    _connectors(burns, siblings, check, troubles)
    for gpu, burn in burns.items():
        table(gpu.name, "burn_steady", COLUMNS, burn.rows())
    if troubles:
        raise WordedError("clauses", why=each_once(troubles))


def _heat(
    burns: Mapping[Gpu, BurnTelemetry],
    laps: Mapping[Gpu, Laps],
    siblings: Mapping[str, tuple[Component, ...]],
    check: Check,
    troubles: list[Message],
) -> None:
    """Judge settling time, clock and temperature spread of every GPU that burned."""
    settled, kept, spread = Figures(), Figures(), Figures()
    final: dict[Component, float] = {}
    for gpu, burn in burns.items():
        short = (burn.short_note,) if burn.short_note is not None else ()
        heat = laps.get(gpu, burn)
        try:
            rest = heat.settle_time()
            settled.add(gpu.name, rest.seconds, _in_slot(gpu.pci_address, rest.note, *short))
            final[gpu.name] = heat.final_temperature()
        except NotMeasured as error:
            troubles.append(error.message)
        try:
            share, note = heat.clock_kept()
            low = share < NOTABLE_KEPT
            likely = (
                (Message(english("likely", "likely: {causes}"), {"causes": burn.causes()}),)
                if low
                else ()
            )
            kept.add(gpu.name, share, _in_slot(gpu.pci_address, note, *likely, *short))
        except NotMeasured as error:
            troubles.append(error.message)
    places = {gpu.name: gpu.pci_address for gpu in burns}
    for name, (more, middle) in spreads(final, siblings).items():
        beside = {"temperature": f"{final[name]:.0f}", "equals": f"{middle:.0f}"}
        causes = (
            (
                Message(
                    english(
                        "hotter_causes",
                        "likely: the slot between two others, where air is warm; its fan or the "
                        "fan in front of it; dust; paste or pads; a card of another maker that "
                        "takes more power",
                    )
                ),
            )
            if more > NOTABLE_C
            else ()
        )
        note = Message(
            english("beside_its_equals", "{temperature} degC, its equals {equals} degC"), beside
        )
        spread.add(name, more, _in_slot(places[name], note, *causes))
    serials = uuids(burns)
    check.take("burn_settled", settled, serials=serials)
    check.take("burn_clock_kept", kept, serials=serials)
    check.take("burn_temperature_spread", spread, serials=serials)


def _connectors(
    burns: Mapping[Gpu, BurnTelemetry],
    siblings: Mapping[str, tuple[Component, ...]],
    check: Check,
    troubles: list[Message],
) -> None:
    """Judge whether a card draws less than its equals while its fans run higher."""
    due = check.components("burn_power_short")
    draws: dict[Component, steady_state.Draw] = {}
    for gpu, burn in burns.items():
        if gpu.name in due:
            try:
                draws[gpu.name] = steady_state.draw(burn)
            except NotMeasured as error:
                troubles.append(error.message)
    told = steady_state.compare(draws, siblings)
    places = {gpu.name: gpu.pci_address for gpu in burns}
    check(
        "burn_power_short",
        {name: float(why is not None) for name, why in told.items()},
        notes={name: _in_slot(places[name], why) for name, why in told.items() if why},
        serials=uuids(burns),
    )


def _in_slot(slot: str, *told: Message) -> Message:
    return Message(english("in_slot", "slot {slot}: {text}"), {"slot": slot, "text": told})


def _errors(
    gpu_history: Mapping[Component, GpuHistory],
    due_gpus: tuple[Gpu, ...],
    span: tuple[float, float],
    check: Check,
    troubles: list[Message],
) -> None:
    """Judge the link errors during the burn, and note those counted before and after."""
    for measurement, counters in COUNTERS.items():
        due = check.components(measurement)
        grown = Figures()
        for gpu in due_gpus:
            history = gpu_history.get(gpu.name)
            if gpu.name not in due or history is None:
                continue
            try:
                parts = [
                    growth_around(history, name, *span)
                    for name in counters
                    if name == counters[0] or history.offers(name)
                ]
            except NotMeasured as error:
                troubles.append(error.message)
                continue
            before, within, after = map(_sum, zip(*parts, strict=True))
            sums = {"before": before, "within": within, "after": after}
            note = _in_slot(
                gpu.pci_address,
                Message(
                    english(
                        "counted_around", "{before} before, {within} within, {after} after the burn"
                    ),
                    sums,
                ),
            )
            noted = note if any(any(part) for part in parts) else None
            grown.add(gpu.name, sum(within for _, within, _ in parts), noted)
        check.take(measurement, grown, serials=uuids(due_gpus))


def _sum(column: Sequence[float | None]) -> str | Message:
    """The growth of several counters together; "not told" where one of them is unknown."""
    known = [part for part in column if part is not None]
    return (
        f"{sum(known):.0f}"
        if len(known) == len(column)
        else Message(english("not_told", "not told"))
    )
