"""What a value is held against, as a tagged union that the plan carries.

Each criterion judges a value in words and names its basis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from acceptance.core.finding import Finding, FindingKind
from acceptance.core.limit import Limit, number, quantity
from acceptance.core.past import Past
from acceptance.core.siblings import ratio
from acceptance.core.waiver import Waiver

NOTE_INLINE = 100  # a longer note would hide the value and its limit


class About(NamedTuple):
    """What a value is of.

    `note` came with it; `excuses` are the waivers that name a worst value of it.
    """

    check: str
    measurement: str
    component: str
    unit: str
    note: str | None = None
    excuses: tuple[Waiver, ...] = ()

    @property
    def where(self) -> str:
        """The measurement and its component in words."""
        return f"{self.measurement} on {self.component}"

    def finding(self, kind: FindingKind, text: str, note: str | None = None) -> Finding:
        """A finding about it."""
        return Finding(kind, self.check, text, self.measurement, self.component, note=note)


class _Criterion(msgspec.Struct, frozen=True, tag_field="criterion"):
    pass


class Within(_Criterion, frozen=True, tag="limit"):
    """An absolute limit; a waiver with a worst value may excuse a value outside."""

    limit: Limit

    def judge(self, about: About, value: float) -> Finding | None:
        """A finding where the value is outside the limit, or outside what is usual."""
        limit = self.limit
        grade = limit.grade(value)
        if grade == "pass":
            return None
        note = about.note
        brief = bool(note) and "\n" not in str(note) and len(str(note)) <= NOTE_INLINE
        said, note = (f" ({note})", None) if brief else ("", note or None)
        text = (
            f"{about.where}: measured {_with_unit(value, limit)}{said}, limit {limit}; basis: "
            f"{limit.basis}"
        )
        if grade == "warn":
            words = f"{text} (within the limit, outside what is usual)"
            return about.finding("warn", words, note)
        exceeded = ""
        for waiver in about.excuses:
            assert waiver.worst is not None  # as `excuses` promises
            bound = quantity(waiver.worst, about.unit)
            below = limit.low is not None and value < limit.low
            if value >= waiver.worst if below else value <= waiver.worst:
                words = f"{text}; waived: {waiver.reason} (worst accepted {bound})"
                return about.finding("waived", words, note)
            exceeded = f"; worse than the waiver accepts ({bound})"
        return about.finding("fail", f"{text}{exceeded}", note)


class Plausible(_Criterion, frozen=True, tag="plausible"):
    """The most that is physically possible: the high bound of `limit`.

    A value above it proves nothing, and no waiver excuses it. Raises ValueError without that bound,
    which would let everything pass.
    """

    limit: Limit

    def __post_init__(self) -> None:
        if self.limit.high is None:
            raise ValueError("the most that is possible needs high")

    def judge(self, about: About, value: float) -> Finding | None:
        """An error where the value is above what is possible."""
        if self.limit.grade(value) != "fail":
            return None
        assert self.limit.high is not None
        possible = quantity(self.limit.high, about.unit)
        text = (
            f"{about.where}: measured {_with_unit(value, self.limit)}, and no more than {possible} "
            "is possible: it proves nothing, measure it again with another tool"
        )
        return about.finding("error", f"{text}; basis: {self.limit.basis}")


class Siblings(_Criterion, frozen=True, tag="siblings"):
    """The value is a ratio: the component's value of measurement `of` over its siblings' median.

    `among` names the equal components, itself included.
    """

    of: str
    among: tuple[str, ...]

    def judge(self, about: About, value: float, values: Mapping[str, float]) -> Finding | None:
        """An error where the value is not the ratio that the `values` of `of` give."""
        found = ratio(about.component, values, self.among)
        # Another order of the same arithmetic may differ in the last digit.
        if found is not None and math.isclose(found, value, rel_tol=1e-9):
            return None
        gives = "no ratio" if found is None else repr(found)
        return about.finding(
            "error",
            f"{about.where}: {value!r} was recorded, and the values of {self.of} give {gives}: it "
            "proves nothing, run the test again",
        )


Criterion = Within | Plausible | Siblings | Past


def _with_unit(value: float, limit: Limit) -> str:
    """A value with its unit; in full where rounding would move it within the limit."""
    shown = quantity(value, limit.unit)
    return (
        shown
        if limit.grade(float(number(value))) == limit.grade(value)
        else shown.replace(number(value), repr(value))
    )
