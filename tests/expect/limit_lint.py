"""What is wrong with a table of limits, beyond what its reader refuses.

A sheet is held against itself and its architecture, so that a new one needs no entry here. A family
must tell the sound from the sick (`sound_and_sick.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acceptance.core.dtype import gemm_names, native_dtypes
from acceptance.core.message import SetupError, UserError
from acceptance.expect import architecture, measurements, sheet, sheet_figures
from acceptance.expect.sheet import LOCAL_COPY, Sheet, SheetLimit

READINGS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("sound_and_sick.toml").read_text(encoding="utf-8")
)
SLOW_FLOAT64 = {"7.5", "8.6", "8.9", "12.0"}
# The least that the widest entry of an architecture may ask: of a copy and, cool or hot, of a
# format, of its peak; of a hot card, of what it asks of a cool one.
COPY, HOT = 0.35, 0.6
LEAST = {
    "f64": 0.3,
    "f32": 0.12,
    "tf32": 0.14,
    "f16": 0.1,
    "bf16": 0.14,
    "f8": 0.12,
    "i8": 0.06,
}


def problems(file: Path) -> Iterator[str]:
    """What is wrong with the limits of one file of fixtures/models or fixtures/measurements."""
    try:
        if file.parent.name.startswith("measurements"):
            yield from _of_family(file)
        elif file.name == sheet.NO_SHEET:
            yield from _of_architectures(file)
        else:
            yield from of_sheet(sheet.read(file))
    except SetupError as refused:
        yield str(refused)


def _of_family(file: Path) -> Iterator[str]:
    own = [
        one for one in measurements.read(file.parent).by_name.values() if one.family == file.stem
    ]
    found = {one.name: one.limit for one in own if one.limit is not None}
    names = {one.name for one in own}
    counted = {
        one.name
        for one in own
        if not one.waivable and one.limit is not None and one.limit.high is not None
    }
    known = _unwaivable(counted) | _readings("judged", names)
    yield from (f"{name}: no reading of a sound machine" for name in found.keys() - known.keys())
    yield from (f"{name}: has no limit" for name in known.keys() - found.keys())
    for name in found.keys() & known.keys():
        for grade, key in (("pass", "sound"), ("fail", "sick"), ("warn", "unusual")):
            for value in known[name].get(key, ()):
                if found[name].grade(value) != grade:
                    yield f"{name}: {value:g} comes to {found[name].grade(value)}, and is {key}"
    loosest = {one.name: one.own.loosest for one in own if one.own.loosest is not None}
    refused = _readings("refused", names)
    yield from (
        f"{name}: how far a machine file may go is in one of family and readings only"
        for name in loosest.keys() ^ refused.keys()
    )
    for name in loosest.keys() & refused.keys():
        low, high = loosest[name].low, loosest[name].high
        for value in refused[name]["values"]:
            if not ((low is not None and value < low) or (high is not None and value > high)):
                yield f"{name}: a machine file may accept {value:g}"


def _unwaivable(names: set[str]) -> dict[str, dict[str, Any]]:
    """The row of counts that no waiver excuses, for each of these names."""
    (row,) = (row for row in READINGS["judged"] if row.get("unwaivable"))
    return dict.fromkeys(names, row)


def _readings(kind: str, names: set[str]) -> dict[str, dict[str, Any]]:
    """The row of each name that has one."""
    return {
        name: row
        for row in READINGS[kind]
        for name in names
        if name in row.get("measurements", ()) or re.fullmatch(row.get("named", ""), name)
    }


def _of_architectures(file: Path) -> Iterator[str]:
    for one in architecture.read(file):
        if one.copy < COPY:
            yield f"{one}: {one.copy:g} of a copy asks for next to nothing"
        for dtype, share in (*one.short.items(), *one.sustained.items()):
            if share < LEAST[dtype]:
                yield f"{one}: {share:g} in {dtype} asks for next to nothing"
        for dtype, cool in one.short.items():
            if not HOT * cool <= one.sustained[dtype] < cool:
                yield f"{one}: {one.sustained[dtype]:g} hot and {cool:g} cool in {dtype}"


def owed(one: Sheet) -> set[str]:
    """What a sheet limits: each format cool and hot; but float64 where it runs at a 32nd, and
    INT8 that the B300 gave up.
    """
    found = {LOCAL_COPY}
    for dtype in native_dtypes(one.compute_capability):
        if not (dtype == "f64" and one.compute_capability in SLOW_FLOAT64) and not (
            dtype == "i8" and one.peak.int8 is None
        ):
            found |= set(gemm_names(dtype))
    return found


def of_sheet(one: Sheet) -> Iterator[str]:
    """What is wrong with the floors of a shipped sheet.

    Reading holds each against its peak and against the formula of its basis; so each must have one.
    """
    if wrong := sheet_figures.problem(one):
        yield wrong[1]
    rows = {row.measurement: row for row in one.limit}
    yield from (
        f"{name}: owed and not limited, or the other way round" for name in rows.keys() ^ owed(one)
    )
    peaks = one.peak.by_dtype()
    for row, subject in _subjects(one):
        peak = peaks[subject] if subject != "copy" else one.memory.bandwidth_gbs
        if not re.match(rf"[\d.]+ x {re.escape(f'{peak:g}')} .*; ", row.basis):
            yield f"{row.measurement}: its basis is no share of {peak:g} with what was measured"
        if row.low < 0.98 * peak * _least(one, row, subject):
            yield f"{row.measurement}: {row.low:g} is less than a card without a sheet is asked"
        yield from _remark(row)
    for other in (*one.collective, *one.share):
        if sheet_figures.product(other.basis) is None:
            yield f"{other.measurement}: its basis does not calculate {other.low:g}"


def _subjects(one: Sheet) -> Iterator[tuple[SheetLimit, str]]:
    """Each floor with the format that it is of, or with "copy"."""
    named = {name: dtype for dtype in one.peak.by_dtype() for name in gemm_names(dtype)}
    for row in one.limit:
        if row.measurement == LOCAL_COPY or row.measurement in named:
            yield row, named.get(row.measurement, "copy")


def _least(one: Sheet, row: SheetLimit, subject: str) -> float:
    """The share that the card's architecture asks where there is no sheet."""
    known = architecture.find(architecture.shipped(), one.compute_capability, one.nvml_names[0])
    if known is None:
        return 0.0
    if subject == "copy":
        return known.copy
    shares = known.short if row.measurement.endswith("_short") else known.sustained
    return shares.get(subject, 0.0)


def _remark(row: SheetLimit) -> Iterator[str]:
    """A remark above the floor follows from the basis too."""
    _, said, formula = row.basis.partition("the remark at ")
    if bool(said) != (row.warn_low is not None):
        yield f"{row.measurement}: a remark stands in one of basis and bounds only"
    elif row.warn_low is not None:
        try:
            sheet_figures.check_basis(formula, row.warn_low, 3)
        except UserError as error:
            yield f"{row.measurement}: {error}"
