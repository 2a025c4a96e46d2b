"""Families of a site's own checks: one TOML file beside each file of checks, read strictly.

They have the form of rigproof's own families, and `[settings]` for the checks of the file. They add
measurements, with limits; they name none of rigproof's own, so they change no limit of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from acceptance.core.limit import UNITS, Limit, LimitError
from acceptance.core.message import UserError
from acceptance.core.nearest import cure
from acceptance.core.plan import MEASUREMENT, PREFIX, FamilyFile
from acceptance.core.strict import Strict
from acceptance.expect import loosest, measurements
from acceptance.expect.measurements import EntryError, Measurements, Sheet
from acceptance.machine import toml_place
from acceptance.machine.machine_file import BELOW_ZERO
from acceptance.machine.toml_place import TomlError, explain, line_of, spell

PAGE = "docs/checks-of-your-own.md"
Setting = str | bool | int | float | tuple[str | bool | int | float, ...]
# Keys of rigproof's own entries that mean nothing in a site's.
_REFUSED = {
    "fact": "a fact is what the machine file declares",
    "per_in": "name one class of components in per",
    "ratio_of": "measure the ratio itself",
}
# Units in which a value may be below 0: a temperature, or how far a clock is off.
_BELOW_ZERO = (*BELOW_ZERO, "s", "us", "ns")
_OWN_RANGE = "correct the limit, or say with `possible` which values can occur"


class _SiteSheet(Sheet, Strict, frozen=True, kw_only=True):
    settings: dict[str, Setting] = msgspec.field(default_factory=dict)


class _Keys(Strict, frozen=True):
    """The keys of such a file, those of its entries too."""

    title: str
    is_not: str
    measurement: tuple[measurements.Entry, ...]
    settings: dict[str, Setting]


@dataclass(frozen=True, slots=True, eq=False)
class SiteFamilies:
    """The measurements of a site, and the settings of each of its files by the file's stem."""

    measurements: Measurements
    settings: Mapping[str, Mapping[str, Setting]]


NONE = SiteFamilies(Measurements({}, ()), {})


def parse(files: Sequence[FamilyFile]) -> SiteFamilies:
    """The families of a site's files. Raises UserError."""
    texts = {one.name: one.text for one in files}
    sheets = [(one.name, _sheet(one)) for one in files]
    for name, sheet in sheets:
        for place, sentence in _problems(sheet):
            raise _error(name, line_of(texts[name], place), sentence)
    try:
        found = measurements.assemble(sheets, measurements.shipped().by_name)
    except EntryError as error:
        raise _entry_error(error, texts[error.file]) from error
    for name, sheet in sheets:
        for place, sentence in _idle_bounds(sheet, found):
            raise _error(name, line_of(texts[name], place), sentence)
    settings = {name.removesuffix(".toml"): sheet.settings for name, sheet in sheets}
    return SiteFamilies(found, settings)


def _sheet(file: FamilyFile) -> _SiteSheet:
    try:
        table = toml_place.loads(file.text)
        return toml_place.convert(table, file.text, _SiteSheet, page=PAGE, keys=_Keys)
    except TomlError as error:
        raise _error(file.name, error.line, str(error)) from error


def _problems(sheet: Sheet) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with entries before they are read, each with its key."""
    shipped = measurements.shipped()
    for number, entry in enumerate(sheet.measurement):
        place: tuple[str | int, ...] = ("measurement", number)
        given = entry.get("names")
        names = given if isinstance(given, list) else []
        if not names:
            yield (*place, "names"), 'names must be a list of names in quotes: names = ["site_..."]'
        for name in names:
            if isinstance(name, str) and shipped.get(name) is not None:
                yield (
                    (*place, "names"),
                    f"{name} is a measurement of rigproof's own, which a site cannot change: give "
                    f"yours a name that begins with {PREFIX}",
                )
            elif not isinstance(name, str) or not MEASUREMENT.fullmatch(name):
                yield (
                    (*place, "names"),
                    f"{name!a} is no name for a measurement of a site: begin it with {PREFIX}, and "
                    "use small letters, digits and underscores",
                )
        for key, why in _REFUSED.items():
            if key in entry:
                yield (*place, key), f"{key} has no place in a check of a site: {why}"
        if not {"like", "limit", "no_limit"} & entry.keys():
            yield (
                place,
                f"{', '.join(map(str, names))} has no limit: add [measurement.limit] with low or "
                "high and a basis, or no_limit with the reason why there can be none",
            )
        unit = entry.get("unit")
        if isinstance(unit, str) and unit not in UNITS:
            meant = cure(unit, UNITS, f"one of {', '.join(sorted(UNITS))}", 2)
            yield (*place, "unit"), f"unit {unit!a} is none that rigproof knows: {meant}"
        advice = entry.get("advice")
        if isinstance(advice, dict) and "events" in advice:
            yield (
                (*place, "advice", "events"),
                "advice.events is for rigproof's own advice: remove it",
            )


def _idle_bounds(sheet: Sheet, found: Measurements) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Bounds that nothing could fail, each with its key; one from another entry (`like`) too.

    A floor of nothing beside a ceiling is only idle.
    """
    for number, entry in enumerate(sheet.measurement):
        one = found.by_name[entry["names"][0]]
        limit, possible = one.limit, one.own.possible
        if limit is None:
            continue
        if one.unit in _BELOW_ZERO and possible[0] == 0:
            possible = (-possible[1], possible[1])
        if limit.high is not None:
            limit = Limit(limit.unit, limit.basis, high=limit.high)
        if problem := loosest.idle_bound(one.name, limit, possible, _OWN_RANGE):
            yield ("measurement", number, "limit", problem[0]), problem[1]


def _entry_error(error: EntryError, text: str) -> UserError:
    """An error of an entry, with the line of its key."""
    what, separator, pointer = error.what.partition(" - at `$")
    pointer = f".measurement[{error.number}]" + (pointer if separator else "`")
    place = ("measurement", error.number)
    if error.what.startswith(("Object ", "Expected ")):  # msgspec's own
        try:
            sentence, line = explain(f"{what} - at `${pointer}", text, {}, PAGE, _Keys)
            return _error(error.file, line, sentence)
        except (LookupError, TypeError):  # a key that another entry gives to this one
            pass
    if isinstance(error.__cause__, LimitError):
        field = error.__cause__.field
        at: tuple[str | int, ...] = (*place, "limit", *([field] if field else []))
        return _error(error.file, line_of(text, at), f"{spell(at)}: {error.what}: see {PAGE}")
    # an error of ours has its key after it only where it is of a table
    return _error(error.file, line_of(text, place), f"{error.what}: see {PAGE}")


def _error(file: str, line: int | None, sentence: str) -> UserError:
    return UserError(f"{file}, line {line}: {sentence}" if line else f"{file}: {sentence}")
