"""Likely causes and the next command for a measurement outside its limit, from `fixtures/causes/<language>.toml`, read strictly."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance.judge.declared import Strict

_LIKELY, _NEXT = "likely: ", ". Next: "
# One line, neither empty nor with blanks around it.
_Line = Annotated[str, msgspec.Meta(pattern=r"\A\S([^\n]*\S)?\Z")]


class AdviceFileError(Exception):
    """A file of causes of rigproof's own is wrong; the message is one sentence that names file and entry."""


class _Cause(Strict, frozen=True):
    measurements: Annotated[tuple[_Line, ...], msgspec.Meta(min_length=1)]
    causes: Annotated[tuple[_Line, ...], msgspec.Meta(min_length=2, max_length=4)]
    next: _Line


class _Sheet(Strict, frozen=True):
    cause: tuple[_Cause, ...]


def read(path: Path) -> dict[str, str]:
    """The advice of a file with `[[cause]]` tables, by measurement: `likely: A; B; C. Next: COMMAND`.

    Raises AdviceFileError for anything that is not exactly right, and for a measurement that stands twice.
    """
    try:
        sheet = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Sheet)
    except OSError as error:
        raise AdviceFileError(f"{path.name}: cannot be read ({error.strerror}): install rigproof again") from error
    except ValueError as error:  # what is no UTF-8, no TOML, or of another shape
        raise AdviceFileError(f"{path.name}: {error}") from error
    found: dict[str, str] = {}
    for row in sheet.cause:
        for measurement in row.measurements:
            if measurement in found:
                raise AdviceFileError(f"{path.name}: {measurement} stands twice")
            found[measurement] = f"{_LIKELY}{'; '.join(row.causes)}{_NEXT}{row.next}"
    return found


def parts(action: str) -> tuple[tuple[str, str], ...]:
    """An action in its labelled parts, as reports show them: `likely` and `next`, or `next` alone where it names no causes."""
    likely, mark, following = action.rpartition(_NEXT)
    return (("likely", likely.removeprefix(_LIKELY)), ("next", following)) if mark else (("next", action),)
