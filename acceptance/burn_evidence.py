"""What the wrong results of a burn look like, for the journal: a count with its diagnosis, and a table of the products themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acceptance.gpu_loads import GpuLoads, Wrong
from acceptance.journal import JournalError
from acceptance.judge.agreement import Made
from acceptance.judge.diagnosis import Heat, diagnose, right_moments
from acceptance.judge.dtype import DTYPES
from acceptance.tools.burn_load_output import digests

Heats = Callable[[str, float], Heat | None]  # of a GPU by its name, at a moment in seconds since boot
Row = tuple[float | str, ...]

COLUMNS = (
    "format", "iteration", "elements", "first address", "stride", "XOR", "bits", "made at s", "degC", "MHz", "kind"
)  # fmt: skip
ROWS = 64
LARGEST, CELL = (
    1e15,
    60,
)  # of a number, and letters of a text: what a load that went mad tells is no reason to write without end
NOTHING = "-"  # in a cell: the load did not tell it, or it was not sampled
COUNTS = (
    *(f"burn_{dtype}_miscompares" for dtype in DTYPES),
    "burn_copy_miscompares",
    "burn_peer_miscompares",
)


def counted(loads: GpuLoads, measurement: str, heats: Heats) -> tuple[dict[str, float], dict[str, str | None]]:
    """A count of wrong results by GPU or pair, and what they look like as its note."""
    counts, notes = loads.miscompares(measurement)
    for name, found in loads.wrong(measurement).items():
        notes[name] = _diagnosed(name, found, heats)[1]
    return counts, notes


def made(loads: GpuLoads) -> dict[str, Made]:
    """What the burn of each GPU multiplied and came to, by the GPU's name."""
    return {gpu: Made(str(output.parameters["library"]), digests(output)) for gpu, output in loads.outputs.items()}


def evidence(loads: GpuLoads, heats: Heats) -> dict[str, tuple[Row, ...]]:
    """The wrong results of each GPU on which something was wrong, in rows of COLUMNS: at most ROWS, of each format the first ones."""
    parts: dict[str, list[list[Row]]] = {}
    for measurement in COUNTS:
        for name, found in loads.wrong(measurement).items():
            gpu, (kind, _) = _gpu(name), _diagnosed(name, found, heats)
            parts.setdefault(gpu, []).append([_row(gpu, one, kind, heats) for one in found])
    return {gpu: tuple(row for rows in of_gpu for row in rows[: _share(of_gpu)]) for gpu, of_gpu in parts.items()}


def _share(parts: Sequence[Sequence[Row]]) -> int:
    """How many rows of each part there is room for: all of them, or the most with which no part crowds out another."""
    share = max(len(rows) for rows in parts)
    while share > 1 and sum(min(share, len(rows)) for rows in parts) > ROWS:
        share -= 1
    return share


def _diagnosed(name: str, found: Sequence[Wrong], heats: Heats) -> tuple[str, str]:
    """The kind and the sentence of what the wrong results of one count look like."""
    gpu = _gpu(name)
    right = [heat for moment in right_moments(found) if (heat := _at(gpu, moment, heats)) is not None]
    diagnosis = diagnose(found, [_heat(gpu, one, heats) for one in found], right)
    return diagnosis.kind, diagnosis.sentence


def _gpu(component: str) -> str:
    """The GPU whose load told of it: of a pair the first."""
    return component.partition("->")[0]


def _moment(one: Wrong) -> float | None:
    """When a wrong result was made, or else found, in seconds since boot."""
    told = [_cell(one[name]) for name in ("made_s", "found_s") if name in one]
    return next((cell for cell in told if isinstance(cell, float)), None)


def _heat(gpu: str, one: Wrong, heats: Heats) -> Heat | None:
    moment = _moment(one)
    return _at(gpu, moment, heats) if moment is not None else None


def _at(gpu: str, moment: float, heats: Heats) -> Heat | None:
    """The heat at a moment; None where it cannot be read: a wrong result is told all the same, and the watch's own checks tell of that."""
    try:
        return heats(gpu, moment)
    except JournalError:
        return None


def _row(gpu: str, one: Wrong, kind: str, heats: Heats) -> Row:
    first, bits, heat = one.get("first"), one.get("bits"), _heat(gpu, one, heats)
    place = first[0].get("address") if isinstance(first, list) and first and isinstance(first[0], Mapping) else None
    address = f"{place:#x}" if isinstance(place, int) else None
    told = " ".join(f"{bit}:{count}" for bit, count in list(bits.items())[:8]) if isinstance(bits, Mapping) else None
    cells = (
        one.get("dtype", one.get("check")), one.get("iteration"), one.get("elements", one.get("words")), address, one.get("stride"),
        one.get("xor_or"), told or None, _moment(one), heat.temperature_c if heat else None, heat.clock_mhz if heat else None, kind,
    )  # fmt: skip
    return tuple(_cell(cell) for cell in cells)


def _cell(value: object) -> float | str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:  # false for NaN
        return float(value)
    return value[:CELL] if isinstance(value, str) and value else NOTHING
