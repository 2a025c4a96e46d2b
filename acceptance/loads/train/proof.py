"""What proves the outputs of the loads of training, of whichever load. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from acceptance.core.message import english
from acceptance.loads.contract import Unproved
from acceptance.loads.protocol import LoadOutput

_EXACT = 1e-6  # of figures that are not rounded

_T = TypeVar("_T")


def of_capability(output: LoadOutput, of: Callable[[str], _T]) -> _T | None:
    """What a GPU of the compute capability that the output names has; None where it names none."""
    try:
        return of(str(output.parameters.get("capability")))
    except ValueError:
        return None


def require_parameter(output: LoadOutput, name: str, due: object) -> None:
    """Raise Unproved unless the load ran with this parameter, which follows from its GPU."""
    printed = output.parameters.get(name)
    if due is None or printed != due:
        raise other(name, printed, due)


def require_rates(output: LoadOutput) -> None:
    """Raise Unproved for a rate or a share of 0."""
    for one in output.readings:
        if one.unit != "count" and not one.value > 0:
            raise Unproved("load_rate_none", name=one.name)


def require_counted(output: LoadOutput, name: str) -> None:
    """Raise Unproved unless this reading counts the wrong results that the output has."""
    (counted,) = (one.value for one in output.readings if one.name == name)
    if counted != len(output.miscompares):
        raise Unproved("load_uncounted")


def other(name: str, printed: object, due: object) -> Unproved:
    """The load ran with another parameter than its ask or its GPU demand."""
    return Unproved("load_parameter", name=name, told=repr(printed), asked=repr(due))


def require_share(name: str, share: float, rate: float, matmul: float) -> None:
    """Raise Unproved unless the share is that of the rate, of the card's own matrix product."""
    if not math.isclose(share * matmul, rate, rel_tol=_EXACT):
        values = {"share": f"{share:g}", "rate": f"{rate:g}", "matmul": f"{matmul:g}"}
        raise Unproved(
            english("load_share", "{name} is {share}, which is not {rate} / {matmul}"),
            name=name,
            **values,
        )
