"""A table of cases as one test: each is tried, and those that fail are told together, by their
values.

An item costs pytest more than most cases do, and every worker collects all items.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]
Table = Iterable[Any] | Callable[[], Iterable[Any]]


def each(
    names: str, table: Table, *, told: Callable[[Any], str] | Sequence[str] = repr
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`. A table that must be computed is a function; `told` is what a
    failure calls a case. A case has its own `tmp_path`; all else that the test asks for they share.
    """
    wanted = [name.strip() for name in names.split(",")]

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        if "monkeypatch" in signature.parameters:
            raise TypeError(f"{test.__name__}: a case would find what the case before it changed")

        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            cases = list(table() if callable(table) else table)
            assert cases, "the table is empty: nothing was tried"
            assert callable(told) or len(told) == len(cases), "not every case has a name"
            wrong = []
            for number, case in enumerate(cases):
                values: Sequence[Any] = case if len(wanted) > 1 else (case,)
                own: dict[str, Any] = dict(zip(wanted, values, strict=True))
                if isinstance(folder := fixtures.get("tmp_path"), Path):
                    own["tmp_path"] = folder / f"case-{number}"
                    own["tmp_path"].mkdir()
                try:
                    test(**{**fixtures, **own})
                except (Exception, pytest.fail.Exception) as fault:  # noqa: BLE001 - told below
                    frames = fault.__traceback__.tb_next if fault.__traceback__ else None
                    lines = traceback.format_exception(fault.with_traceback(frames))
                    name = told(case) if callable(told) else told[number]
                    wrong.append(f"--- {number}: {name}\n{''.join(lines)}")
            if wrong:
                heading = f"{len(wrong)} of {len(cases)} cases are wrong"
                pytest.fail("\n".join([heading, *wrong]), pytrace=False)

        left = [one for name, one in signature.parameters.items() if name not in wanted]
        assert len(left) == len(signature.parameters) - len(wanted), "a name is no parameter"
        loop.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return loop

    return decorate
