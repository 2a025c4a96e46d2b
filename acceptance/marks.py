"""The marks that several suites put on their checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acceptance.judge.dtype import DTYPES

Mark = Callable[[Any], Any]


def of_each_format(*figures: tuple[str, str, str, bool]) -> Mark:
    """The marks `measures` of every number format: (name, unit, class, waivable), `{d}` in them being the format."""

    def mark(function: Any) -> Any:
        for dtype in reversed(DTYPES):
            for name, unit, per, waivable in reversed(figures):
                named, where = name.format(d=dtype), per.format(d=dtype)
                function = pytest.mark.measures(named, unit=unit, per=where, waivable=waivable)(function)
        return function

    return mark
