"""Sheets of the site, beside rigproof's own or in their place: strictly read. Pure.

A sheet with the name of one of rigproof's own replaces it whole, and so must have all names and ids
of that: a card or disk that lost its sheet would be judged by less. Any other sheet is of another
model, and must share no card and no disk with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

import msgspec

from acceptance.core.grouping import grouped
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Quantity, Range, UserError, Values, english
from acceptance.core.parts import Component
from acceptance.core.plan import LimitSet, LooserLimit, Plan, SiteSheet
from acceptance.expect import disk_sheet, gpu_limits, limit_version, sheet, sheet_figures
from acceptance.expect.disk_sheet import DiskSheet
from acceptance.expect.limit_book import LimitBook
from acceptance.expect.sheet import Sheet
from acceptance.machine import toml_place
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.toml_place import Path as Place
from acceptance.machine.toml_place import TomlError, line_of, past_a_bound

MODELS, DISKS = "models", "disks"
DOCUMENT = "docs/limits.md"
_MOST_FILES = 8  # in a note; the provenance has all

_Kind = Literal["limit", "ceiling"]


class SiteSheetError(UserError):
    """A sheet of the site cannot be used; the message names file, key and line.

    `sentence` is what is wrong, `line` where. `contradicts` marks a sheet that was read whole and
    contradicts itself or another one.
    """

    def __init__(
        self,
        message: str,
        *,
        sentence: str | None = None,
        line: int | None = None,
        contradicts: bool = False,
    ) -> None:
        super().__init__(message)
        self.sentence, self.line = sentence or message, line
        self.contradicts = contradicts


def _error(
    file: str, line: int | None, sentence: str, *, contradicts: bool = False
) -> SiteSheetError:
    at = f"{file}, line {line}" if line is not None else file
    return SiteSheetError(
        f"{at}: {sentence}", sentence=sentence, line=line, contradicts=contradicts
    )


class SiteModel(Sheet, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A GPU sheet of the site, and its file."""

    file: str

    @property
    def origin(self) -> Message:
        """The sheet, as the origin of limits."""
        return Message(
            english("site_sheet_of", "the site's sheet of {model}, {file}"),
            {"model": self.name, "file": self.file},
        )


class SiteDisk(DiskSheet, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A disk sheet of the site, and its file."""

    file: str

    @property
    def origin(self) -> Message:
        """The sheet, as the origin of limits."""
        return Message("site_sheet_of", {"model": self.name, "file": self.file})


@dataclass(frozen=True, slots=True)
class Sheets:
    """The sheets that a run is judged by."""

    models: tuple[Sheet, ...]
    disks: tuple[DiskSheet, ...]


def own_sheets() -> Sheets:
    """Rigproof's own sheets. Raises SetupError."""
    return Sheets(gpu_limits.sheets(), disk_sheet.shipped())


def parse(file: str, text: str) -> SiteModel | SiteDisk:
    """The sheet in a file of the site, such as "models/x.toml".

    Raises SiteSheetError, naming file, line and key.
    """
    try:
        table = toml_place.loads(text)
        if file.startswith(MODELS):
            model = toml_place.convert(table, text, Sheet, page=DOCUMENT)
            if wrong := sheet.problem(model) or sheet_figures.problem(model):
                _refuse(file, line_of(text, wrong[0]), wrong[1])
            return SiteModel(**msgspec.structs.asdict(model), file=file)
        disk = toml_place.convert(table, text, DiskSheet, page=DOCUMENT)
    except TomlError as error:
        # a figure that cannot be of any card or disk: MB/s for GB/s
        contradicts = past_a_bound(str(error.__cause__))
        raise _error(file, error.line, str(error), contradicts=contradicts) from error
    if wrong := disk_sheet.problem(disk) or sheet_figures.disk_problem(disk):
        key = ".".join(map(str, wrong[0]))
        _refuse(file, line_of(text, wrong[0]), f"{key}: {wrong[1]}")
    return SiteDisk(**msgspec.structs.asdict(disk), file=file)


def _refuse(file: str, line: int | None, sentence: str) -> NoReturn:
    raise _error(file, line, sentence, contradicts=True)


def read(texts: Iterable[tuple[str, str]]) -> tuple[SiteSheet, ...]:
    """The sheets of a site from their files, each with its text.

    They are held against rigproof's own and against each other. Raises SiteSheetError and
    SetupError.
    """
    own = own_sheets()
    found: list[tuple[SiteModel | SiteDisk, str]] = []
    kept = []
    for file, text in texts:
        one = parse(file, text)
        for other in (*_of_kind(one, own), *(earlier for earlier, _ in found)):
            if problem := _conflict(one, other):
                _refuse(file, line_of(text, problem[0]), problem[1])
        found.append((one, text))
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        replaces = any(other.name == one.name for other in _of_kind(one, own))
        kept.append(SiteSheet(file, one.name, digest, text, replaces))
    return tuple(kept)


def _of_kind(one: SiteModel | SiteDisk, own: Sheets) -> tuple[Sheet, ...] | tuple[DiskSheet, ...]:
    return own.models if isinstance(one, Sheet) else own.disks


def _conflict(one: Sheet | DiskSheet, other: Sheet | DiskSheet) -> tuple[Place, str] | None:
    """The key that keeps a sheet of the site from standing beside another one, and why; or None.

    The other one is rigproof's own, or one that the site has already.
    """
    theirs = isinstance(other, SiteModel | SiteDisk)
    if isinstance(one, Sheet) and isinstance(other, Sheet):
        return _of_one_card(one, other, theirs=theirs)
    if isinstance(one, DiskSheet) and isinstance(other, DiskSheet):
        return _of_one_disk(one, other, theirs=theirs)
    return None


def _twice(name: str) -> tuple[Place, str]:
    return ("name",), f"{name!r} is the name of another file's sheet too: keep one of the two"


def _cure(other: Sheet | DiskSheet, *, theirs: bool) -> str:
    if theirs:
        return f"the sheet of {other.name!r} beside it too: keep it in one of them"
    return f"rigproof's own sheet {other.name!r}: give this one that name to replace it"


def _of_one_card(one: Sheet, other: Sheet, *, theirs: bool) -> tuple[Place, str] | None:
    names, ids = set(map(sheet.plain, one.nvml_names)), set(one.pci_ids)
    if one.name == other.name:
        if theirs:
            return _twice(one.name)
        for key, missing in (
            ("pci_ids", [id_ for id_ in other.pci_ids if id_ not in ids]),
            ("nvml_names", [name for name in other.nvml_names if sheet.plain(name) not in names]),
        ):
            if missing:
                return (key,), _incomplete(key, missing[0])
        return None
    same = ids & set(other.pci_ids)
    if same and names & set(map(sheet.plain, other.nvml_names)):
        named = f"{min(same)} with one of these nvml_names is a card of"
        return ("pci_ids",), f"pci_ids: {named} {_cure(other, theirs=theirs)}"
    return None


def _of_one_disk(one: DiskSheet, other: DiskSheet, *, theirs: bool) -> tuple[Place, str] | None:
    if one.name == other.name:
        if theirs:
            return _twice(one.name)
        for name in other.examples:
            if not one.matches(name):
                return ("models",), _incomplete("models", name)
        return None
    for name in one.examples:
        if other.matches(name):
            return ("examples",), f"examples: {name!r} is a disk of {_cure(other, theirs=theirs)}"
    for name in other.examples:
        if one.matches(name):
            return ("models",), f"models: {name!r} is a disk of {_cure(other, theirs=theirs)}"
    return None


def _incomplete(key: str, missing: str) -> str:
    return (
        f"{key} lacks {missing!r}, which rigproof's own sheet of this name has: add it, or what "
        "goes by it would be judged without a sheet"
    )


def in_effect(sheets: Iterable[SiteSheet]) -> Sheets:
    """Rigproof's own sheets with those of the site.

    Raises SiteSheetError and SetupError.
    """
    return _joined(sheets, [parse(one.file, one.text) for one in sheets])


def of_record(limits: LimitSet | None) -> Sheets:
    """The sheets of a recorded run, for its reports.

    A sheet of the site that this rigproof cannot read (another version wrote the run) is left out
    and so is rigproof's own of that model: it was not used.
    """
    sheets = limits.sheets if limits is not None else ()
    return _joined(sheets, list(_readable(sheets)))


def _readable(sheets: Iterable[SiteSheet]) -> Iterator[SiteModel | SiteDisk]:
    for one in sheets:
        try:
            yield parse(one.file, one.text)
        except SiteSheetError:
            continue


def _joined(sheets: Iterable[SiteSheet], found: Sequence[SiteModel | SiteDisk]) -> Sheets:
    own, replaced = own_sheets(), {(one.file.partition("/")[0], one.model) for one in sheets}
    return Sheets(
        (
            *(one for one in own.models if (MODELS, one.name) not in replaced),
            *(one for one in found if isinstance(one, Sheet)),
        ),
        (
            *(one for one in own.disks if (DISKS, one.name) not in replaced),
            *(one for one in found if isinstance(one, DiskSheet)),
        ),
    )


def is_same(limits: LimitSet) -> bool:
    """Whether the limits here, with the plan's sheets of the site, are those of the plan.

    To be asked where the package is the plan's: rigproof's own limits are in its digest.
    """
    whole = all(
        hashlib.sha256(one.text.encode("utf-8")).hexdigest() == one.sha256 for one in limits.sheets
    )
    own = limit_version.digest_of(limits.version)
    return whole and limit_version.with_sheets(own, limits.sheets) == limits.digest


def gaps(
    inventory: Inventory, names: tuple[Component, ...], models: Sequence[Sheet]
) -> tuple[Message, ...]:
    """The gaps by rigproof's own sheets, and by these: a sheet of the site closes none."""
    found = (
        *gpu_limits.gaps(inventory, names, own_sheets().models),
        *gpu_limits.gaps(inventory, names, models),
    )
    return tuple(one for at, one in enumerate(found) if one not in found[:at])


def looser(plan: Plan, site: LimitBook, own: LimitBook) -> tuple[LooserLimit, ...]:
    """What is due in a plan and held against less than by rigproof's own sheets alone.

    `site` are the limits with the sheets of the site, `own` those without.
    """
    found: dict[tuple[str, Component, _Kind], LooserLimit] = {}
    for due in (due for check in plan.checks for due in check.due):
        name, component = due.measurement, due.component
        was, now = own.find(name, component), site.find(name, component)
        pairs: tuple[tuple[_Kind, Limit | None, Limit | None], ...] = (
            ("limit", was.limit if was else None, now.limit if now else None),
            ("ceiling", own.ceiling(name, component), site.ceiling(name, component)),
        )
        for kind, before, after in pairs:
            if before is not None and _is_looser(before, after):
                one = LooserLimit(name, component, kind, before, after)
                found[name, component, kind] = one
    return tuple(found.values())


def _is_looser(before: Limit, after: Limit | None) -> bool:
    if after is None:
        return True
    lower = before.low is not None and (after.low is None or after.low < before.low)
    higher = before.high is not None and (after.high is None or after.high > before.high)
    return lower or higher


def applied(inventory: Inventory, sheets: Sheets) -> frozenset[str]:
    """The files of the site's sheets that are of a GPU or a disk of this machine."""
    found: list[Sheet | DiskSheet | None] = [
        gpu_limits.sheet_of(gpu, sheets.models) for gpu in gpus(inventory)
    ]
    found += [
        disk_sheet.find(sheets.disks, disk.model) for disk in known(inventory.disks) if disk.model
    ]
    return frozenset(one.file for one in found if isinstance(one, SiteModel | SiteDisk))


def notes(limits: LimitSet, here: Collection[str]) -> Iterator[Message]:
    """What the reader of a run must know of the site's sheets: which there are, what they loosen.

    `here` are the files of those that are of a part of this machine; the others are named in one
    note. The same of several components is said once.
    """
    for one in limits.sheets:
        if one.file not in here:
            continue
        values = {"model": one.model, "file": one.file, "digest": one.sha256[:12]}
        if one.replaces:
            yield Message(
                english(
                    "site_sheet_replaces",
                    "the site's sheet {file} (sha256 {digest}) replaces rigproof's own of {model}",
                ),
                values,
            )
        else:
            yield Message(
                english(
                    "site_sheet_adds",
                    "the site's sheet {file} (sha256 {digest}) is of {model}, which rigproof has "
                    "no sheet of",
                ),
                values,
            )
    if others := tuple(one.file for one in limits.sheets if one.file not in here):
        listed = Listed.first(others, _MOST_FILES)
        yield Message(
            english(
                "site_sheets_of_others",
                "sheets of the site that are of no GPU or disk here: {files}",
            ),
            {"files": listed},
        )
    same = grouped(
        (
            (
                loose.measurement,
                loose.kind,
                *((one.low, one.high) if one else None for one in (loose.own, loose.limit)),
            ),
            loose,
        )
        for loose in limits.looser
    )
    for group in same.values():
        yield _loosened(group[0], Listed(tuple(str(loose.component) for loose in group)))


def _loosened(one: LooserLimit, components: Listed) -> Message:
    values: Values = {
        "name": one.measurement,
        "components": components,
        "own": _bounds(one.own, one.kind),
    }
    if one.limit is None:
        if one.kind == "ceiling":
            return Message(
                english(
                    "site_sheet_drops_ceiling",
                    "looser by the site's sheets: {name} of {components} has no ceiling, by "
                    "rigproof's own it is {own}",
                ),
                values,
            )
        return Message(
            english(
                "site_sheet_drops",
                "looser by the site's sheets: {name} of {components} has no limit, by rigproof's "
                "own it must be {own}",
            ),
            values,
        )
    values = {**values, "limit": _bounds(one.limit, one.kind)}
    if one.kind == "ceiling":
        return Message(
            english(
                "site_sheet_raises_ceiling",
                "looser by the site's sheets: the ceiling of {name} of {components} is {limit}, "
                "by rigproof's own {own}",
            ),
            values,
        )
    return Message(
        english(
            "site_sheet_loosens",
            "looser by the site's sheets: {name} of {components} must be {limit}, by rigproof's "
            "own {own}",
        ),
        values,
    )


def _bounds(limit: Limit, kind: _Kind) -> Quantity | Range:
    return (
        Quantity(limit.high, limit.unit)
        if kind == "ceiling" and limit.high is not None
        else Range(limit.unit, limit.low, limit.high)
    )
