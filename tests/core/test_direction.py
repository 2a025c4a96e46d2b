"""Which of two values is the worse one."""

from __future__ import annotations

from cases import each

from acceptance.core.direction import is_worse
from acceptance.core.limit import Limit

FLOOR = Limit("GB/s", "basis", low=10.0)
CEILING = Limit("GB/s", "basis", high=10.0)
RANGE = Limit("GB/s", "basis", low=10.0, high=20.0)


@each(
    "first, a, second, b, unit, told",
    [
        (FLOOR, 12.0, FLOOR, 11.0, None, True),
        (FLOOR, 11.0, FLOOR, 12.0, "higher", False),  # the limit tells, not the unit
        (CEILING, 11.0, CEILING, 12.0, "lower", True),
        (CEILING, 12.0, None, 11.0, None, False),  # one limit is enough
        (None, 12.0, FLOOR, 11.0, None, True),
        (None, 12.0, None, 11.0, "lower", True),
        (None, 12.0, None, 11.0, "higher", False),
        (None, 12.0, None, 11.0, None, None),
        (FLOOR, 12.0, CEILING, 11.0, "lower", None),  # limits that do not agree
        (RANGE, 12.0, RANGE, 18.0, "lower", None),  # both within
        (RANGE, 12.0, RANGE, 22.0, None, True),
        (RANGE, 4.0, RANGE, 9.0, None, False),
        (RANGE, 12.0, None, 9.0, None, True),
        (None, 21.0, RANGE, 19.0, None, False),
    ],
)
def test_what_tells(
    first: Limit | None,
    a: float,
    second: Limit | None,
    b: float,
    unit: str | None,
    told: bool | None,
) -> None:
    assert is_worse((first, a), (second, b), unit) is told  # type: ignore[arg-type]
    back = is_worse((second, b), (first, a), unit)  # type: ignore[arg-type]
    assert back is (None if told is None else not told), (
        "looked at from the other run it is the other way round"
    )


@each("limit, unit", [(FLOOR, None), (CEILING, None), (None, "lower"), (None, "higher")])
def test_the_same_value_is_not_worse(limit: Limit | None, unit: str | None) -> None:
    assert is_worse((limit, 12.0), (limit, 12.0), unit) is False  # type: ignore[arg-type]
