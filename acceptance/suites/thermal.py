"""The GPUs' thermal steady state: temperature, clocks and links during the burn of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from acceptance.core.record import Outcome, Table
from acceptance.core.siblings import spreads
from acceptance.diagnosis.gpu_history import GpuHistory
from acceptance.diagnosis.gpu_work import idle_clock, power_trouble
from acceptance.diagnosis.laps import Laps, turns
from acceptance.diagnosis.steady_state import COLUMNS, BurnTelemetry, growth_around
from acceptance.loads.names import BURN_LAPS
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check

NamedSpans = Sequence[tuple[str, float, float]]
WriteTable = Callable[[str, str, Sequence[str], Sequence[Sequence[float | str]]], None]

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
WHEN = ("before", "within", "after")
_HOTTER = (
    "likely: the slot between two others, where air is warm; its fan or the fan in front of it; "
    "dust; paste or pads; a card of another "
    "maker that takes more power"
)


class HeatUnknown(Exception):
    """A GPU's behaviour under load is not known, so nothing is proved of its cooling.

    The message says why for each GPU.
    """


@pytest.mark.session("host-after")
@pytest.mark.costs(0.5)
@pytest.mark.measures(
    "burn_settled",
    "burn_clock_kept",
    "burn_temperature_spread",
    "burn_errors_new",
    "burn_nvlink_errors_new",
)
def test_steady(
    gpu_history: Mapping[str, GpuHistory],
    due_gpus: tuple[Gpu, ...],
    load_spans: NamedSpans,
    load_outcomes: Mapping[str, Outcome],
    load_tables: Sequence[Table],
    siblings: Mapping[str, tuple[str, ...]],
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
        raise HeatUnknown(
            f"{BURN} did not come to its end in this run, so nothing is known of heat under "
            "full load"
        )
    if load_outcomes[BURN] not in ("pass", "fail"):
        ended = (
            f"{BURN} ended in {load_outcomes[BURN]}, so nothing is known of heat under full load"
        )
        raise HeatUnknown(f"{ended}: cure that first, then run again")
    troubles: list[str] = []
    burns: dict[Gpu, BurnTelemetry] = {}
    for gpu in due_gpus:
        history = gpu_history.get(gpu.name)
        if history is None:
            troubles.append(
                f"{gpu.name}: no telemetry was recorded: journal.jsonl says why the watch "
                "did not run"
            )
            continue
        if trouble := power_trouble(history, [span]) or idle_clock(
            history, span, gpu.traits.max_sm_clock_mhz if gpu.traits else None
        ):
            troubles.append(trouble)
            continue
        try:
            burns[gpu] = BurnTelemetry.within(history, *span)
        except ValueError as error:
            troubles.append(str(error))
    tables = {
        one.component: turns(one)
        for one in load_tables
        if (one.check, one.name) == (BURN, BURN_LAPS)
    }
    laps = {
        gpu: Laps(burn.history, found)
        for gpu, burn in burns.items()
        if (found := tables.get(gpu.name))
    }
    _heat(burns, laps, siblings, check, troubles)
    _errors(gpu_history, due_gpus, span, check, troubles)
    for gpu, burn in burns.items():
        table(gpu.name, "burn_steady", COLUMNS, burn.rows())
    if troubles:
        raise HeatUnknown("; ".join(dict.fromkeys(troubles)))


def _heat(
    burns: Mapping[Gpu, BurnTelemetry],
    laps: Mapping[Gpu, Laps],
    siblings: Mapping[str, tuple[str, ...]],
    check: Check,
    troubles: list[str],
) -> None:
    """Judge settling time, clock and temperature spread of every GPU that burned."""
    settled: dict[str, float] = {}
    kept: dict[str, float] = {}
    final: dict[str, float] = {}
    notes: dict[str, dict[str, str | None]] = {"settled": {}, "kept": {}, "spread": {}}
    for gpu, burn in burns.items():
        about = f"slot {gpu.pci_address}"
        short = f"; {burn.short_note}" if burn.short_note else ""
        heat = laps.get(gpu, burn)
        try:
            rest = heat.settle_time()
            settled[gpu.name], notes["settled"][gpu.name] = (
                rest.seconds,
                f"{about}: {rest.note}{short}",
            )
            final[gpu.name] = heat.final_temperature()
        except ValueError as error:
            troubles.append(str(error))
        try:
            kept[gpu.name], note = heat.clock_kept()
            causes = f"; likely: {burn.causes()}" if kept[gpu.name] < NOTABLE_KEPT else ""
            notes["kept"][gpu.name] = f"{about}: {note}{causes}{short}"
        except ValueError as error:
            troubles.append(str(error))
    spread = spreads(final, siblings)
    places = {gpu.name: gpu.pci_address for gpu in burns}
    for name, (more, middle) in spread.items():
        causes = f"; {_HOTTER}" if more > NOTABLE_C else ""
        notes["spread"][name] = (
            f"slot {places[name]}: {final[name]:.0f} degC, its equals {middle:.0f} degC{causes}"
        )
    serials = uuids(burns)
    check("burn_settled", settled, notes=notes["settled"], serials=serials)
    check("burn_clock_kept", kept, notes=notes["kept"], serials=serials)
    differences = {name: more for name, (more, _) in spread.items()}
    check("burn_temperature_spread", differences, notes=notes["spread"], serials=serials)


def _errors(
    gpu_history: Mapping[str, GpuHistory],
    due_gpus: tuple[Gpu, ...],
    span: tuple[float, float],
    check: Check,
    troubles: list[str],
) -> None:
    """Judge the link errors during the burn, and note those counted before and after."""
    for measurement, counters in COUNTERS.items():
        due = check.components(measurement)
        grown: dict[str, float] = {}
        notes: dict[str, str | None] = {}
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
            except ValueError as error:
                troubles.append(str(error))
                continue
            grown[gpu.name] = sum(within for _, within, _ in parts)
            text = ", ".join(
                f"{_sum(column)} {when}"
                for column, when in zip(zip(*parts, strict=True), WHEN, strict=True)
            )
            if any(any(part) for part in parts):
                notes[gpu.name] = f"slot {gpu.pci_address}: {text} the burn"
        check(measurement, grown, notes=notes, serials=uuids(due_gpus))


def _sum(column: Sequence[float | None]) -> str:
    """The growth of several counters together; "not told" where one of them is unknown."""
    known = [part for part in column if part is not None]
    return f"{sum(known):.0f}" if len(known) == len(column) else "not told"
