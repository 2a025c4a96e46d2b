"""Every limit held against a second book, which only the tests read: what sound machines show
passes, what sick ones show fails.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from limit_lint import lint

from acceptance.core.dtype import gemm_names, native_dtypes
from acceptance.expect import architecture, measurements, sheet
from acceptance.expect.sheet import LOCAL_COPY, Sheet
from acceptance.resources import DataFileError

BOOK: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("limit_book.toml").read_text(encoding="utf-8")
)
SLOW_FLOAT64 = {"7.5", "8.6", "8.9", "12.0"}


def problems(file: Path) -> Iterator[str]:
    """What is wrong with the limits of one file of fixtures/models or fixtures/measurements."""
    try:
        if file.parent.name.startswith("measurements"):
            yield from _of_family(file)
        else:
            yield from (_of_architectures if file.name == sheet.NO_SHEET else _of_sheet)(file)
    except DataFileError as refused:
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
    booked = _unwaivable(counted) | _booked("judged", names)
    yield from (f"{name}: not in the book" for name in found.keys() - booked.keys())
    yield from (f"{name}: has no limit" for name in booked.keys() - found.keys())
    for name in found.keys() & booked.keys():
        for grade, key in (("pass", "sound"), ("fail", "sick"), ("warn", "unusual")):
            for value in booked[name].get(key, ()):
                if found[name].grade(value) != grade:
                    yield f"{name}: {value:g} comes to {found[name].grade(value)}, and is {key}"
    loosest = {one.name: one.own.loosest for one in own if one.own.loosest is not None}
    refused = _booked("refused", names)
    yield from (
        f"{name}: how far a machine file may go is in one of family and book only"
        for name in loosest.keys() ^ refused.keys()
    )
    for name in loosest.keys() & refused.keys():
        low, high = loosest[name].low, loosest[name].high
        for value in refused[name]["values"]:
            if not ((low is not None and value < low) or (high is not None and value > high)):
                yield f"{name}: a machine file may accept {value:g}"


def _unwaivable(names: set[str]) -> dict[str, dict[str, Any]]:
    """The row of counts that no waiver excuses, for each of these names."""
    (row,) = (row for row in BOOK["judged"] if row.get("unwaivable"))
    return dict.fromkeys(names, row)


def _booked(kind: str, names: set[str]) -> dict[str, dict[str, Any]]:
    """The book's row of each name that it has one for."""
    return {
        name: row
        for row in BOOK[kind]
        for name in names
        if name in row.get("measurements", ()) or re.fullmatch(row.get("named", ""), name)
    }


def _of_architectures(file: Path) -> Iterator[str]:
    for one in architecture.read(file):
        shares = [*one.short.items(), *one.sustained.items(), ("copy", one.copy)]
        for dtype, share in shares:
            if share < BOOK["floors"][dtype]:
                yield f"{one}: {share:g} in {dtype} asks for next to nothing"


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


def _of_sheet(file: Path) -> Iterator[str]:
    one = sheet.read(file)
    floors = [
        [row.measurement.removeprefix("collective_"), row.gpus, row.low] for row in one.collective
    ]
    if floors != BOOK["collective"].get(file.stem, []):
        yield f"the floors of collectives are {floors}"
    shares = {row.measurement.removesuffix("_share"): row.low for row in one.share}
    if shares != BOOK["share"].get(file.stem, {}):
        yield f"the floors of shares are {shares}"
    rows = {row.measurement: row for row in one.limit}
    yield from (
        f"{name}: owed and not limited, or the other way round" for name in rows.keys() ^ owed(one)
    )
    yield from lint(one)
    remarked = BOOK["remarked"].get(file.name)
    found = {name: row.warn_low for name, row in rows.items() if row.warn_low is not None}
    if found.keys() != ({LOCAL_COPY} if remarked else set()):
        yield f"remarks on {sorted(found)}"
    elif remarked and not remarked[0] < found[LOCAL_COPY] <= remarked[1]:
        yield (
            f"a remark at {found[LOCAL_COPY]:g} GB/s: {remarked[0]} is unusual and "
            f"{remarked[1]} "
            "is not"
        )
